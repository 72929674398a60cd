//! Relief: which streams leave a silo that is full while shots wait for it, at once.
//!
//! Owns what waited at the last look, the moves that it asked for, and what they shift until a snapshot shows it. Pure but for that; no clock, no board.
//! Bounds: [`STREAMS_MAX`] streams of a silo at a time; the next ones when those have arrived or were waited for long
//! enough. Never moves a stream itself. Source: seed 003, `OverflowStrategy.Migrate`.
//!
//! ```text
//!   full ── another look: will not be over in 50 ms ──▶ up to 8 streams, each to the emptiest silo below 0.80
//!     ▲──────────── they are there, or time is up ◀──────┘
//! ```
//!
//! # Why not the rebalancer
//! It goes by means over a second, dwells for two of them and rests for two more: right for a load that is uneven, and
//! much too slow for shots that wait now. What is read here is no mean but the feed's own word that a shot found no room. Against bouncing it has what the rebalancer has, the lease and the limit at the other silo.

use super::decision::{Candidate, Decision, Made, Why};
use super::depth::{ENTER, Snapshot};
use super::rebalance::{GAIN_MIN, LEASE, StreamLoad};
use crate::units::{Nanos, TickRate, Ticks};

/// What will be over in this time by itself is left alone.
pub const TOLERATED: Nanos = Nanos::from_millis(50);
/// Streams that leave a silo at a time.
pub const STREAMS_MAX: usize = 8;

/// Shots that wait for a silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Shots that have arrived so far at the feeds where some wait.
    pub arrived: u64,
    /// Of these: how many wait.
    pub waiting: u64,
}

/// Why no stream leaves a silo that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// None may.
    #[error(
        "found shots waiting for silo {silo} and no stream of it that may move, expected one; name more in placement.streams, or wait for leases and moves to end"
    )]
    NoStream {
        /// The silo.
        silo: u32,
    },
    /// None has room.
    #[error(
        "found shots waiting for silo {silo} and no other silo below 80 %, expected one; add silos or lower the rate"
    )]
    NoSilo {
        /// The silo.
        silo: u32,
    },
}

/// A move that is out.
#[derive(Clone, Copy, Debug)]
struct Out {
    stream: u32,
    from: u32,
    to: u32,
    until: Ticks,
}

/// The relief of all silos.
#[derive(Debug)]
pub struct Relief {
    rate: TickRate,
    out: Vec<Out>,
    /// By silo: what waited at the last look, and when that was.
    before: Vec<Option<(Ticks, Waiting)>>,
    /// The snapshot that what was shifted is not in.
    number: u64,
    shifted: Vec<f64>,
}

impl Relief {
    /// For `silos` silos.
    #[must_use]
    pub fn new(silos: usize, rate: TickRate) -> Relief {
        Relief {
            rate,
            out: Vec::with_capacity(silos * STREAMS_MAX),
            before: vec![None; silos],
            number: 0,
            shifted: vec![0.0; silos],
        }
    }

    /// Nothing waits anywhere.
    pub fn rest(&mut self) {
        self.out.clear();
        self.before.fill(None);
    }

    /// Asks `each` for the moves that should be made; it says whether one is under way. `full`: what waits for each silo;
    /// `loads`: where each stream is now; a move may take `patience`. Returns why a silo's streams do not leave.
    pub fn step(
        &mut self,
        full: &[Option<Waiting>],
        snapshot: &Snapshot,
        loads: &[StreamLoad],
        (now, patience): (Ticks, Nanos),
        mut each: impl FnMut(Made) -> bool,
    ) -> Option<Stuck> {
        let is_there = |out: &Out| loads.iter().any(|load| load.stream == out.stream && load.silo == out.to);
        self.out.retain(|out| now < out.until && !is_there(out));
        if self.number != snapshot.number {
            self.number = snapshot.number;
            self.shifted.fill(0.0);
        }
        let until = now.plus(self.rate.ticks(patience));
        let mut stuck = None;
        for silo in 0..full.len() as u32 {
            if !self.lasts(silo as usize, full, now) || self.out.iter().any(|out| out.from == silo) {
                continue;
            }
            let parts = parts(silo, loads);
            if parts.is_empty() {
                stuck = Some(Stuck::NoStream { silo });
                continue;
            }
            let mut left = parts;
            for nth in 0..STREAMS_MAX {
                let Some((at, to)) = self.best(silo, full, snapshot, &left) else {
                    stuck = stuck.or((nth == 0).then_some(Stuck::NoSilo { silo }));
                    break;
                };
                let (stream, share) = left.swap_remove(at);
                let on = [silo, to].map(|one| self.candidate(one, full, snapshot));
                let why = Why::Overflow;
                let decision = Decision::Move { stream, from: silo, to, why, share, lease: LEASE };
                if each(Made { decision, on }) {
                    self.shifted[silo as usize] -= share;
                    self.shifted[to as usize] += share;
                    self.out.push(Out { stream, from: silo, to, until });
                }
            }
        }
        stuck
    }

