//! Records of tasks under way, each with the list of tasks that wait for it.
//!
//! Owns one cache line for each task: its newest successor, how many predecessors it still waits
//! for, the links by which it stands in up to [`INLINE`] lists itself, what it is to do. One
//! *submitter* opens records, links and reopens them; whoever runs a task *seals* its list and
//! releases what stood in it. Bounds: the records; links beyond the inline ones come from a spill
//! whose size is fixed. Never waits, never allocates, never frees: positions are the submitter's to
//! give out again once they are sealed.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | T1 | [`Fanout::link`] | [`Fanout::seal`] | the successor's record and its link |
//! | T2 | [`Fanout::seal`] | [`Fanout::link`] refused, [`Fanout::is_sealed`] | what the task did, its outcome, that its record was read |
//! | T3 | [`Fanout::release`], not the last | [`Fanout::release`], the last | what each predecessor did |
//!
//! # Why
//! A task that gains a successor while it ends must either hand it over or say that it has ended:
//! both are exchanges of one word, and [`SEALED`] is its last value. A link lies in the successor's
//! record, so its number says who waits, and a task with few predecessors costs no second line.

use crate::sync::{AtomicU32, DataWord, Ordering, edge};

/// Links in a task's own record.
pub const INLINE: u32 = 4;
/// Words of what a task is to do.
pub const PAYLOAD: usize = 4;
/// Records at most: a link's number and its kind fit in 32 bits.
pub const TASKS_MAX: u32 = 1 << 20;
/// Spilled links at most.
pub const SPILL_MAX: u32 = 1 << 22;

const SEALED: u32 = u32::MAX;
const NIL: u32 = u32::MAX - 1;

#[repr(C, align(64))]
struct Record {
    /// Newest link, [`NIL`], or [`SEALED`].
    head: AtomicU32,
    pending: AtomicU32,
    next: [AtomicU32; INLINE as usize],
    payload: [DataWord; PAYLOAD],
    generation: AtomicU32,
    /// What went wrong, of this task or of one that it depends on; 0 is nothing.
    outcome: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Record>() == 64, "a task's record is one cache line");

struct Spilled {
    task: AtomicU32,
    next: AtomicU32,
}

/// The successors of each task, and the links that do not fit into its record.
pub struct Fanout {
    records: Box<[Record]>,
    spill: Box<[Spilled]>,
}

/// Where a link lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSlot {
    /// In the successor's record: the first, second, … of [`INLINE`].
    Inline(u32),
    /// In the spill, at a position that no other link under way has.
    Spill(u32),
}

/// A task that waits, as its predecessor finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Number of its record.
    pub task: u32,
    /// Whether it reads what the predecessor wrote: then the predecessor's failure is its own.
    pub is_data: bool,
}

impl Fanout {
    /// Sealed records for `tasks`, and `spill` links beyond the inline ones.
    ///
    /// # Panics
    /// If there are more than [`TASKS_MAX`] tasks or [`SPILL_MAX`] links.
    #[must_use]
    pub fn new(tasks: u32, spill: u32) -> Fanout {
        assert!((1..=TASKS_MAX).contains(&tasks), "{tasks} task records, outside 1..={TASKS_MAX}");
        assert!(spill <= SPILL_MAX, "{spill} spilled links, above {SPILL_MAX}");
        let record = |_| Record {
            head: AtomicU32::new(SEALED),
            pending: AtomicU32::new(0),
            next: std::array::from_fn(|_| AtomicU32::new(NIL)),
            payload: std::array::from_fn(|_| DataWord::new(0)),
            generation: AtomicU32::new(0),
            outcome: AtomicU32::new(0),
        };
        let spilled = |_| Spilled { task: AtomicU32::new(0), next: AtomicU32::new(NIL) };
        Fanout { records: (0..tasks).map(record).collect(), spill: (0..spill).map(spilled).collect() }
    }

    #[inline(always)]
    fn record(&self, task: u32) -> &Record {
        &self.records[task as usize]
    }

