//! Results of commands: the part done at once, then the acknowledgements of the hot threads.
//!
//! [`super::command`] makes an [`Accepted`]; [`Accepted::report`] only reads the board, on the cold
//! thread that waits, and makes the [`Done`] for the requester. Bounds: [`SETTLE_LIMIT`] for the
//! hot threads, [`INPUT_LIMIT`] for another input to be read and checked. Never waits.

mod acknowledged;

use super::drilling::Drilled;
use super::steer::Switched;
use crate::board::snapshot::{AlarmView, Snapshot};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::profile::{Change, Shadow};
use crate::roles::SiloState;
use crate::silo::SiloCommand;
use crate::units::Nanos;
use pinwheel_edge::spin::Phase;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::mpsc::{Receiver, TryRecvError};

pub use acknowledged::{Acknowledged, ChangeAcknowledged, WorkerAcknowledged};
use acknowledged::{acknowledgements, change_of_workers, workers_acknowledged};

/// A command is in force for all roles of a thread after this many of its frames.
const FRAMES: u64 = 2;
/// Longest wait for the hot threads to acknowledge a command.
const SETTLE_LIMIT: Nanos = Nanos(2_000_000_000);
/// Longest wait for another input to be read and checked; after it the request is refused.
const INPUT_LIMIT: Nanos = Nanos(60_000_000_000);

/// An accepted command, with the effects that are still to be observed.
#[derive(Debug)]
pub enum Accepted {
    /// The command is complete.
    Done(Done),
    /// The requester wants the state of the engine.
    Status,
    /// A profile is in force; each hot thread acknowledges it.
    Switched(Box<Switched>),
    /// The feed is held or released.
    Feed {
        /// Whether it is held.
        held: bool,
        /// Frames of each thread at the time of the command.
        frames: Vec<u64>,
    },
    /// Another decoder is in force; each decode worker acknowledges it.
    Decoder {
        /// Its name.
        decoder: String,
        /// The stream; `None`: all streams.
        stream: Option<u32>,
        /// Epoch of the change.
        epoch: u64,
    },
    /// Another error model is in force; each decode worker acknowledges it.
    Model {
        /// Its file, or the name of a bundled model.
        path: String,
        /// Its hash.
        hash: String,
        /// The stream; `None`: all streams.
        stream: Option<u32>,
        /// Epoch of the change.
        epoch: u64,
    },
    /// The engine drains or ends.
    Ending,
    /// The alarm of this number is being acknowledged or snoozed; 0: all active alarms.
    Alarms(u64),
    /// A silo is to be drained, killed or rejoined.
    Silo {
        /// The silo.
        silo: u32,
        /// The command on it.
        command: SiloCommand,
    },
    /// A stream is to move to another silo.
    Move {
        /// The stream.
        stream: u32,
        /// The new silo.
        to: u32,
    },
    /// The owner of the engine reads another input, and replies here. Dropping the receiver
    /// withdraws the request.
    Input(Receiver<Result<Done, String>>),
}

