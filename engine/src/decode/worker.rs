//! The decode role: decodes whole shots from its lane, and windows from the pool's task graph.
//!
//! Owns one matcher for each decoder with its scratch (all other memory of a decode is the frame's), a CPU
//! predecoder for jobs that did not pass the device, its ends of the lane, and a graph worker
//! together with its task bodies. Each result goes back to the graph role, which commits and
//! answers it. Between two calls it may get other matchers ([`changes`](super::changes)). Bounds: shots and tasks until the frame's time is spent, at least one; none without
//! room for its result. A panic inside a decode is caught: the shot's result is an error and the
//! matcher is rebuilt. A panic outside a decode breaks an invariant and ends the role. Never waits.
//!
//! # Why the role supplies the task bodies
//! A matcher belongs to one thread. Bodies shared by all workers would have to look up their
//! worker's matcher by number, and nothing would keep two threads from using the same one. The role
//! owns matcher and worker and lends both to a body for one call.

use super::DecodeError;
use super::changes::WorkerChanges;
use super::prepared::Matchers;
use super::rescue::{Choice, Pending};
use super::window_tasks::WindowBench;
use crate::board::{self, DecodeBlock, WHOLE_SHOT};
use crate::commit::joint_readouts::JointCells;
use crate::commit::state::StreamStates;
use crate::fault::Injector;
use crate::graph::{CallerBody, Count, Ended, Event, Work as GraphTask, Worker};
use crate::hot::{BUDGET_ITEMS, Frame, Role, WARM_STREAM, Work, memory};
use crate::pipe::lanes::{LINE_WORDS, ResultLine, ShotLine, WorkerLane, fits_line};
use crate::pipe::pool::kernel_of;
use crate::pipe::{AnsweredBy, Carries, Pipe};
use crate::predecode::Predecoder;
use crate::roles::RoleKind;
use crate::roles::TaskKernel;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{Job, Origin};
use pinwheel_edge::slot::table::TicketView;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::Phase;
use pinwheel_edge::sync::{read_words, write_words};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A shot that waited longer for its worker may have expired: only then the worker reads its
/// ticket, whose line other threads write.
const MAY_HAVE_EXPIRED: Nanos = Nanos(100_000);

// The board reports a worker's counts by these numbers.
const _: () = {
    assert!(Count::Ran as usize == 0 && Count::Stolen as usize == 3 && Count::StealsEmpty as usize == 4);
    assert!(Count::StealsLost as usize == 5 && Count::GateWaits as usize == 7 && Count::FlushesFull as usize == 8);
    assert!(
        Count::FlushesLate as usize == 9 && Count::FlushesIdle as usize == 10 && Count::FlushesReturn as usize == 11
    );
};

/// The parts of a decode worker.
pub struct DecoderParts {
    /// The parts shared within the silo.
    pub pipe: Pipe,
    /// Index among the silo's decode workers.
    pub index: usize,
    /// Its ends of its lane.
    pub lane: WorkerLane,
    /// Its decoders, and where others come from.
    pub changes: WorkerChanges,
    /// Predecoder of the CPU path.
    pub predecoder: Box<dyn Predecoder>,
    /// Draws the injected panics.
    pub injector: Injector,
    /// State of each stream, for joint readouts.
    pub states: Arc<StreamStates>,
    /// Carries of jobs, where shots are decoded by windows.
    pub carries: Option<Arc<Carries>>,
    /// Destination of joint readouts, if there are any.
    pub joints: Option<Arc<JointCells>>,
    /// Receives the times of the tasks that this worker ran, when the role is dropped.
    pub times: Option<Sender<Vec<Event>>>,
}

/// The decode role.
pub struct Decoder {
    bench: Bench,
    worker: Worker<CallerBody>,
    failed: u64,
}

/// The state that decodes and task bodies work with.
struct Bench {
    parts: DecoderParts,
    matchers: Matchers,
    windows: Option<WindowBench>,
    observables: Vec<u64>,
    /// Whether a shot's words travel in its line.
    fits_line: bool,
    /// What was chosen for the last shot with a deadline, and its detection events, until its time is noted.
    chosen: Option<(Choice, u32)>,
}

