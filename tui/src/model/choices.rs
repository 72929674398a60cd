//! The user's choices for all views, kept from one start of the console to the next.

use crate::named::named;
use crate::theme::{Glyphs, Palette};
use clap::ValueEnum;

named! {
    /// A panel of the overview that the user may hide. The alarms always stay.
    pub enum Panel {
        Silos = "silos", "each silo's path, slots and workers; hidden, each has one line";
        Trends = "trends", "rate, p99.9 and backlog of the last seconds";
        Latency = "latency", "times of each stage";
        Streams = "streams", "answers, errors and input of each stream";
        Threads = "threads", "heartbeat and load of each thread";
    }
}

/// Choices made at this or an earlier start; `None`: no choice made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    pub palette: Option<Palette>,
    pub glyphs: Option<Glyphs>,
    pub mouse: Option<Mouse>,
    /// Panels that the overview leaves out, by their place in [`Panel::ALL`].
    pub hidden: [bool; Panel::ALL.len()],
}

impl Chosen {
    /// Whether the overview leaves `panel` out.
    pub fn hides(&self, panel: Panel) -> bool {
        self.hidden[panel as usize]
    }
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
    pub fn other(self) -> Mouse {
        match self {
            Mouse::On => Mouse::Off,
            Mouse::Off => Mouse::On,
        }
    }
}
