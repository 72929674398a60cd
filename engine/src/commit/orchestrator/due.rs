//! Whole shots in the order of their deadlines.
//!
//! Part of the graph role, on its thread, where the profile asks for `order: Deadline`. Owns the shots that wait
//! for a lane. Each call first takes in what has become ready, then gives away the nearest deadlines first. A shot
//! that cannot be answered by its deadline is answered with an error: when it arrives, if all that are due before
//! it take too long; otherwise when its deadline passes. Workers refuse what becomes too late in between. Bounds:
//! one entry for each job; 64 jobs taken in a call. Never allocates after construction.
//!
//! # Why a sorted queue
//! Shots with equal deadlines arrive in order, so that nearly all are added at the end and taken at the front. The
//! place of a shot among the others says how long it will wait, which a heap does not. A shot between others moves
//! the shorter side of the queue; refusals keep it as short as the deadlines are.

use super::Orchestrator;
use crate::board;
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::ExpectedTime;
use crate::pipe::lanes::{LEFT_MAX, NO_DEADLINE};
use crate::units::Ticks;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::table::TicketView;
use pinwheel_edge::slot::word::ErrorCode;
use std::collections::VecDeque;

/// A whole shot that waits for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    due: Ticks,
    job: u32,
    /// When it came, own decoders would have made it late.
    is_late: bool,
}

/// Shots by deadline, and how long the fastest answer takes.
pub(super) struct DueQueue {
    shots: VecDeque<Waiting>,
    /// A decode by a shot's own decoder, and by the rescue decoder.
    own: ExpectedTime,
    rescue: ExpectedTime,
    /// From the end of a decode until its result is here.
    delay: ExpectedTime,
    has_rescue: bool,
    /// Shots that wait and are late.
    late: u32,
}

impl DueQueue {
    /// An empty queue for `jobs` jobs.
    pub(super) fn new(jobs: usize, has_rescue: bool) -> DueQueue {
        let [own, rescue, delay] = [ExpectedTime::default(); 3];
        DueQueue { shots: VecDeque::with_capacity(jobs), own, rescue, delay, has_rescue, late: 0 }
    }

    /// Mean time of a decode by the faster decoder, ticks; 0: not measured yet.
    fn least(&self) -> u64 {
        if self.has_rescue { self.rescue.mean().min(self.own.mean()) } else { self.own.mean() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shots.is_empty()
    }

    /// Adds a shot, after those that are due at the same time, unless `due` cannot be met: then returns the job.
    /// `ahead`: shots at `workers` workers.
    fn add(&mut self, job: u32, due: Ticks, now: Ticks, (ahead, workers): (u64, u64)) -> Option<u32> {
        let place = self.shots.partition_point(|other| other.due <= due);
        let before = (ahead + place as u64) / workers.max(1);
        let is_late = |each: u64| {
            let decodes = (before + 1).saturating_mul(each);
            now.0.saturating_add(decodes).saturating_add(self.delay.mean()) > due.0
        };
        if is_late(self.least()) {
            if ahead == 0 && self.shots.is_empty() {
                // Only the estimates say so, and no shot would correct them.
                [&mut self.own, &mut self.rescue, &mut self.delay].into_iter().for_each(ExpectedTime::fade);
            } else if self.rescue.mean() > self.own.mean() {
                // Few shots are rescued, and those have the most detection events.
                self.rescue.fade();
            }
            return Some(job);
        }
        let is_late = is_late(self.own.mean());
        self.late += u32::from(is_late);
        self.shots.insert(place, Waiting { due, job, is_late });
        None
    }

    /// The shot that is due first.
    fn take(&mut self) -> Option<u32> {
        self.take_overdue(Ticks(u64::MAX))
    }

    /// The shot that is due first, if its deadline has passed.
    fn take_overdue(&mut self, now: Ticks) -> Option<u32> {
        let first = self.shots.pop_front_if(|first| first.due <= now)?;
        self.late -= u32::from(first.is_late);
        Some(first.job)
    }

    /// A worker took `ticks` for a shot, and its result came `delay` ticks later. `by_rescue`: whether the rescue
    /// decoder answered it; `None`: nothing did.
    pub(super) fn note(&mut self, by_rescue: Option<bool>, ticks: u64, delay: u64) {
        self.delay.note(delay);
        match by_rescue {
            Some(true) => self.rescue.note(ticks),
            Some(false) => self.own.note(ticks),
            None => {}
        }
    }
}

impl Orchestrator {
    /// Takes in the jobs that are ready, and answers those whose deadlines cannot be met. Returns how many.
    pub(super) fn take_in_due(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        while items < BUDGET_ITEMS
            && !self.is_crowded()
            && let Some(job) = self.pop()
        {
            items += 1 + self.take_in(frame);
            let (stream, _) = self.parts.pipe.jobs.shot(&job);
            let due = self.due_at(&job, stream);
            let at_workers = (self.parts.lanes.in_flight(), self.parts.lanes.len() as u64);
            let Some(queue) = &mut self.due else { unreachable!("only called with a queue") };
            if let Some(refused) = queue.add(job.number(), due, frame.now, at_workers) {
                self.refuse(Job::from_number(refused), ErrorCode::DeadlineTooNear, frame);
            }
        }
        while !self.is_crowded()
            && let Some(overdue) = self.due.as_mut().and_then(|queue| queue.take_overdue(frame.now))
        {
            items += 1;
            self.refuse(Job::from_number(overdue), ErrorCode::DeadlineTooNear, frame);
        }
        if let (Some(queue), Some(of)) = (&self.due, &self.parts.pipe.deadlines) {
            of.set_behind(queue.late > 0);
        }
        items
    }

