//! Drills on an engine in a child process: stop it, stop one of its threads, limit its control
//! group.
//!
//! On the drill's thread. Whatever was stopped continues or ends with its drill.

use super::child_engine::{ChildEngine, Program};
use super::control_group::ControlGroup;
use super::{Drill, DrillError, DrillVerdict};
use crate::stall::outside::{judge, threads_of};
use crate::stall::ptrace::PtraceStop;
use std::time::Duration;

/// How long a thread is stopped.
const HELD: Duration = Duration::from_millis(120);
/// Time between the two readings from this process.
const LOOKS: Duration = Duration::from_millis(20);

/// Stops the child and judges it from this process, as `dump` would, because its own watchdog is
/// stopped too.
pub(super) fn sigstop(program: &Program) -> Result<DrillVerdict, DrillError> {
    let child = ChildEngine::start(program, |_| Ok(()))?;
    let from = child.mark();
    stop(child.pid())?;
    let silent_threads: Vec<_> =
        threads_of(child.pid()).into_iter().filter(|silent_thread| silent_thread.tid == child.tid).collect();
    let verdict = judge(child.pid(), &silent_threads, LOOKS).into_iter().next();
    let after_ns = child.since(from);
    let verdict =
        verdict.ok_or_else(|| DrillError::Failed("the child's threads are not visible below /proc".into()))?;
    Ok(DrillVerdict {
        cause: verdict.cause.name().into(),
        confidence: verdict.confidence,
        root: None,
        consequences: Vec::new(),
        sentence: verdict.sentence,
        culprit: None,
        stack: Vec::new(),
        after_ns,
    })
}

/// Stops one hot thread; the child's own watchdog judges it.
pub(super) fn ptrace_stop(program: &Program) -> Result<DrillVerdict, DrillError> {
    let child = ChildEngine::start(program, |_| Ok(()))?;
    let from = child.mark();
    let stop = PtraceStop::of(child.tid).map_err(|error| {
        let how = "CAP_SYS_PTRACE, or kernel.yama.ptrace_scope=0";
        DrillError::NotPermitted(format!("a thread cannot be traced here ({error}); {how} would permit it"))
    })?;
    super::drill_engine::rest(HELD);
    drop(stop);
    child.verdict(Drill::PtraceStop.expected().name(), from)
}

/// Limits the child's control group.
pub(super) fn cpu_quota(program: &Program) -> Result<DrillVerdict, DrillError> {
    let group = ControlGroup::make("cpu", ("cpu.cfs_quota_us", "cpu.max"))?;
    let child = ChildEngine::start(program, |pid| group.take(pid))?;
    let from = child.mark();
    group.set_quota()?;
    let given = child.verdict(Drill::CpuQuota.expected().name(), from);
    drop(child);
    given
}

#[cfg(unix)]
fn stop(pid: u32) -> Result<(), DrillError> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid =
        i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| DrillError::Failed("no such child".into()))?;
    kill_process(pid, Signal::STOP).map_err(|error| DrillError::NotPermitted(format!("SIGSTOP is refused: {error}")))
}

#[cfg(not(unix))]
fn stop(_: u32) -> Result<(), DrillError> {
    Err(DrillError::NotPermitted("this system has no SIGSTOP".into()))
}
