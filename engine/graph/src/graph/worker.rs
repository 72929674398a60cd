//! A worker: takes ready tasks, runs their bodies, releases their successors.
//!
//! Owned by one thread. [`Worker::work`] returns after a number of tasks or when it finds none, and
//! never waits. Its own tasks are at most those under way, a batch its threshold, a trace its
//! events. Allocates only at construction, and reads the clock only for a batch or a trace.
//!
//! Longer than 500 lines because finding, running and releasing tasks are one loop over one owner's
//! fields.
//!
//! # Why
//! A worker keeps the tasks that it releases in its own list, newest first, which needs no atomics.
//! Before it runs a task while its deque is empty, it moves the older half of that list to the
//! deque, where thieves find it. So a chain of tasks stays on one core without steals, and surplus
//! work is never hidden behind a long body. A task shorter than the transfer of its cache lines is
//! not worth stealing: a thief that stole only such tasks pauses for a while, and pauses no longer
//! once tasks are longer or many.

use super::config::{Pool, Ready, Trace};
use super::shared::{COUNTS, Count, Failure, PERMIT, RECORDED, ROOTS, Routed, Shared, resolve};
use super::task::{Body, CANCELLED, Ended, FAILED, Reason, Task, TaskId, Work, outcome_of};
use super::trace::Event;
use super::{ByBody, ByCaller, CompleteError, Runner};
use crate::units::Ticks;
use pinwheel_edge::queue::deque::{Owner, Steal};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Tasks offered to thieves at once.
const OFFER: usize = 64;
/// Tasks stolen at once.
const STEAL: u64 = 32;
/// Attempts at one victim before the next.
const ATTEMPTS: u32 = 4;
/// Tasks of its own that a worker runs before it looks into shared queues.
const FOREIGN_EVERY: u32 = 61;
/// Ended tasks of a round that a worker counts locally before it publishes the count.
const ROUND_COUNT: u32 = 256;

/// One release in this many is timed.
const TIMED_EVERY: u32 = 256;

/// A steal of fewer tasks than this must run long enough to pay for the transfer.
const STEAL_TASKS_MIN: u64 = 16;
/// Least run time of a stolen task that pays for its transfer.
const STOLEN_TASK_NS_MIN: u64 = 1_000;
/// Longest pause of a thief. The pause doubles after each steal that did not pay.
const BACKOFF_NS_MAX: u64 = 32_000;
/// Most searches that a pause skips, in case the clock does not advance.
const SWEEPS_SKIPPED_MAX: u32 = 1_024;

/// How a thief adapts its pauses to what its last steal was worth.
#[derive(Default)]
struct StealBackoff {
    /// The last steal: when, tasks run until then, tasks stolen.
    last: Option<(Ticks, u64, u64)>,
    backoff: Ticks,
    not_before: Ticks,
    sweeps_skipped: u32,
}

/// The task whose body runs; kept outside the call so that a panic leaves it readable.
struct Running {
    item: u64,
    gate: Option<usize>,
}

/// The worker.
pub struct Worker<B> {
    pub(super) shared: Arc<Shared<B>>,
    index: u32,
    pool: Pool,
    pub(super) local: VecDeque<u64>,
    /// Ready items whose queues had no room: only a recording with more tasks than the window has some.
    unsent: VecDeque<u64>,
    deque: Owner,
    seed: u64,
    turn: u32,
    lane: usize,
    running: Option<Running>,
    ends_turn: bool,
    releases: u32,
    /// Ticks of the last timed release, until somebody takes them.
    timed: Option<Ticks>,
    ended: Vec<(u64, u32)>,
    ended_first: Ticks,
    deadline: Ticks,
    steal_backoff: StealBackoff,
    worth: Ticks,
    backoff_max: Ticks,
    round: u64,
    round_ended: u32,
    counts: [u64; COUNTS],
    events: VecDeque<Event>,
    events_max: usize,
}

