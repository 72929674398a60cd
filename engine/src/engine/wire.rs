//! What is said over the control socket: one JSON object a line, a request and its reply.
//!
//! Owns the words of both directions and their bounds; the socket's thread and its clients share them. Pure. A request carries
//! [`VERSION`]; a reply either says what came of it, or refuses it in one sentence.

use crate::profile::Change;
use crate::silo::SiloDeed;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Of what is said. A request of another version is refused.
pub const VERSION: u32 = 1;
/// Longest line either way, bytes: a profile's text at its longest, with room for its escapes.
pub const LINE_BYTES_MAX: usize = 3 << 20;

/// How the note begins that a run ends with when another one follows it in the same process. Whoever looks at its board
/// then looks for the next one.
pub const GOES_ON: &str = "goes on with another input";

/// What a client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// What for.
    pub ask: Ask,
    /// Why, in the operator's own words; may be empty.
    #[serde(default)]
    pub why: String,
}

impl Request {
    /// Of this program's version.
    #[must_use]
    pub fn new(ask: Ask, why: &str) -> Request {
        Request { version: VERSION, ask, why: why.to_owned() }
    }
}

/// What may be asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// How the engine stands.
    Status,
    /// The profile in force.
    InForce,
    /// Another profile.
    Profile {
        /// Its name: the engine looks for it where it found its own, unless the text is given.
        name: String,
        /// Its text.
        text: Option<String>,
        /// For so long, seconds; then the one before comes back.
        for_s: Option<u64>,
    },
    /// Hold the feed.
    Pause,
    /// Let it run.
    Resume,
    /// Another rate, shots per second; none: as fast as slots come free.
    Rate {
        /// The rate.
        hz: Option<f64>,
    },
    /// Stop the feed, let accepted shots finish, end.
    Drain,
    /// The same without waiting: what is under way is answered with an error.
    Stop,
    /// An alarm was seen; 0: all that hold.
    Acknowledge {
        /// Its number.
        number: u64,
    },
    /// An alarm is not to call.
    Snooze {
        /// Its number; 0: all that hold.
        number: u64,
        /// For so long.
        for_s: u64,
    },
    /// A note for the run's events.
    Note {
        /// Its words.
        text: String,
    },
    /// What becomes of a silo.
    Silo {
        /// Which.
        silo: u32,
        /// What.
        deed: SiloDeed,
    },
    /// A stream is to be decoded elsewhere.
    Move {
        /// Which.
        stream: u32,
        /// The silo where.
        to: u32,
    },
    /// A drill in the running engine.
    Drill {
        /// Its name.
        name: String,
        /// For so long, milliseconds; none: the drill's own time.
        for_ms: Option<u64>,
    },
    /// Another input: the engine drains, and its process starts anew on it. Paths are absolute, or from where that
    /// process was started.
    Input(InputSpec),
}

/// Where a run's shots are to come from: `shots.b8 --dem surface.dem --observables truth.b8 --format b8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSpec {
    /// `sampler`, a file of shots, `udp:ADDRESS:PORT`, `unix:PATH` or `shm:NAME`.
    pub from: String,
    /// The model: a file, or a bundled one by name; none: as before.
    #[serde(default)]
    pub dem: Option<String>,
    /// A file of true observables.
    #[serde(default)]
    pub observables: Option<String>,
    /// Of the files: `b8`, `01` or `dets`; none: as before.
    #[serde(default)]
    pub format: Option<String>,
}