    /// How full a silo is: one that shots wait for is full, whatever the mean says.
    fn view(&self, silo: u32, full: &[Option<Waiting>], snapshot: &Snapshot) -> Option<f64> {
        let shifted = self.shifted[silo as usize];
        if full[silo as usize].is_some() {
            return Some(1.0 + shifted);
        }
        snapshot.silos[silo as usize].known().map(|depth| depth.max + shifted)
    }

    fn candidate(&self, silo: u32, full: &[Option<Waiting>], snapshot: &Snapshot) -> Option<Candidate> {
        let one = Candidate::of(silo, snapshot.silos[silo as usize].known()?);
        let max = if full[silo as usize].is_some() { 1.0 } else { one.max };
        Some(Candidate { max, charge: self.shifted[silo as usize], ..one })
    }

    /// Whether shots will go on to wait for `silo`: at the pace of the last two looks it is not over soon. A machine that
    /// stood still leaves a backlog too, which goes by itself; a feed that stands still says nothing.
    fn lasts(&mut self, silo: usize, full: &[Option<Waiting>], now: Ticks) -> bool {
        let Some(new) = full[silo] else {
            self.before[silo] = None;
            return false;
        };
        let Some((then, old)) = self.before[silo] else {
            self.before[silo] = Some((now, new));
            return false;
        };
        if new.arrived == old.arrived {
            return false;
        }
        self.before[silo] = Some((now, new));
        let (span, gone) = (now.since(then).0, old.waiting.saturating_sub(new.waiting));
        let left = u128::from(new.waiting) * u128::from(span);
        left > u128::from(gone) * u128::from(self.rate.ticks(TOLERATED).0)
    }

    /// Of these streams of `silo` the one that closes most of the gap to the emptiest other, by its place, and that silo.
    fn best(
        &self,
        silo: u32,
        full: &[Option<Waiting>],
        snapshot: &Snapshot,
        left: &[(u32, f64)],
    ) -> Option<(usize, u32)> {
        let from = self.view(silo, full, snapshot)?;
        let others = (0..full.len() as u32).filter(|other| full[*other as usize].is_none());
        let others = others.filter_map(|other| Some((other, self.view(other, full, snapshot)?)));
        let (to, free) = others.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let gap = from - free;
        let gain = |share: f64| gap - (gap - 2.0 * share).abs();
        let fits = |(_, (_, share)): &(usize, &(u32, f64))| free + share < ENTER && gain(*share) > GAIN_MIN;
        let best = left.iter().enumerate().filter(fits);
        let (at, _) = best.max_by(|one, other| gain(one.1.1).total_cmp(&gain(other.1.1)))?;
        Some((at, to))
    }
}

