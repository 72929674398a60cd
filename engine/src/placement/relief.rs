//! Overload relief: which streams leave a full silo at once while shots wait for it.
//!
//! Owns the number of waiting shots at the last check, the pending moves, the load that they shift
//! until a snapshot contains it, and the share that each full silo has given away. Reads no clock
//! and no board. Bounds: at most [`STREAMS_MAX`] streams of a silo move at a time; the next ones
//! follow when these moves have ended. Never moves a stream itself. Source: seed 003,
//! `OverflowStrategy.Migrate`.
//!
//! ```text
//!   full ── next check: the backlog lasts more than 50 ms ──▶ up to 8 streams, each to the emptiest silo below 0.80
//!     ▲──────────── the moves are done, or have failed ◀───────┘
//! ```
//!
//! # Why not the rebalancer
//! The rebalancer uses means over a second, waits for two of them and pauses for two more. That
//! suits an uneven load and is much too slow for shots that wait now. Relief uses the feed's own
//! report that a shot found no slot. The lease of a moved stream and the limit at its new silo
//! prevent repeated moves, as in the rebalancer.
//!
//! # Why a silo that gave half its load away counts as half full
//! While a backlog lasts, a full ring does not show how much arrives. So an overloaded silo first
//! counts as full, and then as the share that it has not given away. Otherwise it would give away
//! half of the rest again and again until the backlog is gone. If the backlog does not shrink for
//! [`GROWS_FOR`], the silo counts as full again.
//!
//! # Why a stream that fills a silo alone stays
//! It would fill the other silo as well, and its shots would stop during the move for no gain.

use super::decision::{Candidate, Decision, Made, Why};
use super::depth::{ENTER, Snapshot};
use super::rebalance::{GAIN_MIN, LEASE, StreamLoad};
use crate::units::{Nanos, TickRate, Ticks};

/// A backlog that ends by itself within this time moves no stream.
pub const TOLERATED: Nanos = Nanos::from_millis(50);
/// Most streams that leave one silo at a time.
pub const STREAMS_MAX: usize = 8;
/// A backlog that has not shrunk after this time counts as growing.
pub const GROWS_FOR: Nanos = Nanos::from_millis(100);

/// Shots that wait for a silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Shots that have arrived so far at the feeds with waiting shots.
    pub arrived: u64,
    /// Shots of these that wait.
    pub waiting: u64,
}

/// Why no stream leaves a full silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Stuck {
    #[error(
        "shots wait for silo {silo}, and none of its streams may move; name more of them in placement.streams, or wait for leases and moves to end"
    )]
    NoStream { silo: u32 },
    #[error("shots wait for silo {silo}, and no other silo is below 80 %; add silos or lower the rate")]
    NoSilo { silo: u32 },
    #[error(
        "shots wait for silo {silo}, and none of its streams fits elsewhere: the lightest that may move is {lightest} % of its load, and silo {emptiest}, the emptiest, is {full} % full; divide the load over more streams or lower the rate"
    )]
    NoFit {
        silo: u32,
        /// Share of the silo's load that its lightest movable stream has, percent.
        lightest: u32,
        emptiest: u32,
        /// How full that silo is, percent.
        full: u32,
    },
}

/// A move that was asked for and has not ended.
#[derive(Clone, Copy, Debug)]
struct PendingMove {
    stream: u32,
    from: u32,
    to: u32,
    share: f64,
}

/// Overload relief of all silos.
#[derive(Debug)]
pub struct Relief {
    rate: TickRate,
    out: Vec<PendingMove>,
    /// By silo: the waiting shots at the last check, and its time.
    before: Vec<Option<(Ticks, Waiting)>>,
    /// Time of the snapshot that `shifted` refers to.
    taken: Option<Ticks>,
    /// By silo: load that pending moves add to that snapshot.
    shifted: Vec<f64>,
    /// By full silo: the share of its load that it has given away since it became full.
    given: Vec<f64>,
    /// By silo that has given load away: the time and the number of waiting shots that growth is measured from.
    mark: Vec<Option<(Ticks, u64)>>,
    /// By silo: whether it refused a stream in this step.
    refused: Vec<bool>,
}

impl Relief {
    /// Relief of `silos` silos.
    pub fn new(silos: usize, rate: TickRate) -> Relief {
        Relief {
            rate,
            out: Vec::with_capacity(silos * STREAMS_MAX),
            before: vec![None; silos],
            taken: None,
            shifted: vec![0.0; silos],
            given: vec![0.0; silos],
            mark: vec![None; silos],
            refused: vec![false; silos],
        }
    }

    /// No shot waits for any silo.
    pub fn rest(&mut self) {
        self.out.clear();
        self.before.fill(None);
        self.given.fill(0.0);
        self.mark.fill(None);
    }

