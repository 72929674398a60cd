//! The director's desk: one look after another, a snapshot now and then, and what follows from it.
//!
//! Owns monitor, watch, director and rebalancer, and writes the director's blocks on the board. Run by one cold thread;
//! what makes a move is asked through a closure, which answers at once. Bounds: those of its parts. Never waits.

use super::decision::{Decision, Made};
use super::depth::{ENTER, LEAVE, Monitor, MonitorLimits, Reading, SiloDepth, Snapshot, Watch};
use super::director::{Director, Rules};
use super::rebalance::{Rebalancer, StreamLoad};
use super::relief::Relief;
use super::show;
use crate::board::{self, Board, Phase};
use crate::clock::Clock;
use crate::feed::requests::home;
use crate::profile::PlacementRules;
use crate::units::{Nanos, Ticks};
use std::sync::Arc;

/// Looks of one snapshot.
pub const LOOKS: u32 = 20;
/// A mean of fewer looks is none.
const LOOKS_MIN: u32 = 5;
/// A thread is silent after this or a refresh, whichever is longer.
const SILENT_MIN: Nanos = Nanos::from_millis(100);
/// Refreshes after which a snapshot is too old to place by.
const OLD_REFRESHES: u64 = 2;
/// How full silos are taken to become of streams none of which has been heard of.
const UNHEARD_FULL: f64 = 0.5;
/// What comes for a silo is believed up to so many times what it answers.
const BACKED_UP_MAX: f64 = 8.0;
/// Of all draws of a director.
const SEED: u64 = 0x0070_6c61_6365;

/// How a decision is handed on: `Err` says in one sentence why it cannot be acted on.
pub type Ask<'a> = &'a mut dyn FnMut(&Decision) -> Result<(), String>;
/// Whether the page of a stream at a silo is at rest there: neither leased nor on its way.
pub type AtRest<'a> = &'a dyn Fn(u32, u32) -> bool;

/// The desk of one engine.
pub struct Desk {
    board: Arc<Board>,
    clock: Clock,
    rules: PlacementRules,
    monitor: Monitor,
    watch: Watch,
    director: Director,
    rebalancer: Rebalancer,
    /// Answers of each stream at the last snapshot.
    answered: Vec<u64>,
    /// Shots of each feed that were due by then, and those it had taken up.
    come: Vec<(u64, u64)>,
    /// How much of all that comes is expected of each stream, until it has been heard of.
    expected: Vec<f64>,
    loads: Vec<StreamLoad>,
    looks: u32,
    has_placed: bool,
    relief: Relief,
    /// The newest snapshot.
    last: Option<Snapshot>,
    /// Why no stream leaves a full silo.
    stuck: Option<String>,
}

mod relief;

impl Desk {
    /// For the silos of `board`.
    #[must_use]
    pub fn new(board: Arc<Board>, clock: Clock, rules: PlacementRules) -> Desk {
        let rate = clock.rate();
        let (silos, streams) = (board.shape().silos as usize, board.shape().streams as usize);
        let refresh = refresh(&rules);
        let limits = MonitorLimits { silent: refresh.max(SILENT_MIN), looks_min: LOOKS_MIN };
        let by = Rules {
            by: rules.by,
            high: rules.high_utilization,
            critical: rules.critical_utilization,
            all_high: rules.all_high,
            horizon: refresh,
        };
        let monitor = Monitor::new(&board, limits, rate);
        show::rules(&board, &rules, refresh);
        Desk {
            monitor,
            watch: Watch::new(silos, ENTER, LEAVE),
            director: Director::new(by, SEED),
            rebalancer: Rebalancer::new(silos, streams, rate),
            answered: vec![0; streams],
            come: vec![(0, 0); silos],
            expected: vec![1.0 / streams.max(1) as f64; streams],
            loads: Vec::with_capacity(streams),
            looks: 0,
            has_placed: false,
            relief: Relief::new(silos, rate),
            last: None,
            stuck: None,
            board,
            clock,
            rules,
        }
    }

    /// Streams of which as much is expected as `weights` say.
    #[must_use]
    pub fn expecting(mut self, weights: &[f64]) -> Desk {
        let sum: f64 = weights.iter().sum();
        self.expected.iter_mut().zip(weights).for_each(|(expected, weight)| *expected = weight / sum);
        self
    }

    /// From one look to the next.
    #[must_use]
    pub fn look_every(&self) -> Nanos {
        Nanos(refresh(&self.rules).0 / u64::from(LOOKS))
    }

