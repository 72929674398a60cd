//! When the engine makes way for another user's thread, and when it takes its cores back.
//!
//! Pure: what was seen and the time go in, a move or none comes out. Run by the cold thread that looks at the neighbours,
//! once a look. Bounded by [`MOVES_EVERY_NS`]: at most one move a minute, there or back, whatever happens. Only what the
//! operator says now is done at once: a courtesy that is taken out of the profile ends.
//!
//! ```text
//!   own ──(another user's thread waited longer than wait_ms of a second; a minute since the last move)──▶ gives way
//!   own ◀──(quiet_s without such a thread and a minute since the last move, or no courtesy any more)────── gives way
//! ```

use crate::host::neighbours::Rival;
use crate::profile::Courtesy;

/// Between two moves.
pub(super) const MOVES_EVERY_NS: u64 = 60_000_000_000;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Run Lab, and at no higher priority than others.
    GiveWay,
    /// Run what the profile says.
    Return,
}

/// Whether the engine can make way at all: there is something that it could give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Some thread never yields, or goes before others.
    Cores,
    /// No thread does.
    Nothing,
}

/// The state between looks; times are nanoseconds of the caller's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manners {
    /// Gives way; the last time somebody waited.
    waited_for: Option<u64>,
    moved: Option<u64>,
}

impl Manners {
    /// One look at `now`: `waits` if another user's thread waited too long.
    pub(super) fn step(
        &mut self,
        now: u64,
        rule: Option<&Courtesy>,
        waits: Option<&Rival>,
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

/// The thread of another user that waited longest, if it is too long by `rule`. Where users are not seen nobody waits.
pub(super) fn waits_too_long<'a>(rivals: &'a [Rival], own_uid: Option<u32>, rule: &Courtesy) -> Option<&'a Rival> {
    let own_uid = own_uid?;
    let others = rivals.iter().filter(|rival| rival.uid.is_some_and(|uid| uid != own_uid));
    let worst = others.max_by_key(|rival| rival.waited_ns)?;
    // wait_ms of each second, in a span that need not be one.
    let limit_ns = u128::from(rule.wait_ms) * u128::from(worst.span_ns) / 1_000;
    (u128::from(worst.waited_ns) > limit_ns).then_some(worst)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Holds, MOVES_EVERY_NS, Manners, Move, waits_too_long};
    use crate::host::neighbours::Rival;
    use crate::profile::Courtesy;

    const SECOND: u64 = 1_000_000_000;
    const RULE: Courtesy = Courtesy { wait_ms: 100, quiet_s: 30 };

    fn rival(uid: Option<u32>, waited_ms: u64) -> Rival {
        let (pid, tid, command, core) = (7, 7, "make".to_owned(), 3);
        Rival { pid, tid, uid, command, core, waited_ns: waited_ms * 1_000_000, ran_ns: 0, span_ns: SECOND }
    }

    /// Steps once a second; who waits in which second, and the moves with their seconds.
    fn moves(seconds: std::ops::Range<u64>, manners: &mut Manners, waits: impl Fn(u64) -> bool) -> Vec<(u64, Move)> {
        let other = rival(Some(1), 500);
        let step = |second: u64| {
            let waits = waits(second).then_some(&other);
            Some((second, manners.step(second * SECOND, Some(&RULE), waits, Holds::Cores)?))
        };
        seconds.filter_map(step).collect()
    }

    #[test]
    fn it_gives_way_at_once_and_returns_after_quiet() {
        let mut manners = Manners::default();
        let found = moves(0..300, &mut manners, |second| (10..50).contains(&second));
        assert_eq!(found, [(10, Move::GiveWay), (79, Move::Return)]);
    }

    #[test]
    fn a_short_wait_keeps_it_away_for_a_minute_all_the_same() {
        let found = moves(0..300, &mut Manners::default(), |second| second == 10);
        assert_eq!(found, [(10, Move::GiveWay), (70, Move::Return)]);
    }

    #[test]
    fn a_neighbour_that_comes_and_goes_moves_it_at_most_once_a_minute() {
        let found = moves(0..3_600, &mut Manners::default(), |second| second % 37 == 0);
        assert!(found.len() > 10, "{found:?}");
        for pair in found.windows(2) {
            assert!((pair[1].0 - pair[0].0) * SECOND >= MOVES_EVERY_NS && pair[0].1 != pair[1].1, "{pair:?}");
        }
    }

    #[test]
    fn somebody_who_always_waits_keeps_it_away() {
        assert_eq!(moves(0..3_600, &mut Manners::default(), |_| true), [(0, Move::GiveWay)]);
    }

    #[test]
    fn an_engine_that_holds_nothing_or_has_no_rule_does_not_move() {
        let other = rival(Some(1), 500);
        let mut manners = Manners::default();
        assert_eq!(manners.step(0, Some(&RULE), Some(&other), Holds::Nothing), None);
        assert_eq!(manners.step(0, None, Some(&other), Holds::Cores), None);
    }

    #[test]
    fn taking_the_rule_away_ends_the_courtesy_at_once() {
        let other = rival(Some(1), 500);
        let mut manners = Manners::default();
        assert_eq!(manners.step(0, Some(&RULE), Some(&other), Holds::Cores), Some(Move::GiveWay));
        assert_eq!(manners.step(SECOND, None, Some(&other), Holds::Cores), Some(Move::Return));
        assert_eq!(manners, Manners { waited_for: None, moved: Some(SECOND) });
    }

    #[test]
    fn only_another_users_thread_counts_and_only_above_the_limit() {
        let waits = |rivals: &[Rival]| waits_too_long(rivals, Some(5), &RULE).map(|rival| rival.uid.unwrap());
        assert_eq!(waits(&[rival(Some(5), 900), rival(None, 900)]), None);
        assert_eq!(waits(&[rival(Some(1), 100)]), None);
        assert_eq!(waits(&[rival(Some(1), 101), rival(Some(2), 400), rival(Some(5), 900)]), Some(2));
        assert_eq!(waits_too_long(&[rival(Some(1), 900)], None, &RULE), None);
        // A look that took long: the limit is of each second.
        let slow = Rival { span_ns: 10 * SECOND, ..rival(Some(1), 900) };
        assert_eq!(waits(&[slow]), None);
    }
}
