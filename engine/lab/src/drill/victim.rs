//! An engine in a child process: one that can be stopped, held and starved without stopping the drill.
//!
//! The child ([`be_victim`]) waits for a word, runs an engine, and prints a line for each alarm that changes. The parent
//! ([`Victim`]) reads them. Bounds: the child ends when its input ends, so none outlives its drill.

use super::stage::{Pages, Staged, profile, rest};
use super::{Given, Trouble, VERDICT_LIMIT};
use crate::board::alarms::Confidence;
use crate::clock::Clock;
use crate::units::Nanos;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How a child engine is started.
#[derive(Clone, Debug)]
pub struct Program {
    /// This program.
    pub path: PathBuf,
    /// What makes it a victim.
    pub words: Vec<OsString>,
}

/// Longest wait for a child to be Live.
const LIVE_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

/// Is the child: runs an engine until standard input ends. Returns the exit status.
pub fn be_victim() -> u8 {
    let mut go = String::new();
    let mut input = BufReader::new(std::io::stdin());
    if input.read_line(&mut go).is_err() || go.is_empty() {
        return 0;
    }
    let staged = match profile().and_then(|profile| Staged::start(profile, None, Pages::Spared)) {
        Ok(staged) => staged,
        Err(trouble) => {
            print(&json!({"trouble": trouble.to_string()}));
            return 1;
        }
    };
    let hot = staged.thread_of(crate::profile::RoleKind::Dispatch).ok();
    print(&json!({"live": true, "tid": hot.map(|hot| hot.1)}));
    let (sender, ended) = channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "cold: waits for the end of the input")]
    std::thread::spawn(move || {
        let _ = input.read_to_end(&mut Vec::new());
        drop(sender);
    });
    let mut told = Vec::new();
    while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
        for alarm in staged.engine.snapshot().alarms {
            let state = (alarm.number, alarm.onset_ns, alarm.cause.clone());
            if !alarm.cause.is_empty() && !told.contains(&state) {
                told.push(state);
                let (thread, rule) = (&alarm.thread, alarm.rule);
                print(&json!({
                    "cause": alarm.cause, "sentence": alarm.sentence, "thread": thread, "rule": rule,
                    "confidence": alarm.confidence, "culprit": alarm.culprit, "number": alarm.number,
                }));
            }
        }
        rest(LOOK);
    }
    staged.end();
    0
}

fn print(line: &Value) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone reads nothing; the input ends with it, too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A child with a running engine.
pub(super) struct Victim {
    child: Child,
    lines: Receiver<Value>,
    /// Its thread that runs dispatch.
    pub(super) tid: u32,
    clock: Clock,
    boards: PathBuf,
}

impl Victim {
    /// Starts one; `before` is called with its process before its engine starts.
    pub(super) fn start(program: &Program, before: impl FnOnce(u32) -> Result<(), Trouble>) -> Result<Victim, Trouble> {
        let failed = |error: std::io::Error| Trouble::Failed(format!("no child engine: {error}"));
        let boards = crate::board::directory().with_file_name(format!("pinwheel-drill-{}", std::process::id()));
        let mut command = Command::new(&program.path);
        command.args(&program.words).env("PINWHEEL_SHM", &boards);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
        let (sender, lines) = channel();
        let output = child.stdout.take();
        #[expect(clippy::disallowed_methods, reason = "cold: reads what the child says")]
        std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            for line in lines.map_while(Result::ok) {
                let Ok(value) = serde_json::from_str(&line) else { continue };
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut victim = Victim { child, lines, tid: 0, clock: Clock::machine(), boards };
        before(victim.pid())?;
        victim.child.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(b"go\n")).map_err(failed)?;
        let live = victim
            .lines
            .recv_timeout(LIVE_LIMIT)
            .map_err(|_| Trouble::Failed("the child engine was not live in time".into()))?;
        let tid = live["tid"].as_u64().and_then(|tid| u32::try_from(tid).ok());
        victim.tid =
            tid.ok_or_else(|| Trouble::Failed(live["trouble"].as_str().unwrap_or("the child said nothing").into()))?;
        Ok(victim)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Forgets what it said so far.
    pub(super) fn mark(&self) -> crate::units::Ticks {
        while self.lines.try_recv().is_ok() {}
        self.clock.ticks()
    }

    pub(super) fn since(&self, from: crate::units::Ticks) -> u64 {
        let Nanos(ns) = self.clock.rate().nanos(self.clock.ticks().since(from));
        ns
    }

    /// The first verdict with cause `expected` that it says after `from`; else the last of any.
    pub(super) fn verdict(&self, expected: &str, from: crate::units::Ticks) -> Result<Given, Trouble> {
        let mut last = None;
        while self.since(from) < u64::try_from(VERDICT_LIMIT.as_nanos()).unwrap_or(u64::MAX) {
            let Ok(line) = self.lines.recv_timeout(LOOK) else { continue };
            let text = |key: &str| line[key].as_str().map(str::to_owned);
            let Some(cause) = text("cause") else { continue };
            let confidence = match line["confidence"].as_str() {
                Some("certain") => Confidence::Certain,
                Some("likely") => Confidence::Likely,
                _ => Confidence::Unexplained,
            };
            let sentence = text("sentence").unwrap_or_default();
            let given = Given {
                cause,
                confidence,
                sentence,
                culprit: text("culprit"),
                stack: Vec::new(),
                after_ns: self.since(from),
            };
            if given.cause == expected {
                return Ok(given);
            }
            last = Some(given);
        }
        last.ok_or_else(|| {
            Trouble::Failed(format!("no alarm within {} s, expected {expected}", VERDICT_LIMIT.as_secs()))
        })
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.boards);
    }
}
