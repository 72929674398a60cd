//! Drills on an engine in this process: each provokes a fault, waits for the verdict, and undoes
//! the fault.
//!
//! On the drill's thread. Helpers (a shell, a thread) end with their drill; a shell also ends with this
//! process, however that ends.

use super::control_group::ControlGroup;
use super::drill_engine::{DrillEngine, Pages, profile, rest};
use super::{Drill, DrillError, DrillVerdict};
use crate::board::snapshot::{AlarmView, FaultView, Snapshot};
use crate::fault::FaultCode;
use crate::host::memory::mib_left;
use crate::host::{pin, priority};
use crate::hot::drill_role::Misbehaviour;
use crate::profile::{Priority, RuleId};
use crate::record::{AnswerSink, REORDER_SLACK, SinkConfig};
use crate::roles::RoleKind;
use crate::stall::Cause;
use pinwheel_edge::slot::word::ErrorCode;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Length of a fault that is provoked once.
const FAULT_SPAN: Duration = Duration::from_millis(60);
/// Bytes of each mapping that the allocation drill maps.
const MAPPING_BYTES: usize = 40 << 20;
/// Number of competing shells, if they may not have a higher priority.
const SHELLS: usize = 8;

/// Runs `drill` on an engine of its own.
pub(super) fn inside(drill: Drill) -> Result<DrillVerdict, DrillError> {
    match drill {
        Drill::FullRing => full_ring(),
        Drill::CoreOutsideCpuset => core_outside_cpuset(),
        Drill::LaunchFailures | Drill::WorkerNeverEnds => by_profile(drill),
        _ => {
            if drill == Drill::PageFaults {
                enough_memory()?;
            }
            let pages = if drill == Drill::PageFaults { Pages::Reserved } else { Pages::None };
            let engine = DrillEngine::start(profile()?, None, pages)?;
            let given = provoke(drill, &engine);
            engine.end();
            given
        }
    }
}

fn provoke(drill: Drill, engine: &DrillEngine) -> Result<DrillVerdict, DrillError> {
    let (thread, tid, core) = engine.thread_of(RoleKind::Dispatch)?;
    let name = engine.running.plan().threads[thread].name.clone();
    let at_thread = |alarm: &AlarmView| alarm.thread.as_deref() == Some(&name);
    // During such a fault its thread gets a higher priority if that is permitted. On a busy machine
    // it would otherwise be descheduled, and the verdict would say so. It is shorter than the time
    // that the kernel reserves for others in each second.
    let is_timed = matches!(drill, Drill::LongHandler | Drill::Sleep | Drill::PageFaults);
    let _first = is_timed.then(|| RaisedPriority::of(tid));
    let from_ns = engine.now_ns();
    let order = |role, command, span| engine.drill_command.request(role, command, span);
    let forever = Duration::ZERO;
    match drill {
        Drill::LongHandler => order(RoleKind::Dispatch, Misbehaviour::Compute, FAULT_SPAN),
        Drill::Sleep => order(RoleKind::Dispatch, Misbehaviour::Sleep, FAULT_SPAN),
        Drill::PageFaults => order(RoleKind::Dispatch, Misbehaviour::TouchPages, FAULT_SPAN),
        Drill::RolePanic => order(RoleKind::Poll, Misbehaviour::Panic, FAULT_SPAN),
        Drill::ClaimsWork => order(RoleKind::Poll, Misbehaviour::ClaimWork, forever),
        Drill::DeviceHang => order(RoleKind::Device, Misbehaviour::StandStill, forever),
        Drill::SlowHarvest => order(RoleKind::Harvest, Misbehaviour::SlowDown, Duration::from_millis(3)),
        Drill::LostAffinity => return lost_affinity(engine, tid, core, from_ns, at_thread),
        Drill::Competitor => return competitor(engine, core, at_thread),
        Drill::ManyCompetitors => return many_competitors(engine, core, at_thread),
        Drill::TwoCauses => return two_causes(engine, core),
        Drill::AllocationStorm => return allocation_storm(engine, at_thread),
        _ => return Err(DrillError::Failed(format!("drill {} cannot be provoked in this process", drill.name()))),
    }
    let is_stall = is_timed;
    let device = [RuleId::Quarantine.name(), RuleId::DeviceLost.name(), RuleId::Errors.name()];
    let given = engine.verdict(drill.expected(), from_ns, |alarm| match drill {
        _ if is_stall => at_thread(alarm) && alarm.rule == RuleId::Heartbeat.name(),
        Drill::DeviceHang => device.contains(&alarm.rule),
        Drill::RolePanic => alarm.rule == RuleId::RoleDied.name(),
        Drill::ClaimsWork => alarm.rule == RuleId::NeverIdle.name(),
        _ => alarm.rule == RuleId::LateAnswers.name() || alarm.rule == RuleId::Backlog.name(),
    });
    engine.drill_command.end();
    given
}

