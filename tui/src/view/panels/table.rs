//! A list as a table: headings and rows, with the selected row marked; and a list with its details
//! below.
//!
//! Draws the columns and rows of `model::lists`, and computes only the visible cells.

use super::{rows_of, scrolled};
use crate::keymap::{Action, Scope};
use crate::model::lists::{self, Cell, Direction, Line, List, REST};
use crate::model::target::Target;
use crate::model::{Model, Overlay, Zoom};
use crate::theme::Tone;
use crate::widgets::pen::Pen;

/// Most rows of the details; at most half of a low view.
const DETAIL_ROWS: u16 = 9;

/// Texts for an empty list.
#[derive(Clone, Copy, Debug)]
pub struct Empty<'a> {
    /// Why it is empty.
    pub why: &'a str,
    /// How it gets rows.
    pub fill: &'a str,
}

/// A view of one list: title, table, and the details of the row under the cursor.
pub fn view(model: &Model, list: List, empty: Empty<'_>, pen: &mut Pen<'_>) {
    let title = model.view.heading();
    with_details(model, list, title, empty, pen, |row, pen| {
        lines(&list.details(model, row), &model.keymap.first_key(Scope::Views, Action::Zoom), pen);
    });
}

/// Title, table, and below it the `details` of the selected row; the zoom divides the room.
pub fn with_details(
    model: &Model,
    list: List,
    title: &str,
    empty: Empty<'_>,
    pen: &mut Pen<'_>,
    details: impl FnOnce(usize, &mut Pen<'_>),
) {
    let height = pen.height();
    let below = match model.zoom {
        Zoom::Both => DETAIL_ROWS.min(height / 2),
        Zoom::Details => height,
        Zoom::List => 0,
    };
    let length = list.len(model);
    let below = if length == 0 { 0 } else { below };
    if below < height {
        titled(model, list, (title, ""), empty, &mut pen.rows(0, height - below));
    }
    if below > 0 {
        let cursor = *list.cursor(&mut model.cursor.clone());
        details(cursor, &mut pen.rows(height - below, height));
    }
}

/// Title, filter and table; a filter replaces the text beside the title.
pub fn titled(model: &Model, list: List, (title, beside): (&str, &str), empty: Empty<'_>, pen: &mut Pen<'_>) {
    let rows = lists::shown(model, list);
    let end = pen.rule(0, title);
    let right = pen.width().saturating_sub(1);
    match filter(model, list, rows.len(), right.saturating_sub(end.min(right / 2))) {
        Some(text) => pen.put_right(end.min(right / 2), right, 0, &text, Tone::Badge),
        None => pen.put_right(end, right, 0, beside, Tone::Accent),
    };
    let room = pen.height();
    body(model, list, &rows, empty, &mut pen.rows(1, room));
}

/// The filter and the number of matching rows, in `columns` columns; the end of the input stays
/// visible.
fn filter(model: &Model, list: List, shown: usize, columns: u16) -> Option<String> {
    let filter = &model.lists.of(list).filter;
    let is_written = matches!(model.overlay, Some(Overlay::Filter(_)));
    if !is_written && filter.is_empty() {
        return None;
    }
    let mark = if is_written { "_" } else { "" };
    let rows = format!("{mark} {shown} of {} ", list.len(model));
    let room = usize::from(columns).saturating_sub(rows.chars().count() + 3);
    let hidden = filter.chars().count().saturating_sub(room);
    let cut = if hidden > 0 { "…" } else { "" };
    let end: String = filter.chars().skip(hidden).collect();
    Some(format!(" /{cut}{end}{rows}"))
}

fn body(model: &Model, list: List, rows: &[usize], empty: Empty<'_>, pen: &mut Pen<'_>) {
    if list.len(model) == 0 {
        let y = pen.put_wrapped(1, 0, empty.why, Tone::Warn);
        pen.put_wrapped(1, y, empty.fill, Tone::Dim);
        return;
    }
    if rows.is_empty() {
        if let Some(why) = lists::filter_trouble(model, list) {
            pen.put_wrapped(1, 2, &why, Tone::Bad);
        }
        let key = |scope, action| model.keymap.first_key(scope, action);
        let (open, clear) = (key(Scope::Views, Action::Filter), key(Scope::Filter, Action::Cancel));
        let remedy = format!("No row matches this filter. Open it with {open} and press {clear} to show all rows.");
        pen.put(1, 1, &remedy, Tone::Warn);
    }
    table(model, list, rows, Pointer::Shown, pen);
}

/// Whether the selected row is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    Shown,
    /// Not marked: the table is part of another view.
    Hidden,
}

