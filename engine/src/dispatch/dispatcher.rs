//! Dispatch: takes shots in ring order, gives each a worker, launches.
//!
//! Owns the consumer's end of rx and the dispatcher's end of the workers. Bounds: 64 shots a frame. It checks for a
//! worker and a job before it takes a shot; with none it leaves the shot where it is and returns. A shot that can not
//! go on (bad address, unknown stream, overdue, refused launch) is answered here, with an error word.
//!
//! When every worker is quarantined it declares the device lost and hands shots to the CPU predecoder until the device
//! is back.

use super::{Pipe, Tombstones};
use crate::board::snapshot::OverflowOutcome;
use crate::board::{self, DispatchBlock};
use crate::device::{Failed, Launch, Launched};
use crate::fault::{EventCode, FaultCode};
use crate::hot::{BUDGET_ITEMS, Frame, Frozen, Role, RoleError, WARM_STREAM, Work};
use crate::profile::{OverflowStrategy, RoleKind};
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::health::Health;
use pinwheel_edge::slot::jobs::{Job, Origin};
use pinwheel_edge::slot::table::{Arrived, DispatchEnd};
use pinwheel_edge::slot::word::{self, ErrorCode};
use pinwheel_edge::slot::workers::{DispatchWorkers, Mail};
use pinwheel_edge::spin::Phase;

/// The role.
pub struct Dispatcher<L> {
    pipe: Pipe,
    end: DispatchEnd,
    workers: DispatchWorkers,
    launcher: L,
    tombstones: Tombstones,
    frozen: Frozen,
    launches: u64,
    /// By worker: the generation and the ticket of its last launch, for launches that fail after their call.
    last: Box<[(u64, Ticket)]>,
    /// Of these: still to be answered, when there is room.
    failed: Option<Failed>,
}

/// What one attempt to move a shot came to.
enum Step {
    /// The shot left its slot's rx.
    Moved,
    /// It has to wait.
    Wait,
}

impl<L: Launch> Dispatcher<L> {
    /// The role with its ends.
    #[must_use]
    pub fn new(
        pipe: Pipe,
        end: DispatchEnd,
        workers: DispatchWorkers,
        launcher: L,
        tombstones: Tombstones,
        rate: TickRate,
    ) -> Dispatcher<L> {
        let none = (0, Ticket { slot: 0, generation: 0 });
        let last = vec![none; workers.bank().len()].into();
        Dispatcher {
            pipe,
            end,
            workers,
            launcher,
            tombstones,
            frozen: Frozen::new(rate),
            launches: 0,
            last,
            failed: None,
        }
    }

    fn step(&mut self, arrived: &Arrived, frame: &Frame<'_>) -> Step {
        // Any shot may have to be answered here.
        if !self.tombstones.has_room() {
            return Step::Wait;
        }
        if self.pipe.table.payload_at(arrived.address).is_none() {
            // A shot that the feed refused has the reason there.
            let code = word::error_in(arrived.address).unwrap_or(ErrorCode::BadAddress);
            return self.refuse(arrived, frame, code);
        }
        if arrived.stream >= self.pipe.streams && arrived.stream != WARM_STREAM {
            return self.refuse(arrived, frame, ErrorCode::UnknownStream);
        }
        let limit = frame.clock().rate().ticks(Nanos(self.pipe.settings.shot_deadline_ns()));
        if self.frozen.is_overdue(arrived.submitted, frame.now, limit) {
            return self.refuse(arrived, frame, ErrorCode::ShotDeadline);
        }
        if arrived.by_rounds {
            return self.send_by_rounds(arrived, frame);
        }
        match self.pipe.health.current() {
            Health::Online => self.send_to_device(arrived, frame),
            Health::Lost | Health::Resetting | Health::Reset => self.send_to_cpu(arrived, frame),
            Health::Recovered => {
                self.recover(frame);
                self.send_to_device(arrived, frame)
            }
        }
    }

