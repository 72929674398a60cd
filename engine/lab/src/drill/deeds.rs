//! Drills on an engine in this process: each provokes, waits for the verdict, and puts things right again.
//!
//! On the drill's thread. Bounds: those of the stage; helpers (a shell, a storming thread) end with their drill.

use super::stage::{Pages, Staged, profile, rest};
use super::{Drill, Given, Trouble};
use crate::board::snapshot::{AlarmView, FaultView};
use crate::fault::FaultCode;
use crate::host::{pin, priority};
use crate::hot::provoke::Deed;
use crate::profile::{Priority, RoleKind, RuleId};
use crate::record::{AnswerSink, REORDER_SLACK, SinkConfig};
use pinwheel_edge::slot::word::ErrorCode;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Length of a deed done once.
const DEED: Duration = Duration::from_millis(60);
/// Threads of a storm touch so much of each mapping.
const STORM_BYTES: usize = 40 << 20;
/// Shells where none may go before others.
const CROWD: usize = 8;

/// Runs `drill` on an engine of its own.
pub(super) fn inside(drill: Drill) -> Result<Given, Trouble> {
    match drill {
        Drill::FullRing => full_ring(),
        Drill::LaunchFailures | Drill::WorkerNeverEnds => by_profile(drill),
        _ => {
            if drill == Drill::PageFaults {
                enough_memory()?;
            }
            let pages = if drill == Drill::PageFaults { Pages::Wanted } else { Pages::Spared };
            let staged = Staged::start(profile()?, None, pages)?;
            let given = provoke(drill, &staged);
            staged.end();
            given
        }
    }
}

fn provoke(drill: Drill, staged: &Staged) -> Result<Given, Trouble> {
    let (thread, tid, core) = staged.thread_of(RoleKind::Dispatch)?;
    let name = staged.engine.plan().threads[thread].name.clone();
    let at_thread = |alarm: &AlarmView| alarm.thread.as_deref() == Some(&name);
    // For the time of a deed its thread goes before others, where that is permitted: on a busy machine it would else be
    // descheduled in the middle, and rightly told so. Shorter than what the kernel leaves to others in each second.
    let is_deed = matches!(drill, Drill::LongHandler | Drill::Sleep | Drill::PageFaults);
    let _first = is_deed.then(|| First::of(tid));
    let from_ns = staged.now_ns();
    let order = |role, deed, span| staged.provocation.order(role, deed, span);
    let forever = Duration::ZERO;
    match drill {
        Drill::LongHandler => order(RoleKind::Dispatch, Deed::Compute, DEED),
        Drill::Sleep => order(RoleKind::Dispatch, Deed::Sleep, DEED),
        Drill::PageFaults => order(RoleKind::Dispatch, Deed::TouchPages, DEED),
        Drill::RolePanic => order(RoleKind::Poll, Deed::Panic, DEED),
        Drill::ClaimsWork => order(RoleKind::Poll, Deed::ClaimWork, forever),
        Drill::DeviceHang => order(RoleKind::Device, Deed::StandStill, forever),
        Drill::SlowHarvest => order(RoleKind::Harvest, Deed::Dawdle, Duration::from_millis(3)),
        Drill::LostAffinity => return lost_affinity(staged, tid, core, from_ns, at_thread),
        Drill::Competitor => return competitor(staged, core, at_thread),
        Drill::AllocationStorm => return storm(staged, at_thread),
        _ => return Err(Trouble::Failed(format!("{} has no deed", drill.name()))),
    }
    let is_stall = is_deed;
    let device = [RuleId::Quarantine.name(), RuleId::DeviceLost.name(), RuleId::Errors.name()];
    let given = staged.verdict(drill.expected(), from_ns, |alarm| match drill {
        _ if is_stall => at_thread(alarm) && alarm.rule == RuleId::Heartbeat.name(),
        Drill::DeviceHang => device.contains(&alarm.rule),
        Drill::RolePanic => alarm.rule == RuleId::RoleDied.name(),
        Drill::ClaimsWork => alarm.rule == RuleId::NeverIdle.name(),
        _ => alarm.rule == RuleId::LateAnswers.name() || alarm.rule == RuleId::Backlog.name(),
    });
    staged.provocation.cease();
    given
}

