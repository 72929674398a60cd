//! The control thread: moves the engine through its phases and ends it.
//!
//! Owns the hot threads' handles, the silos' cold parts, the wall clock and the decision to end. Runs on a cold thread, ticking every
//! [`TICK`]. Bounds: each phase has a limit, see the constants; a drain has the profile's grace. A thread that does not
//! leave is left behind and said so.

use super::cold::{self, Stop};
use super::lives::HotThreads;
use super::neighbours::Watching;
use super::placing::Placing;
use super::remote::{self, Orders};
use super::steer::SharedSteering;
use super::wall::Wall;
use super::watchdog::Running;
use super::wire::GOES_ON;
use super::{EndedBy, Found, Outcome, Requests, header};
use crate::board::snapshot::ThreadState;
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::feed::requests::MoveRequests;
use crate::graph::Event;
use crate::host::claims::Claims;
use crate::hot::{self, Settings, Shared, ThreadReport, WARM_STREAM, Warming};
use crate::profile::Rate;
use crate::silo::{Lives, Silo, SiloWishes};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::Phase;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);
/// Warm-up shots flow for so long in any case, so that every path and page has been used.
const WARM: Nanos = Nanos(50_000_000);
/// With rate Auto: settle, then measure, 2 s together.
const MEASURE_SETTLE: Nanos = Nanos(500_000_000);
const MEASURE: Nanos = Nanos(1_500_000_000);
/// Longest wait for roles to warm, and for warm-up shots to come back.
const WARM_LIMIT: Nanos = Nanos(30_000_000_000);
/// After the grace: time for harvest to take the error answers, on a machine that does not run its thread for a while too.
const LAST_HARVEST: Nanos = Nanos(5_000_000_000);
/// Longest wait for threads to leave after Shutdown, and for the sink to finish. A disk or a core that is gone for some seconds
/// costs no answer.
const LEAVE_LIMIT: Nanos = Nanos(10_000_000_000);

/// What ends a run by itself.
pub(super) struct End {
    pub(super) count: Option<u64>,
    pub(super) duration: Option<Duration>,
}

/// Cold threads and what they report.
pub(super) struct ColdSide {
    pub(super) stop: Stop,
    pub(super) sink: Option<Receiver<Result<(), String>>>,
    pub(super) events: Option<Receiver<Result<(), String>>>,
    pub(super) recorder: Option<Receiver<()>>,
    pub(super) input_error: Option<Receiver<Option<String>>>,
    pub(super) environment: Option<Receiver<Found>>,
    pub(super) neighbours: Option<Watching>,
    pub(super) placing: Option<Placing>,
    pub(super) watchdog: Option<Running>,
    pub(super) remote: Option<remote::Running>,
}

/// The times of a silo's tasks, as far as its threads have ended.
fn task_times((silo, wired): (u32, &Silo)) -> impl Iterator<Item = (u32, Event)> {
    wired.task_times.try_iter().flatten().map(move |event| (silo, event))
}

/// What an order of another process may act on.
pub(super) struct Hands<'a> {
    pub(super) steering: &'a SharedSteering,
    pub(super) requests: &'a Requests,
    pub(super) wishes: &'a SiloWishes,
    pub(super) moves: &'a MoveRequests,
    pub(super) clock: &'a Clock,
}

/// Everything the control thread owns.
pub(super) struct Control {
    pub(super) shared: Shared,
    pub(super) steering: SharedSteering,
    /// What other processes ask for; `None`: no socket could be had.
    pub(super) orders: Option<Orders>,
    pub(super) requests: Arc<Requests>,
    pub(super) silos: Vec<Silo>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) hot: HotThreads,
    pub(super) lives: Lives,
    pub(super) settings: Arc<Settings>,
    pub(super) end: End,
    pub(super) wall: Wall,
    /// The hot cores, ours until the threads have left them.
    pub(super) claims: Option<Claims>,
    /// Other processes send the shots, at their own rate.
    pub(super) is_live: bool,
    /// By thread: whether its first allocation's place has been named.
    pub(super) named: Vec<bool>,
}