/// Raises a thread's priority until this is dropped, if that is permitted.
struct RaisedPriority(u32);

impl RaisedPriority {
    fn of(tid: u32) -> RaisedPriority {
        let _ = priority::set(Some(tid), Priority::Fifo(1));
        RaisedPriority(tid)
    }
}

impl Drop for RaisedPriority {
    fn drop(&mut self) {
        let _ = priority::set(Some(self.0), Priority::Normal);
    }
}

/// Drills by profile: launches fail or never complete from Live on.
fn by_profile(drill: Drill) -> Result<DrillVerdict, DrillError> {
    let mut profile = profile()?;
    match drill {
        Drill::LaunchFailures => profile.faults.not_started = 0.2,
        _ => profile.faults.never_ready = 0.001,
    }
    let engine = DrillEngine::start(profile, None, Pages::None)?;
    let (rule, from_ns) = match drill {
        Drill::LaunchFailures => (RuleId::Errors, engine.live_ns),
        _ => (RuleId::Quarantine, first_fault(&engine, FaultCode::WorkerQuarantined)),
    };
    let given = engine.verdict(drill.expected(), from_ns, |alarm| alarm.rule == rule.name());
    engine.end();
    given
}

/// When the engine first counted fault `code` in Live; else when it became Live.
fn first_fault(engine: &DrillEngine, code: FaultCode) -> u64 {
    let of = |fault: &FaultView| (fault.code == code.number()).then_some(fault.last_ns);
    let seen =
        engine.until(super::VERDICT_LIMIT, |now| now.faults.iter().filter_map(of).find(|at| *at >= engine.live_ns));
    seen.unwrap_or(engine.live_ns)
}

fn lost_affinity(
    engine: &DrillEngine,
    tid: u32,
    core: Option<u32>,
    from_ns: u64,
    about: impl Fn(&AlarmView) -> bool,
) -> Result<DrillVerdict, DrillError> {
    let core = core.ok_or_else(|| DrillError::NotPermitted("no hot thread could be pinned".into()))?;
    let others: Vec<u32> = engine.running.plan().cold_cores.iter().copied().filter(|other| *other != core).collect();
    let away = others
        .first()
        .ok_or_else(|| DrillError::NotPermitted("there is only one core, so the thread cannot be moved".into()))?;
    pin::confine_thread(tid, &[*away]).map_err(|error| DrillError::NotPermitted(error.to_string()))?;
    let given = engine.verdict(Drill::LostAffinity.expected(), from_ns, about);
    let _ = pin::confine_thread(tid, &[core]);
    given
}

/// A hot thread's core leaves the cpuset of this process, and comes back.
fn core_outside_cpuset() -> Result<DrillVerdict, DrillError> {
    let (cores, memory) = (("cpuset.cpus", "cpuset.cpus"), ("cpuset.mems", "cpuset.mems"));
    let group = ControlGroup::make("cpuset", cores)?;
    let all = group.read_around(("cpuset.cpus", "cpuset.cpus.effective"));
    group.set(memory, &group.read_around(("cpuset.mems", "cpuset.mems.effective")))?;
    group.set(cores, &all)?;
    group.take(std::process::id())?;
    let engine = DrillEngine::start(profile()?, None, Pages::None)?;
    let (thread, _, core) = engine.thread_of(RoleKind::Dispatch)?;
    let core = core.ok_or_else(|| DrillError::NotPermitted("no hot thread could be pinned".into()))?;
    let name = engine.running.plan().threads[thread].name.clone();
    let others: Vec<String> =
        engine.running.plan().cold_cores.iter().filter(|other| **other != core).map(u32::to_string).collect();
    if others.is_empty() {
        return Err(DrillError::NotPermitted("there is only one core, so none can be taken away".into()));
    }
    let from_ns = engine.now_ns();
    group.set(cores, &others.join(","))?;
    let at_thread = |alarm: &AlarmView| alarm.thread.as_deref() == Some(&name);
    let given = engine.verdict(Drill::CoreOutsideCpuset.expected(), from_ns, at_thread);
    group.set(cores, &all)?;
    engine.end();
    given
}

/// A shell that waits for a line on its standard input, and then runs a script. Killed when dropped.
struct Shell(Child);

/// Takes its core until process `parent` ends.
fn spin(parent: u32) -> String {
    format!("read go && while kill -0 {parent}; do :; done")
}

/// Takes its core by one process after the other, each some 20 ms long.
const SPIN_IN_TURNS: &str =
    "read go && for turn in 1 2 3 4 5 6 7 8; do (n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done); done";