/// A thread that goes before others until this is dropped, where that is permitted.
struct First(u32);

impl First {
    fn of(tid: u32) -> First {
        let _ = priority::set(Some(tid), Priority::Fifo(1));
        First(tid)
    }
}

impl Drop for First {
    fn drop(&mut self) {
        let _ = priority::set(Some(self.0), Priority::Normal);
    }
}

/// A profile in which launches fail or never end: the fault begins with Live.
fn by_profile(drill: Drill) -> Result<Given, Trouble> {
    let mut profile = profile()?;
    match drill {
        Drill::LaunchFailures => profile.faults.not_started = 0.2,
        _ => profile.faults.never_ready = 0.001,
    }
    let staged = Staged::start(profile, None, Pages::Spared)?;
    let (rule, from_ns) = match drill {
        Drill::LaunchFailures => (RuleId::Errors, staged.live_ns),
        _ => (RuleId::Quarantine, first_fault(&staged, FaultCode::WorkerQuarantined)),
    };
    let given = staged.verdict(drill.expected(), from_ns, |alarm| alarm.rule == rule.name());
    staged.end();
    given
}

/// When the engine first counted fault `code` in Live, or Live itself.
fn first_fault(staged: &Staged, code: FaultCode) -> u64 {
    let of = |fault: &FaultView| (fault.code == code.number()).then_some(fault.last_ns);
    let seen =
        staged.until(super::VERDICT_LIMIT, |now| now.faults.iter().filter_map(of).find(|at| *at >= staged.live_ns));
    seen.unwrap_or(staged.live_ns)
}

fn lost_affinity(
    staged: &Staged,
    tid: u32,
    core: Option<u32>,
    from_ns: u64,
    about: impl Fn(&AlarmView) -> bool,
) -> Result<Given, Trouble> {
    let core = core.ok_or_else(|| Trouble::NotPermitted("no hot thread could be pinned here".into()))?;
    let others: Vec<u32> = staged.engine.plan().cold_cores.iter().copied().filter(|other| *other != core).collect();
    let away =
        others.first().ok_or_else(|| Trouble::NotPermitted("there is only one core: nowhere to move to".into()))?;
    pin::confine_thread(tid, &[*away]).map_err(|error| Trouble::NotPermitted(error.to_string()))?;
    let given = staged.verdict(Drill::LostAffinity.expected(), from_ns, about);
    let _ = pin::confine_thread(tid, &[core]);
    given
}

/// A shell that waits, and then does nothing as hard as it can; gone when dropped.
struct Shell(Child);

