//! The control thread: moves the engine through its phases and ends it.
//!
//! Owns the hot threads' handles, the cold parts of the silos, the wall clock and the decision to
//! end. Runs on a cold thread with a period of [`TICK`]. Bounds: each phase has a limit, see the
//! constants; a drain has the profile's grace. Reports a thread that does not end, and does not
//! join it.

use super::cold::{self, ColdThreads, Stop, UntilEnded};
use super::core_claims::CoreClaims;
use super::detections::StreamCounts;
use super::remote;
use super::shadow::ShadowControl;
use super::silo_threads::HotThreads;
use super::slow_commands::SlowCommands;
use super::steer::SharedSteering;
use super::wall::Wall;
use super::watchdog::Running;
use super::wire::GOES_ON;
use super::{EndedBy, EnvironmentResult, Outcome, Requests, header};
use crate::board::{self, Board, ThreadBlock};
use crate::graph::Event;
use crate::hot::{self, CallGaps, Settings, Shared, ThreadReport, WARM_STREAM, Warming};
use crate::profile::Rate;
use crate::roles::ThreadState;
use crate::silo::{Silo, SiloSupervisor};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::Phase;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);
/// Shortest warm-up: enough shots to use every path and page.
const WARM: Nanos = Nanos(50_000_000);
/// With rate Auto: time to settle, then time to measure; 2 s together.
const MEASURE_SETTLE: Nanos = Nanos(500_000_000);
const MEASURE: Nanos = Nanos(1_500_000_000);
/// Longest wait for roles to warm up, and for the answers to warm-up shots.
const WARM_LIMIT: Nanos = Nanos(30_000_000_000);
/// Time after the grace for harvest to take the error answers, also if the machine does not
/// schedule its thread for some seconds.
const LAST_HARVEST: Nanos = Nanos(5_000_000_000);
/// Time and frames of each thread without an answer harvested after which none follows.
const LAST_QUIET: (Nanos, u64) = (Nanos(1_000_000_000), 1_000);
/// Longest wait for threads to end after Shutdown, and for the sink. A disk or core that is
/// unavailable for some seconds loses no answer.
const LEAVE_LIMIT: Nanos = Nanos(10_000_000_000);

/// Limits at which a run ends by itself.
pub(super) struct End {
    pub(super) count: Option<u64>,
    pub(super) duration: Option<Duration>,
}

/// Cold threads and the channels of their results.
pub(super) struct ColdSide {
    pub(super) stop: Stop,
    pub(super) sink: Option<Receiver<Result<(), String>>>,
    pub(super) events: Option<Receiver<Result<(), String>>>,
    pub(super) recorder: Option<Receiver<()>>,
    pub(super) input_error: Option<Receiver<Option<String>>>,
    pub(super) counted: Option<Receiver<Vec<StreamCounts>>>,
    pub(super) measured: Option<Receiver<()>>,
    pub(super) shadow: (ShadowControl, Receiver<()>),
    pub(super) environment: Option<Receiver<EnvironmentResult>>,
    pub(super) neighbours: Option<UntilEnded>,
    pub(super) placing: Option<UntilEnded>,
    pub(super) watchdog: Option<Running>,
    pub(super) remote: Option<remote::Running>,
}

/// Task times of a silo, from those of its threads that have ended.
fn task_times((silo, wired): (u32, &Silo)) -> impl Iterator<Item = (u32, Event)> {
    wired.task_times.try_iter().flatten().map(move |event| (silo, event))
}

/// State of the control thread.
pub(super) struct Control {
    pub(super) shared: Shared,
    pub(super) steering: SharedSteering,
    pub(super) requests: Arc<Requests>,
    pub(super) silos: Vec<Silo>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) hot: HotThreads,
    pub(super) supervisor: SiloSupervisor,
    pub(super) settings: Arc<Settings>,
    pub(super) end: End,
    pub(super) wall: Wall,
    /// Has the profile of a limited switch return.
    pub(super) slow: SlowCommands,
    /// Claims on the hot cores, held until the threads have ended.
    pub(super) claims: Option<Arc<CoreClaims>>,
    /// Whether other processes send the shots, at their own rate.
    pub(super) is_live: bool,
    /// By thread: whether the location of its first allocation is known.
    pub(super) named: Vec<bool>,
}

