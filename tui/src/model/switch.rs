//! Profile switches: the last one, those before, and the one that takes itself back.
//!
//! Plain data and its words. On the console thread.

use super::Model;
use crate::widgets::format::time;
use std::time::Duration;

/// Longest time after which a profile may come back: a day.
pub const FOR_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Why a profile was switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The operator took it.
    Asked,
    /// The operator took the one before back.
    Undone,
    /// Its time was over.
    TimeOver,
}

impl Why {
    /// In words.
    pub fn said(self) -> &'static str {
        match self {
            Why::Asked => "asked for",
            Why::Undone => "taken back",
            Why::TimeOver => "its time was over",
        }
    }
}

/// One profile switch.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// 99.9th percentile of latency in the second before it, nanoseconds.
    pub p999_before_ns: Option<u64>,
}

/// A profile that comes back by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Which.
    pub to: String,
    /// When, console clock.
    pub at_ns: u64,
}

impl Pending {
    /// Time left, as the header shows it.
    pub fn left(&self, now_ns: u64) -> String {
        let left_ns = self.at_ns.saturating_sub(now_ns);
        match left_ns {
            0..120_000_000_000 => time(left_ns / 1_000_000_000 * 1_000_000_000),
            _ => format!("{}m", left_ns.div_ceil(60_000_000_000)),
        }
    }
}

/// The switches made here, the newest first.
pub fn history(model: &Model) -> impl Iterator<Item = &Switch> {
    model.switch.iter().chain(model.switches.iter().rev())
}
