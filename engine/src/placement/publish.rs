//! Writes placement to the board: the rules, each snapshot, and each decision with the numbers that it was based on.
//!
//! The only writer of the placement blocks, on the controller's thread. Bounds: the blocks. A
//! decision is read whole or not at all, see [`DecisionRow::lock`]; every other word is meaningful
//! on its own.

use super::decision::{Candidate, Decision, Made, Refusal};
use super::depth::{Crossing, ENTER, LEAVE, QUEUES, Queue, Reading, SiloDepth, Snapshot, Unknown, Watch};
use super::director::{PREFERRED_MAX, Rules};
use super::rebalance::StreamLoad;
use crate::board::layout::DecisionRow;
use crate::board::{self, Board, SiloDepthBlock};
use crate::profile::PlacementRules;
use crate::roles::RoleKind;
use crate::units::{Nanos, Ticks};
use std::sync::atomic::AtomicU64;

fn put(word: &AtomicU64, share: f64) {
    board::set(word, share.to_bits());
}

/// Publishes the rules, once.
pub(super) fn rules(board: &Board, rules: &PlacementRules, refresh: Nanos) {
    let block = board.placement();
    let limits = [Rules::SEED.high, Rules::SEED.critical, PREFERRED_MAX, ENTER, LEAVE];
    block.limits.iter().zip(limits).for_each(|(word, limit)| put(word, limit));
    let taking_part = (0..board.shape().streams).filter(|stream| rules.streams.includes(*stream)).count();
    board::set(&block.streams, taking_part as u64);
    board::set(&block.rebalances, rules.rebalance.into());
    board::set(&block.refresh_ns, refresh.0);
    put(&block.spread_bits, f64::NAN);
    block.strategy.write(rules.by.name());
    board::set(&block.is_on, 1);
}

/// Publishes a queue that crossed a limit.
pub(super) fn crossing(board: &Board, crossing: &Crossing, now: Ticks) {
    let block = board.placement();
    let Crossing { silo, queue, old, new, is_over } = *crossing;
    board::add(&block.crossings[usize::from(!is_over)], 1);
    put(&block.crossing_bits[0], old.unwrap_or(f64::NAN));
    put(&block.crossing_bits[1], new);
    board::set(&block.crossing, u64::from(silo) << 8 | (queue as u64) << 1 | u64::from(is_over));
    board::set(&block.crossing_ticks, now.0.max(1));
}

/// By silo: its charge, and since when it is pressed.
pub(super) type OfSilo<'a> = (&'a dyn Fn(usize) -> f64, &'a dyn Fn(usize) -> Option<Ticks>);

/// Publishes a snapshot.
pub(super) fn snapshot(
    board: &Board,
    snapshot: &Snapshot,
    samples: u32,
    watch: &Watch,
    loads: &[StreamLoad],
    (charge, pressed): OfSilo<'_>,
) {
    for (silo, reading) in snapshot.silos.iter().enumerate() {
        let block = board.silo_depth(silo);
        let over = |queue: &Queue| u64::from(watch.is_over(silo, *queue)) << *queue as u64;
        board::set(&block.over, Queue::ALL.iter().map(over).sum());
        let streams = loads.iter().filter(|load| load.silo as usize == silo).count();
        board::set(&block.streams, streams as u64);
        put(&block.charge_bits, charge(silo));
        board::set(&block.pressed_since, pressed(silo).map_or(0, |since| since.0));
        match reading {
            Reading::Known(depth) => known(block, depth),
            Reading::Unknown(why) => unknown(block, *why),
        }
        board::set(&block.snapshot, snapshot.number);
    }
    let block = board.placement();
    put(&block.spread_bits, snapshot.spread_points().unwrap_or(f64::NAN));
    board::set(&block.samples, samples.into());
    board::set(&block.snapshot_ticks, snapshot.taken.0);
    board::set(&block.snapshot, snapshot.number);
}

fn known(block: &SiloDepthBlock, depth: &SiloDepth) {
    let mut there = 0;
    for at in 0..QUEUES {
        put(&block.share_bits[at], depth.utilization[at].unwrap_or(0.0));
        there |= u64::from(depth.utilization[at].is_some()) << at;
    }
    board::set(&block.queues, there);
    put(&block.average_bits, depth.average);
    board::set(&block.fullest, depth.fullest as u64);
    board::set(&block.waiting, depth.waiting);
    board::set(&block.backlog_ns, depth.backlog.0);
    board::set(&block.processed, depth.processed);
    board::set(&block.errors, depth.errors);
    board::set(&block.last_activity, depth.last_activity.0);
    board::set(&block.state, 1);
}

fn unknown(block: &SiloDepthBlock, why: Unknown) {
    let (state, detail) = match why {
        Unknown::New => (2, 0),
        Unknown::NotRunning => (3, 0),
        Unknown::Silent(age) => (4, age.0),
        Unknown::Died(role) => (5, RoleKind::ALL.iter().position(|kind| *kind == role).unwrap_or(0) as u64),
    };
    board::set(&block.detail, detail);
    board::set(&block.state, state);
}

/// Publishes a decision; `refusal`: why its move cannot begin.
pub(super) fn decision(board: &Board, made: &Made, now: Ticks, refusal: Option<&String>) {
    let block = board.placement();
    let number = board::get(&block.decisions_count) + 1;
    let row = &block.decisions[(number % block.decisions.len() as u64) as usize];
    let (kind, stream, from, to, why, share) = match made.decision {
        Decision::Place { stream, silo, is_high } => (if is_high { 2 } else { 1 }, stream, None, Some(silo), 0, 0.0),
        Decision::Refuse { stream, why } => {
            board::add(&block.refused, 1);
            (3, stream, None, None, u64::from(why == Refusal::AllHigh), 0.0)
        }
        Decision::Move { stream, from, to, why, share, .. } => {
            let (count, kind) = if refusal.is_some() { (&block.moves_refused, 5) } else { (&block.moves_asked, 4) };
            board::add(count, 1);
            (kind, stream, Some(from), Some(to), why as u64, share)
        }
    };
    block.hindrance.write(refusal.map_or("", String::as_str));
    let silo = |silo: Option<u32>| silo.map_or(0, |silo| u64::from(silo) + 1);
    row.lock().write(number, || {
        board::set(&row.at, now.0);
        board::set(&row.kind, kind);
        board::set(&row.stream, stream.into());
        board::set(&row.from, silo(from));
        board::set(&row.to, silo(to));
        board::set(&row.why, why);
        put(&row.share_bits, share);
        made.on.iter().enumerate().for_each(|(at, candidate)| numbers(row, at, candidate.as_ref()));
    });
    board::set(&block.decisions_count, number);
}

/// Counts a stream that has arrived at the silo chosen for it.
pub(super) fn placed(board: &Board, is_high: bool) {
    board::add(&board.placement().placed, 1);
    board::add(&board.placement().placed_high, is_high.into());
}

/// Publishes why streams do not move although they should.
pub(super) fn hindrance(board: &Board, text: Option<&str>) {
    board.placement().hindrance.write(text.unwrap_or(""));
}

fn numbers(row: &DecisionRow, at: usize, candidate: Option<&Candidate>) {
    board::set(&row.silos[at], candidate.map_or(0, |one| u64::from(one.silo) + 1));
    let Some(one) = candidate else { return };
    put(&row.average_bits[at], one.average);
    put(&row.max_bits[at], one.max);
    board::set(&row.backlog_ns[at], one.backlog.0);
    put(&row.charge_bits[at], one.charge);
}
