//! An engine in another process as a [`Source`]: reads its board, and sends commands to its control
//! socket.
//!
//! Owns the followed board and the connection to the socket; on the console thread. Never waits for
//! the engine: commands go to a separate thread ([`mod@line`]), and replies come back through
//! [`Source::replies`]. Bounds: one request in progress and a few queued; [`FOLLOW_LIMIT`] for the
//! run that follows on another input. The lock of the board shows the end of its process at the
//! next reading, a tenth of a second later.

pub mod line;

use super::past::{Note, Past, look};
use super::{Access, Offer, Ownership, Reply, Source, offers_of};
use line::Line;
use pinwheel_engine::board::follow::Follow;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{OwnerState, Phase};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::engine::wire::{GOES_ON, Outcome};
use pinwheel_engine::engine::{Command, Done};
use pinwheel_engine::profile::Profile;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::{Nanos, Ticks};
use pinwheel_report::control::rooted;
use pinwheel_report::running;
use std::collections::VecDeque;
use std::path::PathBuf;

/// Longest wait for the next run of the same process after the end of a run.
pub const FOLLOW_LIMIT: Nanos = Nanos(60_000_000_000);

/// Looks for the run that follows the run of this board.
pub type Successor = Box<dyn Fn(&Follow) -> Succeeding>;

/// State of the process of an ended run.
pub enum Succeeding {
    /// The next run has begun.
    Begun(Box<Attached>),
    /// The next run has not begun yet.
    Awaited,
    Gone,
}

/// Everything that an attached console consists of.
pub struct Attached {
    pub follow: Follow,
    pub pid: u32,
    pub uid: u32,
    /// The connection to the control socket, if it is reachable.
    pub line: Option<Line>,
    /// Whether the console may send commands, or why not.
    pub access: Result<(), String>,
    pub run_dir: Option<PathBuf>,
    /// Notes of the run so far.
    pub notes: Vec<Note>,
    /// Directory of profiles, besides the built-in ones.
    pub profiles: Option<PathBuf>,
    /// Looks for the next run of the process.
    pub successor: Successor,
}

/// An engine of another process.
pub struct Attach {
    parts: Attached,
    clock: Clock,
    /// Moment and state of the last picture.
    last: Option<Seen>,
    /// The profile in force, as the socket replied, and the number of actions before it was requested.
    in_force: Option<(Profile, u64)>,
    /// The number of actions before the last request for the profile.
    asked: Option<u64>,
    /// The profiles of the requests without an outcome, oldest first; `None`: another command.
    pending: VecDeque<Option<String>>,
    tape: Option<Tape>,
    next_run: NextRun,
    /// Replies made by the console itself, besides those of the connection.
    replies: Vec<Reply>,
}

#[derive(Clone, Copy)]
struct Seen {
    phase: Phase,
    at_ns: u64,
    owner_state: OwnerState,
}

/// The run after the one shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NextRun {
    /// No further run is expected.
    None,
    /// The run shown has ended at that time, and its process has announced another.
    Awaited(Ticks),
    /// The announced run did not begin; the reason in one sentence.
    Missed(String),
}

impl Attach {
    /// Shows the engine of `parts`.
    pub fn new(parts: Attached) -> Attach {
        let (clock, next_run) = (Clock::machine(), NextRun::None);
        let pending = VecDeque::new();
        Attach {
            parts,
            clock,
            last: None,
            in_force: None,
            asked: None,
            pending,
            tape: None,
            next_run,
            replies: Vec::new(),
        }
    }

    /// Whether the run shown has ended and its process continues with another input.
    fn goes_on(&self, snapshot: &Snapshot) -> bool {
        let has_ended =
            self.last.is_some_and(|seen| (seen.phase, seen.owner_state) == (Phase::Shutdown, OwnerState::Dead));
        has_ended && snapshot.engine.notes.iter().any(|note| note.starts_with(GOES_ON))
    }