impl Shell {
    fn waiting(core: u32) -> std::io::Result<Shell> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "read go; while :; do :; done"]).current_dir("/").env_clear();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let shell = Shell(child);
        let moved = pin::confine_thread(shell.0.id(), &[core]);
        moved.map_err(|error| std::io::Error::other(error.to_string())).map(|()| shell)
    }

    fn go(&mut self) {
        // One that is gone already competes with nobody, and the verdict will say so.
        let _ = self.0.stdin.as_mut().map(|stdin| stdin.write_all(b"\n"));
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One shell that goes before the hot thread where that is permitted, else a crowd of them.
fn competitor(staged: &Staged, core: Option<u32>, about: impl Fn(&AlarmView) -> bool) -> Result<Given, Trouble> {
    let core = core.ok_or_else(|| Trouble::NotPermitted("no hot thread could be pinned here".into()))?;
    let shell =
        || Shell::waiting(core).map_err(|error| Trouble::NotPermitted(format!("no shell to compete with: {error}")));
    let first = shell()?;
    let goes_first = priority::set(Some(first.0.id()), Priority::Fifo(1)).is_ok();
    let mut shells = vec![first];
    while !goes_first && shells.len() < CROWD {
        shells.push(shell()?);
    }
    rest(Duration::from_millis(20));
    let from_ns = staged.now_ns();
    shells.iter_mut().for_each(Shell::go);
    rest(DEED + Duration::from_millis(20));
    let names: Vec<String> = shells.iter().map(|shell| format!("({})", shell.0.id())).collect();
    if goes_first {
        shells.clear();
    }
    let is_named = |alarm: &AlarmView| about(alarm) && names.iter().any(|name| alarm.sentence.contains(name.as_str()));
    staged.verdict(Drill::Competitor.expected(), from_ns, is_named)
}

/// A thread that maps, touches and unmaps until it is told to stop. Its core has the engine's decode worker, which goes before
/// others: at the usual priority it would hardly run, and a storm that does not blow gets no verdict.
fn storm(staged: &Staged, about: impl Fn(&AlarmView) -> bool) -> Result<Given, Trouble> {
    let stop = Arc::new(AtomicBool::new(false));
    let blows = Arc::new(AtomicBool::new(false));
    let (told, begun) = (Arc::clone(&stop), Arc::clone(&blows));
    let cold = staged.engine.plan().cold_cores.clone();
    #[expect(clippy::disallowed_methods, reason = "cold: the storm is the drill")]
    let thread = std::thread::Builder::new().name("drill-storm".into()).spawn(move || {
        let _ = pin::confine_current_thread(&cold);
        let _ = priority::set(None, Priority::Nice(-19));
        while !told.load(Ordering::Relaxed) {
            // Larger than what the library keeps for itself: each goes back to the kernel at once.
            let mut mapping = vec![0u8; STORM_BYTES];
            mapping[STORM_BYTES / 2] = 1;
            drop(std::hint::black_box(mapping));
            begun.store(true, Ordering::Relaxed);
        }
    });
    let thread = thread.map_err(|error| Trouble::Failed(error.to_string()))?;
    // The onset is when it first gave memory back, not when the system was asked for a thread.
    let first = staged.until(super::VERDICT_LIMIT, |now| blows.load(Ordering::Relaxed).then_some(now.at_ns));
    let from_ns = first.unwrap_or_else(|| staged.now_ns());
    let rule = RuleId::Interrupts.name();
    let given = staged.verdict(Drill::AllocationStorm.expected(), from_ns, |alarm| about(alarm) && alarm.rule == rule);
    stop.store(true, Ordering::Relaxed);
    let _ = thread.join();
    given
}

/// Answers go into a pipe that nobody reads.
fn full_ring() -> Result<Given, Trouble> {
    let failed = |error: &dyn std::fmt::Display| Trouble::NotPermitted(format!("no pipe to fill: {error}"));
    let place = std::env::temp_dir().join(format!("pinwheel-drill-{}", std::process::id()));
    let reader = super::quota::pipe(&place).map_err(|error| failed(&error))?;
    let profile = profile()?;
    let sink = AnswerSink::new(&SinkConfig {
        predictions: None,
        format: crate::code::Format::B8,
        answers: Some(place.clone()),
        observables: 1,
        window_shots: profile.slots as usize + REORDER_SLACK,
        error_name: |code| ErrorCode::from_number(code).map_or("unknown", ErrorCode::name),
    });
    let sink = sink.map_err(|error| failed(&error))?;
    let done = Staged::start(profile, Some(sink), Pages::Spared).and_then(|staged| {
        let is_full = |ring: &crate::board::snapshot::RingView| ring.name == "answers" && ring.depth >= ring.capacity;
        let full =
            staged.until(super::VERDICT_LIMIT * 4, |now| now.silos[0].rings.iter().any(is_full).then_some(now.at_ns));
        let from_ns = full.unwrap_or_else(|| staged.now_ns());
        let rule = RuleId::RingFull.name();
        let given = staged.verdict(Drill::FullRing.expected(), from_ns, |alarm| alarm.rule == rule);
        // Without a reader the pipe breaks, and the sink ends with that.
        drop(reader);
        staged.end();
        given
    });
    let _ = std::fs::remove_file(&place);
    done
}

fn enough_memory() -> Result<(), Trouble> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free_mib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).map(|kib| kib / 1024);
    match free_mib {
        Some(mib) if mib < 2048 => Err(Trouble::NotPermitted(format!(
            "found {mib} MiB of free memory, expected 2048 to touch some of it; free some"
        ))),
        _ => Ok(()),
    }
}
