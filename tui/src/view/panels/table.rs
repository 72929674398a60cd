//! A list as a table: headings, the rows shown, the cursor's row marked; and a list with its details below.
//!
//! Draws what `model::lists` says, and only the cells that are in sight.

use super::{rows_of, scrolled};
use crate::model::lists::{self, Cell, Line, List, REST, Way};
use crate::model::target::Target;
use crate::model::{Model, Overlay, Zoom};
use crate::theme::Tone;
use crate::widgets::pen::Pen;

/// Rows that details get of a view, at most; half of a low one.
const DETAIL_ROWS: u16 = 9;

/// What is said where there is nothing to list.
#[derive(Clone, Copy, Debug)]
pub struct Empty<'a> {
    /// Why it is empty.
    pub why: &'a str,
    /// What would fill it.
    pub fill: &'a str,
}

/// A view of one list: title, table, and the details of the row under the cursor.
pub fn view(model: &Model, list: List, empty: Empty<'_>, pen: &mut Pen<'_>) {
    let title = model.view.title();
    with_details(model, list, title, empty, pen, |row, pen| {
        lines(&list.details(model, row), pen);
    });
}

/// Title, table, and below it what `details` draws of the row under the cursor; the zoom says who has the room.
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

/// Title, filter and table; what is said beside the title gives way to a filter.
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

/// The filter and how many rows it leaves, in so many columns: the end of what is written is where the next letter goes.
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
        pen.put(1, 1, "No row is left by this filter. Esc in it (/) shows all rows again.", Tone::Warn);
    }
    table(model, list, rows, Pointer::Shown, pen);
}

/// Whether the cursor's row is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// It is.
    Shown,
    /// It is not: this is not the list's own view.
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

/// A heading each. Where the table is not the list's own view they stand on the rule, whose title names the rows.
fn headings(model: &Model, list: List, columns: &[(usize, u16)], pointer: Pointer, pen: &mut Pen<'_>) {
    let order = model.lists.of(list).order.as_ref();
    let mut x = 1;
    for (column, width) in columns {
        let width = if *width == REST { pen.width().saturating_sub(x) } else { *width };
        let name = list.columns()[*column].name;
        if x >= pen.width() {
            return pen.mark_cut(0, name);
        }
        let sorted = order.filter(|order| order.column == *column).map(|order| order.way);
        let tone = if sorted.is_some() { Tone::Accent } else { Tone::Dim };
        match pointer {
            Pointer::Shown => {
                pen.target(x, 0, width, Target::Heading(list, *column));
                // The arrow is what one looks for: a long name gives way.
                let arrow = sorted.map(|way| if way == Way::Up { '↑' } else { '↓' });
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
    // The end of a strip is now: what does not fit is the oldest.
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

/// Details as lines, wrapped; what has no room says so.
pub fn lines(lines: &[Line], pen: &mut Pen<'_>) {
    pen.rule(0, "details");
    let height = pen.height();
    let mut y = 1;
    for (place, (text, tone)) in lines.iter().enumerate() {
        if y >= height {
            let hidden = lines.len() - place;
            pen.put_right(0, pen.width().saturating_sub(1), 0, &format!(" {hidden} more: z "), Tone::Warn);
            return;
        }
        y = pen.put_wrapped(1, y, text, *tone);
    }
}