impl<B: Body> Worker<B> {
    pub(super) fn new(shared: Arc<Shared<B>>, index: u32, deque: Owner) -> Worker<B> {
        let config = &shared.config;
        let events_max = if config.trace == Trace::Off { 0 } else { config.trace_events as usize };
        let deadline = shared.clock.rate().ticks(crate::units::Nanos(config.batch.deadline_ns));
        Worker {
            index,
            pool: config.workers[index as usize],
            local: VecDeque::with_capacity(config.records().max(config.ready_tasks) as usize),
            unsent: VecDeque::new(),
            deque,
            seed: 0x9E37_79B9_7F4A_7C15 ^ u64::from(index + 1) << 17,
            turn: 0,
            lane: index as usize,
            running: None,
            ends_turn: false,
            releases: 0,
            timed: None,
            ended: Vec::with_capacity(config.batch.threshold as usize),
            ended_first: Ticks(0),
            deadline,
            steal_backoff: StealBackoff::default(),
            worth: shared.clock.rate().ticks(crate::units::Nanos(STOLEN_TASK_NS_MIN)),
            backoff_max: shared.clock.rate().ticks(crate::units::Nanos(BACKOFF_NS_MAX)),
            round: 0,
            round_ended: 0,
            counts: [0; COUNTS],
            events: VecDeque::with_capacity(events_max),
            events_max,
            shared,
        }
    }

    /// Runs at most `tasks_max` tasks and returns how many it ran. Fewer means that no more were
    /// ready.
    pub fn work(&mut self, tasks_max: u32) -> u32 {
        self.work_through(tasks_max, &mut ByBody)
    }

    /// As [`Worker::work`], with a body that the caller passes, so that it can use the caller's own
    /// state. A `Break` ends the turn after its task and offers the remaining tasks to other
    /// workers.
    pub fn work_by(&mut self, tasks_max: u32, body: impl FnMut(&Work) -> ControlFlow<Ended, Ended>) -> u32 {
        let taken = self.work_through(tasks_max, &mut ByCaller(body));
        if !self.local.is_empty() {
            self.offer_all();
        }
        taken
    }

    fn work_through<R: Runner<B>>(&mut self, tasks_max: u32, runner: &mut R) -> u32 {
        let mut left = tasks_max;
        self.ends_turn = false;
        self.send_unsent();
        while catch_unwind(AssertUnwindSafe(|| self.work_on(&mut left, runner))).is_err() {
            self.end_panicked();
        }
        if !self.ended.is_empty() {
            self.flush(Count::FlushesReturn);
        }
        self.settle_round();
        tasks_max - left
    }

    fn work_on<R: Runner<B>>(&mut self, left: &mut u32, runner: &mut R) {
        while *left > 0 && !self.ends_turn {
            if let Some(item) = self.find() {
                *left -= 1;
                self.run(item, runner);
            } else if self.ended.is_empty() {
                return;
            } else {
                self.flush(Count::FlushesIdle);
            }
        }
    }

    #[inline(always)]
    fn count(&mut self, what: Count) {
        self.counts[what as usize] += 1;
    }

    /// The next item: own, sent, from shared queues, waiting for a permit, stolen.
    #[inline(always)]
    fn find(&mut self) -> Option<u64> {
        if self.shared.ready == Ready::WorkSteal {
            self.turn += 1;
            if self.turn < FOREIGN_EVERY
                && let Some(item) = self.local.pop_back()
            {
                self.offer();
                return Some(item);
            }
        }
        self.find_further()
    }

    #[inline(never)]
    fn find_further(&mut self) -> Option<u64> {
        if self.shared.ready != Ready::WorkSteal {
            return self.find_in_order().or_else(|| self.find_parked());
        }
        if self.turn >= FOREIGN_EVERY {
            self.turn = 0;
            if let Some(item) = self.find_foreign() {
                return Some(item);
            }
        }
        let own = self.local.pop_back().or_else(|| self.deque.pop());
        if own.is_some() {
            self.offer();
            return own;
        }
        self.find_foreign().or_else(|| self.find_parked()).or_else(|| self.steal())
    }

    fn find_foreign(&mut self) -> Option<u64> {
        let shared = &self.shared;
        shared.inboxes[self.index as usize].pop().or_else(|| shared.queues(self.pool)[0].pop())
    }

    /// Sends a ready item to where it is to run, or keeps it.
    #[inline(always)]
    pub(super) fn ready(&mut self, item: u64) {
        let routed = self.shared.route(item, Some(self.index));
        keep(&mut self.local, &mut self.unsent, item, routed);
    }

    /// Sends what had no room before.
    pub(super) fn send_unsent(&mut self) {
        while let Some(item) = self.unsent.pop_front() {
            let routed = self.shared.route(item, Some(self.index));
            if routed == Routed::Full {
                self.unsent.push_front(item);
                return;
            }
            keep(&mut self.local, &mut self.unsent, item, routed);
        }
    }

