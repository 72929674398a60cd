//! The command palette: its input and the matching commands.

use super::middle;
use crate::model::Model;
use crate::model::commands::{Typed, found};
use crate::model::target::Target;
use crate::theme::Tone;
use crate::view::panels::scrolled;
use crate::widgets::pen::Pen;

/// Most lines visible.
const LINES_MAX: u16 = 16;
/// Columns of the keys on the right.
const KEYS: u16 = 14;

pub fn draw(model: &Model, typed: &Typed, pen: &mut Pen<'_>) {
    let entries = found(model, &typed.text);
    let mut part = middle(pen, 76, LINES_MAX + 4);
    let mut inside = part.framed(&format!("command: {} found", entries.len()));
    let x = inside.put(1, 0, ":", Tone::Dim);
    // The end of the input stays visible: the next letter appears there.
    let hidden = typed.text.chars().count().saturating_sub(usize::from(inside.width().saturating_sub(5)));
    let x = if hidden > 0 { inside.put(x, 0, "…", Tone::Dim) } else { x };
    let begin = typed.text.char_indices().nth(hidden).map_or(0, |(at, _)| at);
    let x = inside.put(x, 0, &typed.text[begin..], Tone::Plain);
    inside.put(x, 0, "_", Tone::Accent);
    if entries.is_empty() {
        inside.put(1, 2, "No command has these letters in this order.", Tone::Warn);
        return;
    }
    let height = inside.height();
    let mut lines = inside.rows(1, height.saturating_sub(1));
    let visible = usize::from(lines.height());
    let first = scrolled(typed.at, visible, entries.len());
    for (y, (place, entry)) in (0..).zip(entries.iter().enumerate().skip(first)).take(visible) {
        lines.target_row(y, Target::Line(place));
        let width = lines.width().saturating_sub(KEYS);
        let mut words = lines.part(1, y, width.saturating_sub(2), 1);
        for (x, (place, letter)) in (0..).zip(entry.label.chars().enumerate()) {
            let tone = if entry.found.contains(&place) { Tone::Accent } else { Tone::Plain };
            words.dot(x, 0, letter, tone);
        }
        let room = usize::from(words.width());
        words.mark_cut(0, entry.label.char_indices().nth(room).map_or("", |(at, _)| &entry.label[at..]));
        lines.part(width, y, KEYS, 1).put(0, 0, &entry.keys, Tone::Dim);
        if place == typed.at {
            lines.highlight(y);
        }
    }
    let hint = "a profile can be temporary: prod for 20m";
    inside.put(1, height.saturating_sub(1), hint, Tone::Dim);
}
