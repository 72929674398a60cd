//! `pinwheel dump`: collects all diagnostics of a running or frozen engine in one directory.
//!
//! Runs on the main thread of another process, because a frozen engine cannot diagnose itself. Only
//! reads, and stops no thread. Bounded by the board, the engine's threads and [`SPAN`] of its
//! recording. Lists every missing item with the reason. Exit status 1 if one of [`REQUIRED`] could
//! not be written.

mod stacks;

use super::engines::{self, RunningEngine};
use super::places::UserPaths;
use super::refusal::Refusal;
use super::say::{self, written};
use clap::Args as ClapArgs;
use pinwheel_engine::board::image::Image;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::clock::{Clock, utc_now_s};
use pinwheel_engine::files::{self, OpenError, read_lossy, shared};
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::host::check::{Observations, judge};
use pinwheel_engine::record::hlog;
use pinwheel_engine::record::tape::{self, Moment, Tape};
use pinwheel_engine::units::{Nanos, Ticks};
use pinwheel_report::moment::moment;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Length of the copied part of the recording.
const SPAN: Nanos = Nanos(60_000_000_000);
/// Files of each thread in `/proc` that are copied.
const THREAD_FILES: [&str; 7] = ["stat", "status", "schedstat", "wchan", "syscall", "stack", "comm"];
/// Files of the process in `/proc` that are copied.
const PROCESS_FILES: [&str; 6] = ["status", "limits", "cgroup", "sched", "maps", "cmdline"];
/// Files of the machine in `/proc` that are copied.
const MACHINE_FILES: [&str; 5] = ["interrupts", "softirqs", "stat", "pressure/cpu", "cmdline"];
/// Files of the run directory that are copied.
const RUN_FILES: [&str; 5] = ["manifest.json", "profile.ron", "environment.json", "events.jsonl", "report.json"];
/// Largest part of a file that is copied, in bytes; a run's events have at most 64 MiB.
const COPY_BYTES_MAX: u64 = 128 << 20;

#[derive(Debug, ClapArgs)]
pub struct DumpArgs {
    /// The engine's process, or its run: a name or a directory [default: the only running engine]
    #[arg(value_name = "PID|RUN")]
    pub engine: Option<String>,
    /// Directory to create [default: pinwheel-dump-PID-TIME in the working directory]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print the list of collected items as JSON
    #[arg(long)]
    pub json: bool,
}

/// Without these a dump tells nothing.
const REQUIRED: [&str; 2] = ["board.json", "dump.json"];

/// A dump in progress.
struct Bundle {
    dir: PathBuf,
    taken: Vec<String>,
    missing: Vec<Value>,
}

pub fn dump(args: &DumpArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let RunningEngine { pid, uid, follow, .. } = engines::find(args.engine.as_deref())?;
    let (image, _) = Image::open(follow.path()).map_err(|error| Refusal::Usage(error.to_string()))?;
    let snapshot = now(&image)?;
    let name = format!("pinwheel-dump-{}-{}", pid, utc_now_s());
    let dir = args.output.clone().unwrap_or_else(|| user_paths.working_dir.join(name));
    fs::DirBuilder::new().mode(0o700).create(&dir).map_err(|error| {
        let found = format!("a directory that cannot be created ({error})");
        Refusal::unusable(format!("dump {}", dir.display()), found, "a new directory", "name another with -o DIR")
    })?;
    let mut bundle = Bundle { dir, taken: Vec::new(), missing: Vec::new() };
    let about = json!({"pid": pid, "board": follow.path().display().to_string(), "taken_utc_s": utc_now_s()});
    bundle.put("board.json", &pretty(&moment(&snapshot, "dump", &about)));
    bundle.take(files::open_of(follow.path(), uid), "board");
    match shared::user_of_process(pid) {
        // The board names the process. A board of another user must not make this command read a
        // third user's process.
        Some(user) if user != uid => bundle
            .miss("proc", &format!("process {} belongs to user {user}, but its board belongs to user {}", pid, uid)),
        _ => {
            bundle.process(pid);
            bundle.stacks_and_verdicts(pid, &snapshot);
        }
    }
    bundle.machine(&snapshot);
    match snapshot.recorder.run_dir.as_deref().map(Path::new) {
        Some(run) => bundle.run(run, uid),
        None => bundle.miss("recording", "the board names no run directory, because the profile has diagnostics: Off"),
    }
    let summary = json!({"pid": pid, "directory": bundle.dir.display().to_string(), "profile": snapshot.engine.profile,
        "frozen": state_of(pid), "taken": bundle.taken, "missing": bundle.missing});
    bundle.put("dump.json", &pretty(&summary));
    let unwritten = bundle.missing.iter().find(|miss| REQUIRED.iter().any(|name| miss["what"] == *name));
    let dir = bundle.dir.display();
    say::people(&match unwritten {
        Some(miss) => {
            let [what, why] = ["what", "why"].map(|key| miss[key].as_str().unwrap_or_default());
            format!(
                "pinwheel: dump {dir}: {what} cannot be written ({why}); free space there, or name another with -o DIR"
            )
        }
        None => {
            let (taken, missing) = (bundle.taken.len(), bundle.missing.len());
            let taken = say::counted(taken as u64, "item");
            format!("pinwheel: {taken} in {dir}, {missing} not available (see dump.json)")
        }
    });
    let status = u8::from(unwritten.is_some());
    if args.json {
        return Ok(written(say::json(&mut io::stdout().lock(), &summary), status));
    }
    Ok(status)
}

