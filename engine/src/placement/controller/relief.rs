//! The controller's part in [`crate::placement::relief`]: its readings, and why streams do not leave.

use super::{ControllerHandles, OLD_REFRESHES, PlacementController, SAMPLES_MIN, refresh, silo_of};
use crate::board::{self, Phase};
use crate::placement::depth::{Monitor, Snapshot};
use crate::placement::publish;
use crate::placement::rebalance::StreamLoad;
use crate::placement::relief::Waiting;
use crate::units::{Nanos, Ticks};

/// Greatest age of a snapshot that relief uses, however rare snapshots are.
const FRESH: Nanos = Nanos::from_millis(2_000);
/// Samples of one reading of its own.
const OWN_SAMPLES: u32 = 2 * SAMPLES_MIN;

/// Relief's own readings, for when snapshots are too rare. Sampled only while shots wait.
pub(super) struct ReliefReadings {
    monitor: Monitor,
    samples: u32,
    last: Option<Snapshot>,
}

impl ReliefReadings {
    pub(super) fn new(monitor: Monitor) -> ReliefReadings {
        ReliefReadings { monitor, samples: 0, last: None }
    }
}

impl PlacementController {
    /// Moves streams away from silos that shots wait for. If no shot waits it reads one word of each silo.
    pub fn relieve(&mut self, handles: ControllerHandles<'_>) {
        if board::get(&self.board.header().phase) != Phase::Live as u64 {
            return;
        }
        let full = self.full();
        if full.iter().all(Option::is_none) {
            self.relief.rest();
            self.own_readings.last = None;
            self.say_stuck(None);
            return;
        }
        let ControllerHandles { at_rest, under_way, ask } = handles;
        let now = self.clock.ticks();
        let Some(snapshot) = self.reading(now) else { return };
        // Read first, so that the streams of ended moves are seen at their new silos.
        let moving: Vec<bool> = (0..self.loads.len() as u32).map(under_way).collect();
        let under_way = |stream: u32| moving.get(stream as usize).is_some_and(|moving| *moving);
        let loads = self.loads_now(&|stream, silo| at_rest(stream, silo) && !under_way(stream));
        let board = &self.board;
        let stuck = self.relief.step(&full, &snapshot, &loads, (now, &under_way), |made| {
            let answer = ask(&made.decision);
            publish::decision(board, &made, now, answer.as_ref().err());
            answer.is_ok()
        });
        self.say_stuck(stuck.map(|stuck| stuck.to_string()));
    }

    /// How full the silos are now: the last snapshot if it is recent, otherwise a reading of its
    /// own. Silos that have died, drained or fallen silent meanwhile are unknown. `None`: no
    /// reading is complete yet.
    fn reading(&mut self, now: Ticks) -> Option<Snapshot> {
        let (rate, own_readings) = (self.clock.rate(), &mut self.own_readings);
        let limit = Nanos(refresh(&self.rules).0 * OLD_REFRESHES).min(FRESH);
        own_readings.monitor.look(&self.board, now);
        own_readings.samples += 1;
        if own_readings.samples > OWN_SAMPLES {
            (own_readings.last, own_readings.samples) = (Some(own_readings.monitor.take(&self.board, now)), 0);
        }
        let both = [&self.last, &own_readings.last].into_iter().flatten();
        let mut young = both.filter(|snapshot| snapshot.age(now, rate) <= limit);
        let mut snapshot = young.next()?.clone();
        self.monitor.recheck(&self.board, &mut snapshot, now);
        Some(snapshot)
    }

    /// Shots that wait for each silo, over all feeds.
    fn full(&self) -> Vec<Option<Waiting>> {
        let silos = self.board.shape().silos as usize;
        let mut full = vec![None; silos];
        for feed in (0..silos).map(|silo| self.board.feed(silo)) {
            let waits = board::get(&feed.overflow_since) != 0;
            let Some(of) = full.get_mut(board::get(&feed.overflow_silo) as usize).filter(|_| waits) else { continue };
            // The smaller count first: a shot taken up between the two reads then does not count as waiting.
            let (submitted, arrived) = (board::get(&feed.submitted), board::get(&feed.scheduled));
            let before = of.unwrap_or(Waiting { arrived: 0, waiting: 0 });
            let waiting = before.waiting + arrived.saturating_sub(submitted);
            *of = Some(Waiting { arrived: before.arrived + arrived, waiting });
        }
        full
    }

    /// The loads of the last snapshot, with the silos that have the streams now.
    fn loads_now(&self, at_rest: &dyn Fn(u32, u32) -> bool) -> Vec<StreamLoad> {
        let as_of_now = |load: &StreamLoad| {
            let silo = silo_of(&self.board, load.stream);
            let may_move = self.rules.streams.includes(load.stream) && at_rest(load.stream, silo);
            StreamLoad { silo, may_move, ..*load }
        };
        self.loads.iter().map(as_of_now).collect()
    }

    fn say_stuck(&mut self, stuck: Option<String>) {
        // A decision in between has overwritten the text.
        if stuck.is_some() || self.stuck.is_some() {
            publish::hindrance(&self.board, stuck.as_deref());
        }
        self.stuck = stuck;
    }
}
