//! Placement in a profile: who takes part, by which rule, and what a shot does that finds no slot.
//!
//! Plain data; ranges are enforced in `check`. As the rest of the schema: every field is required.

use serde::{Deserialize, Serialize};

/// Which silo a stream goes to, whether it may move, and what happens to shots that find no slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementRules {
    /// Which streams take part; the others keep the silo of their number.
    pub streams: TakesPart,
    /// How a silo is chosen for a new stream.
    pub by: PlaceBy,
    /// A silo whose average is this or more takes no new stream, above 0, at most 1.
    pub high_utilization: f64,
    /// Nor does one with a single queue this full, `high_utilization`..=1.
    pub critical_utilization: f64,
    /// A stream would rather not go where a queue is fuller, above 0, at most 1.
    pub preferred_max_utilization: f64,
    /// From one snapshot of the queues to the next, ms, 10..=60000.
    pub refresh_ms: u32,
    /// With every silo above the limits.
    pub all_high: AllHigh,
    /// Whether streams move while the engine runs.
    pub rebalance: bool,
    /// What happens to a shot that has arrived and finds no slot.
    pub overflow: Overflow,
}

/// Which streams take part in placement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakesPart {
    /// None: each keeps the silo of its number.
    Nobody,
    /// All.
    All,
    /// These, each below `input.streams` and once.
    Only(Vec<u32>),
}

impl TakesPart {
    /// Whether `stream` takes part.
    #[must_use]
    pub fn includes(&self, stream: u32) -> bool {
        match self {
            TakesPart::Nobody => false,
            TakesPart::All => true,
            TakesPart::Only(streams) => streams.contains(&stream),
        }
    }
}

/// How a silo is chosen for a new stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlaceBy {
    /// The better of two drawn at random, by average, fullest queue and backlog; picks are charged.
    BestOfTwo,
    /// The one with the lowest average.
    LowestAverage,
    /// One after another.
    RoundRobin,
    /// Any.
    Random,
}

impl PlaceBy {
    /// Name on screen and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PlaceBy::BestOfTwo => "best of two",
            PlaceBy::LowestAverage => "lowest average",
            PlaceBy::RoundRobin => "round robin",
            PlaceBy::Random => "random",
        }
    }
}

/// What a placement does with every silo above the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AllHigh {
    /// Takes any of the least critical, and says so.
    Random,
    /// Refuses.
    Refuse,
}

/// What happens to a shot that has arrived and finds no slot. One that comes as fast as slots come free finds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overflow {
    /// The strategy.
    pub strategy: OverflowStrategy,
    /// `Block`, `CpuFallback` and `Migrate`: a shot that has waited for so long is answered with an error, ms, 1..=60000.
    pub deadline_ms: u32,
    /// `DropOldest`: so many of the newest wait on, 1..=65536.
    pub keep_shots: u32,
}

/// What happens to a shot that has arrived and finds no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverflowStrategy {
    /// It waits, up to the deadline.
    Block,
    /// The oldest that wait are answered with an error, so that the newest get in.
    DropOldest,
    /// It is answered with an error.
    DropNew,
    /// Shots go past a device that has no worker free, to the CPU predecoder; they wait as under `Block` where that does not help.
    CpuFallback,
    /// Streams of the silo that is full move to others at once; shots wait as under `Block` meanwhile.
    Migrate,
}

impl OverflowStrategy {
    /// All of them, by their number.
    pub const ALL: [OverflowStrategy; 5] = [
        OverflowStrategy::Block,
        OverflowStrategy::DropOldest,
        OverflowStrategy::DropNew,
        OverflowStrategy::CpuFallback,
        OverflowStrategy::Migrate,
    ];

    /// Name as the profile spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OverflowStrategy::Block => "Block",
            OverflowStrategy::DropOldest => "DropOldest",
            OverflowStrategy::DropNew => "DropNew",
            OverflowStrategy::CpuFallback => "CpuFallback",
            OverflowStrategy::Migrate => "Migrate",
        }
    }
}
