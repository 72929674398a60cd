//! The placement controller: it samples the queues, takes a snapshot once in [`SAMPLES`] samples, and decides.
//!
//! Owns monitor, watch, director and rebalancer, and writes the placement blocks of the board. Run
//! by one cold thread. It requests moves through a closure, which answers at once. Bounds: those of
//! its parts. Never waits.

use super::decision::{Decision, Made};
use super::depth::{ENTER, LEAVE, Monitor, MonitorLimits, Reading, SiloDepth, Snapshot, Watch};
use super::director::{Director, PREFERRED_MAX, Rules};
use super::publish;
use super::rebalance::{Rebalancer, StreamLoad};
use super::relief::Relief;
use crate::board::{self, Board, Phase};
use crate::clock::Clock;
use crate::pipe::home;
use crate::profile::PlacementRules;
use crate::units::{Nanos, Ticks};
use std::sync::Arc;

/// Samples of one snapshot.
pub const SAMPLES: u32 = 20;
/// Fewest samples of a mean.
const SAMPLES_MIN: u32 = 5;
/// A thread whose heartbeat is older than this and than a refresh is silent.
const SILENT_MIN: Nanos = Nanos::from_millis(100);
/// Refreshes after which a snapshot is too old for a placement.
const OLD_REFRESHES: u64 = 2;
/// How full new streams are expected to make a silo while none of them has sent a shot.
const UNHEARD_FULL: f64 = 0.5;
/// Most shots that count as arriving for each shot taken up.
const BACKED_UP_MAX: f64 = 8.0;
/// Seed of the director's draws.
const SEED: u64 = 0x0070_6c61_6365;

/// Attempts to place a new stream before it stays where it is.
const PLACE_TRIES: u32 = 10;

/// Requests the move of a decision. `Err` says in one sentence why the move cannot begin.
pub type RequestMove<'a> = &'a mut dyn FnMut(&Decision) -> Result<(), String>;

/// What the controller uses of its engine.
pub struct ControllerHandles<'a> {
    /// Whether the page of a stream rests at a silo: it is neither leased nor in transfer.
    pub at_rest: &'a dyn Fn(u32, u32) -> bool,
    /// Whether a requested move of a stream has not ended.
    pub under_way: &'a dyn Fn(u32) -> bool,
    /// Requests the move of a decision.
    pub ask: RequestMove<'a>,
}

/// A new stream that moves to its silo.
struct New {
    load: StreamLoad,
    to: u32,
    is_high: bool,
    /// Whether its move has begun.
    is_asked: bool,
    tries: u32,
}

/// The controller of one engine.
pub struct PlacementController {
    board: Arc<Board>,
    clock: Clock,
    rules: PlacementRules,
    monitor: Monitor,
    watch: Watch,
    director: Director,
    rebalancer: Rebalancer,
    /// Answers of each stream at the last snapshot.
    answered: Vec<u64>,
    /// By feed: shots that were due at the last snapshot, and shots taken up by then.
    come: Vec<(u64, u64)>,
    /// Expected share of all shots, by stream, until the stream has sent some.
    expected: Vec<f64>,
    loads: Vec<StreamLoad>,
    samples: u32,
    has_placed: bool,
    /// Streams that have not arrived where they were placed.
    new: Vec<New>,
    relief: Relief,
    own_readings: relief::ReliefReadings,
    /// The newest snapshot.
    last: Option<Snapshot>,
    /// Why no stream leaves a full silo.
    stuck: Option<String>,
}

mod relief;

impl PlacementController {
    /// A controller for the silos of `board`.
    pub fn new(board: Arc<Board>, clock: Clock, rules: PlacementRules) -> PlacementController {
        let rate = clock.rate();
        let (silos, streams) = (board.shape().silos as usize, board.shape().streams as usize);
        let refresh = refresh(&rules);
        let limits = MonitorLimits { silent: refresh.max(SILENT_MIN), samples_min: SAMPLES_MIN };
        let by = Rules { by: rules.by, all_high: rules.all_high, horizon: refresh, ..Rules::SEED };
        let monitor = Monitor::new(&board, limits, rate);
        publish::rules(&board, &rules, refresh);
        PlacementController {
            monitor,
            watch: Watch::new(silos, ENTER, LEAVE),
            director: Director::new(by, SEED),
            rebalancer: Rebalancer::new(silos, streams, rate),
            answered: vec![0; streams],
            come: vec![(0, 0); silos],
            expected: vec![1.0 / streams.max(1) as f64; streams],
            loads: Vec::with_capacity(streams),
            samples: 0,
            has_placed: false,
            new: Vec::new(),
            relief: Relief::new(silos, rate),
            own_readings: relief::ReliefReadings::new(Monitor::new(&board, limits, rate)),
            last: None,
            stuck: None,
            board,
            clock,
            rules,
        }
    }

    /// Expects shots of each stream in proportion to `weights`.
    #[must_use]
    pub fn expecting(mut self, weights: &[f64]) -> PlacementController {
        let sum: f64 = weights.iter().sum();
        self.expected.iter_mut().zip(weights).for_each(|(expected, weight)| *expected = weight / sum);
        self
    }

    /// Time between two samples.
    pub fn look_every(&self) -> Nanos {
        Nanos(refresh(&self.rules).0 / u64::from(SAMPLES))
    }

