//! Text input: letters of a note, of the palette, of a filter.
//!
//! Pure, on the console thread. Bounded by the longest line of each. Edits the text only; the key
//! table's confirm key acts on it.

use crate::keymap::key::Key;
use crate::model::lists::{FILTER_MAX, List};
use crate::model::{Model, NOTE_MAX, Overlay};

pub(super) fn write(model: &mut Model, key: Key) {
    match &mut model.overlay {
        Some(
            Overlay::Note(text)
            | Overlay::Rate(text)
            | Overlay::Type(_, text)
            | Overlay::Move(text)
            | Overlay::Input(text)
            | Overlay::Why(_, text),
        ) => letter(text, key, NOTE_MAX),
        Some(Overlay::Palette(typed)) => {
            letter(&mut typed.text, key, NOTE_MAX);
            typed.at = 0;
        }
        Some(Overlay::Filter(text)) => {
            letter(text, key, FILTER_MAX);
            let text = text.clone();
            if let Some(list) = List::of(model.view) {
                model.lists.of_mut(list).filter = text;
                to_a_row_shown(model, list);
            }
        }
        _ => {}
    }
}

/// Moves a cursor from a row that the filter hides to the first row shown.
fn to_a_row_shown(model: &mut Model, list: List) {
    let rows = crate::model::lists::shown(model, list);
    let cursor = list.cursor(&mut model.cursor);
    if let Some(first) = rows.first().filter(|_| !rows.contains(cursor)) {
        *cursor = *first;
    }
}

fn letter(text: &mut String, key: Key, max: usize) {
    match key {
        Key::Char(letter) if !letter.is_control() && text.chars().count() < max => text.push(letter),
        Key::Backspace => {
            text.pop();
        }
        _ => {}
    }
}
