//! The verdict from another process, because a frozen process also freezes its watchdog.
//!
//! Run by a command that examines a running, frozen or hanging engine through its board and
//! `/proc`. Takes two readings. Never changes the process; reads the stacks of threads that do not
//! run from its memory.

use super::account::{Accounts, Owner};
use super::observe::Observations;
use super::stack::{Maps, STACK_WORDS, Sample};
use super::verdict::{Verdict, verdict};
use crate::host::usable::UsableCores;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A thread of the other process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalThread {
    /// The system's thread id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The role it is in, if any.
    pub role: Option<&'static str>,
    /// The core it was planned on, if any.
    pub core: Option<u32>,
    /// Time since its last heartbeat, nanoseconds.
    pub stall_ns: u64,
}

/// The threads of process `pid` by `/proc` alone; hot threads have the names of the plan.
pub fn threads_of(pid: u32) -> Vec<ExternalThread> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let silent_thread = |path: PathBuf| {
        let tid = path.file_name()?.to_str()?.parse().ok()?;
        let name = crate::files::read_lossy(path.join("comm")).ok()?.trim().to_owned();
        Some(ExternalThread { tid, name, ..ExternalThread::default() })
    };
    let mut found: Vec<ExternalThread> = tasks.flatten().filter_map(|entry| silent_thread(entry.path())).collect();
    found.sort_by_key(|silent_thread| silent_thread.tid);
    found
}

/// Judges `silent_threads` of process `pid` by two readings `span` apart, both during their stalls.
pub fn judge(pid: u32, silent_threads: &[ExternalThread], span: Duration) -> Vec<Verdict> {
    let tids: Vec<u32> = silent_threads.iter().map(|silent_thread| silent_thread.tid).collect();
    let mut accounts = Accounts::open(Owner::Process(pid), &tids);
    let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let mut look = |at_ns| {
        let each = silent_threads.iter().enumerate().map(|(index, silent_thread)| {
            (accounts.thread(index, at_ns), accounts.core(silent_thread.core, at_ns), accounts.detail(index))
        });
        each.collect::<Vec<_>>()
    };
    let before = look(0);
    rest(span);
    let after = look(span_ns);
    let hidden = accounts.hidden();
    let usable = UsableCores::of(Path::new("/"), &pid.to_string());
    let judged = silent_threads.iter().zip(before).zip(after).map(|((silent_thread, before), after)| {
        let mut seen = Observations {
            thread: silent_thread.name.clone(),
            role: silent_thread.role,
            core: silent_thread.core,
            core_loss: silent_thread.core.and_then(|core| usable.loss(core)),
            stall_ns: silent_thread.stall_ns.max(span_ns),
            is_inside: true,
            detail: after.2,
            hidden: hidden.clone(),
            ..Observations::default()
        };
        seen.between(&before.0, &after.0);
        seen.on_core(&before.1, &after.1);
        verdict(&seen)
    });
    judged.collect()
}

/// The stack of a thread of another process that does not run: it sleeps, or is stopped or traced.
///
/// # Errors
/// If the thread runs, or its memory may not be read (`CAP_SYS_PTRACE`, or
/// `kernel.yama.ptrace_scope`).
#[cfg(unix)]
pub fn stack(pid: u32, tid: u32) -> std::io::Result<Sample> {
    use std::io::{Error, ErrorKind};
    use std::os::unix::fs::FileExt;
    let call = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"))?;
    let runs = || Error::new(ErrorKind::WouldBlock, "the thread is running; stop it first");
    let (sp, pc) = pointers(&call).ok_or_else(runs)?;
    let top = Maps::of(pid)?.end_of(sp).unwrap_or(sp);
    let words = (top.saturating_sub(sp) / 8).min(STACK_WORDS as u64) as usize;
    let mut bytes = vec![0; words * 8];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut bytes, sp)?;
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    Ok(Sample { pc, sp, fp: 0, lr: 0, words: bytes.chunks_exact(8).map(word).collect() })
}

/// Stack and instruction pointers, also of a thread that is stopped outside any system call (`-1
/// 0xSP 0xPC`).
#[cfg(unix)]
fn pointers(text: &str) -> Option<(u64, u64)> {
    let (_, sp, pc) = super::procfs::syscall(text)?;
    (sp != 0).then_some((sp, pc))
}

#[expect(clippy::disallowed_methods, reason = "cold: the time between two looks")]
fn rest(span: Duration) {
    std::thread::sleep(span);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{ExternalThread, judge};
    use crate::host::CORES_MAX;
    use crate::stall::Cause;
    use std::time::Duration;

    #[test]
    fn a_thread_whose_core_is_offline_is_not_said_to_have_another_affinity() {
        let own = std::process::id();
        let core = Some(CORES_MAX - 1);
        let silent = ExternalThread { tid: own, name: "hot-0".to_owned(), core, ..ExternalThread::default() };
        let verdicts = judge(own, &[silent], Duration::from_millis(1));
        assert_eq!(verdicts.iter().map(|verdict| verdict.cause).collect::<Vec<_>>(), [Cause::Offline]);
    }
}