    /// Looks once; with every [`LOOKS`]th look comes a snapshot, and what follows from it.
    pub fn step(&mut self, at_rest: AtRest<'_>, ask: Ask<'_>) {
        let now = self.clock.ticks();
        self.monitor.look(&self.board, now);
        self.looks += 1;
        let done = self.clock.ticks();
        self.board.placement().look.record(self.clock.rate().nanos(done.since(now)).0);
        if self.looks >= LOOKS {
            self.refresh(done, at_rest, ask);
        }
    }

    fn refresh(&mut self, now: Ticks, at_rest: AtRest<'_>, ask: Ask<'_>) {
        let looks = std::mem::take(&mut self.looks);
        let mut snapshot = self.monitor.take(&self.board, now);
        let board = Arc::clone(&self.board);
        self.watch.step(&snapshot, |crossing| show::crossing(&board, &crossing, now));
        self.weigh(&mut snapshot, at_rest);
        self.director.refresh(&snapshot, self.loads.len());
        let is_live = board::get(&board.header().phase) == Phase::Live as u64;
        if is_live && !self.has_placed && snapshot.silos.iter().any(|silo| silo.known().is_some()) {
            self.has_placed = true;
            self.place_all(now, ask);
        }
        if is_live && self.rules.rebalance {
            self.rebalance(&snapshot, now, ask);
        }
        let charges = |silo| self.director.charge(silo);
        let pressed = |silo| self.rebalancer.pressed_since(silo);
        show::snapshot(&board, &snapshot, looks, &self.watch, &self.loads, (&charges, &pressed));
        self.last = Some(snapshot);
    }

    /// What comes for each stream, of what its silo can do, and so for each silo: a stream's answers at what an answer took
    /// there, and as many more as are due at its feed beyond those taken up. Whose answers they are goes by where streams are
    /// now: a move within the interval counts as if it had been made at its beginning.
    fn weigh(&mut self, snapshot: &mut Snapshot, at_rest: AtRest<'_>) {
        let backed_up = self.backed_up();
        let silos = snapshot.silos.len();
        let depths: Vec<Option<SiloDepth>> = snapshot.silos.iter().map(|silo| silo.known().copied()).collect();
        let mut demand = vec![0.0; silos];
        self.loads.clear();
        for (stream, before) in (0..).zip(&mut self.answered) {
            let total = board::get(&self.board.stream_harvest(stream as usize).answered);
            let silo = (board::get(&self.board.stream_feed(stream as usize).silo) as usize).min(silos - 1);
            let since = total.saturating_sub(std::mem::replace(before, total));
            let of_one = depths[silo].map_or(0.0, |depth| depth.max / depth.processed.max(1) as f64);
            let share = of_one * since as f64 * backed_up[home(stream, silos as u32)];
            demand[silo] += share;
            let silo = silo as u32;
            let may_move = self.rules.streams.includes(stream) && at_rest(stream, silo);
            self.loads.push(StreamLoad { stream, silo, share, may_move });
        }
        for (reading, demand) in snapshot.silos.iter_mut().zip(demand) {
            // Of one that answers nothing nobody knows what comes for it.
            if let Reading::Known(depth) = reading
                && depth.processed > 0
            {
                depth.demand = demand;
            }
        }
    }

    /// Of each feed: shots that became due since the last snapshot, for each that it took up.
    fn backed_up(&mut self) -> Vec<f64> {
        let feeds = (0..).zip(&mut self.come);
        feeds
            .map(|(silo, before)| {
                let feed = self.board.feed(silo);
                let (taken_up, due) = (board::get(&feed.submitted), board::get(&feed.scheduled));
                let (due_before, taken_before) = std::mem::replace(before, (due, taken_up));
                let (due, taken_up) = (due.saturating_sub(due_before), taken_up.saturating_sub(taken_before));
                if taken_up == 0 { 1.0 } else { (due as f64 / taken_up as f64).min(BACKED_UP_MAX) }
            })
            .collect()
    }

    /// Places a stream that takes part; what is charged for it lasts until the next snapshot.
    fn place(&mut self, load: &StreamLoad, now: Ticks) -> Made {
        let limit = Nanos(refresh(&self.rules).0 * OLD_REFRESHES);
        let taken = Ticks(board::get(&self.board.placement().snapshot_ticks));
        if self.clock.rate().nanos(now.since(taken)) > limit && taken != Ticks(0) {
            self.director.forget();
        }
        let from = self.clock.ticks();
        let preferred_max = self.rules.preferred_max_utilization;
        let made = self.director.place_known(load.stream, preferred_max, (load.silo, load.share));
        let took = self.clock.rate().nanos(self.clock.ticks().since(from));
        self.board.placement().decision.record(took.0);
        made
    }

