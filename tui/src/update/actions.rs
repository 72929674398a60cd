//! Actions of keys, once the key table has named them.
//!
//! Pure, on the console thread. The only place that drains or leaves at the operator's request;
//! profiles are in [`super::profile`].

use super::refusals::{refuse_while_leaving, refuse_while_watching};
use super::{lists, moves, notice, palette, past, profile, questions, refuse_suspend, refused};
use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::{Action, Scope};
use crate::model::alarms::{selected, stood_for};
use crate::model::chart;
use crate::model::commands::{Choice, Typed};
use crate::model::links::{self, Link};
use crate::model::lists::{Arranged, List, copied};
use crate::model::tour;
use crate::model::{Leaving, Location, Model, Mouse, NoticeKind, Overlay, TRAIL_MAX, View, Zoom};
use crate::msg::Finished;
use crate::source::Ownership;
use pinwheel_engine::board::snapshot::{AlarmView, Snapshot};
use pinwheel_engine::engine::Command;

/// Time for which a snoozed alarm is silent, seconds.
const SNOOZE_S: u64 = 600;

pub fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::NextView => return show(model, offset(model.view, 1)),
        Action::PreviousView => return show(model, offset(model.view, View::ALL.len() - 1)),
        Action::Show(view) => return show(model, view),
        Action::Scrub(by_ms) => return past::scrub(model, by_ms),
        Action::ToOnset => return past::to_onset(model),
        Action::ToEnd(end) => return past::to_end(model, end),
        Action::Choose => return profile::choose(model),
        Action::Take => return profile::take(model, model.cursor.profile, None),
        Action::TakeNumber(number) => return profile::take(model, usize::from(number).wrapping_sub(1), None),
        Action::Undo => return profile::undo(model),
        Action::Quit => return quit(model),
        Action::End => return end(model),
        Action::Hold => return hold(model),
        Action::UndoModel => return questions::ask(model, Command::Model { file: None, stream: None }),
        Action::Silo(command) => return questions::silo(model, command),
        Action::Confirm => return confirm(model),
        Action::Redraw => return vec![Effect::Redraw],
        Action::Copy => return copy(model),
        Action::Acknowledge => {
            let is_done = |alarm: &AlarmView, _: u64| alarm.acknowledged_ns.is_some();
            return about_alarm(model, |number| Command::Acknowledge { number }, is_done);
        }
        Action::AcknowledgeAll => return vec![execute(Command::Acknowledge { number: 0 })],
        Action::Snooze => {
            let is_done =
                |alarm: &AlarmView, at_ns: u64| alarm.acknowledged_ns.is_some() || alarm.snoozed_until_ns > Some(at_ns);
            return about_alarm(model, |number| Command::Snooze { number, for_s: SNOOZE_S }, is_done);
        }
        Action::DumpScreen => return dump_screen(model),
        Action::Mouse => return take_mouse(model, model.mouse.other()),
        Action::Palette => {
            model.overlay = Some(Overlay::Palette(Typed::default()));
            return vec![Effect::ListOffers];
        }
        Action::Follow => return follow(model),
        Action::AlarmRows => {
            let number = lists::alarm_under_cursor(model);
            model.alarm_rows = model.alarm_rows.other();
            lists::stay_on_alarm(model, number);
        }
        Action::MoveStream => questions::begin_move(model),
        Action::Input => questions::begin_input(model),
        Action::Move(step) => moves::step(model, step),
        Action::NextSilo => next_silo(model),
        Action::Freeze => freeze(model),
        Action::Play => past::play(model),
        Action::Note => past::begin_note(model),
        Action::Rate => begin_rate(model),
        Action::Why => questions::begin_why(model),
        Action::Cancel => cancel(model),
        Action::Suspend => refuse_suspend(model),
        Action::Filter => lists::begin_filter(model),
        Action::Sort(sorting) => lists::sort(model, sorting),
        Action::Columns => lists::begin_columns(model),
        Action::Toggle => lists::toggle(model),
        Action::Zoom => zoom(model),
        Action::Back => back(model),
        Action::NextTheme => palette::theme(model, model.theme.next_palette()),
        Action::Mark => mark(model),
        Action::Tour => {
            if let Some((kind, text)) = tour::go_on(model) {
                notice(model, kind, text);
            }
        }
        Action::EndTour => model.tour = None,
        Action::Closer => chart::zoom(model, true),
        Action::Wider => chart::zoom(model, false),
    }
    Vec::new()
}

