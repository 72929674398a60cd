//! Where the threads of another process stand, and why those stand still that are silent.
//!
//! Reads `/proc` and the process's memory, and stops nobody. Bounds: [`THREADS_MAX`] threads, two looks [`LOOK`] apart. A thread that
//! runs has no stack to be read from outside: it is listed with that, not left out.

use super::THREADS_MAX;
use pinwheel_engine::board::snapshot::{Snapshot, ThreadState, ThreadView};
use pinwheel_engine::stall::outside::{Suspect, judge, stack, threads_of};
use pinwheel_engine::stall::stack::{Maps, Symbols};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Between the two looks of a verdict.
const LOOK: Duration = Duration::from_millis(100);

/// What was found, and what was not with why.
pub struct Stacks {
    /// Threads with their frames, innermost first.
    pub text: String,
    /// What could not be had.
    pub missing: Vec<(String, String)>,
}

/// The stacks of the threads of process `pid` that do not run.
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
    for Suspect { tid, name, .. } in threads_of(pid).into_iter().take(THREADS_MAX) {
        match stack(pid, tid) {
            Ok(sample) => {
                let named = symbols.name(&sample);
                // Writing into a text cannot fail.
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

/// Why the hot threads stand still that have been silent for longer than the engine's limit.
pub fn verdicts(pid: u32, snapshot: &Snapshot) -> Vec<Value> {
    let limit_ns = snapshot.engine.heartbeat_limit_ns;
    let is_silent = |thread: &&ThreadView| thread.state == ThreadState::Running && thread.heartbeat_age_ns > limit_ns;
    let suspect = |thread: &ThreadView| Suspect {
        tid: thread.tid,
        name: thread.name.clone(),
        role: thread.stage.map(|role| role.name()),
        core: thread.core,
        stall_ns: thread.heartbeat_age_ns,
    };
    let suspects: Vec<Suspect> = snapshot.threads.iter().filter(is_silent).map(suspect).collect();
    if suspects.is_empty() {
        return Vec::new();
    }
    let told = |(suspect, verdict): (&Suspect, pinwheel_engine::stall::Verdict)| {
        json!({"thread": suspect.name, "cause": verdict.cause.name(), "sentence": verdict.sentence,
            "confidence": verdict.confidence, "evidence": verdict.evidence.lines().collect::<Vec<_>>()})
    };
    suspects.iter().zip(judge(pid, &suspects, LOOK)).map(told).collect()
}
