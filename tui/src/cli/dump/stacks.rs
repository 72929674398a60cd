//! Stacks of another process's threads, and verdicts on its silent threads.
//!
//! Reads `/proc` and the process's memory; stops no thread. Bounds: [`THREADS_MAX`] threads, two
//! samples [`POLL_INTERVAL`] apart. The stack of a running thread cannot be read from outside; such a thread
//! is listed with that reason.

use pinwheel_engine::board::snapshot::{Snapshot, ThreadView};
use pinwheel_engine::roles::ThreadState;
use pinwheel_engine::stall::outside::{ExternalThread, judge, stack, threads_of};
use pinwheel_engine::stall::stack::{Maps, Symbols};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Most threads that are examined.
pub const THREADS_MAX: usize = 4_096;
/// Interval between the two samples of a verdict.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The stacks found, and the missing ones with their reasons.
pub struct Stacks {
    /// Threads with their frames, innermost first.
    pub text: String,
    /// Missing items, with reasons.
    pub missing: Vec<(String, String)>,
}

/// The stacks of the threads of process `pid` that are not running.
pub fn stacks(pid: u32) -> Stacks {
    let mut found = Stacks { text: String::new(), missing: Vec::new() };
    let symbols = match Maps::of(pid) {
        Ok(maps) => Symbols::of(&maps),
        Err(error) => {
            found.missing.push(("stacks.txt".to_owned(), format!("its mappings: {error}")));
            return found;
        }
    };
    let mut symbols = symbols;
    for ExternalThread { tid, name, .. } in threads_of(pid).into_iter().take(THREADS_MAX) {
        match stack(pid, tid) {
            Ok(sample) => {
                let named = symbols.name(&sample);
                // Writing to a String cannot fail.
                let _ = writeln!(found.text, "{name} (thread {tid})");
                for frame in &named.frames {
                    let _ = writeln!(found.text, "    {frame}");
                }
            }
            Err(error) => found.missing.push((format!("stack of {name} (thread {tid})"), error.to_string())),
        }
    }
    found
}

/// A verdict on each hot thread that has been silent for longer than the engine's limit.
pub fn verdicts(pid: u32, snapshot: &Snapshot) -> Vec<Value> {
    let limit_ns = snapshot.engine.heartbeat_limit_ns;
    let is_silent = |thread: &&ThreadView| thread.state == ThreadState::Running && thread.heartbeat_age_ns > limit_ns;
    let silent_thread = |thread: &ThreadView| ExternalThread {
        tid: thread.tid,
        name: thread.name.clone(),
        role: thread.stage.map(|role| role.name()),
        core: thread.core.filter(|_| thread.pinned),
        stall_ns: thread.heartbeat_age_ns,
    };
    let silent_threads: Vec<ExternalThread> = snapshot.threads.iter().filter(is_silent).map(silent_thread).collect();
    if silent_threads.is_empty() {
        return Vec::new();
    }
    let as_json = |(silent_thread, verdict): (&ExternalThread, pinwheel_engine::stall::Verdict)| {
        json!({"thread": silent_thread.name, "cause": verdict.cause.name(), "sentence": verdict.sentence,
            "confidence": verdict.confidence, "evidence": verdict.evidence.lines().collect::<Vec<_>>()})
    };
    silent_threads.iter().zip(judge(pid, &silent_threads, POLL_INTERVAL)).map(as_json).collect()
}
