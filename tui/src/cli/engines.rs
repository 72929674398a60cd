//! Finds the running engine that an option names: the only one, a process, or a run.
//!
//! Only reads the directory of boards.

use super::refusal::Refusal;
use super::{runs, say};
use pinwheel_engine::board::follow::Follow;
use pinwheel_engine::board::image::{self, BoardFile};
use pinwheel_engine::board::{self, OwnerState};
use pinwheel_engine::files;
use std::path::{Path, PathBuf};

/// A running engine.
pub struct RunningEngine {
    pub pid: u32,
    pub follow: Follow,
    /// Owner of the board.
    pub uid: u32,
    pub profile: String,
    pub run_dir: Option<PathBuf>,
    /// The control socket, if the engine has one.
    pub socket: Option<PathBuf>,
}

impl RunningEngine {
    fn of(file: &BoardFile, follow: Follow) -> RunningEngine {
        let (pid, uid) = (file.pid, file.owner);
        let text = |text: String| Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
        let board = follow.board();
        let (run_dir, socket) = (text(board.recorder().run_dir.read()), text(board.control().socket.read()));
        // A run without diagnostics has no recorder that names its directory; the socket lies in
        // it.
        let run_dir = run_dir.or_else(|| {
            Some(socket.as_deref()?.parent()?.to_owned()).filter(|dir| dir.join("manifest.json").is_file())
        });
        RunningEngine { pid, uid, profile: board.header().profile.read(), run_dir, socket, follow }
    }

    /// A description that distinguishes it from other engines.
    fn words(&self) -> String {
        let run = self.run_dir.as_deref().and_then(Path::file_name).map(|name| format!(", run {}", name.display()));
        format!("{} (profile {}{})", self.pid, self.profile, run.unwrap_or_default())
    }

    fn is_run(&self, name: &str) -> bool {
        let Some(dir) = &self.run_dir else { return false };
        let same = |one: &Path, other: &Path| {
            one.canonicalize().ok().zip(other.canonicalize().ok()).is_some_and(|(one, other)| one == other)
        };
        dir.file_name().is_some_and(|own| own == name) || same(dir, Path::new(name))
    }
}

/// The run that followed the run of board `before` in the same process.
pub fn after(pid: u32, before: &Follow) -> Option<RunningEngine> {
    // A later run may reuse the board's path; the start of the clock distinguishes them.
    let begun = |follow: &Follow| board::get(&follow.board().header().start_ticks);
    image::files(&board::directory()).into_iter().filter(|file| file.pid == pid).find_map(|file| {
        let follow = Follow::open(&file.path).ok()?;
        (follow.owner_state() == OwnerState::Alive && begun(&follow) > begun(before))
            .then(|| RunningEngine::of(&file, follow))
    })
}

/// Whether process `pid` is running; a zombie is not.
pub fn is_there(pid: u32) -> bool {
    let stat = files::read_lossy(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The process name before the state may contain any character, also brackets.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// The engine that `wanted` names by process number, run name or run directory; `None`: the only
/// running engine.
pub fn find(wanted: Option<&str>) -> Result<RunningEngine, Refusal> {
    let directory = board::directory();
    let (mut alive, mut why) = (Vec::new(), None);
    let pid = wanted.and_then(|wanted| wanted.parse::<u32>().ok());
    report_invalid_boards(&directory);
    for file in image::files(&directory) {
        if pid.is_some_and(|pid| pid != file.pid) {
            continue;
        }
        match Follow::open(&file.path) {
            Ok(follow) if follow.owner_state() == OwnerState::Alive => alive.push(RunningEngine::of(&file, follow)),
            Ok(_) => why = Some(format!("process {} ended; see pinwheel postmortem {}", file.pid, file.pid)),
            Err(error) => why = Some(error.to_string()),
        }
    }
    let (about, remedy) = (format!("boards in {}", directory.display()), "start one with pinwheel run");
    if let (Some(name), None) = (wanted, pid) {
        let all = list(&alive);
        alive.retain(|found| found.is_run(name));
        if alive.is_empty() {
            let found = if all.is_empty() { "no running engine".to_owned() } else { format!("engines {all}") };
            return Err(Refusal::unusable(about, found, format!("one of run {name}"), "name its process or its run"));
        }
    }
    if alive.len() > 1 {
        return Err(Refusal::unusable(about, format!("engines {}", list(&alive)), "one", "name its PID or its run"));
    }
    let found = alive.pop().ok_or_else(|| {
        let whose = pid.map_or_else(|| "a running engine".to_owned(), |pid| format!("the engine of process {pid}"));
        Refusal::unusable(about, why.unwrap_or_else(|| "none".to_owned()), whose, remedy)
    })?;
    runs::report_owner(&format!("the engine of process {}", found.pid), found.uid);
    Ok(found)
}

/// Reports files that are named like boards but are not valid.
pub fn report_invalid_boards(directory: &Path) {
    for said in image::strangers(directory) {
        say::people(&format!("pinwheel: {said}"));
    }
}

fn list(found: &[RunningEngine]) -> String {
    found.iter().map(RunningEngine::words).collect::<Vec<_>>().join(", ")
}