/// Working memory of one decode, in the frame's arena.
struct Rough<'a> {
    raw: &'a mut [u64],
    syndrome: &'a mut [u64],
    flips: &'a mut [u64],
}

impl Decoder {
    /// Builds the role on its own thread.
    pub fn new(mut parts: DecoderParts, worker: Worker<CallerBody>) -> Decoder {
        let geometry = parts.pipe.table.geometry();
        let observables = vec![0; geometry.observable_words as usize];
        let ((prepared, matchers), fits_line) = (parts.changes.first(), fits_line(geometry));
        let windows = parts.carries.clone().and_then(|carries| WindowBench::new(prepared.main(), carries));
        let bench = Bench { matchers, windows, parts, observables, fits_line, chosen: None };
        board::set(&bench.block().decoder_epoch, bench.matchers.epoch);
        Decoder { bench, worker, failed: 0 }
    }

    /// Ends the role if one of its bodies failed, which only a broken invariant causes.
    fn judge(&mut self) {
        let failed = self.worker.counted(Count::Failed);
        if failed != self.failed {
            self.failed = failed;
            // Carries the place of the first panic, which the graph has caught.
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
    /// Takes other matchers, between two shots, and acknowledges them.
    #[cold]
    fn change(&mut self, frame: &Frame<'_>) {
        let (began, before) = (frame.ticks(), self.matchers.epoch);
        self.parts.changes.exchange(&mut self.matchers);
        if self.matchers.epoch != before {
            let block = self.block();
            board::set(&block.decoder_change_ticks, frame.ticks().since(began).0);
            board::set(&block.decoder_epoch, self.matchers.epoch);
        }
    }

    /// Decodes shots from the lane, at most `limit`, until the frame's time is spent. Returns how
    /// many.
    fn run_lane(&mut self, limit: u32, rough: &mut Rough<'_>, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        let mut began = None;
        while items < limit && self.parts.lane.results.room() > 0 {
            let Some(shot) = self.parts.lane.shots.pop() else { break };
            // The next line comes while this shot is decoded.
            self.parts.lane.shots.fetch(1);
            // The next decode begins where the one before ended.
            let since = *began.get_or_insert_with(|| frame.ticks());
            let ended = self.run_shot(&shot, rough, since, frame);
            began = Some(ended);
            items += 1;
            if frame.is_spent(ended) {
                break;
            }
        }
        if items > 0 {
            board::set(&self.block().task, 0);
        }
        items
    }

    /// Decodes one shot and sends its result. Returns when it ended.
    fn run_shot(&mut self, shot: &ShotLine, rough: &mut Rough<'_>, began: Ticks, frame: &Frame<'_>) -> Ticks {
        let job = Job::from_number(shot.job);
        let block = self.block();
        board::set(&block.task_what, WHOLE_SHOT | u64::from(shot.stream) << 32);
        board::set(&block.task_since, began.0);
        board::set(&block.task, u64::from(shot.slot) + 1);
        self.count_decoding(frame.phase);
        let result = self.decode(&job, shot, rough, began, frame);
        let ended = frame.ticks();
        if result.is_err() {
            self.observables.fill(0);
        }
        if let Some((choice, events)) = self.chosen.take().filter(|_| result.is_ok()) {
            self.note(shot.stream, choice, events, ended.since(began));
        }
        self.send(&job, result, (began, ended));
        board::add(&self.block().busy_ticks, ended.since(began).0);
        board::add(&self.block().decoded, 1);
        ended
    }

    /// Notes how long what was chosen for a shot has taken, and publishes what is expected of the next.
    fn note(&mut self, stream: u32, choice: Choice, events: u32, took: Ticks) {
        self.matchers.note(stream, choice, events, took.0);
        let (own, rescue) = self.matchers.expected(stream);
        let block = self.block();
        board::set(&block.expected_ticks, own);
        board::set(&block.rescue_expected_ticks, rescue);
    }

    /// Sends a result with `self.observables` to the graph role; room was checked. `times`: when its
    /// decode began and ended.
    fn send(&mut self, job: &Job, result: Result<AnsweredBy, ErrorCode>, times: (Ticks, Ticks)) {
        let mut observables = [0; LINE_WORDS];
        match self.observables.len() {
            words @ ..=LINE_WORDS => observables[..words].copy_from_slice(&self.observables),
            _ => write_words(self.parts.pipe.jobs.observables(job), &self.observables),
        }
        let line = ResultLine::new(job.number(), result, times, observables);
        assert!(self.parts.lane.results.push(line).is_ok(), "the room for the result was checked");
    }

    /// Runs the body of a task.
    fn run(&mut self, work: &GraphTask, rough: &mut Rough<'_>, frame: &Frame<'_>) -> ControlFlow<Ended, Ended> {
        let task = &work.task;
        let began = frame.ticks();
        self.begin(work, began, frame);
        let ended = match kernel_of(task) {
            TaskKernel::Window => {
                let job = Job::from_number(task.args[0] as u32);
                self.window(&job, (task.args[0] >> 32) as u32, rough, began, frame)
            }
            TaskKernel::Release => {
                let job = Job::from_number(task.args[0] as u32);
                self.observables.fill(0);
                self.send(&job, Err(ErrorCode::RoundsMissing), (began, began));
                began
            }
            TaskKernel::Joint => {
                self.parts.joints.iter().for_each(|cells| cells.read(&self.parts.states, task.stream));
                frame.ticks()
            }
        };
        board::add(&self.block().busy_ticks, ended.since(began).0);
        board::set(&self.block().task, 0);
        if frame.is_spent(ended) { ControlFlow::Break(Ended::Done) } else { ControlFlow::Continue(Ended::Done) }
    }

    /// Publishes the task that begins, and how long it waited.
    fn begin(&self, work: &GraphTask, began: Ticks, frame: &Frame<'_>) {
        let (block, task) = (self.block(), &work.task);
        board::set(&block.task_what, u64::from(task.kernel) | u64::from(task.stream) << 32);
        board::set(&block.task_since, began.0);
        board::set(&block.task, work.id.0);
        if task.args[1] != 0 {
            block.wake.record(frame.clock().rate().nanos(began.since(Ticks(task.args[1]))).0);
        }
    }

    /// Decodes one window of the shot of `job`, unless the shot has been answered or an earlier
    /// window failed. The last window's end is the shot's result.
    fn window(&mut self, job: &Job, index: u32, rough: &mut Rough<'_>, began: Ticks, frame: &Frame<'_>) -> Ticks {
        let are_blocks = self.windows.as_ref().is_some_and(WindowBench::are_blocks);
        let (table, jobs) = (&self.parts.pipe.table, &self.parts.pipe.jobs);
        let origin = jobs.origin(job);
        // Blocks follow no other.
        let is_first = index == 0 || are_blocks;
        let (before, mut begun) = if is_first { (Ok(self.matchers.main().0), began) } else { jobs.decoded(job) };
        if index == 0 {
            let pipe = &self.parts.pipe;
            board::set(&pipe.board.slots(pipe.silo)[origin.ticket.slot as usize].decoding, began.0);
            self.count_decoding(frame.phase);
        }
        let is_open = table.is_open(origin.ticket) != TicketView::Closed;
        let before = if is_open { before } else { Err(ErrorCode::ShotDeadline) };
        let panics = index == 0 && frame.phase != Phase::Warmup && self.parts.injector.decode_panics();
        let result = before.and_then(|by| {
            let attempt = || match are_blocks {
                true => self.attempt_block(job, &origin, index, began, rough, panics).map(|since| begun = since),
                false => self.attempt_window(job, &origin, index, rough, panics),
            };
            catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|payload| Err(self.recover(payload, 0))).map(|()| by)
        });
        // A block that failed leaves its shot without it.
        if !are_blocks && (index == 0 || result.is_err()) {
            self.parts.pipe.jobs.set_decoded(job, result, begun);
        }
        let ended = frame.ticks();
        if self.windows.as_ref().is_some_and(|windows| windows.is_last(index)) {
            if result.is_ok() {
                self.observables.copy_from_slice(rough.flips);
            } else {
                self.observables.fill(0);
            }
            self.send(job, result.map(AnsweredBy), (begun, ended));
        }
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
            (0, false) => {
                read_shot(&self.parts.pipe, job, origin.raw, rough);
                let resolved = self.predecode(origin.raw, rough);
                self.count_predecoded(resolved);
            }
            _ => read_words(self.parts.pipe.jobs.observables(job), rough.flips),
        }
        let payload = origin.by_rounds.then(|| self.parts.pipe.table.payload(origin.ticket.slot));
        let Some(windows) = &mut self.windows else {
            unreachable!("window tasks are submitted only if the model has windows")
        };
        match (index, origin.by_rounds) {
            (0, true) => windows.begin_by_rounds(rough.flips, &mut self.observables),
            (0, false) => windows.begin(rough.syndrome, rough.flips, &mut self.observables),
            _ => {}
        }
        let explained = windows.decode(job, index, payload, rough.flips)?;
        self.count_predecoded(explained);
        write_words(self.parts.pipe.jobs.observables(job), rough.flips);
        Ok(())
    }

