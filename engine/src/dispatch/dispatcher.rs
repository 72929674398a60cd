//! Dispatch: takes shots in ring order, assigns each a worker, launches.
//!
//! Owns the consumer's end of rx and the dispatcher's end of the workers. Bounds: 64 shots a frame.
//! It checks for a free worker and job before it takes a shot; without them the shot stays in its
//! slot. Dispatch answers a shot that cannot proceed (bad address, unknown stream, overdue, refused
//! launch) with an error word. A launch of unknown result may complete, so dispatch only reports
//! it, and poll answers it.
//!
//! When every worker is quarantined it declares the device lost and passes shots to the CPU
//! predecoder until the device has recovered. Without a device every shot goes there.

use super::poller::PUBLISH_EVERY;
use crate::board::{self, DispatchBlock};
use crate::device::{Launch, Launched};
use crate::fault::{EventCode, FaultCode};
use crate::hot::{BUDGET_ITEMS, BatchClock, CallGaps, Frame, Role, RoleError, WARM_STREAM, Work};
use crate::pipe::{Pipe, ToGraph};
use crate::profile::OverflowStrategy;
use crate::roles::RoleKind;
use crate::streams::OverflowOutcome;
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::health::Health;
use pinwheel_edge::slot::jobs::{FreeJobs, Origin};
use pinwheel_edge::slot::table::{Arrived, DispatchEnd};
use pinwheel_edge::slot::word::{self, ErrorCode};
use pinwheel_edge::slot::workers::{DispatchWorkers, Failure, Mail};
use pinwheel_edge::spin::Phase;

/// The dispatch role.
pub struct Dispatcher<L> {
    pipe: Pipe,
    end: DispatchEnd,
    workers: DispatchWorkers,
    launcher: L,
    jobs: FreeJobs,
    to_graph: ToGraph,
    call_gaps: CallGaps,
    clock: BatchClock,
    launches: u64,
    /// Jobs taken and jobs passed on, as last published.
    shown: (u64, u64),
    publish_every: Ticks,
    /// When the depth of the ring to the graph role was last published.
    depth_shown: Ticks,
}

/// The outcome of one attempt to move a shot.
enum Step {
    /// The shot left its slot's rx.
    Moved,
    /// The shot has to wait.
    Wait,
}

impl<L: Launch> Dispatcher<L> {
    /// Builds the role from its endpoints.
    pub fn new(
        pipe: Pipe,
        end: DispatchEnd,
        workers: DispatchWorkers,
        launcher: L,
        jobs: FreeJobs,
        to_graph: ToGraph,
        rate: TickRate,
    ) -> Dispatcher<L> {
        Dispatcher {
            pipe,
            end,
            workers,
            launcher,
            jobs,
            to_graph,
            call_gaps: CallGaps::new(rate),
            clock: BatchClock::new(),
            launches: 0,
            shown: (0, 0),
            publish_every: rate.ticks(PUBLISH_EVERY),
            depth_shown: Ticks(0),
        }
    }

    /// Moves a shot on, at `now`.
    fn step(&mut self, arrived: &Arrived, now: Ticks, frame: &Frame<'_>) -> Step {
        // Any shot may need an answer here.
        if !self.to_graph.has_room() {
            return Step::Wait;
        }
        if self.pipe.table.payload_at(arrived.address).is_none() {
            // For a refused shot, the feed stored the reason in the address.
            let code = word::error_in(arrived.address).unwrap_or(ErrorCode::BadAddress);
            return self.refuse(arrived, now, frame, code);
        }
        if arrived.stream >= self.pipe.streams && arrived.stream != WARM_STREAM {
            return self.refuse(arrived, now, frame, ErrorCode::UnknownStream);
        }
        let limit = frame.clock().rate().ticks(Nanos(self.pipe.settings.shot_deadline_ns()));
        if self.call_gaps.is_overdue(arrived.submitted, frame.now, limit) {
            return self.refuse(arrived, now, frame, ErrorCode::ShotDeadline);
        }
        if arrived.by_rounds {
            return self.send_by_rounds(arrived, now);
        }
        if !L::EXISTS {
            return self.send_to_cpu(arrived, now);
        }
        match self.pipe.health.current() {
            Health::Online => self.send_to_device(arrived, now, frame),
            Health::Lost | Health::Resetting | Health::Reset => self.fall_back(arrived, now),
            Health::Recovered => {
                self.recover(frame);
                self.send_to_device(arrived, now, frame)
            }
        }
    }

