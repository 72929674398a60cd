//! The command palette: its input and the matching commands.

use super::middle;
use crate::model::Model;
use crate::model::commands::{Entry, Typed, found};
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
        label(entry, &mut words);
        lines.part(width, y, KEYS, 1).put(0, 0, &entry.keys, Tone::Dim);
        if place == typed.at {
            lines.highlight(y);
        }
    }
    let hint = "a profile can be temporary: prod for 20m";
    inside.put(1, height.saturating_sub(1), hint, Tone::Dim);
}

/// The label, its letters that match the input marked.
fn label(entry: &Entry, pen: &mut Pen<'_>) {
    let letters: Vec<(bool, char)> =
        entry.label.chars().enumerate().map(|(place, letter)| (entry.found.contains(&place), letter)).collect();
    let mut x = 0;
    for run in letters.chunk_by(|(a, _), (b, _)| a == b) {
        let text: String = run.iter().map(|(_, letter)| letter).collect();
        x = pen.put(x, 0, &text, if run[0].0 { Tone::Accent } else { Tone::Plain });
    }
}

#[cfg(test)]
mod tests {
    use crate::model::commands::Typed;
    use crate::model::{Model, Overlay};
    use crate::theme::{Colour, Glyphs, Palette, Theme};
    use pinwheel_engine::profile::OnHangup;
    use ratatui::buffer::{Buffer, Cell};

    #[test]
    fn wide_letters_take_their_columns_and_none_turns_the_text() {
        let theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };
        let mut model = Model::new(theme, (80, 24), OnHangup::Detach);
        let typed = Typed { text: "model 見る\u{202e}x.dem".to_owned(), at: 0 };
        model.overlay = Some(Overlay::Palette(typed));
        let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 80, 24));
        crate::view::draw(&model, buffer.area, &mut buffer);
        let text: String = buffer.content().iter().map(Cell::symbol).collect();
        assert_eq!(text.matches("model 見 る x.dem").count(), 2, "as written, and as found: {text}");
        assert!(!text.contains('\u{202e}'));
    }
}
