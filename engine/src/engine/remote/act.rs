//! From a request to what was done: the control thread's part, and the look at what the hot threads say to it.
//!
//! [`act`] runs on the control thread between two ticks: it steers, and waits for nothing. [`Effect::done`] runs on the
//! socket's thread and only reads the board.

use super::Order;
use crate::arbiter::page::Authority;
use crate::board::snapshot::{AlarmView, SiloState, Snapshot};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::engine::Requests;
use crate::engine::actor::Actor;
use crate::engine::control::Hands;
use crate::engine::drilling::{DrillRefused, LiveDrill};
use crate::engine::inputs::Reply;
use crate::engine::logger::{self, Said};
use crate::engine::steer::{SharedSteering, Switched};
use crate::engine::wire::{Acknowledged, Ask, Done, InputSpec, Status};
use crate::fault::EventCode;
use crate::feed::requests::MoveRequest;
use crate::profile::{self, Profile, Rate};
use crate::silo::SiloDeed;
use crate::units::Nanos;
use crossbeam_channel::Sender;
use pinwheel_edge::spin::{Phase, SpinOrder};
use std::time::Duration;

/// Frames that every thread passes before what it was told is in force for its roles.
const FRAMES: u64 = 2;

/// What was done, and what is still to be seen of it.
#[derive(Debug)]
pub(in crate::engine) enum Effect {
    /// Nothing more to be seen.
    Done(Done),
    Status,
    Switched(Box<Switched>),
    /// The feed is held or let go; frames of each thread at that moment.
    Feed {
        held: bool,
        frames: Vec<u64>,
    },
    Ending,
    /// About an alarm; 0: all that hold.
    Alarms(u64),
    Silo {
        silo: u32,
        deed: SiloDeed,
    },
    Move {
        stream: u32,
        to: u32,
    },
}

/// Carries an order out, unless its time is over.
pub(in crate::engine) fn act(order: Order, hands: &Hands<'_>) {
    if hands.clock.ticks() > order.until {
        return;
    }
    if let Ask::Input(spec) = order.ask {
        return pass_on(spec, order.by, order.reply, hands);
    }
    let found = carry_out(order.ask, &order.by, hands);
    // A client that went away meanwhile wants to know nothing.
    let _ = order.reply.try_send(found);
}

/// Another input is for whoever holds the engine to take, who answers in their own time.
fn pass_on(spec: InputSpec, by: Actor, reply: Sender<Result<Effect, String>>, hands: &Hands<'_>) {
    let phase = Phase::from_code(board::get(&hands.steering.lock().board().header().phase));
    let answer: Reply = Box::new(move |done| reply.try_send(done.map(Effect::Done)).is_ok());
    if phase >= Phase::Drain || hands.requests.drain().is_some() {
        let said = format!("found the engine in {}, expected one that runs; wait for its end", phase.name());
        // Nobody who waits: nobody to tell.
        let _ = answer(Err(said));
        return;
    }
    hands.requests.inputs.ask(spec, by, answer);
}

