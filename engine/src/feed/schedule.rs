//! Arrival times of shots.
//!
//! Owns the start of the present rate and the shot count at that time. Arrivals are evenly spaced.
//! A change of rate starts a new count and keeps the backlog; while the feed is held no shot
//! arrives and none is due. A shot that its source does not have yet arrives when it comes. No bounds
//! of its own.

use crate::hot::Flow;
use crate::units::{TickRate, Ticks};

/// Arrivals of one silo.
#[derive(Debug)]
pub(super) struct Schedule {
    /// This silo's share of the engine's rate.
    fraction: f64,
    rate_hz: Option<f64>,
    flow: Flow,
    /// Time and count at which the present rate began; `None` before the first shot.
    start: Option<(Ticks, u64)>,
    ticks_per_shot: f64,
}

impl Schedule {
    pub(super) fn new(fraction: f64) -> Schedule {
        Schedule { fraction, rate_hz: None, flow: Flow::Runs, start: None, ticks_per_shot: 0.0 }
    }

    /// Applies the engine's rate (`None`: unpaced) from `now` on, with `submitted` shots sent.
    pub(super) fn follow(&mut self, (rate_hz, flow): (Option<f64>, Flow), rate: TickRate, now: Ticks, submitted: u64) {
        if self.start.is_some() && rate_hz == self.rate_hz && flow == self.flow {
            return;
        }
        self.start = Some((now, self.arrived(now, submitted)));
        (self.rate_hz, self.flow) = (rate_hz, flow);
        let ticks_per_s = rate.ticks(crate::units::Nanos(1_000_000_000)).0 as f64;
        self.ticks_per_shot = rate_hz.map_or(0.0, |hz| ticks_per_s / (hz * self.fraction).max(1e-9));
    }

    /// The source does not have the shot that is due: it and those after it are due from the next
    /// [`Schedule::follow`] on.
    pub(super) fn interrupt(&mut self) {
        self.start = None;
    }

    /// Whether shots have a rate; otherwise they are unpaced.
    pub(super) fn has_rate(&self) -> bool {
        self.rate_hz.is_some()
    }

    /// The scheduled arrival of shot `n`, if it has arrived by `now`.
    pub(super) fn due(&self, n: u64, now: Ticks) -> Option<Ticks> {
        let (start, from) = self.start?;
        if self.flow == Flow::Held {
            return None;
        }
        if self.rate_hz.is_none() {
            return Some(now);
        }
        // Backlog of an earlier rate counts as due when the present rate began.
        let due = start.plus(Ticks((n.saturating_sub(from) as f64 * self.ticks_per_shot) as u64));
        (due <= now).then_some(due)
    }

    /// Shots that have arrived by `now`; at least `submitted`.
    pub(super) fn arrived(&self, now: Ticks, submitted: u64) -> u64 {
        let Some((start, from)) = self.start else { return submitted };
        if self.rate_hz.is_none() || self.flow == Flow::Held {
            return submitted.max(from);
        }
        (from + 1 + (now.since(start).0 as f64 / self.ticks_per_shot) as u64).max(submitted)
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use crate::hot::Flow;
    use crate::units::{TickRate, Ticks};

    #[test]
    fn arrivals_are_evenly_spaced_and_counted_whether_or_not_they_are_taken() {
        let mut schedule = Schedule::new(0.5);
        schedule.follow((Some(2e6), Flow::Runs), TickRate::NANOS, Ticks(1_000), 0);
        assert_eq!(schedule.due(0, Ticks(1_000)), Some(Ticks(1_000)));
        assert_eq!(schedule.due(1, Ticks(1_500)), None);
        assert_eq!(schedule.due(1, Ticks(9_000)), Some(Ticks(2_000)));
        assert_eq!(schedule.arrived(Ticks(6_000), 2), 6);
    }

    #[test]
    fn a_change_of_rate_loses_no_backlog() {
        let mut schedule = Schedule::new(1.0);
        schedule.follow((Some(1e6), Flow::Runs), TickRate::NANOS, Ticks(0), 0);
        schedule.follow((Some(1e3), Flow::Runs), TickRate::NANOS, Ticks(10_000), 0);
        assert!(schedule.arrived(Ticks(10_000), 0) >= 11);
        assert_eq!(schedule.due(5, Ticks(10_000)), Some(Ticks(10_000)));
        assert_eq!(schedule.due(13, Ticks(10_000)), None);
    }

    #[test]
    fn no_shot_arrives_while_held_or_is_made_up_for_afterwards() {
        let mut schedule = Schedule::new(1.0);
        schedule.follow((Some(1e6), Flow::Runs), TickRate::NANOS, Ticks(0), 0);
        schedule.follow((Some(1e6), Flow::Held), TickRate::NANOS, Ticks(9_500), 10);
        assert_eq!((schedule.due(5, Ticks(10_000)), schedule.arrived(Ticks(1_000_000), 10)), (None, 10));
        schedule.follow((Some(1e6), Flow::Runs), TickRate::NANOS, Ticks(1_000_000), 10);
        assert_eq!(schedule.due(10, Ticks(1_000_000)), Some(Ticks(1_000_000)));
        assert_eq!((schedule.due(11, Ticks(1_000_500)), schedule.arrived(Ticks(1_002_500), 10)), (None, 13));
    }

    #[test]
    fn a_rate_after_an_unpaced_time_counts_from_the_shots_submitted_by_then() {
        let mut schedule = Schedule::new(1.0);
        schedule.follow((None, Flow::Runs), TickRate::NANOS, Ticks(0), 0);
        assert_eq!(schedule.due(0, Ticks(5)), Some(Ticks(5)));
        schedule.follow((Some(1e6), Flow::Runs), TickRate::NANOS, Ticks(1_000), 1_000_000);
        assert_eq!(schedule.due(1_000_000, Ticks(1_000)), Some(Ticks(1_000)));
        assert_eq!(schedule.due(1_000_001, Ticks(2_000)), Some(Ticks(2_000)));
    }
}
