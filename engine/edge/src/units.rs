//! Units that public signatures carry, and the only conversions between them.
//!
//! Bounds: all arithmetic saturates; a clock that runs backwards yields a zero duration, never a
//! wrap.

/// A point or a span on the engine's tick counter (invariant TSC or a nanosecond fallback).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// A time span, or a moment on a clock that counts nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A count of ring slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slots(pub u32);

impl Ticks {
    /// Span from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(earlier.0))
    }

    /// The point `span` later.
    #[must_use]
    pub const fn plus(self, span: Ticks) -> Ticks {
        Ticks(self.0.saturating_add(span.0))
    }
}

impl Nanos {
    /// `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms.saturating_mul(1_000_000))
    }
}

/// Conversion factor between [`Ticks`] and [`Nanos`]: a 32.32 fixed-point multiplier each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRate {
    nanos_per_tick_q32: u64,
    ticks_per_nano_q32: u64,
}

impl TickRate {
    /// One tick is one nanosecond (virtual clock, monotonic fallback).
    pub const NANOS: TickRate = TickRate { nanos_per_tick_q32: 1 << 32, ticks_per_nano_q32: 1 << 32 };

    /// From a counter frequency.
    ///
    /// # Panics
    /// If `ticks_per_s` is outside 1 MHz..=20 GHz: no counter of that rate exists, the calibration
    /// is broken.
    #[must_use]
    pub fn from_hz(ticks_per_s: f64) -> TickRate {
        assert!((1e6..=2e10).contains(&ticks_per_s), "tick rate {ticks_per_s} Hz is not a counter's");
        let q32 = 4_294_967_296.0;
        TickRate {
            nanos_per_tick_q32: (1e9 / ticks_per_s * q32) as u64,
            ticks_per_nano_q32: (ticks_per_s / 1e9 * q32) as u64,
        }
    }

    /// From the multiplier that a board or a recording holds; `None` for one that no counter has.
    #[must_use]
    pub fn from_q32(nanos_per_tick_q32: u64) -> Option<TickRate> {
        let ticks_per_nano_q32 = u64::try_from((1u128 << 64).checked_div(u128::from(nanos_per_tick_q32))?).ok()?;
        // 1 MHz..=20 GHz, as `from_hz`.
        let is_a_counters = (1u64 << 32) / 20..=(1u64 << 32) * 1_000;
        is_a_counters.contains(&nanos_per_tick_q32).then_some(TickRate { nanos_per_tick_q32, ticks_per_nano_q32 })
    }

    /// Ticks to nanoseconds.
    #[must_use]
    pub const fn nanos(self, ticks: Ticks) -> Nanos {
        Nanos(scaled(ticks.0, self.nanos_per_tick_q32))
    }

    /// Nanoseconds to ticks.
    #[must_use]
    pub const fn ticks(self, nanos: Nanos) -> Ticks {
        Ticks(scaled(nanos.0, self.ticks_per_nano_q32))
    }

    /// The raw nanoseconds-per-tick multiplier (32.32), for readers of the board.
    #[must_use]
    pub const fn nanos_per_tick_q32(self) -> u64 {
        self.nanos_per_tick_q32
    }
}

/// `count` times a 32.32 multiplier, at most `u64::MAX`.
const fn scaled(count: u64, q32: u64) -> u64 {
    let product = (count as u128 * q32 as u128) >> 32;
    if product > u64::MAX as u128 { u64::MAX } else { product as u64 }
}

#[cfg(test)]
mod tests {
    use super::{Nanos, TickRate, Ticks};

    #[test]
    fn a_rate_is_read_from_its_multiplier_and_invalid_values_are_refused() {
        let rate = TickRate::from_hz(2.45e9);
        let back = TickRate::from_q32(rate.nanos_per_tick_q32()).unwrap_or(TickRate::NANOS);
        assert_eq!(back.nanos(Ticks(2_450_000_000)), rate.nanos(Ticks(2_450_000_000)));
        assert!(back.ticks(Nanos(1_000_000_000)).0.abs_diff(2_450_000_000) < 10);
        assert_eq!(TickRate::from_q32(1 << 32), Some(TickRate::NANOS));
        assert_eq!([0, 1, u64::MAX].map(TickRate::from_q32), [None; 3]);
    }

    #[test]
    fn ticks_to_nanos_and_back_keep_six_digits() {
        let rate = TickRate::from_hz(2.45e9);
        let ticks = rate.ticks(Nanos(1_000_000_000));
        assert!(ticks.0.abs_diff(2_450_000_000) < 10);
        assert!(rate.nanos(ticks).0.abs_diff(1_000_000_000) < 10);
    }

    /// 292 years once became 54 at 2.45 GHz.
    #[test]
    fn a_span_beyond_the_counter_becomes_the_longest() {
        let fast = TickRate::from_hz(2.45e9);
        assert_eq!(fast.ticks(Nanos(u64::MAX >> 1)), Ticks(u64::MAX));
        assert_eq!(TickRate::from_hz(1e6).nanos(Ticks(u64::MAX)), Nanos(u64::MAX));
    }

    #[test]
    fn a_clock_that_runs_backwards_gives_zero() {
        assert_eq!(Ticks(5).since(Ticks(9)), Ticks(0));
    }
}