impl Control {
    pub(super) fn spawn(mut self, cold: ColdSide, threads: &ColdThreads) -> io::Result<JoinHandle<Outcome>> {
        threads.spawn("control", move || {
            let ended = self.warm_up();
            let live_from = self.now();
            let ended_by = ended.unwrap_or_else(|| {
                self.silos.iter_mut().for_each(|silo| silo.arena.seal());
                self.enter(Phase::Live);
                self.live(live_from)
            });
            let elapsed_live_ns = self.since(live_from).0;
            let unanswered = self.drain();
            self.enter(Phase::Shutdown);
            self.leave();
            // Ended before log and recorder, so that both contain the alarms of its last check.
            if let Some(watchdog) = cold.watchdog {
                watchdog.end();
            }
            cold.stop.stop();
            let (shadow, shadow_ended) = cold.shadow;
            shadow.end();
            [cold.placing, cold.neighbours].into_iter().flatten().for_each(UntilEnded::end);
            self.tell_what_follows();
            let sink = cold.sink.map(|sink| finish(&sink, "some answers", "check the program that reads them"));
            // A recorder whose disk hangs is left behind; what it has written opens all the same.
            let _ = cold.recorder.map(|ended| ended.recv_timeout(Duration::from_nanos(LEAVE_LIMIT.0)));
            let events = cold.events.map(|events| finish(&events, "events: some", "check the disk"));
            let input_error = cold.input_error.and_then(|reader| finish_input(&reader, ended_by));
            let limit = Duration::from_nanos(LEAVE_LIMIT.0);
            let environment = cold.environment.and_then(|report| report.recv_timeout(limit).ok());
            let _written = cold.measured.map(|measured| measured.recv_timeout(limit));
            let counted = cold.counted.and_then(|counted| counted.recv_timeout(limit).ok()).unwrap_or_default();
            // A shadow that is far behind is left behind; the report says how many samples it has not compared.
            let _ = shadow_ended.recv_timeout(limit);
            let ended_by = match (ended_by, &input_error) {
                (EndedBy::Input, Some(_)) => EndedBy::Fault,
                (by, _) => by,
            };
            if let Some(remote) = cold.remote {
                remote.end();
            }
            let snapshot = self.shared.board.snapshot(&self.shared.clock);
            let task_times = (0..).zip(&self.silos).flat_map(task_times).collect();
            Outcome {
                snapshot,
                ended_by,
                elapsed_live_ns,
                unanswered,
                sink,
                events,
                input_error,
                counted,
                environment,
                task_times,
            }
        })
    }

    /// Notes for viewers of the board that this run is over and the process continues.
    fn tell_what_follows(&self) {
        if let Some(to) = self.requests.follows() {
            self.note(&format!("{GOES_ON}: {to}"));
        }
    }

    fn board(&self) -> &Board {
        &self.shared.board
    }

    fn now(&self) -> Ticks {
        self.shared.clock.ticks()
    }

    fn since(&self, from: Ticks) -> Nanos {
        self.shared.clock.rate().nanos(self.now().since(from))
    }

    fn enter(&self, phase: Phase) {
        self.shared.phase.advance(phase);
        board::set(&self.board().header().phase, self.shared.phase.current() as u64);
    }

    /// One period: runs the cold work of all silos.
    fn tick(&mut self) {
        cold::sleep(TICK);
        let (now, rate) = (self.now(), self.shared.clock.rate());
        for silo in &mut self.silos {
            silo.recovery.step(now, rate);
        }
        self.name_allocations();
        self.wall.step(now, &self.shared.clock, &self.shared.board);
        if self.steering.lock().step(now) {
            let steering = self.steering.clone();
            self.slow.run(move |_| steering.restore());
        }
    }

