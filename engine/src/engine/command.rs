//! Commands: every request to a running engine, and the one function that checks, executes and
//! records them.
//!
//! Console, attached console, `pinwheel ctl` and alarm rules build a [`Command`] and pass it to
//! [`Executor::execute`] with their [`Actor`]. The control socket ([`super::wire`]) carries the
//! serialised command. Runs on the requesting cold thread. Bounds: a few stores and system calls
//! under the lock of the command state; a named profile is read from its file before that. Never
//! waits for a hot thread: [`Accepted::report`] observes the acknowledgements.
//!
//! ```text
//!  console ──▶ Engine::execute ──┐
//!  attach, ctl ──▶ socket ───────┼──▶ Executor::execute: actor permitted? state permits? ──▶ execute ──▶ record
//!  alarm rule ──▶ watchdog ──────┘
//! ```

mod input_spec;

use super::actor::{Actor, Kind};
use super::drilling::{DrillRefused, LiveDrill};
use super::logger::{self, LogEntry};
use super::model_file;
use super::reply::{Accepted, Done};
use super::shadow::{ReadyShadow, ShadowRefused};
use super::steer::{ApplyError, SharedSteering, Steering};
use super::{NoteError, Requests};
use crate::arbiter::page::Authority;
use crate::board;
use crate::decode::changes::{Change, ChangeRefused};
use crate::fault::EventCode;
use crate::feed::requests::{MoveRefused, MoveRequest, MoveRequests};
use crate::host::neighbours::own_uid;
use crate::profile::{self, Decoder, Profile, ProfileError, Rate, Shadow};
use crate::silo::{SiloCommand, SiloCommands, SiloRefused};
use pinwheel_edge::spin::Phase;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use input_spec::InputSpec;

/// A request to a running engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Report the state of the engine.
    Status,
    /// Report the profile in force.
    InForce,
    /// Apply the live fields of another profile.
    Profile {
        /// Its name; without a text the engine reads the profile from its own profile directory.
        name: String,
        /// Its text.
        text: Option<String>,
        /// Seconds until the previous profile returns; none: permanent.
        for_s: Option<u64>,
    },
    /// Hold the feed: shots under way finish, and no new ones are taken.
    Pause,
    /// Release the feed.
    Resume,
    /// Set the rate until the next profile with a rate.
    Rate {
        /// Shots per second; none: as fast as slots come free.
        hz: Option<f64>,
    },
    /// Decode by another decoder, until a profile with other decoders.
    Decoder {
        /// Its name, as on a command line.
        decoder: String,
        /// The stream; none: all streams.
        stream: Option<u32>,
    },
    /// Decode by another error model of the same widths.
    Model {
        /// Its file, an absolute path or relative to the directory in which the process was started, or
        /// the name of a bundled model; none: take the last change of models back.
        file: Option<String>,
        /// The stream; none: all streams.
        stream: Option<u32>,
    },
    /// Give some of the shots to a second decoder too, off their path.
    Shadow {
        /// Its name, as on a command line.
        decoder: String,
        /// It gets one shot in so many.
        one_in: u32,
        /// The file of its error model, as for [`Command::Model`]; none: each shot's on the path.
        model: Option<String>,
    },
    /// Give shots to no second decoder.
    ShadowOff,
    /// Stop the feed, let accepted shots finish, end.
    Drain,
    /// End at once: shots under way are answered with an error.
    Stop,
    /// Acknowledge an alarm.
    Acknowledge {
        /// Its number; 0: all active alarms.
        number: u64,
    },
    /// Silence an alarm for a while.
    Snooze {
        /// Its number; 0: all active alarms.
        number: u64,
        /// Time, seconds.
        for_s: u64,
    },
    /// Record a note in the run's events.
    Note {
        /// Its text.
        text: String,
    },
    /// Drain, kill or rejoin a silo.
    Silo {
        /// The silo.
        silo: u32,
        /// The command on it.
        command: SiloCommand,
    },
    /// Move a stream to another silo.
    Move {
        /// The stream.
        stream: u32,
        /// The new silo.
        to: u32,
    },
    /// Provoke a stall or a fault, for a limited time.
    Drill {
        /// The drill's name.
        name: String,
        /// Time, milliseconds; none: the drill's default.
        for_ms: Option<u64>,
    },
    /// Take shots from another input: the engine drains, and its process starts again on that
    /// input. Paths are absolute, or relative to the directory in which the process was started.
    Input(InputSpec),
}

