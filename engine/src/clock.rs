//! The only source of time.
//!
//! Owns the tick counter (invariant TSC on x86-64, `cntvct_el0` on AArch64, the monotonic clock elsewhere), its rate,
//! and the virtual clock of the rehearsal. Any thread may read it; reading never blocks and never allocates. Bounds:
//! one calibration of [`CALIBRATION`] at start. Never corrects itself afterwards: wall time is taken once, at start.

use crate::units::{Nanos, TickRate, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the counter is compared with the monotonic clock at start.
pub const CALIBRATION: Duration = Duration::from_millis(20);

/// A tick counter with its rate and its zero.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    rate: TickRate,
    start: Ticks,
    started_utc: Duration,
}

#[derive(Clone, Debug)]
enum Source {
    Counter,
    Monotonic(Instant),
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's clock, calibrated. Takes [`CALIBRATION`].
    #[must_use]
    pub fn machine() -> Clock {
        let (source, rate) = match counter_rate() {
            Some(rate) => (Source::Counter, rate),
            None => (Source::Monotonic(monotonic_now()), TickRate::NANOS),
        };
        let started_utc = utc_now();
        let mut clock = Clock { source, rate, start: Ticks(0), started_utc };
        clock.start = clock.ticks();
        clock
    }

    /// A clock that shows `nanos`, which its owner moves.
    #[must_use]
    pub fn virtual_time(nanos: Arc<AtomicU64>) -> Clock {
        let start = Ticks(nanos.load(Ordering::Relaxed));
        Clock { source: Source::Virtual(nanos), rate: TickRate::NANOS, start, started_utc: Duration::ZERO }
    }

    /// Now.
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> Ticks {
        match &self.source {
            Source::Counter => Ticks(counter()),
            Source::Monotonic(origin) => Ticks(monotonic_now().duration_since(*origin).as_nanos() as u64),
            Source::Virtual(nanos) => Ticks(nanos.load(Ordering::Relaxed)),
        }
    }

    /// Ticks per nanosecond and back.
    #[must_use]
    pub fn rate(&self) -> TickRate {
        self.rate
    }

    /// The moment this clock was made.
    #[must_use]
    pub fn start(&self) -> Ticks {
        self.start
    }

    /// Nanoseconds from this clock's start to `at`; zero before it.
    #[must_use]
    pub fn since_start(&self, at: Ticks) -> Nanos {
        self.rate.nanos(at.since(self.start))
    }

    /// Wall time at this clock's start, since 1970.
    #[must_use]
    pub fn started_utc(&self) -> Duration {
        self.started_utc
    }

    /// What the ticks are, in words.
    #[must_use]
    pub fn source_name(&self) -> &'static str {
        match self.source {
            Source::Counter => "invariant counter",
            Source::Monotonic(_) => "monotonic clock (no invariant counter found)",
            Source::Virtual(_) => "virtual",
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this module is the one that may")]
fn monotonic_now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "this module is the one that may")]
fn utc_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Compares the counter with the monotonic clock; `None` without an invariant counter.
fn counter_rate() -> Option<TickRate> {
    if !counter_is_invariant() {
        return None;
    }
    let (wall, ticks) = (monotonic_now(), counter());
    let mut elapsed = wall.elapsed();
    while elapsed < CALIBRATION {
        std::hint::spin_loop();
        elapsed = wall.elapsed();
    }
    let span = counter().wrapping_sub(ticks);
    let hz = span as f64 / elapsed.as_secs_f64();
    (1e6..=2e10).contains(&hz).then(|| TickRate::from_hz(hz))
}

#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: `rdtsc` reads a counter and touches no memory; user access was granted or the process would have died
    // in calibration, before any thread runs.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn counter_is_invariant() -> bool {
    true // the architecture's generic timer runs at a fixed rate
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads the virtual count register, which user space may read on Linux; no memory is touched.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter_is_invariant() -> bool {
    false
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "harness")]
    use super::Clock;
    use crate::units::{Nanos, Ticks};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_machine_clock_agrees_with_the_monotonic_clock_within_a_percent() {
        let clock = Clock::machine();
        let (wall, from) = (std::time::Instant::now(), clock.ticks());
        while wall.elapsed().as_millis() < 20 {
            std::hint::spin_loop();
        }
        let (elapsed, span) = (wall.elapsed().as_nanos() as f64, clock.rate().nanos(clock.ticks().since(from)));
        // A descheduling between the two reads can only be seen as a difference; one retry's worth is tolerated.
        assert!((span.0 as f64 / elapsed - 1.0).abs() < 0.05, "{span:?} against {elapsed}");
    }

    #[test]
    fn the_virtual_clock_moves_only_when_moved() {
        let nanos = Arc::new(AtomicU64::new(5));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        assert_eq!(clock.ticks(), Ticks(5));
        nanos.store(25, Ordering::Relaxed);
        assert_eq!(clock.since_start(clock.ticks()), Nanos(20));
    }
}