    /// Decodes a block of a shot, or fuses its blocks. Returns when the decode of the block, or of the shot, began.
    fn attempt_block(
        &mut self,
        job: &Job,
        origin: &Origin,
        index: u32,
        began: Ticks,
        rough: &mut Rough<'_>,
        panics: bool,
    ) -> Result<Ticks, ErrorCode> {
        assert!(!panics, "injected");
        if origin.by_rounds {
            rough.flips.fill(0);
        } else {
            read_shot(&self.parts.pipe, job, origin.raw, rough);
            let resolved = self.predecode(origin.raw, rough);
            // Each block predecodes the whole shot; the fusion counts it.
            if self.windows.as_ref().is_some_and(|windows| windows.is_last(index)) {
                self.count_predecoded(resolved);
            }
        }
        let payload = origin.by_rounds.then(|| self.parts.pipe.table.payload(origin.ticket.slot));
        let Some(windows) = &self.windows else { unreachable!("there are blocks") };
        let Rough { syndrome, flips, .. } = rough;
        let word = |word: u32| payload.map_or_else(|| syndrome[word as usize], |payload| payload[word as usize].load());
        windows.block(job, index, began, word, flips)
    }

    /// Recovers from a panic in a decode of `stream`: rebuilds its matchers.
    fn recover(&mut self, payload: Box<dyn std::any::Any + Send>, stream: u32) -> ErrorCode {
        memory::excused(|| {
            drop(payload);
            memory::lend(|| {
                self.matchers.renew(stream);
                self.windows.iter_mut().for_each(WindowBench::renew);
            });
        });
        ErrorCode::DecoderPanic
    }

