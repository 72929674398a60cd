//! The view: a function from the model to a frame; it does not change the model.
//!
//! Owns the layout of header, view and footer; panels draw the parts. On the console thread. Full
//! views from 80×24 up; below that lists and help, and a summary for other views; below 20×5 a
//! sentence. The pen clips, so no size causes a panic.

mod overlays;
mod panels;

use crate::model::lists::List;
use crate::model::target::{Target, Targets};
use crate::model::{Leaving, Model, Overlay, View};
use crate::msg::Finished;
use crate::theme::Tone;
use crate::widgets::pen::{Freshness, Pen};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Smallest size of the full views.
pub const FULL: (u16, u16) = (80, 24);
/// Fewest rows for a row of view names.
pub const TABS: u16 = 30;
/// Smallest size of lists.
pub const LISTS: (u16, u16) = (40, 10);
/// Smallest size of the reduced view.
pub const REDUCED: (u16, u16) = (20, 5);

/// Draws the console.
pub fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    draw(model, area, frame.buffer_mut());
}

/// Draws the console into `area` of a buffer.
pub fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    paint(model, &mut Pen::new(buffer, area, model.theme, freshness(model)));
}

/// The target of the cell at (`x`, `y`) when `model` is drawn.
pub fn target_at(model: &Model, x: u16, y: u16) -> Option<Target> {
    targets(model).at(x, y)
}

/// The targets of all cells when `model` is drawn.
pub fn targets(model: &Model) -> Targets {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let (mut buffer, targets) = (Buffer::empty(area), Targets::default());
    paint(model, &mut Pen::new(&mut buffer, area, model.theme, freshness(model)).with_targets(&targets));
    targets
}

/// The last row that help or the lines of the arbiter can begin with, where they have the rows of a console
/// of the model's size.
pub fn scroll_last(model: &Model) -> usize {
    let (top, bottom) = body_rows(model, model.size);
    let (width, height) = (model.size.0, bottom.saturating_sub(top));
    match model.view {
        View::Help => panels::help::scroll_last(model, (width, height)),
        View::Arbiter => panels::arbiter::scroll_last(model, (width, height)),
        _ => 0,
    }
}

fn freshness(model: &Model) -> Freshness {
    if model.is_fresh() { Freshness::Fresh } else { Freshness::Aged }
}

/// Rows of the tour in a console of `height` rows.
fn tour_rows(model: &Model, height: u16) -> u16 {
    if model.tour.is_some() && height >= LISTS.1 { panels::tour::ROWS } else { 0 }
}

/// First row of the view, and the row after its last one.
fn body_rows(model: &Model, (width, height): (u16, u16)) -> (u16, u16) {
    let bottom = height.saturating_sub(1 + tour_rows(model, height));
    if width < FULL.0 || height < FULL.1 {
        return (1, bottom);
    }
    (2 + u16::from(height >= TABS), bottom - u16::from(model.timeline.is_some()))
}

fn paint(model: &Model, pen: &mut Pen<'_>) {
    let (width, height) = (pen.width(), pen.height());
    let tour_rows = tour_rows(model, height);
    let tour = model.tour.filter(|_| tour_rows > 0);
    let (top, below) = body_rows(model, (width, height));
    if width < REDUCED.0 || height < REDUCED.1 {
        too_small(model, pen);
        return;
    }
    if width < FULL.0 || height < FULL.1 {
        let x = panels::reduced::status(model, &mut pen.rows(0, 1));
        if reduced(model.view, (width, height)) {
            panels::reduced::alarms(model, x, &mut pen.rows(0, 1));
            body(model, &mut pen.rows(top, below));
        } else {
            panels::reduced::facts(model, &mut pen.rows(1, height - 1));
        }
    } else {
        panels::header::draw(model, &mut pen.rows(0, 2));
        if height >= TABS {
            panels::tabs::draw(model, &mut pen.rows(2, 3).fresh());
        }
        body(model, &mut pen.rows(top, below));
        if let Some(timeline) = &model.timeline {
            panels::timeline::draw(model, timeline, &mut pen.rows(height - 2, height - 1).fresh());
        }
    }
    if let Some((title, why)) = panels::lost::why(model) {
        // The line of time stays: the past is what can still be looked at.
        let is_timed = model.timeline.is_some() && width >= FULL.0 && height >= FULL.1;
        let bottom = height - 1 - u16::from(is_timed);
        panels::lost::draw(title, &why, &mut pen.rows(bottom.saturating_sub(3), bottom).fresh());
    }
    overlay(model, &mut pen.rows(0, height - 1 - tour_rows).fresh());
    if let Some(tour) = tour {
        panels::tour::draw(model, tour, &mut pen.rows(below, below + tour_rows).fresh());
    }
    panels::footer::draw(model, &mut pen.fresh());
}

