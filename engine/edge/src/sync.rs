//! The seam between the machine's atomics and loom's.
//!
//! Everything in this crate takes its atomics and cells from here. [`edge`] names each acquire or release access, so
//! that under loom the environment variable `WEAKEN=<name>` turns exactly that one `Relaxed`: a model must notice.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The ordering of the access named `name`: `ordering`, except that a loom run may weaken one by name.
#[cfg(not(loom))]
#[inline(always)]
#[must_use]
pub const fn edge(_name: &'static str, ordering: Ordering) -> Ordering {
    ordering
}

/// The ordering of the access named `name`: `ordering`, or `Relaxed` if `WEAKEN` names it.
#[cfg(loom)]
#[must_use]
pub fn edge(name: &'static str, ordering: Ordering) -> Ordering {
    if std::env::var("WEAKEN").is_ok_and(|weak| weak == name) { Ordering::Relaxed } else { ordering }
}

/// An `UnsafeCell` with loom's interface: access goes through a closure, so that loom can see it.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(core::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer to read through.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer to write through.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

#[cfg(loom)]
pub use loom::cell::UnsafeCell;
