//! The seam between the machine's atomics and loom's.
//!
//! Everything in this crate takes its atomics and cells from here. [`edge`] names each acquire or
//! release access, so that under loom the environment variable `WEAKEN=<name>` turns exactly that
//! one `Relaxed`: a model must notice. With the feature `count-exchanges` each thread counts the
//! read-modify-writes of the atomics from here, for a test; no program has that feature.

#[cfg(all(feature = "count-exchanges", not(loom)))]
mod counted;

use crate::aligned::{Aligned, LINE_BYTES, PAGE_BYTES};
/// A word in memory that another crate or process declared: of a board, of a mapped region. It is
/// loaded and stored, never exchanged, because exchanges of it are not counted.
#[cfg(not(loom))]
pub use core::sync::atomic::AtomicU64 as MappedWord;
#[cfg(not(any(feature = "count-exchanges", loom)))]
pub use core::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub use core::sync::atomic::{Ordering, fence};
#[cfg(all(feature = "count-exchanges", not(loom)))]
pub use counted::{AtomicU32, AtomicU64, exchanges};
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use loom_atomic::{AtomicU32, AtomicU64, AtomicU64 as MappedWord};

/// The ordering of the access named `name`: `ordering`, except that a loom run may weaken one by
/// name.
#[cfg(not(loom))]
#[inline(always)]
#[must_use]
pub const fn edge(_name: &'static str, ordering: Ordering) -> Ordering {
    ordering
}

/// The ordering of the access named `name`: `ordering`, or `Relaxed` if `WEAKEN` names it. Appends each edge with each
/// model that reaches it to the file that `EDGES_REACHED` names: only those models can notice that it is weakened.
#[cfg(loom)]
#[must_use]
pub fn edge(name: &'static str, ordering: Ordering) -> Ordering {
    static WEAKEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    static REACHED: std::sync::OnceLock<Option<reached::Reached>> = std::sync::OnceLock::new();
    if let Some(reached) = REACHED.get_or_init(reached::Reached::from_env) {
        reached.note(name);
    }
    let weak = WEAKEN.get_or_init(|| std::env::var("WEAKEN").ok());
    if weak.as_deref() == Some(name) { Ordering::Relaxed } else { ordering }
}

#[cfg(loom)]
mod reached {
    use std::collections::HashSet;
    use std::fs::File;
    use std::io::Write;
    use std::sync::Mutex;

