//! The console's update function: one message in, effects out.
//!
//! Pure: no I/O, no clock, no terminal; on the console thread. Only [`actions`] and [`profile`]
//! make dangerous effects (a switch that steps up, a drain, a forced end), and only from a
//! confirmed question. Signals drain at once. A temporary profile, once confirmed, ends without a
//! question.

mod actions;
mod lists;
mod mouse;
mod moves;
mod palette;
mod past;
mod profile;
mod questions;
mod refusals;
mod typing;

pub use moves::slots_per_row;

use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::{Action, Scope};
use crate::model::chart::Chart;
use crate::model::derived::Marks;
use crate::model::lookups::LookedUp;
use crate::model::measured::measure;
use crate::model::tour;
use crate::model::{Leaving, Mode, Model, NOTICE_NS, Notice, NoticeKind, Overlay, Picture, Scene, View};
use crate::msg::{Finished, Msg, Signal};
use crate::source::{Ownership, Reply};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::OnHangup;
use std::rc::Rc;

/// Applies `msg` to the model and returns the effects.
pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let mut effects = take_in(model, msg);
    if model.view == View::Compare {
        model.compared = crate::model::lists::pairs(model);
    }
    if let Some((kind, text)) = tour::follow(model) {
        notice(model, kind, text);
    }
    lists::settle(model);
    effects.extend(lists::wanted(model).map(Effect::LookUp));
    effects
}

fn take_in(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Tick { now_ns } => tick(model, now_ns),
        Msg::Snapshot { now_ns, snapshot, finished } => {
            tick(model, now_ns);
            model.finished = finished;
            let before = actions_seen(model);
            if let Some(snapshot) = snapshot {
                observe(model, *snapshot);
            }
            let mut effects = leave_if_drained(model);
            effects.extend(past::run_on(model));
            // Any client may have switched the profile that those on offer are compared with.
            effects.extend((actions_seen(model) != before).then_some(Effect::ListOffers));
            return effects;
        }
        Msg::Key(key) => match model.action(key) {
            Some(action) => return actions::act(model, action),
            None => typing::write(model, key),
        },
        Msg::Mouse(mouse) => return mouse::act(model, mouse),
        Msg::Replay(at_ns) => {
            model.mode = Mode::Replay { running_since_ns: None };
            return vec![Effect::LookAt(at_ns)];
        }
        Msg::Executed { command, result } => return executed(model, &command, result),
        Msg::Reply(reply) => return show_reply(model, reply),
        Msg::Signal(signal) => return signalled(model, signal),
        Msg::LookedUp(brought) => lists::brought(model, brought),
        Msg::Dumped(Ok(file)) => notice(model, NoticeKind::Done, format!("screen written to {file}")),
        Msg::Dumped(Err(said)) | Msg::Unusable(said) => notice(model, NoticeKind::Refused, said),
        Msg::Past(result) => past::arrived(model, result),
        Msg::Resize { columns, rows } => model.size = (columns, rows),
        Msg::Offers(offers) => {
            // A file that came or went moves the others: the cursor stays on its profile.
            let here = model.offers.iter().flatten().nth(model.cursor.profile).map(|offer| &offer.name);
            let place = here.and_then(|name| offers.iter().position(|offer| offer.name == *name));
            model.cursor.profile = place.unwrap_or(model.cursor.profile).min(offers.len().saturating_sub(1));
            model.offers = Some(offers);
        }
        Msg::Lost(why) => model.lost = Some(why),
        Msg::Cost(cost) => model.console_cost = cost,
    }
    Vec::new()
}

/// Shows the reply of another process.
fn show_reply(model: &mut Model, reply: Reply) -> Vec<Effect> {
    match reply {
        Reply::Done(text) => notice(model, NoticeKind::Done, text),
        Reply::Refused(text) => notice(model, NoticeKind::Refused, text),
        Reply::SwitchRefused { name, why } => return profile::applied(model, &name, Err(why)),
        Reply::InForce => {}
    }
    vec![Effect::ListOffers]
}

/// Shows whether the engine accepted a command.
fn executed(model: &mut Model, command: &Command, result: Result<(), String>) -> Vec<Effect> {
    let answer = match command {
        Command::Profile { name, .. } => return profile::applied(model, name, result),
        Command::Acknowledge { .. } => Some("acknowledged"),
        Command::Snooze { .. } => Some("snoozed for ten minutes"),
        _ => None,
    };
    let (kind, text) = match (result, answer, command) {
        // The screen shows the drain.
        (Ok(()), _, Command::Drain) => return Vec::new(),
        (Ok(()), _, Command::Note { .. }) => (NoticeKind::Done, "note kept in events.jsonl".to_owned()),
        (Ok(()), Some(what), _) => (NoticeKind::Done, format!("alarm {what}: shown after the watchdog's next check")),
        (Ok(()), None, command) => (NoticeKind::Done, format!("{command} asked for")),
        (Err(why), Some(what), _) => (NoticeKind::Refused, format!("not {what}: {why}")),
        (Err(why), None, command) => (NoticeKind::Refused, format!("{command} refused: {why}")),
    };
    notice(model, kind, text);
    Vec::new()
}

/// Number of actions on the engine; `None` before its first picture.
fn actions_seen(model: &Model) -> Option<u64> {
    model.live.picture.as_ref().map(|picture| picture.snapshot.control.actions)
}

fn tick(model: &mut Model, now_ns: u64) {
    model.now_ns = model.now_ns.max(now_ns);
    if model.notice.as_ref().is_some_and(|notice| notice.until_ns <= model.now_ns) {
        model.notice = None;
    }
}