impl Shell {
    fn start(core: u32, script: &str) -> std::io::Result<Shell> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir("/").env_clear();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let shell = Shell(child);
        let moved = pin::confine_thread(shell.0.id(), &[core]);
        moved.map_err(|error| std::io::Error::other(error.to_string())).map(|()| shell)
    }

    /// Its name in a verdict.
    fn name(&self) -> String {
        format!("({})", self.0.id())
    }

    /// Ends the wait. If the shell has ended, the verdict names another cause.
    fn spin(&mut self) {
        let _ = self.0.stdin.as_mut().map(|stdin| stdin.write_all(b"\n"));
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_shell(core: u32, script: &str) -> Result<Shell, DrillError> {
    Shell::start(core, script)
        .map_err(|error| DrillError::NotPermitted(format!("cannot start a competing shell: {error}")))
}

/// A shell on `core` that goes before the hot thread.
fn first_shell(core: Option<u32>, script: &str) -> Result<Shell, DrillError> {
    let core = core.ok_or_else(|| DrillError::NotPermitted("no hot thread could be pinned".into()))?;
    let shell = start_shell(core, script)?;
    priority::set(Some(shell.0.id()), Priority::Fifo(1))
        .map_err(|error| DrillError::NotPermitted(format!("no real-time priority for a shell: {error}")))?;
    rest(Duration::from_millis(20));
    Ok(shell)
}

/// Programs that have ended before the hot thread runs again: the verdict names them as a group.
fn many_competitors(
    engine: &DrillEngine,
    core: Option<u32>,
    about: impl Fn(&AlarmView) -> bool,
) -> Result<DrillVerdict, DrillError> {
    let mut shell = first_shell(core, SPIN_IN_TURNS)?;
    let (from_ns, parent) = (engine.now_ns(), format!(", children of sh {}", shell.name()));
    shell.spin();
    let is_named = |alarm: &AlarmView| about(alarm) && alarm.who.contains(" ×") && alarm.who.contains(&parent);
    engine.verdict(Drill::ManyCompetitors.expected(), from_ns, is_named)
}

/// A device that hangs and a competitor at once are two incidents, each with its own root.
fn two_causes(engine: &DrillEngine, core: Option<u32>) -> Result<DrillVerdict, DrillError> {
    let mut shell = first_shell(core, &spin(std::process::id()))?;
    let from_ns = engine.now_ns();
    engine.drill_command.request(RoleKind::Device, Misbehaviour::StandStill, Duration::ZERO);
    shell.spin();
    rest(FAULT_SPAN + Duration::from_millis(20));
    let name = shell.name();
    drop(shell);
    let roots = |now: &Snapshot| -> Vec<(String, String)> {
        let recent = now.incidents.iter().filter(|incident| incident.onset_ns + 1_000_000_000 >= from_ns);
        recent.map(|incident| (incident.root.cause.clone(), incident.root.who.clone())).collect()
    };
    let both = engine.until(super::VERDICT_LIMIT, |now| {
        let roots = roots(now);
        let is_named =
            |cause: Cause, who: &str| roots.iter().any(|root| root.0 == cause.name() && root.1.contains(who));
        (is_named(Cause::DeviceHung, "") && is_named(Cause::Descheduled, &name)).then_some(())
    });
    if both.is_none() {
        let found = roots(&engine.running.snapshot());
        return Err(DrillError::Failed(format!("expected two incidents, of the device and of sh {name}: {found:?}")));
    }
    let device = [RuleId::Quarantine.name(), RuleId::DeviceLost.name()];
    let given = engine.verdict(Drill::TwoCauses.expected(), from_ns, |alarm| device.contains(&alarm.rule));
    engine.drill_command.end();
    given
}

/// One shell with a higher priority than the hot thread if that is permitted, else several shells.
fn competitor(
    engine: &DrillEngine,
    core: Option<u32>,
    about: impl Fn(&AlarmView) -> bool,
) -> Result<DrillVerdict, DrillError> {
    let core = core.ok_or_else(|| DrillError::NotPermitted("no hot thread could be pinned".into()))?;
    let shell = || start_shell(core, &spin(std::process::id()));
    let first = shell()?;
    let goes_first = priority::set(Some(first.0.id()), Priority::Fifo(1)).is_ok();
    let mut shells = vec![first];
    while !goes_first && shells.len() < SHELLS {
        shells.push(shell()?);
    }
    rest(Duration::from_millis(20));
    let from_ns = engine.now_ns();
    shells.iter_mut().for_each(Shell::spin);
    rest(FAULT_SPAN + Duration::from_millis(20));
    let names: Vec<String> = shells.iter().map(Shell::name).collect();
    if goes_first {
        shells.clear();
    }
    let is_named = |alarm: &AlarmView| about(alarm) && names.iter().any(|name| alarm.sentence.contains(name.as_str()));
    engine.verdict(Drill::Competitor.expected(), from_ns, is_named)
}

/// A thread that maps, touches and unmaps memory until the verdict. It shares its core with the
/// engine's decode worker, so it needs a higher priority: a thread that does not run triggers no
/// alarm.
fn allocation_storm(engine: &DrillEngine, about: impl Fn(&AlarmView) -> bool) -> Result<DrillVerdict, DrillError> {
    let stop = Arc::new(AtomicBool::new(false));
    let has_begun = Arc::new(AtomicBool::new(false));
    let (stopped, begun) = (Arc::clone(&stop), Arc::clone(&has_begun));
    let cold = engine.running.plan().cold_cores.clone();
    #[expect(clippy::disallowed_methods, reason = "cold: this thread is the drill's fault")]
    let thread = std::thread::Builder::new().name("drill-storm".into()).spawn(move || {
        let _ = pin::confine_current_thread(&cold);
        let _ = priority::set(None, Priority::Nice(-19));
        while !stopped.load(Ordering::Relaxed) {
            // Larger than what the allocator caches, so each mapping returns to the kernel at once.
            let mut mapping = vec![0u8; MAPPING_BYTES];
            mapping[MAPPING_BYTES / 2] = 1;
            drop(std::hint::black_box(mapping));
            begun.store(true, Ordering::Relaxed);
        }
    });
    let thread = thread.map_err(|error| DrillError::Failed(error.to_string()))?;
    // The onset is the first unmapping, not the start of the thread.
    let first = engine.until(super::VERDICT_LIMIT, |now| has_begun.load(Ordering::Relaxed).then_some(now.at_ns));
    let from_ns = first.unwrap_or_else(|| engine.now_ns());
    let rule = RuleId::Interrupts.name();
    let given = engine.verdict(Drill::AllocationStorm.expected(), from_ns, |alarm| about(alarm) && alarm.rule == rule);
    stop.store(true, Ordering::Relaxed);
    let _ = thread.join();
    given
}

/// Answers are written to a pipe that nobody reads.
fn full_ring() -> Result<DrillVerdict, DrillError> {
    let failed =
        |error: &dyn std::fmt::Display| DrillError::NotPermitted(format!("cannot make a pipe to fill: {error}"));
    let place = std::env::temp_dir().join(format!("pinwheel-drill-{}", std::process::id()));
    let reader = super::pipe::unread(&place).map_err(|error| failed(&error))?;
    let profile = profile()?;
    let sink = AnswerSink::new(&SinkConfig {
        predictions: None,
        format: crate::code::Format::B8,
        answers: Some(place.clone()),
        observables: 1,
        window_shots: profile.slots as usize + REORDER_SLACK,
        error_name: |code| ErrorCode::from_number(code).map_or("unknown", ErrorCode::name),
    });
    let engine =
        sink.map_err(|error| failed(&error)).and_then(|sink| DrillEngine::start(profile, Some(sink), Pages::None));
    let done = engine.and_then(|engine| {
        let is_full = |ring: &crate::board::snapshot::RingView| ring.name == "answers" && ring.depth >= ring.capacity;
        let full =
            engine.until(super::VERDICT_LIMIT * 4, |now| now.silos[0].rings.iter().any(is_full).then_some(now.at_ns));
        let from_ns = full.unwrap_or_else(|| engine.now_ns());
        let rule = RuleId::RingFull.name();
        let given = engine.verdict(Drill::FullRing.expected(), from_ns, |alarm| alarm.rule == rule);
        // Closing the reader breaks the pipe, which ends the sink.
        drop(reader);
        engine.end();
        given
    });
    let _ = std::fs::remove_file(&place);
    done
}

fn enough_memory() -> Result<(), DrillError> {
    match mib_left(Path::new("/")) {
        Some(mib) if mib < 2048 => Err(DrillError::NotPermitted(format!(
            "{mib} MiB of memory are free for this process, and the drill needs 2048; free some, or raise the limit of \
             its control group"
        ))),
        _ => Ok(()),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Shell, spin};
    use crate::host::pin::allowed_cores;
    use std::process::{Command, Stdio};

    #[test]
    fn a_shell_that_takes_a_core_ends_with_the_process_that_it_disturbs() {
        let core = allowed_cores().unwrap()[0];
        let parent = || Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut cat = parent();
        let mut shell = Shell::start(core, &spin(cat.id())).unwrap();
        shell.spin();
        let cpu_ticks = |pid: u32| -> u64 {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
            fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
        };
        while cpu_ticks(shell.0.id()) < 5 {
            assert_eq!(shell.0.try_wait().unwrap(), None);
            std::thread::yield_now();
        }
        cat.kill().unwrap();
        cat.wait().unwrap();
        shell.0.wait().unwrap();
        // Before it was told to spin.
        let mut cat = parent();
        let mut shell = Shell::start(core, &spin(cat.id())).unwrap();
        shell.0.wait().unwrap();
        cat.kill().unwrap();
        cat.wait().unwrap();
    }
}
