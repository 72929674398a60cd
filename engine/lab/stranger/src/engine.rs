//! One engine under test: started, watched, signalled, and its end judged.
//!
//! Owned by its round. Whatever happens to the round, [`Drop`] kills the process.

use crate::tally::Tally;
use crate::world::{Hang, Ran, World, read, tail, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take that is to happen soon, on a loaded machine with two cores.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A running `pinwheel run`.
#[derive(Debug)]
pub struct Engine {
    pub words: String,
    pub child: Child,
    pub pid: u32,
    out: PathBuf,
    err: PathBuf,
}

/// Where standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Out {
    /// A file: [`Engine::end`] returns its text.
    File,
    /// A pipe that the round reads.
    Pipe,
}

impl Engine {
    /// Starts the program with these words.
    pub fn start(world: &World, words: &str, stdin: Stdio, out: Out) -> io::Result<Engine> {
        Engine::start_as(world, world.command(words), words, stdin, out)
    }

    /// Starts a command that becomes the program.
    pub fn start_as(world: &World, mut command: Command, words: &str, stdin: Stdio, out: Out) -> io::Result<Engine> {
        let (out_path, err) = (world.new_path("out/out"), world.new_path("out/err"));
        let stdout = match out {
            Out::File => File::create(&out_path)?.into(),
            Out::Pipe => Stdio::piped(),
        };
        let child = command.stdin(stdin).stdout(stdout).stderr(File::create(&err)?).spawn()?;
        Ok(Engine { words: words.into(), pid: child.id(), child, out: out_path, err })
    }

    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn signal(&self, signal: Signal) -> bool {
        Pid::from_raw(self.pid as i32).is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// Waits until `ctl status` says LIVE. False: it ended before, or never came.
    pub fn until_live(&mut self, world: &World, tally: &mut Tally) -> bool {
        let from = Instant::now();
        let mut said = String::new();
        while from.elapsed() < PATIENCE && !self.has_ended() {
            match world.run(&format!("ctl status --to {}", self.pid), PATIENCE) {
                Ok(ran) if ran.code() == 0 && ran.out.contains("\"phase\":\"LIVE\"") => return true,
                Ok(ran) => said = ran.out + &ran.err,
                Err(Hang(evidence)) => {
                    tally.hang("ctl status", evidence);
                    return false;
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        if !self.has_ended() {
            let threads = crate::world::threads(self.pid);
            tally.hang("never live", json!({ "command": self.words, "status": tail(&said), "threads": threads }));
        }
        false
    }

    /// Waits for its end.
    pub fn end(&mut self, limit: Duration) -> Result<Ran, Hang> {
        let status = wait(&mut self.child, limit).map_err(|mut hang| {
            hang.0["command"] = self.words.clone().into();
            hang.0["stderr"] = tail(&read(&self.err)).into();
            hang
        })?;
        Ok(Ran { words: self.words.clone(), status, out: read(&self.out), err: read(&self.err) })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// The report of a run: the last line of what it printed.
pub fn report(printed: &str) -> Option<Value> {
    serde_json::from_str(printed.trim_end().lines().last()?).ok()
}

/// What is wrong with a report: counts that do not add up, or a status without a reason.
pub fn judge_report(report: &Value, code: i32, may_err: bool, tally: &mut Tally) {
    let count = |key: &str| report[key].as_u64();
    for key in ["lost", "duplicated"] {
        if count(key) != Some(0) {
            tally.violation(format!("the report says {key} {}", report[key]), report["alarms"].clone());
        }
    }
    if count("submitted") != count("answered") {
        tally.violation(
            format!("submitted {} and answered {} differ in the report", report["submitted"], report["answered"]),
            report["unanswered"].clone(),
        );
    }
    if report["exit_status"].as_i64() != Some(i64::from(code)) {
        tally.violation(format!("exit status {code}, but {} in the report", report["exit_status"]), Value::Null);
    }
    let reasons: Vec<&Value> = report["alarms"].as_array().into_iter().flatten().collect();
    let is_unsound = reasons.iter().any(|alarm| alarm["unsound"] == true);
    if code == 1 && !is_unsound {
        tally.violation("exit status 1 without a reason among the alarms", report["alarms"].clone());
    }
    if !may_err && report["errors"].as_object().is_some_and(|errors| !errors.is_empty()) {
        tally.violation("shots were answered with errors that nothing in the round explains", report["errors"].clone());
    }
}