impl InputSpec {
    /// As an operator writes it.
    ///
    /// # Errors
    /// What was found and what was expected.
    pub fn parse(text: &str) -> Result<InputSpec, String> {
        let mut parts = text.trim().split(" --");
        let from = parts.next().unwrap_or_default().trim().to_owned();
        if from.is_empty() || from.starts_with("--") {
            return Err(format!(
                "found {text:?}, expected sampler, a file of shots, udp:ADDRESS:PORT, unix:PATH or shm:NAME first"
            ));
        }
        let mut spec = InputSpec { from, ..InputSpec::default() };
        for part in parts {
            let (name, value) = part.trim().split_once([' ', '=']).unwrap_or((part.trim(), ""));
            let place = match name {
                "dem" => &mut spec.dem,
                "observables" => &mut spec.observables,
                "format" => &mut spec.format,
                _ => return Err(format!("found --{name}, expected --dem, --observables or --format; leave it out")),
            };
            if value.trim().is_empty() || place.is_some() {
                return Err(format!("found --{name} without a value or twice, expected it once; write --{name} VALUE"));
            }
            *place = Some(value.trim().to_owned());
        }
        Ok(spec)
    }
}

impl fmt::Display for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.from)?;
        for (name, value) in [("dem", &self.dem), ("observables", &self.observables), ("format", &self.format)] {
            if let Some(value) = value {
                write!(f, " --{name} {value}")?;
            }
        }
        Ok(())
    }
}

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// [`VERSION`].
    pub version: u32,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done(Done),
    /// It was not, in one sentence why.
    Refused(String),
}

/// What was done, with what the engine's threads said to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Done {
    /// How the engine stands.
    Status(Status),
    /// The profile in force.
    InForce {
        /// Its name.
        name: String,
        /// Its text, as it is run.
        text: String,
    },
    /// A profile was switched.
    Profile {
        /// Before.
        from: String,
        /// Now.
        to: String,
        /// Epoch of the order.
        epoch: u64,
        /// Fields that differ.
        changes: Vec<Change>,
        /// The rate in force now, in words.
        #[serde(default)]
        rate: String,
        /// Seconds until the one before comes back.
        reverts_in_s: Option<u64>,
        /// Each hot thread's answer.
        threads: Vec<Acknowledged>,
        /// Whether all have acknowledged.
        acknowledged: bool,
        /// How long that was waited for, milliseconds.
        waited_ms: u64,
    },
    /// The feed is held, or runs again.
    Feed {
        /// Whether it is held.
        held: bool,
        /// Whether every thread has passed a frame since.
        acknowledged: bool,
        /// Shots submitted by then.
        submitted: u64,
        /// Shots answered by then.
        answered: u64,
    },
    /// Another rate.
    Rate {
        /// Shots per second; none: as fast as slots come free.
        hz: Option<f64>,
        /// Before, as a profile writes it.
        from: String,
    },
    /// The engine drains, or ends.
    End {
        /// The phase that it is in.
        phase: String,
        /// Whether it has left LIVE.
        acknowledged: bool,
        /// Shots submitted and not answered.
        open: u64,
    },
    /// Alarms were answered.
    Alarms {
        /// Those that hold and are acknowledged or snoozed now.
        numbers: Vec<u64>,
        /// Whether the one that was meant is among them.
        acknowledged: bool,
    },
    /// A silo was drained, killed or brought back.
    Silo {
        /// Which.
        silo: u32,
        /// What was asked.
        deed: SiloDeed,
        /// Its state now.
        state: String,
        /// Whether that is what was asked for.
        acknowledged: bool,
    },
    /// A stream was asked to move.
    Move {
        /// Which.
        stream: u32,
        /// Where to.
        to: u32,
        /// Where its shots go now.
        silo: u32,
        /// Whether that is where they were to go.
        acknowledged: bool,
    },
    /// The note is kept.
    Note {
        /// As it is kept.
        text: String,
    },
    /// A drill was started.
    Drill {
        /// Its name.
        name: String,
        /// The role that does it.
        role: String,
        /// The thread that runs that role.
        thread: String,
        /// For so long, milliseconds; 0: it has no length.
        for_ms: u64,
        /// The cause that its alarm must name.
        expected: String,
    },
    /// Another input can be used, and the engine drains for it.
    Input {
        /// The input of the run that ends.
        from: String,
        /// The input of the run that follows.
        to: String,
    },
}

