//! A silo's words with a real rig: one loop does the work of feed, dispatch, poll and harvest.
//!
//! Owned by one step of the check. Bounded by its slots and workers. Waits only in [`Line::wait`],
//! [`WAIT`] at most.

use super::super::driver::Failure;
use super::super::launcher::meaning;
use super::super::rig::{Reports, Rig, Works};
use super::super::{Context, OpenError};
use crate::board::histogram::HistogramBlock;
use crate::clock::Clock;
use crate::code::Model;
use crate::predecode::Tables;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::jobs::{FreeJobs, JobBank};
use pinwheel_edge::slot::table::{AnswerTimes, DispatchEnd, FeedEnd, Geometry, HarvestEnd, ReplyTo, ShotHeader, table};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::{DispatchWorkers, PollWorkers, Settled, WorkerEnds, bank};
use pinwheel_edge::sync::read_words;
use std::sync::Arc;
use zerocopy::FromZeros;

/// Longest wait for one completion.
const WAIT: Nanos = Nanos(3_000_000_000);

/// How a group's work is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Graph,
    /// By its graph between two events.
    Timed,
    /// Its kernel, without a graph.
    Kernel,
}

/// See the header.
pub(super) struct Line {
    pub(super) rig: Rig,
    pub(super) works: Works,
    free: FreeJobs,
    pub(super) start: Start,
    /// Duration of launches, ns.
    pub(super) launch_ns: Box<HistogramBlock>,
    pub(super) dispatch: DispatchWorkers,
    pub(super) poll: PollWorkers,
    clock: Clock,
    feed: FeedEnd,
    end: DispatchEnd,
    harvest: HarvestEnd,
    /// When each worker's shot was written.
    sent_at: Vec<Ticks>,
    /// Output of the last completion.
    pub(super) residual: Vec<u64>,
    pub(super) flips: Vec<u64>,
    pending: u64,
    sent: u64,
    /// Completions of workers without a pending shot.
    pub(super) strays: u64,
}

/// An empty histogram.
pub(super) fn histogram() -> Box<HistogramBlock> {
    Box::new(HistogramBlock::new_zeroed())
}

impl Line {
    /// Creates a line of `workers` workers on `context`, `batch` of them per graph.
    pub(super) fn new(
        context: Context,
        model: &Model,
        tables: Arc<Tables>,
        (workers, batch): (usize, u32),
        clock: &Clock,
    ) -> Result<Line, OpenError> {
        let slots = (4 * workers as u32).next_power_of_two().max(64);
        let (words, flips) = (model.detector_words(), model.observable_words());
        let geometry = Geometry { slots, detector_words: words as u32, observable_words: flips as u32 };
        let (feed, end, harvest, table) = table(geometry);
        let WorkerEnds { dispatch, poll, words: bank, .. } = bank(workers);
        let count = slots as usize + workers;
        let (jobs, (free, [])) = (Arc::new(JobBank::new(count, words, flips)), FreeJobs::new(count));
        let reports = Arc::new(Reports::new(workers));
        let works = Works { table, jobs, bank, tables, reports, batch_shots: batch };
        let rig = Rig::capture(context, works.clone())?;
        rig.upload()?;
        Ok(Line {
            rig,
            works,
            free,
            start: Start::Graph,
            launch_ns: histogram(),
            dispatch,
            poll,
            clock: clock.clone(),
            feed,
            end,
            harvest,
            sent_at: vec![Ticks(0); workers],
            residual: vec![0; words],
            flips: vec![0; flips],
            pending: 0,
            sent: 0,
            strays: 0,
        })
    }

