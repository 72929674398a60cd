//! The reorder buffer: which sequence numbers of each stream were taken in, and which results wait
//! until all earlier numbers are committed.
//!
//! Owns an open-addressing table with a slot for each entry that can wait. Kept by the graph role.
//! Bounds: slots are reused in ring order, so two unanswered shots are never further apart than the
//! slots; two rings of tombstones may come on top. A shot can expire while its stream waits for its
//! page, or while a decode is under way: then its slot is reused and its entry stays. So while
//! either is the case the role takes nothing more in once a quarter of the table waits; results of
//! what is under way, at most one for each job, still find room. Never allocates after construction.
//!
//! A number that is taken in without a gap, and whose result is the next one to commit, never
//! enters the table: two counters of its stream say so.
//!
//! # Why a table
//! A stream whose oldest shot hangs in the device can have all other slots behind it, and so can
//! any of a thousand streams: a window for each would be a thousand times as large as the entries
//! that wait. A multiplied hash spreads blocks of [`BLOCK`] numbers. Numbers within a block lie
//! side by side, because they are dense and arrive one after another: when each number was spread
//! by itself, each lookup was a cache miss (two thirds of the role's time with an empty table).

/// What is kept of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Taken in, and not decoded yet.
    Taken,
    /// A job with a result.
    Decoded(u32),
    /// An error answer by another role.
    Tombstone,
}

/// Numbers of a stream that lie side by side.
const BLOCK: u64 = 8;

#[derive(Clone, Copy)]
struct Entry {
    stream: u32,
    sequence: u64,
    held: Held,
}

#[derive(Clone, Copy, Default)]
struct Stream {
    /// The next sequence number to commit.
    next: u64,
    /// All numbers below were taken in; at least `next`.
    taken: u64,
}

/// The table, and each stream's counters.
pub(super) struct ReorderBuffer {
    streams: Box<[Stream]>,
    entries: Box<[Option<Entry>]>,
    count: usize,
}

impl ReorderBuffer {
    /// A buffer for `streams` streams over `slots` slots and `jobs` job buffers.
    pub(super) fn new(streams: u32, slots: u32, jobs: usize) -> ReorderBuffer {
        let entries = (slots as usize * 8).max(jobs * 4).next_power_of_two();
        let streams = vec![Stream::default(); streams as usize].into();
        ReorderBuffer { streams, entries: vec![None; entries].into(), count: 0 }
    }

    /// The next sequence number to commit.
    #[inline]
    pub(super) fn next(&self, stream: u32) -> u64 {
        self.streams[stream as usize].next
    }

    /// Whether the number is committed or was taken in.
    #[inline]
    pub(super) fn is_known(&self, stream: u32, sequence: u64) -> bool {
        sequence < self.streams[stream as usize].taken || self.find(stream, sequence).is_some()
    }

    /// Takes in a number that is not known yet; its result follows.
    ///
    /// # Panics
    /// If the number is known.
    pub(super) fn take(&mut self, stream: u32, sequence: u64) {
        self.take_as(stream, sequence, None);
    }

    /// Takes in a number that is not known yet, and that another role answered with an error.
    ///
    /// # Panics
    /// If the number is known.
    pub(super) fn take_tombstone(&mut self, stream: u32, sequence: u64) {
        self.take_as(stream, sequence, Some(Held::Tombstone));
    }
    #[inline]
    fn take_as(&mut self, stream: u32, sequence: u64, held: Option<Held>) {
        assert!(!self.is_known(stream, sequence), "stream {stream}: {sequence} came twice");
        let is_dense = sequence == self.streams[stream as usize].taken;
        if held.is_some() || !is_dense {
            self.insert(stream, sequence, held.unwrap_or(Held::Taken));
        }
        if is_dense {
            self.streams[stream as usize].taken += 1;
            self.close_gap(stream);
        }
    }

    /// Goes on over the numbers that were taken in ahead of a gap. Those without a result need no
    /// entry any more.
    fn close_gap(&mut self, stream: u32) {
        while let Some(at) = self.find(stream, self.streams[stream as usize].taken) {
            if self.entries[at].is_some_and(|entry| entry.held == Held::Taken) {
                self.forget(at);
            }
            self.streams[stream as usize].taken += 1;
        }
    }

    /// Keeps the result of a number that was taken in, until it is the next one.
    ///
    /// # Panics
    /// If the number was not taken in, has a result, or is committed.
    pub(super) fn keep(&mut self, stream: u32, sequence: u64, job: u32) {
        assert!(sequence >= self.next(stream), "stream {stream}: {sequence} is committed");
        match self.find(stream, sequence) {
            Some(at) => {
                let entry = self.entries[at].replace(Entry { stream, sequence, held: Held::Decoded(job) });
                assert!(
                    entry.is_some_and(|entry| entry.held == Held::Taken),
                    "stream {stream}: {sequence} has two results"
                );
            }
            None => {
                assert!(sequence < self.streams[stream as usize].taken, "stream {stream}: {sequence} was not taken in");
                self.insert(stream, sequence, Held::Decoded(job));
            }
        }
    }

