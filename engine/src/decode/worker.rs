//! The decode role: takes ready jobs, matches, answers.
//!
//! Owns one matcher with its scratch (the rest of a decode's memory is the frame's), and a CPU predecoder for jobs that did not pass the device. Any number of these
//! roles take from one ready queue. Bounds: jobs until the frame's time is spent, at least one. A panic inside a decode
//! is caught per task: the shot is answered with an error and the matcher made anew.

use super::{Matcher, MatcherModel};
use crate::board::{self, DecodeBlock};
use crate::dispatch::Pipe;
use crate::fault::{FaultCode, Injector};
use crate::hot::{BUDGET_ITEMS, Frame, Role, RoleError, Work, memory};
use crate::predecode::Predecoder;
use crate::profile::RoleKind;
use crate::units::Ticks;
use pinwheel_edge::slot::jobs::{Job, Origin};
use pinwheel_edge::slot::table::{AnswerTimes, TicketView};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::WorkerBank;
use pinwheel_edge::spin::Phase;
use pinwheel_edge::sync::read_words;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a decode worker is made of.
pub struct DecoderParts {
    /// The silo's shared parts.
    pub pipe: Pipe,
    /// The device's workers, to release after a decode (`AfterDecode`).
    pub bank: Arc<WorkerBank>,
    /// Which of the silo's decode workers.
    pub index: usize,
    /// The model made ready.
    pub matching: MatcherModel,
    /// Predecoder of the CPU path.
    pub predecoder: Box<dyn Predecoder>,
    /// Draws of injected panics.
    pub injector: Injector,
}

/// The role.
pub struct Decoder {
    parts: DecoderParts,
    matcher: Box<dyn Matcher>,
    observables: Vec<u64>,
    /// A decode that is done and not yet answered: the rehearsal puts answers off.
    in_hand: Option<Decoded>,
}

/// What one decode works on, in the frame's arena.
struct Rough<'a> {
    raw: &'a mut [u64],
    syndrome: &'a mut [u64],
    flips: &'a mut [u64],
}

struct Decoded {
    job: Job,
    origin: Origin,
    decoding: Ticks,
    result: Result<(), ErrorCode>,
}

impl Decoder {
    /// The role, on its thread.
    #[must_use]
    pub fn new(parts: DecoderParts) -> Decoder {
        let geometry = parts.pipe.table.geometry();
        let observables = vec![0; geometry.observable_words as usize];
        Decoder { matcher: parts.matching.matcher(), parts, observables, in_hand: None }
    }

    /// Decodes `job` into `self.observables`, unless its shot has been answered.
    fn decode(&mut self, job: Job, rough: &mut Rough<'_>, frame: &Frame<'_>) -> Decoded {
        let pipe = &self.parts.pipe;
        let origin = pipe.jobs.origin(&job);
        let decoding = frame.ticks();
        board::set(&pipe.board.slots(pipe.silo)[origin.ticket.slot as usize].decoding, decoding.0);
        // Warm-up shots are nobody's: they are gone before Live.
        if frame.phase != Phase::Warmup {
            board::add(&self.block().decoding, 1);
        }
        if pipe.table.is_open(origin.ticket) == TicketView::Closed {
            // Expired on the way: nobody would take the answer. The claim below fails and is counted.
            return Decoded { job, origin, decoding, result: Err(ErrorCode::ShotDeadline) };
        }
        let panics = frame.phase != Phase::Warmup && self.parts.injector.decode_panics();
        let matched = catch_unwind(AssertUnwindSafe(|| self.attempt(&job, &origin, rough, panics)));
        let result = matched.unwrap_or_else(|payload| {
            memory::excused(|| {
                drop(payload);
                memory::lend(|| self.matcher = self.parts.matching.matcher());
            });
            Err(ErrorCode::DecoderPanic)
        });
        Decoded { job, origin, decoding, result }
    }

    fn attempt(&mut self, job: &Job, origin: &Origin, rough: &mut Rough<'_>, panics: bool) -> Result<(), ErrorCode> {
        assert!(!panics, "injected");
        let jobs = &self.parts.pipe.jobs;
        if origin.raw {
            read_words(jobs.detectors(job), rough.raw);
            let predecoded = self.parts.predecoder.predecode(rough.raw, rough.syndrome, rough.flips);
            board::add(&self.block().predecoded_events, u64::from(predecoded.resolved));
        } else {
            read_words(jobs.detectors(job), rough.syndrome);
            read_words(jobs.observables(job), rough.flips);
        }
        self.matcher.decode(rough.syndrome, &mut self.observables).map_err(|_| ErrorCode::Unmatchable)?;
        for (observable, flip) in self.observables.iter_mut().zip(&*rough.flips) {
            *observable ^= flip;
        }
        Ok(())
    }

    /// Claims the ticket and answers; gives back what the job holds either way.
    fn answer(&self, decoded: Decoded, frame: &Frame<'_>) -> Ticks {
        let Decoded { job, origin, decoding, result } = decoded;
        let pipe = &self.parts.pipe;
        let answered = frame.ticks();
        match pipe.table.claim(origin.ticket) {
            Some(claim) => {
                let times = AnswerTimes { completed: origin.completed, decoding, answered };
                board::set(&pipe.board.slots(pipe.silo)[origin.ticket.slot as usize].answered, answered.0);
                match result {
                    Ok(()) => claim.answer(&self.observables, times),
                    Err(code) => {
                        let slot = u64::from(origin.ticket.slot);
                        pipe.board.fault(pipe.silo, FaultCode::Answered(code), answered, slot);
                        claim.fail(code, times);
                    }
                }
                board::add(&self.block().answered, 1);
            }
            None => board::add(&self.block().claims_lost, 1),
        }
        pipe.jobs.give(job);
        if let Some((worker, generation)) = origin.worker {
            self.parts.bank.release(usize::from(worker), generation);
        }
        board::add(&self.block().busy_ticks, answered.since(decoding).0);
        answered
    }

    fn rough<'a>(&self, frame: &Frame<'a>) -> Option<Rough<'a>> {
        let geometry = self.parts.pipe.table.geometry();
        let (detectors, observables) = (geometry.detector_words as usize, geometry.observable_words as usize);
        Some(Rough {
            raw: frame.words(detectors)?,
            syndrome: frame.words(detectors)?,
            flips: frame.words(observables)?,
        })
    }

    fn block(&self) -> &DecodeBlock {
        self.parts.pipe.board.decode(self.parts.pipe.silo, self.parts.index)
    }
}

impl Role for Decoder {
    fn kind(&self) -> RoleKind {
        RoleKind::Decode
    }

    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        Ok(())
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let mut items = 0;
        if let Some(decoded) = self.in_hand.take() {
            self.answer(decoded, frame);
            items += 1;
        }
        // No room in the frame's arena: other roles of this thread have used it. The jobs wait for the next frame.
        let Some(mut rough) = self.rough(frame) else { return Work(items) };
        while items < BUDGET_ITEMS {
            let Some(number) = self.parts.pipe.ready.pop() else { break };
            let decoded = self.decode(Job::from_number(number), &mut rough, frame);
            items += 1;
            if frame.split_here() {
                self.in_hand = Some(decoded);
                break;
            }
            if frame.is_spent(self.answer(decoded, frame)) {
                break;
            }
        }
        Work(items)
    }

    fn is_drained(&self) -> bool {
        self.in_hand.is_none() && self.parts.pipe.ready.depth() == 0
    }
}
