//! A hot thread: pin, build, warm up, then frames until Shutdown.
//!
//! Owns the frame loop. Runs on the thread itself; what others need of it is on the board. Bounds: the budgets of the
//! contract; between Init and Warmup it waits for the phase in short sleeps, which is the only waiting outside policy.
//!
//! # What happens to a panic
//! In a role's `work`: the role is published as died, and the thread goes on with the others. Anywhere else on the
//! thread: all its roles are published as died, the thread's state is `Panicked`, and the thread ends. Before Live the
//! control side also gets a report with the place.

use super::idle::{Idle, Waited};
use super::log::ThreadLog;
use super::memory;
use super::polling::Polling;
use super::self_check::SelfCheck;
use super::{
    Frame, Init, PathChange, PathChangeReceiver, Role, RoleError, RoleSpec, Scratch, Work, outlives_path, panics,
};
use crate::board::gaps::BETWEEN;
use crate::board::{self, Board, ThreadBlock};
use crate::clock::Clock;
use crate::fault::{EventCode, FaultCode};
use crate::host::{pin, priority};
use crate::profile::{HotAllocations, Priority};
use crate::roles::RoleKind;
use crate::roles::ThreadState;
use crate::units::Ticks;
use pinwheel_edge::ring::log::Writer;
use pinwheel_edge::spin::{Phase, PhaseWord, SpinWord};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a thread sleeps between looks at the phase before Warmup.
const PHASE_LOOK: Duration = Duration::from_micros(200);

/// State that all hot threads share.
#[derive(Clone)]
pub struct Shared {
    /// The engine's clock.
    pub clock: Clock,
    /// The board.
    pub board: Arc<Board>,
    /// The engine's phase.
    pub phase: Arc<PhaseWord>,
    /// What a call of the allocator means in Live.
    pub on_allocation: HotAllocations,
}

/// A thread's report: it has built (Init) or warmed up (Warmup) all its roles, or failed to.
#[derive(Debug)]
pub struct ThreadReport {
    /// Which thread.
    pub thread: usize,
    /// Which phase's entry work is done.
    pub phase: Phase,
    /// Why pinning failed, if it did; the thread then runs unpinned.
    pub unpinned: Option<String>,
    /// Why the system refused its priority, if it did; the thread then runs at the process's priority.
    pub unprivileged: Option<String>,
    /// Outcome.
    pub result: Result<(), RoleError>,
}

/// Where a thread runs, and at which priority.
#[derive(Clone, Debug)]
pub struct Placing {
    /// The core it is pinned to.
    pub core: Option<u32>,
    /// The cores it is confined to if it has none.
    pub elsewhere: Vec<u32>,
    /// Its priority, after the plan's refusals.
    pub priority: Priority,
}

/// What a hot thread starts with.
pub struct HotThread {
    /// Number of the thread in the plan.
    pub index: usize,
    /// Where it runs.
    pub placing: Placing,
    /// Its roles, in the order of each frame.
    pub specs: Vec<RoleSpec>,
    /// Its spin setting.
    pub spin: Arc<SpinWord>,
    /// Where its events go; `None`: they are not logged.
    pub log: Option<Writer>,
    /// Requests to stop and restart roles; `None` with a single silo.
    pub path_changes: Option<PathChangeReceiver>,
    /// What it shares with the other hot threads.
    pub shared: Shared,
}

/// Duty, silo and number of a role.
type Identity = (RoleKind, u32, u32);

/// One thread's share of the plan.
struct Hot {
    index: usize,
    shared: Shared,
    spin: Arc<SpinWord>,
    log: Option<ThreadLog>,
    roles: Vec<Option<Box<dyn Role>>>,
    /// Duty, silo and number of each.
    identities: Vec<Identity>,
    path_changes: Option<PathChangeReceiver>,
    reports: Reports,
    scratch: Scratch,
    /// Declared last, so that the arena outlives the roles whose memory it holds.
    self_check: SelfCheck,
}

/// Where a thread reports to.
struct Reports {
    sender: Sender<ThreadReport>,
    /// Whether the report of Warmup, the last one of a start, has been sent.
    is_warm: Rc<Cell<bool>>,
}

impl Reports {
    fn send(&self, report: ThreadReport) {
        if report.phase >= Phase::Warmup {
            self.is_warm.set(true);
        }
        // The control side reads no reports once a start has failed.
        let _ = self.sender.send(report);
    }
}

