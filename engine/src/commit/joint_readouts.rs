//! Joint readouts: two streams that are measured together, read at one sequence number of both.
//!
//! Owns the state of each pair and its readout in progress. Kept by the graph role; the decode
//! worker that runs a readout's task writes its cell. Pairs are the streams of a feed in order, two
//! and two. The silo that has both streams reads the pair at a fixed interval of shots. Bounds: one
//! readout of a pair at a time, given up after [`READOUT_TIMEOUT`] if the other stream has not
//! reached its number or a page cannot be locked. Never waits: a stream at its readout is held, and
//! the other streams continue.
//!
//! ```text
//!  1 both streams have committed the shot ──▶ 2 LOCK the lower page ──▶ 3 LOCK the higher page ──▶ 4 a task with both
//!    states InOut reads them and checks both epochs again ──▶ 5 both locks released, both streams continue
//! ```
//!
//! # Why a pair may be split
//! The streams of a pair move together, but by two moves, and one of them may be given up. A dead
//! silo's successor also receives its streams one by one. A split pair is not read: its streams
//! continue, and the readouts they pass count as given up. That costs some readouts; moving a pair
//! as a unit would need a second kind of move.
//!
//! # Why it cannot deadlock
//! Locks are taken in page order, so no silo waits for a lower page while it holds a higher page. A
//! lock is a lease of at most 0.1 ms, so a lock that is never released ends by itself.

use super::arbiter_driver::ArbiterDriver;
use super::joint_check::JointTally;
use super::state::{HEAD_WORDS as FRAME_AT, StreamStates};
use crate::arbiter::page::Epoch;
use crate::graph::{CallerBody, Submitter, TaskId};
use crate::hot::Frame;
use crate::pipe::pool::{Regions, task_of};
use crate::roles::TaskKernel;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::sync::{DataWord, DataWords, read_words, write_words};
use std::sync::Arc;

/// How long a readout waits for its streams and locks.
pub const READOUT_TIMEOUT: Nanos = Nanos(1_000_000);
/// Words of a cell before the readout: the higher stream, both epochs, the sequence numbers
/// committed, whether the read is valid.
const HEAD_WORDS: usize = 5;

/// Results of readouts: a cell for each stream; a pair uses that of its lower stream.
pub struct JointCells {
    cells: DataWords,
    observable_words: usize,
}

impl JointCells {
    /// Cells for `streams` streams.
    pub fn new(streams: u32, observable_words: usize) -> JointCells {
        JointCells { cells: DataWords::new(streams as usize, HEAD_WORDS + observable_words), observable_words }
    }

    fn ask(&self, (low, high): (u32, u32), epochs: [Epoch; 2], committed: u64) {
        let [one, other] = epochs.map(|epoch| u64::from(epoch.number()));
        write_words(&self.cells.record(low as usize)[..HEAD_WORDS], &[high.into(), one, other, committed, 0]);
    }

    /// Reads both states for the task of stream `low`. The readout is valid if both streams are at
    /// the requested sequence number, and this silo had both pages before and has them now, in the
    /// epochs of their locks.
    pub fn read(&self, states: &StreamStates, low: u32) {
        let cell = self.cells.record(low as usize);
        let (high, committed) = (cell[0].load() as u32, cell[3].load());
        let (one, other) = (states.bytes(low), states.bytes(high));
        let is_here = |page: u32, epoch: &DataWord| {
            let word = states.pages().word(page);
            word.is_writable() && u64::from(word.epoch().number()) == epoch.load()
        };
        let is_read = one[0] == committed && other[0] == committed && is_here(low, &cell[1]) && is_here(high, &cell[2]);
        for (word, (one, other)) in cell[HEAD_WORDS..].iter().zip(one[FRAME_AT..].iter().zip(&other[FRAME_AT..])) {
            word.store(one ^ other);
        }
        cell[4].store(u64::from(is_read));
    }

    fn found(&self, low: u32) -> (bool, [u64; OBSERVABLE_WORDS_MAX]) {
        let cell = self.cells.record(low as usize);
        let mut observables = [0; OBSERVABLE_WORDS_MAX];
        read_words(&cell[HEAD_WORDS..], &mut observables[..self.observable_words]);
        (cell[4].load() != 0, observables)
    }
}

