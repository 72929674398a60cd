//! When the engine yields its cores to another user's thread, and when it takes them back.
//!
//! Pure: takes the scan's result and the time, returns a move or none. Runs on the thread that
//! scans for competitors, once a scan. Bounded by [`MOVES_EVERY_NS`]: at most one move a minute in
//! either direction. Only a change by the operator acts at once: a courtesy removed from the
//! profile ends immediately.
//!
//! ```text
//!   own ──(another user's thread waited longer than wait_ms of a second; a minute since the last move)──▶ yielded
//!   own ◀──(quiet_s without such a thread and a minute since the last move, or no courtesy any more)────── yielded
//! ```

use crate::host::neighbours::Competitor;
use crate::profile::Courtesy;

/// Shortest time between two moves.
pub(super) const MOVES_EVERY_NS: u64 = 60_000_000_000;

/// A change of the cores' use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Run `Lab`, without a raised priority.
    GiveWay,
    /// Run the profile's policies.
    Return,
}

/// Whether the engine has cores to yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Some thread never yields, or has a raised priority.
    Cores,
    /// No thread does.
    Nothing,
}

/// State between scans; times are nanoseconds of the caller's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct YieldPolicy {
    /// The cores are yielded; the time at which a thread last waited.
    waited_for: Option<u64>,
    moved: Option<u64>,
}

impl YieldPolicy {
    /// One scan at `now`: `waits` if another user's thread waited too long.
    pub(super) fn step(
        &mut self,
        now: u64,
        rule: Option<&Courtesy>,
        waits: Option<&Competitor>,
        holds: Holds,
    ) -> Option<Move> {
        let rested = self.moved.is_none_or(|moved| now.saturating_sub(moved) >= MOVES_EVERY_NS);
        match (self.waited_for, rule) {
            (None, None) => None,
            (None, Some(_)) if waits.is_some() && holds == Holds::Cores && rested => {
                (self.waited_for, self.moved) = (Some(now), Some(now));
                Some(Move::GiveWay)
            }
            (None, Some(_)) => None,
            (Some(_), Some(_)) if waits.is_some() => {
                self.waited_for = Some(now);
                None
            }
            (Some(last), Some(rule)) => {
                let quiet = now.saturating_sub(last) >= u64::from(rule.quiet_s) * 1_000_000_000;
                (quiet && rested).then(|| self.back(now))
            }
            (Some(_), None) => Some(self.back(now)),
        }
    }

    fn back(&mut self, now: u64) -> Move {
        (self.waited_for, self.moved) = (None, Some(now));
        Move::Return
    }
}

