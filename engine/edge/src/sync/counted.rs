//! Core's atomics, each read-modify-write counted: for a test of what a shot costs.
//!
//! Each thread counts its own, by the line of this crate that exchanges. Counting allocates
//! nothing. Bounds: [`SITES_MAX`] lines a thread; one more panics. A compare-and-exchange that fails
//! counts too: it locks the cache line as well. Loads and stores pass through.

use super::Ordering;
use core::panic::Location;
use core::sync::atomic;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Lines that a thread tells apart: more than this crate has.
const SITES_MAX: usize = 128;

/// A line that exchanged, and how often.
type Site = Option<(&'static Location<'static>, u64)>;

thread_local! {
    /// The lines, by the hash of their address. Nothing to drop, so that it outlives what counts.
    static SITES: [Cell<Site>; SITES_MAX] = const { [const { Cell::new(None) }; SITES_MAX] };
}

/// Counts an exchange of the caller's caller.
#[track_caller]
fn count() {
    let caller = Location::caller();
    let first = std::ptr::from_ref(caller).addr() / align_of_val(caller);
    SITES.with(|sites| {
        for place in 0..SITES_MAX {
            let site = &sites[(first + place) % SITES_MAX];
            match site.get() {
                Some((known, times)) if std::ptr::eq(known, caller) => return site.set(Some((known, times + 1))),
                Some(_) => {}
                None => return site.set(Some((caller, 1))),
            }
        }
        panic!("more than {SITES_MAX} lines exchange");
    });
}

/// How often each line of this crate, by file and number, has exchanged a word on the calling
/// thread.
#[must_use]
pub fn exchanges() -> BTreeMap<(&'static str, u32), u64> {
    let mut found = BTreeMap::new();
    // One line has several locations where generic code of it is compiled several times.
    for (line, times) in SITES.with(|sites| sites.each_ref().map(Cell::get)).into_iter().flatten() {
        *found.entry((line.file(), line.line())).or_default() += times;
    }
    found
}

macro_rules! atomic {
    ($name:ident, $int:ty, $($method:ident),*) => {
        /// Core's, with its read-modify-writes counted.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(atomic::$name);

        const _: () = assert!(align_of::<$name>() == align_of::<atomic::$name>());

        #[allow(missing_docs, clippy::must_use_candidate, reason = "as core's")]
        impl $name {
            pub const fn new(value: $int) -> $name {
                $name(atomic::$name::new(value))
            }

            #[inline(always)]
            pub fn load(&self, ordering: Ordering) -> $int {
                self.0.load(ordering)
            }

            #[inline(always)]
            pub fn store(&self, value: $int, ordering: Ordering) {
                self.0.store(value, ordering);
            }

            $(#[track_caller]
            pub fn $method(&self, value: $int, ordering: Ordering) -> $int {
                count();
                self.0.$method(value, ordering)
            })*

            #[track_caller]
            pub fn compare_exchange(
                &self, from: $int, to: $int, won: Ordering, lost: Ordering,
            ) -> Result<$int, $int> {
                count();
                self.0.compare_exchange(from, to, won, lost)
            }

            #[track_caller]
            pub fn compare_exchange_weak(
                &self, from: $int, to: $int, won: Ordering, lost: Ordering,
            ) -> Result<$int, $int> {
                count();
                self.0.compare_exchange_weak(from, to, won, lost)
            }
        }
    };
    ($name:ident, $int:ty) => {
        atomic! { $name, $int, swap, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_xor, fetch_max }
    };
}
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

#[cfg(test)]
mod tests {
    use super::{AtomicU32, AtomicU64, Ordering, exchanges};

    #[test]
    fn a_thread_counts_its_own_exchanges_by_line_and_no_load_or_store() {
        let (word, other) = (AtomicU64::new(1), AtomicU32::new(1));
        for _ in 0..3 {
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            word.fetch_or(1 << 40, Ordering::Relaxed);
        }
        assert_eq!(other.compare_exchange(7, 8, Ordering::Relaxed, Ordering::Relaxed), Err(1));
        let on_another_thread = std::thread::scope(|scope| scope.spawn(|| word.swap(5, Ordering::Relaxed)).join());
        assert_eq!(on_another_thread.ok(), Some(4 | 1 << 40));
        assert_eq!(exchanges().into_values().collect::<Vec<_>>(), [3, 1]);
        assert_eq!(word.load(Ordering::Relaxed), 5);
    }
}