/// Headings and rows of `list`.
pub fn table(model: &Model, list: List, rows: &[usize], pointer: Pointer, pen: &mut Pen<'_>) {
    let columns = lists::columns_shown(model, list, pen.width());
    headings(model, list, &columns, pointer, pen);
    let visible = rows_of(pen, 1);
    let cursor = *list.cursor(&mut model.cursor.clone());
    let place = rows.iter().position(|row| *row == cursor).filter(|_| pointer == Pointer::Shown);
    let first = scrolled(place.unwrap_or(0), visible, rows.len());
    for (y, (place_here, row)) in (1..).zip(rows.iter().enumerate().skip(first)).take(visible) {
        pen.target_row(y, Target::Row(list, *row));
        let mut x = 1;
        for (column, width) in &columns {
            let width = if *width == REST { pen.width().saturating_sub(x) } else { *width };
            cell(&(list.columns()[*column].cell)(model, *row), &mut pen.part(x, y, width, 1));
            x = x.saturating_add(width).saturating_add(1);
        }
        if Some(place_here) == place {
            pen.highlight(y);
        }
    }
}

/// The headings. In another view they stand on the rule, whose title names the rows.
fn headings(model: &Model, list: List, columns: &[(usize, u16)], pointer: Pointer, pen: &mut Pen<'_>) {
    let order = model.lists.of(list).order.as_ref();
    let mut x = 1;
    for (column, width) in columns {
        let width = if *width == REST { pen.width().saturating_sub(x) } else { *width };
        let name = list.columns()[*column].name;
        if x >= pen.width() {
            return pen.mark_cut(0, name);
        }
        let sorted = order.filter(|order| order.column == *column).map(|order| order.direction);
        let tone = if sorted.is_some() { Tone::Accent } else { Tone::Dim };
        match pointer {
            Pointer::Shown => {
                pen.target(x, 0, width, Target::Heading(list, *column));
                // The arrow takes precedence: a long name is cut.
                let arrow = sorted.map(|direction| if direction == Direction::Up { '↑' } else { '↓' });
                let room = width.saturating_sub(u16::from(arrow.is_some()));
                let end = pen.part(x, 0, room, 1).put(0, 0, name, tone);
                if let Some(arrow) = arrow {
                    pen.dot(x + end, 0, arrow, tone);
                }
            }
            Pointer::Hidden if x > 1 => {
                pen.put(x - 1, 0, &format!(" {name} "), tone);
            }
            Pointer::Hidden => {}
        }
        x = x.saturating_add(width).saturating_add(1);
    }
}

fn cell(cell: &Cell, pen: &mut Pen<'_>) {
    if cell.marks.is_empty() {
        pen.put(0, 0, &cell.text, cell.tone);
        return;
    }
    // The end of a strip is the newest sample: the oldest samples are cut.
    let is_strip = cell.marks.iter().all(|(glyph, _)| !glyph.is_alphanumeric() && *glyph != ' ');
    let hidden = if is_strip { cell.marks.len().saturating_sub(usize::from(pen.width())) } else { 0 };
    let marks = &cell.marks[hidden..];
    for (x, (glyph, tone)) in (0..pen.width()).zip(marks) {
        pen.dot(x, 0, *glyph, *tone);
    }
    if marks.len() > usize::from(pen.width()) {
        pen.dot(pen.width().saturating_sub(1), 0, '…', Tone::Dim);
    }
}

/// Details as wrapped lines; where some have no row, `zoom` is the key that shows them.
fn lines(lines: &[Line], zoom: &str, pen: &mut Pen<'_>) {
    pen.rule(0, "details");
    let height = pen.height();
    let mut y = 1;
    for (place, (text, tone)) in lines.iter().enumerate() {
        if y >= height {
            let hidden = lines.len() - place;
            pen.put_right(0, pen.width().saturating_sub(1), 0, &format!(" {hidden} more: {zoom} "), Tone::Warn);
            return;
        }
        y = pen.put_wrapped(1, y, text, *tone);
    }
}
