//! Movement of the cursors.
//!
//! Pure, on the console thread. A cursor holds the row's index in the picture, so it stays on its
//! row when the user sorts or filters; a step goes to the next row in display order.

use crate::keymap::Step;
use crate::model::chart;
use crate::model::lists::{List, are_slots_listed, shown};
use crate::model::{Model, Overlay, View};

/// Rows of a page movement.
const PAGE_ROWS: usize = 10;

/// Slots per row of the slots view on a terminal of that many columns.
pub fn slots_per_row(columns: u16) -> usize {
    match columns {
        0..=79 => 32,
        80..=145 => 64,
        _ => 128,
    }
}

/// Clamps every cursor to the rows that exist.
pub(super) fn clamp(model: &mut Model) {
    let last = |length: usize| length.saturating_sub(1);
    let (silos, streams, offers) = lengths(model);
    model.cursor.silo = model.cursor.silo.min(last(silos));
    for list in List::ALL {
        let length = list.len(model);
        let cursor = list.cursor(&mut model.cursor);
        *cursor = (*cursor).min(last(length));
    }
    model.cursor.source = model.cursor.source.min(last(streams));
    model.cursor.overview = model.cursor.overview.min(last(silos));
    model.cursor.profile = model.cursor.profile.min(last(offers));
}

/// Numbers of silos, of the first source's streams, and of profiles on offer.
fn lengths(model: &Model) -> (usize, usize, usize) {
    let snapshot = model.picture().map(|picture| &picture.snapshot);
    let silos = snapshot.map_or(0, |snapshot| snapshot.silos.len());
    let streams = snapshot.and_then(|s| s.sources.first()).map_or(0, |source| source.streams.len());
    (silos, streams, model.offers.as_ref().map_or(0, Vec::len))
}

/// Moves the cursor of the overlay or view in focus by one step.
pub(super) fn step(model: &mut Model, step: Step) {
    match &mut model.overlay {
        Some(Overlay::Palette(typed)) => {
            let text = typed.text.clone();
            let length = crate::model::commands::found(model, &text).len();
            if let Some(Overlay::Palette(typed)) = &mut model.overlay {
                moved(&mut typed.at, step, length, 1);
            }
        }
        Some(Overlay::Columns(at)) => {
            let length = List::of(model.view).map_or(0, |list| list.columns().len());
            moved(at, step, length, 1);
        }
        Some(Overlay::Chooser) => {
            let (.., offers) = lengths(model);
            moved(&mut model.cursor.profile, step, offers, 1);
        }
        _ => in_view(model, step),
    }
}

fn in_view(model: &mut Model, step: Step) {
    let (silos, streams, offers) = lengths(model);
    let (slots, scroll_last) = (List::Slots.len(model), crate::view::scroll_last(model));
    let (per_row, is_listed) = (slots_per_row(model.size.0), are_slots_listed(model));
    let cursor = &mut model.cursor;
    match model.view {
        View::Overview => moved(&mut cursor.overview, step, silos, 1),
        View::Sources => moved(&mut cursor.source, step, streams, 1),
        View::Profiles => moved(&mut cursor.profile, step, offers, 1),
        View::Graph => {}
        View::Chart => chart::step(model, step),
        View::Arbiter => scrolled(&mut cursor.arbiter, step, scroll_last),
        View::Placement => moved(&mut cursor.silo, step, silos, 1),
        View::Help => scrolled(&mut cursor.help, step, scroll_last),
        View::Slots if !is_listed => {
            moved(&mut cursor.slot, step, slots, per_row);
        }
        view => {
            if let Some(list) = List::of(view) {
                in_list(model, list, step);
            }
        }
    }
}

fn in_list(model: &mut Model, list: List, step: Step) {
    let rows = shown(model, list);
    let here = *list.cursor(&mut model.cursor);
    // A row that the filter hides has no index: the step goes to the first row shown.
    let Some(mut at) = rows.iter().position(|row| *row == here) else {
        if let Some(first) = rows.first() {
            *list.cursor(&mut model.cursor) = *first;
        }
        return;
    };
    moved(&mut at, step, rows.len(), 1);
    if let Some(row) = rows.get(at) {
        *list.cursor(&mut model.cursor) = *row;
    }
}

/// Moves the first row shown, at most to `last`. The rows may have become fewer, or the screen larger.
fn scrolled(at: &mut usize, step: Step, last: usize) {
    *at = (*at).min(last);
    moved(at, step, last + 1, 1);
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