/// Result of a command, with the acknowledgements of the engine's threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Done {
    /// The state of the engine.
    Status(Status),
    /// The profile in force.
    InForce {
        /// Its name.
        name: String,
        /// Its text as it is in force.
        text: String,
    },
    /// A profile was switched.
    Profile {
        /// Name of the previous profile.
        from: String,
        /// Name of the new profile.
        to: String,
        /// Epoch of the switch.
        epoch: u64,
        /// Fields that differ.
        changes: Vec<Change>,
        /// The rate in force now, as text.
        #[serde(default)]
        rate: String,
        /// Seconds until the previous profile returns.
        reverts_in_s: Option<u64>,
        /// Acknowledgement of each hot thread.
        threads: Vec<Acknowledged>,
        /// Acknowledgement of each decode worker, if the profile has other decoders.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        decoders: Vec<WorkerAcknowledged>,
        /// Whether all threads have acknowledged.
        acknowledged: bool,
        /// Time waited for the acknowledgements, milliseconds.
        waited_ms: u64,
    },
    /// The feed was held or released.
    Feed {
        /// Whether it is held.
        held: bool,
        /// Whether every thread has passed a frame since.
        acknowledged: bool,
        /// Shots submitted up to then.
        submitted: u64,
        /// Shots answered up to then.
        answered: u64,
    },
    /// A decoder was changed.
    Decoder {
        /// Its name.
        decoder: String,
        /// How far the change has come.
        #[serde(flatten)]
        change: ChangeAcknowledged,
    },
    /// An error model was changed.
    Model {
        /// Its file, or the name of a bundled model.
        path: String,
        /// Its hash, 16 hexadecimal digits.
        hash: String,
        /// How far the change has come.
        #[serde(flatten)]
        change: ChangeAcknowledged,
    },
    /// Shots are given to a second decoder, or to none.
    Shadow {
        /// Its name; none: there is no shadow.
        decoder: Option<String>,
        /// It gets one shot in so many; none: there is no shadow.
        one_in: Option<u32>,
        /// Its error model; none: that of each shot on the path.
        model: Option<String>,
    },
    /// The rate was changed.
    Rate {
        /// Shots per second; none: as fast as slots come free.
        hz: Option<f64>,
        /// The previous rate, as in a profile.
        from: String,
    },
    /// The engine drains or ends.
    End {
        /// The engine's phase.
        phase: String,
        /// Whether the engine has left LIVE.
        acknowledged: bool,
        /// Shots submitted but not answered.
        open: u64,
    },
    /// Alarms were acknowledged or snoozed.
    Alarms {
        /// Active alarms that are now acknowledged or snoozed.
        numbers: Vec<u64>,
        /// Whether the requested alarm is among them.
        acknowledged: bool,
    },
    /// A silo was drained, killed or rejoined.
    Silo {
        /// The silo.
        silo: u32,
        /// The requested command.
        command: SiloCommand,
        /// Its state now.
        state: String,
        /// Whether that is the requested state.
        acknowledged: bool,
    },
    /// A stream was requested to move.
    Move {
        /// The stream.
        stream: u32,
        /// The requested silo.
        to: u32,
        /// The silo that receives its shots now.
        silo: u32,
        /// Whether that is the requested silo.
        acknowledged: bool,
    },
    /// The note was recorded.
    Note {
        /// The recorded text.
        text: String,
    },
    /// A drill was started.
    Drill {
        /// Its name.
        name: String,
        /// The role that carries it out.
        role: String,
        /// The thread that runs the role.
        thread: String,
        /// Its time, milliseconds; 0: it has no duration.
        for_ms: u64,
        /// The expected cause of its alarm.
        expected: String,
    },
    /// The other input is usable, and the engine drains for it.
    Input {
        /// The input of the run that ends.
        from: String,
        /// The input of the run that follows.
        to: String,
    },
}

impl Done {
    /// A drill was started.
    pub(super) fn drill(started: Drilled) -> Done {
        let Drilled { drill, thread, span } = started;
        Done::Drill {
            name: drill.name().to_owned(),
            role: drill.role().name().to_owned(),
            thread,
            for_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
            expected: drill.expected().name().to_owned(),
        }
    }

    /// Shots are given to this shadow.
    pub(super) fn shadow(shadow: Option<&Shadow>) -> Done {
        Done::Shadow {
            decoder: shadow.map(|shadow| shadow.decoder.text()),
            one_in: shadow.map(|shadow| shadow.one_in),
            model: shadow.and_then(|shadow| shadow.model.clone()),
        }
    }

    /// Whether the engine's threads have acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        match self {
            Done::Decoder { change, .. } | Done::Model { change, .. } => change.acknowledged,
            Done::Profile { acknowledged, .. }
            | Done::Feed { acknowledged, .. }
            | Done::End { acknowledged, .. }
            | Done::Silo { acknowledged, .. }
            | Done::Move { acknowledged, .. }
            | Done::Alarms { acknowledged, .. } => *acknowledged,
            Done::Status(_)
            | Done::InForce { .. }
            | Done::Rate { .. }
            | Done::Shadow { .. }
            | Done::Note { .. }
            | Done::Drill { .. }
            | Done::Input { .. } => true,
        }
    }
}