fn carry_out(ask: Ask, by: &Actor, hands: &Hands<'_>) -> Result<Effect, String> {
    let Hands { steering, requests, clock, .. } = *hands;
    match ask {
        Ask::Status => Ok(Effect::Status),
        Ask::InForce => in_force(steering),
        Ask::Profile { name, text, for_s } => switch(&name, text.as_deref(), for_s, by, steering),
        Ask::Pause => {
            let mut steering = steering.lock();
            steering.pause(by).map_err(|error| error.to_string())?;
            Ok(Effect::Feed { held: true, frames: frames(steering.board()) })
        }
        Ask::Resume => {
            let mut steering = steering.lock();
            steering.resume(by).map_err(|error| error.to_string())?;
            Ok(Effect::Feed { held: false, frames: frames(steering.board()) })
        }
        Ask::Rate { hz } => {
            let rate = hz.map_or(Rate::Max, Rate::Hz);
            let before = steering.lock().set_rate(rate, by).map_err(|error| error.to_string())?;
            Ok(Effect::Done(Done::Rate { hz, from: format!("{before:?}") }))
        }
        Ask::Drain => {
            steering.lock().note_action(by, &format!("drain asked for by {}", by.words));
            requests.ask(Requests::DRAINED);
            Ok(Effect::Ending)
        }
        Ask::Stop => {
            steering.lock().note_action(by, &format!("stop without a grace asked for by {}", by.words));
            requests.hurry();
            requests.ask(Requests::DRAINED);
            Ok(Effect::Ending)
        }
        Ask::Acknowledge { number } => {
            steering.lock().acknowledge(number, by).map_err(|error| error.to_string())?;
            Ok(Effect::Alarms(number))
        }
        Ask::Snooze { number, for_s } => {
            let span = Duration::from_secs(for_s);
            steering.lock().snooze(number, span, by).map_err(|error| error.to_string())?;
            Ok(Effect::Alarms(number))
        }
        Ask::Silo { silo, deed } => {
            hands.wishes.ask(silo, deed).map_err(|refused| refused.to_string())?;
            steering.lock().note_action(by, &format!("{} of silo {silo} asked for by {}", deed.name(), by.words));
            Ok(Effect::Silo { silo, deed })
        }
        Ask::Move { stream, to } => {
            let request = MoveRequest { stream, to, lease_ms: 0, by: Authority::Operator };
            hands.moves.ask(request).map_err(|refused| refused.to_string())?;
            let text = format!("move of stream {stream} to silo {to} asked for by {}", by.words);
            steering.lock().note_action(by, &text);
            Ok(Effect::Move { stream, to })
        }
        Ask::Note { text } => {
            let text = logger::plain(&text);
            let note = Said {
                at: clock.ticks(),
                who: by.kind,
                code: EventCode::Note,
                text: text.clone(),
                numbers: by.numbers.clone(),
            };
            steering.lock().say(note).map_err(|error| error.to_string())?;
            Ok(Effect::Done(Done::Note { text }))
        }
        Ask::Drill { name, for_ms } => drill(name, for_ms, by, steering),
        Ask::Input(_) => unreachable!("passed on by act"),
    }
}

fn drill(name: String, for_ms: Option<u64>, by: &Actor, steering: &SharedSteering) -> Result<Effect, String> {
    let drill = LiveDrill::from_name(&name).ok_or_else(|| DrillRefused::Unknown { found: name }.to_string())?;
    let span = for_ms.map(Duration::from_millis);
    let started = steering.lock().drill(drill, span, by).map_err(|error| error.to_string())?;
    Ok(Effect::Done(Done::Drill {
        name: drill.name().to_owned(),
        role: drill.role().name().to_owned(),
        thread: started.thread,
        for_ms: u64::try_from(started.span.as_millis()).unwrap_or(u64::MAX),
        expected: drill.expected().name().to_owned(),
    }))
}

fn in_force(steering: &SharedSteering) -> Result<Effect, String> {
    let (name, profile) = {
        let steering = steering.lock();
        (steering.name().to_owned(), steering.profile())
    };
    let text = profile.to_ron().map_err(|error| format!("found a profile that cannot be written ({error})"))?;
    Ok(Effect::Done(Done::InForce { name, text }))
}

fn switch(
    name: &str,
    text: Option<&str>,
    for_s: Option<u64>,
    by: &Actor,
    steering: &SharedSteering,
) -> Result<Effect, String> {
    // A file is read before the lock is taken: a disk that hangs holds up whoever asked, and the control thread.
    let profiles = steering.lock().profiles();
    let loaded = match text {
        Some(text) => profile::check_name(name, name)
            .and_then(|()| Profile::parse(text, name))
            .map(|profile| (profile, name.to_owned())),
        None => Profile::load(name, profiles.as_deref()).map(|(profile, origin)| (profile, origin.name())),
    };
    let (profile, name) = loaded.map_err(|error| error.to_string())?;
    let lent = for_s.map(Duration::from_secs);
    let switched = steering.lock().switch(&name, &profile, lent, by).map_err(|error| error.to_string())?;
    Ok(Effect::Switched(Box::new(switched)))
}