#[derive(Clone, Copy)]
struct Pair {
    streams: [u32; 2],
    /// The number of the next readout: neither stream commits beyond it before the readout has
    /// ended.
    until: u64,
    /// When the first stream reached `until`; `None`: neither has.
    since: Option<Ticks>,
    task: Option<TaskId>,
}

/// Parts of the graph role that a readout uses.
pub struct ReadoutContext<'a> {
    /// The arbiter.
    pub arbiter: &'a mut ArbiterDriver,
    /// The pool's submitter.
    pub submitter: &'a mut Submitter<CallerBody>,
    /// Regions that tasks declare.
    pub regions: &'a Regions,
    /// By stream: the next sequence number to commit.
    pub next: &'a dyn Fn(u32) -> u64,
}

/// The pairs, and which of their streams this silo has.
pub struct Joints {
    tally: Arc<JointTally>,
    cells: Arc<JointCells>,
    pairs: Box<[Pair]>,
    /// By stream: its pair.
    of: Box<[Option<u32>]>,
    /// By stream: whether this silo serves it.
    is_here: Box<[bool]>,
    /// Pairs with a stream at its readout, each once.
    due: Vec<u32>,
}

impl Joints {
    /// Readouts of the pairs of `tally`. This silo begins with the streams of `own`.
    pub fn new(tally: Arc<JointTally>, own: &[u32], streams: u32, cells: Arc<JointCells>) -> Joints {
        let every = tally.every();
        let pair = |streams: &[u32; 2]| Pair { streams: *streams, until: every, since: None, task: None };
        let pairs: Box<[Pair]> = tally.pairs().iter().map(pair).collect();
        let mut of = vec![None; streams as usize].into_boxed_slice();
        for (index, pair) in (0..).zip(&pairs) {
            pair.streams.iter().for_each(|stream| of[*stream as usize] = Some(index));
        }
        let is_here = (0..streams).map(|stream| own.contains(&stream)).collect();
        let due = Vec::with_capacity(pairs.len());
        Joints { tally, cells, pairs, of, is_here, due }
    }

    /// Whether this silo has both streams of a pair; a split pair is not read.
    fn has(&self, pair: u32) -> bool {
        self.pairs[pair as usize].streams.iter().all(|stream| self.is_here[*stream as usize])
    }

    /// Whether the commit of `sequence` to `stream` may run now: no readout precedes it, and the
    /// tally has room for its answer.
    #[inline]
    pub fn may_commit(&self, stream: u32, sequence: u64) -> bool {
        let Some(pair) = self.of[stream as usize] else { return true };
        (sequence < self.pairs[pair as usize].until || !self.has(pair)) && self.tally.has_room(stream, sequence)
    }

    /// A shot of `stream` was committed; `next` is the number after it.
    #[inline]
    pub fn passed(&mut self, stream: u32, next: u64, now: Ticks) {
        let Some(index) = self.of[stream as usize] else { return };
        let is_here = self.has(index);
        let pair = &mut self.pairs[index as usize];
        if is_here && next == pair.until && pair.since.is_none() {
            pair.since = Some(now);
            self.due.push(index);
        }
    }

    /// A stream has arrived; `next` gives its next number. If its partner is here the pair is read
    /// again, from the first readout that neither has passed. Readouts that they passed while split
    /// count as given up.
    pub(super) fn arrive(&mut self, stream: u32, next: impl Fn(u32) -> u64, now: Ticks) {
        self.is_here[stream as usize] = true;
        let Some(index) = self.of[stream as usize].filter(|index| self.has(*index)) else { return };
        let pair = &mut self.pairs[index as usize];
        let [one, other] = pair.streams.map(next);
        let (every, told) = (self.tally.every(), self.tally.until(index));
        pair.until = one.max(other).next_multiple_of(every).max(told);
        self.tally.pass_over(index, pair.until, (pair.until - told) / every);
        (pair.since, pair.task) = (None, None);
        if one.max(other) == pair.until {
            pair.since = Some(now);
            self.due.push(index);
        }
    }