    /// Takes one sample. After each [`SAMPLES`]th sample it takes a snapshot and decides.
    pub fn step(&mut self, handles: ControllerHandles<'_>) {
        let now = self.clock.ticks();
        self.monitor.look(&self.board, now);
        self.samples += 1;
        let done = self.clock.ticks();
        self.board.placement().look.record(self.clock.rate().nanos(done.since(now)).0);
        if self.samples >= SAMPLES {
            self.refresh(done, handles);
        }
    }

    fn refresh(&mut self, now: Ticks, ControllerHandles { at_rest, under_way, ask }: ControllerHandles<'_>) {
        let samples = std::mem::take(&mut self.samples);
        let mut snapshot = self.monitor.take(&self.board, now);
        let board = Arc::clone(&self.board);
        self.watch.step(&snapshot, |crossing| publish::crossing(&board, &crossing, now));
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
        publish::snapshot(&board, &snapshot, samples, &self.watch, &self.loads, (&charges, &pressed));
        self.last = Some(snapshot);
    }

    /// The load of each stream as a share of its silo's capacity, and the sum for each silo: the
    /// stream's answers at the cost of an answer there, scaled up by the shots that are due at its
    /// feed and not taken up. Answers count for the silo that has the stream now: a move within the
    /// interval counts as made at its beginning.
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
            // The load of a silo that answers nothing is unknown.
            if let Reading::Known(depth) = reading
                && depth.processed > 0
            {
                depth.demand = demand;
            }
        }
    }

    /// By feed: shots that became due since the last snapshot for each shot taken up.
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

    /// Places a stream. Its charge lasts until the next snapshot.
    fn place(&mut self, load: &StreamLoad, now: Ticks) -> Made {
        let limit = Nanos(refresh(&self.rules).0 * OLD_REFRESHES);
        let taken = Ticks(board::get(&self.board.placement().snapshot_ticks));
        if self.clock.rate().nanos(now.since(taken)) > limit && taken != Ticks(0) {
            self.director.forget();
        }
        let from = self.clock.ticks();
        let made = self.director.place_known(load.stream, PREFERRED_MAX, (load.silo, load.share));
        let took = self.clock.rate().nanos(self.clock.ticks().since(from));
        self.board.placement().decision.record(took.0);
        made
    }

    /// Places each stream that takes part, the one with the highest load first. A stream without
    /// shots so far has its expected load.
    fn place_all(&mut self, now: Ticks, ask: RequestMove<'_>) {
        let mut new: Vec<StreamLoad> = self.loads.clone();
        new.retain(|load| self.rules.streams.includes(load.stream));
        let all = new.iter().map(|load| load.share).sum::<f64>().max(UNHEARD_FULL * self.come.len() as f64);
        for load in new.iter_mut().filter(|load| load.share == 0.0) {
            load.share = all * self.expected[load.stream as usize];
        }
        new.sort_by(|one, other| other.share.total_cmp(&one.share));
        new.into_iter().for_each(|load| self.place_one(load, 0, now, ask));
    }

    /// Places one stream whose move was refused or failed `tries` times before.
    fn place_one(&mut self, load: StreamLoad, tries: u32, now: Ticks, ask: RequestMove<'_>) {
        let made = self.place(&load, now);
        let Decision::Place { silo: to, is_high, .. } = made.decision else {
            publish::decision(&self.board, &made, now, None);
            return;
        };
        let answer = if to == load.silo { Ok(()) } else { ask(&made.decision) };
        publish::decision(&self.board, &made, now, answer.as_ref().err());
        if to == load.silo {
            publish::placed(&self.board, is_high);
        } else {
            self.new.push(New { load, to, is_high, is_asked: answer.is_ok(), tries });
        }
    }

    /// Streams that have arrived count as placed. Those whose move was refused or failed are placed again.
    fn place_rest(&mut self, now: Ticks, under_way: &dyn Fn(u32) -> bool, ask: RequestMove<'_>) {
        for new in std::mem::take(&mut self.new) {
            let New { load, to, is_high, is_asked, tries } = new;
            let is_out = is_asked && under_way(load.stream);
            let silo = silo_of(&self.board, load.stream);
            if is_out {
                self.new.push(new);
            } else if silo == to || silo != load.silo {
                // It has arrived, or someone else has moved it since.
                publish::placed(&self.board, is_high);
            } else if tries + 1 < PLACE_TRIES {
                self.place_one(load, tries + 1, now, ask);
            }
        }
    }

    /// Tells the rebalancer which moves have ended without their stream's arrival.
    fn forget_failed(&mut self, now: Ticks, under_way: &dyn Fn(u32) -> bool) {
        let board = &self.board;
        let has_failed = |stream: u32, to: u32| !under_way(stream) && silo_of(board, stream) != to;
        self.rebalancer.forget_failed(now, has_failed);
    }

    fn rebalance(&mut self, snapshot: &Snapshot, now: Ticks, ask: RequestMove<'_>) {
        let mut refused = Vec::new();
        let board = &self.board;
        self.rebalancer.step(snapshot, &self.loads, now, |made| {
            let answer = ask(&made.decision);
            publish::decision(board, &made, now, answer.as_ref().err());
            if let (Err(_), Decision::Move { stream, .. }) = (answer, made.decision) {
                refused.push(stream);
            }
        });
        refused.into_iter().for_each(|stream| self.rebalancer.refused(stream));
    }
}

/// The silo that decodes `stream`.
fn silo_of(board: &Board, stream: u32) -> u32 {
    board::get(&board.stream_feed(stream as usize).silo) as u32
}

fn refresh(rules: &PlacementRules) -> Nanos {
    Nanos::from_millis(rules.refresh_ms.into())
}

#[cfg(test)]
mod tests;
