//! What keys do once the table has named the action.
//!
//! Pure, on the console thread. The only place that makes [`Effect::Apply`], and the only one that drains or leaves at the
//! operator's word.

use super::{notice, past, refuse_suspend};
use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::{Action, Step};
use crate::model::{Leaving, Model, NoticeKind, Overlay, Switch, View};
use crate::msg::Finished;
use crate::source::Offer;
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::profile;
use std::rc::Rc;

/// Rows of a page movement.
const PAGE_ROWS: usize = 10;
/// Slots in a row of the slots view on a terminal of that many columns.
pub fn slots_per_row(columns: u16) -> usize {
    match columns {
        0..=79 => 32,
        80..=145 => 64,
        _ => 128,
    }
}

/// Does `action`.
pub fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::NextView => show(model, offset(model.view, 1)),
        Action::PreviousView => show(model, offset(model.view, View::ALL.len() - 1)),
        Action::Show(view) => show(model, view),
        Action::Move(step) => {
            move_cursor(model, step);
            Vec::new()
        }
        Action::NextSilo => {
            next_silo(model);
            Vec::new()
        }
        Action::Freeze => {
            freeze(model);
            Vec::new()
        }
        Action::Scrub(by_ms) => past::scrub(model, by_ms),
        Action::ToOnset => past::to_onset(model),
        Action::ToEnd(end) => past::to_end(model, end),
        Action::Play => {
            past::play(model);
            Vec::new()
        }
        Action::Note => {
            past::begin_note(model);
            Vec::new()
        }
        Action::Choose => choose(model),
        Action::Take => take(model, model.cursor.profile),
        Action::TakeNumber(number) => take(model, usize::from(number).wrapping_sub(1)),
        Action::Quit => quit(model),
        Action::Confirm => confirm(model),
        Action::Cancel => {
            model.overlay = None;
            Vec::new()
        }
        Action::Suspend => {
            refuse_suspend(model);
            Vec::new()
        }
        Action::Redraw => vec![Effect::Redraw],
        Action::Acknowledge => about_alarm(model, Effect::Acknowledge),
        Action::AcknowledgeAll => vec![Effect::Acknowledge(0)],
        Action::Snooze => about_alarm(model, Effect::Snooze),
    }
}

/// Something about the alarm under the cursor.
fn about_alarm(model: &mut Model, effect: fn(u64) -> Effect) -> Vec<Effect> {
    let alarm = model.picture().and_then(|picture| picture.snapshot.alarms.get(model.cursor.alarm));
    match alarm.map(|alarm| alarm.number) {
        Some(number) => vec![effect(number)],
        None => {
            notice(model, NoticeKind::Refused, "there is no alarm".to_owned());
            Vec::new()
        }
    }
}

fn offset(view: View, by: usize) -> View {
    let here = View::ALL.iter().position(|v| *v == view).unwrap_or(0);
    View::ALL[(here + by) % View::ALL.len()]
}

fn show(model: &mut Model, view: View) -> Vec<Effect> {
    model.view = view;
    match view {
        View::Profiles => return vec![Effect::ListOffers],
        View::Slots => to_longest_wait(model),
        _ => {}
    }
    Vec::new()
}

/// Who opens the slots, or asks for them again, is looking for the one that waits longest.
fn to_longest_wait(model: &mut Model) {
    let oldest = model.picture().and_then(|picture| picture.derived.silos.get(model.cursor.silo)?.oldest);
    if let Some((slot, _)) = oldest {
        model.cursor.slot = slot;
    }
    clamp(model);
}

fn freeze(model: &mut Model) {
    if model.is_replay() {
        return past::play(model);
    }
    model.timeline = None;
    model.frozen = match model.frozen.take() {
        Some(_) => None,
        None => Some((model.live.clone(), model.now_ns)),
    };
    clamp(model);
}

fn choose(model: &mut Model) -> Vec<Effect> {
    if refuse_while_leaving(model) {
        return Vec::new();
    }
    model.overlay = Some(Overlay::Chooser);
    vec![Effect::ListOffers]
}