    /// A stream with everything committed is to leave. Returns whether it can: not while a readout
    /// of it runs. The pair is not read here from then on.
    pub(super) fn leave(&mut self, stream: u32, arbiter: &mut ArbiterDriver, now: Ticks) -> bool {
        if let Some(index) = self.of[stream as usize].filter(|index| self.has(*index)) {
            let pair = &mut self.pairs[index as usize];
            if pair.task.is_some() {
                return false;
            }
            if pair.since.take().is_some() {
                pair.streams.iter().rev().for_each(|page| arbiter.unlock(*page, now));
                self.due.retain(|due| *due != index);
            }
        }
        self.is_here[stream as usize] = false;
        true
    }

    /// Whether a readout's task reads the state of `stream`: its page stays here until the task has
    /// ended.
    pub fn is_read(&self, stream: u32) -> bool {
        self.of[stream as usize].is_some_and(|pair| self.pairs[pair as usize].task.is_some())
    }

    /// Whether no readout is due or in progress.
    pub fn is_quiet(&self) -> bool {
        self.due.is_empty()
    }

    /// Continues every readout that is due. When a readout ends, its streams continue.
    pub fn look(&mut self, context: &mut ReadoutContext<'_>, frame: &Frame<'_>) {
        for at in (0..self.due.len()).rev() {
            let index = self.due[at];
            if self.look_at(index, context, frame) {
                self.due.swap_remove(at);
                self.reopen(index, context, frame.now);
            }
        }
    }

    /// Schedules the pair's next readout, which one of its streams may have reached already:
    /// readouts are given up without it.
    fn reopen(&mut self, index: u32, context: &ReadoutContext<'_>, now: Ticks) {
        let pair = &mut self.pairs[index as usize];
        pair.until += self.tally.every();
        let until = pair.until;
        (pair.since, pair.task) = (None, None);
        if pair.streams.iter().any(|stream| (context.next)(*stream) == until) {
            pair.since = Some(now);
            self.due.push(index);
        }
    }

    /// Whether the readout has ended, by success or by giving up.
    fn look_at(&mut self, index: u32, context: &mut ReadoutContext<'_>, frame: &Frame<'_>) -> bool {
        if !self.tally.is_compared(index) {
            return false;
        }
        let pair = self.pairs[index as usize];
        let [low, high] = pair.streams;
        if let Some(task) = pair.task {
            if context.submitter.is_under_way(task) {
                return false;
            }
            let (is_read, parity) = self.cells.found(low);
            unlock(&pair, context, frame);
            if is_read {
                self.tally.report(index, pair.until, &parity[..self.tally.words()]);
            } else {
                self.tally.pass_over(index, pair.until + self.tally.every(), 1);
            }
            return true;
        }
        let waited = frame.now.since(pair.since.unwrap_or(frame.now));
        if frame.clock().rate().nanos(waited) > READOUT_TIMEOUT {
            unlock(&pair, context, frame);
            self.tally.pass_over(index, pair.until + self.tally.every(), 1);
            return true;
        }
        if [low, high].iter().all(|stream| (context.next)(*stream) == pair.until) {
            self.pairs[index as usize].task = self.begin(&pair, context, frame);
        }
        false
    }

    /// Locks both pages and submits the readout. The lower page stays locked until the higher page
    /// arrives.
    fn begin(&self, pair: &Pair, context: &mut ReadoutContext<'_>, frame: &Frame<'_>) -> Option<TaskId> {
        let [low, high] = pair.streams;
        // No task reads either state: this readout's is not submitted.
        let epochs = context.arbiter.lock_both(pair.streams, frame, &|_| false)?;
        self.cells.ask((low, high), epochs, pair.until);
        let accesses = [context.regions.state(low), context.regions.state(high)];
        match context.submitter.try_submit(&task_of(TaskKernel::Joint, low, high.into(), 0), &accesses, &[]) {
            Ok(task) => {
                context.submitter.flush();
                Some(task)
            }
            Err(_) => {
                unlock(pair, context, frame);
                None
            }
        }
    }
}