impl Done {
    /// Whether the engine's threads have said so too.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        match self {
            Done::Profile { acknowledged, .. }
            | Done::Feed { acknowledged, .. }
            | Done::End { acknowledged, .. }
            | Done::Silo { acknowledged, .. }
            | Done::Move { acknowledged, .. }
            | Done::Alarms { acknowledged, .. } => *acknowledged,
            Done::Status(_)
            | Done::InForce { .. }
            | Done::Rate { .. }
            | Done::Note { .. }
            | Done::Drill { .. }
            | Done::Input { .. } => true,
        }
    }
}

/// How an engine stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// Its phase.
    pub phase: String,
    /// Time since its start, nanoseconds.
    pub at_ns: u64,
    /// Profile in force.
    pub profile: String,
    /// Seconds until another one comes back; none: it stays.
    pub reverts_in_s: Option<u64>,
    /// Rate over all silos; none: as fast as slots come free.
    pub rate_hz: Option<f64>,
    /// Whether the feed is held, and by whom.
    pub held_by: Option<String>,
    /// Shots submitted.
    pub submitted: u64,
    /// Shots answered.
    pub answered: u64,
    /// Alarms that hold.
    pub alarms: Vec<u64>,
    /// The run's directory.
    pub run_dir: Option<String>,
}

/// What a hot thread runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Its name.
    pub name: String,
    /// The policy that it runs.
    pub policy: String,
    /// The epoch that it runs.
    pub epoch: u64,
    /// Whether that is the one asked for, or a later one.
    pub acknowledged: bool,
    /// Why it does not run the profile's policy.
    pub refusal: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::{Ask, Done, InputSpec, Outcome, Reply, Request, VERSION};

    #[test]
    fn requests_and_replies_are_lines_that_a_script_can_write_and_read() {
        let text = r#"{"version":1,"ask":{"profile":{"name":"shared","text":null,"for_s":60}},"why":"lunch"}"#;
        let ask = Ask::Profile { name: "shared".to_owned(), text: None, for_s: Some(60) };
        assert_eq!(serde_json::from_str::<Request>(text).ok(), Some(Request::new(ask, "lunch")));
        let pause = serde_json::from_str::<Request>(r#"{"version":1,"ask":"pause"}"#).ok();
        assert_eq!(pause, Some(Request::new(Ask::Pause, "")));
        let text = r#"{"version":1,"ask":{"input":{"from":"sampler","dem":"surface_d3"}}}"#;
        let spec = InputSpec { from: "sampler".to_owned(), dem: Some("surface_d3".to_owned()), ..InputSpec::default() };
        assert_eq!(serde_json::from_str::<Request>(text).ok(), Some(Request::new(Ask::Input(spec), "")));
        let done = Reply { version: VERSION, outcome: Outcome::Done(Done::Note { text: "a".to_owned() }) };
        let text = serde_json::to_string(&done).unwrap_or_default();
        assert_eq!(text, r#"{"version":1,"done":{"action":"note","text":"a"}}"#);
        assert_eq!(serde_json::from_str::<Reply>(&text).ok(), Some(done));
        let refused = Reply { version: VERSION, outcome: Outcome::Refused("no".to_owned()) };
        assert_eq!(serde_json::to_string(&refused).unwrap_or_default(), r#"{"version":1,"refused":"no"}"#);
    }

    #[test]
    fn an_input_is_written_as_it_is_read() {
        for text in [
            "sampler",
            "a file.b8",
            "sampler --dem surface_d3@r50",
            "udp:127.0.0.1:7000 --dem m.dem",
            "shots of today.01 --dem my model.dem --observables truth.01 --format 01",
        ] {
            assert_eq!(InputSpec::parse(text).map(|spec| spec.to_string()), Ok(text.to_owned()));
        }
        let spaced = InputSpec::parse("  a.b8   --format=dets ");
        assert_eq!(spaced.map(|spec| spec.to_string()).as_deref(), Ok("a.b8 --format dets"));
        for text in ["", "  ", "--dem x", "a --rate 5", "a --dem", "a --dem x --dem y"] {
            assert!(InputSpec::parse(text).is_err(), "{text}");
        }
    }
}
