//! The desk's part in [`crate::placement::relief`]: what it reads for it, and what it shows of it.

use super::{Ask, AtRest, Desk};
use crate::board::{self, Phase};
use crate::placement::decision::Decision;
use crate::placement::rebalance::StreamLoad;
use crate::placement::show;
use crate::units::{Nanos, Ticks};

impl Desk {
    /// Where shots wait for a silo, has streams leave it. A move may take `patience`. Cheap where none waits: a word of each silo.
    pub fn relieve(&mut self, at_rest: AtRest<'_>, patience: Nanos, ask: Ask<'_>) {
        let full = self.full();
        let is_live = board::get(&self.board.header().phase) == Phase::Live as u64;
        if !is_live || full.iter().all(Option::is_none) {
            self.say_stuck(None);
            return;
        }
        let Some(snapshot) = self.last.take() else { return };
        let now = self.clock.ticks();
        let loads: Vec<StreamLoad> = self.loads.iter().map(|load| self.as_of_now(load, at_rest)).collect();
        let board = &self.board;
        let stuck = self.relief.step(&full, &snapshot, &loads, (now, patience), |made| {
            let answer = ask(&made.decision);
            debug_assert!(matches!(made.decision, Decision::Move { .. }), "relief moves");
            show::decision(board, &made, now, answer.as_ref().err());
            answer.is_ok()
        });
        self.last = Some(snapshot);
        self.say_stuck(stuck.map(|stuck| stuck.to_string()));
    }

    /// Since when shots wait for each silo, at any feed.
    fn full(&self) -> Vec<Option<Ticks>> {
        let silos = self.board.shape().silos as usize;
        let mut full = vec![None; silos];
        for feed in (0..silos).map(|silo| self.board.feed(silo)) {
            let since = Ticks(board::get(&feed.overflow_since));
            let Some(of) = full.get_mut(board::get(&feed.overflow_silo) as usize) else { continue };
            if since != Ticks(0) {
                *of = Some(of.map_or(since, |before: Ticks| before.min(since)));
            }
        }
        full
    }

    /// A load of the last snapshot, where its stream is now.
    fn as_of_now(&self, load: &StreamLoad, at_rest: AtRest<'_>) -> StreamLoad {
        let silo = board::get(&self.board.stream_feed(load.stream as usize).silo) as u32;
        let may_move = self.rules.streams.includes(load.stream) && at_rest(load.stream, silo);
        StreamLoad { silo, may_move, ..*load }
    }

    fn say_stuck(&mut self, stuck: Option<String>) {
        if self.stuck != stuck {
            show::hindrance(&self.board, stuck.as_deref());
            self.stuck = stuck;
        }
    }
}
