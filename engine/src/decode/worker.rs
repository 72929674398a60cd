//! The decode role: a worker of the pool's graph. Matches, commits, answers.
//!
//! Owns one matcher with its scratch (the rest of a decode's memory is the frame's), a CPU predecoder for jobs that did not
//! pass the device, and a worker of the graph, whose bodies it brings along. Any number of these roles run one graph.
//! Bounds: tasks until the frame's time is spent, at least one. A panic inside a decode is caught per task: the shot is
//! answered with an error and the matcher made anew. A commit that the stream's page refuses is put off to the next frame, never waited for. A panic outside of one breaks a promise, and ends the role.
//!
//! # Why bodies are brought along
//! A matcher is one thread's. A body that all workers share would have to find its worker's matcher by number, and
//! nothing but care would keep two threads from the same one; the role that has matcher and worker lends both for a turn.

use super::carries::{Carries, WindowBench};
use super::joint::JointCells;
use super::pool::{Kernel, kernel_of};
use super::state::{StateWrite, StreamStates};
use super::{Matcher, MatcherModel};
use crate::board::{self, DecodeBlock};
use crate::dispatch::Pipe;
use crate::fault::{FaultCode, Injector};
use crate::graph::{Brought, Count, Ended, Event, TaskId, Work as GraphTask, Worker};
use crate::hot::{BUDGET_ITEMS, Frame, Role, RoleError, Work, memory};
use crate::predecode::Predecoder;
use crate::profile::RoleKind;
use crate::units::Ticks;
use pinwheel_edge::slot::jobs::{Job, Origin};
use pinwheel_edge::slot::table::{AnswerTimes, TicketView};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::WorkerBank;
use pinwheel_edge::spin::Phase;
use pinwheel_edge::sync::{read_words, write_words};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;

// The board shows a worker's counts by these numbers.
const _: () = {
    assert!(Count::Ran as usize == 0 && Count::Stolen as usize == 3 && Count::StealsEmpty as usize == 4);
    assert!(Count::StealsLost as usize == 5 && Count::GateWaits as usize == 7 && Count::FlushesFull as usize == 8);
    assert!(
        Count::FlushesLate as usize == 9 && Count::FlushesIdle as usize == 10 && Count::FlushesReturn as usize == 11
    );
};

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
    /// What is known of each stream.
    pub states: Arc<StreamStates>,
    /// Carries of jobs, where shots are decoded by windows.
    pub carries: Option<Arc<Carries>>,
    /// Where joint readouts are written to, if there are any.
    pub joints: Option<Arc<JointCells>>,
    /// Takes the times of the tasks that this worker ran, when it is let go.
    pub times: Option<Sender<Vec<Event>>>,
}

/// The role.
pub struct Decoder {
    bench: Bench,
    worker: Worker<Brought>,
    failed: u64,
}

/// What bodies work with.
struct Bench {
    parts: DecoderParts,
    matcher: Box<dyn Matcher>,
    windows: Option<WindowBench>,
    observables: Vec<u64>,
    /// Commits put off to the next frame, by the rehearsal or for want of the stream's page: at most one of each stream.
    in_hand: VecDeque<(TaskId, PutOff)>,
}

/// What is to be committed yet.
enum PutOff {
    /// A decode that is done.
    Decoded(Job, Kernel),
    /// A sequence number of a stream that was answered with an error.
    Buried(u32, u64),
}

/// The end of a decode: of which task, and when it began.
struct Turn {
    kernel: Kernel,
    began: Ticks,
}

/// What one decode works on, in the frame's arena.
struct Rough<'a> {
    raw: &'a mut [u64],
    syndrome: &'a mut [u64],
    flips: &'a mut [u64],
}

impl Decoder {
    /// The role, on its thread.
    #[must_use]
    pub fn new(parts: DecoderParts, worker: Worker<Brought>) -> Decoder {
        let geometry = parts.pipe.table.geometry();
        let observables = vec![0; geometry.observable_words as usize];
        let windows = parts.carries.clone().map(WindowBench::new);
        let in_hand = VecDeque::with_capacity(parts.pipe.streams as usize + 1);
        let bench = Bench { matcher: parts.matching.matcher(), windows, parts, observables, in_hand };
        Decoder { bench, worker, failed: 0 }
    }

    /// Ends the role if one of its bodies failed: none does, unless a promise of the path is broken.
    fn judge(&mut self) {
        let failed = self.worker.counted(Count::Failed);
        if failed != self.failed {
            self.failed = failed;
            // With the place of the first panic, which the graph has caught.
            resume_unwind(Box::new(()));
        }
    }