/// Starts `thread` under `name`. It reports the end of Init and of Warmup to `reports`.
///
/// # Errors
/// If the system refuses another thread.
pub fn spawn(name: &str, thread: HotThread, reports: Sender<ThreadReport>) -> std::io::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new().name(name.to_string());
    #[expect(clippy::disallowed_methods, reason = "this module starts the hot threads")]
    builder.spawn(move || {
        panics::mark_hot();
        let is_warm = Rc::new(Cell::new(false));
        let reports = Reports { sender: reports, is_warm };
        let (sender, is_warm) = (reports.sender.clone(), Rc::clone(&reports.is_warm));
        let (index, shared) = (thread.index, thread.shared.clone());
        let first = thread.specs.first().map(|spec| (spec.kind, spec.silo));
        if catch_unwind(AssertUnwindSafe(|| run(thread, reports))).is_err() {
            memory::excused(|| {
                publish_panic(&shared, index);
                let (role, silo) = first.unwrap_or((RoleKind::Feed, 0));
                if !is_warm.get() {
                    let result = Err(RoleError { role, silo, reason: panicked("its thread, outside the role,") });
                    let (phase, unpinned, unprivileged) = (Phase::Init, None, None);
                    let _ = sender.send(ThreadReport { thread: index, phase, unpinned, unprivileged, result });
                }
            });
        }
    })
}

/// Pins the thread, builds its roles, warms them up and runs frames.
fn run(thread: HotThread, reports: Reports) {
    let HotThread { index, placing, specs, spin, log, path_changes, shared } = thread;
    let unpinned = place(&shared, index, &placing);
    let unprivileged = prioritize(&shared, index, &placing, unpinned.as_ref());
    let self_check = SelfCheck::of_current_thread(placing.core.filter(|_| unpinned.is_none()), shared.on_allocation);
    let identities = specs.iter().map(|spec| (spec.kind, spec.silo, spec.index)).collect();
    let (built, scratch) = memory::lend(|| (build(&shared, specs), Scratch::new()));
    let (result, roles) = match built {
        Ok(roles) => (Ok(()), roles),
        Err(error) => (Err(error), Vec::new()),
    };
    let failed = result.is_err();
    reports.send(ThreadReport { thread: index, phase: Phase::Init, unpinned, unprivileged, result });
    if failed {
        return;
    }
    let log = log.map(|writer| ThreadLog::new(writer, Arc::clone(&shared.board), index));
    let mut hot = Hot { index, shared, spin, log, roles, identities, path_changes, reports, scratch, self_check };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hot.live())) {
        // As in [`died`]: to drop what a panic left half-done could panic again.
        memory::excused(|| hot.roles.drain(..).for_each(std::mem::forget));
        resume_unwind(panic);
    }
}

/// Publishes that the thread has panicked outside its roles, and where: none of its roles is called again.
fn publish_panic(shared: &Shared, index: usize) {
    let block = shared.board.thread(index);
    panics::last_site(|file, line| {
        block.panic_file.write(file);
        board::set(&block.panic_line, u64::from(line));
    });
    let frame = board::get(&block.frames) + 1;
    // The place first: whoever sees a role's death reads the place with it.
    for role in block.own_roles().iter().filter(|role| board::get(&role.died) == 0) {
        board::set_last(&role.died, frame);
    }
    board::set(&block.stage, 0);
    shared.board.fault(0, FaultCode::RoleDied, shared.clock.ticks(), index as u64);
    board::set(&block.state, ThreadState::Panicked as u64);
}

/// Pins or confines the calling thread. Returns why it could not be pinned.
fn place(shared: &Shared, index: usize, placing: &Placing) -> Option<String> {
    let block = shared.board.thread(index);
    board::set(&block.stack_anchor, crate::stall::stack::last_stack_word().unwrap_or(0));
    pin::end_sleeps_on_time();
    let unpinned = match placing.core {
        Some(core) => match pin::pin_current_thread(core) {
            Ok(()) => {
                board::set(&block.pinned, 1);
                None
            }
            Err(error) => {
                shared.board.fault(0, FaultCode::PinFailed, shared.clock.ticks(), u64::from(core));
                Some(error.to_string())
            }
        },
        // Confinement keeps this thread off the pinned threads' cores. Where it is not permitted the scheduler decides.
        None => {
            let _ = pin::confine_current_thread(&placing.elsewhere);
            None
        }
    };
    // Last: whoever sees the thread's number sees whether it is pinned, and opens its records by that.
    board::set_last(&block.tid, u64::from(pin::thread_id()));
    unpinned
}

