//! Results of decode workers: committed in stream order, and answered.
//!
//! Part of the graph role, on its thread. Bounds: 64 results a frame. Never waits: a result whose
//! number is not the next of its stream is kept with its job until then, and so is one whose stream
//! is held.

use super::super::reorder::Held;
use super::super::state::StateWrite;
use super::Orchestrator;
use crate::arbiter::page::Hint;
use crate::board;
use crate::fault::FaultCode;
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::AnsweredBy;
use crate::pipe::lanes::{LINE_WORDS, ResultLine};
use crate::units::Ticks;
use pinwheel_edge::slot::jobs::{Job, Origin};
use pinwheel_edge::slot::table::AnswerTimes;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::{read_words, write_words};

/// What a decode came to; its observables are [`Orchestrator::observables`].
#[derive(Clone, Copy)]
struct Decode {
    result: Result<AnsweredBy, ErrorCode>,
    began: Ticks,
}

impl Orchestrator {
    /// Takes results from all workers. Returns how many.
    pub(super) fn take_results(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        let mut now = None;
        for worker in 0..self.parts.lanes.len() {
            // A commit holds up the loads after it.
            self.parts.lanes.fetch(worker, (BUDGET_ITEMS - items) as usize);
            while items < BUDGET_ITEMS && self.take_result(worker, &mut now, frame) {
                items += 1;
            }
        }
        items
    }

    /// Takes the next result of `worker`, if there is one. `now` is one clock reading for a batch, made
    /// with its first result.
    pub(super) fn take_result(&mut self, worker: usize, now: &mut Option<Ticks>, frame: &Frame<'_>) -> bool {
        let underway = &self.underway;
        let is_whole = |job: u32| underway[job as usize].is_whole;
        let Some(result) = self.parts.lanes.result(worker, is_whole) else { return false };
        // A result may be younger than the reading.
        let now = (*now.get_or_insert_with(|| frame.ticks())).max(result.ended);
        if let Some(queue) = &mut self.due {
            let by_rescue = result.result().ok().map(AnsweredBy::is_rescued);
            queue.note(by_rescue, result.ended.since(result.began).0, now.since(result.ended).0);
        }
        self.settle(result, now, frame);
        true
    }

    /// Commits and answers a result if it is the next of its stream, and what waited for it;
    /// otherwise keeps it.
    fn settle(&mut self, result: ResultLine, now: Ticks, frame: &Frame<'_>) {
        let job = Job::from_number(result.job);
        let underway = std::mem::take(&mut self.underway[result.job as usize]);
        self.in_windows -= u64::from(!underway.is_whole);
        self.take_matcher(&job, underway.is_whole);
        let jobs = &self.parts.pipe.jobs;
        if self.observable_words <= LINE_WORDS {
            self.observables[..LINE_WORDS].copy_from_slice(&result.observables);
        } else {
            read_words(jobs.observables(&job), &mut self.observables);
        }
        let (shot, origin) = (jobs.shot(&job), jobs.origin(&job));
        self.release(origin.worker);
        let decode = Decode { result: result.result(), began: result.began };
        if !underway.is_ordered {
            self.answer(&origin, decode, None, now);
            self.parts.returns.give(job);
            return;
        }
        let (stream, sequence) = shot;
        let is_next = sequence == self.reorder.next(stream);
        if !is_next {
            self.keep(&job, (stream, sequence), decode);
            self.gauges.holds(stream, now);
            return;
        }
        if let Some(write) = self.begin_commit(stream) {
            self.answer(&origin, decode, Some((write, sequence)), now);
        } else {
            self.keep(&job, (stream, sequence), decode);
            return self.advance(stream, now, frame);
        }
        self.parts.returns.give(job);
        self.pass(stream, now);
        self.advance(stream, now, frame);
    }

    /// The observables of the result that is being committed.
    fn observables(&self) -> &[u64] {
        &self.observables[..self.observable_words]
    }

    /// Keeps a result with its job.
    fn keep(&mut self, job: &Job, (stream, sequence): (u32, u64), decode: Decode) {
        let jobs = &self.parts.pipe.jobs;
        write_words(jobs.observables(job), self.observables());
        jobs.set_decoded(job, decode.result.map(|by| by.0), decode.began);
        self.reorder.keep(stream, sequence, job.number());
    }