    fn publish(&mut self, frame: &Frame<'_>) {
        let released = self.worker.take_release_ticks();
        let block = self.bench.block();
        for (word, what) in block.counts.iter().zip(Count::ALL) {
            board::set(word, self.worker.counted(what));
        }
        board::set(&block.deque_depth, self.worker.depth());
        if let Some(ticks) = released {
            block.release.record(frame.clock().rate().nanos(ticks).0);
        }
    }
}

impl Bench {
    /// The body of a task.
    fn run(&mut self, work: &GraphTask, rough: &mut Rough<'_>, frame: &mut Frame<'_>) -> ControlFlow<Ended, Ended> {
        let task = &work.task;
        let began = frame.ticks();
        self.begin(work, began, frame);
        let ended = match kernel_of(task) {
            kernel @ (Kernel::Whole | Kernel::Stray) => {
                let job = Job::from_number(task.args[0] as u32);
                let origin = self.parts.pipe.jobs.origin(&job);
                let result = self.decode(&job, &origin, rough, began, frame.phase);
                if frame.split_here() {
                    self.keep(&job, result, began);
                    return self.put_off(work, PutOff::Decoded(job, kernel));
                }
                match self.answer(job, &origin, result, Turn { kernel, began }, frame) {
                    Ok(ended) => ended,
                    Err(job) => {
                        self.keep(&job, result, began);
                        return self.put_off(work, PutOff::Decoded(job, kernel));
                    }
                }
            }
            Kernel::Decode => {
                let job = Job::from_number(task.args[0] as u32);
                let origin = self.parts.pipe.jobs.origin(&job);
                let result = self.decode(&job, &origin, rough, began, frame.phase);
                self.keep(&job, result, began);
                self.release(&origin);
                frame.ticks()
            }
            Kernel::Window => {
                let job = Job::from_number(task.args[0] as u32);
                self.window(&job, (task.args[0] >> 32) as u32, rough, began, frame)
            }
            Kernel::Joint => {
                self.parts.joints.iter().for_each(|cells| cells.read(&self.parts.states, task.stream));
                frame.ticks()
            }
            kernel @ (Kernel::Commit | Kernel::Bury) => {
                let commit = match kernel {
                    Kernel::Commit => PutOff::Decoded(Job::from_number(task.args[0] as u32), kernel),
                    _ => PutOff::Buried(task.stream, task.args[0]),
                };
                match self.commit(commit, frame) {
                    Ok(ended) => ended,
                    Err(refused) => return self.put_off(work, refused),
                }
            }
        };
        board::add(&self.block().busy_ticks, ended.since(began).0);
        board::set(&self.block().task, 0);
        if frame.is_spent(ended) { ControlFlow::Break(Ended::Done) } else { ControlFlow::Continue(Ended::Done) }
    }

    /// Leaves a commit to a later frame: its task goes on, this worker does not wait.
    fn put_off(&mut self, work: &GraphTask, commit: PutOff) -> ControlFlow<Ended, Ended> {
        assert!(self.in_hand.len() < self.in_hand.capacity(), "commits of a stream follow each other");
        self.in_hand.push_back((work.id, commit));
        board::set(&self.block().task, 0);
        ControlFlow::Break(Ended::Launched)
    }

    /// Shows what begins, and how long it took to begin.
    fn begin(&self, work: &GraphTask, began: Ticks, frame: &Frame<'_>) {
        let (block, task) = (self.block(), &work.task);
        board::set(&block.task_what, u64::from(task.kernel) | u64::from(task.stream) << 32);
        board::set(&block.task_since, began.0);
        board::set(&block.task, work.id.0);
        if task.args[1] != 0 {
            block.wake.record(frame.clock().rate().nanos(began.since(Ticks(task.args[1]))).0);
        }
    }

    /// Decodes one window of the shot of `job`, unless it has been answered or a window before failed.
    fn window(&mut self, job: &Job, index: u32, rough: &mut Rough<'_>, began: Ticks, frame: &Frame<'_>) -> Ticks {
        let (table, jobs) = (&self.parts.pipe.table, &self.parts.pipe.jobs);
        let origin = jobs.origin(job);
        let (before, begun) = if index == 0 { (Ok(()), began) } else { jobs.decoded(job) };
        if index == 0 {
            self.note_decoding(&origin, began, frame.phase);
        }
        let is_open = table.is_open(origin.ticket) != TicketView::Closed;
        let before = if is_open { before } else { Err(ErrorCode::ShotDeadline) };
        let panics = index == 0 && frame.phase != Phase::Warmup && self.parts.injector.decode_panics();
        let result = before.and_then(|()| {
            catch_unwind(AssertUnwindSafe(|| self.attempt_window(job, &origin, index, rough, panics)))
                .unwrap_or_else(|payload| Err(self.recover(payload)))
        });
        if index == 0 || result.is_err() {
            self.parts.pipe.jobs.set_decoded(job, result, begun);
        }
        if self.windows.as_ref().is_some_and(|windows| windows.is_last(index)) {
            self.release(&origin);
        }
        let ended = frame.ticks();
        self.block().window.record(frame.clock().rate().nanos(ended.since(began)).0);
        ended
    }

