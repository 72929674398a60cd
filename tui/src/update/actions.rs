//! What keys do once the table has named the action.
//!
//! Pure, on the console thread. The only place that drains or leaves at the operator's word; profiles are in
//! [`super::profile`].

use super::{deeds, lists, moves, notice, palette, past, profile, refuse_suspend};
use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::{Action, Scope};
use crate::model::commands::Typed;
use crate::model::links::{self, Link};
use crate::model::lists::List;
use crate::model::{Leaving, Model, Mouse, NoticeKind, Overlay, Place, TRAIL_MAX, View, Zoom};
use crate::msg::Finished;
use crate::source::{Bond, Hold};
use pinwheel_engine::profile::Rate;

/// Does `action`.
pub fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::NextView => show(model, offset(model.view, 1)),
        Action::PreviousView => show(model, offset(model.view, View::ALL.len() - 1)),
        Action::Show(view) => show(model, view),
        Action::Scrub(by_ms) => past::scrub(model, by_ms),
        Action::ToOnset => past::to_onset(model),
        Action::ToEnd(end) => past::to_end(model, end),
        Action::Choose => profile::choose(model),
        Action::Take => profile::take(model, model.cursor.profile, None),
        Action::TakeNumber(number) => profile::take(model, usize::from(number).wrapping_sub(1), None),
        Action::Undo => profile::undo(model),
        Action::Quit => quit(model),
        Action::End => end(model),
        Action::Hold => hold(model),
        Action::Silo(deed) => deeds::silo(model, deed),
        Action::MoveStream => deeds::begin_move(model),
        Action::Input => deeds::begin_input(model),
        Action::Confirm => confirm(model),
        Action::Redraw => vec![Effect::Redraw],
        Action::Acknowledge => about_alarm(model, Effect::Acknowledge),
        Action::AcknowledgeAll => vec![Effect::Acknowledge(0)],
        Action::Snooze => about_alarm(model, Effect::Snooze),
        Action::DumpScreen => vec![Effect::DumpScreen],
        Action::Mouse => take_mouse(model, model.mouse.other()),
        Action::Palette => {
            model.overlay = Some(Overlay::Palette(Typed::default()));
            vec![Effect::ListOffers]
        }
        Action::Follow => follow(model),
        Action::Move(_)
        | Action::NextSilo
        | Action::Freeze
        | Action::Play
        | Action::Note
        | Action::Rate
        | Action::Why
        | Action::Cancel
        | Action::Suspend
        | Action::Filter
        | Action::Sort(_)
        | Action::Columns
        | Action::Toggle
        | Action::Zoom
        | Action::Back
        | Action::NextTheme
        | Action::Mark => {
            look(model, action);
            Vec::new()
        }
    }
}

/// Begins to write a rate.
fn begin_rate(model: &mut Model) {
    if !model.is_replay() && !refuse_while_watching(model, "rate") && !profile::refuse_while_leaving(model) {
        model.overlay = Some(Overlay::Rate(String::new()));
    }
}

/// Takes the mouse, or leaves it to the terminal.
fn take_mouse(model: &mut Model, mouse: Mouse) -> Vec<Effect> {
    (model.mouse, model.chosen.mouse) = (mouse, Some(mouse));
    let said = match mouse {
        Mouse::On => {
            "the mouse is the console's: click, double click, wheel; shift and drag selects text in most terminals"
        }
        Mouse::Off => "the mouse is the terminal's: it selects text",
    };
    notice(model, NoticeKind::Done, said.to_owned());
    vec![Effect::Capture(mouse)]
}

/// What changes only the console: how the picture is looked at, and what is open over it.
fn look(model: &mut Model, action: Action) {
    match action {
        Action::Move(step) => moves::step(model, step),
        Action::NextSilo => next_silo(model),
        Action::Freeze => freeze(model),
        Action::Play => past::play(model),
        Action::Note => past::begin_note(model),
        Action::Rate => begin_rate(model),
        Action::Why => deeds::begin_why(model),
        Action::Cancel => cancel(model),
        Action::Suspend => refuse_suspend(model),
        Action::Filter => lists::begin_filter(model),
        Action::Sort(sorting) => lists::sort(model, sorting),
        Action::Columns => lists::begin_columns(model),
        Action::Toggle => lists::toggle(model),
        Action::Zoom => zoom(model),
        Action::Back => back(model),
        Action::NextTheme => palette::theme(model, model.theme.palette.next()),
        Action::Mark => mark(model),
        _ => {}
    }
}

