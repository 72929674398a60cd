//! Running engines of this machine, found by process, by run, or as the only one.
//!
//! Only reads the directory of boards.

use crate::control::ControlSocket;
use crate::unusable::Unusable;
use pinwheel_engine::board::follow::{Follow, FollowError};
use pinwheel_engine::board::image::{self, BoardFile};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{self, OwnerState};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::files;
use std::path::{Path, PathBuf};

/// A running engine.
pub struct RunningEngine {
    /// Its process.
    pub pid: u32,
    /// Its board.
    pub follow: Follow,
    /// Owner of the board.
    pub uid: u32,
    /// Name of its profile when it was found.
    pub profile: String,
    /// The run's directory, if it has one.
    pub run_dir: Option<PathBuf>,
    /// The control socket, if the engine has one.
    pub socket: Option<PathBuf>,
}

impl RunningEngine {
    /// The engine whose board is `file`.
    ///
    /// # Errors
    /// [`FollowError`], if the board cannot be read.
    pub fn open(file: &BoardFile) -> Result<RunningEngine, FollowError> {
        Ok(RunningEngine::of(file, Follow::open(&file.path)?))
    }

    /// The way to send it commands.
    pub fn control_socket(&self) -> ControlSocket {
        ControlSocket { pid: self.pid, uid: self.uid, path: self.socket.clone() }
    }

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
///
/// # Errors
/// [`Unusable`], if there is none, or there are several.
pub fn find(wanted: Option<&str>) -> Result<RunningEngine, Unusable> {
    let directory = board::directory();
    let (mut alive, mut why) = (Vec::new(), None);
    let pid = wanted.and_then(|wanted| wanted.parse::<u32>().ok());
    let is_meant = |found: u32| pid.is_none_or(|pid| pid == found);
    for file in image::files(&directory) {
        let is_meant = is_meant(file.pid);
        match Follow::open(&file.path) {
            Ok(follow) if follow.owner_state() == OwnerState::Alive => alive.push(RunningEngine::of(&file, follow)),
            Ok(_) if is_meant => {
                why = Some(format!("process {} ended; see pinwheel postmortem {}", file.pid, file.pid))
            }
            Err(error) if is_meant => why = Some(error.to_string()),
            Ok(_) | Err(_) => {}
        }
    }
    let (about, all) = (format!("boards in {}", directory.display()), list(&alive));
    alive.retain(|found| is_meant(found.pid));
    if let (Some(name), None) = (wanted, pid) {
        alive.retain(|found| found.is_run(name));
        if alive.is_empty() {
            let found = if all.is_empty() { "no running engine".to_owned() } else { format!("engines {all}") };
            return Err(Unusable::new(about, found, format!("one of run {name}"), "name its process or its run"));
        }
    }
    if alive.len() > 1 {
        return Err(Unusable::new(about, format!("engines {}", list(&alive)), "one", "name its PID or its run"));
    }
    alive.pop().ok_or_else(|| {
        let whose = pid.map_or_else(|| "a running engine".to_owned(), |pid| format!("the engine of process {pid}"));
        match why {
            None if !all.is_empty() => Unusable::new(about, format!("engines {all}"), whose, "name one of them"),
            why => Unusable::new(about, why.unwrap_or_else(|| "none".to_owned()), whose, "start one with pinwheel run"),
        }
    })
}

/// Reads a followed board as it is now, and whether its process is alive; `None` until its clock was set.
///
/// `clock` is the machine's. The silence of a process of which no thread runs grows, because its counter goes on.
pub fn look(follow: &mut Follow, clock: &Clock) -> (OwnerState, Option<Snapshot>) {
    let owner_state = follow.owner_state();
    follow.refresh();
    let (now, sign) = (clock.ticks(), follow.last_sign());
    let at = if owner_state == OwnerState::Alive && now >= sign { now } else { sign };
    let snapshot = follow.clock(at).map(|clock| {
        let mut snapshot = follow.board().snapshot(&clock);
        snapshot.engine.board_path = Some(follow.path().display().to_string());
        snapshot
    });
    (owner_state, snapshot)
}

fn list(found: &[RunningEngine]) -> String {
    found.iter().map(RunningEngine::words).collect::<Vec<_>>().join(", ")
}