/// Stores a picture. A picture of the same moment as the last is ignored: its age keeps growing.
fn observe(model: &mut Model, snapshot: Snapshot) {
    let before = model.live.picture.as_ref().map(|picture| &picture.snapshot);
    if before.is_some_and(|before| before.at_ns == snapshot.at_ns) {
        return;
    }
    let is_other = |before: &Snapshot| {
        before.at_ns > snapshot.at_ns || before.engine.started_utc_s != snapshot.engine.started_utc_s
    };
    if before.is_some_and(is_other) {
        begin_anew(model);
    }
    // Any client may have switched the profile, so the engine's setting for a hangup applies.
    let drains = snapshot.control.drains_on_hangup;
    model.on_hangup = if drains { OnHangup::Drain } else { OnHangup::Detach };
    let derived = model.marks.derive(&snapshot);
    model.live.history.push(&derived);
    let alarm = lists::alarm_under_cursor(model);
    let picture = Picture { snapshot, derived, received_ns: model.now_ns };
    let before = model.live.picture.as_deref().map(|before| (&before.snapshot, &before.derived));
    measure(&mut model.measured, before, (&picture.snapshot, &picture.derived));
    profile::measure(model, &picture);
    model.live.picture = Some(Rc::new(picture));
    lists::stay_on_alarm(model, alarm);
    moves::clamp(model);
}

/// Another engine runs: clears the data of the previous one, and the questions about it.
fn begin_anew(model: &mut Model) {
    if model.overlay.as_ref().is_some_and(Overlay::is_about_engine) {
        (model.overlay, model.why) = (None, String::new());
        let said = "the question is withdrawn: it was about the run before this one".to_owned();
        notice(model, NoticeKind::Refused, said);
    }
    model.lists.sort_again();
    model.chart = Chart::default();
    (model.live, model.marks) = (Scene::default(), Marks::default());
    (model.frozen, model.timeline, model.mark) = (None, None, None);
    (model.switch, model.lookups) = (None, LookedUp::default());
    model.switches.clear();
    model.measured.clear();
    model.trail.clear();
}

fn leave_if_drained(model: &mut Model) -> Vec<Effect> {
    match (model.leaving, model.finished) {
        (Leaving::Draining { end, .. }, Finished::Yes) => vec![Effect::Leave(end)],
        _ => Vec::new(),
    }
}

fn signalled(model: &mut Model, signal: Signal) -> Vec<Effect> {
    match signal {
        Signal::Suspend => {
            refuse_suspend(model);
            Vec::new()
        }
        // The engine of another process continues when this console ends.
        Signal::Hangup if model.ownership != Ownership::Own => vec![Effect::Leave(ConsoleEnd::HungUp)],
        Signal::Terminate if model.ownership != Ownership::Own => vec![Effect::Leave(ConsoleEnd::Terminated)],
        Signal::Interrupt if model.ownership != Ownership::Own => vec![Effect::Leave(ConsoleEnd::Interrupted)],
        Signal::Hangup if model.on_hangup == OnHangup::Detach => vec![Effect::Leave(ConsoleEnd::HungUp)],
        Signal::Hangup => vec![drain("the terminal closed".to_owned()), Effect::Leave(ConsoleEnd::HungUp)],
        Signal::Terminate => drain_by_signal(model, ConsoleEnd::Terminated),
        Signal::Interrupt => drain_by_signal(model, ConsoleEnd::Interrupted),
    }
}

fn drain_by_signal(model: &mut Model, end: ConsoleEnd) -> Vec<Effect> {
    let signalled = |end| matches!(end, ConsoleEnd::Terminated | ConsoleEnd::Interrupted);
    match model.leaving {
        Leaving::Draining { end: earlier, .. } if signalled(earlier) => vec![Effect::Leave(ConsoleEnd::Killed)],
        Leaving::Draining { since_ns, .. } => {
            model.leaving = Leaving::Draining { since_ns, end };
            Vec::new()
        }
        Leaving::No => {
            if model.overlay != Some(Overlay::AskForce) {
                model.overlay = None;
            }
            model.leaving = Leaving::Draining { since_ns: model.now_ns, end };
            let mut effects = vec![drain("by a signal".to_owned())];
            effects.extend(leave_if_drained(model));
            effects
        }
    }
}

fn drain(why: String) -> Effect {
    Effect::Execute(Command::Drain, why)
}

fn refuse_suspend(model: &mut Model) {
    let key = |action| model.keymap.first_key(Scope::Views, action);
    let (freeze, quit) = (key(Action::Freeze), key(Action::Quit));
    let why = match &model.ownership {
        _ if model.is_replay() => format!("suspend refused; {quit} leaves the recording"),
        Ownership::Own => format!(
            "suspend refused: it would stop the engine in this process too; {freeze} freezes the picture, {quit} drains \
             and quits"
        ),
        _ => format!("suspend refused: {freeze} freezes the picture; {quit} leaves, and the engine continues"),
    };
    notice(model, NoticeKind::Refused, why);
}

/// Says why nothing is done.
fn refused(model: &mut Model, text: impl Into<String>) -> Vec<Effect> {
    notice(model, NoticeKind::Refused, text.into());
    Vec::new()
}

fn notice(model: &mut Model, kind: NoticeKind, text: String) {
    model.notice = Some(Notice { text, until_ns: model.now_ns + NOTICE_NS, kind });
}

#[cfg(test)]
mod tests;
