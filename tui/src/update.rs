//! How the console changes: one message in, effects out.
//!
//! Pure: no I/O, no clock, no terminal; on the console thread. Every dangerous effect (a switch that steps up, a drain, a
//! forced end) is made in [`actions`] and [`profile`] from a confirmed question and nowhere else; signals are the operating
//! system's word and drain at once, and a profile that was confirmed for a time comes back when that is over.

mod actions;
mod deeds;
mod lists;
mod mouse;
mod moves;
mod palette;
mod past;
mod profile;
mod typing;

pub use mouse::Pressed;
pub use moves::slots_per_row;

use crate::effect::{ConsoleEnd, Effect};
use crate::model::deeds::measure;
use crate::model::derived::Marks;
use crate::model::found::Found;
use crate::model::{Leaving, Mode, Model, NOTICE_NS, Notice, NoticeKind, Overlay, Picture, Scene, View};
use crate::msg::{Finished, Msg, Signal};
use crate::source::{Bond, News};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::OnHangup;
use std::rc::Rc;

/// Takes in `msg`; what must be done about it comes back.
pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let mut effects = take_in(model, msg);
    if model.view == View::Compare {
        model.compared = crate::model::lists::pairs(model);
    }
    lists::settle(model);
    effects.extend(lists::wanted(model).map(Effect::LookUp));
    effects
}

fn take_in(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Tick { now_ns } => {
            tick(model, now_ns);
            Vec::new()
        }
        Msg::Snapshot { now_ns, snapshot, finished } => {
            tick(model, now_ns);
            model.finished = finished;
            if let Some(snapshot) = snapshot {
                observe(model, *snapshot);
            }
            let mut effects = leave_if_drained(model);
            effects.extend(past::run_on(model));
            effects
        }
        Msg::Key(key) => match model.keymap.action(model.scope(), key) {
            Some(action) => actions::act(model, action),
            None => {
                typing::write(model, key);
                Vec::new()
            }
        },
        Msg::Mouse(mouse) => mouse::act(model, mouse),
        Msg::Replay(at_ns) => {
            model.mode = Mode::Replay { running_since_ns: None };
            vec![Effect::LookAt(at_ns)]
        }
        Msg::Applied { name, result } => profile::applied(model, &name, result),
        Msg::News(news) => heard(model, news),
        Msg::Asked { what, result } => asked(model, &what, result),
        Msg::Signal(signal) => signalled(model, signal),
        msg => {
            take_note(model, msg);
            Vec::new()
        }
    }
}

/// Messages after which there is nothing to do.
fn take_note(model: &mut Model, msg: Msg) {
    match msg {
        Msg::Brought(brought) => lists::brought(model, brought),
        Msg::Dumped(Ok(file)) => notice(model, NoticeKind::Done, format!("screen written to {file}")),
        Msg::Dumped(Err(said)) => notice(model, NoticeKind::Refused, said),
        Msg::Unusable(said) => notice(model, NoticeKind::Refused, said),
        Msg::Past(result) => past::arrived(model, result),
        Msg::Noted(result) => past::noted(model, result),
        Msg::Resize { columns, rows } => model.size = (columns, rows),
        Msg::Offers(offers) => {
            model.cursor.profile = model.cursor.profile.min(offers.len().saturating_sub(1));
            model.offers = Some(offers);
        }
        Msg::Answered { what, result } => answered(model, what, result),
        Msg::Lost(why) => model.lost = Some(why),
        Msg::Cost(cost) => model.console_cost = cost,
        Msg::Tick { .. }
        | Msg::Snapshot { .. }
        | Msg::Key(_)
        | Msg::Mouse(_)
        | Msg::Replay(_)
        | Msg::Applied { .. }
        | Msg::News(_)
        | Msg::Asked { .. }
        | Msg::Signal(_) => {}
    }
}

/// What another process said.
fn heard(model: &mut Model, news: News) -> Vec<Effect> {
    match news {
        News::Done(text) => notice(model, NoticeKind::Done, text),
        News::Refused(text) => notice(model, NoticeKind::Refused, text),
    }
    vec![Effect::ListOffers]
}

fn asked(model: &mut Model, what: &str, result: Result<(), String>) -> Vec<Effect> {
    match result {
        Ok(()) => notice(model, NoticeKind::Done, format!("{what} asked for")),
        Err(why) => notice(model, NoticeKind::Refused, format!("{what} refused: {why}")),
    }
    Vec::new()
}

/// What became of an answer to an alarm.
fn answered(model: &mut Model, what: &str, result: Result<(), String>) {
    match result {
        Ok(()) => notice(model, NoticeKind::Done, format!("alarm {what}: shown when the watchdog has taken it in")),
        Err(why) => notice(model, NoticeKind::Refused, format!("not {what}: {why}")),
    }
}

fn tick(model: &mut Model, now_ns: u64) {
    model.now_ns = model.now_ns.max(now_ns);
    if model.notice.as_ref().is_some_and(|notice| notice.until_ns <= model.now_ns) {
        model.notice = None;
    }
}

/// Takes in a picture. One that shows the same moment as the last is not news: its age keeps growing.
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
    // Whoever switched the profile: what a hangup means is the engine's word.
    let drains = snapshot.control.drains_on_hangup;
    model.on_hangup = if drains { OnHangup::Drain } else { OnHangup::Detach };
    let derived = model.marks.derive(&snapshot);
    model.live.history.push(&derived);
    let alarm = lists::alarm_under_cursor(model);
    let picture = Picture { snapshot, derived, received_ns: model.now_ns };
    measure(&mut model.measured, model.live.picture.as_deref(), &picture);
    profile::measure(model, &picture);
    model.live.picture = Some(Rc::new(picture));
    lists::stay_on_alarm(model, alarm);
    moves::clamp(model);
}

/// Another engine runs: what was seen of the one before is over.
fn begin_anew(model: &mut Model) {
    (model.live, model.marks) = (Scene::default(), Marks::default());
    (model.frozen, model.timeline, model.mark) = (None, None, None);
    (model.switch, model.found) = (None, Found::default());
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
        // Another process's engine goes on, whatever happens to this console.
        Signal::Hangup if model.bond != Bond::Own => vec![Effect::Leave(ConsoleEnd::HungUp)],
        Signal::Terminate if model.bond != Bond::Own => vec![Effect::Leave(ConsoleEnd::Terminated)],
        Signal::Interrupt if model.bond != Bond::Own => vec![Effect::Leave(ConsoleEnd::Interrupted)],
        Signal::Hangup if model.on_hangup == OnHangup::Detach => vec![Effect::Leave(ConsoleEnd::HungUp)],
        Signal::Hangup => vec![Effect::Drain("the terminal went away".to_owned()), Effect::Leave(ConsoleEnd::HungUp)],
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
            let mut effects = vec![Effect::Drain("by a signal".to_owned())];
            effects.extend(leave_if_drained(model));
            effects
        }
    }
}

fn refuse_suspend(model: &mut Model) {
    let why = match model.bond {
        Bond::Own => {
            "suspend refused: it would stop the engine in this process too; f freezes the picture, q drains and quits"
        }
        Bond::Attached { .. } => "suspend refused: f freezes the picture; q leaves, and the engine goes on",
    };
    notice(model, NoticeKind::Refused, why.to_owned());
}

fn notice(model: &mut Model, kind: NoticeKind, text: String) {
    model.notice = Some(Notice { text, until_ns: model.now_ns + NOTICE_NS, kind });
}

#[cfg(test)]
mod tests;