    /// Counts a decode that begins.
    ///
    /// # Why it does not stamp the slot of a whole shot
    /// The stamps' line is the path's: it would go to the worker's core and back. The graph role
    /// stamps when it answers; until then a reader finds the shot in `task`.
    fn count_decoding(&self, phase: Phase) {
        // Warm-up shots belong to no stream and finish before Live.
        if phase != Phase::Warmup {
            board::add(&self.block().decoding, 1);
        }
    }

    /// Decodes a whole shot into `self.observables`, unless it has been answered.
    fn decode(
        &mut self,
        job: &Job,
        shot: &ShotLine,
        rough: &mut Rough<'_>,
        began: Ticks,
        frame: &Frame<'_>,
    ) -> Result<AnsweredBy, ErrorCode> {
        let pipe = &self.parts.pipe;
        let ticket = Ticket { slot: u32::from(shot.slot), generation: shot.generation };
        let limit = frame.clock().rate().ticks(MAY_HAVE_EXPIRED);
        if began.since(shot.assigned) > limit && pipe.table.is_open(ticket) == TicketView::Closed {
            return Err(ErrorCode::ShotDeadline);
        }
        if self.fits_line {
            let (detectors, flips) = shot.words.split_at(rough.syndrome.len());
            let syndrome = if shot.is_raw() { &mut *rough.raw } else { &mut *rough.syndrome };
            syndrome.copy_from_slice(detectors);
            rough.flips.copy_from_slice(&flips[..rough.flips.len()]);
        } else {
            read_shot(pipe, job, shot.is_raw(), rough);
        }
        let panics = frame.phase != Phase::Warmup && self.parts.injector.decode_panics();
        let left = shot.left_at(began);
        catch_unwind(AssertUnwindSafe(|| self.attempt(shot, rough, left, panics)))
            .unwrap_or_else(|payload| Err(self.recover(payload, shot.stream)))
    }

