//! The user's choices for all views, kept from one start of the console to the next.

use crate::theme::{Glyphs, Palette};
use clap::ValueEnum;

/// Choices made at this or an earlier start; `None`: no choice made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Colour palette.
    pub palette: Option<Palette>,
    /// Glyph set.
    pub glyphs: Option<Glyphs>,
    /// Use of the mouse.
    pub mouse: Option<Mouse>,
}

/// Whether console or terminal handles the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mouse {
    /// The console handles clicks and the wheel
    #[default]
    On,
    /// The terminal handles the mouse; it selects text
    Off,
}

impl Mouse {
    /// The opposite choice.
    pub fn other(self) -> Mouse {
        match self {
            Mouse::On => Mouse::Off,
            Mouse::Off => Mouse::On,
        }
    }
}