/// Takes the priority and publishes what came of it. Returns why the system refused it.
fn prioritize(shared: &Shared, index: usize, placing: &Placing, unpinned: Option<&String>) -> Option<String> {
    let block = shared.board.thread(index);
    let mut refused = None;
    match placing.priority {
        Priority::Normal => {}
        // The plan gave it a core of its own, and the system did not.
        Priority::Fifo(_) if unpinned.is_some() => {
            block.priority_refusal.write("it could not be pinned, and would take a core from others")
        }
        asked => {
            if let Err(error) = priority::set(None, asked) {
                refused = Some(error.to_string());
                block.priority_refusal.write(&error.to_string());
            }
        }
    }
    board::set(&block.priority_found, priority::found(None).map_or(0, Priority::pack));
    refused
}

fn build(shared: &Shared, specs: Vec<RoleSpec>) -> Result<Vec<Option<Box<dyn Role>>>, RoleError> {
    let mut init = Init { clock: &shared.clock, board: &shared.board };
    specs
        .into_iter()
        .map(|spec| {
            let (role, silo) = (spec.kind, spec.silo);
            catch_unwind(AssertUnwindSafe(|| (spec.build)(&mut init)))
                .unwrap_or_else(|_| Err(RoleError { role, silo, reason: panicked("it") }))
                .map(Some)
        })
        .collect()
}

fn panicked(who: &str) -> String {
    let mut words = String::new();
    panics::last_site(|file, line| words = format!("{who} panicked at {file}:{line}; please report this"));
    words
}

impl Hot {
    fn block(&self) -> &ThreadBlock {
        self.shared.board.thread(self.index)
    }

    fn live(&mut self) {
        while self.shared.phase.current() < Phase::Warmup {
            pause();
        }
        let result = memory::lend(|| self.warm_up());
        self.self_check.reserve();
        self.self_check.publish_memory(self.block());
        let failed = result.is_err();
        let (unpinned, unprivileged) = (None, None);
        let report = ThreadReport { thread: self.index, phase: Phase::Warmup, unpinned, unprivileged, result };
        self.reports.send(report);
        if !failed {
            board::set(&self.block().state, ThreadState::Running as u64);
            self.frames();
        }
        board::set(&self.block().state, ThreadState::Finished as u64);
    }

    fn warm_up(&mut self) -> Result<(), RoleError> {
        let clock = &self.shared.clock;
        for (role, (kind, silo, _)) in self.roles.iter_mut().zip(&self.identities) {
            let (Some(role), kind, silo) = (role, *kind, *silo) else { continue };
            let mut frame = Frame::new(clock, clock.ticks(), Phase::Warmup, &mut self.scratch);
            catch_unwind(AssertUnwindSafe(|| role.warm_up(&mut frame)))
                .unwrap_or_else(|_| Err(RoleError { role: kind, silo, reason: panicked("it") }))?;
        }
        Ok(())
    }

