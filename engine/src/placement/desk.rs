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

/// Times that a place is looked for for a new stream, before it stays where it is.
const PLACE_TRIES: u32 = 10;

/// How a decision is handed on: `Err` says in one sentence why it cannot be acted on.
pub type Ask<'a> = &'a mut dyn FnMut(&Decision) -> Result<(), String>;

/// What the desk has of its engine.
pub struct Hands<'a> {
    /// Whether the page of a stream at a silo is at rest there: neither leased nor on its way.
    pub at_rest: &'a dyn Fn(u32, u32) -> bool,
    /// Whether a move that was asked for of a stream is not at its end.
    pub under_way: &'a dyn Fn(u32) -> bool,
    /// Hands a decision on.
    pub ask: Ask<'a>,
}

/// A new stream on its way to its silo.
struct New {
    load: StreamLoad,
    to: u32,
    is_high: bool,
    /// Whether its move was taken.
    is_asked: bool,
    tries: u32,
}

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
    /// Streams that are not yet where they were placed.
    new: Vec<New>,
    relief: Relief,
    near: relief::Near,
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
            new: Vec::new(),
            relief: Relief::new(silos, rate),
            near: relief::Near::new(Monitor::new(&board, limits, rate)),
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
    pub fn step(&mut self, hands: Hands<'_>) {
        let now = self.clock.ticks();
        self.monitor.look(&self.board, now);
        self.looks += 1;
        let done = self.clock.ticks();
        self.board.placement().look.record(self.clock.rate().nanos(done.since(now)).0);
        if self.looks >= LOOKS {
            self.refresh(done, hands);
        }
    }

    fn refresh(&mut self, now: Ticks, Hands { at_rest, under_way, ask }: Hands<'_>) {
        let looks = std::mem::take(&mut self.looks);
        let mut snapshot = self.monitor.take(&self.board, now);
        let board = Arc::clone(&self.board);
        self.watch.step(&snapshot, |crossing| show::crossing(&board, &crossing, now));
        self.forget_failed(now, under_way);
        self.weigh(&mut snapshot, &|stream, silo| at_rest(stream, silo) && !under_way(stream));
        self.director.refresh(&snapshot, self.loads.len());
        let is_live = board::get(&board.header().phase) == Phase::Live as u64;
        if is_live && !self.has_placed && snapshot.silos.iter().any(|silo| silo.known().is_some()) {
            self.has_placed = true;
            self.place_all(now, ask);
        } else if is_live && !self.new.is_empty() {
            self.place_rest(now, under_way, ask);
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
    fn weigh(&mut self, snapshot: &mut Snapshot, at_rest: &dyn Fn(u32, u32) -> bool) {
        let backed_up = self.backed_up();
        let silos = snapshot.silos.len();
        let depths: Vec<Option<SiloDepth>> = snapshot.silos.iter().map(|silo| silo.known().copied()).collect();
        let mut demand = vec![0.0; silos];
        self.loads.clear();
        for (stream, before) in (0..).zip(&mut self.answered) {
            let total = board::get(&self.board.stream_harvest(stream as usize).answered);
            let silo = (silo_of(&self.board, stream) as usize).min(silos - 1);
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
        new.into_iter().for_each(|load| self.place_one(load, 0, now, ask));
    }

    /// Places one, for which a place was looked for `tries` times before: its move was refused, or failed.
    fn place_one(&mut self, load: StreamLoad, tries: u32, now: Ticks, ask: Ask<'_>) {
        let made = self.place(&load, now);
        let Decision::Place { silo: to, is_high, .. } = made.decision else {
            show::decision(&self.board, &made, now, None);
            return;
        };
        let answer = if to == load.silo { Ok(()) } else { ask(&made.decision) };
        show::decision(&self.board, &made, now, answer.as_ref().err());
        if to == load.silo {
            show::placed(&self.board, is_high);
        } else {
            self.new.push(New { load, to, is_high, is_asked: answer.is_ok(), tries });
        }
    }

    /// Streams that have arrived are placed; for those whose move was refused, or failed, a place is looked for anew.
    fn place_rest(&mut self, now: Ticks, under_way: &dyn Fn(u32) -> bool, ask: Ask<'_>) {
        for new in std::mem::take(&mut self.new) {
            let New { load, to, is_high, is_asked, tries } = new;
            let is_out = is_asked && under_way(load.stream);
            let silo = silo_of(&self.board, load.stream);
            if is_out {
                self.new.push(new);
            } else if silo == to || silo != load.silo {
                // There, or where somebody else has moved it since.
                show::placed(&self.board, is_high);
            } else if tries + 1 < PLACE_TRIES {
                self.place_one(load, tries + 1, now, ask);
            }
        }
    }

    /// Tells the rebalancer of moves that are at their end, with their streams elsewhere.
    fn forget_failed(&mut self, now: Ticks, under_way: &dyn Fn(u32) -> bool) {
        let board = &self.board;
        let has_failed = |stream: u32, to: u32| !under_way(stream) && silo_of(board, stream) != to;
        self.rebalancer.forget_failed(now, has_failed);
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

/// Where the shots of `stream` go.
fn silo_of(board: &Board, stream: u32) -> u32 {
    board::get(&board.stream_feed(stream as usize).silo) as u32
}

fn refresh(rules: &PlacementRules) -> Nanos {
    Nanos::from_millis(rules.refresh_ms.into())
}

#[cfg(test)]
mod tests;
