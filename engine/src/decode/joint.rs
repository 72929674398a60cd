//! Joint readouts: two streams that are measured together, read at one sequence number of both.
//!
//! Owns where each pair stands and which of its readouts is under way. Kept by the graph role, the cells that a readout is
//! written to by whichever decode worker runs its task. Pairs are the streams of a feed in order, two and two; each is read
//! after every so many shots, by the silo that has both. Bounds: one readout of a pair at a time, given up after [`PATIENCE`]
//! if the other stream does not come so far or a page cannot be locked. Never waits: a stream at its readout is held, and the
//! others go on.
//!
//! ```text
//!  1 both streams have committed the shot ──▶ 2 LOCK on the lower page ──▶ 3 LOCK on the higher one ──▶ 4 a task with both
//!    states InOut reads them and looks at both epochs again ──▶ 5 both locks back, both streams go on
//! ```
//!
//! # Why a pair may be parted
//! Two streams move together, but by two moves, of which one may be given up, and a dead silo's heir gets its streams one by
//! one. A pair of which one is elsewhere is not read: its streams go on, and what they pass apart counts as given up. That costs
//! some readouts; a pair that had to move as one would cost a second kind of move.
//!
//! # Why it cannot deadlock
//! Locks are taken in the order of the pages, so nobody waits for a lower page with a higher one in hand. A lock is a lease
//! of a tenth of a millisecond at most, so one that its holder never gives back ends by itself.

use super::pool::{Kernel, Regions, task_of};
use super::state::{HEAD_WORDS as FRAME_AT, StreamStates};
use super::steward::Steward;
use crate::arbiter::page::Epoch;
use crate::dispatch::JointTally;
use crate::graph::{Brought, Submitter, TaskId};
use crate::hot::Frame;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::sync::{DataWord, DataWords, read_words, write_words};
use std::sync::Arc;

/// How long a readout waits for what it needs.
pub const PATIENCE: Nanos = Nanos(1_000_000);
/// Words of a cell before the readout: the higher stream, both epochs, the sequence numbers committed, whether it was read.
const HEAD_WORDS: usize = 5;

/// Where readouts are written to: a cell for each stream, used by that of the lower one of a pair.
pub struct JointCells {
    cells: DataWords,
    observable_words: usize,
}

impl JointCells {
    /// Cells for `streams` streams.
    #[must_use]
    pub fn new(streams: u32, observable_words: usize) -> JointCells {
        JointCells { cells: DataWords::new(streams as usize, HEAD_WORDS + observable_words), observable_words }
    }

    fn ask(&self, (low, high): (u32, u32), epochs: [Epoch; 2], committed: u64) {
        let [one, other] = epochs.map(|epoch| u64::from(epoch.number()));
        write_words(&self.cells.record(low as usize)[..HEAD_WORDS], &[high.into(), one, other, committed, 0]);
    }

    /// Reads both states for the task of stream `low`: a readout if both are at the sequence number that was asked for, and
    /// both pages were and are this silo's in the epochs of their locks.
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
    /// Neither stream commits more than so many before the readout at that number is over.
    until: u64,
    /// Since when one of them has come so far; `None`: neither has.
    since: Option<Ticks>,
    task: Option<TaskId>,
}

/// What the graph role lends for a look.
pub struct Desk<'a> {
    /// The arbiter.
    pub steward: &'a mut Steward,
    /// The pool's submitter.
    pub submitter: &'a mut Submitter<Brought>,
    /// What tasks declare.
    pub regions: &'a Regions,
    /// Of each stream: the last task that has its state.
    pub last: &'a mut [TaskId],
    /// Of each stream: the sequence number whose turn it is.
    pub next: &'a dyn Fn(u32) -> u64,
}

/// The pairs, and which of them this silo has.
pub struct Joints {
    tally: Arc<JointTally>,
    cells: Arc<JointCells>,
    pairs: Box<[Pair]>,
    /// Of each stream: its pair.
    of: Box<[Option<u32>]>,
    /// Of each stream: whether it is served here.
    is_here: Box<[bool]>,
    /// Pairs of which a stream has come to its readout, each once.
    due: Vec<u32>,
}

impl Joints {
    /// Readouts of the pairs that `tally` knows, of which this silo has those of `own` to begin with.
    #[must_use]
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

    /// Whether both streams of a pair are here: nobody reads one that is parted.
    fn has(&self, pair: u32) -> bool {
        self.pairs[pair as usize].streams.iter().all(|stream| self.is_here[*stream as usize])
    }

    /// Whether the commit of `sequence` to `stream` need not wait for a readout, or for answers to be summed up.
    #[inline]
    #[must_use]
    pub fn may_commit(&self, stream: u32, sequence: u64) -> bool {
        let Some(pair) = self.of[stream as usize] else { return true };
        (sequence < self.pairs[pair as usize].until || !self.has(pair)) && self.tally.has_room(stream, sequence)
    }