/// What closes without being done.
fn cancel(model: &mut Model) {
    match model.overlay.take() {
        Some(Overlay::Filter(_)) => lists::clear_filter(model),
        Some(Overlay::Why(question, _)) => return deeds::end_why(model, *question, None),
        _ => {}
    }
    model.why.clear();
}

/// Goes where the row under the cursor leads.
fn follow(model: &mut Model) -> Vec<Effect> {
    match links::next(model) {
        Ok(Link::To(to)) => {
            leave_trail(model);
            (model.view, model.cursor, model.zoom) = (to.view, to.cursor, to.zoom);
            moves::clamp(model);
            Vec::new()
        }
        Ok(Link::Do(effect)) => vec![effect],
        Err(said) => {
            notice(model, NoticeKind::Refused, said);
            Vec::new()
        }
    }
}

/// Remembers where one is.
pub(super) fn leave_trail(model: &mut Model) {
    if model.trail.len() == TRAIL_MAX {
        model.trail.remove(0);
    }
    model.trail.push(Place { view: model.view, cursor: model.cursor, zoom: model.zoom });
}

fn back(model: &mut Model) {
    match model.trail.pop() {
        Some(from) => {
            (model.view, model.cursor, model.zoom) = (from.view, from.cursor, from.zoom);
            moves::clamp(model);
        }
        None if model.zoom != Zoom::Both => model.zoom = Zoom::Both,
        None => notice(model, NoticeKind::Refused, "no step to go back; enter follows a row".to_owned()),
    }
}

fn zoom(model: &mut Model) {
    if List::of(model.view).is_none() && model.view != View::Profiles {
        let said = "this view is drawn whole already; z is for views of a list and its details".to_owned();
        return notice(model, NoticeKind::Refused, said);
    }
    model.zoom = match model.zoom {
        // The profiles' list is never longer than its part.
        Zoom::Details if model.view == View::Profiles => Zoom::Both,
        Zoom::Both => Zoom::Details,
        Zoom::Details => Zoom::List,
        Zoom::List => Zoom::Both,
    };
}

