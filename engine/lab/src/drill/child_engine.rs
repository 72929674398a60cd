//! An engine in a child process, which can be stopped without stopping the drill.
//!
//! The child ([`run_as_child`]) waits for a line on standard input, runs an engine, and prints a
//! line for each alarm that changes. The parent ([`ChildEngine`]) reads them. The child ends when
//! its input ends, so none outlives its drill.

use super::drill_engine::{DrillEngine, Pages, profile, rest};
use super::{DrillError, DrillVerdict, VERDICT_LIMIT};
use crate::board::alarms::Confidence;
use crate::clock::Clock;
use crate::units::Ticks;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How a child engine is started.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program's path.
    pub path: PathBuf,
    /// The arguments that make it run as a child engine.
    pub words: Vec<OsString>,
}

/// Longest wait for a child to become Live.
const LIVE_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

/// Runs an engine until standard input ends. Returns the exit status.
pub fn run_as_child() -> u8 {
    let mut go = String::new();
    let mut input = BufReader::new(std::io::stdin());
    if input.read_line(&mut go).is_err() || go.is_empty() {
        return 0;
    }
    let engine = match profile().and_then(|profile| DrillEngine::start(profile, None, Pages::None)) {
        Ok(engine) => engine,
        Err(trouble) => {
            print(&json!({"trouble": trouble.to_string()}));
            return 1;
        }
    };
    let hot = engine.thread_of(crate::roles::RoleKind::Dispatch).ok();
    print(&json!({"live": true, "tid": hot.map(|hot| hot.1)}));
    let (sender, ended) = channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "cold: waits for the end of the input")]
    std::thread::spawn(move || {
        let _ = input.read_to_end(&mut Vec::new());
        drop(sender);
    });
    let mut told = Vec::new();
    while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
        let now = engine.running.snapshot();
        for alarm in now.alarms {
            let state = (alarm.number, alarm.onset_ns, alarm.cause.clone());
            let root = now.incidents.iter().find(|incident| incident.number == alarm.incident);
            if let Some(root) = root.filter(|_| !alarm.cause.is_empty() && !told.contains(&state)) {
                let rules: Vec<&str> = root.consequences.iter().map(|alarm| alarm.rule.as_str()).collect();
                told.push(state);
                let (thread, rule) = (&alarm.thread, alarm.rule);
                print(&json!({
                    "cause": alarm.cause, "sentence": alarm.sentence, "thread": thread, "rule": rule,
                    "confidence": alarm.confidence, "culprit": alarm.culprit, "number": alarm.number,
                    "root": root.root.cause, "consequences": rules,
                }));
            }
        }
        rest(LOOK);
    }
    engine.end();
    0
}