/// The result in one line.
impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::Profile { to, epoch, threads, acknowledged, waited_ms, rate, .. } => {
                let (count, all) = (threads.iter().filter(|thread| thread.acknowledged).count(), threads.len());
                let late = if *acknowledged { "" } else { ", others pending" };
                write!(
                    f,
                    "profile {to}: epoch {epoch} acknowledged by {count} of {all} threads within {waited_ms} ms{late}; \
                     rate {rate}"
                )
            }
            Done::Feed { held: true, submitted, answered, .. } => {
                write!(f, "feed held at {submitted} submitted, {answered} answered")
            }
            Done::Feed { held: false, .. } => f.write_str("feed released"),
            Done::Decoder { decoder, change } => write!(f, "decoder {decoder} for {change}"),
            Done::Model { path, hash, change } => write!(f, "model {path} ({hash}) for {change}"),
            Done::Shadow { decoder: Some(decoder), one_in, model } => {
                write!(f, "shadow {decoder}: it gets one shot in {}", one_in.unwrap_or_default())?;
                model.as_ref().map_or(Ok(()), |model| write!(f, ", by model {model}"))
            }
            Done::Shadow { decoder: None, .. } => f.write_str("shadow off"),
            Done::Rate { hz: Some(hz), from } => write!(f, "rate {hz}/s, before {from}"),
            Done::Rate { hz: None, from } => write!(f, "rate max, as fast as slots come free, before {from}"),
            Done::End { phase, open, .. } => write!(f, "engine in {phase}, {open} shots open"),
            Done::Alarms { numbers, .. } => write!(f, "{} alarms acknowledged or snoozed", numbers.len()),
            Done::Silo { silo, state, .. } => write!(f, "silo {silo} is {state}"),
            Done::Move { stream, silo, acknowledged: true, .. } => {
                write!(f, "stream {stream} is decoded in silo {silo}")
            }
            Done::Move { stream, silo, .. } => write!(f, "stream {stream} is still decoded in silo {silo}"),
            Done::Note { .. } => f.write_str("note kept in events.jsonl"),
            Done::Input { from, to } => write!(f, "{to} is usable: the engine drains {from} and then starts on it"),
            Done::Drill { name, role, thread, .. } => write!(f, "drill {name} started: {role} on {thread}"),
            Done::Status(status) => write!(f, "engine in {}", status.phase),
            Done::InForce { name, .. } => write!(f, "profile {name} is in force"),
        }
    }
}

/// The state of an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Process number.
    pub pid: u32,
    /// Phase.
    pub phase: String,
    /// Time since its start, nanoseconds.
    pub at_ns: u64,
    /// Name of the profile in force.
    pub profile: String,
    /// Seconds until the previous profile returns; none: the switch is permanent.
    pub reverts_in_s: Option<u64>,
    /// Rate over all silos; none: as fast as slots come free.
    pub rate_hz: Option<f64>,
    /// Who holds the feed; none: it is not held.
    pub held_by: Option<String>,
    /// Shots submitted.
    pub submitted: u64,
    /// Shots answered.
    pub answered: u64,
    /// Numbers of the active alarms.
    pub alarms: Vec<u64>,
    /// The run's directory.
    pub run_dir: Option<String>,
}

impl Accepted {
    /// The feed of `board` is held or released, as of now.
    pub(super) fn feed(held: bool, board: &Board) -> Accepted {
        Accepted::Feed { held, frames: frames(board) }
    }