    /// In strict order within a lane; lanes take turns.
    fn find_in_order(&mut self) -> Option<u64> {
        let queues = self.shared.queues(self.pool);
        for _ in 0..queues.len() {
            self.lane = if self.lane + 1 < queues.len() { self.lane + 1 } else { 0 };
            if let Some(item) = queues[self.lane].pop() {
                return Some(item);
            }
        }
        self.local.pop_front().or_else(|| self.shared.inboxes[self.index as usize].pop())
    }

    /// A task that was set aside at the moment when the last permit came back, so that nobody gave it one.
    fn find_parked(&mut self) -> Option<u64> {
        for gate in 0..self.shared.gates.len() {
            let Some(item) = self.shared.admit(gate) else { continue };
            if self.shared.task_of(item).pool == self.pool {
                return Some(item);
            }
            self.ready(item);
        }
        None
    }

    fn steal(&mut self) -> Option<u64> {
        let count = self.shared.thieves.len();
        if count == 1 || !self.may_steal() {
            return None;
        }
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let start = (self.seed >> 33) as usize % count;
        for offset in 0..count {
            let victim = (start + offset) % count;
            if victim == self.index as usize || self.shared.config.workers[victim] != self.pool {
                continue;
            }
            if let Some(item) = self.steal_from(victim) {
                return Some(item);
            }
        }
        self.count(Count::StealsEmpty);
        let me = self.index as usize;
        let others = (0..count).filter(|other| *other != me && self.shared.config.workers[*other] == self.pool);
        others.into_iter().find_map(|other| self.shared.inboxes[other].pop())
    }

    /// Judges the last steal and decides whether the next may start.
    fn may_steal(&mut self) -> bool {
        let ran = self.counts[Count::Ran as usize];
        let steal_backoff = &mut self.steal_backoff;
        if steal_backoff.last.is_none() && steal_backoff.backoff == Ticks(0) {
            return true;
        }
        let now = self.shared.clock.ticks();
        if let Some((then, ran_then, got)) = steal_backoff.last.take() {
            let is_worth = got >= STEAL_TASKS_MIN || now.since(then).0 >= (ran - ran_then) * self.worth.0;
            let doubled = (steal_backoff.backoff.0 * 2).clamp(self.worth.0, self.backoff_max.0);
            steal_backoff.backoff = Ticks(if is_worth { 0 } else { doubled });
            steal_backoff.not_before = now.plus(steal_backoff.backoff);
            steal_backoff.sweeps_skipped = 0;
        }
        steal_backoff.sweeps_skipped += 1;
        now >= steal_backoff.not_before || steal_backoff.sweeps_skipped > SWEEPS_SKIPPED_MAX
    }

    fn steal_from(&mut self, victim: usize) -> Option<u64> {
        let shared = &self.shared;
        let thief = &shared.thieves[victim];
        for _ in 0..ATTEMPTS {
            match thief.steal() {
                Steal::Empty => return None,
                Steal::Retry => self.counts[Count::StealsLost as usize] += 1,
                Steal::Success(item) => {
                    shared.fanout.prefetch(item as u32 & shared.fanout_mask());
                    let more = (thief.depth() / 2).min(STEAL - 1);
                    self.steal_backoff.last = Some((shared.clock.ticks(), self.counts[Count::Ran as usize], more + 1));
                    self.counts[Count::Stolen as usize] += 1;
                    for _ in 0..more {
                        let Steal::Success(item) = thief.steal() else { break };
                        shared.fanout.prefetch(item as u32 & shared.fanout_mask());
                        self.local.push_back(item);
                        self.counts[Count::Stolen as usize] += 1;
                    }
                    return Some(item);
                }
            }
        }
        None
    }

    /// Moves the older half of its own tasks to the deque, unless that has some already.
    #[inline(always)]
    pub(super) fn offer(&mut self) {
        if !self.local.is_empty() && self.deque.depth() == 0 {
            self.offer_half();
        }
    }

    /// Moves all its own tasks to the deque, for an owner that does not run them for now.
    pub(super) fn offer_all(&mut self) {
        while !self.local.is_empty() && self.offer_some(self.local.len().min(OFFER)) {}
    }

    #[inline(never)]
    fn offer_half(&mut self) {
        self.offer_some(self.local.len().div_ceil(2).min(OFFER));
    }

