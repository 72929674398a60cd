//! Questions before what cannot be taken back.

use super::middle;
use crate::model::Model;
use crate::source::{Bond, Hold, Offer};
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

/// "Drain and end the engine of another process?"
pub fn end(model: &Model, pen: &mut Pen<'_>) {
    let open = model.live.picture.as_ref().map_or(0, |picture| picture.derived.open);
    let whose = match model.bond {
        Bond::Own => "this process".to_owned(),
        Bond::Attached { pid, .. } => format!("process {pid}"),
    };
    let mut part = middle(pen, 62, 6);
    let mut inside = part.framed(&format!("drain and end the engine of {whose}?"));
    inside.put(1, 0, "Its feed stops for everybody; accepted shots are answered.", Tone::Warn);
    inside.put(1, 1, &format!("{} shots are in the path now. q only leaves.", count(open)), Tone::Plain);
    inside.put(1, 3, "y or enter: drain and end it    n or esc: go on", Tone::Accent);
}

/// "Hold the feed?", or let it go.
pub fn hold(hold: Hold, pen: &mut Pen<'_>) {
    let mut part = middle(pen, 62, 6);
    let (title, what) = match hold {
        Hold::Hold => ("hold the feed?", "No shot is taken until it is let go; what is under way finishes."),
        Hold::Release => ("let the feed go?", "Shots are taken again, at the rate in force."),
    };
    let mut inside = part.framed(title);
    inside.put(1, 0, what, Tone::Plain);
    inside.put(1, 3, "y or enter: yes    n or esc: no", Tone::Accent);
}

/// A note being written.
pub fn note(text: &str, pen: &mut Pen<'_>) {
    writing("a note, kept with the run", text, "enter: keep    esc: no note", pen);
}

/// A rate being written.
pub fn rate(model: &Model, text: &str, pen: &mut Pen<'_>) {
    let now = model.live.picture.as_ref().and_then(|picture| picture.snapshot.engine.rate_hz);
    let now = now.map_or_else(|| "as fast as it goes".to_owned(), |hz| format!("{hz:.0}/s"));
    let keys = format!("enter: take it    esc: stay at {now}");
    writing("shots per second of all streams together, or max", text, &keys, pen);
}

fn writing(title: &str, text: &str, keys: &str, pen: &mut Pen<'_>) {
    let mut part = middle(pen, 76, 5);
    let mut inside = part.framed(title);
    // The end of a long one: that is where the next letter goes.
    let room = usize::from(inside.width().saturating_sub(3));
    let hidden = text.chars().count().saturating_sub(room);
    let shown: String = text.chars().skip(hidden).collect();
    let x = inside.put(1, 0, &shown, Tone::Plain);
    inside.put(x, 0, "_", Tone::Accent);
    inside.put(1, 2, keys, Tone::Accent);
}