    /// Publishes where a hot thread first called the allocator.
    fn name_allocations(&mut self) {
        for (thread, named) in self.named.iter_mut().enumerate() {
            *named = *named || hot::name_first_allocation(self.shared.board.thread(thread));
        }
    }

    /// Ticks until `done` or until this process has run for `limit`; `true`: done.
    fn tick_until(&mut self, limit: Nanos, mut done: impl FnMut(&Control) -> bool) -> bool {
        let (from, rate) = (self.now(), self.shared.clock.rate());
        let mut gaps = CallGaps::of_cold_thread(rate);
        loop {
            let now = self.now();
            gaps.note(now);
            if done(self) {
                return true;
            }
            if gaps.is_overdue(from, now, rate.ticks(limit)) {
                return false;
            }
            self.tick();
        }
    }

    /// Warms up the path and sets the rate. Returns a reason to end at once, if there is one.
    fn warm_up(&mut self) -> Option<EndedBy> {
        self.enter(Phase::Warmup);
        if let Some(by) = self.wait_warm() {
            return Some(by);
        }
        self.settings.set_warming(Warming::On);
        let asked = |control: &Control| {
            control.requests.drain().is_some() || control.role_died() || control.has_lost_a_thread()
        };
        // Kept for later profiles, too: any profile with rate Auto uses this rate.
        let own_rate = self.steering.lock().own_rate();
        let mut measured = None;
        if !self.is_live && own_rate == Rate::Auto {
            self.tick_until(MEASURE_SETTLE, asked);
            let (from, before) = (self.now(), self.harvested());
            self.tick_until(MEASURE, asked);
            let (taken, span) = (self.harvested() - before, self.since(from).0.max(1));
            let capacity_hz = taken as f64 * 1e9 / span as f64;
            let origin = format!("auto: half of the {capacity_hz:.0}/s measured in warm-up");
            measured = Some(((capacity_hz / 2.0).max(1.0), origin));
        } else {
            self.tick_until(WARM, asked);
        }
        self.steering.lock().begin(measured);
        self.settings.set_warming(Warming::Off);
        // A feed in the middle of a frame publishes its shots only at the frame's end. Two frames
        // later it has seen the end of warm-up, and its cursor is up to date.
        let frames = self.frames();
        let settled = |control: &Control| control.frames().iter().zip(&frames).all(|(now, then)| *now >= then + 2);
        self.tick_until(WARM_LIMIT, |control| settled(control) && control.all_harvested() || asked(control));
        if let Some(by) = self.requests.drain() {
            return Some(by);
        }
        if self.role_died() || self.has_lost_a_thread() {
            return Some(EndedBy::Fault);
        }
        let stands = self.frames().iter().zip(&frames).position(|(now, then)| *now < then + 2)?;
        self.note(&format!(
            "thread {} has not completed two frames within {} s of warm-up (thousands are normal); look for what \
             blocks it",
            self.board().thread(stands).name.read(),
            WARM_LIMIT.0 / 1_000_000_000
        ));
        Some(EndedBy::Fault)
    }

    /// Waits until every thread has warmed up its roles. Returns a reason to end at once, if there
    /// is one.
    fn wait_warm(&mut self) -> Option<EndedBy> {
        let from = self.now();
        let mut missing = self.threads.len();
        while missing > 0 {
            // Checked before the report: a thread that fails sends its report first and then ends.
            let has_failed = self.role_died() || self.has_lost_a_thread();
            match self.hot.reports.try_recv() {
                Ok(ThreadReport { result: Ok(()), .. }) => {
                    missing -= 1;
                    continue;
                }
                Ok(ThreadReport { result: Err(error), .. }) => {
                    self.note(&error.to_string());
                    return Some(EndedBy::Fault);
                }
                Err(_) => {}
            }
            if let Some(by) = self.requests.drain() {
                return Some(by);
            }
            if has_failed {
                return Some(EndedBy::Fault);
            }
            if self.since(from) >= WARM_LIMIT {
                let (threads, limit_s) = (self.threads.len(), WARM_LIMIT.0 / 1_000_000_000);
                self.note(&format!(
                    "{missing} of {threads} threads are not warm after {limit_s} s; look for a stopped process or an \
                     overloaded machine"
                ));
                return Some(EndedBy::Fault);
            }
            self.tick();
        }
        None
    }