    /// `left`: ticks to the shot's deadline, if it has one.
    fn attempt(
        &mut self,
        shot: &ShotLine,
        rough: &mut Rough<'_>,
        left: Option<u64>,
        panics: bool,
    ) -> Result<AnsweredBy, ErrorCode> {
        assert!(!panics, "injected");
        let resolved = self.predecode(shot.is_raw(), rough);
        if shot.stream != WARM_STREAM {
            self.count_predecoded(resolved);
        }
        let (matcher, by) = match left {
            None => self.matchers.of(shot.stream),
            Some(left) => {
                let events = rough.syndrome.iter().map(|word| word.count_ones()).sum();
                let is_behind = self.parts.pipe.deadlines.as_ref().is_some_and(|of| of.is_behind());
                let pending = Pending { events, left, is_behind };
                let choice = self.matchers.choose(shot.stream, pending);
                self.chosen = Some((choice, events));
                self.matchers.chosen(shot.stream, choice).ok_or(ErrorCode::DeadlineTooNear)?
            }
        };
        let decoded = matcher.decode(rough.syndrome, &mut self.observables).map_err(error_code)?;
        for (observable, flip) in self.observables.iter_mut().zip(&*rough.flips) {
            *observable ^= flip;
        }
        Ok(by.with_gap(decoded.gap))
    }

    /// Predecodes a shot here if it did not pass the device. Returns how many of its detection events that resolved.
    fn predecode(&mut self, is_raw: bool, rough: &mut Rough<'_>) -> u32 {
        if is_raw { self.parts.predecoder.predecode(rough.raw, rough.syndrome, rough.flips).resolved } else { 0 }
    }

    fn count_predecoded(&self, events: u32) {
        if events > 0 {
            board::add(&self.block().predecoded_events, u64::from(events));
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

/// The error word of a shot that could not be decoded.
fn error_code(error: DecodeError) -> ErrorCode {
    match error {
        DecodeError::Plugin(fault) => fault.code(),
        DecodeError::Unmatchable | DecodeError::Declined => ErrorCode::Unmatchable,
    }
}

/// Reads a shot from its job buffer: the raw syndrome, or what the device left of it and the bits
/// already flipped.
fn read_shot(pipe: &Pipe, job: &Job, is_raw: bool, rough: &mut Rough<'_>) {
    if is_raw {
        read_words(pipe.jobs.detectors(job), rough.raw);
    } else {
        read_words(pipe.jobs.detectors(job), rough.syndrome);
        read_words(pipe.jobs.observables(job), rough.flips);
    }
}

impl Drop for Decoder {
    /// Runs at the end of its thread, after the hot loop.
    fn drop(&mut self) {
        if let Some(times) = &self.bench.parts.times {
            // The receiver may be gone.
            let _ = times.send(self.worker.events().copied().collect());
        }
    }
}

impl Role for Decoder {
    fn kind(&self) -> RoleKind {
        RoleKind::Decode
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        if self.bench.parts.changes.is_waiting() {
            self.bench.change(frame);
        }
        // The frame's arena has no room: other roles of this thread have used it. The shots wait
        // for the next frame.
        let Some(mut rough) = self.bench.rough(frame) else { return Work(0) };
        let bench = &mut self.bench;
        // A task sends at most one result.
        let room = BUDGET_ITEMS.min(bench.parts.lane.results.room() as u32);
        let mut items = self.worker.work_by(room, |work| bench.run(work, &mut rough, frame));
        items += self.bench.run_lane(BUDGET_ITEMS - items, &mut rough, frame);
        self.judge();
        if items > 0 {
            self.publish(frame);
        }
        Work(items)
    }

    fn is_drained(&self) -> bool {
        self.worker.is_idle()
    }
}

#[cfg(test)]
mod tests;
