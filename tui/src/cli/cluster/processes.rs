//! The engines of a cluster: their processes, directories and settings.
//!
//! Owns the processes; dropping it kills those that still run.

use super::UpArgs;
use super::links::CuttableLink;
use crate::cli::pause;
use crate::cli::refusal::Refusal;
use pinwheel_engine::clock::Clock;
use pinwheel_hosts::local_socket;
use pinwheel_hosts::membership::State;
use pinwheel_report::running::{self, RunningEngine};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Process {
    pub(super) name: String,
    child: Child,
    command: EngineCommand,
    pub(super) socket: PathBuf,
    pub(super) run_dir: PathBuf,
    is_over: bool,
}

pub(super) struct Processes {
    directory: PathBuf,
    all: Vec<Process>,
    links: Vec<CuttableLink>,
    clock: Clock,
}

/// How an engine is started, and started again.
struct EngineCommand {
    words: Vec<String>,
    out: PathBuf,
    err: PathBuf,
}

impl Processes {
    /// None yet, and a directory for them.
    pub(super) fn new() -> Result<Processes, Refusal> {
        let directory = new_directory().map_err(refused)?;
        Ok(Processes { directory, all: Vec::new(), links: Vec::new(), clock: Clock::machine() })
    }

    pub(super) fn start(&mut self, args: &UpArgs) -> Result<(), Refusal> {
        let mut listening: Vec<String> = Vec::new();
        for number in 1..=args.count {
            let listen = free_address().map_err(refused)?;
            let mut connect: Vec<String> = listening.iter().map(|address| format!("tcp/{address}")).collect();
            if args.cut_every.is_some() {
                let through = |address: &String| CuttableLink::open(address.clone(), &self.clock);
                let links: Vec<CuttableLink> =
                    listening.iter().map(through).collect::<io::Result<_>>().map_err(refused)?;
                connect = links.iter().map(|link| link.endpoint.clone()).collect();
                self.links.extend(links);
            }
            let process = Process::start(args, &self.directory, number, (&listen, &connect)).map_err(refused)?;
            self.all.push(process);
            listening.push(listen);
        }
        Ok(())
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
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
                pause(LOOK);
            }
        }
        Ok(true)
    }

    pub(super) fn not_joined(&self, place: usize, has_ended: bool) -> Refusal {
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

    pub(super) fn kill(&mut self, place: usize) {
        let process = &mut self.all[place];
        let _ = process.child.kill();
        let _ = process.child.wait();
        process.is_over = true;
    }

    /// Starts the engine at `place` again if it was killed.
    pub(super) fn start_again(&mut self, place: usize) -> io::Result<()> {
        let process = &mut self.all[place];
        if process.is_over {
            // What a killed engine leaves is in nobody's way.
            (process.child, process.is_over) = (process.command.spawn()?, false);
            process.run_dir = PathBuf::new();
        }
        Ok(())
    }

    /// Whether the engine at `place` lives and sees all others up.
    pub(super) fn has_joined(&mut self, place: usize) -> bool {
        let count = self.all.len();
        let process = &mut self.all[place];
        !process.is_over && process.has_joined(count)
    }

    /// Number of links that can be cut.
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    pub(super) fn cut(&self, at: usize, span: Duration) {
        self.links[at].cut(self.clock.since_start(self.clock.ticks()).0, span);
    }

    /// Shots that left the engine of this name, and shots that it decoded for others.
    pub(super) fn counters(&self, name: &str) -> Option<(u64, u64)> {
        let process = self.living().find(|process| process.name == name)?;
        let mut engine = running::find(Some(&process.child.id().to_string())).ok()?;
        let source = running::look(&mut engine.follow, &self.clock).1?.sources.into_iter().next()?;
        Some((source.forwarded, source.taken_in))
    }

    /// Drains all engines; returns a sentence for each that did not end cleanly by the signal in
    /// time.
    pub(super) fn end(&mut self, limit: Duration) -> Vec<String> {
        for process in self.living() {
            if let Some(pid) = Pid::from_raw(process.child.id().cast_signed()) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let from = self.clock.ticks();
        let mut troubles = Vec::new();
        for process in self.all.iter_mut().filter(|process| !process.is_over) {
            let status = loop {
                match process.child.try_wait() {
                    Ok(Some(status)) => break Some(status),
                    Ok(None) => {}
                    Err(_) => break None,
                }
                if Duration::from_nanos(self.clock.rate().nanos(self.clock.ticks().since(from)).0) > limit {
                    let _ = process.child.kill();
                    let _ = process.child.wait();
                    break None;
                }
                pause(LOOK);
            };
            process.is_over = true;
            troubles.extend(trouble(&process.name, status, limit));
        }
        troubles
    }

    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What was wrong with the end of an engine; `status`: `None` after a kill at the limit.
fn trouble(name: &str, status: Option<ExitStatus>, limit: Duration) -> Option<String> {
    match status {
        // 128 + SIGTERM after a clean drain.
        Some(status) if status.code() == Some(143) => None,
        Some(status) => Some(format!("{name} did not drain: {status}; see {name}.err")),
        None => Some(format!("{name} did not drain within {} s and was killed; see {name}.err", limit.as_secs())),
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
    /// Starts an engine that listens at an address and connects to endpoints.
    fn start(
        args: &UpArgs,
        directory: &Path,
        number: u32,
        (listen, connect): (&str, &[String]),
    ) -> io::Result<Process> {
        let (name, own) = (format!("host-{number}"), std::process::id());
        let settings = directory.join(format!("{name}.ron"));
        let text = format!(
            "(cluster: \"up-{own}\", name: {name:?}, listen: [\"tcp/{listen}\"], connect: {connect:?}, scout: false)\n"
        );
        fs::write(&settings, text)?;
        let (socket, logs) = (directory.join(format!("{name}.shots")), directory.join(&name));
        let words = [
            "run --headless --json --profile".split(' ').map(str::to_owned).collect(),
            vec![args.profile.clone(), "--dem".to_owned(), args.dem.clone()],
            vec!["--streams".to_owned(), args.streams.to_string()],
            vec!["--input".to_owned(), format!("unix:{}", socket.display())],
            vec!["--ends-with".to_owned(), own.to_string()],
            vec!["--hosts".to_owned(), settings.display().to_string()],
            vec!["--logs".to_owned(), logs.display().to_string()],
        ]
        .concat();
        let [out, err] = ["json", "err"].map(|end| directory.join(format!("{name}.{end}")));
        let command = EngineCommand { words, out, err };
        Ok(Process { name, child: command.spawn()?, command, socket, run_dir: PathBuf::new(), is_over: false })
    }

    /// Whether it sees all `count` engines up.
    fn has_joined(&mut self, count: usize) -> bool {
        if self.run_dir.as_os_str().is_empty() {
            let found: Option<RunningEngine> = running::find(Some(&self.child.id().to_string())).ok();
            let Some(run_dir) = found.and_then(|engine| engine.run_dir) else { return false };
            self.run_dir = run_dir;
        }
        let Ok(status) = local_socket::list_own(&self.run_dir) else { return false };
        status.hosts.iter().filter(|row| row.state == State::Up && row.why_not.is_none()).count() == count
    }
}

impl EngineCommand {
    fn spawn(&self) -> io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args(&self.words)
            .stdin(Stdio::null())
            .stdout(File::create(&self.out)?)
            .stderr(File::create(&self.err)?)
            // An interrupt from the terminal reaches this program alone, which then drains them.
            .process_group(0)
            .spawn()
    }
}

fn refused(error: io::Error) -> Refusal {
    let about = format!("cluster up: {}", std::env::temp_dir().display());
    Refusal::unusable(about, error.to_string(), "a directory for its engines", "set TMPDIR to another one")
}

/// A new directory that only this user enters. One that is there already is not used: links in it
/// may lead anywhere.
fn new_directory() -> io::Result<PathBuf> {
    let mut taken = None;
    for attempt in 0..100 {
        let name = format!("pinwheel-cluster-{}-{attempt}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = Some(error),
            made => return made.map(|()| directory),
        }
    }
    Err(taken.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
}

/// A free port of an address that is this process's by its number, so that no other process takes the port before the
/// engine does. Systems with one loopback address use that.
fn free_address() -> io::Result<String> {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, 1 + high % 128, middle, low);
    let listener = TcpListener::bind((own, 0)).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    Ok(listener.local_addr()?.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{new_directory, trouble};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    #[test]
    fn an_engine_that_did_not_drain_is_named() {
        let said = |status| trouble("host-2", status, Duration::from_secs(30));
        let exited = |code: i32| Some(ExitStatus::from_raw(code << 8));
        assert_eq!(said(exited(143)), None);
        assert_eq!(said(exited(101)).unwrap(), "host-2 did not drain: exit status: 101; see host-2.err");
        assert!(said(Some(ExitStatus::from_raw(9))).unwrap().contains("signal: 9"));
        assert!(said(None).unwrap().contains("within 30 s and was killed"));
    }

    #[test]
    fn a_directory_is_this_users_alone_and_never_one_that_is_there() {
        let [one, other] = [(); 2].map(|()| new_directory().unwrap());
        let mode = std::fs::metadata(&one).unwrap().permissions().mode() & 0o777;
        [&one, &other].into_iter().for_each(|made| std::fs::remove_dir(made).unwrap());
        assert_eq!(mode, 0o700);
        assert_ne!(one, other);
    }
}
