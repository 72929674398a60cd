//! Profile switches: the last one, and those before.
//!
//! Plain data and its words. On the console thread.

use super::Model;
use super::deeds::Facts;
use std::time::Duration;

/// Why a profile was switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The operator took it.
    Asked,
    /// The operator took the one before back.
    Undone,
}

impl Why {
    /// In words.
    pub fn said(self) -> &'static str {
        match self {
            Why::Asked => "asked for",
            Why::Undone => "taken back",
        }
    }
}

/// One profile switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Profile before.
    pub from: String,
    /// Profile applied.
    pub to: String,
    /// When, console clock.
    pub at_ns: u64,
    /// When, after the engine's start.
    pub engine_ns: u64,
    /// Epoch requested before the switch: acknowledgements above it belong to the switch.
    pub epoch_before: u64,
    /// Why.
    pub why: Why,
    /// For so long only; then the engine brings back what was before.
    pub lent: Option<Duration>,
    /// Latency and work in the second before it.
    pub before: Facts,
    /// The same, some seconds after all threads had acknowledged it; `None`: not yet, or another switch came first.
    pub after: Option<Facts>,
    /// The operator's own words.
    pub reason: String,
}

/// The switches made here, the newest first.
pub fn history(model: &Model) -> impl Iterator<Item = &Switch> {
    model.switch.iter().chain(model.switches.iter().rev())
}
