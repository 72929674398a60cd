//! `pinwheel dump`: all that can be known of a running or frozen engine, in one directory.
//!
//! Runs on the main thread of another process, because a frozen engine freezes its own diagnostics. Reads, and stops nobody. Bounded by
//! the board, the engine's threads and [`SPAN`] of its recording. What cannot be had is listed with why, never left out silently.

mod stacks;

use super::engines;
use super::places::Surroundings;
use super::refusal::Refusal;
use super::replay::moment;
use super::{runs, say, written};
use clap::Args as ClapArgs;
use pinwheel_engine::board::image::{self, BoardFile, Image};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{self, Life};
use pinwheel_engine::clock::{Clock, utc_now_s};
use pinwheel_engine::files::{self, OpenError, read_lossy, shared};
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::host::check::{Observations, judge};
use pinwheel_engine::record::hlog;
use pinwheel_engine::record::tape::{self, Moment, Tape};
use pinwheel_engine::units::{Nanos, Ticks};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is taken of the recording.
const SPAN: Nanos = Nanos(60_000_000_000);
/// Files of each thread in `/proc`.
const OF_A_THREAD: [&str; 7] = ["stat", "status", "schedstat", "wchan", "syscall", "stack", "comm"];
/// Files of the process.
const OF_THE_PROCESS: [&str; 6] = ["status", "limits", "cgroup", "sched", "maps", "cmdline"];
/// Files of the machine.
const OF_THE_MACHINE: [&str; 5] = ["interrupts", "softirqs", "stat", "pressure/cpu", "cmdline"];
/// Files of the run.
const OF_THE_RUN: [&str; 5] = ["manifest.json", "profile.ron", "environment.json", "events.jsonl", "report.json"];
/// Most bytes of one file of the run.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Most threads whose files are taken.
const THREADS_MAX: usize = 4_096;

#[derive(Debug, ClapArgs)]
pub struct DumpArgs {
    /// The engine's process [default: the only one there is]
    #[arg(value_name = "PID")]
    pub pid: Option<u32>,
    /// Make this directory [default: pinwheel-dump-PID-TIME here]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print what was taken as JSON
    #[arg(long)]
    pub json: bool,
}

/// A dump being made.
struct Bundle {
    dir: PathBuf,
    taken: Vec<String>,
    missing: Vec<Value>,
}

pub fn dump(args: &DumpArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let (file, image) = find(args.pid)?;
    let snapshot = now(&image)?;
    let name = format!("pinwheel-dump-{}-{}", file.pid, utc_now_s());
    let dir = args.output.clone().unwrap_or_else(|| around.working_dir.join(name));
    fs::DirBuilder::new().mode(0o700).create(&dir).map_err(|error| {
        let found = format!("it not to be made ({error})");
        Refusal::unusable(format!("dump {}", dir.display()), found, "a new directory", "name another with -o DIR")
    })?;
    let mut bundle = Bundle { dir, taken: Vec::new(), missing: Vec::new() };
    let about = json!({"pid": file.pid, "board": file.path.display().to_string(), "taken_utc_s": utc_now_s()});
    bundle.put("board.json", &pretty(&moment(&snapshot, "dump", &about)));
    bundle.take(files::open_of(&file.path, file.owner), "board");
    match shared::user_of_process(file.pid) {
        // Its name is the board's word; a board of somebody else must not make us hold or read another's process.
        Some(user) if user != file.owner => bundle.miss(
            "proc",
            &format!(
                "process {} is user {user}'s, and its board is user {}'s: a board names another's process",
                file.pid, file.owner
            ),
        ),
        _ => {
            bundle.process(file.pid);
            bundle.standing(file.pid, &snapshot);
        }
    }
    bundle.machine(&snapshot);
    match snapshot.recorder.run_dir.as_deref().map(Path::new) {
        Some(run) => bundle.run(run, file.owner),
        None => {
            bundle.miss("recording", "the engine has no run directory on its board: its profile says diagnostics: Off")
        }
    }
    let told = json!({"pid": file.pid, "directory": bundle.dir.display().to_string(), "profile": snapshot.engine.profile,
        "frozen": state_of(file.pid), "taken": bundle.taken, "missing": bundle.missing});
    bundle.put("dump.json", &pretty(&told));
    say::people(&format!(
        "pinwheel: {} things in {}, {} not to be had (see dump.json)",
        bundle.taken.len(),
        bundle.dir.display(),
        bundle.missing.len()
    ));
    if args.json {
        return Ok(written(say::json(&mut io::stdout().lock(), &told), 0));
    }
    Ok(0)
}

