//! Drills on an engine in a child process: stop it, hold one of its threads, starve its control group.
//!
//! On the drill's thread. Bounds: those of the victim. Whatever was stopped goes on or ends with its drill.

use super::quota::Group;
use super::victim::{Program, Victim};
use super::{Drill, Given, Trouble};
use crate::stall::hold::Hold;
use crate::stall::outside::{judge, threads_of};
use std::time::Duration;

/// How long a thread is held.
const HELD: Duration = Duration::from_millis(120);
/// Between the two looks from outside.
const LOOKS: Duration = Duration::from_millis(20);

/// Stops the child and judges it from here, as `dump` would: its own watchdog stands still, too.
pub(super) fn sigstop(program: &Program) -> Result<Given, Trouble> {
    let victim = Victim::start(program, |_| Ok(()))?;
    let from = victim.mark();
    stop(victim.pid())?;
    let suspects: Vec<_> = threads_of(victim.pid()).into_iter().filter(|suspect| suspect.tid == victim.tid).collect();
    let verdict = judge(victim.pid(), &suspects, LOOKS).into_iter().next();
    let after_ns = victim.since(from);
    let verdict = verdict.ok_or_else(|| Trouble::Failed("the child's threads are not visible below /proc".into()))?;
    Ok(Given {
        cause: verdict.cause.name().into(),
        confidence: verdict.confidence,
        sentence: verdict.sentence,
        culprit: None,
        stack: Vec::new(),
        after_ns,
    })
}

/// Holds one hot thread; the child's own watchdog says so.
pub(super) fn ptrace_stop(program: &Program) -> Result<Given, Trouble> {
    let victim = Victim::start(program, |_| Ok(()))?;
    let from = victim.mark();
    let hold = Hold::of(victim.tid).map_err(|error| {
        let how = "CAP_SYS_PTRACE, or kernel.yama.ptrace_scope=0";
        Trouble::NotPermitted(format!("a thread cannot be traced here ({error}); {how} would permit it"))
    })?;
    super::stage::rest(HELD);
    drop(hold);
    victim.verdict(Drill::PtraceStop.expected().name(), from)
}

/// Starves the child's control group.
pub(super) fn cpu_quota(program: &Program) -> Result<Given, Trouble> {
    let refused = |error: std::io::Error| {
        Trouble::NotPermitted(format!(
            "no control group can be made here: {error}; run as root, or with a delegated group"
        ))
    };
    let group = Group::make().map_err(refused)?;
    let victim = Victim::start(program, |pid| group.take(pid).map_err(refused))?;
    let from = victim.mark();
    group.limit().map_err(refused)?;
    let given = victim.verdict(Drill::CpuQuota.expected().name(), from);
    drop(victim);
    given
}

#[cfg(unix)]
fn stop(pid: u32) -> Result<(), Trouble> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| Trouble::Failed("no such child".into()))?;
    kill_process(pid, Signal::STOP).map_err(|error| Trouble::NotPermitted(format!("SIGSTOP is refused: {error}")))
}

#[cfg(not(unix))]
fn stop(_: u32) -> Result<(), Trouble> {
    Err(Trouble::NotPermitted("this system has no SIGSTOP".into()))
}
