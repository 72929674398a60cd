//! The console's own clock, read only here.
//!
//! # Why not the engine's clock
//!
//! A console may show an engine that has ended, or another process; the age of the picture must
//! continue to grow.

use std::time::Instant;

/// Nanoseconds since the console started.
#[derive(Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// Starts at zero.
    pub fn start() -> Clock {
        Clock(now())
    }

    pub fn now_ns(&self) -> u64 {
        u64::try_from(now().duration_since(self.0).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[expect(clippy::disallowed_methods, reason = "the console's clock: a cold thread that outlives the engine's clock")]
fn now() -> Instant {
    Instant::now()
}

/// CPU time of this thread, nanoseconds.
pub fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
}