    /// Keeps the failure of a job that no worker got; its number was taken in.
    pub(super) fn keep_failed(&mut self, job: Job, error: ErrorCode, frame: &Frame<'_>) {
        let (stream, sequence) = self.parts.pipe.jobs.shot(&job);
        self.observables.fill(0);
        let worker = self.parts.pipe.jobs.origin(&job).worker;
        self.release(worker);
        self.keep(&job, (stream, sequence), Decode { result: Err(error), began: frame.now });
        self.advance(stream, frame.ticks(), frame);
    }

    /// Commits what is next in a stream. Without its page the stream is held.
    pub(super) fn advance(&mut self, stream: u32, now: Ticks, frame: &Frame<'_>) {
        while let Some(held) = self.reorder.peek(stream) {
            if let Held::Decoded(number) = held {
                let words = self.parts.pipe.jobs.observables(&Job::from_number(number));
                read_words(words, &mut self.observables);
            }
            let Some(write) = self.begin_commit(stream) else {
                if !self.parts.arbiter.may_commit(stream) {
                    self.parts.arbiter.want(stream, (Hint::Default, 0), frame.now);
                }
                if !std::mem::replace(&mut self.is_held[stream as usize], true) {
                    self.held.push_back(stream);
                }
                return;
            };
            let sequence = self.reorder.next(stream);
            match held {
                Held::Decoded(number) => {
                    let job = Job::from_number(number);
                    let (result, began) = self.parts.pipe.jobs.decoded(&job);
                    let decode = Decode { result: result.map(AnsweredBy), began };
                    let origin = self.parts.pipe.jobs.origin(&job);
                    self.answer(&origin, decode, Some((write, sequence)), now);
                    self.parts.returns.give(job);
                }
                Held::Tombstone => self.commit(Some((write, sequence)), Some(ErrorCode::ShotDeadline), now),
                Held::Taken => unreachable!("a number without a result is not committed"),
            }
            self.pass(stream, now);
            self.gauges.passes(stream, now);
        }
    }

    /// The right to commit the stream's next number, unless its page is away or a joint readout
    /// comes first.
    fn begin_commit(&self, stream: u32) -> Option<StateWrite<'_>> {
        if self.may_commit(stream) { self.parts.states.begin_write(stream).ok() } else { None }
    }

    /// Claims the ticket, commits and answers. The job's device worker is free already; the caller
    /// returns the job.
    fn answer(&self, origin: &Origin, decode: Decode, write: Option<(StateWrite<'_>, u64)>, now: Ticks) {
        let pipe = &self.parts.pipe;
        let Origin { ticket, completed, .. } = *origin;
        let Some(claim) = pipe.table.claim(ticket) else {
            self.commit(write, Some(ErrorCode::ShotDeadline), now);
            board::add(&self.block().claims_lost, 1);
            return;
        };
        let arrived = if origin.by_rounds { pipe.table.last_round(ticket.slot) } else { Ticks::default() };
        let times = AnswerTimes { arrived, completed, decoding: decode.began, answered: now };
        let stamps = &pipe.board.slots(pipe.silo)[ticket.slot as usize];
        board::set(&stamps.decoding, decode.began.0);
        board::set(&stamps.answered, now.0);
        match decode.result {
            Ok(by) => claim.answer_after(self.observables(), times, by.0, || self.commit(write, None, now)),
            Err(code) => {
                pipe.board.fault(pipe.silo, FaultCode::Answered(code), now, u64::from(ticket.slot));
                claim.fail_after(code, times, || self.commit(write, Some(code), now));
            }
        }
        board::add(&self.block().answered, 1);
    }

    /// Commits a sequence number to its stream: its observables, or that it has none.
    fn commit(&self, write: Option<(StateWrite<'_>, u64)>, error: Option<ErrorCode>, now: Ticks) {
        let Some((state, sequence)) = write else { return };
        board::add(&self.block().committed, 1);
        match error {
            None => state.commit(sequence, self.observables(), now),
            Some(_) => {
                board::add(&self.block().tombstones, 1);
                state.skip(sequence, now);
            }
        }
    }
}