fn pretty(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// "T (stopped)", "R (running)" …; empty if it cannot be read.
fn state_of(pid: u32) -> String {
    let status = read_lossy(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or_default().trim().to_owned()
}

fn find(pid: Option<u32>) -> Result<(BoardFile, Image), Refusal> {
    let directory = board::directory();
    let about = || format!("boards in {}", directory.display());
    let (mut alive, mut refused) = (Vec::new(), None);
    engines::say_strangers(&directory);
    for file in image::files(&directory).into_iter().filter(|file| pid.is_none_or(|pid| pid == file.pid)) {
        match Image::open(&file.path) {
            Ok((image, Life::Alive)) => alive.push((file, image)),
            Ok((_, Life::Dead)) => {
                refused = Some(format!("process {} ended; see pinwheel postmortem {}", file.pid, file.pid))
            }
            Err(error) => refused = Some(error.to_string()),
        }
    }
    if alive.len() > 1 {
        let pids: Vec<String> = alive.iter().map(|(file, _)| file.pid.to_string()).collect();
        return Err(Refusal::unusable(about(), format!("engines {}", pids.join(", ")), "one", "name its PID"));
    }
    let found = alive.pop().ok_or_else(|| {
        let whose =
            pid.map_or_else(|| "a running engine's board".to_owned(), |pid| format!("the board of process {pid}"));
        let found = refused.unwrap_or_else(|| "none".to_owned());
        Refusal::unusable(about(), found, whose, "start one with pinwheel run, as a user who may share memory there")
    })?;
    runs::say_whose(&format!("the engine of process {}", found.0.pid), found.0.owner);
    Ok(found)
}

/// The engine as it is now: the counter is the machine's, so its ages are true although its own threads may stand still.
fn now(image: &Image) -> Result<Snapshot, Refusal> {
    let last = image.last_sign().map_err(tape::TapeError::from)?;
    let at = Clock::machine().ticks();
    // Where the two do not read the same counter, the board's own last sign of life is the better word.
    let at = if at >= last { at } else { Ticks(last.0) };
    let snapshot = Moment { at, image: image.clone() }.snapshot().map_err(tape::TapeError::from)?;
    snapshot.ok_or_else(|| {
        Refusal::unusable("board", "no clock on it", "an engine past its Init", "try again when it has started")
    })
}

impl Bundle {
    fn put(&mut self, name: &str, content: &[u8]) {
        let path = self.dir.join(name);
        // What it holds may be for its owner's eyes only, and is copied by whoever may read it.
        let make = |folder: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let made = path.parent().map_or(Ok(()), make).and_then(|()| {
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.write_all(content)
        });
        match made {
            Ok(()) => self.taken.push(name.to_owned()),
            Err(error) => self.miss(name, &error.to_string()),
        }
    }

    fn miss(&mut self, name: &str, why: &str) {
        self.missing.push(json!({"what": name, "why": why}));
    }

    /// Files of `/proc` say no size: they are read to their end.
    fn copy(&mut self, from: &Path, name: &str) {
        match fs::read(from) {
            Ok(content) => self.put(name, &content),
            Err(error) => {
                let remedy = if error.kind() == io::ErrorKind::PermissionDenied {
                    "; run dump as root, or as the engine's user with ptrace allowed"
                } else {
                    ""
                };
                self.miss(name, &format!("{}: {error}{remedy}", from.display()));
            }
        }
    }

    fn process(&mut self, pid: u32) {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        for name in OF_THE_PROCESS {
            self.copy(&proc.join(name), &format!("proc/{name}"));
        }
        let threads = fs::read_dir(proc.join("task")).into_iter().flatten().flatten();
        for thread in threads.take(THREADS_MAX) {
            let tid = thread.file_name().to_string_lossy().into_owned();
            for name in OF_A_THREAD {
                self.copy(&thread.path().join(name), &format!("proc/task/{tid}/{name}"));
            }
        }
    }

    /// Where its threads stand, and why the silent ones do.
    fn standing(&mut self, pid: u32, snapshot: &Snapshot) {
        let found = stacks::stacks(pid);
        if !found.text.is_empty() {
            self.put("stacks.txt", found.text.as_bytes());
        }
        found.missing.iter().for_each(|(what, why)| self.miss(what, why));
        self.put("verdicts.json", &pretty(&json!(stacks::verdicts(pid, snapshot))));
    }

    fn machine(&mut self, snapshot: &Snapshot) {
        for name in OF_THE_MACHINE {
            self.copy(&Path::new("/proc").join(name), &format!("machine/{name}"));
        }
        let hot: Vec<u32> =
            snapshot.threads.iter().filter(|thread| thread.exclusive).filter_map(|thread| thread.core).collect();
        match HostFacts::read() {
            Ok(host) => {
                let rows = judge(&Observations::read(Path::new("/"), &host, &hot));
                self.put("check.json", &pretty(&json!({"rows": rows})));
            }
            Err(error) => self.miss("check.json", &error.to_string()),
        }
    }

    /// A file that others may have made, as [`files`] opened it.
    fn take(&mut self, opened: Result<fs::File, OpenError>, name: &str) {
        match opened.and_then(|file| files::read_up_to(file, FILE_BYTES_MAX)) {
            Ok(content) => self.put(name, &content),
            Err(error) => self.miss(name, &error.to_string()),
        }
    }

    /// Files of the run in `run`, which a board of user `owner` names.
    fn run(&mut self, run: &Path, owner: u32) {
        match fs::metadata(run).map(|found| files::owner(&found)) {
            Ok(found) if found == owner => {}
            Ok(found) => {
                let why = format!("{} belongs to user {found}, and the board to user {owner}", run.display());
                return self.miss("run", &why);
            }
            Err(error) => return self.miss("run", &format!("{}: {error}", run.display())),
        }
        for name in OF_THE_RUN {
            self.take(files::open_in(run, name), &format!("run/{name}"));
        }
        let mut tape = match Tape::open(run) {
            Ok(tape) => tape,
            Err(error) => return self.miss("run/recording.pwt", &error.to_string()),
        };
        let mut bytes = Vec::new();
        match tape.cut(SPAN, &mut bytes) {
            Ok(()) => self.put(&format!("run/{}", tape::FILE), &bytes),
            Err(error) => self.miss("run/recording.pwt", &error.to_string()),
        }
        let mut log = Vec::new();
        match hlog::write(&mut tape, &mut log) {
            Ok(()) => self.put("run/latency.hlog", &log),
            Err(error) => self.miss("run/latency.hlog", &error.to_string()),
        }
    }
}