/// Whether a view has a summary only below [`FULL`]. Lists show the columns that fit and the rest
/// in their details; help wraps.
fn reduced(view: View, (width, height): (u16, u16)) -> bool {
    let is_list = matches!(view, View::Help | View::Profiles) || (List::of(view).is_some() && view != View::Slots);
    is_list && width >= LISTS.0 && height >= LISTS.1
}

fn too_small(model: &Model, pen: &mut Pen<'_>) {
    let text = format!("{}×{} at least", REDUCED.0, REDUCED.1);
    pen.put(0, 0, &text, Tone::Warn);
    if !model.is_replay() && model.lost.is_none() && model.finished == Finished::No {
        pen.put(0, 1, "engine runs on", Tone::Plain);
    }
}

fn body(model: &Model, pen: &mut Pen<'_>) {
    match (model.picture(), model.view) {
        (_, View::Help) => panels::help::draw(model, pen),
        (_, View::Profiles) => panels::profiles::draw(model, pen),
        (None, _) => {
            pen.put(1, 1, "Waiting for the engine's first picture.", Tone::Warn);
            pen.put(1, 2, "It appears when the engine has created its board; no key is needed.", Tone::Dim);
        }
        (Some(picture), View::Overview) => panels::overview::draw(model, picture, pen),
        (Some(picture), View::Threads) => panels::threads::draw(model, picture, pen),
        (Some(picture), View::Slots) => panels::slots::draw(model, picture, pen),
        (Some(picture), View::Alarms) => panels::alarmlist::draw(model, picture, pen),
        (Some(picture), View::Workers) => panels::workers::draw(model, picture, pen),
        (Some(picture), View::Graph) => panels::graph::draw(model, picture, pen),
        (Some(picture), View::Arbiter) => panels::arbiter::draw(model, picture, pen),
        (Some(picture), View::Placement) => panels::placement::draw(model, picture, pen),
        (Some(picture), View::Sources) => panels::sources::draw(model, picture, pen),
        (Some(_), View::Hosts) => panels::more::hosts(model, pen),
        (Some(_), View::Streams) => panels::more::streams(model, pen),
        (Some(_), View::Rings) => panels::more::rings(model, pen),
        (Some(picture), View::Environment) => panels::more::environment(model, picture, pen),
        (Some(_), View::Cores) => panels::more::cores(model, pen),
        (Some(picture), View::Log) => panels::more::log(model, picture, pen),
        (Some(picture), View::Actions) => panels::more::actions(model, picture, pen),
        (Some(picture), View::Chart) => panels::chart::draw(model, picture, pen),
        (Some(picture), View::Compare) => panels::more::compare(model, picture, pen),
    }
}

fn overlay(model: &Model, pen: &mut Pen<'_>) {
    if let Leaving::Draining { since_ns, .. } = model.leaving {
        overlays::drain::draw(model, since_ns, pen);
    }
    // A question, chooser or input line has the screen to itself; the filter input stays in its
    // list.
    if !matches!(model.overlay, None | Some(Overlay::Filter(_))) {
        pen.cover();
    }
    match &model.overlay {
        None => {}
        Some(Overlay::Chooser) => overlays::chooser::draw(model, pen),
        Some(Overlay::Ask(command)) => overlays::ask::command(model, command, pen),
        Some(Overlay::Type(command, text)) => overlays::ask::typed(model, command, text, pen),
        Some(Overlay::Move(text)) => overlays::ask::moved(model, text, pen),
        Some(Overlay::Input(text)) => overlays::ask::input(model, text, pen),
        Some(Overlay::Why(_, text)) => overlays::ask::why(model, text, pen),
        Some(Overlay::AskApply(asked)) => overlays::ask::apply(model, asked, pen),
        Some(Overlay::AskQuit) => overlays::ask::quit(model, pen),
        Some(Overlay::AskForce) => overlays::ask::force(model, pen),
        Some(Overlay::Rate(text)) => overlays::ask::rate(model, text, pen),
        Some(Overlay::Note(text)) => overlays::ask::note(model, text, pen),
        Some(Overlay::Palette(typed)) => overlays::palette::draw(model, typed, pen),
        // The filter input is in the list's own title.
        Some(Overlay::Filter(_)) => {}
        Some(Overlay::Columns(at)) => {
            if let Some(list) = List::of(model.view) {
                overlays::columns::draw(model, list, *at, pen);
            }
        }
    }
}

#[cfg(test)]
mod tests;