    /// Submitter: begins a record that nobody else uses, waiting for `pending` predecessors.
    #[inline(always)]
    pub fn open(&self, task: u32, generation: u32, pending: u32, payload: &[u64; PAYLOAD]) {
        let record = self.record(task);
        // Relaxed throughout: nobody can find the record before a link (T1) or a queue publishes
        // it.
        record.pending.store(pending, Ordering::Relaxed);
        record.generation.store(generation, Ordering::Relaxed);
        record.outcome.store(0, Ordering::Relaxed);
        for (word, value) in record.payload.iter().zip(payload) {
            word.store(*value);
        }
        record.head.store(NIL, Ordering::Relaxed);
    }

    /// Submitter: `task` waits for `predecessor`, by the link in `slot`; false if that one has
    /// ended.
    #[inline(always)]
    pub fn link(&self, predecessor: u32, task: u32, slot: LinkSlot, is_data: bool) -> bool {
        let (number, next) = match slot {
            LinkSlot::Inline(index) => (task * INLINE + index, &self.record(task).next[index as usize]),
            LinkSlot::Spill(index) => {
                let spilled = &self.spill[index as usize];
                spilled.task.store(task, Ordering::Relaxed);
                (self.records.len() as u32 * INLINE + index, &spilled.next)
            }
        };
        let word = number << 1 | u32::from(is_data);
        let head = &self.record(predecessor).head;
        // ORDERING: acquire side of T2, here and in the refused exchange: what the predecessor did.
        // Relaxed would start this task before that is seen. Model:
        // loom_fanout::a_successor_is_handed_over_or_refused.
        let mut newest = head.load(edge("T2.seen", Ordering::Acquire));
        loop {
            if newest == SEALED {
                return false;
            }
            next.store(newest, Ordering::Relaxed);
            let release = edge("T1.release", Ordering::Release);
            let refused = edge("T2.refused", Ordering::Acquire);
            // ORDERING: release side of T1, publishing the successor's record and its link. Relaxed
            // could show the link's number before the record. Model as above.
            match head.compare_exchange(newest, word, release, refused) {
                Ok(_) => return true,
                Err(now) => newest = now,
            }
        }
    }

    /// The task has ended: nobody is added any more. Yields those that wait, newest first; each
    /// must be [released](Fanout::release). The record belongs to the submitter from here on.
    #[inline(always)]
    pub fn seal(&self, task: u32) -> Successors<'_> {
        // ORDERING: acquire side of T1 and release side of T2, see `link` and `is_sealed`. An
        // exchange, for a successor may be added at this moment.
        let newest = self.record(task).head.swap(SEALED, edge("T1.seal", Ordering::AcqRel));
        debug_assert!(newest != SEALED, "task {task} ended twice");
        Successors { fanout: self, newest }
    }

    /// One of the predecessors of `task` has ended; says whether it was the last, and the task is
    /// the caller's.
    ///
    /// # Why
    /// A one that is read cannot change: it counts the caller itself. So the last needs no
    /// exchange, and a task with one predecessor none at all.
    #[inline(always)]
    pub fn release(&self, task: u32) -> bool {
        let pending = &self.record(task).pending;
        // ORDERING: acquire side of T3: what the other predecessors did. Relaxed would start the
        // task before their work is seen. Model: loom_fanout::two_predecessors_release_once.
        if pending.load(edge("T3.last", Ordering::Acquire)) == 1 {
            return true;
        }
        // ORDERING: both sides of T3: release what this predecessor did, acquire in case it is the
        // last after all. Model as above.
        pending.fetch_sub(1, edge("T3.release", Ordering::AcqRel)) == 1
    }

    /// Submitter: so many predecessors had ended before they could be linked; says whether the task
    /// is the caller's.
    #[inline(always)]
    pub fn release_refused(&self, task: u32, count: u32) -> bool {
        let pending = &self.record(task).pending;
        // ORDERING: as in `release`, both sides of T3. What the refused predecessors did was
        // acquired by T2. Model: loom_fanout::a_refused_predecessor_and_a_linked_one_release_once.
        pending.fetch_sub(count, edge("T3.refused", Ordering::AcqRel)) == count
    }

    /// Submitter: all predecessors had ended before any could be linked, so that nobody will
    /// release the task.
    #[inline(always)]
    pub fn waits_for_none(&self, task: u32) {
        // Relaxed: nobody has found the record yet; whatever hands it on publishes this too.
        self.record(task).pending.store(0, Ordering::Relaxed);
    }

    /// Submitter: as [`Fanout::is_sealed`], with the outcome of the task if it has ended.
    #[inline(always)]
    #[must_use]
    pub fn ended(&self, task: u32) -> Option<u32> {
        self.is_sealed(task).then(|| self.outcome(task))
    }

    /// Submitter: whether the task at this position has ended, so that the position may be given
    /// out again.
    #[inline(always)]
    #[must_use]
    pub fn is_sealed(&self, task: u32) -> bool {
        // ORDERING: acquire side of T2: whoever ran it has read its record. Relaxed would let the
        // next task's payload come before that reading. Model:
        // loom_fanout::a_record_is_reused_only_after_it_was_read.
        self.record(task).head.load(edge("T2.reuse", Ordering::Acquire)) == SEALED
    }

    /// What the task is to do. For whoever runs it.
    #[inline(always)]
    #[must_use]
    pub fn payload(&self, task: u32) -> [u64; PAYLOAD] {
        std::array::from_fn(|index| self.record(task).payload[index].load())
    }

    /// Which of the tasks that had this position it is.
    #[inline(always)]
    #[must_use]
    pub fn generation(&self, task: u32) -> u32 {
        self.record(task).generation.load(Ordering::Relaxed)
    }

    /// Says what went wrong, before the task is released or sealed.
    #[inline(always)]
    pub fn spoil(&self, task: u32, outcome: u32) {
        // Published by the release or the seal that follows; of two predecessors that failed either
        // will do.
        self.record(task).outcome.store(outcome, Ordering::Relaxed);
    }

    /// What went wrong. For whoever runs it, and for the submitter once it is sealed.
    #[inline(always)]
    #[must_use]
    pub fn outcome(&self, task: u32) -> u32 {
        self.record(task).outcome.load(Ordering::Relaxed)
    }

    /// Predecessors that it still waits for, as of some moment.
    #[must_use]
    pub fn pending(&self, task: u32) -> u32 {
        self.record(task).pending.load(Ordering::Relaxed)
    }

    /// Asks for a record's cache line, to be written.
    #[inline(always)]
    pub fn prefetch(&self, task: u32) {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        {
            let record: *const Record = self.record(task);
            // SAFETY: a hint; the address is a live record's.
            unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(record.cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        let _ = task;
    }
}

/// Those that waited for a sealed task.
pub struct Successors<'a> {
    fanout: &'a Fanout,
    newest: u32,
}