    /// Writes a shot and rings a free worker's doorbell; launches its group once it is full. `None`
    /// if no worker or slot is free.
    pub(super) fn send(&mut self, shot: &[u64]) -> Result<Option<usize>, Failure> {
        let Some(w) = self.dispatch.take_idle() else { return Ok(None) };
        let Some(vacant) = self.feed.vacant() else {
            self.dispatch.untake(w);
            return Ok(None);
        };
        let now = self.clock.ticks();
        let reply_to = ReplyTo::default();
        let header = ShotHeader { stream: 0, sequence: self.sent, scheduled: now, submitted: now, reply_to };
        vacant.submit(&header, shot, None);
        let arrived = self.end.arrived().expect("it was written on this thread");
        let ticket = self.end.hold(&arrived, now);
        let job = self.free.take().expect("there are more jobs than slots");
        let generation = self.dispatch.start(w, arrived.address, job, ticket, now);
        self.works.bank.ring(w, generation);
        (self.sent_at[w], self.sent, self.pending) = (now, self.sent + 1, self.pending | 1 << w);
        self.end.retire();
        let (group, batch) = (w / self.works.batch_shots as usize, self.works.batch_shots as usize);
        let mask = (u64::MAX >> (64 - batch.min(self.works.bank.len() - group * batch))) << (group * batch);
        if self.pending & mask == mask {
            self.launch(group, mask)?;
        }
        Ok(Some(w))
    }

    /// Launches every group with pending mail.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let batch = self.works.batch_shots as usize;
        while self.pending != 0 {
            let group = self.pending.trailing_zeros() as usize / batch;
            self.launch(group, u64::MAX >> (64 - batch.min(64)) << (group * batch))?;
        }
        Ok(())
    }

    fn launch(&mut self, group: usize, mask: u64) -> Result<(), Failure> {
        self.pending &= !mask;
        let began = self.clock.ticks();
        let failed = |code| if code == 0 { Ok(()) } else { Err(Failure { call: "cuGraphLaunch", code }) };
        let started = match self.start {
            Start::Graph => failed(self.rig.launch(group)),
            Start::Timed => failed(self.rig.launch_timed(group)),
            Start::Kernel => self.rig.launch_kernel(group),
        };
        self.launch_ns.record(self.clock.rate().nanos(self.clock.ticks().since(began)).0);
        started
    }

    /// Claims worker `w`'s completion if there is one.
    pub(super) fn claim(&mut self, w: usize) -> bool {
        self.poll.claim_ready(w)
    }

    /// Handles a claimed completion: output, answer, harvest, worker freed. Returns whether a shot
    /// was pending.
    pub(super) fn finish(&mut self, w: usize) -> bool {
        let Settled::Job { job, ticket, generation } = self.poll.settle(w) else {
            self.strays += 1;
            return false;
        };
        self.poll.release(w, generation);
        read_words(self.works.jobs.detectors(&job), &mut self.residual);
        read_words(self.works.jobs.observables(&job), &mut self.flips);
        self.free.give(job);
        if let Some(claim) = self.works.table.claim(ticket) {
            claim.answer(&self.flips, AnswerTimes::default());
        }
        self.harvest();
        true
    }

    /// Answers a ticket of a quarantined worker.
    pub(super) fn expire(&mut self, w: usize, generation: u64) -> bool {
        let Some(ticket) = self.poll.quarantine(w, generation) else { return false };
        let Some(claim) = self.works.table.claim(ticket) else { return false };
        claim.fail(ErrorCode::LaunchDeadline, AnswerTimes::default());
        self.harvest();
        true
    }

    fn harvest(&mut self) {
        self.harvest.begin();
        while let Some(answered) = self.harvest.next_answered() {
            self.harvest.take(&answered);
        }
    }

    /// When worker `w`'s last shot was written.
    pub(super) fn sent_at(&self, w: usize) -> Ticks {
        self.sent_at[w]
    }

    /// Spins until worker `w` has completed.
    pub(super) fn wait(&mut self, w: usize) -> Result<(), String> {
        let from = self.clock.ticks();
        while !self.claim(w) {
            if self.clock.rate().nanos(self.clock.ticks().since(from)) >= WAIT {
                return Err(format!("worker {w} did not complete within {} s", WAIT.0 / 1_000_000_000));
            }
            std::hint::spin_loop();
        }
        if self.finish(w) { Ok(()) } else { Err(format!("worker {w} completed a launch that was never started")) }
    }

    /// Sends one shot and waits for it.
    pub(super) fn one(&mut self, shot: &[u64]) -> Result<usize, String> {
        let w = self.send(shot).map_err(described)?.ok_or("no worker is free")?;
        self.flush().map_err(described)?;
        self.wait(w)?;
        Ok(w)
    }
}

/// A launch failure, with the engine's classification.
pub(super) fn described(failure: Failure) -> String {
    format!("{failure}, classified as {:?}", meaning(failure.code))
}