impl Command {
    /// Applies `profile` as `name`, permanently or for `lent`, in whole seconds.
    ///
    /// # Errors
    /// One sentence, if the profile cannot be written as text.
    pub fn profile(name: &str, profile: &Profile, lent: Option<Duration>) -> Result<Command, String> {
        let text = profile.to_ron().map_err(unwritable)?;
        Ok(Command::Profile { name: name.to_owned(), text: Some(text), for_s: lent.map(|span| span.as_secs()) })
    }
}

/// The command in a few words.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Status => f.write_str("status"),
            Command::InForce => f.write_str("the profile in force"),
            Command::Profile { name, .. } => write!(f, "profile {name}"),
            Command::Pause => f.write_str("hold of the feed"),
            Command::Resume => f.write_str("release of the feed"),
            Command::Rate { .. } => f.write_str("another rate"),
            Command::Decoder { decoder, stream: None } => write!(f, "decoder {decoder}"),
            Command::Decoder { decoder, stream: Some(stream) } => write!(f, "decoder {decoder} for stream {stream}"),
            Command::Model { file: None, .. } => f.write_str("model undo"),
            Command::Model { file: Some(file), stream: None } => write!(f, "model {file}"),
            Command::Model { file: Some(file), stream: Some(stream) } => write!(f, "model {file} for stream {stream}"),
            Command::Shadow { decoder, one_in, model: None } => write!(f, "shadow {decoder} 1 in {one_in}"),
            Command::Shadow { decoder, one_in, model: Some(file) } => {
                write!(f, "shadow {decoder} 1 in {one_in} by {file}")
            }
            Command::ShadowOff => f.write_str("shadow off"),
            Command::Drain => f.write_str("drain"),
            Command::Stop => f.write_str("stop"),
            Command::Acknowledge { .. } => f.write_str("acknowledgement of alarms"),
            Command::Snooze { .. } => f.write_str("snooze of alarms"),
            Command::Note { .. } => f.write_str("note"),
            Command::Silo { silo, command } => write!(f, "{} silo {silo}", command.name()),
            Command::Move { stream, to } => write!(f, "move stream {stream} to silo {to}"),
            Command::Drill { name, .. } => write!(f, "drill {name}"),
            Command::Input(spec) => write!(f, "input {spec}"),
        }
    }
}

