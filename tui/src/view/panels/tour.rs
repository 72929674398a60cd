//! The step of the tour, above the footer.

use crate::keymap::{Action, Scope};
use crate::model::tour::{Tour, TourStep, text};
use crate::model::{Model, View};
use crate::theme::Tone;
use crate::widgets::pen::Pen;
use crate::widgets::wrap;

/// Rows that it takes.
pub const ROWS: u16 = 5;

pub fn draw(model: &Model, tour: Tour, pen: &mut Pen<'_>) {
    pen.blank();
    let help = model.keymap.first_key(Scope::Views, Action::Show(View::Help));
    let (next, end) = (Action::Tour, Action::EndTour);
    let (next, end) = (model.keymap.first_key(Scope::Help, next), model.keymap.first_key(Scope::Help, end));
    let (number, steps, what) = (tour.number(), TourStep::ALL.len(), tour.step.heading());
    pen.rule(0, &format!("tour, {number} of {steps}: {what} ({help} then {next}: next, {help} then {end}: end)"));
    let room = usize::from(pen.width().saturating_sub(2));
    let text = text(model, tour.step);
    for (y, row) in (1..ROWS).zip(wrap::rows(&text, room, room)) {
        pen.put(1, y, row, Tone::Accent);
    }
}