impl Iterator for Successors<'_> {
    type Item = Successor;

    #[inline(always)]
    fn next(&mut self) -> Option<Successor> {
        if self.newest == NIL {
            return None;
        }
        let (number, is_data) = (self.newest >> 1, self.newest & 1 != 0);
        // The next link is read before its task is handed out: once released, its record may be
        // another task's.
        let spill = number.wrapping_sub(self.fanout.records.len() as u32 * INLINE);
        let task = match self.fanout.spill.get(spill as usize) {
            Some(spilled) => {
                self.newest = spilled.next.load(Ordering::Relaxed);
                spilled.task.load(Ordering::Relaxed)
            }
            None => {
                let (task, index) = (number / INLINE, number % INLINE);
                self.newest = self.fanout.record(task).next[index as usize].load(Ordering::Relaxed);
                task
            }
        };
        Some(Successor { task, is_data })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Fanout, INLINE, LinkSlot, Successor};

    #[test]
    fn successors_come_out_newest_first_from_records_and_spill() {
        let fanout = Fanout::new(8, 2);
        (0..3).for_each(|task| fanout.open(task, 1, 1, &[u64::from(task); 4]));
        assert!(fanout.link(0, 1, LinkSlot::Inline(INLINE - 1), true));
        assert!(fanout.link(0, 2, LinkSlot::Spill(1), false));
        let found: Vec<_> = fanout.seal(0).collect();
        assert_eq!(found, [Successor { task: 2, is_data: false }, Successor { task: 1, is_data: true }]);
        assert!(!fanout.link(0, 2, LinkSlot::Inline(0), true), "nobody is added to a task that has ended");
        assert!(fanout.is_sealed(0) && !fanout.is_sealed(1));
    }

    #[test]
    fn only_the_last_of_many_releases_returns_true() {
        let fanout = Fanout::new(1, 0);
        fanout.open(0, 1, 3, &[0; 4]);
        assert_eq!([0; 3].map(|_| fanout.release(0)), [false, false, true]);
    }
}