/// Releases both locks, the higher page first.
fn unlock(pair: &Pair, context: &mut ReadoutContext<'_>, frame: &Frame<'_>) {
    pair.streams.iter().rev().for_each(|page| context.arbiter.unlock(*page, frame.ticks()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{JointCells, Joints};
    use crate::arbiter::deadlines::Timebase;
    use crate::arbiter::page::{Epoch, Limits, PageTable, Silo};
    use crate::board::{Board, Place, Shape, get};
    use crate::commit::joint_check::{JointCheck, JointTally};
    use crate::commit::state::StreamStates;
    use crate::units::{TickRate, Ticks};
    use std::sync::Arc;

    const EVERY: u32 = 2;

    /// Pages 0 and 1 are this silo's, page 2 is another's.
    fn states() -> StreamStates {
        let owner = |page| Silo::new(u8::from(page == 2));
        let base = Timebase { rate: TickRate::NANOS, start: Ticks(0) };
        StreamStates::new(Arc::new(PageTable::new(Silo::new(0), 3, Limits::SEED, owner)), base, 1)
    }

    /// The pair of streams 0 and 1 in a silo that has the streams of `own`.
    fn joints(own: &[u32]) -> Joints {
        Joints::new(Arc::new(JointTally::new(EVERY, (2, 1, 8), 1)), own, 2, Arc::new(JointCells::new(2, 1)))
    }

    #[test]
    fn a_readout_is_valid_with_both_streams_at_its_number_and_both_pages_here_in_their_epochs() {
        let (states, cells) = (states(), JointCells::new(3, 1));
        let (now, next) = (Epoch::default(), Epoch::default().next());
        let is_valid = |pair: (u32, u32), epochs, committed| {
            cells.ask(pair, epochs, committed);
            cells.read(&states, pair.0);
            cells.found(pair.0).0
        };
        states.begin_write(0).unwrap().commit(0, &[0b11], Ticks(0));
        states.begin_write(1).unwrap().commit(0, &[0b01], Ticks(0));
        assert!(is_valid((0, 1), [now, now], 1));
        assert_eq!(cells.found(0).1[0], 0b10, "the parity of both frames");
        assert!(!is_valid((0, 1), [now, now], 0) && !is_valid((0, 1), [now, now], 2));
        assert!(!is_valid((0, 1), [next, now], 1) && !is_valid((0, 1), [now, next], 1));
        states.put(2, &states.bytes(0));
        assert!(!is_valid((0, 2), [now, now], 1) && !is_valid((2, 0), [now, now], 1), "page 2 is not here");
        states.begin_write(1).unwrap().commit(1, &[0], Ticks(0));
        assert!(!is_valid((0, 1), [now, now], 1) && !is_valid((0, 1), [now, now], 2), "one stream is ahead");
    }

    #[test]
    fn a_stream_waits_at_its_pairs_readout_and_a_split_pair_is_not_read() {
        let mut both = joints(&[0, 1]);
        assert!(both.may_commit(0, 1) && !both.may_commit(0, 2) && !both.may_commit(1, 2));
        both.passed(0, 1, Ticks(1));
        assert!(both.is_quiet());
        both.passed(0, 2, Ticks(2));
        both.passed(1, 2, Ticks(3));
        assert_eq!((both.due.as_slice(), both.pairs[0].since), ([0].as_slice(), Some(Ticks(2))), "once for the pair");
        let mut split = joints(&[0]);
        assert!(split.may_commit(0, 2) && split.may_commit(0, 3));
        split.passed(0, 2, Ticks(1));
        assert!(split.is_quiet() && !split.is_read(0));
    }

    #[test]
    fn a_pair_that_meets_again_is_read_from_the_first_readout_that_neither_has_passed() {
        // The numbers of both streams, the number of the readout, whether it is due, and how many were given up.
        for (next, until, is_due, given_up) in [([2, 0], 2, true, 0), ([0, 1], 2, false, 0), ([3, 0], 4, false, 1)] {
            let mut joints = joints(&[0]);
            joints.arrive(1, |stream| next[stream as usize], Ticks(9));
            assert_eq!((joints.pairs[0].until, !joints.is_quiet()), (until, is_due), "{next:?}");
            let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 2 };
            let board = Board::create(shape, Place::Private).unwrap();
            JointCheck::new(Arc::clone(&joints.tally), 0, 2).look(board.harvest(0));
            assert_eq!((joints.tally.until(0), get(&board.harvest(0).joint_refused)), (until, given_up), "{next:?}");
            assert!(joints.may_commit(0, until - 1) && !joints.may_commit(0, until), "{next:?}");
        }
    }
}