fn refuse_while_leaving(model: &mut Model) -> bool {
    if model.finished == Finished::Yes || model.leaving != Leaving::No {
        notice(model, NoticeKind::Refused, "no profile switch: the engine is draining or has ended".to_owned());
        return true;
    }
    false
}

/// Takes the profile of that index: steps down at once from the chooser, asks otherwise.
fn take(model: &mut Model, index: usize) -> Vec<Effect> {
    if refuse_while_leaving(model) {
        model.overlay = None;
        return Vec::new();
    }
    let Some(offer) = model.offers.iter().flatten().nth(index).cloned() else { return Vec::new() };
    model.cursor.profile = index;
    let body = match &offer.body {
        Ok(body) => body,
        Err(why) => {
            let text = format!("profile {} cannot be used: {why}", offer.name);
            notice(model, NoticeKind::Refused, text);
            return Vec::new();
        }
    };
    let from_chooser = model.overlay == Some(Overlay::Chooser);
    if body.changes.is_empty() {
        model.overlay = None;
        notice(model, NoticeKind::Done, format!("profile {} is in force already", offer.name));
        return Vec::new();
    }
    if from_chooser && steps_down(model, &offer) {
        model.overlay = None;
        return apply(model, &offer);
    }
    model.overlay = Some(Overlay::AskApply(Box::new(offer)));
    Vec::new()
}

/// Whether the offer is gentler to the machine than what is in force. Unknown is not: it asks.
pub fn steps_down(model: &Model, offer: &Offer) -> bool {
    let (Some((_, in_force)), Ok(body)) = (model.in_force(), &offer.body) else { return false };
    let offered = match body.profile.spin {
        profile::SpinPolicy::Prod => 2,
        profile::SpinPolicy::Lab => 1,
        profile::SpinPolicy::Shared => 0,
    };
    offered < hunger(in_force)
}

/// How much of the machine a policy takes.
fn hunger(policy: SpinPolicy) -> u8 {
    match policy {
        SpinPolicy::Prod => 2,
        SpinPolicy::Lab => 1,
        SpinPolicy::Shared => 0,
    }
}

fn apply(model: &mut Model, offer: &Offer) -> Vec<Effect> {
    let Ok(body) = &offer.body else { return Vec::new() };
    let live = model.live.picture.as_ref().map(|picture| &picture.snapshot.engine);
    model.switch = Some(Switch {
        from: live.map_or_else(String::new, |engine| engine.profile.clone()),
        to: offer.name.clone(),
        at_ns: model.now_ns,
        epoch_before: live.map_or(0, |engine| engine.spin_epoch_requested),
    });
    vec![Effect::Apply { name: offer.name.clone(), profile: Rc::clone(&body.profile) }]
}

fn quit(model: &mut Model) -> Vec<Effect> {
    match (model.finished, model.leaving) {
        (Finished::Yes, _) => return vec![Effect::Leave(ConsoleEnd::Finished)],
        (Finished::No, Leaving::No) => model.overlay = Some(Overlay::AskQuit),
        (Finished::No, Leaving::Draining { .. }) => model.overlay = Some(Overlay::AskForce),
    }
    Vec::new()
}

fn confirm(model: &mut Model) -> Vec<Effect> {
    match model.overlay.take() {
        Some(Overlay::AskApply(offer)) if !refuse_while_leaving(model) => apply(model, &offer),
        Some(Overlay::AskQuit) => {
            if model.finished == Finished::Yes {
                return vec![Effect::Leave(ConsoleEnd::Finished)];
            }
            if model.leaving == Leaving::No {
                model.leaving = Leaving::Draining { since_ns: model.now_ns, end: ConsoleEnd::Finished };
                return vec![Effect::Drain];
            }
            Vec::new()
        }
        Some(Overlay::AskForce) => vec![Effect::Leave(ConsoleEnd::Forced)],
        Some(Overlay::Note(text)) if !text.trim().is_empty() => vec![Effect::Note(text.trim().to_owned())],
        Some(Overlay::AskApply(_) | Overlay::Chooser | Overlay::Note(_)) | None => Vec::new(),
    }
}