    /// The edges that each model reaches. A model has the thread of its test, whose name is the test's.
    pub(super) struct Reached(Mutex<(File, HashSet<(&'static str, String)>)>);

    impl Reached {
        pub(super) fn from_env() -> Option<Reached> {
            let path = std::env::var_os("EDGES_REACHED")?;
            let file = File::options().append(true).create(true).open(path).expect("EDGES_REACHED names a file");
            Some(Reached(Mutex::new((file, HashSet::new()))))
        }

        pub(super) fn note(&self, edge: &'static str) {
            let model = std::thread::current().name().unwrap_or("?").to_owned();
            let mut reached = self.0.lock().expect("no thread panics with it");
            if reached.1.insert((edge, model.clone())) {
                writeln!(reached.0, "{edge} {model}").expect("a line of EDGES_REACHED");
            }
        }
    }
}

/// The fence named `name`: always there, except that a loom run may take one away by name.
#[inline(always)]
pub fn fence_edge(name: &'static str, ordering: Ordering) {
    if edge(name, ordering) != Ordering::Relaxed {
        fence(ordering);
    }
}

/// Loom's atomics, each with a second word that every access bumps first.
///
/// # Why
/// Loom tries another order of two accesses only if the earlier one is the last that it remembers
/// of its word. A thread that loads a word and then stores to it hides the load of another thread
/// before, and the order in which the store comes first is never tried (a model of S7 stayed green
/// without the edge). Relaxed read-modify-writes of one word depend on each other pairwise and
/// publish nothing: with the second word no order is missed.
#[cfg(loom)]
mod loom_atomic {
    use super::Ordering;
    use loom::sync::atomic;

    macro_rules! atomic {
        ($name:ident, $int:ty, $($method:ident($($argument:ident),*) -> $result:ty;)*) => {
            /// See the module.
            #[derive(Debug)]
            pub struct $name {
                word: atomic::$name,
                turn: atomic::AtomicU32,
            }

            #[allow(missing_docs, clippy::must_use_candidate, reason = "as core's")]
            impl $name {
                pub fn new(value: $int) -> $name {
                    $name { word: atomic::$name::new(value), turn: atomic::AtomicU32::new(0) }
                }

                $(pub fn $method(&self, $($argument: $int,)* ordering: Ordering) -> $result {
                    self.turn.fetch_add(1, Ordering::Relaxed);
                    self.word.$method($($argument,)* ordering)
                })*

                pub fn compare_exchange(
                    &self, from: $int, to: $int, won: Ordering, lost: Ordering,
                ) -> Result<$int, $int> {
                    self.turn.fetch_add(1, Ordering::Relaxed);
                    self.word.compare_exchange(from, to, won, lost)
                }

                pub fn compare_exchange_weak(
                    &self, from: $int, to: $int, won: Ordering, lost: Ordering,
                ) -> Result<$int, $int> {
                    self.compare_exchange(from, to, won, lost)
                }
            }
        };
        ($name:ident, $int:ty) => {
            atomic! { $name, $int,
                load() -> $int;
                store(value) -> ();
                swap(value) -> $int;
                fetch_add(value) -> $int;
                fetch_sub(value) -> $int;
                fetch_and(value) -> $int;
                fetch_or(value) -> $int;
                fetch_xor(value) -> $int;
                fetch_max(value) -> $int;
            }
        };
    }
    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);
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

/// One 64-bit word of plain data that an edge publishes (payload, header, result, mailbox).
///
/// # Why
/// In production it is a `Relaxed` atomic: a late device write into memory that somebody else reads
/// is then a wrong value in a discarded result, never undefined behaviour, and costs the same move
/// instruction. Under loom it is an `UnsafeCell`, so that a model fails on any access which no edge
/// orders.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct DataWord(AtomicU64);

#[cfg(not(loom))]
impl DataWord {
    /// A word that holds `value`.
    #[must_use]
    pub const fn new(value: u64) -> DataWord {
        DataWord(AtomicU64::new(value))
    }

    /// Its value. Ordered by the edge that published it, not by itself.
    #[inline(always)]
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes its value. An edge publishes it later.
    #[inline(always)]
    pub fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// See the production twin: under loom every access is checked for a race.
#[cfg(loom)]
#[derive(Debug)]
pub struct DataWord(UnsafeCell<u64>);

#[cfg(loom)]
#[expect(unsafe_code, reason = "loom's cell checks what these two accesses assume")]
mod loom_data_word {
    use super::{DataWord, UnsafeCell};

    // SAFETY: loom panics on the first pair of accesses that are not ordered; no such execution
    // goes on.
    unsafe impl Sync for DataWord {}

    impl DataWord {
        /// A word that holds `value`.
        #[must_use]
        pub fn new(value: u64) -> DataWord {
            DataWord(UnsafeCell::new(value))
        }

        /// Its value. Ordered by the edge that published it, not by itself.
        #[must_use]
        pub fn load(&self) -> u64 {
            // SAFETY: the pointer is the cell's own; loom has checked that no write is concurrent.
            self.0.with(|word| unsafe { *word })
        }

        /// Changes its value. An edge publishes it later.
        pub fn store(&self, value: u64) {
            // SAFETY: as in `load`; loom has checked that no access is concurrent.
            self.0.with_mut(|word| unsafe { *word = value });
        }
    }
}

/// A row of [`DataWord`]s, cut into records of equal length. Starts a cache line: a record of eight
/// words lies in one.
#[derive(Debug)]
pub struct DataWords {
    words: Aligned<DataWord>,
    stride_words: usize,
}

impl DataWords {
    /// `records` records of `stride_words` words, all zero.
    #[must_use]
    pub fn new(records: usize, stride_words: usize) -> DataWords {
        DataWords::on(LINE_BYTES, records, stride_words)
    }

    /// The same on pages of their own, for a device that is to see them.
    #[must_use]
    pub fn in_pages(records: usize, stride_words: usize) -> DataWords {
        DataWords::on(PAGE_BYTES, records, stride_words)
    }

    fn on(boundary: usize, records: usize, stride_words: usize) -> DataWords {
        let words = (0..records * stride_words).map(|_| DataWord::new(0));
        DataWords { words: Aligned::new(boundary, words), stride_words }
    }

    /// The words of record `index`.
    ///
    /// # Panics
    /// If there is no such record.
    #[inline(always)]
    #[must_use]
    pub fn record(&self, index: usize) -> &[DataWord] {
        &self.words[index * self.stride_words..(index + 1) * self.stride_words]
    }

    /// The words of all records, one after the other.
    #[must_use]
    pub fn all(&self) -> &[DataWord] {
        &self.words
    }

    /// Where all words lie, for a device that is to see them.
    #[must_use]
    pub fn span(&self) -> Span {
        Span::of(&self.words)
    }

    /// Words of one record.
    #[must_use]
    pub fn stride_words(&self) -> usize {
        self.stride_words
    }
}

/// A piece of memory, for a device that is to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Address of its first byte.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
}

impl Span {
    /// Where `items` lie.
    #[must_use]
    pub fn of<T>(items: &[T]) -> Span {
        Span { address: items.as_ptr().addr() as u64, bytes: size_of_val(items) as u64 }
    }
}

/// Copies `from` into the first words of `to`.
#[inline(always)]
pub fn write_words(to: &[DataWord], from: &[u64]) {
    for (word, value) in to.iter().zip(from) {
        word.store(*value);
    }
}

/// Copies the first words of `from` into `to`.
#[inline(always)]
pub fn read_words(from: &[DataWord], to: &mut [u64]) {
    for (value, word) in to.iter_mut().zip(from) {
        *value = word.load();
    }
}

/// The first words of `from`.
///
/// # Panics
/// If there are fewer.
#[inline(always)]
#[must_use]
pub fn words_of<const WORDS: usize>(from: &[DataWord]) -> [u64; WORDS] {
    let from = from.first_chunk::<WORDS>().expect("a record holds its words");
    std::array::from_fn(|at| from[at].load())
}

/// Keeps its value on cache lines of its own (two, because adjacent lines are fetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);