fn frames(board: &Board) -> Vec<u64> {
    (0..board.shape().threads as usize).map(|thread| board::get(&board.thread(thread).frames)).collect()
}

impl Effect {
    /// What is to be said now; `None`: the threads have not all said so, and there is time.
    pub(super) fn done(&self, board: &Board, clock: &Clock, waited: Nanos, is_late: bool) -> Option<Done> {
        match self {
            Effect::Done(done) => Some(done.clone()),
            Effect::Status => Some(Done::Status(status(&board.snapshot(clock)))),
            Effect::Switched(switched) => {
                let threads = acknowledgements(board, switched.epoch);
                let acknowledged = threads.iter().all(|thread| thread.acknowledged);
                (acknowledged || is_late).then(|| Done::Profile {
                    from: switched.from.clone(),
                    to: switched.to.clone(),
                    epoch: switched.epoch,
                    changes: switched.changes.clone(),
                    rate: switched.rate.clone(),
                    reverts_in_s: switched.reverts_in.map(|span| span.as_secs()),
                    threads,
                    acknowledged,
                    waited_ms: waited.0 / 1_000_000,
                })
            }
            Effect::Feed { held, frames: before } => {
                let acknowledged = frames(board).iter().zip(before).all(|(now, then)| *now >= then + FRAMES);
                let (submitted, answered) = path(board);
                (acknowledged || is_late).then_some(Done::Feed { held: *held, acknowledged, submitted, answered })
            }
            Effect::Ending => {
                let phase = Phase::from_code(board::get(&board.header().phase));
                let (submitted, answered) = path(board);
                let (acknowledged, open) = (phase >= Phase::Drain, submitted.saturating_sub(answered));
                let end = || Done::End { phase: phase.name().to_owned(), acknowledged, open };
                (acknowledged || is_late).then(end)
            }
            Effect::Silo { silo, deed } => {
                let state = SiloState::from_code(board::get(&board.life(*silo as usize).state));
                let acknowledged = state == deed.aim();
                let state = state.name().to_owned();
                (acknowledged || is_late).then_some(Done::Silo { silo: *silo, deed: *deed, state, acknowledged })
            }
            Effect::Move { stream, to } => {
                let silo = board::get(&board.stream_feed(*stream as usize).silo) as u32;
                let acknowledged = silo == *to;
                (acknowledged || is_late).then_some(Done::Move { stream: *stream, to: *to, silo, acknowledged })
            }
            Effect::Alarms(number) => {
                let (alarms, now_ns) = (board.alarm_views(clock), clock.since_start(clock.ticks()).0);
                let is_meant = |alarm: &&AlarmView| alarm.number == *number || *number == 0 && alarm.is_active();
                let is_answered = |alarm: &&AlarmView| {
                    alarm.acknowledged_ns.is_some() || alarm.snoozed_until_ns.is_some_and(|until| until > now_ns)
                };
                let acknowledged = alarms.iter().filter(is_meant).all(|alarm| is_answered(&alarm));
                let numbers = alarms.iter().filter(is_meant).filter(is_answered).map(|alarm| alarm.number).collect();
                (acknowledged || is_late).then_some(Done::Alarms { numbers, acknowledged })
            }
        }
    }
}

fn acknowledgements(board: &Board, epoch: u64) -> Vec<Acknowledged> {
    let acknowledged = |thread: usize| {
        let block = board.thread(thread);
        let order = SpinOrder::unpack(board::get(&block.policy_acknowledged));
        let refusal = block.refusal.read();
        Acknowledged {
            name: block.name.read(),
            policy: order.policy.name().to_owned(),
            epoch: order.epoch,
            acknowledged: order.epoch >= epoch,
            refusal: (!refusal.is_empty()).then_some(refusal),
        }
    };
    (0..board.shape().threads as usize).map(acknowledged).collect()
}

/// Shots submitted and answered, over all silos.
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