    /// Looks for the next run, and attaches to it.
    fn follow_on(&mut self, snapshot: &Snapshot) {
        let now = self.clock.ticks();
        let since = match &self.next_run {
            NextRun::Awaited(since) => *since,
            NextRun::Missed(_) => return,
            NextRun::None => {
                let note = snapshot.engine.notes.iter().find(|note| note.starts_with(GOES_ON));
                self.replies.push(Reply::Done(format!("the run {}", note.map_or(GOES_ON, String::as_str))));
                self.next_run = NextRun::Awaited(now);
                now
            }
        };
        let pid = self.parts.pid;
        match (self.parts.successor)(&self.parts.follow) {
            Succeeding::Begun(parts) => {
                (self.parts, self.last, self.in_force, self.asked, self.tape) = (*parts, None, None, None, None);
                self.pending.clear();
                self.next_run = NextRun::None;
                let input = self.parts.follow.board().header().input.read();
                self.replies
                    .push(Reply::Done(format!("attached to the next run of process {pid}: shots come from {input}")));
            }
            Succeeding::Gone => {
                let said = format!(
                    "process {pid} has ended before its run on another input began; its standard error says why"
                );
                self.next_run = NextRun::Missed(said);
            }
            Succeeding::Awaited if self.clock.rate().nanos(now.since(since)) >= FOLLOW_LIMIT => {
                let limit_s = FOLLOW_LIMIT.0 / 1_000_000_000;
                self.next_run = NextRun::Missed(format!(
                    "process {pid} began no run on another input within {limit_s} s; its console or its standard error says why"
                ));
            }
            Succeeding::Awaited => {}
        }
    }

    /// Requests the profile in force, once for each number of actions: whatever changes it is one.
    fn learn(&mut self, actions: u64) {
        let known = self.in_force.as_ref().is_some_and(|(_, of)| *of == actions);
        if known || self.asked == Some(actions) {
            return;
        }
        if self.parts.line.as_ref().is_some_and(|line| line.ask(Command::InForce, "").is_ok()) {
            self.asked = Some(actions);
            self.pending.push_back(None);
        }
    }

    /// The reply that shows `outcome` of the oldest request, if the console shows it.
    fn shown(&mut self, outcome: Outcome) -> Option<Reply> {
        let profile = self.pending.pop_front().flatten();
        match (outcome, profile) {
            // A console that only reads asks for the profile in force by itself.
            (Outcome::Refused(_), _) if self.parts.access.is_err() => None,
            (Outcome::Refused(why), Some(name)) => Some(Reply::SwitchRefused { name, why }),
            (Outcome::Refused(said), None) => Some(Reply::Refused(said)),
            (Outcome::Done(Done::InForce { text, .. }), _) => {
                // Belongs to the actions before the request: a later action causes another request.
                self.in_force = Profile::parse(&text, "profile in force").ok().zip(self.asked);
                Some(Reply::InForce)
            }
            (Outcome::Done(done), _) => Some(Reply::Done(done.to_string())),
        }
    }
}

impl Source for Attach {
    fn snapshot(&mut self) -> Option<Snapshot> {
        let (owner_state, snapshot) = running::look(&mut self.parts.follow, &self.clock);
        let snapshot = snapshot?;
        self.last = Some(Seen { phase: snapshot.engine.phase, at_ns: snapshot.at_ns, owner_state });
        if self.goes_on(&snapshot) {
            self.follow_on(&snapshot);
        } else {
            self.learn(snapshot.control.actions);
        }
        Some(snapshot)
    }

    fn execute(&mut self, command: &Command, why: &str) -> Result<(), String> {
        self.parts.access.clone()?;
        let line = self.parts.line.as_ref();
        let line = line.ok_or("the engine has no control socket; its notes say why")?;
        line.ask(rooted(command.clone()).map_err(|error| error.to_string())?, why)?;
        let profile = if let Command::Profile { name, .. } = command { Some(name.clone()) } else { None };
        self.pending.push_back(profile);
        if let Command::Note { text } = command {
            self.parts.notes.push((self.last.map_or(0, |seen| seen.at_ns), text.clone()));
        }
        Ok(())
    }

    fn ownership(&self) -> Ownership {
        let access = if self.parts.access.is_ok() { Access::Act } else { Access::Watch };
        Ownership::Attached { pid: self.parts.pid, uid: self.parts.uid, access }
    }

    fn replies(&mut self) -> Vec<Reply> {
        let mut replies = std::mem::take(&mut self.replies);
        let outcomes = self.parts.line.as_ref().map_or_else(Vec::new, Line::outcomes);
        replies.extend(outcomes.into_iter().filter_map(|outcome| self.shown(outcome)));
        replies
    }