/// Keeps the picture shown. With its second before it, for its rates are part of it.
fn mark(model: &mut Model) {
    match model.scene().picture.clone() {
        Some(picture) => {
            let at_s = picture.snapshot.at_ns as f64 / 1e9;
            model.mark = Some(picture);
            let key = model.keymap.first_key(Scope::Views, Action::Show(View::Compare));
            notice(model, NoticeKind::Done, format!("marked {at_s:.1} s after the start; {key} compares"));
        }
        None => notice(model, NoticeKind::Refused, "there is no picture to mark yet".to_owned()),
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
    (model.view, model.zoom) = (view, Zoom::Both);
    match view {
        View::Profiles => return vec![Effect::ListOffers],
        View::Slots => to_longest_wait(model),
        View::Log | View::Actions => {
            // The newest.
            (model.cursor.event, model.cursor.action) = (usize::MAX, usize::MAX);
            moves::clamp(model);
        }
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
    moves::clamp(model);
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
    moves::clamp(model);
}

/// What is only looked at refuses before it asks.
pub(super) fn refuse_while_watching(model: &mut Model, what: &str) -> bool {
    if model.is_watching() {
        let text =
            format!("{what} refused: this console only looks; attach again with --control, as the engine's user");
        notice(model, NoticeKind::Refused, text);
    }
    model.is_watching()
}

/// Ends the engine: in this process by quitting, in another after a question of its own.
fn end(model: &mut Model) -> Vec<Effect> {
    if model.bond == Bond::Own {
        return quit(model);
    }
    if !refuse_while_watching(model, "drain") && !profile::refuse_while_leaving(model) {
        model.overlay = Some(Overlay::AskEnd);
    }
    Vec::new()
}

/// Asks whether the feed is to be held, or let go.
fn hold(model: &mut Model) -> Vec<Effect> {
    if model.is_replay() || refuse_while_watching(model, "hold") || profile::refuse_while_leaving(model) {
        return Vec::new();
    }
    let held = model.live.picture.as_ref().is_some_and(|picture| picture.snapshot.control.held.is_some());
    model.overlay = Some(Overlay::AskHold(if held { Hold::Release } else { Hold::Hold }));
    Vec::new()
}

/// The rate that was written, if it is one; what follows it is why.
fn rate(model: &mut Model, text: &str) -> Vec<Effect> {
    let (text, why) = text.split_once(' ').unwrap_or((text, ""));
    let found = match text {
        "max" => Some(Rate::Max),
        number => number.parse().ok().filter(|hz| *hz > 0.0 && *hz <= 1e9).map(Rate::Hz),
    };
    if found.is_none() {
        let text = format!("found rate {text:?}, expected shots per second above 0 and at most 1e9, or max");
        notice(model, NoticeKind::Refused, text);
    }
    found.map(|rate| Effect::Rate(rate, why.trim().to_owned())).into_iter().collect()
}

fn quit(model: &mut Model) -> Vec<Effect> {
    // Leaving another process's engine leaves it as it is.
    if model.bond != Bond::Own {
        return vec![Effect::Leave(ConsoleEnd::Finished)];
    }
    match (model.finished, model.leaving) {
        (Finished::Yes, _) => return vec![Effect::Leave(ConsoleEnd::Finished)],
        (Finished::No, Leaving::No) => model.overlay = Some(Overlay::AskQuit),
        (Finished::No, Leaving::Draining { .. }) => model.overlay = Some(Overlay::AskForce),
    }
    Vec::new()
}

fn confirm(model: &mut Model) -> Vec<Effect> {
    match model.overlay.take() {
        Some(Overlay::AskApply(asked)) if !profile::refuse_while_leaving(model) => profile::apply(model, &asked),
        Some(Overlay::Palette(typed)) => palette::run(model, &typed),
        Some(Overlay::AskQuit) => {
            if model.finished == Finished::Yes {
                return vec![Effect::Leave(ConsoleEnd::Finished)];
            }
            if model.leaving == Leaving::No {
                model.leaving = Leaving::Draining { since_ns: model.now_ns, end: ConsoleEnd::Finished };
                return vec![Effect::Drain(std::mem::take(&mut model.why))];
            }
            Vec::new()
        }
        Some(Overlay::AskForce) => vec![Effect::Leave(ConsoleEnd::Forced)],
        Some(Overlay::Rate(text)) => rate(model, text.trim()),
        Some(Overlay::AskEnd) => vec![Effect::Drain(std::mem::take(&mut model.why))],
        Some(Overlay::AskHold(hold)) => vec![Effect::Hold(hold, std::mem::take(&mut model.why))],
        Some(Overlay::AskDeed(deed)) => deeds::act(model, deed),
        Some(Overlay::TypeDeed(deed, text)) => deeds::typed(model, deed, text),
        Some(Overlay::Move(text)) => deeds::moved(model, text.trim()),
        Some(Overlay::Input(text)) => deeds::another_input(model, text.trim()),
        Some(Overlay::Why(question, text)) => {
            deeds::end_why(model, *question, Some(text.trim().to_owned()));
            Vec::new()
        }
        Some(Overlay::Note(text)) if !text.trim().is_empty() => vec![Effect::Note(text.trim().to_owned())],
        Some(Overlay::AskApply(_) | Overlay::Chooser | Overlay::Note(_) | Overlay::Filter(_) | Overlay::Columns(_))
        | None => Vec::new(),
    }
}

fn next_silo(model: &mut Model) {
    let silos = model.picture().map_or(0, |picture| picture.snapshot.silos.len());
    model.cursor.silo = if silos == 0 { 0 } else { (model.cursor.silo + 1) % silos };
    moves::clamp(model);
}
