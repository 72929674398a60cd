//! What a place on the screen stands for: what a click there is about.
//!
//! Plain data, on the console thread. The view says it while it draws, into a list of its own; [`crate::view::target_at`]
//! asks, `update` acts. Bounded by what fits on a screen.
//!
//! # Why the view is drawn once more for a click
//!
//! A second computation of where things are would agree with the first one until somebody changes one of them. A picture
//! costs less than a tenth of a millisecond, and nobody clicks a thousand times a second.

use super::lists::List;
use crate::keymap::Action;
use ratatui::layout::Rect;
use std::cell::RefCell;

/// What a place stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// What a key does.
    Do(Action),
    /// A row of a list, whatever view shows it.
    Row(List, usize),
    /// The heading of a list's column.
    Heading(List, usize),
    /// A slot of the silo at that place.
    Slot(usize, usize),
    /// The silo at that place.
    Silo(usize),
    /// A stream of the live source.
    Sender(usize),
    /// A profile on offer.
    Offer(usize),
    /// A line of the palette.
    Line(usize),
    /// A line of the choice of columns.
    Column(usize),
    /// A moment of the recording, nanoseconds after the engine's start.
    Moment(u64),
}

/// What a picture's places stand for, in the order of drawing: the last one that holds a place is on top.
#[derive(Debug, Default)]
pub struct Targets(RefCell<Vec<(Rect, Option<Target>)>>);

impl Targets {
    /// These cells stand for `target`, or for nothing.
    pub fn tell(&self, area: Rect, target: Option<Target>) {
        self.0.borrow_mut().push((area, target));
    }

    /// Nothing that was told so far can be reached.
    pub fn cover(&self) {
        self.0.borrow_mut().clear();
    }

    /// A cell that stands for `target`.
    #[cfg(test)]
    pub fn place(&self, target: Target) -> Option<(u16, u16)> {
        let told = self.0.borrow();
        let (area, _) = told.iter().rev().find(|(_, told)| *told == Some(target))?;
        (self.at(area.x, area.y) == Some(target)).then_some((area.x, area.y))
    }

    /// What the cell at (`x`, `y`) stands for.
    pub fn at(&self, x: u16, y: u16) -> Option<Target> {
        let holds = |(area, _): &&(Rect, Option<Target>)| area.contains((x, y).into());
        self.0.borrow().iter().rev().find(holds).and_then(|(_, target)| *target)
    }
}
