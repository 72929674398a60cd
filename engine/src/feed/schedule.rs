//! When the next shot is due.
//!
//! Owns the start of the present rate and the count at that moment. Arrivals are evenly spaced; a change of rate starts
//! a new count and loses no backlog. No bounds of its own.

use crate::units::{TickRate, Ticks};

/// One silo's arrivals.
#[derive(Debug)]
pub(super) struct Schedule {
    /// This silo's share of the engine's rate.
    fraction: f64,
    rate_hz: Option<f64>,
    /// Moment and count from which the present rate counts; `None` before the first shot.
    start: Option<(Ticks, u64)>,
    ticks_per_shot: f64,
    /// Shots that had arrived when the present rate began.
    arrived_before: u64,
}

impl Schedule {
    pub(super) fn new(fraction: f64) -> Schedule {
        Schedule { fraction, rate_hz: None, start: None, ticks_per_shot: 0.0, arrived_before: 0 }
    }

    /// Takes over the engine's rate (`None`: as fast as slots come free) as of `now`.
    pub(super) fn follow(&mut self, rate_hz: Option<f64>, rate: TickRate, now: Ticks) {
        if self.start.is_some() && rate_hz == self.rate_hz {
            return;
        }
        self.arrived_before = self.arrived(now, 0);
        self.rate_hz = rate_hz;
        self.start = Some((now, self.arrived_before));
        let ticks_per_s = rate.ticks(crate::units::Nanos(1_000_000_000)).0 as f64;
        self.ticks_per_shot = rate_hz.map_or(0.0, |hz| ticks_per_s / (hz * self.fraction).max(1e-9));
    }

    /// The scheduled arrival of shot `n`, if it has come by `now`.
    pub(super) fn due(&self, n: u64, now: Ticks) -> Option<Ticks> {
        let (start, from) = self.start?;
        if self.rate_hz.is_none() {
            return Some(now);
        }
        // Backlog of an earlier rate counts as due when the present one began.
        let due = start.plus(Ticks((n.saturating_sub(from) as f64 * self.ticks_per_shot) as u64));
        (due <= now).then_some(due)
    }

    /// Shots that have arrived by `now`; at least `submitted`.
    pub(super) fn arrived(&self, now: Ticks, submitted: u64) -> u64 {
        let Some((start, from)) = self.start else { return submitted };
        if self.rate_hz.is_none() {
            return submitted.max(from);
        }
        (from + 1 + (now.since(start).0 as f64 / self.ticks_per_shot) as u64).max(submitted)
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use crate::units::{TickRate, Ticks};

    #[test]
    fn arrivals_are_evenly_spaced_and_counted_whether_or_not_they_are_taken() {
        let mut schedule = Schedule::new(0.5);
        schedule.follow(Some(2e6), TickRate::NANOS, Ticks(1_000));
        assert_eq!(schedule.due(0, Ticks(1_000)), Some(Ticks(1_000)));
        assert_eq!(schedule.due(1, Ticks(1_500)), None);
        assert_eq!(schedule.due(1, Ticks(9_000)), Some(Ticks(2_000)));
        assert_eq!(schedule.arrived(Ticks(6_000), 2), 6);
    }

    #[test]
    fn a_change_of_rate_loses_no_backlog() {
        let mut schedule = Schedule::new(1.0);
        schedule.follow(Some(1e6), TickRate::NANOS, Ticks(0));
        schedule.follow(Some(1e3), TickRate::NANOS, Ticks(10_000));
        assert!(schedule.arrived(Ticks(10_000), 0) >= 11);
        assert_eq!(schedule.due(5, Ticks(10_000)), Some(Ticks(10_000)));
        assert_eq!(schedule.due(13, Ticks(10_000)), None);
    }
}
