//! The profile switches made at this console.
//!
//! Plain data and its texts. On the console thread.

use super::Model;
use super::measured::Facts;
use pinwheel_engine::profile::Profile;
use std::rc::Rc;
use std::time::Duration;

/// Origin of a profile switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The operator chose the profile.
    Asked,
    /// The operator took the last switch back.
    Undone,
}

impl Why {
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
    pub from: String,
    /// The profile before the switch: another one may have its name.
    pub before_profile: Rc<Profile>,
    pub to: String,
    /// Time of the switch, console clock.
    pub at_ns: u64,
    /// Time of the switch after the engine's start.
    pub engine_ns: u64,
    /// Epoch requested before the switch: acknowledgements above it belong to the switch.
    pub epoch_before: u64,
    pub why: Why,
    /// Time span of a temporary switch; the engine then restores the previous profile.
    pub lent: Option<Duration>,
    /// Latency and load in the second before the switch.
    pub before: Facts,
    /// Latency and load some seconds after all threads had acknowledged it; `None`: not measured
    /// yet, or another switch came first.
    pub after: Option<Facts>,
    /// The operator's reason.
    pub reason: String,
}

/// The switches of this console, newest first.
pub fn history(model: &Model) -> impl Iterator<Item = &Switch> {
    model.switch.iter().chain(model.switches.iter().rev())
}
