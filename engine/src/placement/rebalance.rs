//! Rebalance: which stream should move, from which silo, to which.
//!
//! Owns which silos are pressed (should give streams away) and since when, the pending moves, and
//! how long a moved stream stays. Reads no clock and no board. Bounds: moves in one direction at a
//! time for each pair of silos, [`MOVES_MAX`] moves for each snapshot, [`TOKEN_SNAPSHOTS`] until a
//! pending move is given up. Never moves a stream itself. [`plan`] chooses the moves of one
//! snapshot. Source: DESIGN §9 (003).
//!
//! ```text
//!   calm ── fullest queue ≥ 0.80, or 8 points above the emptiest ──▶ pressed ── dwell of 2 snapshots ──▶ gives streams away
//!     ▲◀── below 0.65 and within 3 points of the emptiest ─────────────┘                    while it is above the mean, to
//!                                                                                            silos that are below it
//!   pair:  free ── move asked ──▶ token out ── the stream is there, or 4 snapshots ──▶ cooldown of 2 snapshots ──▶ free
//!            ▲◀── refused, or failed ─┘
//! ```
//!
//! # Why
//! *A pending move counts at once.* Until the stream has arrived, its load is subtracted from the
//! old silo and added to the new one; otherwise the same gap would be closed twice. After that the
//! snapshot contains it: demand is that of the streams which a silo has, see
//! [`SiloDepth::demand`](super::depth::SiloDepth). Counting a move for one snapshot more made even
//! silos oscillate with growing amplitude.
//!
//! *As many streams at once as close the gap.* A skewed load has a few large streams and very many
//! small ones, and a pair of silos pauses for two snapshots after a move. With eight moves in three
//! snapshots, 1,000 streams (Zipf 1.1, four silos) were 6.1 points apart after ten seconds, at most
//! 22; with as many as close the gap 1.0, at most 3.1.
//!
//! *Demand, not fullness.* A silo that was overloaded stays full until its backlog is gone,
//! whatever it has given away. Judged by fullness it would give load away twice. So the fullest
//! queue decides whether a silo is hot, and demand how much it gives.
//!
//! *A gain of a thousandth is enough.* A move stops its stream for some tens of µs and costs two
//! hot threads a few µs, once. Its gain lasts at least for its lease of four seconds.

mod plan;

use super::decision::{Candidate, Decision, Made, Why};
use super::depth::{ENTER, LEAVE, Snapshot};
use crate::units::{Nanos, TickRate, Ticks};
use plan::Plan;

/// A silo becomes uneven at this much demand above the emptiest silo.
pub const UNEVEN_ENTER: f64 = 0.08;
/// A silo stops being uneven below this.
pub const UNEVEN_LEAVE: f64 = 0.03;
/// Least part of the gap that a move must close.
pub const GAIN_MIN: f64 = 0.0005;
/// Snapshots that a silo is pressed before it gives streams away.
pub const DWELL_SNAPSHOTS: u64 = 2;
/// Snapshots that a pair of silos pauses after a move.
pub const COOLDOWN_SNAPSHOTS: u64 = 2;
/// Snapshots after which a pending move is given up.
pub const TOKEN_SNAPSHOTS: u64 = 4;
/// Most moves requested for one snapshot.
pub const MOVES_MAX: usize = 128;
/// Pause of a stream after a failed move.
pub const FAILED_REST: Nanos = Nanos::from_millis(1_500);
/// Lease that a moved stream holds at its new silo.
pub const LEASE: Nanos = Nanos::from_millis(4_000);

/// The load of one stream on its silo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamLoad {
    /// Number of the stream.
    pub stream: u32,
    /// Silo that owns it.
    pub silo: u32,
    /// Its load as a share of that silo's fullest queue, which is expected to move with it.
    pub share: f64,
    /// Whether it may move: it takes part, and its page is neither leased nor in transfer.
    pub may_move: bool,
}

/// A silo that should give streams away.
#[derive(Clone, Copy, Debug)]
struct Pressed {
    since: Ticks,
    from_snapshot: u64,
    why: Why,
}

/// A move that is pending, or whose pair of silos pauses after it.
#[derive(Clone, Copy, Debug)]
struct Token {
    stream: u32,
    from: u32,
    to: u32,
    share: f64,
    asked: u64,
    /// Snapshot at which it arrived or was given up.
    ended: Option<u64>,
}