    /// Requests moves through `each`, which returns whether the move has begun; `under_way` tells
    /// later whether it goes on. `full`: shots that wait for each silo; `loads`: where each stream
    /// is now. Returns why a silo's streams do not leave.
    pub fn step(
        &mut self,
        full: &[Option<Waiting>],
        snapshot: &Snapshot,
        loads: &[StreamLoad],
        (now, under_way): (Ticks, &dyn Fn(u32) -> bool),
        mut each: impl FnMut(Made) -> bool,
    ) -> Option<Stuck> {
        self.settle(snapshot, loads, under_way);
        self.refused.fill(false);
        let mut stuck = None;
        for silo in 0..full.len() as u32 {
            self.see_growth(silo as usize, full, now);
            if !self.lasts(silo as usize, full, now) || self.out.iter().any(|out| out.from == silo) {
                continue;
            }
            let found = self.give(silo, full, snapshot, loads, &mut each);
            stuck = stuck.or(found);
        }
        stuck
    }

    /// Moves streams away from `silo`. Returns why none leaves.
    fn give(
        &mut self,
        silo: u32,
        full: &[Option<Waiting>],
        snapshot: &Snapshot,
        loads: &[StreamLoad],
        each: &mut impl FnMut(Made) -> bool,
    ) -> Option<Stuck> {
        let (mut left, had) = (parts(silo, loads, 1.0 - self.given[silo as usize]), self.given[silo as usize]);
        if left.is_empty() {
            return Some(Stuck::NoStream { silo });
        }
        let (mut gone, mut has_asked) = (0, false);
        while gone < STREAMS_MAX {
            let (at, to) = match self.best(silo, full, snapshot, &left) {
                Ok(best) => best,
                // A silo that has given enough away waits for its backlog to end. A refusal was reported by `each`.
                Err(stuck) => return (!has_asked && had == 0.0).then_some(stuck),
            };
            let (stream, share) = left[at];
            let on = [silo, to].map(|one| self.candidate(one, full, snapshot));
            let why = Why::Overflow;
            let decision = Decision::Move { stream, from: silo, to, why, share, lease: LEASE };
            has_asked = true;
            if each(Made { decision, on }) {
                left.swap_remove(at);
                self.given[silo as usize] += share;
                self.shifted[to as usize] += share;
                self.out.push(PendingMove { stream, from: silo, to, share });
                gone += 1;
            } else {
                // The next best silo may take the stream. This silo is not asked again before the next step.
                self.refused[to as usize] = true;
            }
        }
        None
    }

    /// Ends moves that are no longer under way: their stream has arrived, or stays. After a new
    /// snapshot only the load of pending moves is added to it.
    fn settle(&mut self, snapshot: &Snapshot, loads: &[StreamLoad], under_way: &dyn Fn(u32) -> bool) {
        let is_there = |out: &PendingMove| loads.iter().any(|load| load.stream == out.stream && load.silo == out.to);
        let (given, shifted) = (&mut self.given, &mut self.shifted);
        self.out.retain(|out| {
            let (is_out, is_there) = (under_way(out.stream), is_there(out));
            if !is_out && !is_there {
                given[out.from as usize] = (given[out.from as usize] - out.share).max(0.0);
                shifted[out.to as usize] -= out.share;
            }
            is_out && !is_there
        });
        if self.taken != Some(snapshot.taken) {
            self.taken = Some(snapshot.taken);
            self.shifted.fill(0.0);
            self.out.iter().for_each(|out| self.shifted[out.to as usize] += out.share);
        }
    }

    /// A silo whose backlog does not shrink after its streams have left counts as full again.
    /// Without a backlog a silo has given nothing away.
    fn see_growth(&mut self, silo: usize, full: &[Option<Waiting>], now: Ticks) {
        let is_giving = self.out.iter().any(|out| out.from as usize == silo);
        let Some(Waiting { waiting, .. }) = full[silo] else {
            (self.given[silo], self.mark[silo]) = (0.0, None);
            return;
        };
        if is_giving || self.given[silo] == 0.0 {
            self.mark[silo] = None;
            return;
        }
        let (since, before) = *self.mark[silo].get_or_insert((now, waiting));
        if now.since(since) >= self.rate.ticks(GROWS_FOR) {
            if waiting >= before {
                self.given[silo] = 0.0;
            }
            self.mark[silo] = Some((now, waiting));
        }
    }