    fn attempt_window(
        &mut self,
        job: &Job,
        origin: &Origin,
        index: u32,
        rough: &mut Rough<'_>,
        panics: bool,
    ) -> Result<(), ErrorCode> {
        assert!(!panics, "injected");
        match (index, origin.by_rounds) {
            (0, true) => rough.flips.fill(0),
            (0, false) => self.take_syndrome(job, origin, rough),
            _ => read_words(self.parts.pipe.jobs.observables(job), rough.flips),
        }
        let payload = origin.by_rounds.then(|| self.parts.pipe.table.payload(origin.ticket.slot));
        let Some(windows) = &mut self.windows else { unreachable!("a window is submitted where there are windows") };
        match (index, origin.by_rounds) {
            (0, true) => windows.begin_by_rounds(rough.flips, &mut self.observables),
            (0, false) => windows.begin(rough.syndrome, rough.flips, &mut self.observables),
            _ => {}
        }
        let explained = windows.decode(job, index, payload, rough.flips)?;
        board::add(&self.block().predecoded_events, u64::from(explained));
        write_words(self.parts.pipe.jobs.observables(job), rough.flips);
        Ok(())
    }

    /// What is left after a decode panicked: the matchers are made anew.
    fn recover(&mut self, payload: Box<dyn std::any::Any + Send>) -> ErrorCode {
        memory::excused(|| {
            drop(payload);
            memory::lend(|| {
                self.matcher = self.parts.matching.matcher();
                self.windows.iter_mut().for_each(WindowBench::renew);
            });
        });
        ErrorCode::DecoderPanic
    }

    fn note_decoding(&self, origin: &Origin, began: Ticks, phase: Phase) {
        let pipe = &self.parts.pipe;
        board::set(&pipe.board.slots(pipe.silo)[origin.ticket.slot as usize].decoding, began.0);
        // Warm-up shots are nobody's: they are gone before Live.
        if phase != Phase::Warmup {
            board::add(&self.block().decoding, 1);
        }
    }

    /// Decodes `job` into `self.observables`, unless its shot has been answered.
    fn decode(
        &mut self,
        job: &Job,
        origin: &Origin,
        rough: &mut Rough<'_>,
        began: Ticks,
        phase: Phase,
    ) -> Result<(), ErrorCode> {
        self.note_decoding(origin, began, phase);
        if self.parts.pipe.table.is_open(origin.ticket) == TicketView::Closed {
            // Expired on the way: nobody would take the answer. The claim below fails and is counted.
            return Err(ErrorCode::ShotDeadline);
        }
        if origin.by_rounds {
            // Its rounds are read by windows alone; what comes here has lost its turn on the way.
            return Err(ErrorCode::RoundsMissing);
        }
        let panics = phase != Phase::Warmup && self.parts.injector.decode_panics();
        catch_unwind(AssertUnwindSafe(|| self.attempt(job, origin, rough, panics)))
            .unwrap_or_else(|payload| Err(self.recover(payload)))
    }

    fn attempt(&mut self, job: &Job, origin: &Origin, rough: &mut Rough<'_>, panics: bool) -> Result<(), ErrorCode> {
        assert!(!panics, "injected");
        self.take_syndrome(job, origin, rough);
        self.matcher.decode(rough.syndrome, &mut self.observables).map_err(|_| ErrorCode::Unmatchable)?;
        for (observable, flip) in self.observables.iter_mut().zip(&*rough.flips) {
            *observable ^= flip;
        }
        Ok(())
    }

    /// The syndrome of `job` and what is flipped already, predecoded here if it did not pass the device.
    fn take_syndrome(&mut self, job: &Job, origin: &Origin, rough: &mut Rough<'_>) {
        let jobs = &self.parts.pipe.jobs;
        if origin.raw {
            read_words(jobs.detectors(job), rough.raw);
            let predecoded = self.parts.predecoder.predecode(rough.raw, rough.syndrome, rough.flips);
            board::add(&self.block().predecoded_events, u64::from(predecoded.resolved));
        } else {
            read_words(jobs.detectors(job), rough.syndrome);
            read_words(jobs.observables(job), rough.flips);
        }
    }

    /// Leaves what a decode came to with its job, for a commit on whichever worker.
    fn keep(&self, job: &Job, result: Result<(), ErrorCode>, began: Ticks) {
        let jobs = &self.parts.pipe.jobs;
        write_words(jobs.observables(job), &self.observables);
        jobs.set_decoded(job, result, began);
    }