    fn insert(&mut self, stream: u32, sequence: u64, held: Held) {
        assert!(self.count < self.entries.len() / 4 * 3, "no two shots in flight are further apart than the slots");
        let mut at = self.home(stream, sequence);
        while self.entries[at].is_some() {
            at = self.after(at);
        }
        self.entries[at] = Some(Entry { stream, sequence, held });
        self.count += 1;
    }

    /// The entry of the stream's next number, if it can be committed.
    #[inline]
    pub(super) fn peek(&self, stream: u32) -> Option<Held> {
        let at = self.find(stream, self.next(stream))?;
        self.entries[at].map(|entry| entry.held).filter(|held| *held != Held::Taken)
    }

    /// Advances to the stream's next number and removes the entry of this number.
    #[inline]
    pub(super) fn pass(&mut self, stream: u32) {
        if let Some(at) = self.find(stream, self.next(stream)) {
            self.forget(at);
        }
        let counters = &mut self.streams[stream as usize];
        debug_assert!(counters.next < counters.taken, "only a number that was taken in is committed");
        counters.next += 1;
    }

    /// The stream has moved here; other silos committed all numbers before `next`.
    ///
    /// # Panics
    /// If a number of the stream is taken in here and not committed, or if this silo has passed
    /// more.
    pub(super) fn resume(&mut self, stream: u32, next: u64) {
        let Stream { next: passed, taken } = self.streams[stream as usize];
        assert!(passed <= next, "stream {stream}: this silo has passed {passed}, the other silo only {next}");
        let is_empty = taken == passed && self.find(stream, passed).is_none();
        assert!(is_empty, "stream {stream}: an entry waits at a silo that does not serve it");
        self.streams[stream as usize] = Stream { next, taken: next };
    }