fn print(line: &Value) {
    let mut out = std::io::stdout().lock();
    // If the parent has ended, so does the input.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A child with a running engine.
pub(super) struct ChildEngine {
    child: Child,
    /// What it says, each line with the time at which it came.
    lines: Receiver<(Ticks, Value)>,
    /// Its thread that runs dispatch.
    pub(super) tid: u32,
    clock: Clock,
    boards: PathBuf,
}

impl ChildEngine {
    /// Starts a child; calls `before` with its process id before its engine starts.
    pub(super) fn start(
        program: &Program,
        before: impl FnOnce(u32) -> Result<(), DrillError>,
    ) -> Result<ChildEngine, DrillError> {
        let failed = |error: std::io::Error| DrillError::Failed(format!("no child engine: {error}"));
        let boards = crate::board::directory().with_file_name(format!("pinwheel-drill-{}", std::process::id()));
        let mut command = Command::new(&program.path);
        command.args(&program.words).env("PINWHEEL_SHM", &boards);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
        let (sender, lines) = channel();
        let (output, clock) = (child.stdout.take(), Clock::machine());
        let its_clock = clock.clone();
        #[expect(clippy::disallowed_methods, reason = "cold: reads what the child says")]
        std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            for line in lines.map_while(Result::ok) {
                let Ok(value) = serde_json::from_str(&line) else { continue };
                if sender.send((its_clock.ticks(), value)).is_err() {
                    return;
                }
            }
        });
        let mut child = ChildEngine { child, lines, tid: 0, clock, boards };
        before(child.pid())?;
        child.child.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(b"go\n")).map_err(failed)?;
        let (_, live) = child
            .lines
            .recv_timeout(LIVE_LIMIT)
            .map_err(|_| DrillError::Failed("the child engine was not live in time".into()))?;
        let tid = live["tid"].as_u64().and_then(|tid| u32::try_from(tid).ok());
        child.tid = tid.ok_or_else(|| {
            DrillError::Failed(live["trouble"].as_str().unwrap_or("the child printed nothing").into())
        })?;
        Ok(child)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Discards the lines printed so far.
    pub(super) fn mark(&self) -> Ticks {
        while self.lines.try_recv().is_ok() {}
        self.clock.ticks()
    }

    /// Nanoseconds since `from`.
    pub(super) fn since(&self, from: Ticks) -> u64 {
        self.nanos(self.clock.ticks(), from)
    }

    fn nanos(&self, at: Ticks, from: Ticks) -> u64 {
        self.clock.rate().nanos(at.since(from)).0
    }

    /// The first verdict with cause `expected` printed after `from`; else the last of any.
    pub(super) fn verdict(&self, expected: &str, from: Ticks) -> Result<DrillVerdict, DrillError> {
        let mut last = None;
        while self.since(from) < u64::try_from(VERDICT_LIMIT.as_nanos()).unwrap_or(u64::MAX) && !super::is_over() {
            let (at, line) = match self.lines.recv_timeout(LOOK) {
                Ok(said) => said,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return last.ok_or_else(|| DrillError::Failed("the child engine ended without an alarm".into()));
                }
            };
            let text = |key: &str| line[key].as_str().map(str::to_owned);
            let Some(cause) = text("cause") else { continue };
            let confidence = match line["confidence"].as_str() {
                Some("certain") => Confidence::Certain,
                Some("likely") => Confidence::Likely,
                _ => Confidence::Unexplained,
            };
            let sentence = text("sentence").unwrap_or_default();
            let given = DrillVerdict {
                cause,
                confidence,
                root: text("root"),
                consequences: serde_json::from_value(line["consequences"].clone()).unwrap_or_default(),
                sentence,
                culprit: text("culprit"),
                stack: Vec::new(),
                after_ns: self.nanos(at, from),
            };
            if given.cause == expected {
                return Ok(given);
            }
            last = Some(given);
        }
        last.ok_or_else(|| {
            DrillError::Failed(format!("no alarm within {} s, expected {expected}", VERDICT_LIMIT.as_secs()))
        })
    }
}

impl Drop for ChildEngine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.boards);
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{ChildEngine, Program};
    use std::io::Write;

    /// A child that is live at once, and says a cause for each further line.
    const CHILD: &str = r#"read go; echo '{"live":true,"tid":1}'; while read more; do echo '{"cause":"died"}'; done"#;
    const TRIES: usize = 20;

    #[test]
    fn a_verdict_has_the_time_at_which_the_child_said_it() {
        let words = ["-c", CHILD].map(Into::into).to_vec();
        let mut child = ChildEngine::start(&Program { path: "/bin/sh".into(), words }, |_| Ok(())).unwrap();
        // On a busy machine the thread that reads the child's lines may come late.
        let is_of_the_line = |child: &mut ChildEngine| {
            let from = child.mark();
            child.child.stdin.as_mut().unwrap().write_all(b"more\n").unwrap();
            while child.since(from) < 20_000_000 {
                std::thread::yield_now();
            }
            child.verdict("died", from).unwrap().after_ns < 20_000_000
        };
        assert!((0..TRIES).any(|_| is_of_the_line(&mut child)));
        drop(child.child.stdin.take());
        let said = child.verdict("died", child.mark()).unwrap_err().to_string();
        assert_eq!(said, "the child engine ended without an alarm");
    }
}