    /// Returns whether all of them found room.
    fn offer_some(&mut self, count: usize) -> bool {
        // Only thieves look into the deque.
        if self.shared.thieves.len() == 1 || self.shared.ready != Ready::WorkSteal {
            return false;
        }
        let mut batch = [0; OFFER];
        for (place, item) in batch.iter_mut().zip(self.local.drain(..count)) {
            *place = item;
        }
        let offered = self.deque.push_slice(&batch[..count]);
        for item in batch[offered..count].iter().rev() {
            self.local.push_front(*item);
        }
        self.counts[Count::Offered as usize] += offered as u64;
        offered == count
    }

    #[inline(always)]
    fn run<R: Runner<B>>(&mut self, item: u64, runner: &mut R) {
        if !self.ended.is_empty() && self.shared.clock.ticks().since(self.ended_first) >= self.deadline {
            self.flush(Count::FlushesLate);
        }
        if item & RECORDED != 0 {
            self.run_recorded(item, runner);
            return;
        }
        let slot = item as u32;
        let outcome = self.shared.fanout.outcome(slot);
        if outcome != 0 || self.shared.is_cancelled() {
            self.skip(item, outcome);
            return;
        }
        let task = Task::of_words(self.shared.fanout.payload(slot));
        let id = self.shared.id(slot);
        if let Some(outcome) = self.perform(item, id, task, runner) {
            self.end(item, outcome);
        }
    }

    fn skip(&mut self, item: u64, outcome: u32) {
        self.count_skipped(item);
        self.end(item, if outcome == 0 { CANCELLED } else { outcome });
    }

    fn count_skipped(&mut self, item: u64) {
        self.count(Count::Ran);
        self.count(Count::Skipped);
        if item & PERMIT != 0
            && let Some(gate) = self.shared.gate_of(&self.shared.task_of(item))
        {
            self.leave(gate);
        }
    }

    /// Runs a body under its permit. Returns the outcome, or nothing if the task waits for a permit
    /// or was launched.
    #[inline(always)]
    fn perform<R: Runner<B>>(&mut self, item: u64, id: TaskId, task: Task, runner: &mut R) -> Option<u32> {
        let gate = self.shared.gate_of(&task);
        let item = match gate {
            Some(gate) => self.enter(item, gate)?,
            None => item,
        };
        self.running = Some(Running { item, gate });
        self.counts[Count::Ran as usize] += 1;
        let work = Work { id, task, worker: self.index, item };
        let ended = match &self.shared.config.trace {
            Trace::Cycles(wanted) if wanted.takes(task.kernel, task.stream) => self.timed(&work, runner),
            _ => runner.run(&self.shared.body, &work),
        };
        self.running = None;
        let ended = match ended {
            ControlFlow::Continue(ended) => ended,
            ControlFlow::Break(ended) => {
                self.ends_turn = true;
                ended
            }
        };
        if ended == Ended::Launched {
            return None;
        }
        if let Some(gate) = gate {
            self.leave(gate);
        }
        match ended {
            Ended::Failed(code) => Some(self.failed(item, Reason::Failed(code))),
            Ended::Done | Ended::Launched => Some(0),
        }
    }

    /// Gets a task its permit and returns it without the mark of one, or sets it aside.
    fn enter(&mut self, item: u64, gate: usize) -> Option<u64> {
        if item & PERMIT == 0 {
            let Some(permit) = self.shared.gates[gate].enter() else {
                self.park(item, gate);
                return None;
            };
            permit.keep();
        }
        Some(item & !PERMIT)
    }

    /// Passes on the permit of a task that needs it no more.
    fn leave(&mut self, gate: usize) {
        if let Some(item) = self.shared.pass_on_permit(gate) {
            self.ready(item);
        }
    }

    /// Sets a task aside until its gate has a permit. The gate's queue holds all tasks under way; only a recording
    /// with more tasks can fill it. The worker then keeps the task, behind its others.
    #[cold]
    fn park(&mut self, item: u64, gate: usize) {
        if self.shared.park(item, gate) {
            self.count(Count::GateWaits);
            // The last permit may have come back before that.
            if let Some(item) = self.shared.admit(gate) {
                self.ready(item);
            }
        } else if self.shared.ready == Ready::WorkSteal {
            self.local.push_front(item);
        } else {
            self.local.push_back(item);
        }
    }

    #[inline(never)]
    fn timed<R: Runner<B>>(&mut self, work: &Work, runner: &mut R) -> ControlFlow<Ended, Ended> {
        let start = self.shared.clock.ticks();
        let ended = runner.run(&self.shared.body, work);
        self.keep_event(work, start);
        ended
    }

