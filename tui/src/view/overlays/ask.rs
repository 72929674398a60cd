//! Questions before what cannot be taken back.

use super::middle;
use crate::model::Model;
use crate::source::Offer;
use crate::theme::Tone;
use crate::view::panels::profiles;
use crate::widgets::format::count;
use crate::widgets::pen::Pen;

/// "Apply this profile?"
pub fn apply(model: &Model, offer: &Offer, pen: &mut Pen<'_>) {
    let rows = offer.body.as_ref().map_or(1, |body| body.changes.len());
    let height = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(6);
    let mut part = middle(pen, 76, height);
    let mut inside = part.framed("apply a profile?");
    let from = model.in_force().map_or("?", |(name, _)| name);
    let x = inside.put(1, 0, &format!("{from} → {}", offer.name), Tone::Accent) + 2;
    inside.put(x, 0, "y or enter applies, n or esc does not", Tone::Dim);
    let rows = inside.height();
    profiles::changes(offer, &mut inside.rows(1, rows));
}

/// "Drain and quit?"
pub fn quit(model: &Model, pen: &mut Pen<'_>) {
    let open = model.live.picture.as_ref().map_or(0, |picture| picture.derived.open);
    let mut part = middle(pen, 62, 6);
    let mut inside = part.framed("drain and quit?");
    inside.put(1, 0, "The feed stops; every shot that was accepted is answered.", Tone::Plain);
    inside.put(1, 1, &format!("{} shots are in the path now.", count(open)), Tone::Plain);
    inside.put(1, 3, "y or enter: drain and quit    n or esc: go on", Tone::Accent);
}

/// "Quit with shots unanswered?"
pub fn force(model: &Model, pen: &mut Pen<'_>) {
    let open = model.live.picture.as_ref().map_or(0, |picture| picture.derived.open);
    let mut part = middle(pen, 62, 6);
    let mut inside = part.framed("quit before the drain is over?");
    inside.put(1, 0, &format!("✖ {} shots are not answered yet and would not be.", count(open)), Tone::Bad);
    inside.put(1, 3, "y or enter: quit now    n or esc: let it finish", Tone::Accent);
}

/// A note being written.
pub fn note(text: &str, pen: &mut Pen<'_>) {
    let mut part = middle(pen, 76, 5);
    let mut inside = part.framed("a note, kept with the run");
    // The end of a long one: that is where the next letter goes.
    let room = usize::from(inside.width().saturating_sub(3));
    let hidden = text.chars().count().saturating_sub(room);
    let shown: String = text.chars().skip(hidden).collect();
    let x = inside.put(1, 0, &shown, Tone::Plain);
    inside.put(x, 0, "_", Tone::Accent);
    inside.put(1, 2, "enter: keep    esc: no note", Tone::Accent);
}
