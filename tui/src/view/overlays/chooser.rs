//! The profile chooser: one more key takes a profile.

use super::middle;
use crate::model::Model;
use crate::theme::Tone;
use crate::view::panels::profiles;
use crate::widgets::pen::Pen;

/// Columns, if the screen has them.
const WIDTH: u16 = 76;

pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    let offers = model.offers.as_deref().unwrap_or_default();
    let hint = "A gentler spin policy applies at once; other switches ask first.";
    let hint_rows = Pen::rows_wrapped(WIDTH.min(pen.width()).saturating_sub(2), 1, hint);
    let none = if offers.is_empty() { profiles::none(model) } else { String::new() };
    let least = Pen::rows_wrapped(WIDTH.min(pen.width()).saturating_sub(2), 1, &none);
    let height = u16::try_from(offers.len()).unwrap_or(u16::MAX).min(20).max(least) + hint_rows + 2;
    let mut part = middle(pen, WIDTH, height);
    let mut inside = part.framed("profile");
    if offers.is_empty() {
        inside.put_wrapped(1, 0, &none, Tone::Dim);
        return;
    }
    let rows = inside.height();
    let top = rows.saturating_sub(hint_rows);
    profiles::list(model, offers, &mut inside.rows(0, top));
    inside.rows(top, rows).put_wrapped(1, 0, hint, Tone::Dim);
}
