//! Arranging lists, and what they need from beside the board.
//!
//! Pure, on the console thread.

use super::{moves, notice};
use crate::keymap::Sorting;
use crate::model::found::{Brought, Wanted};
use crate::model::lists::{self, List, Way};
use crate::model::{Model, NoticeKind, Overlay, View};

/// Between two looks at what changes beside the board, nanoseconds.
const LOOK_NS: u64 = 2_000_000_000;

/// The view's list; says so where there is none.
fn list(model: &mut Model) -> Option<List> {
    let list = List::of(model.view);
    if list.is_none() {
        let said = "this view has no list; threads, workers, streams, rings, alarms and the log have one".to_owned();
        notice(model, NoticeKind::Refused, said);
    }
    list
}

/// Begins to write a filter.
pub(super) fn begin_filter(model: &mut Model) {
    if let Some(list) = list(model) {
        model.overlay = Some(Overlay::Filter(model.lists.of(list).filter.clone()));
    }
}

/// All rows again.
pub(super) fn clear_filter(model: &mut Model) {
    if let Some(list) = List::of(model.view) {
        model.lists.of_mut(list).filter.clear();
    }
}

/// Sorts once: by another column, or the other way round.
pub(super) fn sort(model: &mut Model, sorting: Sorting) {
    let Some(list) = list(model) else { return };
    let current = model.lists.of(list).order.as_ref().map(|order| (order.column, order.way));
    let named = |column: &usize| !list.columns()[*column].name.is_empty();
    let columns: Vec<usize> = lists::columns_shown(model, list, model.size.0).into_iter().map(|(at, _)| at).collect();
    let columns: Vec<usize> = columns.into_iter().filter(named).collect();
    let next = match (sorting, current) {
        (Sorting::Reverse, Some((column, way))) => Some((column, way.other())),
        (Sorting::Reverse | Sorting::Next, None) => {
            columns.first().map(|column| (*column, lists::first_way(model, list, *column)))
        }
        (Sorting::Next, Some((column, _))) => {
            let next = columns.iter().find(|other| **other > column);
            next.map(|column| (*column, lists::first_way(model, list, *column)))
        }
    };
    by(model, list, next);
}

/// Sorts `list` by a column, or gives it back the engine's order, and says so.
pub(super) fn by(model: &mut Model, list: List, order: Option<(usize, Way)>) {
    let Some((column, way)) = order else {
        let arranged = model.lists.of_mut(list);
        (arranged.order, arranged.wanted) = (None, None);
        return notice(model, NoticeKind::Done, "as the engine orders them".to_owned());
    };
    lists::sort(model, list, column, way);
    let first = if way == Way::Up { "smallest" } else { "largest" };
    let said =
        format!("sorted once by {}, {first} first; rows stay put until you sort again", list.columns()[column].name);
    notice(model, NoticeKind::Done, said);
}

/// Sorts the list shown as it was at an earlier start, once it has rows.
pub(super) fn settle(model: &mut Model) {
    let Some(list) = List::of(model.view) else { return };
    if let Some((column, way)) = model.lists.of(list).wanted.filter(|_| list.len(model) > 0) {
        lists::sort(model, list, column, way);
    }
}

/// Opens the choice of columns.
pub(super) fn begin_columns(model: &mut Model) {
    if list(model).is_some() {
        model.overlay = Some(Overlay::Columns(0));
    }
}

/// Shows or hides the column under the cursor; the last one left stays.
pub(super) fn toggle(model: &mut Model) {
    let (Some(Overlay::Columns(at)), Some(list)) = (&model.overlay, List::of(model.view)) else { return };
    let bit = 1 << *at;
    model.lists.of_mut(list).toggled ^= bit;
    if lists::columns_shown(model, list, model.size.0).is_empty() {
        model.lists.of_mut(list).toggled ^= bit;
    }
}

/// What the view shown wants read, if it is time.
pub(super) fn wanted(model: &mut Model) -> Option<Wanted> {
    let wanted = match model.view {
        View::Environment if model.found.environment.rows().is_empty() => Wanted::Environment,
        View::Cores => Wanted::Cores,
        View::Log => Wanted::Log,
        View::Actions => Wanted::Actions,
        // Who else is on the cores is part of the question.
        _ if matches!(model.overlay, Some(Overlay::AskApply(_))) => Wanted::Cores,
        _ => return None,
    };
    let is_due = match model.found.asked {
        Some((asked, at_ns)) => asked != wanted || model.now_ns.saturating_sub(at_ns) >= LOOK_NS,
        None => true,
    };
    if !is_due {
        return None;
    }
    model.found.asked = Some((wanted, model.now_ns));
    Some(wanted)
}

/// Takes in what was read. Who looks at the newest event goes on to do so.
pub(super) fn brought(model: &mut Model, brought: Brought) {
    let (before, at) = (List::Log.len(model), model.cursor.event);
    let key = List::Log.key(model, at);
    let last_action = model.cursor.action.saturating_add(1) >= List::Actions.len(model);
    let newest = model.live.picture.as_deref().or(model.picture());
    let alarms = newest.map(|picture| crate::model::alarms::events(&picture.snapshot)).unwrap_or_default();
    model.found.take(brought, alarms);
    if last_action {
        model.cursor.action = usize::MAX;
    }
    if at.saturating_add(1) >= before {
        model.cursor.event = usize::MAX;
    } else {
        let same = model.found.log.rows().iter().position(|event| event.number == key);
        model.cursor.event = same.unwrap_or(at);
    }
    moves::clamp(model);
}

/// The number of the alarm under the cursor.
pub(super) fn alarm_under_cursor(model: &Model) -> Option<u64> {
    model.picture()?.snapshot.alarms.get(model.cursor.alarm).map(|alarm| alarm.number)
}

/// The cursor stays on its alarm while others begin and end.
pub(super) fn stay_on_alarm(model: &mut Model, number: Option<u64>) {
    let alarms = model.picture().map(|picture| picture.snapshot.alarms.as_slice()).unwrap_or_default();
    if let Some(place) = number.and_then(|number| alarms.iter().position(|alarm| alarm.number == number)) {
        model.cursor.alarm = place;
    }
}