    /// A commit to `stream` was submitted, and `next` is the number whose turn comes next.
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

    /// A stream has come, and its next number is what `next` says. With its partner here the pair is read again, from the
    /// first number on that neither has passed; what they passed apart was given up.
    pub(super) fn come(&mut self, stream: u32, next: impl Fn(u32) -> u64, now: Ticks) {
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

    /// A stream of which all is committed is to leave: whether it can, which it cannot while a readout of it runs. From then
    /// on its pair is not read here.
    pub(super) fn let_go(&mut self, stream: u32, steward: &mut Steward, now: Ticks) -> bool {
        if let Some(index) = self.of[stream as usize].filter(|index| self.has(*index)) {
            let pair = &mut self.pairs[index as usize];
            if pair.task.is_some() {
                return false;
            }
            if pair.since.take().is_some() {
                pair.streams.iter().rev().for_each(|page| steward.unlock(*page, now));
                self.due.retain(|due| *due != index);
            }
        }
        self.is_here[stream as usize] = false;
        true
    }

    /// Whether no readout is due or under way.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.due.is_empty()
    }

    /// Goes on with every readout that is due; those that are over let their streams go on.
    pub fn look(&mut self, desk: &mut Desk<'_>, frame: &Frame<'_>) {
        for at in (0..self.due.len()).rev() {
            let index = self.due[at];
            if self.look_at(index, desk, frame) {
                self.due.swap_remove(at);
                self.reopen(index, desk, frame.now);
            }
        }
    }

    /// The next readout of the pair, which one of its streams may have come to already: a readout is given up without it.
    fn reopen(&mut self, index: u32, desk: &Desk<'_>, now: Ticks) {
        let pair = &mut self.pairs[index as usize];
        pair.until += self.tally.every();
        let until = pair.until;
        (pair.since, pair.task) = (None, None);
        if pair.streams.iter().any(|stream| (desk.next)(*stream) == until) {
            pair.since = Some(now);
            self.due.push(index);
        }
    }

    /// Whether the readout is over, one way or the other.
    fn look_at(&mut self, index: u32, desk: &mut Desk<'_>, frame: &Frame<'_>) -> bool {
        if !self.tally.is_heard(index) {
            return false;
        }
        let pair = self.pairs[index as usize];
        let [low, high] = pair.streams;
        if let Some(task) = pair.task {
            if desk.submitter.is_under_way(task) {
                return false;
            }
            let (is_read, parity) = self.cells.found(low);
            unlock(&pair, desk, frame);
            if is_read {
                self.tally.tell(index, pair.until, &parity[..self.tally.words()]);
            } else {
                self.tally.pass_over(index, pair.until + self.tally.every(), 1);
            }
            return true;
        }
        let waited = frame.now.since(pair.since.unwrap_or(frame.now));
        if frame.clock().rate().nanos(waited) > PATIENCE {
            unlock(&pair, desk, frame);
            self.tally.pass_over(index, pair.until + self.tally.every(), 1);
            return true;
        }
        let is_there = |stream: &u32| (desk.next)(*stream) == pair.until;
        let is_quiet = |stream: &u32| !desk.submitter.is_under_way(desk.last[*stream as usize]);
        if [low, high].iter().all(is_there) && [low, high].iter().all(is_quiet) {
            self.pairs[index as usize].task = self.begin(&pair, desk, frame);
        }
        false
    }

    /// Locks both pages and submits the readout. A lower page that is locked alone stays so until the higher one comes.
    fn begin(&self, pair: &Pair, desk: &mut Desk<'_>, frame: &Frame<'_>) -> Option<TaskId> {
        let [low, high] = pair.streams;
        let epochs = desk.lock_both(pair.streams, frame)?;
        self.cells.ask((low, high), epochs, pair.until);
        let accesses = [desk.regions.state(low), desk.regions.state(high)];
        match desk.submitter.try_submit(&task_of(Kernel::Joint, low, high.into(), 0), &accesses, &[]) {
            Ok(task) => {
                pair.streams.iter().for_each(|stream| desk.last[*stream as usize] = task);
                desk.submitter.flush();
                Some(task)
            }
            Err(_) => {
                unlock(pair, desk, frame);
                None
            }
        }
    }
}

/// Gives both locks back, the higher one first.
fn unlock(pair: &Pair, desk: &mut Desk<'_>, frame: &Frame<'_>) {
    pair.streams.iter().rev().for_each(|page| desk.steward.unlock(*page, frame.ticks()));
}

impl Desk<'_> {
    fn lock_both(&mut self, pages: [u32; 2], frame: &Frame<'_>) -> Option<[Epoch; 2]> {
        let Desk { steward, submitter, last, .. } = self;
        let is_pending = |page: u32| submitter.is_under_way(last[page as usize]);
        steward.lock_both(pages, frame, &is_pending)
    }
}