/// Why a command was refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Refused {
    #[error("this engine belongs to user {owner}, not user {found}; watch it with pinwheel attach")]
    User { found: u32, owner: u32 },
    #[error("only an operator may request {command}, not {actor}; use pinwheel ctl or the console")]
    Actor { command: String, actor: &'static str },
    #[error(transparent)]
    Steering(#[from] ApplyError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The profile cannot be written as text.
    #[error("{0}")]
    Unwritable(String),
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The error model cannot be read.
    #[error("{0}")]
    Model(String),
    #[error("there is no decoder {found:?}; name matching, correlated, union-find, lookup or plugin:PATH")]
    NoDecoder { found: String },
    #[error(transparent)]
    Shadow(#[from] ShadowRefused),
    #[error(transparent)]
    Silo(#[from] SiloRefused),
    #[error(transparent)]
    Move(#[from] MoveRefused),
    #[error(transparent)]
    Drill(#[from] DrillRefused),
    #[error("the engine is ending (phase {found}) and takes no other input; wait for its end")]
    Ending { found: &'static str },
}

/// Executes commands. Each cold thread that executes commands has a clone.
#[derive(Clone)]
pub(super) struct Executor {
    pub(super) steering: SharedSteering,
    pub(super) requests: Arc<Requests>,
    pub(super) silo_commands: Arc<SiloCommands>,
    pub(super) moves: Arc<MoveRequests>,
}

impl Executor {
    /// Checks whether `by` may execute `command` now, executes it, and records it in the actions
    /// log.
    ///
    /// # Errors
    /// [`Refused`], one sentence; nothing was changed.
    pub(super) fn execute(&self, command: Command, by: &Actor) -> Result<Accepted, Refused> {
        check_permitted(&command, by)?;
        // The file is read before the lock is taken: a disk that hangs delays only the requester.
        let loaded = match &command {
            Command::Profile { name, text, .. } => Some(self.load(name, text.as_deref())?),
            _ => None,
        };
        // So are other decoders prepared, which may take as long as a start.
        let prepared = self.prepared(&command, loaded.as_ref().map(|(profile, _)| profile))?;
        let shadow = self.ready_shadow(&command)?;
        let mut steering = self.steering.lock();
        // Text for the actions log; the actor is appended with "by".
        let (accepted, what) = match command {
            Command::Status => return Ok(Accepted::Status),
            Command::InForce => {
                let (name, profile) = (steering.name().to_owned(), steering.profile());
                drop(steering);
                let text = profile.to_ron().map_err(|error| Refused::Unwritable(unwritable(error)))?;
                return Ok(Accepted::Done(Done::InForce { name, text }));
            }
            Command::Note { text } => {
                let (at, text) = (steering.now(), logger::one_line(&text));
                let (who, numbers) = (by.kind().name(), by.numbers());
                steering.say(LogEntry { at, who, code: EventCode::Note, text: text.clone(), numbers })?;
                return Ok(Accepted::Done(Done::Note { text }));
            }
            Command::Input(spec) => {
                let phase = Phase::from_code(board::get(&steering.board().header().phase));
                if phase >= Phase::Drain || self.requests.drain().is_some() {
                    return Err(Refused::Ending { found: phase.name() });
                }
                return Ok(Accepted::Input(self.requests.inputs.ask(spec, by.clone())));
            }
            Command::Profile { for_s, .. } => {
                let (profile, name) = loaded.expect("loaded above");
                let change = prepared.map(|(_, change)| change);
                let switched = steering.switch(&name, &profile, for_s.map(Duration::from_secs), change)?;
                let what = switched.words();
                (Accepted::Switched(Box::new(switched)), what)
            }
            Command::Pause => {
                steering.pause(by)?;
                (Accepted::feed(true, steering.board()), "feed held".to_owned())
            }
            Command::Resume => {
                steering.resume()?;
                (Accepted::feed(false, steering.board()), "feed released".to_owned())
            }
            Command::Rate { hz } => {
                let rate = hz.map_or(Rate::Max, Rate::Hz);
                let before = steering.set_rate(rate)?;
                let done = Done::Rate { hz, from: before.to_string() };
                (Accepted::Done(done), format!("rate {before} to {rate}"))
            }
            Command::Decoder { .. } | Command::Model { .. } => {
                change_decoding(&mut steering, command, prepared.expect("prepared above"))?
            }
            Command::Shadow { .. } | Command::ShadowOff => {
                let done = Done::shadow(shadow.as_ref().map(|(shadow, _)| shadow));
                steering.set_shadow(shadow)?;
                let what = done.to_string();
                (Accepted::Done(done), what)
            }
            Command::Drain => {
                self.requests.ask(Requests::DRAINED);
                (Accepted::Ending, "drain asked for".to_owned())
            }
            Command::Stop => {
                self.requests.hurry();
                self.requests.ask(Requests::DRAINED);
                (Accepted::Ending, "stop without grace asked for".to_owned())
            }
            Command::Acknowledge { number } => {
                steering.acknowledge(number)?;
                (Accepted::Alarms(number), format!("{} acknowledged", named(number)))
            }
            Command::Snooze { number, for_s } => {
                steering.snooze(number, Duration::from_secs(for_s))?;
                (Accepted::Alarms(number), format!("{} snoozed for {for_s} s", named(number)))
            }
            Command::Silo { silo, command } => {
                steering.open()?;
                self.silo_commands.ask(silo, command)?;
                (Accepted::Silo { silo, command }, format!("{} of silo {silo} asked for", command.name()))
            }
            Command::Move { stream, to } => {
                steering.open()?;
                self.moves.ask(MoveRequest { stream, to, lease_ms: 0, by: Authority::Operator })?;
                (Accepted::Move { stream, to }, format!("move of stream {stream} to silo {to} asked for"))
            }
            Command::Drill { name, for_ms } => {
                let drill = LiveDrill::from_name(&name).ok_or(DrillRefused::Unknown { found: name })?;
                let started = steering.drill(drill, for_ms.map(Duration::from_millis))?;
                let what = format!("{},", started.words());
                (Accepted::Done(Done::drill(started)), what)
            }
        };
        steering.record(by, &what);
        Ok(accepted)
    }

    /// Prepares the shadow that `command` asks for; `None` if it asks for none.
    fn ready_shadow(&self, command: &Command) -> Result<Option<(Shadow, ReadyShadow)>, Refused> {
        let Command::Shadow { decoder, one_in, model } = command else { return Ok(None) };
        let found = Decoder::from_text(decoder);
        let decoder = found.ok_or_else(|| Refused::NoDecoder { found: decoder.clone() })?;
        let shadow = Shadow { decoder, one_in: *one_in, model: model.clone() };
        let decoders = self.steering.lock().decoders().1;
        let ready = ReadyShadow::of(&shadow, &decoders)?;
        Ok(Some((shadow, ready)))
    }

    /// Prepares the decoders or models that `command` asks for, directly or by the profile that it
    /// names, and returns them with the profile that they are for; `None`: those in force stay.
    fn prepared(&self, command: &Command, loaded: Option<&Profile>) -> Result<Option<(Profile, Change)>, Refused> {
        let before = self.steering.lock().decoder_epoch();
        let prepared = self.prepare(command, loaded)?;
        // The profile and the change were read one after the other: another change came between them.
        if prepared.as_ref().is_some_and(|(_, change)| change.after() != before) {
            return Err(ApplyError::from(ChangeRefused::Busy).into());
        }
        Ok(prepared)
    }

    fn prepare(&self, command: &Command, loaded: Option<&Profile>) -> Result<Option<(Profile, Change)>, Refused> {
        let other = match (command, loaded) {
            (Command::Decoder { decoder, stream }, _) => {
                let found = Decoder::from_text(decoder);
                let named = found.ok_or_else(|| Refused::NoDecoder { found: decoder.clone() })?;
                Some(self.steering.lock().with_decoder(named, *stream))
            }
            (_, Some(profile)) => self.steering.lock().other_decoders(profile),
            _ => None,
        };
        if let Command::Model { file, stream } = command {
            let named = file.as_deref().map(model_file::read).transpose().map_err(Refused::Model)?;
            let (profile, changes) = self.steering.lock().decoders();
            let change = match named {
                Some(named) => changes.prepare_model(&profile, &named, *stream),
                None => changes.prepare_models_before(&profile),
            };
            return Ok(Some((profile, change.map_err(ApplyError::from)?)));
        }
        let Some((profile, changes)) = other else { return Ok(None) };
        let change = changes.prepare(&profile, None).map_err(ApplyError::from)?;
        Ok(Some((profile, change)))
    }

    /// Reads the profile from `text`, or from the profile directory by `name`; returns it with its
    /// name.
    fn load(&self, name: &str, text: Option<&str>) -> Result<(Profile, String), ProfileError> {
        match text {
            Some(text) => {
                profile::check_name(name, name)?;
                Ok((Profile::parse(text, name)?, name.to_owned()))
            }
            None => {
                let profiles = self.steering.lock().profiles();
                let (profile, origin) = Profile::load_unwaited(name, profiles.as_deref())?;
                Ok((profile, origin.name()))
            }
        }
    }
}

/// Puts the decoder or model that `command` names into force; the text for the actions log.
fn change_decoding(
    steering: &mut Steering,
    command: Command,
    (profile, change): (Profile, Change),
) -> Result<(Accepted, String), ApplyError> {
    let epoch = steering.set_decoders(&profile, change)?;
    let of = |stream: Option<u32>| stream.map_or_else(|| "all streams".to_owned(), |stream| format!("stream {stream}"));
    match command {
        Command::Decoder { decoder, stream } => {
            let what = format!("decoder {decoder} for {}, epoch {epoch},", of(stream));
            Ok((Accepted::Decoder { decoder, stream, epoch }, what))
        }
        Command::Model { file, stream } => {
            let (main, streams) = steering.decoders().1.models();
            let known = streams.into_iter().find(|(named, _)| Some(*named) == stream).map_or(main, |(_, known)| known);
            let (hash, back) = (known.hash_text(), if file.is_none() { ", taken back" } else { "" });
            let what = format!("model {} ({hash}) for {}{back}, epoch {epoch},", known.name, of(stream));
            Ok((Accepted::Model { path: known.name, hash, stream, epoch }, what))
        }
        _ => unreachable!("the caller passes these two"),
    }
}

/// Checks whether `by` may request `command`: operators may request anything of their own engine,
/// alarm rules the actions that a profile can name.
fn check_permitted(command: &Command, by: &Actor) -> Result<(), Refused> {
    let is_for_rules = matches!(
        command,
        Command::Drain | Command::Pause | Command::Profile { .. } | Command::Model { file: Some(_), .. }
    );
    match by.kind() {
        Kind::Operator { uid, .. } => may_operate(uid, own_uid()),
        Kind::Alarm if is_for_rules => Ok(()),
        kind @ (Kind::Alarm | Kind::Timer | Kind::Watchdog) => {
            Err(Refused::Actor { command: command.to_string(), actor: kind.name() })
        }
    }
}

/// Whether user `uid` may act on an engine of user `owner`. Root always may, because it could do
/// the same by other means.
pub(super) fn may_operate(uid: u32, owner: Option<u32>) -> Result<(), Refused> {
    if uid == 0 || owner == Some(uid) {
        return Ok(());
    }
    Err(Refused::User { found: uid, owner: owner.unwrap_or_default() })
}

fn unwritable(error: impl fmt::Display) -> String {
    format!("this profile cannot be written as text ({error}); use another")
}

fn named(number: u64) -> String {
    if number == 0 { "all alarms".to_owned() } else { format!("alarm {number}") }
}

#[cfg(test)]
mod tests {
    use super::{Actor, Command, check_permitted, may_operate, own_uid};
    use crate::silo::SiloCommand;

    #[test]
    fn operators_may_command_their_own_engine_only() {
        let kill = Command::Silo { silo: 1, command: SiloCommand::Kill };
        let own = own_uid().unwrap_or_default();
        for command in [Command::Status, Command::Pause, Command::Stop, kill] {
            assert!(check_permitted(&command, &Actor::this_process("")).is_ok(), "{command}");
            assert!(check_permitted(&command, &Actor::operator(0, 1, "")).is_ok(), "root: {command}");
            let refused =
                check_permitted(&command, &Actor::operator(own + 1, 1, "")).map_err(|refused| refused.to_string());
            assert!(refused.is_err_and(|said| said.contains(&format!("user {}", own + 1))), "{command}");
        }
        assert!(may_operate(5, None).is_err(), "where users are not known, only root");
    }

    #[test]
    fn alarm_rules_may_drain_pause_and_switch_profiles_and_models_only() {
        let profile = Command::Profile { name: "shared".to_owned(), text: None, for_s: None };
        let alarm = Actor::alarm("role feed stood still");
        let model = |file: Option<&str>| Command::Model { file: file.map(str::to_owned), stream: Some(1) };
        for command in [Command::Drain, Command::Pause, profile, model(Some("warm.dem"))] {
            assert!(check_permitted(&command, &alarm).is_ok(), "{command}");
        }
        let kill = Command::Silo { silo: 1, command: SiloCommand::Kill };
        let acknowledge = Command::Acknowledge { number: 0 };
        for command in [Command::Stop, Command::Resume, acknowledge, kill.clone(), model(None)] {
            assert!(check_permitted(&command, &alarm).is_err(), "{command}");
        }
        let refused = check_permitted(&kill, &alarm).map_err(|refused| refused.to_string());
        assert!(refused.is_err_and(|said| said.contains("request kill silo 1, not alarm")));
        for actor in [Actor::timer(), Actor::watchdog()] {
            assert!(check_permitted(&Command::Drain, &actor).is_err(), "it only records");
        }
    }
}