    /// Answers a shot that cannot go on. Like every answer it comes after the hold and by the ticket.
    fn refuse(&mut self, arrived: &Arrived, frame: &Frame<'_>, code: ErrorCode) -> Step {
        let now = frame.ticks();
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, None);
        self.fail(ticket, code, frame);
        self.end.retire();
        Step::Moved
    }

    fn fail(&mut self, ticket: Ticket, code: ErrorCode, frame: &Frame<'_>) {
        if !self.pipe.fail(ticket, code, frame.ticks(), &mut self.tombstones) {
            board::add(&self.block().claims_lost, 1);
        }
    }

    fn send_to_device(&mut self, arrived: &Arrived, frame: &Frame<'_>) -> Step {
        let Some(worker) = self.workers.take_idle() else {
            board::add(&self.block().worker_waits, 1);
            if self.workers.all_quarantined() {
                self.declare_lost(frame);
                return Step::Wait;
            }
            return self.past_the_device(arrived, frame);
        };
        let Some(job) = self.pipe.jobs.take() else {
            self.workers.untake(worker);
            return Step::Wait;
        };
        let now = frame.ticks();
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, Some(worker));
        self.pipe.jobs.set_shot(&job, arrived.stream, arrived.sequence);
        let number = job.number();
        let generation = self.workers.start(worker, arrived.address, job, ticket, now);
        let mail = Mail { generation, address: arrived.address, job: number };
        self.last[worker] = (generation, ticket);
        match self.launcher.launch(worker, mail, frame) {
            Launched::Started => {
                self.launches += 1;
                if arrived.stream != WARM_STREAM {
                    board::add(&self.block().launched, 1);
                }
            }
            Launched::NotStarted => {
                if let Some(job) = self.workers.abort(worker, generation) {
                    self.pipe.jobs.give(job);
                }
                self.fail(ticket, ErrorCode::LaunchFailed, frame);
            }
            Launched::Unknown => self.give_up(worker, generation, ticket, ErrorCode::LaunchUnknown, frame),
            Launched::Lost => self.give_up(worker, generation, ticket, ErrorCode::DeviceLost, frame),
        }
        self.end.retire();
        Step::Moved
    }

    /// Quarantines a worker after a launch that may have run. If it has completed all the same, its decode answers.
    fn give_up(&mut self, worker: usize, generation: u64, ticket: Ticket, code: ErrorCode, frame: &Frame<'_>) {
        if self.workers.quarantine(worker, generation) {
            board::add(&self.block().quarantined, 1);
            self.pipe.board.fault(self.pipe.silo, FaultCode::WorkerQuarantined, frame.now, worker as u64);
            let numbers = [self.pipe.silo as u64, worker as u64, u64::from(ticket.slot), code as u64];
            frame.log(EventCode::WorkerQuarantined, numbers);
            self.fail(ticket, code, frame);
        }
    }

    /// Launches what was put off, and answers what could not be launched.
    fn flush(&mut self, frame: &Frame<'_>) {
        while let Some(Failed { mut workers, how }) = self.failed.take().or_else(|| self.launcher.flush(frame)) {
            let code = if how == Launched::Lost { ErrorCode::DeviceLost } else { ErrorCode::LaunchUnknown };
            while workers != 0 {
                if !self.tombstones.has_room() {
                    self.failed = Some(Failed { workers, how });
                    return;
                }
                let worker = workers.trailing_zeros() as usize;
                let (generation, ticket) = self.last[worker];
                self.give_up(worker, generation, ticket, code, frame);
                workers &= workers - 1;
            }
        }
    }

    /// A shot that comes by rounds: the graph waits for them, and the device never sees them together.
    fn send_by_rounds(&mut self, arrived: &Arrived, frame: &Frame<'_>) -> Step {
        let Some(job) = self.pipe.jobs.take() else { return Step::Wait };
        let now = frame.ticks();
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, None);
        self.pipe.jobs.set_shot(&job, arrived.stream, arrived.sequence);
        let origin = Origin { ticket, completed: now, worker: None, raw: true, by_rounds: true };
        self.pipe.jobs.set_origin(&job, &origin);
        board::add(&self.block().by_rounds, 1);
        self.pipe.hand_on(job);
        self.end.retire();
        Step::Moved
    }

    /// With no worker free: on to the CPU where shots wait for a slot and the profile wants that, else nowhere.
    fn past_the_device(&mut self, arrived: &Arrived, frame: &Frame<'_>) -> Step {
        let is_wanted = self.pipe.settings.overflow_strategy() == OverflowStrategy::CpuFallback;
        if !is_wanted || !self.pipe.pressure.is_on() || arrived.stream >= self.pipe.streams {
            return Step::Wait;
        }
        let step = self.send_to_cpu(arrived, frame);
        if matches!(step, Step::Moved) {
            let (board, outcome) = (&self.pipe.board, OverflowOutcome::SentToCpu as usize);
            board::add(&board.feed(self.pipe.silo).overflow[outcome], 1);
            board::add(&board.stream_feed(arrived.stream as usize).overflow[outcome], 1);
        }
        step
    }

    /// The CPU path: the raw syndrome becomes a job that the decoder predecodes itself.
    fn send_to_cpu(&mut self, arrived: &Arrived, frame: &Frame<'_>) -> Step {
        let Some(job) = self.pipe.jobs.take() else { return Step::Wait };
        let Some(payload) = self.pipe.table.payload_at(arrived.address) else {
            self.pipe.jobs.give(job);
            return self.refuse(arrived, frame, ErrorCode::BadAddress);
        };
        let now = frame.ticks();
        for (to, from) in self.pipe.jobs.detectors(&job).iter().zip(payload) {
            to.store(from.load());
        }
        self.pipe.jobs.observables(&job).iter().for_each(|word| word.store(0));
        let ticket = self.end.hold(arrived, now);
        self.stamp(arrived, now, None);
        self.pipe.jobs.set_shot(&job, arrived.stream, arrived.sequence);
        self.pipe.jobs.set_origin(&job, &Origin { ticket, completed: now, worker: None, raw: true, by_rounds: false });
        board::add(&self.block().cpu_fallbacks, 1);
        self.pipe.hand_on(job);
        self.end.retire();
        Step::Moved
    }

    fn declare_lost(&mut self, frame: &Frame<'_>) {
        self.launcher.let_go();
        self.pipe.health.advance(Health::Online);
        board::add(&self.block().device_losses, 1);
        self.pipe.board.fault(self.pipe.silo, FaultCode::DeviceLost, frame.now, self.launches);
        frame.log(EventCode::DeviceLost, [self.pipe.silo as u64, self.launches]);
    }

    fn recover(&mut self, frame: &Frame<'_>) {
        let jobs = &self.pipe.jobs;
        self.workers.recover(|job: Job| jobs.give(job));
        self.launcher.take_up();
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

    /// `began`: when this call saw its first shot. The frame's own beginning would charge us with the roles before us.
    fn publish(&self, frame: &Frame<'_>, moved: u32, began: Option<Ticks>) {
        let block = self.block();
        let state = match self.pipe.health.current() {
            Health::Online | Health::Recovered => 0,
            Health::Lost => 1,
            Health::Resetting | Health::Reset => 2,
        };
        board::set(&block.device_state, state);
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
        self.frozen.note(frame.now);
        let (mut moved, mut began) = (0, None);
        while moved < BUDGET_ITEMS {
            let Some(arrived) = self.end.arrived() else { break };
            began.get_or_insert_with(|| frame.ticks());
            match self.step(&arrived, frame) {
                Step::Moved => moved += 1,
                Step::Wait => break,
            }
        }
        self.flush(frame);
        self.publish(frame, moved, began);
        Work(moved)
    }

    fn is_drained(&self) -> bool {
        self.end.arrived().is_none()
    }
}