fn next_silo(model: &mut Model) {
    let silos = model.picture().map_or(0, |picture| picture.snapshot.silos.len());
    model.cursor.silo = if silos == 0 { 0 } else { (model.cursor.silo + 1) % silos };
    clamp(model);
}

/// Lengths of what the cursors move in.
struct Lengths {
    silos: usize,
    threads: usize,
    slots: usize,
    workers: usize,
    profiles: usize,
    arbiter: usize,
    source_streams: usize,
    alarms: usize,
}

fn lengths(model: &Model) -> Lengths {
    let snapshot = model.picture().map(|picture| &picture.snapshot);
    let silo = snapshot.and_then(|s| s.silos.get(model.cursor.silo));
    Lengths {
        silos: snapshot.map_or(0, |s| s.silos.len()),
        threads: snapshot.map_or(0, |s| s.threads.len()),
        slots: silo.map_or(0, |s| s.slots.len()),
        workers: silo.map_or(0, |s| s.workers.len()),
        profiles: model.offers.as_ref().map_or(0, Vec::len),
        arbiter: silo.map_or(0, crate::view::arbiter_rows),
        source_streams: snapshot.and_then(|s| s.sources.first()).map_or(0, |source| source.streams.len()),
        alarms: snapshot.map_or(0, |s| s.alarms.len()),
    }
}

/// Brings every cursor back to what there is.
pub(super) fn clamp(model: &mut Model) {
    let last = |length: usize| length.saturating_sub(1);
    let there = lengths(model);
    model.cursor.silo = model.cursor.silo.min(last(there.silos));
    let there = lengths(model);
    model.cursor.thread = model.cursor.thread.min(last(there.threads));
    model.cursor.slot = model.cursor.slot.min(last(there.slots));
    model.cursor.worker = model.cursor.worker.min(last(there.workers));
    model.cursor.arbiter = model.cursor.arbiter.min(last(there.arbiter));
    model.cursor.source = model.cursor.source.min(last(there.source_streams));
    model.cursor.overview = model.cursor.overview.min(last(there.silos));
    model.cursor.profile = model.cursor.profile.min(last(there.profiles));
    model.cursor.alarm = model.cursor.alarm.min(last(there.alarms));
}

fn move_cursor(model: &mut Model, step: Step) {
    let there = lengths(model);
    let per_row = slots_per_row(model.size.0);
    let in_chooser = model.overlay == Some(Overlay::Chooser);
    let help_rows = crate::keymap::TABLE.len() + 2 * crate::keymap::Scope::ALL.len();
    let cursor = &mut model.cursor;
    match model.view {
        _ if in_chooser => moved(&mut cursor.profile, step, there.profiles, 1),
        View::Overview => moved(&mut cursor.overview, step, there.silos, 1),
        View::Threads => moved(&mut cursor.thread, step, there.threads, 1),
        View::Slots => moved(&mut cursor.slot, step, there.slots, per_row),
        View::Workers => moved(&mut cursor.worker, step, there.workers, 1),
        View::Sources => moved(&mut cursor.source, step, there.source_streams, 1),
        View::Profiles => moved(&mut cursor.profile, step, there.profiles, 1),
        View::Graph => {}
        View::Arbiter => moved(&mut cursor.arbiter, step, there.arbiter, 1),
        View::Alarms => moved(&mut cursor.alarm, step, there.alarms, 1),
        View::Help => moved(&mut cursor.help, step, help_rows, 1),
    }
}

/// Moves `at` in a grid of `length` cells in rows of `per_row`.
fn moved(at: &mut usize, step: Step, length: usize, per_row: usize) {
    let last = length.saturating_sub(1);
    let to = match step {
        Step::Up => at.checked_sub(per_row).unwrap_or(*at),
        Step::Down if *at + per_row <= last => *at + per_row,
        Step::Down => *at,
        Step::Left => at.saturating_sub(1),
        Step::Right => *at + 1,
        Step::PageUp => at.saturating_sub(per_row * PAGE_ROWS),
        Step::PageDown => *at + per_row * PAGE_ROWS,
        Step::First => 0,
        Step::Last => last,
    };
    *at = to.min(last);
}
