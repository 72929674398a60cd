//! Which running engine is meant: the only one, a process, or a run.
//!
//! Reads the directory of boards; bounded by it. Never acts on anything.

use super::refusal::Refusal;
use super::{runs, say};
use pinwheel_engine::board::follow::Follow;
use pinwheel_engine::board::image::{self, BoardFile};
use pinwheel_engine::board::{self, Life};
use pinwheel_engine::files;
use std::path::{Path, PathBuf};

/// A running engine.
pub struct Found {
    pub pid: u32,
    pub follow: Follow,
    /// The user whose board it is.
    pub uid: u32,
    pub profile: String,
    pub run_dir: Option<PathBuf>,
    /// Its control socket, if it has one.
    pub socket: Option<PathBuf>,
}

impl Found {
    fn of(file: &BoardFile, follow: Follow) -> Found {
        let (pid, uid) = (file.pid, file.owner);
        let text = |text: String| Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
        let board = follow.board();
        let (run_dir, socket) = (text(board.recorder().run_dir.read()), text(board.control().socket.read()));
        // A run without diagnostics has no recorder to name it: its socket lies there.
        let run_dir = run_dir.or_else(|| {
            Some(socket.as_deref()?.parent()?.to_owned()).filter(|dir| dir.join("manifest.json").is_file())
        });
        Found { pid, uid, profile: board.header().profile.read(), run_dir, socket, follow }
    }

    /// In words, to tell it from others.
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

/// The run that came after the one of board `before`, in the same process.
pub fn after(pid: u32, before: &Follow) -> Option<Found> {
    // A board's path is free again when the run that had it has ended; when its clock began tells them apart.
    let begun = |follow: &Follow| board::get(&follow.board().header().start_ticks);
    image::files(&board::directory()).into_iter().filter(|file| file.pid == pid).find_map(|file| {
        let follow = Follow::open(&file.path).ok()?;
        (follow.life() == Life::Alive && begun(&follow) > begun(before)).then(|| Found::of(&file, follow))
    })
}

/// Whether process `pid` is there; one that has ended and is not yet taken leave of is not.
pub fn is_there(pid: u32) -> bool {
    let stat = files::read_lossy(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it may hold anything, brackets too.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// The engine that `wanted` names: a process number, or a run's name or directory; `None`: the only one there is.
pub fn find(wanted: Option<&str>) -> Result<Found, Refusal> {
    let directory = board::directory();
    let (mut alive, mut why) = (Vec::new(), None);
    let pid = wanted.and_then(|wanted| wanted.parse::<u32>().ok());
    say_strangers(&directory);
    for file in image::files(&directory) {
        if pid.is_some_and(|pid| pid != file.pid) {
            continue;
        }
        match Follow::open(&file.path) {
            Ok(follow) if follow.life() == Life::Alive => alive.push(Found::of(&file, follow)),
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
    runs::say_whose(&format!("the engine of process {}", found.pid), found.uid);
    Ok(found)
}

/// Says what is named like a board and is none.
pub fn say_strangers(directory: &Path) {
    for said in image::strangers(directory) {
        say::people(&format!("pinwheel: {said}"));
    }
}

fn list(found: &[Found]) -> String {
    found.iter().map(Found::words).collect::<Vec<_>>().join(", ")
}