    /// Answers a shot that cannot proceed. Like every answer it comes after the hold and uses the
    /// ticket.
    fn refuse(&mut self, arrived: &Arrived, now: Ticks, frame: &Frame<'_>, code: ErrorCode) -> Step {
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, None);
        self.fail(ticket, code, frame);
        self.end.retire();
        Step::Moved
    }

    fn fail(&mut self, ticket: Ticket, code: ErrorCode, frame: &Frame<'_>) {
        if !self.pipe.fail(ticket, code, frame.ticks(), &mut self.to_graph) {
            board::add(&self.block().claims_lost, 1);
        }
    }

    fn send_to_device(&mut self, arrived: &Arrived, now: Ticks, frame: &Frame<'_>) -> Step {
        let Some(worker) = self.workers.take_idle() else {
            board::add(&self.block().worker_waits, 1);
            if self.workers.all_quarantined() {
                self.declare_lost(frame);
                return Step::Wait;
            }
            return self.past_the_device(arrived, now);
        };
        let Some(job) = self.jobs.take() else {
            self.workers.untake(worker);
            return Step::Wait;
        };
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, Some(worker));
        self.pipe.jobs.set_shot(&job, arrived.stream, arrived.sequence);
        let number = job.number();
        let generation = self.workers.start(worker, arrived.address, job, ticket, now);
        let mail = Mail { generation, address: arrived.address, job: number };
        match self.launcher.launch(worker, mail, frame) {
            Launched::Started => {
                self.launches += 1;
                if arrived.stream != WARM_STREAM {
                    board::add(&self.block().launched, 1);
                }
            }
            Launched::NotStarted => {
                self.workers.fail(worker, Failure::NotStarted);
                self.fail(ticket, ErrorCode::LaunchFailed, frame);
            }
            how @ (Launched::Unknown | Launched::Lost) => self.give_up(worker, how),
        }
        self.end.retire();
        Step::Moved
    }

    /// Has poll quarantine a worker whose launch may run, and answer its shot.
    fn give_up(&mut self, worker: usize, how: Launched) {
        self.workers.fail(worker, if how == Launched::Lost { Failure::Lost } else { Failure::Unknown });
    }

    /// Starts the postponed launches, and gives up those that failed: each is its worker's last
    /// launch.
    fn flush(&mut self, frame: &Frame<'_>) {
        while let Some(failed) = self.launcher.flush(frame) {
            let mut workers = failed.workers;
            while workers != 0 {
                self.give_up(workers.trailing_zeros() as usize, failed.how);
                workers &= workers - 1;
            }
        }
    }

    /// Submits a shot that arrives by rounds: the graph waits for the rounds; the device never
    /// receives them together.
    fn send_by_rounds(&mut self, arrived: &Arrived, now: Ticks) -> Step {
        let Some(job) = self.jobs.take() else { return Step::Wait };
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, None);
        self.pipe.jobs.set_shot(&job, arrived.stream, arrived.sequence);
        let origin = Origin { ticket, completed: now, worker: None, raw: true, by_rounds: true };
        self.pipe.jobs.set_origin(&job, &origin);
        board::add(&self.block().by_rounds, 1);
        self.to_graph.pass(job);
        self.end.retire();
        Step::Moved
    }

    /// Without a free worker: sends the shot to the CPU if shots wait for a slot and the profile
    /// allows it.
    fn past_the_device(&mut self, arrived: &Arrived, now: Ticks) -> Step {
        let is_wanted = self.pipe.settings.overflow_strategy() == OverflowStrategy::CpuFallback;
        if !is_wanted || !self.pipe.pressure.is_on() || arrived.stream >= self.pipe.streams {
            return Step::Wait;
        }
        let step = self.fall_back(arrived, now);
        if matches!(step, Step::Moved) {
            let (board, outcome) = (&self.pipe.board, OverflowOutcome::SentToCpu as usize);
            board::add(&board.feed(self.pipe.silo).overflow[outcome], 1);
            board::add(&board.stream_feed(arrived.stream as usize).overflow[outcome], 1);
        }
        step
    }

    /// Sends a shot past a device that cannot take it.
    fn fall_back(&mut self, arrived: &Arrived, now: Ticks) -> Step {
        let step = self.send_to_cpu(arrived, now);
        if matches!(step, Step::Moved) {
            board::add(&self.block().cpu_fallbacks, 1);
        }
        step
    }

    /// The CPU path: the raw syndrome becomes a job that the decoder predecodes itself.
    fn send_to_cpu(&mut self, arrived: &Arrived, now: Ticks) -> Step {
        let Some(job) = self.jobs.take() else { return Step::Wait };
        let Some(payload) = self.pipe.table.payload_at(arrived.address) else {
            unreachable!("a shot with a bad address was refused")
        };
        for (to, from) in self.pipe.jobs.detectors(&job).iter().zip(payload) {
            to.store(from.load());
        }
        self.pipe.jobs.observables(&job).iter().for_each(|word| word.store(0));
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, None);
        self.pipe.jobs.set_shot(&job, arrived.stream, arrived.sequence);
        self.pipe.jobs.set_origin(&job, &Origin { ticket, completed: now, worker: None, raw: true, by_rounds: false });
        self.to_graph.pass(job);
        self.end.retire();
        Step::Moved
    }

    fn declare_lost(&mut self, frame: &Frame<'_>) {
        self.launcher.release();
        self.pipe.health.advance(Health::Online);
        board::add(&self.block().device_losses, 1);
        self.pipe.board.fault(self.pipe.silo, FaultCode::DeviceLost, frame.now, self.launches);
        frame.log(EventCode::DeviceLost, [self.pipe.silo as u64, self.launches]);
    }

    fn recover(&mut self, frame: &Frame<'_>) {
        self.workers.recover();
        self.launcher.resume();
        self.pipe.health.advance(Health::Recovered);
        self.pipe.board.fault(self.pipe.silo, FaultCode::DeviceRecovered, frame.now, self.launches);
        frame.log(EventCode::DeviceRecovered, [self.pipe.silo as u64, self.launches]);
    }

    fn stamp(&self, arrived: &Arrived, now: Ticks, worker: Option<usize>) {
        let stamps = &self.pipe.board.slots(self.pipe.silo)[arrived.slot as usize];
        board::set(&stamps.worker, worker.map_or(0, |w| w as u64 + 1));
        board::set(&stamps.dispatched, now.0);
        if arrived.stream != WARM_STREAM {
            board::add(&self.block().dispatched, 1);
        }
    }

    fn block(&self) -> &DispatchBlock {
        self.pipe.board.dispatch(self.pipe.silo)
    }

    /// `began`: when this call read its first shot. The frame's start would include the time of the
    /// roles before this one.
    fn publish(&mut self, frame: &Frame<'_>, moved: u32, began: Option<Ticks>) {
        let block = self.pipe.board.dispatch(self.pipe.silo);
        let state = match self.pipe.health.current() {
            Health::Online | Health::Recovered => 0,
            Health::Lost => 1,
            Health::Resetting | Health::Reset => 2,
        };
        board::set(&block.device_state, state);
        // By differences: a path that is made again after a death begins at 0.
        let (taken, pushed) = (self.jobs.taken(), self.to_graph.passed());
        board::set(&block.jobs_taken, board::get(&block.jobs_taken).wrapping_add(taken.wrapping_sub(self.shown.0)));
        board::add(&block.ready_pushed, pushed - self.shown.1);
        self.shown = (taken, pushed);
        if !L::EXISTS && frame.now.since(self.depth_shown) >= self.publish_every {
            self.depth_shown = frame.now;
            board::set(&self.pipe.board.poll(self.pipe.silo).ready_depth, self.to_graph.depth());
        }
        if moved > 0 {
            board::set(&block.position, self.end.taken());
            if let Some(began) = began.filter(|_| frame.phase != Phase::Warmup) {
                board::add(&block.busy_ticks, frame.ticks().since(began).0);
            }
        }
    }
}

impl<L: Launch> Role for Dispatcher<L> {
    fn kind(&self) -> RoleKind {
        RoleKind::Dispatch
    }

    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        let (role, silo) = (RoleKind::Dispatch, self.pipe.silo as u32);
        self.launcher.warm_up().map_err(|reason| RoleError { role, silo, reason })
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        self.call_gaps.note(frame.now);
        let (mut moved, mut began, mut clock) = (0, None, self.clock);
        let mut readings = clock.begin(frame);
        while moved < BUDGET_ITEMS {
            let Some(arrived) = self.end.arrived() else { break };
            // A shot of this batch may have been submitted after the clock reading.
            let now = readings.next(frame).max(arrived.submitted);
            if began.is_none() {
                began = Some(now);
                self.jobs.collect();
            }
            match self.step(&arrived, now, frame) {
                Step::Moved => moved += 1,
                Step::Wait => break,
            }
        }
        self.clock = clock;
        self.flush(frame);
        self.publish(frame, moved, began);
        Work(moved)
    }

    fn is_drained(&self) -> bool {
        self.end.arrived().is_none()
    }
}