/// Performs the selected palette line as its key would; a profile always asks first. The palette is
/// already closed.
pub(super) fn run(model: &mut Model, typed: &Typed) -> Vec<Effect> {
    match palette::under_cursor(model, typed) {
        Some(Choice::Do(action)) => return act(model, action),
        Some(Choice::Profile(place, span)) => return profile::take(model, place, span),
        Some(Choice::Execute(command)) => return questions::ask(model, command),
        Some(Choice::CommandHosts(wanted)) => return questions::about_hosts(model, wanted),
        Some(Choice::Theme(palette)) => palette::theme(model, palette),
        Some(Choice::Glyphs(glyphs)) => (model.theme.glyphs, model.chosen.glyphs) = (glyphs, Some(glyphs)),
        Some(Choice::Panel(panel)) => palette::panel(model, panel),
        Some(Choice::Sort(column, direction)) => {
            if let Some(list) = List::of(model.view) {
                lists::by(model, list, Some((column, direction)));
            }
        }
        Some(Choice::Unarrange) => {
            if let Some(list) = List::of(model.view) {
                let arranged = model.lists.of_mut(list);
                *arranged = Arranged { toggled: arranged.toggled, ..Arranged::default() };
            }
        }
        None => {}
    }
    Vec::new()
}

/// Opens the input of a rate.
fn begin_rate(model: &mut Model) {
    if !questions::refuse(model, "rate") {
        model.overlay = Some(Overlay::Rate(String::new()));
    }
}

/// Takes the mouse, or leaves it to the terminal.
fn take_mouse(model: &mut Model, mouse: Mouse) -> Vec<Effect> {
    (model.mouse, model.chosen.mouse) = (mouse, Some(mouse));
    let said = match mouse {
        Mouse::On => {
            "the console handles the mouse: click, double click, wheel; shift and drag selects text in most terminals"
        }
        Mouse::Off => "the terminal handles the mouse: it selects text",
    };
    notice(model, NoticeKind::Done, said.to_owned());
    vec![Effect::Capture(mouse)]
}

/// Closes the overlay without acting.
fn cancel(model: &mut Model) {
    match model.overlay.take() {
        Some(Overlay::Filter(_)) => lists::clear_filter(model),
        Some(Overlay::Why(question, _)) => return questions::end_why(model, *question, None),
        _ => {}
    }
    model.why.clear();
}

/// Follows the link of the row under the cursor.
fn follow(model: &mut Model) -> Vec<Effect> {
    match links::next(model) {
        Ok(Link::To(to)) => {
            leave_trail(model);
            (model.view, model.cursor, model.zoom) = (to.view, to.cursor, to.zoom);
            moves::clamp(model);
            Vec::new()
        }
        Ok(Link::Do(effect)) => vec![effect],
        Err(said) => refused(model, said),
    }
}

/// Records the current view and cursor as a step back.
pub(super) fn leave_trail(model: &mut Model) {
    if model.trail.len() == TRAIL_MAX {
        model.trail.remove(0);
    }
    model.trail.push(Location { view: model.view, cursor: model.cursor, zoom: model.zoom });
}

fn back(model: &mut Model) {
    match model.trail.pop() {
        Some(from) => {
            (model.view, model.cursor, model.zoom) = (from.view, from.cursor, from.zoom);
            moves::clamp(model);
        }
        None if model.zoom != Zoom::Both => model.zoom = Zoom::Both,
        None => {
            let key = model.keymap.first_key(Scope::Views, Action::Follow);
            notice(model, NoticeKind::Refused, format!("no step to go back; {key} follows a row"));
        }
    }
}

fn zoom(model: &mut Model) {
    if List::of(model.view).is_none() && model.view != View::Profiles {
        let key = model.keymap.first_key(Scope::Views, Action::Zoom);
        let said = format!("this view has no details to zoom; {key} works in views with a list and details");
        return notice(model, NoticeKind::Refused, said);
    }
    model.zoom = match model.zoom {
        // The list of profiles always fits its panel.
        Zoom::Details if model.view == View::Profiles => Zoom::Both,
        Zoom::Both => Zoom::Details,
        Zoom::Details => Zoom::List,
        Zoom::List => Zoom::Both,
    };
}

/// Marks the picture shown, with its rates of the second before.
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

/// Executes a command that takes no reason.
fn execute(command: Command) -> Effect {
    Effect::Execute(command, String::new())
}

/// Writes the screen to a file in the working directory.
fn dump_screen(model: &mut Model) -> Vec<Effect> {
    if model.is_served {
        let said = "writing the screen refused: the file would be on the machine that serves it; use pinwheel attach \
                    --snapshot there";
        return refused(model, said);
    }
    vec![Effect::DumpScreen]
}

/// Copies the row under the cursor with its details.
fn copy(model: &mut Model) -> Vec<Effect> {
    let Some(text) = List::of(model.view).and_then(|list| copied(model, list)) else {
        return refused(model, "there is no row to copy in this view");
    };
    notice(model, NoticeKind::Done, "given to the terminal for its clipboard".to_owned());
    vec![Effect::Copy(text)]
}

