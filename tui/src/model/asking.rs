//! What is open over the view: questions, things to choose from, lines being written.
//!
//! Plain data, on the console thread. Bounded: one at a time, and a question below the reason that is written at it.

use super::commands::Typed;
use super::deeds::Deed;
use super::switch::Why;
use crate::source::{Hold, Offer};
use std::time::Duration;

/// A profile that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Which.
    pub offer: Offer,
    /// For how long; `None`: for good.
    pub span: Option<Duration>,
    /// Why.
    pub why: Why,
}

/// What is open over the view.
#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    /// The profile chooser.
    Chooser,
    /// "Apply this?"
    AskApply(Box<Asked>),
    /// "Drain and quit?"
    AskQuit,
    /// "Quit with shots unanswered?"
    AskForce,
    /// A note being written.
    Note(String),
    /// A rate being written.
    Rate(String),
    /// "Hold the feed?", or let it go.
    AskHold(Hold),
    /// "Drain and end the engine of another process?"
    AskEnd,
    /// The command palette.
    Palette(Typed),
    /// The filter of the view's list being written; what it was before.
    Filter(String),
    /// The columns of the view's list; the one under the cursor.
    Columns(usize),
    /// "Do this to a silo, a stream, the input?"
    AskDeed(Deed),
    /// The same, and its word is being typed.
    TypeDeed(Deed, String),
    /// A stream and the silo where it is to go, being written.
    Move(String),
    /// Another input being written.
    Input(String),
    /// Why, being written at that question.
    Why(Box<Overlay>, String),
}

impl Overlay {
    /// Whether a line is being written in it.
    pub fn is_written(&self) -> bool {
        matches!(
            self,
            Overlay::Note(_)
                | Overlay::Rate(_)
                | Overlay::TypeDeed(..)
                | Overlay::Move(_)
                | Overlay::Input(_)
                | Overlay::Why(..)
        )
    }
}