    fn lost(&self) -> Option<String> {
        if let NextRun::Missed(said) = &self.next_run {
            return Some(said.clone());
        }
        let seen = self.last.filter(|seen| seen.owner_state == OwnerState::Dead && seen.phase != Phase::Shutdown)?;
        let (pid, at_s) = (self.parts.pid, seen.at_ns as f64 / 1e9);
        Some(format!(
            "process {pid} ended {at_s:.1} s after its start, before the end of its run; read its board with \
             pinwheel postmortem {pid}"
        ))
    }

    fn is_finished(&self) -> bool {
        !matches!(self.next_run, NextRun::Awaited(_))
            && self.last.is_some_and(|seen| seen.owner_state == OwnerState::Dead)
    }

    fn offers(&self) -> Vec<Offer> {
        self.in_force.as_ref().map_or_else(Vec::new, |(profile, _)| offers_of(self.parts.profiles.as_deref(), profile))
    }

    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        let run_dir =
            self.parts.run_dir.as_deref().ok_or(
                "no past is available: the engine has no run directory, because its profile has diagnostics: Off",
            )?;
        let ends_before = |tape: &Tape| tape.span().is_none_or(|(_, to)| tape.since_start(to) < Nanos(at_ns));
        // The engine still writes the recording: the moment may have been written since.
        match &mut self.tape {
            Some(tape) if ends_before(tape) => tape.refresh().map_err(|error| error.to_string())?,
            Some(_) => {}
            None => self.tape = Some(Tape::open(run_dir).map_err(|error| error.to_string())?),
        }
        match &mut self.tape {
            Some(tape) => look(tape, at_ns, &self.parts.notes),
            None => Err("there is no recording yet; try again".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{Attach, Attached, Command, Done, Follow, Line, Outcome, Profile, Source, Succeeding};
    use pinwheel_engine::board::{Board, Place, Shape, add, set};
    use pinwheel_engine::engine::wire::{Reply, Request, VERSION};
    use pinwheel_report::control::Wire;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn the_profile_in_force_is_asked_for_again_after_each_action() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Shared(folder.path().into())).unwrap();
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        board.publish();
        let path = folder.path().join("control.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let uid = std::fs::metadata(&path).unwrap().uid();
        let (asks, asked) = channel();
        std::thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let text = Profile::load("lab", None).unwrap().0.to_ron().unwrap();
            let outcome = Outcome::Done(Done::InForce { name: "lab".to_owned(), text });
            let reply = serde_json::to_string(&Reply { version: VERSION, outcome }).unwrap() + "\n";
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                asks.send(serde_json::from_str::<Request>(&std::mem::take(&mut line)).unwrap().command).unwrap();
                stream.get_mut().write_all(reply.as_bytes()).unwrap();
            }
        });
        let mut source = Attach::new(Attached {
            follow: Follow::open(board.path().unwrap()).unwrap(),
            pid: std::process::id(),
            uid,
            line: Some(Line::to(move || Wire::connect(&path, uid).ok()).unwrap()),
            access: Err("read-only".to_owned()),
            run_dir: None,
            notes: Vec::new(),
            profiles: None,
            successor: Box::new(|_| Succeeding::Gone),
        });
        for _ in 0..3 {
            // Another decoder or rate, which no spin epoch shows.
            add(&board.control().actions, 1);
            source.snapshot().unwrap();
            assert_eq!(asked.recv_timeout(Duration::from_secs(30)), Ok(Command::InForce));
            let mut replies = Vec::new();
            while replies.is_empty() {
                replies = source.replies();
            }
            assert_eq!(replies, [super::Reply::InForce], "the profiles on offer are compared with another");
        }
        // What is refused is known by the request.
        source.parts.access = Ok(());
        let refused = || Outcome::Refused("no".to_owned());
        source.pending = [None, Some("prod".to_owned())].into();
        assert_eq!(source.shown(refused()), Some(super::Reply::Refused("no".to_owned())));
        let switch = super::Reply::SwitchRefused { name: "prod".to_owned(), why: "no".to_owned() };
        assert_eq!(source.shown(refused()), Some(switch));
    }
}