    /// The frame loop.
    fn frames(&mut self) {
        let shared = self.shared.clone();
        let block = shared.board.thread(self.index);
        let (clock, rate) = (&shared.clock, shared.clock.rate());
        let mut idle = Idle::new(&self.spin, rate);
        // As published last; each change is an event.
        let (mut entered, mut acknowledged) = (None, None);
        let mut last = clock.ticks();
        let mut longest = Longest::default();
        let mut last_items = 0;
        // Whether the last frame found no work and then spun.
        let mut was_polling = false;
        let mut polling = Polling::new(rate);
        loop {
            let phase = shared.phase.current();
            self.self_check.begin(phase, &shared.board, self.index, clock);
            if entered != Some(phase) {
                entered = Some(phase);
                self.note(EventCode::PhaseEntered, phase as u64);
            }
            let order = idle.order().pack();
            if acknowledged != Some(order) {
                acknowledged = Some(order);
                board::set(&block.policy_acknowledged, order);
                self.note(EventCode::PolicyAcknowledged, order);
            }
            if phase == Phase::Shutdown {
                return;
            }
            if self.path_changes.as_ref().is_some_and(PathChangeReceiver::is_waiting) {
                memory::excused(|| self.change_path());
            }
            let now = clock.ticks();
            let gap = now.since(last);
            block.frame_gap.record(rate.nanos(gap).0);
            if last_items > 0 {
                board::add(&block.busy_ticks, gap.0);
            } else if was_polling {
                block.note_polling(gap, polling.has_lost_core(gap));
            }
            let limit = board::get(&block.gap_limit_ticks);
            if gap.0 > limit && limit > 0 {
                block.note_gap(last, gap, longest.of(gap));
            }
            last = now;
            longest = Longest { until: now, ..Longest::default() };
            let items = if phase == Phase::Warmup {
                memory::lend(|| self.frame(block, now, phase, &mut longest))
            } else {
                self.frame(block, now, phase, &mut longest)
            };
            self.self_check.end(&shared.board, self.index, clock);
            (last_items, was_polling) = (items, false);
            board::set(&block.heartbeat, now.0);
            board::add(&block.frames, 1);
            if items > 0 {
                board::add(&block.frames_busy, 1);
                board::add(&block.items, u64::from(items));
                idle.note_work(now, &self.spin);
            } else if idle.idle(now, &self.spin) == Waited::Yielded {
                board::add(&block.yields, 1);
            } else {
                was_polling = true;
            }
            if phase == Phase::Drain && self.roles.iter().flatten().all(|role| role.is_drained()) {
                let done = Phase::Drain as u64 + 1;
                if board::get(&block.phase_done) != done {
                    board::set(&block.phase_done, done);
                    self.note(EventCode::DrainFinished, board::get(&block.frames));
                }
            }
        }
    }

    fn note(&self, event: EventCode, number: u64) {
        if let Some(log) = &self.log {
            log.write(self.shared.clock.ticks(), event, [number]);
        }
    }

    /// Stops or restarts the roles of one silo.
    #[cold]
    fn change_path(&mut self) {
        match self.path_changes.as_mut().and_then(PathChangeReceiver::pop) {
            None => {}
            Some(PathChange::Stop { silo }) => self.stop_path(silo),
            Some(PathChange::Restart(specs)) => {
                let result = memory::lend(|| self.restart_path(specs));
                let (phase, unpinned, unprivileged) = (Phase::Live, None, None);
                let report = ThreadReport { thread: self.index, phase, unpinned, unprivileged, result };
                self.reports.send(report);
            }
        }
    }

    fn stop_path(&mut self, silo: u32) {
        let shared = self.shared.clone();
        let block = shared.board.thread(self.index);
        for (index, (kind, of, _)) in self.identities.iter().enumerate() {
            if *of != silo || outlives_path(*kind) {
                continue;
            }
            if let Some(role) = self.roles[index].take() {
                drop(role);
                // Published after the drop, which gives its resources back.
                board::set_last(&block.roles[index].died, board::get(&block.frames) + 1);
            }
        }
    }

    /// Builds and warms up roles in place of the stopped ones.
    fn restart_path(&mut self, specs: Vec<RoleSpec>) -> Result<(), RoleError> {
        let shared = self.shared.clone();
        let block = shared.board.thread(self.index);
        for spec in specs {
            let identity = (spec.kind, spec.silo, spec.index);
            let Some(place) = self.identities.iter().position(|mine| *mine == identity) else { continue };
            let (role, silo) = (spec.kind, spec.silo);
            let mut built = build(&shared, vec![spec])?;
            let Some(mut made) = built.pop().flatten() else { continue };
            let mut frame = Frame::new(&shared.clock, shared.clock.ticks(), Phase::Warmup, &mut self.scratch);
            catch_unwind(AssertUnwindSafe(|| made.warm_up(&mut frame)))
                .unwrap_or_else(|_| Err(RoleError { role, silo, reason: panicked("it") }))?;
            self.roles[place] = Some(made);
            board::set_last(&block.roles[place].died, 0);
        }
        if block.roles.iter().all(|role| board::get(&role.died) == 0) {
            // Else a later stop would be told with the place of a panic that is over.
            board::set(&block.panic_line, 0);
            block.panic_file.write("");
        }
        Ok(())
    }

