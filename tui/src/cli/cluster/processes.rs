//! The engines of a cluster: their processes, directories and settings.
//!
//! Owns the processes; dropping it kills those that still run.

use super::UpArgs;
use crate::cli::hosts;
use crate::cli::refusal::Refusal;
use pinwheel_engine::clock::Clock;
use pinwheel_hosts::membership::State;
use pinwheel_report::running::{self, RunningEngine};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(20);

/// One engine.
pub(super) struct Process {
    pub(super) name: String,
    child: Child,
    pub(super) socket: PathBuf,
    pub(super) run_dir: PathBuf,
    is_over: bool,
}

/// All engines.
pub(super) struct Processes {
    directory: PathBuf,
    all: Vec<Process>,
    clock: Clock,
}

impl Processes {
    pub(super) fn start(args: &UpArgs) -> Result<Processes, Refusal> {
        let directory = std::env::temp_dir().join(format!("pinwheel-cluster-{}", std::process::id()));
        let refused = |error: io::Error| {
            let about = format!("cluster up: {}", directory.display());
            Refusal::unusable(about, error.to_string(), "a directory for its engines", "set TMPDIR to another one")
        };
        fs::create_dir_all(&directory).map_err(refused)?;
        let mut processes = Processes { directory: directory.clone(), all: Vec::new(), clock: Clock::machine() };
        let mut endpoints: Vec<String> = Vec::new();
        for number in 1..=args.count {
            let process = Process::start(args, &directory, number, &mut endpoints).map_err(refused)?;
            processes.all.push(process);
        }
        Ok(processes)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Engines that were not killed.
    pub(super) fn living(&self) -> impl Iterator<Item = &Process> {
        self.all.iter().filter(|process| !process.is_over)
    }

    pub(super) fn at(&self, place: usize) -> &Process {
        &self.all[place % self.all.len()]
    }

    /// The first living engine from `place` on.
    pub(super) fn living_from(&self, place: usize) -> Option<usize> {
        (place..place + self.all.len()).map(|at| at % self.all.len()).find(|at| !self.all[*at].is_over)
    }

    /// Waits until each engine sees all others up, unless `ended`.
    pub(super) fn wait_until_joined(&mut self, limit: Duration, ended: &dyn Fn() -> bool) -> Result<bool, Refusal> {
        let from = self.clock.ticks();
        for place in 0..self.all.len() {
            loop {
                if ended() {
                    return Ok(false);
                }
                let count = self.all.len();
                if self.all[place].has_joined(count) {
                    break;
                }
                let has_ended = self.all[place].child.try_wait().is_ok_and(|status| status.is_some());
                let waited = Duration::from_nanos(self.clock.rate().nanos(self.clock.ticks().since(from)).0);
                if has_ended || waited > limit {
                    return Err(self.not_joined(place, has_ended));
                }
                pause();
            }
        }
        Ok(true)
    }

    fn not_joined(&self, place: usize, has_ended: bool) -> Refusal {
        let process = &self.all[place];
        let said = fs::read_to_string(self.directory.join(format!("{}.err", process.name))).unwrap_or_default();
        let last = said.lines().last().unwrap_or("it said nothing").to_owned();
        let found = if has_ended { format!("its engine ended: {last}") } else { format!("not joined yet: {last}") };
        Refusal::unusable(
            format!("cluster up: {}", process.name),
            found,
            "engines that see each other",
            "see pinwheel check",
        )
    }

    /// Kills the last engine; returns its name.
    pub(super) fn kill_last(&mut self) -> String {
        let Some(last) = self.all.last_mut() else { return String::new() };
        let _ = last.child.kill();
        let _ = last.child.wait();
        last.is_over = true;
        last.name.clone()
    }

    /// Shots that left the engine of this name, and shots that it decoded for others.
    pub(super) fn counters(&self, name: &str) -> Option<(u64, u64)> {
        let process = self.living().find(|process| process.name == name)?;
        let mut engine = running::find(Some(&process.child.id().to_string())).ok()?;
        let source = running::look(&mut engine.follow, &self.clock).1?.sources.into_iter().next()?;
        Some((source.forwarded, source.taken_in))
    }

    /// Drains all engines; returns whether each ended with status 0 or by the signal in time.
    pub(super) fn end(&mut self, limit: Duration) -> bool {
        for process in self.living() {
            if let Some(pid) = Pid::from_raw(process.child.id().cast_signed()) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let from = self.clock.ticks();
        let mut is_sound = true;
        for process in self.all.iter_mut().filter(|process| !process.is_over) {
            let status = loop {
                match process.child.try_wait() {
                    Ok(Some(status)) => break status.code(),
                    Ok(None) => {}
                    Err(_) => break None,
                }
                if Duration::from_nanos(self.clock.rate().nanos(self.clock.ticks().since(from)).0) > limit {
                    let _ = process.child.kill();
                    let _ = process.child.wait();
                    break None;
                }
                pause();
            };
            process.is_over = true;
            // 128 + SIGTERM after a clean drain.
            is_sound &= status == Some(143);
        }
        is_sound
    }

    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.all.iter_mut().filter(|process| !process.is_over) {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

impl Process {
    fn start(args: &UpArgs, directory: &Path, number: u32, endpoints: &mut Vec<String>) -> io::Result<Process> {
        let name = format!("host-{number}");
        let listen = free_endpoint()?;
        let settings = directory.join(format!("{name}.ron"));
        let text = format!(
            "(cluster: \"up-{}\", name: {name:?}, listen: [{listen:?}], connect: {endpoints:?}, scout: false)\n",
            std::process::id()
        );
        fs::write(&settings, text)?;
        endpoints.push(listen);
        let (socket, logs) = (directory.join(format!("{name}.shots")), directory.join(&name));
        let child = Command::new(std::env::current_exe()?)
            .args(["run", "--headless", "--json", "--profile", &args.profile, "--dem", &args.dem])
            .args(["--streams", &args.streams.to_string(), "--input", &format!("unix:{}", socket.display())])
            .args(["--ends-with", &std::process::id().to_string()])
            .arg("--hosts")
            .arg(&settings)
            .arg("--logs")
            .arg(&logs)
            .stdin(Stdio::null())
            .stdout(File::create(directory.join(format!("{name}.json")))?)
            .stderr(File::create(directory.join(format!("{name}.err")))?)
            .spawn()?;
        Ok(Process { name, child, socket, run_dir: PathBuf::new(), is_over: false })
    }

    /// Whether it sees all `count` engines up.
    fn has_joined(&mut self, count: usize) -> bool {
        if self.run_dir.as_os_str().is_empty() {
            let found: Option<RunningEngine> = running::find(Some(&self.child.id().to_string())).ok();
            let Some(run_dir) = found.and_then(|engine| engine.run_dir) else { return false };
            self.run_dir = run_dir;
        }
        let Ok(status) = hosts::list(&self.run_dir) else { return false };
        status.hosts.iter().filter(|row| row.state == State::Up && row.why_not.is_none()).count() == count
    }
}

/// An endpoint whose port was free a moment ago.
fn free_endpoint() -> io::Result<String> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok(format!("tcp/127.0.0.1:{port}"))
}

#[expect(clippy::disallowed_methods, reason = "the main thread of a command; it runs no engine")]
fn pause() {
    std::thread::sleep(LOOK);
}
