//! Overflow: decides the outcome of a shot that has arrived and finds no slot, or no room on the
//! route to the silo that decodes its stream.
//!
//! Owns the overflow episodes, and judges each shot that arrived in one. Part of the feed, on its
//! thread. Bounds: one time for each silo; keeps nothing of a shot. Never answers a shot itself.
//! Source: seed 003, `IQueueOverflowHandler`.
//!
//! # Why a refused shot goes through a slot
//! An answer closes a ticket, and only slots have tickets. A refused shot is written with the error
//! word in place of its payload's address. Dispatch answers it at once, without a worker or a
//! decoder, in its turn in the stream. So its answer takes the only path of answers, and the state
//! of its stream continues without it. The refusal waits for a free slot, as any answered shot
//! must.
//!
//! # Why a full lane is an overflow, too
//! A stream that is decoded in another silo waits there for a slot, and the lane to that silo is as
//! long as a part of the ring. If shots behind the lane waited without a limit, a moved stream
//! would escape every strategy. The refusal goes through the lane with the shot, because the
//! tombstone belongs where the stream's state is.
//!
//! # Why `Migrate` does not move a shot
//! `Migrate` moves a stream with its state; the shots that wait at the source then follow it. The
//! director moves the stream, because it sees this episode and knows the other silos
//! ([`crate::placement::relief`]). Until then a shot waits, as under `Block`.
//!
//! # Why gaps between calls of the feed do not count
//! After a pause of one second every shot of that second has waited; answering them with errors
//! would turn one fault into two.

use crate::board::{self, FeedBlock, StreamFeedBlock};
use crate::hot::{CallGaps, Settings};
use crate::pipe::Pressure;
use crate::profile::OverflowStrategy;
use crate::streams::OverflowOutcome;
use crate::units::{TickRate, Ticks};
use pinwheel_edge::slot::word::ErrorCode;

/// An episode: from the first shot without a slot until no arrived shot waits.
#[derive(Clone, Copy, Debug)]
struct Episode {
    began: Ticks,
    /// When a ring or a lane was last found full.
    full_at: Ticks,
}

/// Destination of a waiting shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// The silo that decodes its stream.
    pub(super) silo: usize,
    /// Whether it goes straight into a slot of the feed's own silo.
    pub(super) is_direct: bool,
    /// Whether it goes into a stage, because its stream moves or is held.
    pub(super) is_staged: bool,
    /// When its stream was routed to that silo; zero: from the start.
    pub(super) routed_since: Ticks,
}

/// Overflow state of one feed.
#[derive(Debug)]
pub(super) struct Overflow {
    call_gaps: CallGaps,
    rate: TickRate,
    episode: Option<Episode>,
    /// For each silo: when its ring, or the lane to it, was last found full.
    full_at: Box<[Ticks]>,
    /// When a stage was last found full.
    stage_full_at: Ticks,
}

impl Overflow {
    pub(super) fn new(rate: TickRate, silos: usize) -> Overflow {
        let full_at = vec![Ticks(0); silos].into();
        Overflow { call_gaps: CallGaps::new(rate), rate, episode: None, full_at, stage_full_at: Ticks(0) }
    }

    /// Notes that the feed is called.
    pub(super) fn note(&mut self, now: Ticks) {
        self.call_gaps.note(now);
    }

    /// An arrived shot found no slot, or no room on its route.
    pub(super) fn full(&mut self, bound: Bound, now: Ticks, block: &FeedBlock, pressure: &Pressure) {
        let episode = self.episode.get_or_insert_with(|| {
            board::add(&block.overflow_episodes, 1);
            board::set(&block.overflow_since, now.0.max(1));
            Episode { began: now, full_at: now }
        });
        episode.full_at = now;
        self.full_at[bound.silo] = now;
        board::set(&block.overflow_silo, bound.silo as u64);
        // Dispatch of this silo cannot relieve a shortage elsewhere.
        pressure.set(bound.is_direct);
    }

