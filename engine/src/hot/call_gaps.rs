//! Time in which a role or a cold thread did not run, so that a suspended machine lets no deadline expire.
//!
//! Owns the gaps between its calls that were longer than [`GAP`] or [`GAP_OF_COLD_THREAD`]: the
//! last [`GAPS_MAX`], and as many of those before them, the longest of the last [`KEPT`].
//! A deadline compares the age of a shot or launch without these gaps: while this role did not run,
//! its device may not have run either. Bounds: further gaps are forgotten. A deadline can then only
//! expire earlier, by their length. On a busy machine short gaps follow a long one at once.

use crate::units::{Nanos, TickRate, Ticks};

/// Gaps remembered of either kind.
const GAPS_MAX: usize = 16;
/// A gap that ended longer ago is forgotten first: no deadline is longer than half of it.
const KEPT: Nanos = Nanos::from_millis(120_000);
/// Shorter gaps of a role are ordinary frames.
const GAP: Nanos = Nanos(500_000);
/// Shorter gaps of a cold thread that looks every millisecond are those of a busy machine.
const GAP_OF_COLD_THREAD: Nanos = Nanos::from_millis(100);

/// The gaps of one role.
#[derive(Debug)]
pub(crate) struct CallGaps {
    threshold: Ticks,
    kept: Ticks,
    last: Option<Ticks>,
    /// Begin and length of each.
    recent: [(Ticks, Ticks); GAPS_MAX],
    next: usize,
    longest: [(Ticks, Ticks); GAPS_MAX],
}

impl CallGaps {
    /// Of a role.
    pub(crate) fn new(rate: TickRate) -> CallGaps {
        CallGaps::longer_than(GAP, rate)
    }

    /// Of a cold thread that looks every millisecond.
    pub(crate) fn of_cold_thread(rate: TickRate) -> CallGaps {
        CallGaps::longer_than(GAP_OF_COLD_THREAD, rate)
    }

    fn longer_than(threshold: Nanos, rate: TickRate) -> CallGaps {
        let (threshold, kept) = (rate.ticks(threshold), rate.ticks(KEPT));
        let none = [(Ticks(0), Ticks(0)); GAPS_MAX];
        CallGaps { threshold, kept, last: None, recent: none, next: 0, longest: none }
    }

    /// Notes that the role is called at `now`.
    pub(crate) fn note(&mut self, now: Ticks) {
        if let Some(last) = self.last {
            let gap = now.since(last);
            if gap > self.threshold {
                let before = std::mem::replace(&mut self.recent[self.next % GAPS_MAX], (last, gap));
                self.next += 1;
                let kept = self.kept;
                let worth = |(from, gap): (Ticks, Ticks)| if now.since(from.plus(gap)) > kept { 0 } else { gap.0 };
                if let Some(least) = self.longest.iter_mut().min_by_key(|one| worth(**one))
                    && worth(*least) < worth(before)
                {
                    *least = before;
                }
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
        let gaps = self.recent.iter().chain(&self.longest).filter(|(from, gap)| from.plus(*gap) > since && gap.0 > 0);
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
    fn a_long_gap_is_remembered_while_many_short_ones_follow_and_later_forgotten() {
        let second = 1_000_000_000;
        let mut gaps = CallGaps::new(TickRate::NANOS);
        gaps.note(Ticks(second));
        let mut now = 4 * second;
        gaps.note(Ticks(now));
        for _ in 0..100 {
            now += second / 1_000;
            gaps.note(Ticks(now));
        }
        // Of the 3.1 s since the beginning no more than 0.1 s count.
        assert!(!gaps.is_overdue(Ticks(second), Ticks(now), Ticks(second / 10)));
        assert!(gaps.is_overdue(Ticks(second), Ticks(now), Ticks(second / 20)));
        // Long ones that ended minutes ago do not keep others out.
        for _ in 0..32 {
            now += 10 * second;
            gaps.note(Ticks(now));
        }
        for _ in 0..400_000 {
            now += 400_000;
            gaps.note(Ticks(now));
        }
        now += 3 * second;
        gaps.note(Ticks(now));
        for _ in 0..17 {
            now += second / 1_000;
            gaps.note(Ticks(now));
        }
        assert!(!gaps.is_overdue(Ticks(now - 4 * second), Ticks(now), Ticks(second)));
    }

    #[test]
    fn a_gap_before_the_beginning_does_not_count() {
        let mut gaps = CallGaps::new(TickRate::NANOS);
        gaps.note(Ticks(0));
        gaps.note(Ticks(10_000_000));
        assert!(gaps.is_overdue(Ticks(10_000_000), Ticks(12_000_000), Ticks(1_000_000)));
    }
}
