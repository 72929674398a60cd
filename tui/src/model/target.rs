//! Clickable areas of the screen and the objects behind them.
//!
//! Plain data, on the console thread. The view fills a [`Targets`] list while it draws;
//! [`crate::view::target_at`] searches it, and `update` acts. Bounded by the cells of a screen.
//!
//! # Why the view is drawn once more for a click
//!
//! A second computation of the layout would diverge from the first when somebody changes one of
//! them. Drawing takes less than a tenth of a millisecond, and clicks are rare.

use super::lists::List;
use crate::keymap::Action;
use ratatui::layout::Rect;
use std::cell::RefCell;

/// The object behind an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Do(Action),
    /// A row of a list, in any view.
    Row(List, usize),
    /// The heading of a list's column.
    Heading(List, usize),
    /// A slot: indexes of its silo and of the slot.
    Slot(usize, usize),
    Silo(usize),
    /// A stream of the live source.
    Sender(usize),
    Offer(usize),
    Line(usize),
    /// A line of the column chooser.
    Column(usize),
    /// A moment of the recording, nanoseconds after the engine's start.
    Moment(u64),
}

/// The last click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressed {
    pub at_ns: u64,
    pub cell: (u16, u16),
    /// The click led to another view, so its cell shows something else now.
    pub is_away: bool,
}

/// The areas of a picture in drawing order: of overlapping areas the last is on top.
#[derive(Debug, Default)]
pub struct Targets(RefCell<Vec<(Rect, Option<Target>)>>);

impl Targets {
    /// Assigns `target` to `area`; `None` makes the area unclickable.
    pub fn add(&self, area: Rect, target: Option<Target>) {
        self.0.borrow_mut().push((area, target));
    }

    /// Makes all areas so far unclickable: an overlay covers them.
    pub fn cover(&self) {
        self.0.borrow_mut().clear();
    }

    /// The object behind the cell at (`x`, `y`).
    pub fn at(&self, x: u16, y: u16) -> Option<Target> {
        let holds = |(area, _): &&(Rect, Option<Target>)| area.contains((x, y).into());
        self.0.borrow().iter().rev().find(holds).and_then(|(_, target)| *target)
    }
}