    /// Each stream that takes part is new once; those of which most comes choose first. Of one that has not been heard of
    /// what is expected comes.
    fn place_all(&mut self, now: Ticks, ask: Ask<'_>) {
        let mut new: Vec<StreamLoad> = self.loads.clone();
        new.retain(|load| self.rules.streams.includes(load.stream));
        let all = new.iter().map(|load| load.share).sum::<f64>().max(UNHEARD_FULL * self.come.len() as f64);
        for load in new.iter_mut().filter(|load| load.share == 0.0) {
            load.share = all * self.expected[load.stream as usize];
        }
        new.sort_by(|one, other| other.share.total_cmp(&one.share));
        for load in new {
            let made = self.place(&load, now);
            let goes = matches!(made.decision, Decision::Place { silo, .. } if silo != load.silo);
            let answer = if goes { ask(&made.decision) } else { Ok(()) };
            show::decision(&self.board, &made, now, answer.as_ref().err());
        }
    }

    fn rebalance(&mut self, snapshot: &Snapshot, now: Ticks, ask: Ask<'_>) {
        let mut refused = Vec::new();
        let board = &self.board;
        self.rebalancer.step(snapshot, &self.loads, now, |made| {
            let answer = ask(&made.decision);
            show::decision(board, &made, now, answer.as_ref().err());
            if let (Err(_), Decision::Move { stream, .. }) = (answer, made.decision) {
                refused.push(stream);
            }
        });
        refused.into_iter().for_each(|stream| self.rebalancer.refused(stream));
    }
}

