//! What explains late answers: the role that takes the time, or the stall just before.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::{Condition, CounterRules, RecentStall};
use crate::board::alarms::Confidence;
use crate::board::{self, Board, Place, Shape};
use crate::profile::RuleId;
use crate::roles::RoleKind;
use crate::stall::verdict::Cause;
use crate::units::TickRate;
use std::path::Path;

pub(super) const MS: u64 = 1_000_000;

/// Two looks a window apart see `busy_ms` of harvest's thread in each 100 ms, and every answer
/// late.
fn late(
    counter_rules: &mut CounterRules,
    board: &Board,
    at_ms: u64,
    busy_ms: u64,
    recent: Option<&RecentStall>,
) -> Option<Condition> {
    let block = board.thread(0);
    board::add(&block.roles[0].busy_ticks, busy_ms * MS);
    board::add(&block.roles[0].items, 50);
    let harvest = board.harvest(0);
    board::add(&harvest.answered, 200);
    board::add(&harvest.late, if busy_ms > 10 { 200 } else { 0 });
    let found = counter_rules.look(board, at_ms * MS, recent);
    found.into_iter().find(|condition| condition.rule == RuleId::LateAnswers)
}

pub(super) fn world() -> (CounterRules, Board) {
    let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
    let board = Board::create(shape, Place::Private).unwrap();
    board::set(&board.thread(0).roles_count, 1);
    board::set(&board.thread(0).roles[0].identity, RoleKind::Harvest as u64);
    (CounterRules::new(TickRate::NANOS, 1, None, Path::new("/no/such")), board)
}

pub(super) fn stall(took_ms: u64, ended_ms: u64) -> RecentStall {
    let sentence = "hot-0 stood still: the hypervisor took its core".to_owned();
    let (took_ns, ended_ns) = (took_ms * MS, ended_ms * MS);
    let (cause, confidence) = (Cause::Steal, Confidence::Likely);
    RecentStall { cause, confidence, who: String::new(), silos: 1, sentence, took_ns, ended_ns }
}

/// A drill of a slow harvest was once called hypervisor steal: a short stall had come just before
/// it.
#[test]
fn a_role_that_begins_to_slow_down_explains_more_than_a_short_stall_just_before() {
    let (mut counter_rules, board) = world();
    (0..6).for_each(|look| assert!(late(&mut counter_rules, &board, look * 100, 2, None).is_none()));
    let recent = stall(12, 515);
    late(&mut counter_rules, &board, 600, 96, Some(&recent));
    let second = late(&mut counter_rules, &board, 700, 96, Some(&recent)).unwrap();
    assert_eq!(second.verdict.cause, Cause::SlowStage, "{}", second.verdict.sentence);
    assert!(second.verdict.sentence.contains("harvest on"), "{}", second.verdict.sentence);
    let third = late(&mut counter_rules, &board, 800, 96, Some(&recent)).unwrap();
    assert_eq!(third.verdict.cause, Cause::SlowStage, "and it stays so");
}

#[test]
fn the_time_that_a_stall_took_is_not_the_roles_that_it_met() {
    let (mut counter_rules, board) = world();
    (0..6).for_each(|look| assert!(late(&mut counter_rules, &board, look * 100, 2, None).is_none()));
    let recent = stall(185, 690);
    late(&mut counter_rules, &board, 600, 95, Some(&recent));
    let second = late(&mut counter_rules, &board, 700, 95, Some(&recent)).unwrap();
    assert_eq!((second.verdict.cause, second.verdict.confidence), (Cause::Steal, Confidence::Likely));
}

/// A feed that dies in a frame publishes none of its counts, and the others go on to the last shot.
#[test]
fn shots_of_a_feed_that_died_before_it_counted_them_fill_no_ring() {
    let (mut counter_rules, board) = world();
    board::add(&board.dispatch(0).position, 3);
    board::add(&board.harvest(0).position, 2);
    for at_ms in [0, 100, 200] {
        let found = counter_rules.look(&board, at_ms * MS, None);
        assert!(found.iter().all(|condition| condition.rule != RuleId::RingFull), "{found:?}");
    }
}
