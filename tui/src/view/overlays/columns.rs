//! The column chooser of a list.

use super::middle;
use crate::keymap::{Action, Scope};
use crate::model::Model;
use crate::model::lists::{List, columns_shown};
use crate::model::target::Target;
use crate::theme::Tone;
use crate::view::panels::scrolled;
use crate::widgets::pen::Pen;

pub fn draw(model: &Model, list: List, at: usize, pen: &mut Pen<'_>) {
    let columns = list.columns();
    let shown = columns_shown(model, list, model.size.0);
    let height = u16::try_from(columns.len()).unwrap_or(u16::MAX).saturating_add(3);
    let mut part = middle(pen, 48, height);
    let mut inside = part.framed("columns");
    let height = inside.height();
    let mut rows = inside.rows(0, height.saturating_sub(1));
    let visible = usize::from(rows.height());
    let first = scrolled(at, visible, columns.len());
    for (y, (place, column)) in (0..).zip(columns.iter().enumerate().skip(first)).take(visible) {
        rows.target_row(y, Target::Column(place));
        let is_shown = shown.iter().any(|(shown, _)| *shown == place);
        rows.dot(1, y, if is_shown { '✔' } else { '·' }, if is_shown { Tone::Good } else { Tone::Dim });
        let name = if column.name.is_empty() { "state" } else { column.name };
        rows.put(3, y, name, Tone::Plain);
        if place == at {
            rows.highlight(y);
        }
    }
    let key = model.keymap.first_key(Scope::Columns, Action::Toggle);
    let hint = format!("{key} shows or hides; every column is in CSV");
    inside.put(1, height.saturating_sub(1), &hint, Tone::Dim);
}
