//! The same verdict from another process: a frozen process freezes its watchdog, too.
//!
//! Owns nothing. Run by a command that looks at a live, frozen or hanging engine through its board and `/proc`. Bounds: two
//! looks, a span apart. Never touches the process: stacks of threads that do not run are read from its memory.

use super::account::{Accounts, Owner};
use super::observe::Observations;
use super::stack::{Maps, STACK_WORDS, Sample};
use super::verdict::{Verdict, verdict};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// A thread of that process, as its board shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspect {
    /// The system's number.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// The role it is in, if any.
    pub role: Option<&'static str>,
    /// The core it was planned on, if any.
    pub core: Option<u32>,
    /// Silence so far.
    pub stall_ns: u64,
}

/// Threads of process `pid` by what the system alone says: hot ones have the names of the plan.
#[must_use]
pub fn threads_of(pid: u32) -> Vec<Suspect> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let suspect = |path: PathBuf| {
        let tid = path.file_name()?.to_str()?.parse().ok()?;
        let name = crate::files::read_lossy(path.join("comm")).ok()?.trim().to_owned();
        Some(Suspect { tid, name, ..Suspect::default() })
    };
    let mut found: Vec<Suspect> = tasks.flatten().filter_map(|entry| suspect(entry.path())).collect();
    found.sort_by_key(|suspect| suspect.tid);
    found
}

/// Judges `suspects` of process `pid` by two looks that lie `span` apart, both inside their stalls.
#[must_use]
pub fn judge(pid: u32, suspects: &[Suspect], span: Duration) -> Vec<Verdict> {
    let tids: Vec<u32> = suspects.iter().map(|suspect| suspect.tid).collect();
    let mut accounts = Accounts::open(Owner::Process(pid), &tids);
    let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let mut look = |at_ns| {
        let each = suspects.iter().enumerate().map(|(index, suspect)| {
            (accounts.thread(index, at_ns), accounts.core(suspect.core.unwrap_or(0), at_ns), accounts.closer(index))
        });
        each.collect::<Vec<_>>()
    };
    let before = look(0);
    rest(span);
    let after = look(span_ns);
    let hidden = accounts.hidden();
    let judged = suspects.iter().zip(before).zip(after).map(|((suspect, before), after)| {
        let mut seen = Observations {
            thread: suspect.name.clone(),
            role: suspect.role,
            core: suspect.core,
            stall_ns: suspect.stall_ns.max(span_ns),
            is_inside: true,
            closer: after.2,
            hidden: hidden.clone(),
            ..Observations::default()
        };
        seen.between(&before.0, &after.0);
        seen.on_core(&before.1, &after.1);
        verdict(&seen)
    });
    judged.collect()
}

/// Stack of a thread of another process that does not run: asleep, stopped or held.
///
/// # Errors
/// If it runs, or its memory may not be read (`CAP_SYS_PTRACE`, or `kernel.yama.ptrace_scope`).
#[cfg(unix)]
pub fn stack(pid: u32, tid: u32) -> std::io::Result<Sample> {
    use std::io::{Error, ErrorKind};
    use std::os::unix::fs::FileExt;
    let call = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"))?;
    let runs = || Error::new(ErrorKind::WouldBlock, "found it running, expected it stopped or asleep; hold it first");
    let (sp, pc) = pointers(&call).ok_or_else(runs)?;
    let top = Maps::of(pid)?.end_of(sp).unwrap_or(sp);
    let words = (top.saturating_sub(sp) / 8).min(STACK_WORDS as u64) as usize;
    let mut bytes = vec![0; words * 8];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut bytes, sp)?;
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    Ok(Sample { pc, sp, fp: 0, lr: 0, words: bytes.chunks_exact(8).map(word).collect() })
}

/// Stack and instruction pointers, also of a thread that stands still outside any call (`-1 0xSP 0xPC`).
#[cfg(unix)]
fn pointers(text: &str) -> Option<(u64, u64)> {
    let (_, sp, pc) = super::procfs::syscall(text)?;
    (sp != 0).then_some((sp, pc))
}

#[expect(clippy::disallowed_methods, reason = "cold: the time between two looks")]
fn rest(span: Duration) {
    std::thread::sleep(span);
}