/// The rebalancer of all silos.
#[derive(Debug)]
pub struct Rebalancer {
    rate: TickRate,
    pressed: Vec<Option<Pressed>>,
    tokens: Vec<Token>,
    /// By stream: when the lease of its last move ends.
    leased: Vec<Ticks>,
    plan: Plan,
}

impl Rebalancer {
    /// For `silos` silos and `streams` streams.
    pub fn new(silos: usize, streams: usize, rate: TickRate) -> Rebalancer {
        Rebalancer {
            rate,
            pressed: vec![None; silos],
            tokens: Vec::with_capacity(MOVES_MAX * TOKEN_SNAPSHOTS as usize),
            leased: vec![Ticks(0); streams],
            plan: Plan::new(silos),
        }
    }

    /// Since when `silo` should give streams away.
    pub fn pressed_since(&self, silo: usize) -> Option<Ticks> {
        self.pressed[silo].map(|pressed| pressed.since)
    }

    /// The move of `stream` was refused.
    pub fn refused(&mut self, stream: u32) {
        self.tokens.retain(|token| token.stream != stream || token.ended.is_some());
        self.leased[stream as usize] = Ticks(0);
    }

    /// Forgets moves that have failed, as `has_failed` tells by stream and silo. Their pairs of
    /// silos are free again; their streams pause for [`FAILED_REST`], so that others are tried
    /// first.
    pub fn forget_failed(&mut self, now: Ticks, has_failed: impl Fn(u32, u32) -> bool) {
        let (leased, until) = (&mut self.leased, now.plus(self.rate.ticks(FAILED_REST)));
        self.tokens.retain(|token| {
            let failed = token.ended.is_none() && has_failed(token.stream, token.to);
            if failed {
                leased[token.stream as usize] = until;
            }
            !failed
        });
    }

    /// Takes over `snapshot` and the streams' `loads`, and calls `each` for each move that should be made.
    pub fn step(&mut self, snapshot: &Snapshot, loads: &[StreamLoad], now: Ticks, mut each: impl FnMut(Made)) {
        let number = snapshot.number;
        self.settle(number, loads);
        let leased = &self.leased;
        self.plan.fill(snapshot, loads, |stream| leased[stream as usize] > now);
        for token in self.tokens.iter().filter(|token| token.ended.is_none()) {
            self.plan.shift(token.from, token.to, token.share);
        }
        self.press(snapshot, now);
        let dwelt = |pressed: &Pressed| number >= pressed.from_snapshot + DWELL_SNAPSHOTS;
        for _ in 0..MOVES_MAX {
            let (pressed, tokens) = (&self.pressed, &self.tokens);
            let gives = |silo: u32| pressed[silo as usize].is_some_and(|pressed| dwelt(&pressed));
            // More streams may follow a move of this snapshot in the same direction.
            let is_free = |from: u32, to: u32| {
                let mut held = tokens.iter().filter(|token| token.joins(from, to));
                held.all(|token| token.from == from && token.asked == number)
            };
            let Some((load, to)) = self.plan.take_best(gives, is_free) else { break };
            let StreamLoad { stream, silo: from, share, .. } = load;
            let on = [from, to].map(|silo| {
                let depth = snapshot.silos[silo as usize].known()?;
                let charge = self.plan.demand(silo)? - depth.demand;
                Some(Candidate { charge, ..Candidate::of(silo, depth) })
            });
            self.tokens.push(Token { stream, from, to, share, asked: number, ended: None });
            self.leased[stream as usize] = now.plus(self.rate.ticks(LEASE));
            self.plan.shift(from, to, share);
            let why = self.pressed[from as usize].map_or(Why::Uneven, |pressed| pressed.why);
            each(Made { decision: Decision::Move { stream, from, to, why, share, lease: LEASE }, on });
        }
    }

    /// Ends moves whose stream has arrived, gives up overdue ones, and frees pairs of silos whose pause is over.
    fn settle(&mut self, number: u64, loads: &[StreamLoad]) {
        for token in self.tokens.iter_mut().filter(|token| token.ended.is_none()) {
            let has_arrived = loads.iter().any(|load| load.stream == token.stream && load.silo == token.to);
            if has_arrived || number >= token.asked + TOKEN_SNAPSHOTS {
                token.ended = Some(number);
            }
        }
        self.tokens.retain(|token| token.ended.is_none_or(|ended| number < ended + COOLDOWN_SNAPSHOTS));
    }