    /// How full a silo is. An overloaded silo is as full as the share that it has not given away, whatever its mean is.
    fn view(&self, silo: u32, full: &[Option<Waiting>], snapshot: &Snapshot) -> Option<f64> {
        if full[silo as usize].is_some() {
            return Some(1.0 - self.given[silo as usize]);
        }
        snapshot.silos[silo as usize].known().map(|depth| depth.max + self.shifted[silo as usize])
    }

    fn candidate(&self, silo: u32, full: &[Option<Waiting>], snapshot: &Snapshot) -> Option<Candidate> {
        let one = Candidate::of(silo, snapshot.silos[silo as usize].known()?);
        let is_full = full[silo as usize].is_some();
        let (shifted, given) = (self.shifted[silo as usize], self.given[silo as usize]);
        Some(if is_full { Candidate { max: 1.0, charge: -given, ..one } } else { Candidate { charge: shifted, ..one } })
    }

    /// Whether the backlog of `silo` will last: at the pace of the last two checks it does not end
    /// soon. A machine that was suspended also leaves a backlog, which ends by itself. A feed that
    /// does not run reports nothing.
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

    /// The stream in `left` that closes most of the gap to the emptiest other silo, by its index,
    /// and that silo. Or why there is none.
    fn best(
        &self,
        silo: u32,
        full: &[Option<Waiting>],
        snapshot: &Snapshot,
        left: &[(u32, f64)],
    ) -> Result<(usize, u32), Stuck> {
        let (from, none) = (1.0 - self.given[silo as usize], Stuck::NoSilo { silo });
        let is_open = |other: &u32| full[*other as usize].is_none() && !self.refused[*other as usize];
        let others = (0..full.len() as u32).filter(is_open);
        let others = others.filter_map(|other| Some((other, self.view(other, full, snapshot)?)));
        let (to, free) = others.min_by(|one, other| one.1.total_cmp(&other.1)).ok_or(none)?;
        if free >= ENTER {
            return Err(none);
        }
        let gap = from - free;
        let gain = |share: f64| gap - (gap - 2.0 * share).abs();
        let fits = |(_, (_, share)): &(usize, &(u32, f64))| free + share < ENTER && gain(*share) > GAIN_MIN;
        let best = left.iter().enumerate().filter(fits);
        let best = best.max_by(|one, other| gain(one.1.1).total_cmp(&gain(other.1.1)));
        best.map(|(at, _)| (at, to)).ok_or_else(|| {
            let lightest = left.iter().map(|(_, share)| *share).fold(1.0, f64::min);
            let [lightest, full] = [lightest, free].map(|share| (share * 100.0).round() as u32);
            Stuck::NoFit { silo, lightest, emptiest: to, full }
        })
    }
}