    fn note(&self, text: &str) {
        header::Note::default().write(self.board(), text);
    }

    /// Runs Live until a reason to end; then completes the failover or restart in progress.
    fn live(&mut self, from: Ticks) -> EndedBy {
        let by = self.until_the_end(from);
        loop {
            self.supervisor.step(&mut self.silos, &mut self.hot, self.shared.clock.ticks());
            if self.supervisor.is_settled() || self.has_failed() {
                break;
            }
            self.tick();
        }
        if let Some(why) = self.supervisor.broken() {
            self.note(why);
        }
        by
    }

    fn until_the_end(&mut self, from: Ticks) -> EndedBy {
        loop {
            self.tick();
            if let Some(by) = self.requests.drain() {
                return by;
            }
            self.supervisor.step(&mut self.silos, &mut self.hot, self.shared.clock.ticks());
            if self.has_failed() {
                return EndedBy::Fault;
            }
            if self.end.duration.is_some_and(|duration| u128::from(self.since(from).0) >= duration.as_nanos()) {
                return EndedBy::Duration;
            }
            if (0..self.silos.len()).all(|silo| board::get(&self.board().feed(silo).exhausted) != 0) {
                let submitted: u64 =
                    (0..self.silos.len()).map(|silo| board::get(&self.board().feed(silo).submitted)).sum();
                let by_count = self.end.count.is_some_and(|count| submitted >= count);
                return if by_count { EndedBy::Count } else { EndedBy::Input };
            }
        }
    }

    /// Stops the feed and waits for all answers; after the grace answers the remaining shots with
    /// an error. Returns the shots that still have no answer.
    fn drain(&mut self) -> Vec<(u32, u64)> {
        self.enter(Phase::Drain);
        let grace = self.drain_grace();
        // Checked in this order: a feed at its end has published its last shot, which then counts
        // as not harvested.
        let is_drained = |control: &Control| control.all_drained() && control.all_harvested();
        let has_ended = |control: &Control| control.threads.iter().all(JoinHandle::is_finished);
        self.tick_until(grace, |control| is_drained(control) || control.requests.is_hurried() || has_ended(control));
        // Shots that wait in lanes take the slots that this frees, and answers leave: until both are through.
        let mut last = (self.now(), self.harvested(), self.frames());
        self.tick_until(LAST_HARVEST, |control| {
            let is_over = is_drained(control) || has_ended(control);
            if !is_over {
                control.close_tickets();
            }
            if control.harvested() != last.1 {
                last = (control.now(), control.harvested(), control.frames());
            }
            is_over || !control.all_harvested() && control.are_quiet(last.0, &last.2)
        });
        self.unanswered()
    }

    /// Whether it is long since `from`, and every thread that runs has made many frames since, when
    /// it had made `frames`.
    fn are_quiet(&self, from: Ticks, frames: &[u64]) -> bool {
        let mut threads = self.threads.iter().zip(frames).zip(self.frames());
        self.since(from) >= LAST_QUIET.0
            && threads.all(|((thread, before), now)| thread.is_finished() || now >= before + LAST_QUIET.1)
    }

    fn drain_grace(&self) -> Nanos {
        let grace_s = self.steering.lock().profile().limits.drain_grace_s;
        Nanos::from_millis(u64::from(grace_s) * 1_000)
    }

