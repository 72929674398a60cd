//! The profile chooser: one more key picks.

use super::middle;
use crate::model::Model;
use crate::theme::Tone;
use crate::view::panels::profiles;
use crate::widgets::pen::Pen;

/// Draws the list.
pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    let offers = model.offers.as_deref().unwrap_or_default();
    let height = u16::try_from(offers.len()).unwrap_or(u16::MAX).clamp(1, 20) + 3;
    let mut part = middle(pen, 76, height);
    let mut inside = part.framed("profile");
    if offers.is_empty() {
        inside.put(1, 0, "Reading the profiles.", Tone::Dim);
        return;
    }
    let rows = inside.height();
    profiles::list(model, offers, &mut inside.rows(0, rows.saturating_sub(1)));
    let hint = "A gentler spin policy applies at once; anything else is asked first.";
    inside.put(1, rows.saturating_sub(1), hint, Tone::Dim);
}
