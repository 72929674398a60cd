//! How a silo lives, in a snapshot.

use crate::board::histogram::Histogram;
use serde::Serialize;

/// What a silo is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SiloState {
    /// It takes shots.
    #[default]
    Live,
    /// Its streams move to other silos.
    Draining,
    /// It has no stream. It comes back at once.
    Drained,
    /// Its path has died; what it had is answered and inherited.
    Dying,
    /// It is dead, and its streams are decoded elsewhere.
    Dead,
    /// Its path is built anew.
    Rejoining,
}

impl SiloState {
    /// All of them, in the order of their codes.
    pub const ALL: [SiloState; 6] = [
        SiloState::Live,
        SiloState::Draining,
        SiloState::Drained,
        SiloState::Dying,
        SiloState::Dead,
        SiloState::Rejoining,
    ];

    /// Name on screen and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SiloState::Live => "live",
            SiloState::Draining => "draining",
            SiloState::Drained => "drained",
            SiloState::Dying => "dying",
            SiloState::Dead => "dead",
            SiloState::Rejoining => "rejoining",
        }
    }

    /// The state of this code; one that is not known reads as dead.
    #[must_use]
    pub fn from_code(code: u64) -> SiloState {
        usize::try_from(code).ok().and_then(|code| SiloState::ALL.get(code).copied()).unwrap_or(SiloState::Dead)
    }
}

/// How one silo lives.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LifeView {
    /// What it is doing.
    pub state: SiloState,
    /// Since when; 0: since the start.
    pub age_ns: u64,
    /// Times that its path was built, the start included.
    pub epoch: u64,
    /// Times that it died.
    pub deaths: u64,
    /// Times that it came back.
    pub rejoins: u64,
    /// Times that it was emptied.
    pub drains: u64,
    /// Shots answered with an error because it died.
    pub errored: u64,
    /// Its last heir.
    pub heir: Option<u32>,
    /// Streams that it left to heirs.
    pub left: u64,
    /// From a death to where all its streams were taken elsewhere.
    pub elsewhere: Histogram,
    /// From a death to the first answer that one of its streams got elsewhere.
    pub answered_elsewhere: Histogram,
    /// From the wish to come back to where it took shots again.
    pub rejoin: Histogram,
    /// Why it is not live, or why it stays dead.
    pub why: String,
}