    /// One pass over the roles; returns the items handled.
    fn frame(&mut self, block: &ThreadBlock, now: Ticks, phase: Phase, longest: &mut Longest) -> u32 {
        let Hot { index: thread, shared, roles, identities, scratch, log, .. } = self;
        let mut frame = Frame::new(&shared.clock, now, phase, scratch).logged(log.as_ref());
        let mut call = Call { shared, block, thread: *thread, longest };
        let mut items = 0;
        for index in 0..roles.len() {
            let worked = call.role((index, &mut roles[index]), &mut frame, |role, frame| role.work(frame));
            items += worked;
            if worked == 0 || identities[index].0 != RoleKind::Harvest {
                continue;
            }
            for (index, entry) in roles.iter_mut().enumerate() {
                if identities[index].0 == RoleKind::Feed {
                    items += call.role((index, entry), &mut frame, |role, frame| role.send_answers(frame));
                }
            }
        }
        board::set(&block.stage, 0);
        items
    }
}

/// What a call of a role is accounted to.
struct Call<'a> {
    shared: &'a Shared,
    block: &'a ThreadBlock,
    thread: usize,
    longest: &'a mut Longest,
}

impl Call<'_> {
    /// Calls the role at `index`, if it has not died; returns the items handled.
    #[inline(always)]
    fn role(
        &mut self,
        (index, entry): (usize, &mut Option<Box<dyn Role>>),
        frame: &mut Frame<'_>,
        act: impl FnOnce(&mut dyn Role, &mut Frame<'_>) -> Work,
    ) -> u32 {
        let Some(role) = entry else { return 0 };
        let role_stage = role.kind() as u64 + 1;
        board::set(&self.block.stage, role_stage);
        match catch_unwind(AssertUnwindSafe(|| act(role.as_mut(), frame))) {
            Ok(Work(0)) => 0,
            Ok(Work(items)) => {
                let took = self.longest.note(self.shared.clock.ticks(), role_stage);
                board::add(&self.block.roles[index].busy_ticks, took.0);
                board::add(&self.block.roles[index].items, u64::from(items));
                items
            }
            Err(payload) => {
                memory::excused(|| {
                    drop(payload);
                    died(self.shared, self.block, self.thread, (index, entry), frame);
                });
                0
            }
        }
    }
}

/// The role that took the longest part of a frame. The clock is read only after roles that had
/// work, so an idle frame costs nothing more; its time counts as waiting.
#[derive(Clone, Copy, Default)]
struct Longest {
    until: Ticks,
    span: Ticks,
    stage: u64,
}

impl Longest {
    #[inline]
    fn note(&mut self, now: Ticks, stage: u64) -> Ticks {
        let span = now.since(self.until);
        self.until = now;
        if span > self.span {
            (self.span, self.stage) = (span, stage);
        }
        span
    }

    /// The role that took most of `gap`.
    fn of(self, gap: Ticks) -> u64 {
        if self.span.0 > gap.0 / 2 { self.stage } else { BETWEEN }
    }
}

/// A role panicked: it is published as died and never called again. Its memory is leaked, because
/// dropping a state that the panic left inconsistent could panic again. Its resources stay in use
/// too: a dispatcher's GPU context stays open until the process ends.
fn died(
    shared: &Shared,
    block: &ThreadBlock,
    thread: usize,
    (index, role): (usize, &mut Option<Box<dyn Role>>),
    frame: &Frame<'_>,
) {
    let number = board::get(&block.frames);
    panics::last_site(|file, line| {
        block.panic_file.write(file);
        board::set(&block.panic_line, u64::from(line));
    });
    // Last of what the role did: whoever takes over what it had reads this first, and the place is told with it.
    board::set_last(&block.roles[index].died, number + 1);
    let (kind, silo) = (block.roles[index].kind(), block.roles[index].silo());
    frame.log(EventCode::RoleDied, [kind as u64, silo.into(), number, board::get(&block.panic_line)]);
    shared.board.fault(silo as usize, FaultCode::RoleDied, shared.clock.ticks(), thread as u64);
    std::mem::forget(role.take());
}