    /// Answers every open ticket with an error code, from this cold thread.
    fn close_tickets(&self) {
        for (silo, Silo { pipe, .. }) in self.silos.iter().enumerate() {
            let dispatched = board::get(&self.board().dispatch(silo).position);
            let slots = u64::from(pipe.table.geometry().slots);
            for position in dispatched.saturating_sub(slots)..=dispatched {
                // A ticket that is closed, or was never opened, refuses the claim and needs no
                // action.
                let _ = pipe.close(pipe.table.ticket_at(position), ErrorCode::Drained, self.now());
            }
        }
    }

    fn unanswered(&self) -> Vec<(u32, u64)> {
        let mut left = Vec::new();
        for (silo, Silo { pipe, .. }) in self.silos.iter().enumerate() {
            for slot in (0..pipe.table.geometry().slots).filter(|slot| !pipe.table.is_idle(*slot)) {
                let stamps = &self.board().slots(silo)[slot as usize];
                let stream = board::get(&stamps.stream) as u32;
                if stream != WARM_STREAM {
                    left.push((stream, board::get(&stamps.sequence)));
                }
            }
        }
        left.sort_unstable();
        left
    }

    /// Waits for the hot threads to end. A thread that hangs is not joined.
    fn leave(&mut self) {
        self.tick_until(LEAVE_LIMIT, |control| control.threads.iter().all(JoinHandle::is_finished));
        if !self.threads.iter().all(JoinHandle::is_finished) {
            // A thread that hangs still occupies its core: the claims stay until the process ends.
            std::mem::forget(self.claims.take());
        }
        for thread in self.threads.drain(..).filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }

    fn harvested(&self) -> u64 {
        (0..self.silos.len()).map(|silo| board::get(&self.board().harvest(silo).position)).sum()
    }

    fn all_harvested(&self) -> bool {
        (0..self.silos.len()).all(|silo| {
            board::get(&self.board().feed(silo).position) == board::get(&self.board().harvest(silo).position)
        })
    }

    fn frames(&self) -> Vec<u64> {
        self.board().threads().iter().map(|thread| board::get(&thread.frames)).collect()
    }

    fn all_drained(&self) -> bool {
        self.threads.iter().enumerate().all(|(index, thread)| {
            board::get(&self.board().thread(index).phase_done) > Phase::Drain as u64 || thread.is_finished()
        })
    }

    /// Whether the run cannot continue: with one silo, after the death of any role; with several,
    /// after the death of a feed or harvest, or a failover that failed.
    fn has_failed(&self) -> bool {
        let died = match self.silos.len() {
            1 => self.role_died(),
            _ => self.hot.has_lost_feed_or_harvest() || self.supervisor.broken().is_some(),
        };
        died || self.has_lost_a_thread()
    }

    /// Whether a thread ended without a request and without publishing the death of its roles.
    fn has_lost_a_thread(&self) -> bool {
        self.threads.iter().enumerate().any(|(index, thread)| {
            thread.is_finished() && board::get(&self.board().thread(index).state) != ThreadState::Panicked as u64
        })
    }

    fn role_died(&self) -> bool {
        let mut roles = self.board().threads().iter().flat_map(ThreadBlock::own_roles);
        roles.any(|role| board::get(&role.died) != 0)
    }
}

/// Why reading the input failed, if it did. A reader that has passed the end of its input to the
/// feeds reports within the limit; a reader that still reads is not joined.
fn finish_input(reader: &Receiver<Option<String>>, ended_by: EndedBy) -> Option<String> {
    let limit = if ended_by == EndedBy::Input { LEAVE_LIMIT.0 } else { 0 };
    reader.recv_timeout(Duration::from_nanos(limit)).ok().flatten()
}

/// Waits for a thread that writes `what`.
fn finish(written: &Receiver<Result<(), String>>, what: &str, remedy: &str) -> Result<(), String> {
    written.recv_timeout(Duration::from_nanos(LEAVE_LIMIT.0)).unwrap_or_else(|_| {
        let limit_s = LEAVE_LIMIT.0 / 1_000_000_000;
        Err(format!("{what} are still unwritten {limit_s} s after the end; {remedy}"))
    })
}