    /// An arrived shot found the stage of its moving stream full. No silo is full: nothing is
    /// dropped and no stream has to leave, but shots behind it are late all the same.
    pub(super) fn stage_full(&mut self, now: Ticks) {
        self.stage_full_at = now;
    }

    /// No arrived shot waits.
    pub(super) fn clear(&mut self, now: Ticks, block: &FeedBlock, pressure: &Pressure) {
        let Some(episode) = self.episode.take() else { return };
        pressure.set(false);
        let (span, tail) = (now.since(episode.began), now.since(episode.full_at));
        for (word, ticks) in [(&block.overflow_ticks_max, span), (&block.overflow_recovery_ticks_max, tail)] {
            board::set(word, board::get(word).max(ticks.0));
        }
        board::set(&block.overflow_since, 0);
    }

    /// The outcome of a shot that now has room at `bound`. It was due at `scheduled`; `waiting`
    /// shots have arrived, including this one. `None`: it did not have to wait.
    #[inline]
    pub(super) fn judge(
        &self,
        scheduled: Ticks,
        bound: Bound,
        waiting: impl FnOnce() -> u64,
        now: Ticks,
        settings: &Settings,
    ) -> Option<OverflowOutcome> {
        if self.episode.is_none() && scheduled > self.stage_full_at {
            return None;
        }
        let strategy = settings.overflow_strategy();
        let limit = self.rate.ticks(settings.overflow_deadline());
        let Some(episode) = self.episode.filter(|episode| scheduled <= episode.full_at) else {
            let drops = matches!(strategy, OverflowStrategy::DropNew | OverflowStrategy::DropOldest);
            let is_held = scheduled <= self.stage_full_at && !drops;
            return (is_held && self.call_gaps.is_overdue(scheduled, now, limit)).then_some(OverflowOutcome::Expired);
        };
        debug_assert!(episode.began <= episode.full_at, "an episode begins with a full ring");
        // If it waited behind a shot for another, full silo, it is not dropped.
        let is_its_own = scheduled <= self.full_at[bound.silo];
        Some(match strategy {
            OverflowStrategy::DropNew if is_its_own => OverflowOutcome::DroppedNew,
            OverflowStrategy::DropOldest if is_its_own && waiting() > settings.overflow_keep_shots() => {
                OverflowOutcome::DroppedOldest
            }
            OverflowStrategy::DropNew | OverflowStrategy::DropOldest => OverflowOutcome::Waited,
            OverflowStrategy::Block | OverflowStrategy::CpuFallback | OverflowStrategy::Migrate => {
                match self.call_gaps.is_overdue(scheduled, now, limit) {
                    true => OverflowOutcome::Expired,
                    // It was due while its stream was still at the previous silo.
                    false if strategy == OverflowStrategy::Migrate && bound.routed_since > scheduled => {
                        OverflowOutcome::SentElsewhere
                    }
                    false => OverflowOutcome::Waited,
                }
            }
        })
    }
}

/// The error that a shot with this outcome is answered with; `None`: it is decoded.
pub(super) const fn error_of(outcome: OverflowOutcome) -> Option<ErrorCode> {
    match outcome {
        OverflowOutcome::Expired => Some(ErrorCode::OverflowDeadline),
        OverflowOutcome::DroppedOldest => Some(ErrorCode::DroppedOldest),
        OverflowOutcome::DroppedNew => Some(ErrorCode::DroppedNew),
        OverflowOutcome::Waited | OverflowOutcome::SentToCpu | OverflowOutcome::SentElsewhere => None,
    }
}