impl Control {
    pub(super) fn spawn(mut self, cold: ColdSide, cold_cores: Vec<u32>) -> io::Result<JoinHandle<Outcome>> {
        cold::spawn("control", move || {
            // A courtesy to the hot threads; where it is not permitted the scheduler decides.
            let _ = crate::host::pin::confine_current_thread(&cold_cores);
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
            // What was asked for too late is answered, not left hanging.
            self.obey();
            // Before log and recorder: what its last look finds is in both.
            if let Some(watchdog) = cold.watchdog {
                watchdog.end();
            }
            cold.stop.stop();
            if let Some(placing) = cold.placing {
                placing.end();
            }
            if let Some(neighbours) = cold.neighbours {
                neighbours.end();
            }
            self.tell_what_follows();
            let sink = cold.sink.map(|sink| finish_sink(&sink));
            // A recorder whose disk hangs is left behind; what it has written opens all the same.
            let _ = cold.recorder.map(|ended| ended.recv_timeout(Duration::from_nanos(LEAVE_LIMIT.0)));
            let events = cold.events.map(|events| finish_events(&events));
            let input_error = cold.input_error.and_then(|reader| finish_input(&reader, ended_by));
            let limit = Duration::from_nanos(LEAVE_LIMIT.0);
            let environment = cold.environment.and_then(|report| report.recv_timeout(limit).ok());
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
                environment,
                task_times,
            }
        })
    }

    /// For whoever looks at the board: this run is over, and its process goes on.
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

    /// One tick: whatever the cold side owes the silos.
    fn tick(&mut self) {
        cold::sleep(TICK);
        let (now, rate) = (self.now(), self.shared.clock.rate());
        for silo in &mut self.silos {
            silo.recovery.step(now, rate);
        }
        self.name_allocations();
        self.wall.step(now, &self.shared.clock, &self.shared.board);
        self.steering.lock().step(now);
        self.obey();
    }

    /// Carries out what other processes asked for since the last tick.
    fn obey(&self) {
        let hands = Hands {
            steering: &self.steering,
            requests: &self.requests,
            wishes: self.lives.wishes(),
            moves: self.lives.moves(),
            clock: &self.shared.clock,
        };
        for order in self.orders.iter().flat_map(Orders::try_iter) {
            remote::act(order, &hands);
        }
    }

    /// Names who first called the allocator on a hot thread.
    fn name_allocations(&mut self) {
        for (thread, named) in self.named.iter_mut().enumerate() {
            *named = *named || hot::name_first_allocation(self.shared.board.thread(thread));
        }
    }

    /// Ticks until `done` or `limit`; whether it was done.
    fn tick_until(&mut self, limit: Nanos, mut done: impl FnMut(&Control) -> bool) -> bool {
        let from = self.now();
        loop {
            if done(self) {
                return true;
            }
            if self.since(from) >= limit {
                return false;
            }
            self.tick();
        }
    }

    /// Warms the path and settles the rate. Returns a reason to end at once, if there is one.
    fn warm_up(&mut self) -> Option<EndedBy> {
        self.enter(Phase::Warmup);
        if let Some(by) = self.wait_warm() {
            return Some(by);
        }
        self.settings.set_warming(Warming::On);
        let asked = |control: &Control| {
            control.requests.drain().is_some() || control.role_died() || control.has_lost_a_thread()
        };
        // Measured for a profile that comes later, too: any that says Auto means this rate.
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
        // A feed may be in the middle of a frame: what it submits there is on the board only after it. Two frames on,
        // it has seen that warm-up is over and its cursor is true.
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
            "found thread {} without two frames in {} s of warm-up, expected thousands; see what holds it up",
            self.board().thread(stands).name.read(),
            WARM_LIMIT.0 / 1_000_000_000
        ));
        Some(EndedBy::Fault)
    }

    /// Waits until every thread has warmed its roles. Returns a reason to end at once, if there is one.
    fn wait_warm(&mut self) -> Option<EndedBy> {
        let from = self.now();
        let mut missing = self.threads.len();
        while missing > 0 {
            // Before the report is looked for: a thread that fails sends it and then ends.
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
                    "found {missing} of {threads} threads not warm after {limit_s} s, expected all; look for a stopped \
                     process or an overloaded machine"
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

    /// Live, until a reason to end; a death or a return that is under way is seen through first.
    fn live(&mut self, from: Ticks) -> EndedBy {
        let by = self.until_the_end(from);
        loop {
            self.lives.step(&mut self.silos, &mut self.hot, self.shared.clock.ticks());
            if self.lives.is_settled() || self.has_failed() {
                break;
            }
            self.tick();
        }
        if let Some(why) = self.lives.broken() {
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
            self.lives.step(&mut self.silos, &mut self.hot, self.shared.clock.ticks());
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

    /// Stops the feed and waits for every answer; after the grace answers what is left with an error. Returns what even
    /// then has no answer.
    fn drain(&mut self) -> Vec<(u32, u64)> {
        self.enter(Phase::Drain);
        let grace_s = self.steering.lock().profile().limits.drain_grace_s;
        let grace = Nanos::from_millis(u64::from(grace_s) * 1_000);
        // In this order: a feed that has come to its end has published its last shot, which then shows as not harvested.
        let is_drained = |control: &Control| control.all_drained() && control.all_harvested();
        let has_ended = |control: &Control| control.threads.iter().all(JoinHandle::is_finished);
        self.tick_until(grace, |control| is_drained(control) || control.requests.is_hurried() || has_ended(control));
        if !is_drained(self) && !self.all_harvested() {
            self.close_tickets();
            self.tick_until(LAST_HARVEST, |control| control.all_harvested() || has_ended(control));
        }
        self.unanswered()
    }

    /// Answers every open ticket with an error word, from this cold thread.
    fn close_tickets(&self) {
        for (silo, Silo { pipe, .. }) in self.silos.iter().enumerate() {
            let dispatched = board::get(&self.board().dispatch(silo).position);
            let slots = u64::from(pipe.table.geometry().slots);
            for position in dispatched.saturating_sub(slots)..=dispatched {
                // A ticket that is closed, or was never opened, refuses the claim: nothing is left to do for it.
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

    /// Waits for the hot threads to leave. One that hangs is not joined.
    fn leave(&mut self) {
        self.tick_until(LEAVE_LIMIT, |control| control.threads.iter().all(JoinHandle::is_finished));
        if !self.threads.iter().all(JoinHandle::is_finished) {
            // A thread that hangs still has its core: the claims last as long as the process.
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
        (0..self.threads.len()).map(|thread| board::get(&self.board().thread(thread).frames)).collect()
    }

    fn all_drained(&self) -> bool {
        self.threads.iter().enumerate().all(|(index, thread)| {
            board::get(&self.board().thread(index).phase_done) > Phase::Drain as u64 || thread.is_finished()
        })
    }

    /// Whether the run cannot go on: of one silo a role died; of several, a door, or who could not be inherited.
    fn has_failed(&self) -> bool {
        let died = match self.silos.len() {
            1 => self.role_died(),
            _ => self.hot.has_lost_a_door() || self.lives.broken().is_some(),
        };
        died || self.has_lost_a_thread()
    }

    /// Whether a thread has ended without being told to and without publishing the death of its roles.
    fn has_lost_a_thread(&self) -> bool {
        self.threads.iter().enumerate().any(|(index, thread)| {
            thread.is_finished() && board::get(&self.board().thread(index).state) != ThreadState::Panicked as u64
        })
    }

    fn role_died(&self) -> bool {
        (0..self.threads.len()).any(|thread| {
            let block = self.board().thread(thread);
            block.roles.iter().take(board::get(&block.roles_count) as usize).any(|role| board::get(&role.died) != 0)
        })
    }
}

/// Why the input broke off, if it did. A reader that has given its input's end to the feeds is about to say so; one that
/// still reads is left alone.
fn finish_input(reader: &Receiver<Option<String>>, ended_by: EndedBy) -> Option<String> {
    let limit = if ended_by == EndedBy::Input { LEAVE_LIMIT.0 } else { 0 };
    reader.recv_timeout(Duration::from_nanos(limit)).ok().flatten()
}

fn finish_events(events: &Receiver<Result<(), String>>) -> Result<(), String> {
    events.recv_timeout(Duration::from_nanos(LEAVE_LIMIT.0)).unwrap_or_else(|_| {
        let limit_s = LEAVE_LIMIT.0 / 1_000_000_000;
        Err(format!("events: found some unwritten {limit_s} s after the end, expected the disk to take them; see what holds it up"))
    })
}

fn finish_sink(sink: &Receiver<Result<(), String>>) -> Result<(), String> {
    sink.recv_timeout(Duration::from_nanos(LEAVE_LIMIT.0)).unwrap_or_else(|_| {
        let limit_s = LEAVE_LIMIT.0 / 1_000_000_000;
        Err(format!(
            "found answers unwritten {limit_s} s after the end, expected their reader to take them; see what reads them"
        ))
    })
}