#[expect(clippy::disallowed_methods, reason = "before Live nothing is hot yet")]
fn pause() {
    std::thread::sleep(PHASE_LOOK);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

    use super::{HotThread, PathChange, PathChangeReceiver, Placing, Shared, ThreadReport, spawn};
    use crate::board::{self, Board, Place, Shape};
    use crate::clock::Clock;
    use crate::fault::FaultCode;
    use crate::hot::path_changes;
    use crate::hot::{Frame, Role, RoleSpec, Work, install_hook};
    use crate::profile::{HotAllocations, Priority};
    use crate::roles::RoleKind;
    use crate::roles::ThreadState;
    use pinwheel_edge::spin::{Phase, PhaseWord, SpinBudgets, SpinPolicy, SpinWord};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::JoinHandle;

    /// A role that panics where no one catches it for the role: not in its `work`.
    struct PanicsOutsideWork {
        /// When it is asked for its kind, which each frame does; else when it is asked whether it is drained.
        in_kind: bool,
    }

    impl Role for PanicsOutsideWork {
        fn kind(&self) -> RoleKind {
            assert!(!self.in_kind, "a panic on purpose");
            RoleKind::Poll
        }

        fn work(&mut self, _: &mut Frame<'_>) -> Work {
            Work(0)
        }

        fn is_drained(&self) -> bool {
            panic!("a panic on purpose")
        }
    }

    fn started(
        role: impl FnOnce() -> PanicsOutsideWork + Send + 'static,
    ) -> (Shared, JoinHandle<()>, Receiver<ThreadReport>) {
        started_with(vec![spec(RoleKind::Poll, role)], None)
    }

    fn spec<R: Role + 'static>(kind: RoleKind, role: impl FnOnce() -> R + Send + 'static) -> RoleSpec {
        RoleSpec { kind, silo: 0, index: 0, build: Box::new(|_| Ok(Box::new(role()))) }
    }

    fn started_with(
        specs: Vec<RoleSpec>,
        path_changes: Option<PathChangeReceiver>,
    ) -> (Shared, JoinHandle<()>, Receiver<ThreadReport>) {
        install_hook();
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let shared = Shared {
            clock: Clock::machine(),
            board: Arc::new(Board::create(shape, Place::Private).unwrap()),
            phase: Arc::new(PhaseWord::new()),
            on_allocation: HotAllocations::Count,
        };
        let block = shared.board.thread(0);
        board::set(&block.roles_count, 2);
        board::set(&block.roles[0].identity, RoleKind::Poll as u64);
        board::set(&block.roles[1].identity, RoleKind::Graph as u64);
        let (sender, reports) = channel();
        let placing = Placing { core: None, elsewhere: Vec::new(), priority: Priority::Normal };
        let budgets = SpinBudgets { lab_spin_ticks: 1, shared_spin_ticks: 1, shared_sleep_ns: 1_000 };
        let spin = Arc::new(SpinWord::new(SpinPolicy::Shared, budgets));
        let thread = HotThread { index: 0, placing, specs, spin, log: None, path_changes, shared: shared.clone() };
        let thread = spawn("hot-0", thread, sender).unwrap();
        (shared, thread, reports)
    }

    fn assert_published(shared: &Shared) {
        let block = shared.board.thread(0);
        assert_eq!(board::get(&block.state), ThreadState::Panicked as u64);
        assert!(block.panic_file.read().ends_with("hot/thread.rs") && board::get(&block.panic_line) > 0);
        assert!(block.roles[..2].iter().all(|role| board::get(&role.died) > 0));
        let faults = shared.board.snapshot(&shared.clock).faults;
        assert_eq!(faults.iter().filter(|fault| fault.code == FaultCode::RoleDied.number()).count(), 1);
    }

    /// A role that says what it is called for.
    struct Says {
        kind: RoleKind,
        /// Items of its first call in Live; later calls handle none.
        items: u32,
        said: Sender<(RoleKind, &'static str)>,
    }

    impl Role for Says {
        fn kind(&self) -> RoleKind {
            self.kind
        }

        fn work(&mut self, frame: &mut Frame<'_>) -> Work {
            if frame.phase != Phase::Live {
                return Work(0);
            }
            self.said.send((self.kind, "works")).unwrap();
            Work(std::mem::take(&mut self.items))
        }

        fn send_answers(&mut self, _: &mut Frame<'_>) -> Work {
            self.said.send((self.kind, "sends")).unwrap();
            Work(1)
        }

        fn is_drained(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_feed_sends_answers_in_the_frame_in_which_harvest_took_them() {
        use RoleKind::{Decode, Feed, Harvest};
        let (sender, said) = channel();
        let specs = [(Feed, 0), (Harvest, 1), (Decode, 1)].map(|(kind, items)| {
            let said = sender.clone();
            spec(kind, move || Says { kind, items, said })
        });
        let (shared, thread, reports) = started_with(specs.into(), None);
        shared.phase.advance(Phase::Warmup);
        (0..2).for_each(|_| assert!(reports.recv().unwrap().result.is_ok()));
        shared.phase.advance(Phase::Live);
        let calls: Vec<_> = said.iter().take(7).collect();
        // Before the decode that follows, and only after a harvest that had work.
        let frame = [(Feed, "works"), (Harvest, "works"), (Decode, "works")];
        assert_eq!(calls, [&frame[..2], &[(Feed, "sends")], &frame[2..], &frame].concat());
        shared.phase.advance(Phase::Shutdown);
        thread.join().unwrap();
    }

    /// A role that panics in its work.
    struct PanicsInWork;

    impl Role for PanicsInWork {
        fn kind(&self) -> RoleKind {
            RoleKind::Poll
        }

        fn work(&mut self, frame: &mut Frame<'_>) -> Work {
            assert!(frame.phase != Phase::Live, "a panic on purpose");
            Work(0)
        }

        fn is_drained(&self) -> bool {
            true
        }
    }

    #[test]
    fn the_place_of_a_panic_is_forgotten_when_all_roles_of_the_thread_are_back() {
        let (mut changes, receiver) = path_changes();
        let specs = vec![spec(RoleKind::Poll, || PanicsInWork)];
        let (shared, thread, reports) = started_with(specs, Some(receiver));
        let block = shared.board.thread(0);
        shared.phase.advance(Phase::Warmup);
        (0..2).for_each(|_| assert!(reports.recv().unwrap().result.is_ok()));
        shared.phase.advance(Phase::Live);
        while board::get(&block.roles[0].died) == 0 {
            std::thread::yield_now();
        }
        assert!(block.panic_file.read().ends_with("hot/thread.rs") && board::get(&block.panic_line) > 0);
        let (said, _calls) = channel();
        let sound = spec(RoleKind::Poll, move || Says { kind: RoleKind::Poll, items: 0, said });
        assert!(changes.push(PathChange::Restart(vec![sound])).is_ok());
        assert!(reports.recv().unwrap().result.is_ok());
        assert_eq!((block.panic_file.read().as_str(), board::get(&block.panic_line)), ("", 0));
        assert_eq!(board::get(&block.roles[0].died), 0);
        shared.phase.advance(Phase::Shutdown);
        thread.join().unwrap();
    }

    #[test]
    fn a_panic_outside_all_roles_is_published_as_died_with_its_place() {
        let (shared, thread, reports) = started(|| PanicsOutsideWork { in_kind: false });
        assert!(reports.recv().unwrap().result.is_ok());
        shared.phase.advance(Phase::Warmup);
        assert!(reports.recv().unwrap().result.is_ok());
        shared.phase.advance(Phase::Live);
        shared.phase.advance(Phase::Drain);
        thread.join().unwrap();
        assert_published(&shared);
        // Both reports of a start were sent before.
        assert!(reports.try_recv().is_err());
    }

    #[test]
    fn a_panic_outside_all_roles_in_warm_up_is_published_as_died_with_its_place() {
        let (shared, thread, reports) = started(|| PanicsOutsideWork { in_kind: true });
        assert!(reports.recv().unwrap().result.is_ok());
        shared.phase.advance(Phase::Warmup);
        thread.join().unwrap();
        assert_published(&shared);
        assert!(reports.recv().unwrap().result.is_ok(), "its role was warm");
    }

    #[test]
    fn a_panic_in_building_is_reported_with_its_place() {
        let (shared, thread, reports) = started(|| panic!("a panic on purpose"));
        let error = reports.recv().unwrap().result.unwrap_err().to_string();
        assert!(error.contains("it panicked at") && error.contains("hot/thread.rs"), "{error}");
        shared.phase.advance(Phase::Shutdown);
        thread.join().unwrap();
    }
}