    /// Number of entries that wait.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How far ahead of its stream's next number a number may be: entries that wait, shots in
    /// flight, and the rings' capacity.
    pub(super) fn reach(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Whether a quarter of the table waits.
    pub(super) fn is_crowded(&self) -> bool {
        self.count >= self.entries.len() / 4
    }

    fn home(&self, stream: u32, sequence: u64) -> usize {
        let block = (sequence / BLOCK).wrapping_add(u64::from(stream) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((block >> 32) as usize * BLOCK as usize + (sequence % BLOCK) as usize) & (self.entries.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    #[inline]
    fn find(&self, stream: u32, sequence: u64) -> Option<usize> {
        // The usual case: shots are taken up and decoded in order.
        if self.count == 0 {
            return None;
        }
        let mut at = self.home(stream, sequence);
        while let Some(entry) = &self.entries[at] {
            if (entry.stream, entry.sequence) == (stream, sequence) {
                return Some(at);
            }
            at = self.after(at);
        }
        None
    }

    /// Removes an entry and moves up those behind it that would no longer be found.
    fn forget(&mut self, mut at: usize) {
        let mask = self.entries.len() - 1;
        self.entries[at] = None;
        self.count -= 1;
        let mut from = self.after(at);
        while let Some(entry) = self.entries[from] {
            let home = self.home(entry.stream, entry.sequence);
            if from.wrapping_sub(home) & mask >= from.wrapping_sub(at) & mask {
                self.entries[at] = self.entries[from].take();
                at = from;
            }
            from = self.after(from);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{BLOCK, Held, ReorderBuffer};
    use std::collections::BTreeMap;

    #[test]
    fn any_order_of_arrivals_and_results_is_committed_in_order() {
        let (streams, slots) = (3u32, 8u64);
        let mut reorder = ReorderBuffer::new(streams, slots as u32, 10);
        let mut seed = 1u64;
        let mut draw = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut known: BTreeMap<(u32, u64), Held> = BTreeMap::new();
        for round in 0..100_000u64 {
            let stream = draw(u64::from(streams)) as u32;
            let next = reorder.next(stream);
            // As far ahead as a third of the slots lets each of three streams be.
            let sequence = (next + draw(slots / 2)).saturating_sub(draw(2));
            let expected = sequence < next || known.contains_key(&(stream, sequence));
            assert_eq!(reorder.is_known(stream, sequence), expected, "round {round}");
            match (known.get(&(stream, sequence)), draw(3)) {
                (None, 0) if !expected => {
                    reorder.take_tombstone(stream, sequence);
                    known.insert((stream, sequence), Held::Tombstone);
                }
                (None, _) if !expected => {
                    reorder.take(stream, sequence);
                    known.insert((stream, sequence), Held::Taken);
                }
                (Some(Held::Taken), _) => {
                    reorder.keep(stream, sequence, round as u32);
                    known.insert((stream, sequence), Held::Decoded(round as u32));
                }
                _ => {}
            }
            while let Some(held) = reorder.peek(stream) {
                assert_eq!(known.remove(&(stream, reorder.next(stream))), Some(held));
                reorder.pass(stream);
            }
        }
        assert!((0..streams).all(|stream| reorder.next(stream) > 1_000));
    }

    #[test]
    fn numbers_of_a_block_lie_side_by_side_from_where_the_block_begins() {
        let reorder = ReorderBuffer::new(3, 64, 10);
        for (stream, block) in [(0, 0), (0, 5), (2, 1), (2, 1_000_000)] {
            let first = reorder.home(stream, block * BLOCK);
            let homes: Vec<usize> = (0..BLOCK).map(|at| reorder.home(stream, block * BLOCK + at)).collect();
            assert_eq!(homes, (first..first + BLOCK as usize).collect::<Vec<_>>(), "stream {stream}, block {block}");
            assert_eq!(first % BLOCK as usize, 0);
        }
    }

    /// What `misuse` says of itself after a reorder buffer with number 0 of stream 0 taken in and kept.
    fn refused(misuse: impl FnOnce(&mut ReorderBuffer)) -> String {
        let mut reorder = ReorderBuffer::new(2, 8, 10);
        reorder.take(0, 0);
        reorder.keep(0, 0, 5);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| misuse(&mut reorder))).unwrap_err();
        caught.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[test]
    fn a_number_comes_once_has_one_result_and_is_taken_in_before_it() {
        assert_eq!(refused(|reorder| reorder.take(0, 0)), "stream 0: 0 came twice");
        assert_eq!(refused(|reorder| reorder.keep(0, 0, 6)), "stream 0: 0 has two results");
        assert_eq!(refused(|reorder| reorder.keep(0, 1, 6)), "stream 0: 1 was not taken in");
        assert_eq!(refused(|reorder| (reorder.pass(0), reorder.keep(0, 0, 6)).1), "stream 0: 0 is committed");
    }

    #[test]
    fn a_stream_resumes_where_no_entry_of_it_waits_and_never_goes_back() {
        let waits = "stream 0: an entry waits at a silo that does not serve it";
        assert_eq!(refused(|reorder| reorder.resume(0, 9)), waits);
        let ahead = "stream 1: an entry waits at a silo that does not serve it";
        assert_eq!(refused(|reorder| (reorder.take(1, 0), reorder.resume(1, 3)).1), ahead);
        let passed = "stream 0: this silo has passed 1, the other silo only 0";
        assert_eq!(refused(|reorder| (reorder.pass(0), reorder.resume(0, 0)).1), passed);
        let mut reorder = ReorderBuffer::new(1, 8, 10);
        reorder.resume(0, 5);
        assert_eq!((reorder.next(0), reorder.is_known(0, 4), reorder.is_known(0, 5)), (5, true, false));
    }

    #[test]
    fn the_table_has_eight_entries_a_slot_or_four_a_job_and_is_crowded_from_a_quarter_on() {
        assert_eq!(ReorderBuffer::new(1, 8, 10).reach(), 64);
        assert_eq!(ReorderBuffer::new(1, 8, 17).reach(), 128);
        let mut reorder = ReorderBuffer::new(1, 8, 10);
        for ahead in 1..=16 {
            assert!(!reorder.is_crowded(), "{ahead}");
            reorder.take(0, ahead);
        }
        assert!(reorder.is_crowded());
        for ahead in 17..=48 {
            reorder.take(0, ahead);
        }
        assert_eq!(reorder.count(), 48);
        let full = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reorder.take(0, 49)));
        assert!(full.is_err(), "three quarters are the most");
    }

    #[test]
    fn numbers_and_results_in_order_never_enter_the_table() {
        let mut reorder = ReorderBuffer::new(1, 8, 10);
        for sequence in 0..100 {
            reorder.take(0, sequence);
            assert!(reorder.is_known(0, sequence));
            assert_eq!((reorder.next(0), reorder.peek(0), reorder.count()), (sequence, None, 0));
            reorder.pass(0);
        }
    }

    #[test]
    fn a_number_ahead_of_a_gap_is_known_and_needs_no_entry_once_the_gap_is_closed() {
        let mut reorder = ReorderBuffer::new(1, 8, 10);
        reorder.take(0, 1);
        assert_eq!((reorder.is_known(0, 1), reorder.is_known(0, 0), reorder.count()), (true, false, 1));
        reorder.take(0, 0);
        assert_eq!((reorder.is_known(0, 1), reorder.is_known(0, 2), reorder.count()), (true, false, 0));
        reorder.keep(0, 1, 7);
        assert_eq!(reorder.peek(0), None);
        reorder.pass(0);
        assert_eq!(reorder.peek(0), Some(Held::Decoded(7)));
        reorder.pass(0);
        assert_eq!((reorder.next(0), reorder.count()), (2, 0));
    }
}