fn pretty(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// "T (stopped)", "R (running)" …; empty if it cannot be read.
fn state_of(pid: u32) -> String {
    let status = read_lossy(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or_default().trim().to_owned()
}

/// The engine's state now. The counter belongs to the machine, so ages are correct even if the
/// engine's threads are stopped.
fn now(image: &Image) -> Result<Snapshot, Refusal> {
    let last = image.last_sign().map_err(tape::TapeError::from)?;
    let at = Clock::machine().ticks();
    // If the two processes read different counters, the board's last heartbeat is more reliable.
    let at = if at >= last { at } else { Ticks(last.0) };
    let snapshot = Moment::new(at, image.clone()).snapshot().map_err(tape::TapeError::from)?;
    snapshot.ok_or_else(engines::without_clock)
}

impl Bundle {
    fn put(&mut self, name: &str, content: &[u8]) {
        let path = self.dir.join(name);
        // The content may be private to its owner, so the copy is readable by this user only.
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

    /// Files of `/proc` report no size, so they are read to their end.
    fn copy(&mut self, from: &Path, name: &str) {
        match files::read(from, COPY_BYTES_MAX) {
            Ok(content) => self.put(name, &content),
            Err(error) => {
                let is_denied =
                    matches!(&error, OpenError::System(error) if error.kind() == io::ErrorKind::PermissionDenied);
                let remedy =
                    if is_denied { "; run dump as root, or as the engine's user with ptrace allowed" } else { "" };
                self.miss(name, &format!("{}: {error}{remedy}", from.display()));
            }
        }
    }

    fn process(&mut self, pid: u32) {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        for name in PROCESS_FILES {
            self.copy(&proc.join(name), &format!("proc/{name}"));
        }
        let threads = fs::read_dir(proc.join("task")).into_iter().flatten().flatten();
        for thread in threads.take(stacks::THREADS_MAX) {
            let tid = thread.file_name().to_string_lossy().into_owned();
            for name in THREAD_FILES {
                self.copy(&thread.path().join(name), &format!("proc/task/{tid}/{name}"));
            }
        }
    }

    /// Stacks of the engine's threads, and verdicts on the silent ones.
    fn stacks_and_verdicts(&mut self, pid: u32, snapshot: &Snapshot) {
        let found = stacks::stacks(pid);
        if !found.text.is_empty() {
            self.put("stacks.txt", found.text.as_bytes());
        }
        found.missing.iter().for_each(|(what, why)| self.miss(what, why));
        self.put("verdicts.json", &pretty(&json!(stacks::verdicts(pid, snapshot))));
    }

    fn machine(&mut self, snapshot: &Snapshot) {
        for name in MACHINE_FILES {
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

    /// Copies a file that other users may have created, opened safely by [`files`].
    fn take(&mut self, opened: Result<fs::File, OpenError>, name: &str) {
        match opened.and_then(|file| files::read_up_to(file, COPY_BYTES_MAX)) {
            Ok(content) => self.put(name, &content),
            Err(error) => self.miss(name, &error.to_string()),
        }
    }

    /// Copies the files of the run in `run`, named by a board of user `owner`.
    fn run(&mut self, run: &Path, owner: u32) {
        match fs::metadata(run).map(|found| files::owner(&found)) {
            Ok(found) if found == owner => {}
            Ok(found) => {
                let why = format!("{} belongs to user {found}, but the board to user {owner}", run.display());
                return self.miss("run", &why);
            }
            Err(error) => return self.miss("run", &format!("{}: {error}", run.display())),
        }
        for name in RUN_FILES {
            self.take(files::open_in(run, name), &format!("run/{name}"));
        }
        let mut tape = match Tape::open(run) {
            Ok(tape) => tape,
            Err(error) => return self.miss("run/recording.pwt", &error.to_string()),
        };
        let mut bytes = Vec::new();
        if let Err(error) = tape.cut(SPAN, &mut bytes) {
            return self.miss("run/recording.pwt", &error.to_string());
        }
        self.put(&format!("run/{}", tape::FILE), &bytes);
        // Of the part that is copied: a recording of days has thousands of intervals, each of which takes a moment.
        let mut log = Vec::new();
        let cut = Tape::from_bytes(bytes).map_err(hlog::HlogError::from);
        match cut.and_then(|mut tape| hlog::write(&mut tape, &mut log)) {
            Ok(()) => self.put("run/latency.hlog", &log),
            Err(error) => self.miss("run/latency.hlog", &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Bundle, SPAN};
    use pinwheel_engine::board::{self, Board, Place, Shape};
    use pinwheel_engine::clock::Clock;
    use pinwheel_engine::files;
    use pinwheel_engine::record::{Recorder, SNAPSHOT_PERIOD};
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn histograms_are_of_the_part_of_the_recording_that_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let [run, dir] = ["run", "bundle"].map(|name| folder.path().join(name));
        [&run, &dir].into_iter().for_each(|made| fs::create_dir(made).unwrap());
        let nanos = Arc::new(AtomicU64::new(1_000_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        board::set(&board.header().nanos_per_tick_q32, 1 << 32);
        board::set(&board.header().start_ticks, clock.start().0);
        let mut recorder = Recorder::new(Arc::clone(&board), clock, Some(&run));
        for _ in 0..3 * SPAN.0 / SNAPSHOT_PERIOD.0 {
            nanos.fetch_add(SNAPSHOT_PERIOD.0, Ordering::Relaxed);
            board.latency(0).total.record(5_000);
            recorder.step();
        }
        assert_eq!(recorder.finish(), None);
        let mut bundle = Bundle { dir: dir.clone(), taken: Vec::new(), missing: Vec::new() };
        bundle.run(&run, files::our_uid());
        let log = fs::read_to_string(dir.join("run/latency.hlog")).unwrap();
        let intervals = log.lines().filter(|line| line.starts_with("Tag=latency,")).count();
        assert!((6..=8).contains(&intervals), "of three minutes: {intervals} of ten seconds");
    }
}