    /// Commits what was left, and answers it if that is to be done; gives it back if the stream's state may not be written now.
    fn commit(&mut self, commit: PutOff, frame: &Frame<'_>) -> Result<Ticks, PutOff> {
        let (job, kernel) = match commit {
            PutOff::Decoded(job, kernel) => (job, kernel),
            PutOff::Buried(stream, sequence) => {
                let Ok(write) = self.parts.states.begin_write(stream) else { return Err(commit) };
                let now = frame.ticks();
                self.settle(Some((write, sequence)), Err(ErrorCode::ShotDeadline), now);
                return Ok(now);
            }
        };
        let jobs = &self.parts.pipe.jobs;
        let (origin, (result, began)) = (jobs.origin(&job), jobs.decoded(&job));
        read_words(jobs.observables(&job), &mut self.observables);
        self.answer(job, &origin, result, Turn { kernel, began }, frame).map_err(|job| PutOff::Decoded(job, kernel))
    }

    /// Claims the ticket, commits and answers; gives back what the job holds either way, and the job itself with nothing
    /// done if the stream's state may not be written now.
    fn answer(
        &self,
        job: Job,
        origin: &Origin,
        result: Result<(), ErrorCode>,
        turn: Turn,
        frame: &Frame<'_>,
    ) -> Result<Ticks, Job> {
        let pipe = &self.parts.pipe;
        let write = if turn.kernel == Kernel::Stray {
            None
        } else {
            let (stream, sequence) = pipe.jobs.shot(&job);
            let Ok(write) = self.parts.states.begin_write(stream) else { return Err(job) };
            Some((write, sequence))
        };
        let answered = frame.ticks();
        match pipe.table.claim(origin.ticket) {
            Some(claim) => {
                let arrived =
                    if origin.by_rounds { pipe.table.last_round(origin.ticket.slot) } else { Ticks::default() };
                let times = AnswerTimes { arrived, completed: origin.completed, decoding: turn.began, answered };
                board::set(&pipe.board.slots(pipe.silo)[origin.ticket.slot as usize].answered, answered.0);
                match result {
                    Ok(()) => claim.answer_after(&self.observables, times, || self.settle(write, result, answered)),
                    Err(code) => {
                        let slot = u64::from(origin.ticket.slot);
                        pipe.board.fault(pipe.silo, FaultCode::Answered(code), answered, slot);
                        claim.fail_after(code, times, || self.settle(write, result, answered));
                    }
                }
                board::add(&self.block().answered, 1);
            }
            None => {
                self.settle(write, Err(ErrorCode::ShotDeadline), answered);
                board::add(&self.block().claims_lost, 1);
            }
        }
        pipe.jobs.give(job);
        self.release(origin);
        Ok(answered)
    }

    /// Commits a sequence number to its stream: its observables, or that it has none.
    fn settle(&self, write: Option<(StateWrite<'_>, u64)>, result: Result<(), ErrorCode>, now: Ticks) {
        let Some((state, sequence)) = write else { return };
        board::add(&self.block().committed, 1);
        match result {
            Ok(()) => state.commit(sequence, &self.observables, now),
            Err(_) => {
                board::add(&self.block().tombstones, 1);
                state.bury(sequence, now);
            }
        }
    }

    /// Frees the device worker that is kept until the decode (`AfterDecode`); a second time is none.
    fn release(&self, origin: &Origin) {
        if let Some((worker, generation)) = origin.worker {
            self.parts.bank.release(usize::from(worker), generation);
        }
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

impl Drop for Decoder {
    /// At the end of its thread, when nothing is hot any more.
    fn drop(&mut self) {
        if let Some(times) = &self.bench.parts.times {
            // Nobody may want them any more.
            let _ = times.send(self.worker.events().copied().collect());
        }
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
        for _ in 0..self.bench.in_hand.len() {
            let Some((task, commit)) = self.bench.in_hand.pop_front() else { break };
            if let Err(refused) = self.bench.commit(commit, frame) {
                self.bench.in_hand.push_back((task, refused));
                continue;
            }
            let ended = self.worker.end_launched(task);
            assert!(ended.is_ok(), "nobody else ends a task of this worker: {ended:?}");
            items += 1;
        }
        // No room in the frame's arena: other roles of this thread have used it. The tasks wait for the next frame.
        let Some(mut rough) = self.bench.rough(frame) else { return Work(items) };
        let bench = &mut self.bench;
        items += self.worker.work_by(BUDGET_ITEMS - items, |work| bench.run(work, &mut rough, frame));
        self.judge();
        if items > 0 {
            self.publish(frame);
        }
        Work(items)
    }

    fn is_drained(&self) -> bool {
        self.bench.in_hand.is_empty() && self.worker.is_idle()
    }
}
