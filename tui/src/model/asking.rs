//! Overlays over the view: questions, choosers and input lines.
//!
//! Plain data, on the console thread. Bounded: one overlay at a time; an input line for a reason
//! also holds its question.

use super::commands::Typed;
use super::switch::Why;
use crate::source::data::Offer;
use pinwheel_engine::engine::Command;
use std::time::Duration;

/// A profile switch that awaits confirmation.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub offer: Offer,
    /// For how long; `None`: permanently.
    pub span: Option<Duration>,
    /// Whether it is a new switch or takes one back.
    pub why: Why,
}

/// The overlay over the view.
#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    Chooser,
    AskApply(Box<Asked>),
    AskQuit,
    AskForce,
    Note(String),
    Rate(String),
    /// "Do this?"; yes executes the command.
    Ask(Command),
    /// The same, confirmed by typing the command's word.
    Type(Command, String),
    Palette(Typed),
    /// Input of the view's filter; holds the filter before the change.
    Filter(String),
    /// The chooser of the list's columns; holds the selected index.
    Columns(usize),
    /// Input of a stream and its target silo.
    Move(String),
    /// Input of another shot file or stream.
    Input(String),
    /// Input of a reason, for the question held.
    Why(Box<Overlay>, String),
}

impl Overlay {
    /// Whether the overlay takes a line of input.
    pub fn is_written(&self) -> bool {
        matches!(
            self,
            Overlay::Note(_)
                | Overlay::Rate(_)
                | Overlay::Type(..)
                | Overlay::Move(_)
                | Overlay::Input(_)
                | Overlay::Why(..)
        )
    }

    /// Whether its answer changes the engine that it was asked about: no other engine may get it.
    pub fn is_about_engine(&self) -> bool {
        match self {
            Overlay::AskApply(_) | Overlay::Rate(_) | Overlay::Ask(_) | Overlay::Type(..) | Overlay::Move(_) => true,
            Overlay::Why(question, _) => question.is_about_engine(),
            _ => false,
        }
    }
}