    /// Updates which silos are pressed, with hysteresis.
    fn press(&mut self, snapshot: &Snapshot, now: Ticks) {
        // Compared with the emptiest, not the mean: otherwise one idle silo among many slightly
        // above the mean would stay idle.
        let least = self.plan.least().unwrap_or(0.0);
        for (silo, pressed) in (0..).zip(&mut self.pressed) {
            let (Some(demand), Some(depth)) = (self.plan.demand(silo), snapshot.silos[silo as usize].known()) else {
                *pressed = None;
                continue;
            };
            let (hot, uneven) = if pressed.is_some() { (LEAVE, UNEVEN_LEAVE) } else { (ENTER, UNEVEN_ENTER) };
            let why = match (depth.max.max(demand) >= hot, demand - least >= uneven) {
                (true, _) => Some(Why::Hot),
                (false, true) => Some(Why::Uneven),
                (false, false) => None,
            };
            let since = pressed.map_or((now, snapshot.number), |pressed| (pressed.since, pressed.from_snapshot));
            *pressed = why.map(|why| Pressed { since: since.0, from_snapshot: since.1, why });
        }
    }
}

impl Token {
    fn joins(&self, one: u32, other: u32) -> bool {
        (self.from, self.to) == (one, other) || (self.from, self.to) == (other, one)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{COOLDOWN_SNAPSHOTS, DWELL_SNAPSHOTS, LEASE, MOVES_MAX, Rebalancer, StreamLoad, TOKEN_SNAPSHOTS};
    use crate::placement::decision::{Decision, Why};
    use crate::placement::depth::{Reading, SiloDepth, Snapshot, Unknown};
    use crate::units::{TickRate, Ticks};

    const SECOND: u64 = 1_000_000_000;

    struct Bench {
        rebalancer: Rebalancer,
        number: u64,
        loads: Vec<StreamLoad>,
    }

    impl Bench {
        fn new(silos: usize, loads: &[(u32, f64)]) -> Bench {
            let load = |(stream, (silo, share)): (u32, &(u32, f64))| StreamLoad {
                stream,
                silo: *silo,
                share: *share,
                may_move: true,
            };
            let loads: Vec<_> = (0..).zip(loads).map(load).collect();
            Bench { rebalancer: Rebalancer::new(silos, loads.len(), TickRate::NANOS), number: 0, loads }
        }

        fn now(&self) -> Ticks {
            Ticks(self.number * SECOND)
        }

        fn see(&mut self, silos: &[Option<f64>]) -> Vec<(u32, u32, u32, Why)> {
            self.number += 1;
            let reading = |share: &Option<f64>| match share {
                Some(share) => Reading::Known(SiloDepth::even(*share)),
                None => Reading::Unknown(Unknown::New),
            };
            let silos = silos.iter().map(reading).collect();
            let snapshot = Snapshot { number: self.number, taken: self.now(), silos };
            let mut moves = Vec::new();
            let now = self.now();
            self.rebalancer.step(&snapshot, &self.loads, now, |made| match made.decision {
                Decision::Move { stream, from, to, why, .. } => moves.push((stream, from, to, why)),
                other => panic!("{other:?}"),
            });
            moves
        }
    }

    #[test]
    fn a_silo_gives_a_stream_away_only_after_it_has_been_hot_for_a_while() {
        let mut bench = Bench::new(2, &[(0, 0.5), (0, 0.3), (1, 0.4)]);
        for _ in 0..DWELL_SNAPSHOTS {
            assert_eq!(bench.see(&[Some(0.85), Some(0.3)]), []);
        }
        // A gap of 0.55: 0.3 leaves 0.05 of it, 0.5 would turn it round.
        assert_eq!(bench.see(&[Some(0.85), Some(0.3)]), [(1, 0, 1, Why::Hot)]);
    }

    #[test]
    fn noise_between_the_limits_neither_presses_nor_relieves() {
        let mut bench = Bench::new(2, &[(0, 0.05), (1, 0.05)]);
        for share in [0.79, 0.78, 0.79, 0.77] {
            assert_eq!(bench.see(&[Some(share), Some(0.75)]), []);
            assert_eq!(bench.rebalancer.pressed_since(0), None);
        }
        let _ = bench.see(&[Some(0.81), Some(0.75)]);
        let _ = bench.see(&[Some(0.70), Some(0.70)]);
        assert_eq!(bench.rebalancer.pressed_since(0), Some(Ticks(5 * SECOND)), "0.70 is not below 0.65");
        let _ = bench.see(&[Some(0.60), Some(0.60)]);
        assert_eq!(bench.rebalancer.pressed_since(0), None);
    }

    #[test]
    fn one_token_for_a_pair_and_a_cooldown_after_it() {
        let mut bench = Bench::new(2, &[(0, 0.001); 200]);
        let full = [Some(0.9), Some(0.2)];
        for _ in 0..DWELL_SNAPSHOTS {
            let _ = bench.see(&full);
        }
        let first = bench.see(&full);
        assert_eq!(first.len(), MOVES_MAX, "{first:?}");
        for _ in 0..TOKEN_SNAPSHOTS - 1 {
            assert_eq!(bench.see(&full), [], "its token is out");
        }
        first.iter().for_each(|(stream, ..)| bench.loads[*stream as usize].silo = 1);
        for _ in 0..COOLDOWN_SNAPSHOTS {
            assert_eq!(bench.see(&full), [], "the pair rests");
        }
        assert_eq!(bench.see(&full).len(), 200 - MOVES_MAX);
    }

    #[test]
    fn a_moved_stream_does_not_bounce() {
        let mut bench = Bench::new(2, &[(0, 0.3)]);
        for _ in 0..DWELL_SNAPSHOTS {
            let _ = bench.see(&[Some(0.9), Some(0.2)]);
        }
        assert_eq!(bench.see(&[Some(0.9), Some(0.2)]).len(), 1);
        bench.loads[0].silo = 1;
        let from = bench.number;
        // Now the other one is hot: the stream stays as long as its lease.
        while bench.see(&[Some(0.2), Some(0.9)]).is_empty() {
            assert!(bench.number < from + 20, "it is free in the end");
        }
        assert!((bench.number - from) * SECOND >= LEASE.0);
    }

    #[test]
    fn what_is_pinned_small_or_too_large_stays_and_nothing_goes_to_the_unknown() {
        let ready = |bench: &mut Bench, silos: &[Option<f64>]| {
            (0..DWELL_SNAPSHOTS).for_each(|_| drop(bench.see(silos)));
            bench.see(silos)
        };
        let full = [Some(0.9), Some(0.5)];
        let mut pinned = Bench::new(2, &[(0, 0.2)]);
        pinned.loads[0].may_move = false;
        assert_eq!(ready(&mut pinned, &full), []);
        assert_eq!(ready(&mut Bench::new(2, &[(0, 0.0002)]), &full), [], "it gains less than it costs");
        assert_eq!(ready(&mut Bench::new(2, &[(0, 0.39)]), &full), [], "the other one would be hot");
        assert_eq!(ready(&mut Bench::new(2, &[(0, 0.2)]), &[Some(0.9), None]), []);
        assert_eq!(ready(&mut Bench::new(2, &[(0, 0.2)]), &full).len(), 1);
    }

    #[test]
    fn a_failed_move_frees_its_pair_at_once_and_another_stream_is_tried_before_it() {
        let mut bench = Bench::new(2, &[(0, 0.2), (0, 0.15)]);
        let full = [Some(0.9), Some(0.45)];
        (0..DWELL_SNAPSHOTS).for_each(|_| drop(bench.see(&full)));
        let first = bench.see(&full);
        assert_eq!(first, [(0, 0, 1, Why::Hot)]);
        let now = bench.now();
        bench.rebalancer.forget_failed(now, |_, _| false);
        assert_eq!(bench.see(&full), [], "its token is out");
        bench.rebalancer.forget_failed(bench.now(), |stream, to| (stream, to) == (0, 1));
        assert_eq!(bench.see(&full)[0].0, 1, "another one");
        bench.rebalancer.forget_failed(bench.now(), |_, _| true);
        assert!(bench.see(&full).iter().any(|(stream, ..)| *stream == 0), "it has rested");
    }

    #[test]
    fn a_refused_move_frees_its_pair_and_its_stream() {
        let mut bench = Bench::new(2, &[(0, 0.2)]);
        let full = [Some(0.9), Some(0.4)];
        (0..DWELL_SNAPSHOTS).for_each(|_| drop(bench.see(&full)));
        assert_eq!(bench.see(&full).len(), 1);
        bench.rebalancer.refused(0);
        assert_eq!(bench.see(&full).len(), 1);
    }
}