    fn keep_event(&mut self, work: &Work, start: Ticks) {
        let end = self.shared.clock.ticks();
        // The latest events are what matters after a stall.
        if self.events.len() == self.events_max {
            self.events.pop_front();
            self.count(Count::EventsDropped);
        }
        let Task { kernel, stream, .. } = work.task;
        self.events.push_back(Event { task: work.id, kernel, stream, worker: self.index, start, end });
    }

    /// Makes the event of a task's launch that of its whole run.
    fn keep_launched_event(&mut self, work: &Work, began: Ticks) {
        match self.events.iter_mut().rfind(|event| event.task == work.id) {
            Some(launch) => (launch.start, launch.end) = (began, self.shared.clock.ticks()),
            None => self.keep_event(work, began),
        }
    }

    /// Notes a failure and returns its outcome.
    #[cold]
    fn failed(&mut self, item: u64, reason: Reason) -> u32 {
        self.count(Count::Failed);
        let task = match self.shared.recorded(item) {
            // In a recording the round fails; the index identifies the task within it.
            Some((_, index)) => TaskId(index as u64),
            None => self.shared.id(item as u32),
        };
        // A failure that finds no room in the list is still counted.
        let _ = self.shared.failures.push(Failure { task, reason });
        outcome_of(task.0)
    }

    #[cold]
    fn end_panicked(&mut self) {
        let Some(Running { item, gate }) = self.running.take() else {
            panic!("a worker panicked outside of every body");
        };
        if let Some(gate) = gate {
            self.leave(gate);
        }
        let outcome = self.failed(item, Reason::Panicked);
        if item & RECORDED == 0 {
            self.end(item, outcome);
        } else {
            self.end_recorded(item, outcome);
        }
    }

    #[inline(always)]
    fn end(&mut self, item: u64, outcome: u32) {
        if self.shared.config.batch.threshold == 1 {
            self.resolve(item as u32, outcome);
            return;
        }
        if self.ended.is_empty() {
            self.ended_first = self.shared.clock.ticks();
        }
        self.ended.push((item, outcome));
        if self.ended.len() as u32 == self.shared.config.batch.threshold {
            self.flush(Count::FlushesFull);
        }
    }

    fn flush(&mut self, reason: Count) {
        self.count(reason);
        for at in 0..self.ended.len() {
            let (item, outcome) = self.ended[at];
            self.resolve(item as u32, outcome);
        }
        self.ended.clear();
    }

    /// Ends a task: seals its list and releases its successors.
    #[inline(always)]
    fn resolve(&mut self, slot: u32, outcome: u32) {
        self.releases += 1;
        if self.releases < TIMED_EVERY {
            self.release(slot, outcome);
            return;
        }
        self.releases = 0;
        let began = self.shared.clock.ticks();
        self.release(slot, outcome);
        self.timed = Some(self.shared.clock.ticks().since(began));
    }

    #[inline(always)]
    fn release(&mut self, slot: u32, outcome: u32) {
        let Worker { shared, local, unsent, index, .. } = self;
        resolve(shared, slot, outcome, |item| keep(local, unsent, item, shared.route(item, Some(*index))));
    }

    #[inline(always)]
    fn run_recorded<R: Runner<B>>(&mut self, item: u64, runner: &mut R) {
        if item & ROOTS != 0 {
            self.hand_out(item);
            return;
        }
        let shared = Arc::as_ref(&self.shared);
        let Some((recording, index)) = shared.recorded(item) else { return };
        let outcome = recording.take_up(index);
        let task = recording.task(index);
        if outcome != 0 || shared.is_cancelled() {
            self.count_skipped(item);
            self.end_recorded(item & !PERMIT, if outcome == 0 { CANCELLED } else { outcome });
        } else if let Some(outcome) = self.perform(item, TaskId(index as u64), task, runner) {
            self.end_recorded(item & !PERMIT, outcome);
        }
    }

    #[inline(always)]
    fn end_recorded(&mut self, item: u64, outcome: u32) {
        if self.round != item & !0xFFFF_FFFF {
            self.settle_round();
            self.round = item & !0xFFFF_FFFF;
        }
        let Worker { shared, local, unsent, index, .. } = self;
        let Some((recording, task)) = shared.recorded(item) else { return };
        if outcome != 0 {
            let round = recording.round();
            shared.fanout.spoil(shared.slot(round), if outcome & FAILED == 0 { outcome } else { outcome_of(round) });
        }
        let base = item & !0xFFFF_FFFF;
        recording.resolve(task, outcome, |successor| {
            let item = base | u64::from(successor);
            keep(local, unsent, item, shared.route(item, Some(*index)));
        });
        self.round_ended += 1;
        if self.round_ended == ROUND_COUNT {
            self.settle_round();
        }
    }

