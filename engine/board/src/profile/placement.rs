//! Placement in a profile: the streams that take part, the rule, and the handling of shots that
//! find no slot.
//!
//! Plain data; ranges are enforced in `check`. The values that a profile leaves out are those of `base.ron`.

use serde::{Deserialize, Serialize};

/// Which silo a stream goes to, whether it may move, and what happens to shots that find no slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementRules {
    /// Streams that take part; the others keep the silo of their number.
    pub streams: TakesPart,
    /// How a silo is chosen for a new stream.
    pub by: PlaceBy,
    /// From one snapshot of the queues to the next, ms, 10..=60000.
    pub refresh_ms: u32,
    /// Action with every silo at 80 % of its queues on average, or with one queue at 95 %.
    pub all_high: AllHigh,
    /// Whether streams move while the engine runs.
    pub rebalance: bool,
    /// What happens to a shot that has arrived and finds no slot.
    pub overflow: Overflow,
}

/// Which streams take part in placement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakesPart {
    /// No stream: each keeps the silo of its number.
    Nobody,
    /// All streams.
    All,
    /// These streams, each below `input.streams` and once.
    Only(Vec<u32>),
}

impl TakesPart {
    /// Whether `stream` takes part.
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
    /// The better of two silos drawn at random, by average, fullest queue and backlog. A stream that
    /// is placed counts as load at once, not only in the next snapshot.
    BestOfTwo,
    /// The silo with the lowest average.
    LowestAverage,
    /// One after another.
    RoundRobin,
    /// A silo drawn at random.
    Random,
}

pinwheel_edge::names! { PlaceBy:
    BestOfTwo "best of two", LowestAverage "lowest average", RoundRobin "round robin", Random "random",
}

/// Action of a placement with every silo above the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AllHigh {
    /// Chooses one of the least loaded silos at random, and reports it.
    Random,
    /// Refuses the stream.
    Refuse,
}

/// Handling of a shot that has arrived and finds no slot. Unpaced shots are never early, so they
/// cannot overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overflow {
    /// The strategy.
    pub strategy: OverflowStrategy,
    /// `Block`, `CpuFallback` and `Migrate`: longest wait before a shot is answered with an error,
    /// ms, 1..=60000.
    pub deadline_ms: u32,
    /// `DropOldest`: number of newest shots that keep waiting, 1..=65536.
    pub keep_shots: u32,
}

/// Handling of a shot that has arrived and finds no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverflowStrategy {
    /// The shot waits, up to the deadline.
    Block,
    /// The oldest waiting shots are answered with an error, so that the newest get slots.
    DropOldest,
    /// The shot is answered with an error.
    DropNew,
    /// Shots bypass a device without a free worker, to the CPU predecoder; otherwise they wait as
    /// under `Block`.
    CpuFallback,
    /// Streams of the full silo move to other silos at once; meanwhile shots wait as under `Block`.
    Migrate,
}

pinwheel_edge::names! { OverflowStrategy:
    Block "Block", DropOldest "DropOldest", DropNew "DropNew", CpuFallback "CpuFallback", Migrate "Migrate",
}
