//! An engine in another process as a [`Source`]: its board to look at, its control socket to act through.
//!
//! Owns the followed board and the line to the socket; on the console thread. Never waits for the engine: what is asked
//! goes to a thread of its own ([`mod@line`]), and what was said to it comes back as news. Bounds: one request on its way and
//! a few behind it; [`FOLLOW_LIMIT`] for the run that follows one on another input. A process that is gone is seen by the lock
//! of its board at the next reading, a tenth of a second later.

pub mod line;

use super::past::{Note, Past, look};
use super::{Access, Bond, Hold, News, Offer, SNOOZE, Source, offers_of};
use crate::model::deeds::Deed;
use line::Line;
use pinwheel_engine::board::follow::Follow;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{Life, Phase};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::engine::wire::{Ask, Done, GOES_ON, InputSpec, Outcome};
use pinwheel_engine::profile::{Profile, Rate};
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::{Nanos, Ticks};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for the run that follows in the same process, once the one before has ended.
pub const FOLLOW_LIMIT: Nanos = Nanos(60_000_000_000);

/// Looks for the run that follows the one of this board.
pub type Successor = Box<dyn Fn(&Follow) -> Succeeding>;

/// What has become of the process of a run that has ended.
pub enum Succeeding {
    /// The next run is there.
    Begun(Box<Attached>),
    /// Not yet.
    Awaited,
    /// The process is gone.
    Gone,
}

/// What an attached console is made of.
pub struct Attached {
    /// Its board.
    pub follow: Follow,
    /// Its process.
    pub pid: u32,
    /// Its socket, if it can be reached.
    pub line: Option<Line>,
    /// Whether what can be reached may be acted on, or why not.
    pub access: Result<(), String>,
    /// The run's directory.
    pub run_dir: Option<PathBuf>,
    /// Notes of the run so far.
    pub notes: Vec<Note>,
    /// Where profiles are listed from, besides those built in.
    pub profiles: Option<PathBuf>,
    /// Looks for what follows it.
    pub successor: Successor,
}

/// Another process's engine.
pub struct Attach {
    parts: Attached,
    clock: Clock,
    /// The last picture's moment and what it said.
    last: Option<Seen>,
    /// The profile in force, as the socket told it, and the epoch of the order that it belongs to.
    in_force: Option<(Profile, u64)>,
    /// The epoch for which it was asked last.
    asked: Option<u64>,
    tape: Option<Tape>,
    sequel: Sequel,
    /// What there is to tell besides what was said over the line.
    news: Vec<News>,
}

#[derive(Clone, Copy)]
struct Seen {
    phase: Phase,
    at_ns: u64,
    life: Life,
}

/// What comes after the run that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sequel {
    /// Nothing that is known.
    None,
    /// It has ended, and another one was to follow; since then.
    Awaited(Ticks),
    /// That did not come, in one sentence.
    Missed(String),
}

impl Attach {
    /// Looks at it.
    pub fn new(parts: Attached) -> Attach {
        let (clock, sequel) = (Clock::machine(), Sequel::None);
        Attach { parts, clock, last: None, in_force: None, asked: None, tape: None, sequel, news: Vec::new() }
    }

    /// Whether the run that is shown has ended, and its process goes on with another input.
    fn goes_on(&self, snapshot: &Snapshot) -> bool {
        let has_ended = self.last.is_some_and(|seen| (seen.phase, seen.life) == (Phase::Shutdown, Life::Dead));
        has_ended && snapshot.engine.notes.iter().any(|note| note.starts_with(GOES_ON))
    }

    /// Looks for the run that follows, and goes on with that one.
    fn follow_on(&mut self, snapshot: &Snapshot) {
        let now = self.clock.ticks();
        let since = match &self.sequel {
            Sequel::Awaited(since) => *since,
            Sequel::Missed(_) => return,
            Sequel::None => {
                let note = snapshot.engine.notes.iter().find(|note| note.starts_with(GOES_ON));
                self.news.push(News::Done(format!("the run {}", note.map_or(GOES_ON, String::as_str))));
                self.sequel = Sequel::Awaited(now);
                now
            }
        };
        let pid = self.parts.pid;
        match (self.parts.successor)(&self.parts.follow) {
            Succeeding::Begun(parts) => {
                (self.parts, self.last, self.in_force, self.asked, self.tape) = (*parts, None, None, None, None);
                self.sequel = Sequel::None;
                let input = self.parts.follow.board().header().input.read();
                self.news
                    .push(News::Done(format!("attached to the next run of process {pid}: shots come from {input}")));
            }
            Succeeding::Gone => {
                let said = format!(
                    "process {pid} is gone, and its run on another input did not begin; its standard error says why"
                );
                self.sequel = Sequel::Missed(said);
            }
            Succeeding::Awaited if self.clock.rate().nanos(now.since(since)) >= FOLLOW_LIMIT => {
                let limit_s = FOLLOW_LIMIT.0 / 1_000_000_000;
                self.sequel = Sequel::Missed(format!(
                    "process {pid} began no run on another input within {limit_s} s; its console, or its standard error, says why"
                ));
            }
            Succeeding::Awaited => {}
        }
    }