    /// Starts some roots of a recording and passes the right to start the rest.
    fn hand_out(&mut self, item: u64) {
        let shared = Arc::clone(&self.shared);
        let Some((recording, _)) = shared.recorded(item) else { return };
        let (roots, has_more) = recording.hand_out();
        if has_more {
            self.pass_on(item);
        }
        for root in roots.iter().rev() {
            self.ready(item & !ROOTS & !0xFFFF_FFFF | u64::from(*root));
        }
    }

    fn pass_on(&mut self, item: u64) {
        if self.shared.ready == Ready::WorkSteal && self.shared.queues(self.pool)[0].push(item).is_ok() {
            return;
        }
        self.local.push_front(item);
    }

    /// Publishes how many tasks of a round this worker has ended; the last one ends the round.
    fn settle_round(&mut self) {
        let ended = std::mem::take(&mut self.round_ended);
        if ended == 0 {
            return;
        }
        let Some((recording, _)) = self.shared.recorded(self.round) else { return };
        if recording.count_down(ended) {
            let slot = self.shared.slot(recording.round());
            let outcome = self.shared.fanout.outcome(slot);
            self.resolve(slot, outcome);
        }
    }

    /// Ends a task whose body returned `Launched` in an earlier turn of this worker.
    ///
    /// # Errors
    /// If the task has ended, or waits for several others. One that is ready and has not begun must not be
    /// ended: to tell it apart would cost each task a store.
    pub fn end_launched(&mut self, task: TaskId) -> Result<(), CompleteError> {
        let (slot, gate) = self.shared.launched(task)?;
        self.resolve(slot, 0);
        if let Some(gate) = gate {
            self.leave(gate);
        }
        Ok(())
    }

    /// As [`Self::end_launched`], for a task whose body ran on this worker from `began` on; also
    /// for recorded tasks.
    ///
    /// # Errors
    /// If the task has ended, or waits for several others. One that is ready and has not begun must not be
    /// ended: to tell it apart would cost each task a store.
    pub fn end_launched_work(&mut self, work: &Work, began: Ticks) -> Result<(), CompleteError> {
        if matches!(&self.shared.config.trace, Trace::Cycles(wanted) if wanted.takes(work.task.kernel, work.task.stream))
        {
            self.keep_launched_event(work, began);
        }
        if work.item & RECORDED == 0 {
            return self.end_launched(work.id);
        }
        if let Some(gate) = self.shared.gate_of(&work.task) {
            self.leave(gate);
        }
        self.end_recorded(work.item, 0);
        self.settle_round();
        Ok(())
    }

    /// Whether it has nothing to do: no task of its own, none sent to it, none in the queues of its
    /// pool, none that waits for a permit.
    pub fn is_idle(&self) -> bool {
        let shared = &self.shared;
        let (own, inbox) = (self.deque.depth(), shared.inboxes[self.index as usize].depth());
        let waits = |queue: &pinwheel_edge::queue::fifo::Fifo<u64>| queue.depth() > 0;
        self.local.is_empty()
            && self.unsent.is_empty()
            && own == 0
            && inbox == 0
            && !shared.queues(self.pool).iter().any(waits)
            && shared.parked() == 0
    }

    /// Number of its own tasks, in its list and in its deque.
    pub fn depth(&self) -> u64 {
        self.local.len() as u64 + self.deque.depth()
    }

    /// Ticks of the last timed release, if there was one since the last call.
    pub fn take_release_ticks(&mut self) -> Option<Ticks> {
        self.timed.take()
    }

    /// The pool whose tasks it takes.
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// The body that runs the tasks.
    pub fn body(&self) -> &B {
        &self.shared.body
    }

    /// The value of one of its counters.
    pub fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// Times of the tasks that it ran, oldest first.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.events.iter()
    }
}

/// Keeps a ready item that is in no queue.
#[inline(always)]
fn keep(local: &mut VecDeque<u64>, unsent: &mut VecDeque<u64>, item: u64, routed: Routed) {
    match routed {
        Routed::Sent => {}
        Routed::Kept => local.push_back(item),
        Routed::Full => unsent.push_back(item),
    }
}