    /// The result, `waited` after the command; or in one sentence why the command failed after all.
    /// `None`: acknowledgements are pending, and there is time left.
    pub(super) fn report(&self, board: &Board, clock: &Clock, waited: Nanos) -> Option<Result<Done, String>> {
        let is_late = waited >= SETTLE_LIMIT;
        let done = match self {
            Accepted::Done(done) => Some(done.clone()),
            Accepted::Status => Some(Done::Status(status(&board.snapshot(clock)))),
            Accepted::Switched(switched) => {
                let threads = acknowledgements(board, switched.epoch);
                let decoders =
                    switched.decoder_epoch.map_or_else(Vec::new, |epoch| workers_acknowledged(board, clock, epoch));
                let acknowledged = threads.iter().all(|thread| thread.acknowledged)
                    && decoders.iter().all(|worker| worker.acknowledged);
                (acknowledged || is_late).then(|| Done::Profile {
                    from: switched.from.clone(),
                    to: switched.to.clone(),
                    epoch: switched.epoch,
                    changes: switched.changes.clone(),
                    rate: switched.rate.clone(),
                    reverts_in_s: switched.reverts_in.map(|span| span.as_secs()),
                    threads,
                    decoders,
                    acknowledged,
                    waited_ms: waited.0 / 1_000_000,
                })
            }
            Accepted::Decoder { decoder, stream, epoch } => {
                let change = change_of_workers(board, clock, (*stream, *epoch), waited);
                (change.acknowledged || is_late).then(|| Done::Decoder { decoder: decoder.clone(), change })
            }
            Accepted::Model { path, hash, stream, epoch } => {
                let change = change_of_workers(board, clock, (*stream, *epoch), waited);
                (change.acknowledged || is_late).then(|| Done::Model { path: path.clone(), hash: hash.clone(), change })
            }
            Accepted::Feed { held, frames: before } => {
                let acknowledged = frames(board).iter().zip(before).all(|(now, then)| *now >= then + FRAMES);
                let (submitted, answered) = path(board);
                (acknowledged || is_late).then_some(Done::Feed { held: *held, acknowledged, submitted, answered })
            }
            Accepted::Ending => {
                let phase = Phase::from_code(board::get(&board.header().phase));
                let (submitted, answered) = path(board);
                let (acknowledged, open) = (phase >= Phase::Drain, submitted.saturating_sub(answered));
                let end = || Done::End { phase: phase.name().to_owned(), acknowledged, open };
                (acknowledged || is_late).then(end)
            }
            Accepted::Silo { silo, command } => {
                let state = SiloState::from_code(board::get(&board.lifecycle(*silo as usize).state));
                let acknowledged = state == command.target_state();
                let state = state.name().to_owned();
                (acknowledged || is_late).then_some(Done::Silo { silo: *silo, command: *command, state, acknowledged })
            }
            Accepted::Move { stream, to } => {
                let silo = board::get(&board.stream_feed(*stream as usize).silo) as u32;
                let acknowledged = silo == *to;
                (acknowledged || is_late).then_some(Done::Move { stream: *stream, to: *to, silo, acknowledged })
            }
            Accepted::Alarms(number) => {
                let (alarms, now_ns) = (board.alarm_views(clock), clock.since_start(clock.ticks()).0);
                let is_meant = |alarm: &&AlarmView| alarm.number == *number || *number == 0 && alarm.is_active();
                let is_answered = |alarm: &&AlarmView| {
                    alarm.acknowledged_ns.is_some() || alarm.snoozed_until_ns.is_some_and(|until| until > now_ns)
                };
                let acknowledged = alarms.iter().filter(is_meant).all(|alarm| is_answered(&alarm));
                let numbers = alarms.iter().filter(is_meant).filter(is_answered).map(|alarm| alarm.number).collect();
                (acknowledged || is_late).then_some(Done::Alarms { numbers, acknowledged })
            }
            Accepted::Input(answer) => {
                return match answer.try_recv() {
                    Ok(answered) => Some(answered),
                    Err(TryRecvError::Empty) if waited < INPUT_LIMIT => None,
                    Err(_) => Some(Err(format!(
                        "the engine did not answer within {} s, because it starts, ends or reads a large file; try \
                         again",
                        INPUT_LIMIT.0 / 1_000_000_000
                    ))),
                };
            }
        };
        done.map(Ok)
    }
}

/// Number of frames of each thread.
fn frames(board: &Board) -> Vec<u64> {
    board.threads().iter().map(|thread| board::get(&thread.frames)).collect()
}

/// Numbers of submitted and answered shots, over all silos.
fn path(board: &Board) -> (u64, u64) {
    let silos = 0..board.shape().silos as usize;
    silos.fold((0, 0), |(submitted, answered), silo| {
        let (feed, harvest) = (board.feed(silo), board.harvest(silo));
        (submitted + board::get(&feed.submitted), answered + board::get(&harvest.answered))
    })
}

fn status(snapshot: &Snapshot) -> Status {
    let total = |counter: fn(&crate::board::snapshot::Counters) -> u64| {
        snapshot.silos.iter().map(|silo| counter(&silo.counters)).sum()
    };
    Status {
        pid: snapshot.engine.pid,
        phase: snapshot.engine.phase.name().to_owned(),
        at_ns: snapshot.at_ns,
        profile: snapshot.engine.profile.clone(),
        reverts_in_s: snapshot.control.revert.as_ref().map(|revert| revert.in_ns / 1_000_000_000),
        rate_hz: snapshot.engine.rate_hz,
        held_by: snapshot.control.held.as_ref().map(|held| held.by.clone()),
        submitted: total(|counters| counters.submitted),
        answered: total(|counters| counters.answered),
        alarms: snapshot.alarms.iter().filter(|alarm| alarm.is_active()).map(|alarm| alarm.number).collect(),
        run_dir: snapshot.recorder.run_dir.clone(),
    }
}