    fn ask(&mut self, ask: Ask, why: &str) -> Result<(), String> {
        self.parts.access.clone()?;
        match &self.parts.line {
            Some(line) => line.ask(ask, why),
            None => Err("found no control socket, expected one; the engine's notes say why it has none".to_owned()),
        }
    }

    /// Asks for the profile in force, once an order.
    fn learn(&mut self, epoch: u64) {
        let known = self.in_force.as_ref().is_some_and(|(_, of)| *of == epoch);
        if known || self.asked == Some(epoch) {
            return;
        }
        if self.parts.line.as_ref().is_some_and(|line| line.ask(Ask::InForce, "").is_ok()) {
            self.asked = Some(epoch);
        }
    }
}

impl Source for Attach {
    fn snapshot(&mut self) -> Option<Snapshot> {
        let life = self.parts.follow.life();
        self.parts.follow.refresh();
        let (now, sign) = (self.clock.ticks(), self.parts.follow.last_sign());
        // The counter is the machine's: while the process lives, silence grows although nobody there counts it.
        let at = if life == Life::Alive && now >= sign { now } else { sign };
        let clock = self.parts.follow.clock(at)?;
        let mut snapshot = self.parts.follow.board().snapshot(&clock);
        snapshot.engine.board_path = Some(self.parts.follow.path().display().to_string());
        self.last = Some(Seen { phase: snapshot.engine.phase, at_ns: snapshot.at_ns, life });
        if self.goes_on(&snapshot) {
            self.follow_on(&snapshot);
        } else {
            self.learn(snapshot.engine.spin_epoch_requested);
        }
        Some(snapshot)
    }

    fn apply(&mut self, name: &str, profile: &Profile, lent: Option<Duration>, why: &str) -> Result<(), String> {
        let text = profile.to_ron().map_err(|error| format!("found a profile that cannot be written ({error})"))?;
        self.ask(Ask::Profile { name: name.to_owned(), text: Some(text), for_s: lent.map(|span| span.as_secs()) }, why)
    }

    fn drain(&mut self, why: &str) -> Result<(), String> {
        self.ask(Ask::Drain, why)
    }

    fn hold(&mut self, hold: Hold, why: &str) -> Result<(), String> {
        self.ask(if hold == Hold::Hold { Ask::Pause } else { Ask::Resume }, why)
    }

    fn set_rate(&mut self, rate: Rate, why: &str) -> Result<(), String> {
        match rate {
            Rate::Hz(hz) => self.ask(Ask::Rate { hz: Some(hz) }, why),
            Rate::Max => self.ask(Ask::Rate { hz: None }, why),
            Rate::Auto => {
                Err("found rate auto, expected a number or max; capacity is measured in warm-up only".to_owned())
            }
        }
    }

    fn acknowledge(&mut self, number: u64) -> Result<(), String> {
        self.ask(Ask::Acknowledge { number }, "")
    }

    fn snooze(&mut self, number: u64) -> Result<(), String> {
        self.ask(Ask::Snooze { number, for_s: SNOOZE.as_secs() }, "")
    }

    fn act(&mut self, deed: &Deed, why: &str) -> Result<(), String> {
        match deed {
            Deed::Silo { silo, deed } => self.ask(Ask::Silo { silo: *silo, deed: *deed }, why),
            Deed::Move { stream, to } => self.ask(Ask::Move { stream: *stream, to: *to }, why),
            Deed::Drill(drill) => self.ask(Ask::Drill { name: drill.name().to_owned(), for_ms: None }, why),
            Deed::Input(spec) => self.ask(Ask::Input(absolute(spec.clone())), why),
        }
    }

    fn bond(&self) -> Bond {
        let access = if self.parts.access.is_ok() { Access::Act } else { Access::Watch };
        Bond::Attached { pid: self.parts.pid, access }
    }

    fn news(&mut self) -> Vec<News> {
        let mut news = std::mem::take(&mut self.news);
        let Some(line) = &self.parts.line else { return news };
        for outcome in line.heard() {
            match outcome {
                Outcome::Refused(said) => news.push(News::Refused(said)),
                Outcome::Done(Done::InForce { text, .. }) => {
                    // Of the order that it was asked for: a newer one asks again.
                    self.in_force = Profile::parse(&text, "profile in force").ok().zip(self.asked);
                }
                Outcome::Done(done) => news.push(News::Done(said(&done))),
            }
        }
        news
    }

    fn lost(&self) -> Option<String> {
        if let Sequel::Missed(said) = &self.sequel {
            return Some(said.clone());
        }
        let seen = self.last.filter(|seen| seen.life == Life::Dead && seen.phase != Phase::Shutdown)?;
        let (pid, at_s) = (self.parts.pid, seen.at_ns as f64 / 1e9);
        Some(format!(
            "process {pid} is gone, {at_s:.1} s after its start and without an end of its run; this is what it left: pinwheel postmortem {pid}"
        ))
    }