    /// When the answer of a job of `stream` is due; never for warm-up shots. A shot that was answered already
    /// is due now: its job is free.
    fn due_at(&self, job: &Job, stream: u32) -> Ticks {
        let pipe = &self.parts.pipe;
        let after = pipe.deadlines.as_ref().and_then(|of| of.after_write(stream, &pipe.settings));
        match (pipe.table.is_open(pipe.jobs.origin(job).ticket), after) {
            (TicketView::Open { submitted }, Some(after)) => submitted.plus(after),
            (TicketView::Open { .. }, None) => Ticks(u64::MAX),
            (TicketView::NotYet | TicketView::Closed, _) => Ticks(0),
        }
    }

    /// The job that is due first, if a lane has room for it.
    pub(super) fn nearest(&mut self) -> Option<Job> {
        let queue = self.due.as_mut()?;
        if queue.is_empty() {
            return None;
        }
        if self.parts.lanes.free().is_none() && !self.parts.lanes.are_closed() {
            board::add(&self.block().lane_waits, 1);
            return None;
        }
        self.due.as_mut().and_then(DueQueue::take).map(Job::from_number)
    }

    /// Ticks from `now` until the decode of a shot of `stream` that was written at `submitted` has to end, as a lane
    /// carries them.
    pub(super) fn left(&self, stream: u32, submitted: Ticks, now: Ticks) -> u32 {
        let Some(queue) = &self.due else { return NO_DEADLINE };
        let pipe = &self.parts.pipe;
        let after = pipe.deadlines.as_ref().and_then(|of| of.after_write(stream, &pipe.settings));
        after.map_or(NO_DEADLINE, |after| {
            let until_due = submitted.plus(after).since(now).0;
            until_due.saturating_sub(queue.delay.mean()).min(LEFT_MAX.into()) as u32
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{DueQueue, Ticks};

    const IDLE: (u64, u64) = (0, 1);

    #[test]
    fn the_nearest_deadline_comes_first_and_equal_ones_in_order() {
        let mut queue = DueQueue::new(8, true);
        for (job, due) in [(1, 50), (2, 20), (3, 50), (4, 90), (5, 20)] {
            assert_eq!(queue.add(job, Ticks(due), Ticks(0), IDLE), None);
        }
        let jobs: Vec<u32> = std::iter::from_fn(|| queue.take()).collect();
        assert_eq!(jobs, [2, 5, 1, 3, 4]);
    }

    /// Three decodes of so many ticks, by the rescue decoder or a shot's own, each result here `delay` later.
    fn note(queue: &mut DueQueue, by_rescue: bool, ticks: u64, delay: u64) {
        (0..3).for_each(|_| queue.note(Some(by_rescue), ticks, delay));
    }

    #[test]
    fn a_shot_is_refused_if_those_before_it_take_until_its_deadline() {
        let mut queue = DueQueue::new(8, true);
        note(&mut queue, false, 1_000, 1);
        assert_eq!(queue.add(1, Ticks(2), Ticks(0), IDLE), None, "no rescue is measured yet");
        note(&mut queue, true, 10, 1);
        assert_eq!(queue.add(2, Ticks(31), Ticks(0), IDLE), None);
        assert_eq!(queue.add(3, Ticks(31), Ticks(0), IDLE), None);
        assert_eq!(queue.add(4, Ticks(31), Ticks(0), IDLE), Some(4), "three are due before it");
        assert_eq!(queue.add(5, Ticks(30), Ticks(0), (1, 2)), None, "two workers share them");
        assert_eq!(queue.shots.len(), 4);
        queue.note(Some(true), 10, 80);
        assert_eq!(queue.add(6, Ticks(60), Ticks(0), IDLE), Some(6), "its result would come 11 ticks later");
        assert_eq!(queue.add(6, Ticks(61), Ticks(0), IDLE), None);
    }

    #[test]
    fn an_estimate_that_was_too_long_does_not_refuse_for_ever() {
        let mut queue = DueQueue::new(8, true);
        note(&mut queue, true, 1_000_000, 1_000_000);
        note(&mut queue, false, 1_000_000, 1_000_000);
        let refused = (0..2_000).take_while(|_| queue.add(1, Ticks(100), Ticks(0), IDLE).is_some()).count();
        assert!((100..1_000).contains(&refused), "{refused} shots were refused first");
    }

    #[test]
    fn a_rescue_decoder_that_was_slow_refuses_nobody_whom_the_own_decoder_serves() {
        let mut queue = DueQueue::new(8, true);
        note(&mut queue, false, 10, 0);
        note(&mut queue, true, 1_000_000, 0);
        assert_eq!(queue.add(1, Ticks(100), Ticks(0), IDLE), None);
    }

    #[test]
    fn overdue_shots_leave_and_the_others_stay() {
        let mut queue = DueQueue::new(8, false);
        queue.add(1, Ticks(10), Ticks(0), IDLE);
        queue.add(2, Ticks(20), Ticks(0), IDLE);
        assert_eq!((queue.take_overdue(Ticks(10)), queue.take_overdue(Ticks(10))), (Some(1), None));
        assert_eq!(queue.shots.len(), 1);
    }
}