/// Acknowledges or snoozes the alarm under the cursor; of an incident, all of its active alarms. Those
/// for which that `is_done` are left out: a console queues few requests, and a second try reaches the
/// rest. If it is done for all, it is done again.
fn about_alarm(model: &mut Model, command: fn(u64) -> Command, is_done: fn(&AlarmView, u64) -> bool) -> Vec<Effect> {
    let numbers = model.picture().and_then(|picture| {
        let Snapshot { alarms, at_ns, .. } = &picture.snapshot;
        let numbers = stood_for(&picture.snapshot, selected(model, &picture.snapshot)?, model.alarm_rows);
        let done = |number: &u64| alarms.iter().any(|alarm| alarm.number == *number && is_done(alarm, *at_ns));
        let left: Vec<u64> = numbers.iter().copied().filter(|number| !done(number)).collect();
        Some(if left.is_empty() { numbers } else { left })
    });
    let Some(numbers) = numbers else { return refused(model, "there is no alarm") };
    numbers.into_iter().map(|number| execute(command(number))).collect()
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

/// On opening the slots, or on a repeated key, selects the slot that waits longest.
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
    let alarm = lists::alarm_under_cursor(model);
    model.timeline = None;
    model.frozen = match model.frozen.take() {
        Some(_) => None,
        None => Some((model.live.clone(), model.now_ns)),
    };
    lists::stay_on_alarm(model, alarm);
    moves::clamp(model);
}

/// Ends the engine: in this process by quitting, in another process after a separate question.
fn end(model: &mut Model) -> Vec<Effect> {
    if model.ownership == Ownership::Own {
        return quit(model);
    }
    questions::ask(model, Command::Drain)
}

/// Asks whether to hold or resume the feed.
fn hold(model: &mut Model) -> Vec<Effect> {
    if refuse_while_watching(model, "hold") {
        return Vec::new();
    }
    let held = model.live.picture.as_ref().is_some_and(|picture| picture.snapshot.control.held.is_some());
    questions::ask(model, if held { Command::Resume } else { Command::Pause })
}

/// Parses the rate written; the reason follows it.
fn rate(model: &mut Model, text: &str) -> Vec<Effect> {
    let (text, why) = text.split_once(' ').unwrap_or((text, ""));
    let found = match text {
        "max" => Some(None),
        number => number.parse().ok().filter(|hz| *hz > 0.0 && *hz <= 1e9).map(Some),
    };
    let Some(hz) = found else {
        let said = format!("invalid rate {text:?}: give shots per second above 0 and at most 1e9, or max");
        return refused(model, said);
    };
    vec![Effect::Execute(Command::Rate { hz }, why.trim().to_owned())]
}

fn quit(model: &mut Model) -> Vec<Effect> {
    // Leaving the engine of another process does not change it.
    if model.ownership != Ownership::Own {
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
        Some(Overlay::AskApply(asked)) if !refuse_while_leaving(model, profile::SWITCH) => {
            profile::apply(model, &asked)
        }
        Some(Overlay::Palette(typed)) => run(model, &typed),
        Some(Overlay::AskQuit) => {
            if model.finished == Finished::Yes {
                return vec![Effect::Leave(ConsoleEnd::Finished)];
            }
            if model.leaving == Leaving::No {
                model.leaving = Leaving::Draining { since_ns: model.now_ns, end: ConsoleEnd::Finished };
                return vec![Effect::Execute(Command::Drain, std::mem::take(&mut model.why))];
            }
            Vec::new()
        }
        Some(Overlay::AskForce) => vec![Effect::Leave(ConsoleEnd::Forced)],
        Some(Overlay::Rate(text)) => rate(model, text.trim()),
        Some(Overlay::Ask(command)) => questions::confirmed(model, command),
        Some(Overlay::Type(command, text)) => questions::typed(model, command, text),
        Some(Overlay::Move(text)) => questions::moved(model, text.trim()),
        Some(Overlay::Input(text)) => questions::another_input(model, text.trim()),
        Some(Overlay::Why(question, text)) => {
            questions::end_why(model, *question, Some(text.trim().to_owned()));
            Vec::new()
        }
        Some(Overlay::Note(text)) if !text.trim().is_empty() => {
            vec![execute(Command::Note { text: text.trim().to_owned() })]
        }
        Some(Overlay::AskApply(_) | Overlay::Chooser | Overlay::Note(_) | Overlay::Filter(_) | Overlay::Columns(_))
        | None => Vec::new(),
    }
}

fn next_silo(model: &mut Model) {
    let silos = model.picture().map_or(0, |picture| picture.snapshot.silos.len());
    model.cursor.silo = if silos == 0 { 0 } else { (model.cursor.silo + 1) % silos };
    moves::clamp(model);
}
