//! Clock readings and clock steps in a snapshot.

use serde::Serialize;

/// One moment, read from three clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PairView {
    /// Engine time, nanoseconds since start.
    pub at_ns: u64,
    /// The system's monotonic clock.
    pub monotonic_ns: u64,
    /// UTC, nanoseconds since 1970.
    pub utc_ns: u64,
    /// Width of the reading; the moment is known to half of it.
    pub width_ns: u64,
}

/// A step of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepView {
    /// Size, nanoseconds; forwards if positive.
    pub by_ns: i64,
    /// When it was seen, nanoseconds since start.
    pub at_ns: u64,
}