/// Counts the outcome of `shots` shots of a silo and of a stream.
pub(super) fn count(outcome: OverflowOutcome, shots: u64, block: &FeedBlock, stream: &StreamFeedBlock) {
    board::add(&block.overflow[outcome as usize], shots);
    board::add(&stream.overflow[outcome as usize], shots);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Bound, Overflow, Pressure, error_of};
    use crate::board::{self, Board, Place, Shape};
    use crate::hot::Settings;
    use crate::profile::{OverflowStrategy, Profile};
    use crate::streams::OverflowOutcome;
    use crate::units::{TickRate, Ticks};

    const MS: u64 = 1_000_000;
    const HERE: Bound = Bound { silo: 0, is_direct: true, is_staged: false, routed_since: Ticks(0) };
    const ELSEWHERE: Bound = Bound { silo: 1, is_direct: false, is_staged: false, routed_since: Ticks(0) };

    struct Bench {
        overflow: Overflow,
        pressure: Pressure,
        settings: Settings,
        board: Board,
    }

    /// With a deadline of 5 ms and a limit of 4 shots; the ring was found full at 10 ms.
    fn full(strategy: OverflowStrategy) -> Bench {
        let profile = Profile::load("lab", None).unwrap().0;
        let settings = Settings::new(&profile.limits);
        let rule = crate::profile::Overflow { strategy, deadline_ms: 5, keep_shots: 4 };
        settings.set_overflow(&rule);
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let mut overflow = Overflow::new(TickRate::NANOS, 2);
        let pressure = Pressure::default();
        overflow.full(HERE, Ticks(10 * MS), board.feed(0), &pressure);
        Bench { overflow, pressure, settings, board }
    }

    impl Bench {
        fn judge(&self, scheduled_ms: u64, waiting: u64, now_ms: u64) -> Option<OverflowOutcome> {
            self.judge_bound(HERE, scheduled_ms, waiting, now_ms)
        }

        fn judge_bound(&self, bound: Bound, scheduled_ms: u64, waiting: u64, now_ms: u64) -> Option<OverflowOutcome> {
            self.overflow.judge(Ticks(scheduled_ms * MS), bound, || waiting, Ticks(now_ms * MS), &self.settings)
        }

        fn run_until(&mut self, ms: u64) {
            (0..=ms * 10).for_each(|tenth| self.overflow.note(Ticks(tenth * MS / 10)));
        }
    }

    #[test]
    fn a_blocked_shot_waits_up_to_its_deadline_and_no_longer() {
        let mut bench = full(OverflowStrategy::Block);
        bench.run_until(20);
        assert_eq!(bench.judge(9, 3, 13), Some(OverflowOutcome::Waited));
        assert_eq!(bench.judge(9, 3, 15), Some(OverflowOutcome::Expired));
        assert_eq!(bench.judge(11, 3, 15), None, "it arrived after the ring was last found full");
    }

    #[test]
    fn a_paused_feed_expires_no_shot() {
        let mut bench = full(OverflowStrategy::Block);
        bench.run_until(10);
        bench.overflow.note(Ticks(500 * MS));
        assert_eq!(bench.judge(10, 3, 500), Some(OverflowOutcome::Waited));
    }

    #[test]
    fn the_oldest_or_the_newest_go_as_the_strategy_says() {
        let oldest = full(OverflowStrategy::DropOldest);
        assert_eq!(oldest.judge(9, 5, 11), Some(OverflowOutcome::DroppedOldest));
        assert_eq!(oldest.judge(9, 4, 11), Some(OverflowOutcome::Waited), "the newest four stay");
        let newest = full(OverflowStrategy::DropNew);
        assert_eq!(newest.judge(9, 1, 11), Some(OverflowOutcome::DroppedNew));
        assert_eq!(newest.judge(11, 1, 11), None, "the ring was not full when it arrived");
    }

    #[test]
    fn shots_for_another_silo_are_judged_alike_but_not_dropped_for_a_full_local_ring() {
        let mut newest = full(OverflowStrategy::DropNew);
        assert_eq!(
            newest.judge_bound(ELSEWHERE, 9, 1, 11),
            Some(OverflowOutcome::Waited),
            "it waited behind another shot"
        );
        newest.overflow.full(ELSEWHERE, Ticks(12 * MS), newest.board.feed(0), &newest.pressure);
        assert_eq!(newest.judge_bound(ELSEWHERE, 9, 1, 13), Some(OverflowOutcome::DroppedNew));
        assert!(!newest.pressure.is_on(), "this silo's dispatch cannot relieve it");
        assert_eq!(board::get(&newest.board.feed(0).overflow_silo), 1);
        let mut block = full(OverflowStrategy::Block);
        block.run_until(20);
        assert_eq!(block.judge_bound(ELSEWHERE, 9, 1, 15), Some(OverflowOutcome::Expired));
    }

    #[test]
    fn a_shot_whose_stream_has_moved_went_elsewhere_unless_it_came_too_late() {
        let mut bench = full(OverflowStrategy::Migrate);
        bench.run_until(20);
        let moved = Bound { routed_since: Ticks(12 * MS), ..ELSEWHERE };
        assert_eq!(bench.judge_bound(moved, 9, 3, 13), Some(OverflowOutcome::SentElsewhere));
        assert_eq!(bench.judge_bound(moved, 9, 3, 15), Some(OverflowOutcome::Expired));
        assert_eq!(bench.judge(9, 3, 13), Some(OverflowOutcome::Waited), "its stream has stayed");
        let home = Bound { routed_since: Ticks(12 * MS), ..HERE };
        assert_eq!(bench.judge_bound(home, 9, 3, 13), Some(OverflowOutcome::SentElsewhere), "back to its own silo");
    }

    #[test]
    fn a_shot_whose_stream_stayed_counts_as_waited() {
        let mut bench = full(OverflowStrategy::Migrate);
        bench.run_until(20);
        let since_long = Bound { routed_since: Ticks(2 * MS), ..ELSEWHERE };
        bench.overflow.full(since_long, Ticks(11 * MS), bench.board.feed(0), &bench.pressure);
        assert_eq!(
            bench.judge_bound(since_long, 9, 3, 13),
            Some(OverflowOutcome::Waited),
            "it waited for its present silo"
        );
        let staged = Bound { is_staged: true, is_direct: false, ..HERE };
        assert_eq!(bench.judge_bound(staged, 9, 3, 13), Some(OverflowOutcome::Waited), "its move may still fail");
    }

    #[test]
    fn a_full_stage_drops_nothing_but_its_shots_may_expire() {
        for strategy in [OverflowStrategy::DropNew, OverflowStrategy::DropOldest, OverflowStrategy::Block] {
            let mut bench = full(strategy);
            bench.run_until(40);
            bench.overflow.clear(Ticks(12 * MS), bench.board.feed(0), &bench.pressure);
            bench.overflow.stage_full(Ticks(30 * MS));
            assert_eq!(board::get(&bench.board.feed(0).overflow_since), 0, "no silo needs relief");
            let late = (strategy == OverflowStrategy::Block).then_some(OverflowOutcome::Expired);
            assert_eq!((bench.judge(25, 9, 31), bench.judge(29, 9, 31)), (late, None), "{strategy:?}");
        }
    }

    #[test]
    fn an_episode_ends_when_nothing_waits_and_its_length_is_kept() {
        let mut bench = full(OverflowStrategy::DropNew);
        let block = bench.board.feed(0);
        assert!(bench.pressure.is_on() && board::get(&block.overflow_since) == 10 * MS);
        bench.overflow.full(HERE, Ticks(12 * MS), block, &bench.pressure);
        bench.overflow.clear(Ticks(15 * MS), block, &bench.pressure);
        bench.overflow.clear(Ticks(90 * MS), block, &bench.pressure);
        assert!(!bench.pressure.is_on() && board::get(&block.overflow_since) == 0);
        assert_eq!(board::get(&block.overflow_episodes), 1);
        assert_eq!(board::get(&block.overflow_ticks_max), 5 * MS);
        assert_eq!(board::get(&block.overflow_recovery_ticks_max), 3 * MS);
        assert_eq!(bench.judge(9, 9, 16), None);
    }

    #[test]
    fn every_outcome_that_ends_a_shot_has_an_error_of_its_own() {
        let errors: Vec<_> = OverflowOutcome::ALL.into_iter().filter_map(error_of).collect();
        assert_eq!(errors.len(), 3);
        assert!(errors.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
