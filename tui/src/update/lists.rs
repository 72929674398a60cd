//! Filters, sorts and columns of the lists, and their look-ups outside the board.
//!
//! Pure, on the console thread.

use super::{moves, notice};
use crate::keymap::Sorting;
use crate::model::alarms::{place_of, selected};
use crate::model::chart;
use crate::model::lists::{self, Direction, List};
use crate::model::lookups::{LookupRequest, LookupResult};
use crate::model::{Model, NoticeKind, Overlay, View};

/// Time between two look-ups of data that changes, nanoseconds.
const LOOK_NS: u64 = 2_000_000_000;

/// The view's list; without one, a notice says so.
fn list(model: &mut Model) -> Option<List> {
    let list = List::of(model.view);
    if list.is_none() {
        let said = "this view has no list; try threads, workers, streams, rings, alarms or log".to_owned();
        notice(model, NoticeKind::Refused, said);
    }
    list
}

/// Opens the input of a filter.
pub(super) fn begin_filter(model: &mut Model) {
    if let Some(list) = list(model) {
        model.overlay = Some(Overlay::Filter(model.lists.of(list).filter.clone()));
    }
}

/// Clears the filter and the order.
pub(super) fn clear_filter(model: &mut Model) {
    if let Some(list) = List::of(model.view) {
        model.lists.of_mut(list).filter.clear();
    }
}

/// Sorts once: by the next column, or in the opposite direction.
pub(super) fn sort(model: &mut Model, sorting: Sorting) {
    let Some(list) = list(model) else { return };
    let current = model.lists.of(list).order.as_ref().map(|order| (order.column, order.direction));
    let named = |column: &usize| !list.columns()[*column].name.is_empty();
    let columns: Vec<usize> = lists::columns_shown(model, list, model.size.0).into_iter().map(|(at, _)| at).collect();
    let columns: Vec<usize> = columns.into_iter().filter(named).collect();
    let next = match (sorting, current) {
        (Sorting::Reverse, Some((column, direction))) => Some((column, direction.other())),
        (Sorting::Reverse | Sorting::Next, None) => {
            columns.first().map(|column| (*column, lists::first_direction(model, list, *column)))
        }
        (Sorting::Next, Some((column, _))) => {
            let next = columns.iter().find(|other| **other > column);
            next.map(|column| (*column, lists::first_direction(model, list, *column)))
        }
    };
    by(model, list, next);
}

/// Sorts `list` by a column, or restores the engine's order, and shows a notice.
pub(super) fn by(model: &mut Model, list: List, order: Option<(usize, Direction)>) {
    let Some((column, direction)) = order else {
        let arranged = model.lists.of_mut(list);
        (arranged.order, arranged.wanted) = (None, None);
        return notice(model, NoticeKind::Done, "in the engine's order".to_owned());
    };
    lists::sort(model, list, column, direction);
    let first = if direction == Direction::Up { "smallest" } else { "largest" };
    let said =
        format!("sorted once by {}, {first} first; rows stay put until you sort again", list.columns()[column].name);
    notice(model, NoticeKind::Done, said);
}

/// Restores the order saved at an earlier start, once the list has rows.
pub(super) fn settle(model: &mut Model) {
    let Some(list) = List::of(model.view) else { return };
    if let Some((column, direction)) = model.lists.of(list).wanted.filter(|_| list.len(model) > 0) {
        lists::sort(model, list, column, direction);
    }
}

pub(super) fn begin_columns(model: &mut Model) {
    if list(model).is_some() {
        model.overlay = Some(Overlay::Columns(0));
    }
}

/// Shows or hides the selected column; the last visible one stays.
pub(super) fn toggle(model: &mut Model) {
    let (Some(Overlay::Columns(at)), Some(list)) = (&model.overlay, List::of(model.view)) else { return };
    let bit = 1 << *at;
    model.lists.of_mut(list).toggled ^= bit;
    if lists::columns_shown(model, list, model.size.0).is_empty() {
        model.lists.of_mut(list).toggled ^= bit;
    }
}

/// Time after which a look-up is repeated.
fn period_ns(wanted: LookupRequest) -> u64 {
    match wanted {
        // A chart of the whole run grows with it; it reads a picture for each of its points.
        LookupRequest::Chart { to_ns: u64::MAX, .. } => 5 * LOOK_NS / 2,
        LookupRequest::Chart { .. } => 15 * LOOK_NS,
        _ => LOOK_NS,
    }
}

/// The look-up that the view needs, if it is due.
pub(super) fn wanted(model: &mut Model) -> Option<LookupRequest> {
    let wanted = match model.view {
        // The question before a profile switch names the other users of the cores, in every view.
        _ if matches!(model.overlay, Some(Overlay::AskApply(_))) => LookupRequest::Cores,
        View::Environment if model.lookups.environment.rows().is_empty() => LookupRequest::Environment,
        View::Cores => LookupRequest::Cores,
        View::Hosts => LookupRequest::Hosts,
        View::Log => LookupRequest::Log,
        View::Actions => LookupRequest::Actions,
        View::Chart => chart::request(model),
        _ => return None,
    };
    let is_due = match model.lookups.asked {
        Some((asked, at_ns)) => asked != wanted || model.now_ns.saturating_sub(at_ns) >= period_ns(wanted),
        None => true,
    };
    if !is_due {
        return None;
    }
    model.lookups.asked = Some((wanted, model.now_ns));
    Some(wanted)
}

/// Stores a result. A cursor on the newest event stays on the newest.
pub(super) fn brought(model: &mut Model, brought: LookupResult) {
    if let LookupResult::HostsCommand(said) = &brought {
        let (kind, said) = match said {
            Ok(said) => (NoticeKind::Done, said.clone()),
            Err(why) => (NoticeKind::Refused, format!("hosts: {why}")),
        };
        return notice(model, kind, said);
    }
    let (before, at) = (List::Log.len(model), model.cursor.event);
    let key = List::Log.key(model, at);
    let last_action = model.cursor.action.saturating_add(1) >= List::Actions.len(model);
    let newest = model.live.picture.as_deref().or(model.picture());
    let alarms = newest.map(|picture| crate::model::alarms::events(&picture.snapshot)).unwrap_or_default();
    model.lookups.take(brought, alarms);
    if last_action {
        model.cursor.action = usize::MAX;
    }
    if at.saturating_add(1) >= before {
        model.cursor.event = usize::MAX;
    } else {
        let same = model.lookups.log.rows().iter().position(|event| event.number == key);
        model.cursor.event = same.unwrap_or(at);
    }
    moves::clamp(model);
}

pub(super) fn alarm_under_cursor(model: &Model) -> Option<u64> {
    selected(model, &model.picture()?.snapshot).map(|alarm| alarm.number)
}

/// Keeps the cursor on its alarm while others begin and end.
pub(super) fn stay_on_alarm(model: &mut Model, number: Option<u64>) {
    let Some((picture, number)) = model.picture().zip(number) else { return };
    if let Some(place) = place_of(&picture.snapshot, number, model.alarm_rows) {
        model.cursor.alarm = place;
    }
}
