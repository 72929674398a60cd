//! The desk's part in [`crate::placement::relief`]: what it reads for it, and what it shows of it.

use super::{Ask, AtRest, Desk};
use crate::board::{self, Phase};
use crate::placement::rebalance::StreamLoad;
use crate::placement::relief::Waiting;
use crate::placement::show;
use crate::units::Nanos;

impl Desk {
    /// Where shots wait for a silo, has streams leave it. A move may take `patience`. Cheap where none waits: a word of each silo.
    pub fn relieve(&mut self, at_rest: AtRest<'_>, patience: Nanos, ask: Ask<'_>) {
        if board::get(&self.board.header().phase) != Phase::Live as u64 {
            return;
        }
        let full = self.full();
        if full.iter().all(Option::is_none) {
            self.relief.rest();
            self.say_stuck(None);
            return;
        }
        let Some(snapshot) = self.last.take() else { return };
        let (now, loads) = (self.clock.ticks(), self.loads_now(at_rest));
        let board = &self.board;
        let stuck = self.relief.step(&full, &snapshot, &loads, (now, patience), |made| {
            let answer = ask(&made.decision);
            show::decision(board, &made, now, answer.as_ref().err());
            answer.is_ok()
        });
        self.last = Some(snapshot);
        self.say_stuck(stuck.map(|stuck| stuck.to_string()));
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
    fn loads_now(&self, at_rest: AtRest<'_>) -> Vec<StreamLoad> {
        let as_of_now = |load: &StreamLoad| {
            let silo = board::get(&self.board.stream_feed(load.stream as usize).silo) as u32;
            let may_move = self.rules.streams.includes(load.stream) && at_rest(load.stream, silo);
            StreamLoad { silo, may_move, ..*load }
        };
        self.loads.iter().map(as_of_now).collect()
    }

    fn say_stuck(&mut self, stuck: Option<String>) {
        if self.stuck != stuck {
            show::hindrance(&self.board, stuck.as_deref());
            self.stuck = stuck;
        }
    }
}
