//! The panic hook for hot threads: it formats and allocates nothing, and keeps file and line of the panic.
//!
//! Owns the process's panic hook and one fixed buffer per thread. On a hot thread the hook copies file and line; on any
//! other it calls the hook that was there before.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

const FILE_BYTES: usize = 128;

thread_local! {
    static HOT: Cell<bool> = const { Cell::new(false) };
    static SITE: RefCell<([u8; FILE_BYTES], usize, u32)> = const { RefCell::new(([0; FILE_BYTES], 0, 0)) };
}

/// Installs the hook, once per process.
pub fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !HOT.get() {
                before(info);
                return;
            }
            if let Some(location) = info.location() {
                let _ = SITE.try_with(|site| {
                    if let Ok(mut site) = site.try_borrow_mut() {
                        // The end of a path tells more than its beginning.
                        let bytes = location.file().as_bytes();
                        let tail = &bytes[bytes.len().saturating_sub(FILE_BYTES)..];
                        site.0[..tail.len()].copy_from_slice(tail);
                        site.1 = tail.len();
                        site.2 = location.line();
                    }
                });
            }
        }));
    });
}

/// Runs `body` and keeps the calling thread's panics as it does for a hot thread: for the simulation, which runs roles.
///
/// # Errors
/// Where it panicked, if it did.
pub fn kept<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            HOT.set(self.0);
        }
    }
    install_hook();
    let _restore = Restore(HOT.replace(true));
    catch_unwind(AssertUnwindSafe(body)).map_err(|_| {
        let mut place = String::new();
        last_site(|file, line| place = format!("{file}:{line}"));
        place
    })
}

/// Marks the calling thread as hot.
pub(super) fn mark_hot() {
    HOT.set(true);
}

/// File and line of this thread's last panic, through `with`.
pub(super) fn last_site(with: impl FnOnce(&str, u32)) {
    SITE.with_borrow(|(bytes, len, line)| with(std::str::from_utf8(&bytes[..*len]).unwrap_or("?"), *line));
}
