//! The desk's part in [`crate::placement::relief`]: what it reads for it, and what it shows of it.

use super::{Desk, Hands, LOOKS_MIN, OLD_REFRESHES, refresh, silo_of};
use crate::board::{self, Phase};
use crate::placement::depth::{Monitor, Snapshot};
use crate::placement::rebalance::StreamLoad;
use crate::placement::relief::Waiting;
use crate::placement::show;
use crate::units::{Nanos, Ticks};

/// What relief goes by is no older, however seldom snapshots are made.
const FRESH: Nanos = Nanos::from_millis(2_000);
/// Looks of a reading of relief's own.
const NEAR_LOOKS: u32 = 2 * LOOKS_MIN;

/// Relief's own readings, where snapshots come too seldom for it. Looks only while shots wait.
pub(super) struct Near {
    monitor: Monitor,
    looks: u32,
    last: Option<Snapshot>,
}

impl Near {
    pub(super) fn new(monitor: Monitor) -> Near {
        Near { monitor, looks: 0, last: None }
    }
}

impl Desk {
    /// Where shots wait for a silo, has streams leave it. Cheap where none waits: a word of each silo.
    pub fn relieve(&mut self, hands: Hands<'_>) {
        if board::get(&self.board.header().phase) != Phase::Live as u64 {
            return;
        }
        let full = self.full();
        if full.iter().all(Option::is_none) {
            self.relief.rest();
            self.near.last = None;
            self.say_stuck(None);
            return;
        }
        let Hands { at_rest, under_way, ask } = hands;
        let now = self.clock.ticks();
        let Some(snapshot) = self.reading(now) else { return };
        // First, so that what has ended is where it led.
        let moving: Vec<bool> = (0..self.loads.len() as u32).map(under_way).collect();
        let under_way = |stream: u32| moving.get(stream as usize).is_some_and(|moving| *moving);
        let loads = self.loads_now(&|stream, silo| at_rest(stream, silo) && !under_way(stream));
        let board = &self.board;
        let stuck = self.relief.step(&full, &snapshot, &loads, (now, &under_way), |made| {
            let answer = ask(&made.decision);
            show::decision(board, &made, now, answer.as_ref().err());
            answer.is_ok()
        });
        self.say_stuck(stuck.map(|stuck| stuck.to_string()));
    }

    /// How full the silos are now: by the last snapshot, if it is not old, otherwise by looks of relief's own. Silos that have died,
    /// drained or fallen silent meanwhile are unknown. `None`: there has been no time to look.
    fn reading(&mut self, now: Ticks) -> Option<Snapshot> {
        let (rate, near) = (self.clock.rate(), &mut self.near);
        let limit = Nanos(refresh(&self.rules).0 * OLD_REFRESHES).min(FRESH);
        near.monitor.look(&self.board, now);
        near.looks += 1;
        if near.looks > NEAR_LOOKS {
            (near.last, near.looks) = (Some(near.monitor.take(&self.board, now)), 0);
        }
        let both = [&self.last, &near.last].into_iter().flatten();
        let mut young = both.filter(|snapshot| snapshot.age(now, rate) <= limit);
        let mut snapshot = young.next()?.clone();
        self.monitor.recheck(&self.board, &mut snapshot, now);
        Some(snapshot)
    }

    /// What waits for each silo, at all feeds.
    fn full(&self) -> Vec<Option<Waiting>> {
        let silos = self.board.shape().silos as usize;
        let mut full = vec![None; silos];
        for feed in (0..silos).map(|silo| self.board.feed(silo)) {
            let waits = board::get(&feed.overflow_since) != 0;
            let Some(of) = full.get_mut(board::get(&feed.overflow_silo) as usize).filter(|_| waits) else { continue };
            // The smaller one first: what is taken meanwhile does not look as if it waited.
            let (submitted, arrived) = (board::get(&feed.submitted), board::get(&feed.scheduled));
            let before = of.unwrap_or(Waiting { arrived: 0, waiting: 0 });
            let waiting = before.waiting + arrived.saturating_sub(submitted);
            *of = Some(Waiting { arrived: before.arrived + arrived, waiting });
        }
        full
    }

    /// The loads of the last snapshot, where their streams are now.
    fn loads_now(&self, at_rest: &dyn Fn(u32, u32) -> bool) -> Vec<StreamLoad> {
        let as_of_now = |load: &StreamLoad| {
            let silo = silo_of(&self.board, load.stream);
            let may_move = self.rules.streams.includes(load.stream) && at_rest(load.stream, silo);
            StreamLoad { silo, may_move, ..*load }
        };
        self.loads.iter().map(as_of_now).collect()
    }

    fn say_stuck(&mut self, stuck: Option<String>) {
        // A decision in between has written over it.
        if stuck.is_some() || self.stuck.is_some() {
            show::hindrance(&self.board, stuck.as_deref());
        }
        self.stuck = stuck;
    }
}
