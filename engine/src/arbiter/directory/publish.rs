//! The directory's counters, leases, transfers and history on the board, once a frame or less
//! often.
//!
//! Runs on the arbiter's thread. Relaxed words, a row's main word last. Bounds: the block.

use super::{Counts, OwnershipDirectory, Round};
use crate::arbiter::deadlines::Visit;
use crate::arbiter::page::{SILOS_MAX, Silo, State};
use crate::board::layout::ARBITER_ROWS;
use crate::board::{ArbiterBlock, lease_row, open_row, set};
use crate::units::{Nanos, Ticks};

impl OwnershipDirectory {
    /// Shows the history of `page` on the board; `None`: of the page in doubt for longest, else of
    /// the last page that moved.
    pub fn watch(&mut self, page: Option<u32>) {
        self.watched = page.filter(|page| (*page as usize) < self.table.len());
    }

    /// Counts a visited page by its state and records its lease.
    pub(super) fn round(&mut self, visit: Visit, now: Ticks) {
        let [round, done] = &mut self.rounds;
        if visit.word.state() == State::Leased && round.lease_count < ARBITER_ROWS {
            let left = Nanos::from_micros(u64::from(visit.word.deadline().left_us(self.base.moment(now))));
            round.leases[round.lease_count] = (visit.page, visit.word, now.plus(self.base.rate.ticks(left)));
            round.lease_count += 1;
        }
        if let Some(states) = visit.round {
            *done = Round { at: now, states, ..*round };
            round.lease_count = 0;
        }
    }

    /// Writes changes to `block`; this arbiter is its only writer.
    pub fn publish(&mut self, block: &ArbiterBlock) {
        set(&block.pages, self.table.len() as u64);
        self.publish_counts(block);
        self.publish_round(block);
        self.publish_open(block);
        self.publish_history(block);
        self.times.decisions_ns.drain(..).for_each(|ns| block.decision.record(ns));
        self.times.transfers_ns.drain(..).for_each(|ns| block.transfer.record(ns));
    }

    fn publish_counts(&self, block: &ArbiterBlock) {
        let Counts {
            decisions,
            forced,
            left,
            arrived,
            kept,
            doubted,
            cancels,
            taken_over,
            torn,
            unheard,
            wins,
            refusals,
        } = &self.counts;
        for (word, count) in block.decisions.iter().zip(decisions) {
            set(word, *count);
        }
        for (word, count) in [
            (&block.forced, forced),
            (&block.left, left),
            (&block.arrived, arrived),
            (&block.kept, kept),
            (&block.doubted, doubted),
            (&block.cancels, cancels),
            (&block.taken_over, taken_over),
            (&block.torn, torn),
            (&block.unheard, unheard),
        ] {
            set(word, *count);
        }
        for port in 0..SILOS_MAX {
            let at = port as usize;
            set(&block.port_wins[at], wins[at]);
            set(&block.port_refusals[at], refusals[at]);
            set(&block.port_ages[at], u64::from(self.ports.age(Silo::new(port))));
        }
    }

    fn publish_round(&self, block: &ArbiterBlock) {
        let round = &self.rounds[1];
        for (word, count) in block.states.iter().zip(round.states) {
            set(word, u64::from(count));
        }
        for (at, (page, word, ends)) in round.leases.iter().enumerate() {
            set(&block.lease_ends[at], ends.0);
            set(&block.leases[at], if at < round.lease_count { lease_row(*page, word.hint()) } else { 0 });
        }
        set(&block.counted_ticks, round.at.0);
    }

    fn publish_open(&self, block: &ArbiterBlock) {
        set(&block.open_count, self.open.len() as u64);
        for at in 0..ARBITER_ROWS {
            let Some(open) = self.open.get(at) else {
                set(&block.open[at], 0);
                continue;
            };
            let word = self.table.word(open.page);
            set(&block.open_since[at], open.since.0);
            set(&block.open_cancels[at], open.cancels);
            let is_in_doubt = word.state() == State::InDoubt;
            set(&block.open[at], open_row(open.page, word.owner().number(), word.epoch().number(), is_in_doubt));
        }
    }

    fn publish_history(&self, block: &ArbiterBlock) {
        let oldest = self.open.iter().filter(|open| open.cancels > 0).min_by_key(|open| open.since);
        let page = self.watched.or(oldest.map(|open| open.page)).or(self.last_moved);
        set(&block.history_page, page.map_or(0, |page| u64::from(page) + 1));
        let mut transitions = page.into_iter().flat_map(|page| self.history.of(page));
        for at in 0..ARBITER_ROWS {
            let Some(transition) = transitions.next() else {
                set(&block.history_at[at], 0);
                continue;
            };
            set(&block.history_causes[at], transition.cause as u64);
            set(&block.history_words[at], transition.word.bits());
            set(&block.history_at[at], transition.at.0.max(1));
        }
    }
}