/// Streams of `silo` that may move, each with its part of a silo that is full. Where none was answered, all count alike.
fn parts(silo: u32, loads: &[StreamLoad]) -> Vec<(u32, f64)> {
    let own = || loads.iter().filter(|load| load.silo == silo);
    let (count, sum) = (own().count() as f64, own().map(|load| load.share).sum::<f64>());
    let part = |load: &StreamLoad| if sum > 0.0 { load.share / sum } else { 1.0 / count };
    own().filter(|load| load.may_move).map(|load| (load.stream, part(load))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Relief, STREAMS_MAX, Stuck, Waiting};
    use crate::placement::decision::{Decision, Why};
    use crate::placement::depth::{Reading, SiloDepth, Snapshot, Unknown};
    use crate::placement::rebalance::StreamLoad;
    use crate::units::{Nanos, TickRate, Ticks};

    const MS: u64 = 1_000_000;
    const PATIENCE: Nanos = Nanos::from_millis(100);

    struct Bench {
        relief: Relief,
        loads: Vec<StreamLoad>,
        silos: Vec<Option<f64>>,
    }

    impl Bench {
        /// Streams by the silo that has them, all alike.
        fn new(silos: &[Option<f64>], streams: &[u32]) -> Bench {
            let load = |(stream, silo): (u32, &u32)| StreamLoad { stream, silo: *silo, share: 0.1, may_move: true };
            let relief = Relief::new(silos.len(), TickRate::NANOS);
            Bench { relief, loads: (0..).zip(streams).map(load).collect(), silos: silos.to_vec() }
        }

        /// At `ms`, with shots waiting for silo 0, more and more.
        fn see(&mut self, ms: u64) -> (Vec<(u32, u32)>, Option<Stuck>) {
            self.see_waiting(ms, Waiting { arrived: 10 * ms, waiting: ms })
        }

        fn see_waiting(&mut self, ms: u64, waiting: Waiting) -> (Vec<(u32, u32)>, Option<Stuck>) {
            let reading = |share: &Option<f64>| match share {
                Some(share) => Reading::Known(SiloDepth::even(*share)),
                None => Reading::Unknown(Unknown::New),
            };
            let silos = self.silos.iter().map(reading).collect();
            let snapshot = Snapshot { number: 1, taken: Ticks(0), silos };
            let full: Vec<_> = (0..self.silos.len()).map(|silo| (silo == 0).then_some(waiting)).collect();
            let (mut moves, now) = (Vec::new(), Ticks(ms * MS));
            let stuck = self.relief.step(&full, &snapshot, &self.loads, (now, PATIENCE), |made| {
                let Decision::Move { stream, from: 0, to, why: Why::Overflow, .. } = made.decision else {
                    panic!("{made:?}")
                };
                moves.push((stream, to));
                true
            });
            (moves, stuck)
        }

        fn arrive(&mut self, moves: &[(u32, u32)]) {
            moves.iter().for_each(|(stream, to)| self.loads[*stream as usize].silo = *to);
        }
    }

    #[test]
    fn streams_leave_a_full_silo_for_the_emptiest_until_they_are_level() {
        let mut bench = Bench::new(&[Some(0.5), Some(0.1), Some(0.2)], &[0; 10]);
        assert_eq!(bench.see(1), (vec![], None), "one look says nothing of what comes");
        let (moves, stuck) = bench.see(10);
        let to = |silo: u32| moves.iter().filter(|(_, to)| *to == silo).count();
        // 1.3 in all: 0.5, 0.4 and 0.4; one more would only change places.
        assert_eq!((moves.len(), to(1), to(2), stuck), (5, 3, 2, None), "{moves:?}");
        assert_eq!(bench.see(11), (vec![], None), "those are on their way");
        bench.arrive(&moves);
        assert_eq!(bench.see(12).0, [], "level: nothing would be gained");
    }

    #[test]
    fn no_more_than_so_many_at_a_time_and_the_next_when_they_are_there_or_late() {
        let mut bench = Bench::new(&[Some(0.9), Some(0.0)], &[0; 100]);
        let _ = bench.see(1);
        let (first, _) = bench.see(10);
        assert_eq!(first.len(), STREAMS_MAX);
        bench.arrive(&first[1..]);
        assert_eq!(bench.see(50), (vec![], None), "one is not there");
        assert_eq!(bench.see(111).0.len(), STREAMS_MAX, "it was waited for long enough");
    }

    #[test]
    fn nothing_goes_to_the_unknown_or_the_full_and_it_says_why_nothing_goes() {
        let mut none = Bench::new(&[Some(0.9), None], &[0, 0]);
        let _ = none.see(1);
        assert_eq!(none.see(10), (vec![], Some(Stuck::NoSilo { silo: 0 })));
        let mut high = Bench::new(&[Some(0.9), Some(0.75)], &[0, 0]);
        let _ = high.see(1);
        assert_eq!(high.see(10), (vec![], Some(Stuck::NoSilo { silo: 0 })));
        let mut still = Bench::new(&[Some(0.9), Some(0.1)], &[0, 0]);
        still.loads.iter_mut().for_each(|load| load.may_move = false);
        let _ = still.see(1);
        let stuck = still.see(10).1.unwrap();
        assert_eq!(stuck, Stuck::NoStream { silo: 0 });
        assert!(stuck.to_string().contains("silo 0"));
    }

    #[test]
    fn a_silo_that_answered_nothing_gives_streams_away_all_the_same() {
        let mut bench = Bench::new(&[Some(0.0), Some(0.1)], &[0; 4]);
        bench.loads.iter_mut().for_each(|load| load.share = 0.0);
        let _ = bench.see(1);
        assert_eq!(bench.see(10).0.len(), 2);
    }

    #[test]
    fn a_backlog_that_goes_by_itself_is_left_alone_and_a_feed_that_stands_still_says_nothing() {
        let mut bench = Bench::new(&[Some(0.5), Some(0.1)], &[0; 4]);
        let mut see = |ms, arrived, waiting| bench.see_waiting(ms, Waiting { arrived, waiting }).0.len();
        assert_eq!(see(10, 100, 300), 0);
        assert_eq!(see(20, 120, 240), 0, "60 gone in 10 ms: over in 40");
        assert_eq!(see(30, 120, 240), 0, "the feed has not been there");
        assert_eq!(see(40, 140, 220), 2, "20 gone in 20 ms: over in 220");
    }
}