fn refresh(rules: &PlacementRules) -> Nanos {
    Nanos::from_millis(rules.refresh_ms.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Desk, LOOKS};
    use crate::board::{self, Board, Phase, Place, Shape};
    use crate::clock::Clock;
    use crate::placement::decision::Decision;
    use crate::profile::{PlacementRules, Profile, RoleKind, TakesPart};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const SHAPE: Shape = Shape { threads: 2, silos: 2, slots: 64, workers: 8, decoders: 1, streams: 4 };
    const LOOK_NS: u64 = 50_000_000;

    struct Bench {
        board: Arc<Board>,
        clock: Clock,
        nanos: Arc<AtomicU64>,
        desk: Desk,
        asked: Vec<Decision>,
        /// Shots that become due in a look at silo 0, where 4 are taken up.
        due: u64,
        /// What the mover says.
        refusal: Option<String>,
    }

    fn bench(change: impl FnOnce(&mut PlacementRules)) -> Bench {
        let board = Arc::new(Board::create(SHAPE, Place::Private).unwrap());
        let nanos = Arc::new(AtomicU64::new(LOOK_NS));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let mut rules = Profile::load("lab", None).unwrap().0.placement;
        rules.streams = TakesPart::All;
        rules.rebalance = true;
        change(&mut rules);
        for silo in 0..2 {
            let thread = board.thread(silo);
            board::set(&thread.state, 1);
            board::set(&thread.roles_count, 1);
            board::set(&thread.roles[0].identity, RoleKind::Decode as u64 | (silo as u64) << 8);
            board::set(&board.poll(silo).idle_mask, 0xff);
        }
        for stream in 0..4 {
            board::set(&board.stream_feed(stream).silo, stream as u64 % 2);
        }
        board::set(&board.header().phase, Phase::Live as u64);
        let desk = Desk::new(Arc::clone(&board), clock.clone(), rules);
        Bench { board, clock, nanos, desk, asked: Vec::new(), due: 4, refusal: None }
    }

    impl Bench {
        /// One snapshot long; silo 0 is busy for `busy` of it, and its streams 0 and 2 answer three to one.
        fn pass(&mut self, busy: f64) {
            for _ in 0..LOOKS {
                let now = self.nanos.fetch_add(LOOK_NS, Ordering::Relaxed) + LOOK_NS;
                for silo in 0..2 {
                    board::set(&self.board.thread(silo).heartbeat, now);
                }
                board::add(&self.board.decode(0, 0).busy_ticks, (busy * LOOK_NS as f64) as u64);
                board::add(&self.board.decode(1, 0).busy_ticks, LOOK_NS / 5);
                board::add(&self.board.stream_harvest(0).answered, 1);
                board::add(&self.board.stream_harvest(2).answered, 3);
                board::add(&self.board.harvest(0).answered, 4);
                board::add(&self.board.feed(0).submitted, 4);
                board::add(&self.board.feed(0).scheduled, self.due);
                let (asked, refusal) = (&mut self.asked, &self.refusal);
                self.desk.step(&|_, _| true, &mut |decision| {
                    asked.push(*decision);
                    refusal.clone().map_or(Ok(()), Err)
                });
            }
        }

        fn moves(&self) -> Vec<(u32, u32, u32)> {
            let moves = self.asked.iter().filter_map(|decision| match decision {
                Decision::Move { stream, from, to, .. } => Some((*stream, *from, *to)),
                _ => None,
            });
            moves.collect()
        }
    }

    #[test]
    fn a_silo_that_stays_hot_gives_the_stream_away_that_closes_the_gap() {
        let mut bench = bench(|_| ());
        (0..3).for_each(|_| bench.pass(0.9));
        assert_eq!(bench.moves(), [(0, 0, 1)], "of a gap of 0.7, 0.225 closes more than 0.675");
        let view = bench.board.snapshot(&bench.clock).placement.unwrap();
        assert_eq!((view.snapshot, view.moves_asked, view.crossings), (3, 1, [1, 0]));
        let made = &view.decisions[0];
        assert_eq!((made.what, made.why, made.stream, made.from, made.to), ("move", Some("hot"), 0, Some(0), Some(1)));
        assert!(made.on[0].max > 0.85 && made.on[1].max < 0.25, "{made:?}");
        assert!(view.spread_points.unwrap() > 30.0);
        assert!(view.silos[0].pressed_for_ns.is_some() && view.silos[1].unknown.is_none());
        let crossing = view.crossing.unwrap();
        assert_eq!((crossing.silo, crossing.queue, crossing.is_over), (0, "decode", true));
    }

    #[test]
    fn a_silo_that_falls_behind_gives_away_what_comes_and_not_what_it_manages() {
        let mut bench = bench(|_| ());
        // Twice as much comes as is answered: 1.8 against 0.2, and half of the difference is its larger stream's 1.35.
        bench.due = 8;
        (0..3).for_each(|_| bench.pass(0.9));
        assert_eq!(bench.moves(), [(0, 0, 1)], "0.45 fits; with 1.35 the other one would be far over");
        let view = bench.board.snapshot(&bench.clock).placement.unwrap();
        assert!((view.decisions[0].share - 0.45).abs() < 0.05, "{:?}", view.decisions[0]);
        // What had waited is worked off: full as it is, no more comes for it than for the other.
        let mut bench = self::bench(|_| ());
        bench.due = 1;
        (0..3).for_each(|_| bench.pass(0.9));
        assert_eq!(bench.moves(), []);
    }

    #[test]
    fn a_move_that_is_refused_is_counted_with_its_reason_and_asked_for_again() {
        let mut bench = bench(|_| ());
        bench.refusal = Some("found no mover, expected one; wait".to_owned());
        (0..4).for_each(|_| bench.pass(0.9));
        assert_eq!(bench.moves().len(), 2);
        let view = bench.board.snapshot(&bench.clock).placement.unwrap();
        assert_eq!((view.moves_asked, view.moves_refused), (0, 2));
        assert!(view.hindrance.unwrap().contains("no mover"));
        assert_eq!(view.decisions[0].what, "move_refused");
    }

    #[test]
    fn new_streams_are_placed_once_and_those_that_take_no_part_keep_their_silo() {
        let mut bench = bench(|rules| (rules.streams, rules.rebalance) = (TakesPart::Only(vec![0, 2]), false));
        (0..6).for_each(|_| bench.pass(0.5));
        let view = bench.board.snapshot(&bench.clock).placement.unwrap();
        assert_eq!((view.streams, view.placed), (2, 2));
        assert!(bench.asked.iter().all(|decision| matches!(decision, Decision::Place { stream: 0 | 2, silo: 1, .. })));
        assert!(!bench.asked.is_empty() && bench.moves().is_empty());
        assert_eq!(view.decision_ns.count(), 2);
    }

    #[test]
    fn before_live_the_queues_are_read_and_nothing_is_decided() {
        let mut bench = bench(|_| ());
        board::set(&bench.board.header().phase, Phase::Warmup as u64);
        (0..5).for_each(|_| bench.pass(0.95));
        assert!(bench.asked.is_empty());
        let view = bench.board.snapshot(&bench.clock).placement.unwrap();
        assert_eq!((view.snapshot, view.decisions.len()), (5, 0));
        assert!(view.silos[0].max > 0.9);
    }
}