    fn is_finished(&self) -> bool {
        !matches!(self.sequel, Sequel::Awaited(_)) && self.last.is_some_and(|seen| seen.life == Life::Dead)
    }

    fn offers(&self) -> Vec<Offer> {
        self.in_force.as_ref().map_or_else(Vec::new, |(profile, _)| offers_of(self.parts.profiles.as_deref(), profile))
    }

    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        let run_dir = self.parts.run_dir.as_deref().ok_or(
            "found no run directory on the board, expected one to look back into; its profile says diagnostics: Off",
        )?;
        let ends_before = |tape: &Tape| tape.span().is_none_or(|(_, to)| tape.since_start(to) < Nanos(at_ns));
        // The engine still writes it: what is asked for may have been written since.
        match &mut self.tape {
            Some(tape) if ends_before(tape) => tape.refresh().map_err(|error| error.to_string())?,
            Some(_) => {}
            None => self.tape = Some(Tape::open(run_dir).map_err(|error| error.to_string())?),
        }
        match &mut self.tape {
            Some(tape) => look(tape, at_ns, &self.parts.notes),
            None => Err("found no recording, expected one; try again".to_owned()),
        }
    }

    fn note(&mut self, text: &str) -> Result<(), String> {
        self.ask(Ask::Note { text: text.to_owned() }, "")?;
        self.parts.notes.push((self.last.map_or(0, |seen| seen.at_ns), text.to_owned()));
        Ok(())
    }
}

/// The same input with paths from the root: the engine's process may stand in another directory.
pub fn absolute(mut spec: InputSpec) -> InputSpec {
    let rooted = |path: &str| std::path::absolute(path).map_or(path.to_owned(), |path| path.display().to_string());
    let is_no_file =
        |from: &str| ["udp:", "shm:"].iter().any(|kind| from.starts_with(kind)) || ["sampler", "-"].contains(&from);
    match spec.from.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => spec.from = format!("unix:{}", rooted(path)),
        Some(_) => {}
        None if is_no_file(&spec.from) => {}
        None => spec.from = rooted(&spec.from),
    }
    // What is no file may be the name of a bundled model.
    spec.dem = spec.dem.map(|dem| if Path::new(&dem).exists() { rooted(&dem) } else { dem });
    spec.observables = spec.observables.map(|path| rooted(&path));
    spec
}

/// What was done, for the footer.
fn said(done: &Done) -> String {
    match done {
        Done::Profile { to, epoch, threads, acknowledged, waited_ms, rate, .. } => {
            let count = threads.iter().filter(|thread| thread.acknowledged).count();
            let all = threads.len();
            let late = if *acknowledged { "" } else { ", the others not yet" };
            format!(
                "profile {to}: epoch {epoch} acknowledged by {count} of {all} threads within {waited_ms} ms{late}; rate {rate}"
            )
        }
        Done::Feed { held: true, submitted, answered, .. } => {
            format!("feed held at {submitted} submitted, {answered} answered")
        }
        Done::Feed { held: false, .. } => "feed runs again".to_owned(),
        Done::Rate { hz, from } => {
            let to = hz.map_or_else(|| "as fast as slots come free".to_owned(), |hz| format!("{hz}/s"));
            format!("rate {to}, before {from}")
        }
        Done::End { phase, open, .. } => format!("engine in {phase}, {open} shots open"),
        Done::Alarms { numbers, .. } => format!("{} alarms answered", numbers.len()),
        Done::Silo { silo, state, .. } => format!("silo {silo} is {state}"),
        Done::Move { stream, silo, acknowledged: true, .. } => format!("stream {stream} is decoded in silo {silo}"),
        Done::Move { stream, silo, .. } => format!("stream {stream} is still decoded in silo {silo}"),
        Done::Note { .. } => "note kept in events.jsonl".to_owned(),
        Done::Input { from, to } => format!("{to} can be used: the engine drains {from} before it takes it"),
        Done::Drill { name, role, thread, .. } => format!("drill {name} runs: {role} on {thread}"),
        Done::Status(_) | Done::InForce { .. } => "heard".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{InputSpec, absolute};

    #[test]
    fn what_names_a_file_is_named_from_the_root_and_nothing_else_is() {
        let here = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
        for (text, expected) in [
            ("sampler", "sampler".to_owned()),
            ("-", "-".to_owned()),
            ("unix:", "unix:".to_owned()),
            ("udp:127.0.0.1:7000", "udp:127.0.0.1:7000".to_owned()),
            ("shm:fpga0", "shm:fpga0".to_owned()),
            ("unix:in", format!("unix:{here}/in")),
            ("today.b8 --dem surface_d3", format!("{here}/today.b8 --dem surface_d3")),
            (
                "/a.b8 --dem src/main.rs --observables o",
                format!("/a.b8 --dem {here}/src/main.rs --observables {here}/o"),
            ),
        ] {
            assert_eq!(InputSpec::parse(text).map(|spec| absolute(spec).to_string()), Ok(expected));
        }
    }
}