/// The thread of another user that waited longest, if longer than `rule` permits. Where users are
/// not visible, none.
pub(super) fn waits_too_long<'a>(
    competitors: &'a [Competitor],
    own_uid: Option<u32>,
    rule: &Courtesy,
) -> Option<&'a Competitor> {
    let own_uid = own_uid?;
    let others = competitors.iter().filter(|competitor| competitor.uid.is_some_and(|uid| uid != own_uid));
    let worst = others.max_by_key(|competitor| competitor.waited_ns)?;
    // `wait_ms` applies to each second; the span may be longer or shorter. No thread waits for
    // longer than all of it.
    let limit_ns = u128::from(rule.wait_ms) * u128::from(worst.span_ns) / 1_000;
    let waits_always = worst.waited_ns > 0 && worst.waited_ns >= worst.span_ns;
    (waits_always || u128::from(worst.waited_ns) > limit_ns).then_some(worst)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Holds, MOVES_EVERY_NS, Move, YieldPolicy, waits_too_long};
    use crate::host::neighbours::Competitor;
    use crate::profile::Courtesy;

    const SECOND: u64 = 1_000_000_000;
    const RULE: Courtesy = Courtesy { wait_ms: 100, quiet_s: 30 };

    fn competitor(uid: Option<u32>, waited_ms: u64) -> Competitor {
        Competitor {
            pid: 7,
            tid: 7,
            uid,
            command: "make".to_owned(),
            core: 3,
            waited_ns: waited_ms * 1_000_000,
            ran_ns: 0,
            span_ns: SECOND,
        }
    }

    /// Steps once a second; who waits in which second, and the moves with their seconds.
    fn moves(seconds: std::ops::Range<u64>, policy: &mut YieldPolicy, waits: impl Fn(u64) -> bool) -> Vec<(u64, Move)> {
        let other = competitor(Some(1), 500);
        let step = |second: u64| {
            let waits = waits(second).then_some(&other);
            Some((second, policy.step(second * SECOND, Some(&RULE), waits, Holds::Cores)?))
        };
        seconds.filter_map(step).collect()
    }

    #[test]
    fn the_engine_yields_at_once_and_returns_after_quiet() {
        let mut policy = YieldPolicy::default();
        let found = moves(0..300, &mut policy, |second| (10..50).contains(&second));
        assert_eq!(found, [(10, Move::GiveWay), (79, Move::Return)]);
    }

    #[test]
    fn after_a_short_wait_the_cores_stay_yielded_for_a_minute() {
        let found = moves(0..300, &mut YieldPolicy::default(), |second| second == 10);
        assert_eq!(found, [(10, Move::GiveWay), (70, Move::Return)]);
    }

    #[test]
    fn an_intermittent_competitor_causes_at_most_one_move_a_minute() {
        let found = moves(0..3_600, &mut YieldPolicy::default(), |second| second % 37 == 0);
        assert!(found.len() > 10, "{found:?}");
        for pair in found.windows(2) {
            assert!((pair[1].0 - pair[0].0) * SECOND >= MOVES_EVERY_NS && pair[0].1 != pair[1].1, "{pair:?}");
        }
    }

    #[test]
    fn a_permanent_competitor_keeps_the_cores_yielded() {
        assert_eq!(moves(0..3_600, &mut YieldPolicy::default(), |_| true), [(0, Move::GiveWay)]);
    }

    #[test]
    fn without_held_cores_or_a_rule_nothing_moves() {
        let other = competitor(Some(1), 500);
        let mut policy = YieldPolicy::default();
        assert_eq!(policy.step(0, Some(&RULE), Some(&other), Holds::Nothing), None);
        assert_eq!(policy.step(0, None, Some(&other), Holds::Cores), None);
    }

    #[test]
    fn removing_the_rule_ends_the_courtesy_at_once() {
        let other = competitor(Some(1), 500);
        let mut policy = YieldPolicy::default();
        assert_eq!(policy.step(0, Some(&RULE), Some(&other), Holds::Cores), Some(Move::GiveWay));
        assert_eq!(policy.step(SECOND, None, Some(&other), Holds::Cores), Some(Move::Return));
        assert_eq!(policy, YieldPolicy { waited_for: None, moved: Some(SECOND) });
    }

    #[test]
    fn only_threads_of_other_users_above_the_limit_count() {
        let waits = |competitors: &[Competitor]| {
            waits_too_long(competitors, Some(5), &RULE).map(|competitor| competitor.uid.unwrap())
        };
        assert_eq!(waits(&[competitor(Some(5), 900), competitor(None, 900)]), None);
        assert_eq!(waits(&[competitor(Some(1), 100)]), None);
        assert_eq!(waits(&[competitor(Some(1), 101), competitor(Some(2), 400), competitor(Some(5), 900)]), Some(2));
        assert_eq!(waits_too_long(&[competitor(Some(1), 900)], None, &RULE), None);
        // A long span: the limit applies to each second of it.
        let slow = Competitor { span_ns: 10 * SECOND, ..competitor(Some(1), 900) };
        assert_eq!(waits(&[slow]), None);
        let all = Courtesy { wait_ms: 1_000, ..RULE };
        let waits = |waited_ms| waits_too_long(&[competitor(Some(1), waited_ms)], Some(5), &all).is_some();
        assert_eq!([waits(999), waits(1_000)], [false, true], "all of each second");
    }
}
