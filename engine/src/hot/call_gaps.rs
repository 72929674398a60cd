//! Time in which a role or a cold thread did not run, so that a suspended machine lets no deadline expire.
//!
//! Owns the last [`GAPS_MAX`] gaps between its calls that were longer than [`GAP`], or
//! [`GAP_OF_COLD_THREAD`].
//! A deadline compares the age of a shot or launch without these gaps: while this role did not run,
//! its device may not have run either. Bounds: older gaps are forgotten. A deadline can then only
//! expire earlier, by their length.

use crate::units::{Nanos, TickRate, Ticks};

/// Gaps remembered.
const GAPS_MAX: usize = 16;
/// Shorter gaps of a role are ordinary frames.
const GAP: Nanos = Nanos(500_000);
/// Shorter gaps of a cold thread that looks every millisecond are those of a busy machine.
const GAP_OF_COLD_THREAD: Nanos = Nanos::from_millis(100);

/// The gaps of one role.
#[derive(Debug)]
pub(crate) struct CallGaps {
    threshold: Ticks,
    last: Option<Ticks>,
    gaps: [(Ticks, Ticks); GAPS_MAX],
    next: usize,
}

impl CallGaps {
    /// Of a role.
    pub(crate) fn new(rate: TickRate) -> CallGaps {
        CallGaps::longer_than(rate.ticks(GAP))
    }

    /// Of a cold thread that looks every millisecond.
    pub(crate) fn of_cold_thread(rate: TickRate) -> CallGaps {
        CallGaps::longer_than(rate.ticks(GAP_OF_COLD_THREAD))
    }

    fn longer_than(threshold: Ticks) -> CallGaps {
        CallGaps { threshold, last: None, gaps: [(Ticks(0), Ticks(0)); GAPS_MAX], next: 0 }
    }

    /// Notes that the role is called at `now`.
    pub(crate) fn note(&mut self, now: Ticks) {
        if let Some(last) = self.last {
            let gap = now.since(last);
            if gap > self.threshold {
                self.gaps[self.next % GAPS_MAX] = (last, gap);
                self.next += 1;
            }
        }
        self.last = Some(now);
    }

    /// Whether something that began at `since` has lasted longer than `limit` by `now`, gaps since then not counted.
    pub(crate) fn is_overdue(&self, since: Ticks, now: Ticks, limit: Ticks) -> bool {
        now.since(since) > limit && now > self.due(since, limit)
    }

    /// When something that began at `since` has lasted for `limit`, gaps since then not counted.
    pub(crate) fn due(&self, since: Ticks, limit: Ticks) -> Ticks {
        let gaps = self.gaps.iter().filter(|(from, gap)| from.plus(*gap) > since && gap.0 > 0);
        let gaps = gaps.map(|(from, gap)| from.plus(*gap).since(since.max(*from)).0).sum::<u64>();
        since.plus(limit).plus(Ticks(gaps))
    }
}

#[cfg(test)]
mod tests {
    use super::CallGaps;
    use crate::units::{TickRate, Ticks};

    #[test]
    fn a_suspended_machine_expires_nothing_and_a_slow_device_does() {
        let mut gaps = CallGaps::new(TickRate::NANOS);
        for now in (0..2_000_000).step_by(100_000) {
            gaps.note(Ticks(now));
        }
        // The machine stands still for 50 ms; something began just before.
        gaps.note(Ticks(52_000_000));
        assert!(!gaps.is_overdue(Ticks(1_850_000), Ticks(52_000_000), Ticks(1_000_000)));
        // It goes on, and the thing still does not end.
        for now in (52_000_000..54_000_000).step_by(100_000) {
            gaps.note(Ticks(now));
        }
        assert!(gaps.is_overdue(Ticks(1_850_000), Ticks(54_000_000), Ticks(1_000_000)));
    }

    #[test]
    fn a_cold_thread_has_not_waited_while_its_process_was_stopped() {
        let (second, limit) = (1_000_000_000, Ticks(10_000_000_000));
        let mut gaps = CallGaps::of_cold_thread(TickRate::NANOS);
        gaps.note(Ticks(0));
        gaps.note(Ticks(11 * second));
        assert!(!gaps.is_overdue(Ticks(0), Ticks(11 * second), limit));
        // Ticks that are late because the machine is busy count.
        (0..=100).for_each(|tick| gaps.note(Ticks(11 * second + tick * second / 10)));
        assert!(gaps.is_overdue(Ticks(0), Ticks(22 * second), limit));
    }

    #[test]
    fn a_gap_before_the_beginning_does_not_count() {
        let mut gaps = CallGaps::new(TickRate::NANOS);
        gaps.note(Ticks(0));
        gaps.note(Ticks(10_000_000));
        assert!(gaps.is_overdue(Ticks(10_000_000), Ticks(12_000_000), Ticks(1_000_000)));
    }
}