/// Streams of `silo` that may move, each with its share of the silo's load, where all streams of
/// the silo together have the share `all`. If no stream was answered, all have the same share.
fn parts(silo: u32, loads: &[StreamLoad], all: f64) -> Vec<(u32, f64)> {
    let own = || loads.iter().filter(|load| load.silo == silo);
    let (count, sum) = (own().count() as f64, own().map(|load| load.share).sum::<f64>());
    let part = |load: &StreamLoad| if sum > 0.0 { load.share / sum } else { 1.0 / count };
    own().filter(|load| load.may_move).map(|load| (load.stream, all * part(load))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Relief, STREAMS_MAX, Stuck, Waiting};
    use crate::placement::decision::{Decision, Why};
    use crate::placement::depth::{Reading, SiloDepth, Snapshot, Unknown};
    use crate::placement::rebalance::StreamLoad;
    use crate::units::{TickRate, Ticks};

    const MS: u64 = 1_000_000;
    struct Bench {
        relief: Relief,
        loads: Vec<StreamLoad>,
        silos: Vec<Option<f64>>,
        /// When the snapshot was taken.
        taken: Ticks,
        /// Streams whose moves have failed.
        failed: Vec<u32>,
        /// Silos that refuse.
        shut: Vec<u32>,
        refused: u32,
    }

    impl Bench {
        /// Streams by the silo that has them, all alike.
        fn new(silos: &[Option<f64>], streams: &[u32]) -> Bench {
            let load = |(stream, silo): (u32, &u32)| StreamLoad { stream, silo: *silo, share: 0.1, may_move: true };
            let relief = Relief::new(silos.len(), TickRate::NANOS);
            let (taken, failed, shut) = (Ticks(0), Vec::new(), Vec::new());
            let loads = (0..).zip(streams).map(load).collect();
            Bench { relief, loads, silos: silos.to_vec(), taken, failed, shut, refused: 0 }
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
            let snapshot = Snapshot { number: 1, taken: self.taken, silos };
            let full: Vec<_> = (0..self.silos.len()).map(|silo| (silo == 0).then_some(waiting)).collect();
            let (mut moves, now) = (Vec::new(), Ticks(ms * MS));
            let (failed, shut, refused) = (&self.failed, &self.shut, &mut self.refused);
            let under_way = |stream: u32| !failed.contains(&stream);
            let stuck = self.relief.step(&full, &snapshot, &self.loads, (now, &under_way), |made| {
                let Decision::Move { stream, from: 0, to, why: Why::Overflow, .. } = made.decision else {
                    panic!("{made:?}")
                };
                let is_shut = shut.contains(&to);
                *refused += u32::from(is_shut);
                moves.extend((!is_shut).then_some((stream, to)));
                !is_shut
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
    fn no_more_than_so_many_at_a_time_and_the_next_when_they_are_there_or_have_failed() {
        let mut bench = Bench::new(&[Some(0.9), Some(0.0)], &[0; 100]);
        let _ = bench.see(1);
        let (first, _) = bench.see(10);
        assert_eq!(first.len(), STREAMS_MAX);
        bench.arrive(&first[1..]);
        assert_eq!(bench.see(50), (vec![], None), "one is not there");
        assert_eq!(bench.see(2_000), (vec![], None), "a full silo may take long");
        bench.failed.push(first[0].0);
        assert_eq!(bench.see(2_010).0.len(), STREAMS_MAX, "it is not coming");
    }

    #[test]
    fn no_stream_goes_to_an_unknown_or_full_silo_and_the_reason_is_given() {
        let mut none = Bench::new(&[Some(0.9), None], &[0, 0]);
        let _ = none.see(1);
        assert_eq!(none.see(10), (vec![], Some(Stuck::NoSilo { silo: 0 })));
        let mut high = Bench::new(&[Some(0.9), Some(0.75)], &[0, 0]);
        let _ = high.see(1);
        let no_fit = Stuck::NoFit { silo: 0, lightest: 50, emptiest: 1, full: 75 };
        assert_eq!(high.see(10), (vec![], Some(no_fit)), "that one is below 80 %, and would not be");
        let mut full = Bench::new(&[Some(0.9), Some(0.85)], &[0, 0]);
        let _ = full.see(1);
        assert_eq!(full.see(10), (vec![], Some(Stuck::NoSilo { silo: 0 })));
        let mut alone = Bench::new(&[Some(0.9), Some(0.0)], &[0]);
        let _ = alone.see(1);
        let stuck = alone.see(10).1.unwrap().to_string();
        assert!(stuck.contains("is 100 % of its load, and silo 1, the emptiest, is 0 % full"), "{stuck}");
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

    #[test]
    fn a_silo_that_gave_half_away_gives_no_half_again_while_its_backlog_goes() {
        let mut bench = Bench::new(&[Some(0.9), Some(0.0)], &[0; 16]);
        let mut arrived = 0;
        let mut see = |bench: &mut Bench, ms, waiting| {
            arrived += 100;
            bench.see_waiting(ms, Waiting { arrived, waiting }).0
        };
        assert_eq!(see(&mut bench, 1, 10_000), []);
        let first = see(&mut bench, 10, 10_000);
        assert_eq!(first.len(), 8);
        bench.arrive(&first);
        // A new snapshot has them at the other one, and the backlog goes, slowly.
        (bench.taken, bench.silos[1]) = (Ticks(15 * MS), Some(0.5));
        for step in 0..100 {
            assert_eq!(see(&mut bench, 20 + 10 * step, 9_990 - 10 * step), [], "step {step}");
        }
        // It grows again, for longer than a moment: what it still has fills it.
        bench.silos[1] = Some(0.2);
        let moves = (0..22).map(|step| see(&mut bench, 1_030 + 10 * step, 9_000 + 10 * step).len());
        assert!(moves.sum::<usize>() > 0);
    }

    #[test]
    fn a_move_that_fails_is_not_counted_as_given_away() {
        let mut bench = Bench::new(&[Some(0.9), Some(0.0)], &[0; 4]);
        let _ = bench.see(1);
        let first = bench.see(10).0;
        assert_eq!(first.len(), 2);
        bench.failed.extend(first.iter().map(|(stream, _)| *stream));
        assert_eq!(bench.see(20).0.len(), 2, "it is as full as it was");
    }

    #[test]
    fn a_silo_that_refuses_is_asked_once_and_the_next_one_takes_the_streams() {
        let mut bench = Bench::new(&[Some(0.9), Some(0.0), Some(0.1)], &[0; 10]);
        bench.shut.push(1);
        let _ = bench.see(1);
        let (moves, stuck) = bench.see(10);
        assert_eq!((bench.refused, stuck), (1, None));
        assert!(!moves.is_empty() && moves.iter().all(|(_, to)| *to == 2), "{moves:?}");
    }
}
