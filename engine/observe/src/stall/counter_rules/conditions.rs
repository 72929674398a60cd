//! Each condition from its counters: value, count, cause and sentence, and the counters that give none.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::tests::{MS, stall, world};
use super::{Condition, CounterRules, FREE_MIB, RecentStall, WINDOW, reading};
use crate::board::alarms::{Confidence, Site};
use crate::board::{self, Board, Place, Shape, Stage};
use crate::profile::RuleId;
use crate::roles::{RoleKind, ThreadState};
use crate::stall::verdict::Cause;
use crate::streams::{HealthVerdict, SourceKind};
use crate::units::TickRate;
use pinwheel_edge::slot::word::ErrorCode;
use std::path::Path;

const SILO: Site = Site::Silo(0, 0);
const SECOND: u64 = 1_000 * MS;

/// Looks every 100 ms at a board that `change` moves before each; what the last of them finds of `rule`.
fn after(looks: u64, rule: RuleId, change: impl Fn(&Board, u64)) -> Vec<Condition> {
    let (mut rules, board) = world();
    board.thread(0).name.write("hot-0");
    let mut found = Vec::new();
    for look in 0..looks {
        change(&board, look);
        found = rules.look(&board, look * 100 * MS, None);
    }
    found.retain(|condition| condition.rule == rule);
    found
}

/// The only condition of `rule` when `change` has been made between two looks.
fn one(rule: RuleId, change: impl Fn(&Board)) -> Condition {
    let found = after(2, rule, |board, look| {
        if look == 1 {
            change(board)
        }
    });
    let [condition] = <[Condition; 1]>::try_from(found).unwrap();
    condition
}

fn none(rule: RuleId, change: impl Fn(&Board)) {
    assert_eq!(
        after(2, rule, |board, look| if look == 1 {
            change(board)
        }),
        [],
        "{rule:?}"
    );
}

#[test]
fn late_answers_are_a_share_of_twenty_answers_or_more() {
    let answers = |answered: u64, late: u64| {
        move |board: &Board| {
            board::add(&board.harvest(0).answered, answered);
            board::add(&board.harvest(0).late, late);
        }
    };
    let found = one(RuleId::LateAnswers, answers(20, 5));
    assert_eq!((found.site, found.value, found.count, found.is_worse), (SILO, 25.0, Some(5), false));
    assert_eq!((found.verdict.cause, found.verdict.confidence), (Cause::Unexplained, Confidence::Unexplained));
    let sentence = "silo 0: 5 of 20 answers late (25 %): no stall and no busy role explains it";
    assert_eq!(found.verdict.sentence, sentence);
    none(RuleId::LateAnswers, answers(19, 19));
    none(RuleId::LateAnswers, answers(20, 0));
}

#[test]
fn late_answers_of_a_full_silo_are_explained_by_what_its_shots_wait_for() {
    let at = |workers: u32, in_path: u64, stage: Stage| {
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers, decoders: 1, streams: 1 };
        let (mut rules, board) = (world().0, Board::create(shape, Place::Private).unwrap());
        let slots = board.slots(0).len() as u64;
        board::add(&board.feed(0).position, slots * in_path / 100);
        rules.look(&board, 0, None);
        board::add(&board.harvest(0).answered, 20);
        board::add(&board.harvest(0).late, 20);
        board.latency(0).stages[stage as usize].record(50_000_000);
        let found = rules.look(&board, 100 * MS, None);
        found.into_iter().find(|condition| condition.rule == RuleId::LateAnswers).unwrap().verdict
    };
    let verdict = |in_path: u64, stage: Stage| at(1, in_path, stage);
    let full = verdict(60, Stage::Dispatch);
    assert_eq!((full.cause, full.confidence), (Cause::Overload, Confidence::Likely));
    let wait = "shots wait 50.0 ms for a device worker, of which there are 1 (100 % of their time)";
    assert_eq!(full.sentence, format!("silo 0: 20 of 20 answers late (100 %): {wait}"));
    assert!(verdict(60, Stage::Queue).sentence.contains("for a decode worker"));
    assert!(verdict(60, Stage::Feed).sentence.contains("for a slot"));
    assert_eq!(verdict(60, Stage::Decode).cause, Cause::Unexplained);
    assert_eq!(verdict(40, Stage::Dispatch).cause, Cause::Unexplained, "a backlog after a stall");
    assert_eq!(at(0, 60, Stage::Dispatch).cause, Cause::Unexplained, "there is no device to wait for");
}

#[test]
fn a_role_explains_late_answers_from_forty_percent_of_its_thread_on_and_beside_a_stall_from_sixty() {
    let cause = |busy_ms: u64, beside_stall: bool| {
        let (mut rules, board) = world();
        board.thread(0).name.write("hot-0");
        rules.look(&board, 0, None);
        board::add(&board.thread(0).roles[0].busy_ticks, busy_ms * MS);
        board::add(&board.thread(0).roles[0].items, 1_000);
        board::add(&board.harvest(0).answered, 20);
        board::add(&board.harvest(0).late, 1);
        let recent = beside_stall.then(|| stall(0, 90));
        let found = rules.look(&board, 100 * MS, recent.as_ref());
        found.into_iter().find(|condition| condition.rule == RuleId::LateAnswers).unwrap().verdict
    };
    let slow = cause(40, false);
    assert_eq!((slow.cause, slow.confidence), (Cause::SlowStage, Confidence::Likely));
    let sentence = "silo 0: 1 of 20 answers late (5 %): harvest on hot-0 takes 40 % of its thread, 40.0 µs an item";
    assert_eq!(slow.sentence, sentence);
    assert!(slow.evidence.starts_with("silo 0, means: "), "{}", slow.evidence);
    assert_eq!(cause(39, false).cause, Cause::Unexplained);
    assert_eq!(cause(60, true).cause, Cause::SlowStage);
    let stolen = cause(59, true);
    assert_eq!((stolen.cause, stolen.confidence), (Cause::Steal, Confidence::Likely));
    assert!(stolen.sentence.ends_with("(5 %): hot-0 stood still: the hypervisor took its core"), "{}", stolen.sentence);
}

/// The role's ticks count when it is done: of two seconds, most lie before the window.
#[test]
fn a_long_stall_in_a_role_explains_late_answers_more_than_the_role() {
    let (mut rules, board) = world();
    (0..6).for_each(|look| drop(rules.look(&board, look * 100 * MS, None)));
    board::add(&board.thread(0).roles[0].busy_ticks, 2_000 * MS);
    board::add(&board.thread(0).roles[0].items, 1);
    board::add(&board.harvest(0).answered, 20);
    board::add(&board.harvest(0).late, 20);
    let late = |rules: &mut CounterRules, recent: Option<&RecentStall>| {
        let found = rules.look(&board, 600 * MS, recent);
        found.into_iter().find(|condition| condition.rule == RuleId::LateAnswers).unwrap().verdict
    };
    assert_eq!(late(&mut rules, Some(&stall(2_000, 595))).cause, Cause::Steal);
    let elsewhere = RecentStall { silos: 2, ..stall(2_000, 595) };
    let role = late(&mut rules, Some(&elsewhere));
    assert_eq!(role.cause, Cause::SlowStage, "the stall was of a thread of another silo");
    assert!(
        role.sentence.ends_with("harvest on  takes 100 % of its thread, 2000000.0 µs an item"),
        "{}",
        role.sentence
    );
}

#[test]
fn a_wait_explains_late_answers_from_sixty_percent_of_the_time_of_shots_on() {
    let cause = |waited_ns: u64, counted: bool| {
        let (mut rules, board) = world();
        board::add(&board.feed(0).position, 8);
        rules.look(&board, 0, None);
        board::add(&board.harvest(0).answered, 20);
        board::add(&board.harvest(0).late, 20);
        let stages = &board.latency(0).stages;
        stages[Stage::Decode as usize].record(40_000_000);
        if counted {
            stages[Stage::Queue as usize].record(waited_ns);
        } else {
            board::set(&stages[Stage::Queue as usize].sum_ns, waited_ns);
        }
        let found = rules.look(&board, 100 * MS, None);
        found.into_iter().find(|condition| condition.rule == RuleId::LateAnswers).unwrap().verdict.cause
    };
    assert_eq!([cause(60_000_000, true), cause(59_999_999, true)], [Cause::Overload, Cause::Unexplained]);
    assert_eq!(cause(60_000_000, false), Cause::Unexplained, "the time of shots that were counted before");
}

#[test]
fn shots_that_were_late_or_answered_with_an_error_are_hit_once_and_those_of_half_a_second_are_told_apart() {
    let (mut rules, board) = world();
    let harvest = board.harvest(0);
    board::add(&harvest.late, 50);
    for look in 0..8 {
        board::add(&harvest.late, 3);
        board::add(&harvest.errors[1], 1);
        board::add(&harvest.errors[2], if look == 7 { 4 } else { 1 });
        rules.look(&board, look * 100 * MS, None);
    }
    // What was hit before the first look is not known; in the last one more errors than late answers.
    assert_eq!(rules.shots_hit(), (6 * 3 + 5, 6));
    board::add(&harvest.late, 2);
    rules.last(&board, 800 * MS);
    assert_eq!(rules.shots_hit().0, 6 * 3 + 5 + 2);
}

#[test]
fn after_a_counter_that_went_back_the_last_reading_counts_from_then_on() {
    let (mut rules, board) = world();
    (0..4).for_each(|look| drop(rules.look(&board, SECOND + look * 100 * MS, None)));
    rules.restart(30 * MS);
    assert_eq!(rules.looks.iter().map(|look| look.at_ns).collect::<Vec<_>>(), [30 * MS]);
    board::set(&board.thread(0).frames, 100);
    board::set(&board.thread(0).frames_busy, 100);
    board::set(&board.thread(0).roles[0].items, 105);
    let found = rules.look(&board, 130 * MS, None);
    let claims = found.iter().find(|condition| condition.rule == RuleId::NeverIdle).unwrap();
    assert_eq!(claims.value, 0.1);
}

#[test]
fn a_backlog_counts_in_its_own_silo_whatever_else_stands_there() {
    let shape = Shape { threads: 1, silos: 2, slots: 8, workers: 1, decoders: 1, streams: 1 };
    let board = Board::create(shape, Place::Private).unwrap();
    let mut rules = CounterRules::new(TickRate::NANOS, 2, None, Path::new("/no/such"));
    let mut sites = Vec::new();
    let looks = (WINDOW - 1 + 3 * WINDOW) as u64;
    for look in 0..looks {
        for silo in 0..2 {
            board::add(&board.harvest(silo).answered, 20);
            board::add(&board.harvest(silo).late, 1);
            // Silo 0 has a backlog only at the end.
            board::add(&board.feed(silo).scheduled, 100);
            board::add(&board.feed(silo).submitted, if silo == 1 || look + 2 > looks { 90 } else { 100 });
        }
        let found = rules.look(&board, look * 100 * MS, None);
        sites = found.iter().map(|condition| (condition.rule, condition.site)).collect();
    }
    let [first, second] = [Site::Silo(0, 0), Site::Silo(1, 0)];
    let late = RuleId::LateAnswers;
    assert_eq!(sites, [(late, first), (late, second), (RuleId::Backlog, second)]);
}

#[test]
fn a_backlog_counts_when_it_grew_in_three_windows_in_a_row() {
    let grows = |board: &Board, _| {
        board::add(&board.feed(0).scheduled, 100);
        board::add(&board.feed(0).submitted, 90);
    };
    let looks = (WINDOW - 1 + 3 * WINDOW) as u64;
    assert_eq!(after(looks - 1, RuleId::Backlog, grows), []);
    let found = &after(looks, RuleId::Backlog, grows)[0];
    assert_eq!((found.site, found.value, found.count, found.verdict.cause), (SILO, 10.0, None, Cause::Overload));
    assert_eq!(found.verdict.confidence, Confidence::Likely);
    let all = looks * 10;
    let start = format!("silo 0: backlog grew by 50 shots to {all} (10 % of what came): ");
    assert!(found.verdict.sentence.starts_with(&start), "{}", found.verdict.sentence);
    let pauses = |board: &Board, look: u64| {
        if look != 12 { grows(board, look) } else { board::add(&board.feed(0).submitted, 100) }
    };
    assert_eq!(after(looks, RuleId::Backlog, pauses), [], "a window without growth begins anew");
    let little = |board: &Board, _| {
        board::add(&board.feed(0).scheduled, 100);
        board::add(&board.feed(0).submitted, 99);
    };
    assert_eq!(after(looks, RuleId::Backlog, little), [], "a hundredth of what came is no backlog");
}

#[test]
fn shots_answered_with_an_error_are_named_by_what_the_code_says() {
    let said = |code: ErrorCode, device_state: u64| {
        let found = one(RuleId::Errors, |board| {
            board::add(&board.harvest(0).errors[code as usize], 3);
            board::set(&board.dispatch(0).device_state, device_state);
        });
        assert_eq!((found.site, found.value, found.count), (Site::Silo(0, code as u32), 3.0, Some(3)));
        assert_eq!((found.verdict.confidence, &found.verdict.evidence), (Confidence::Certain, &found.verdict.sentence));
        let start = format!("silo 0: 3 shots answered with {}: ", code.name());
        (found.verdict.cause, found.verdict.sentence.strip_prefix(&start).unwrap().to_owned())
    };
    let expected = |cause: Cause, why: &str| (cause, why.to_owned());
    let launches = |why: &str| expected(Cause::LaunchesFail, why);
    assert_eq!(said(ErrorCode::LaunchFailed, 0), launches("the device refused the launch"));
    let unknown = launches("the launch reported an error, and may have run");
    assert_eq!(said(ErrorCode::LaunchUnknown, 0), unknown);
    assert_eq!(said(ErrorCode::DeviceLost, 0), expected(Cause::DeviceHung, "the device was lost"));
    assert_eq!(said(ErrorCode::LaunchDeadline, 1), expected(Cause::DeviceHung, "no launch comes back"));
    assert_eq!(said(ErrorCode::LaunchDeadline, 0), expected(Cause::WorkerLost, "a launch did not come back"));
    assert_eq!(said(ErrorCode::BadAddress, 0), expected(Cause::Errors, "payload address outside payload memory"));
    let found = one(RuleId::Errors, |board| board::add(&board.harvest(0).errors[ErrorCode::BadAddress as usize], 1));
    assert!(found.verdict.sentence.contains(": 1 shot answered with "), "{}", found.verdict.sentence);
}

#[test]
fn workers_in_quarantine_are_counted_and_named() {
    let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 3, decoders: 1, streams: 1 };
    let quarantine = |words: [u64; 3], device_state: u64| {
        let board = Board::create(shape, Place::Private).unwrap();
        for (word, value) in board.poll(0).worker_words.iter().zip(words) {
            board::set(word, value);
        }
        board::set(&board.dispatch(0).device_state, device_state);
        let found = CounterRules::new(TickRate::NANOS, 1, None, Path::new("/no/such")).look(&board, 0, None);
        found.into_iter().find(|condition| condition.rule == RuleId::Quarantine)
    };
    assert_eq!(quarantine([0, 1, 2], 0), None);
    let some = quarantine([3, 0, 7], 0).unwrap();
    assert_eq!((some.site, some.value, some.verdict.cause), (SILO, 2.0, Cause::WorkerLost));
    let sentence = "silo 0: 2 of 3 workers in quarantine (worker 0, 2): their launches never came back";
    assert_eq!(some.verdict.sentence, sentence);
    assert_eq!(quarantine([3, 3, 3], 0).unwrap().verdict.cause, Cause::DeviceHung);
    assert_eq!(quarantine([3, 0, 0], 1).unwrap().verdict.cause, Cause::DeviceHung);
}

#[test]
fn a_lost_device_and_duplicates_stand_as_long_as_the_board_says_so() {
    let lost = |state: u64| {
        one(RuleId::DeviceLost, |board| {
            board::set(&board.dispatch(0).device_state, state);
            board::set(&board.dispatch(0).device_losses, 4);
            board::set(&board.dispatch(0).cpu_fallbacks, 70);
        })
    };
    let found = lost(1);
    assert_eq!((found.site, found.value, found.count, found.verdict.cause), (SILO, 1.0, Some(4), Cause::DeviceHung));
    assert_eq!(found.verdict.sentence, "silo 0: device lost, no worker answers; 70 shots predecoded on the CPU");
    assert!(lost(2).verdict.sentence.starts_with("silo 0: device being brought back, "));
    let for_good = one(RuleId::DeviceLost, |board| {
        board::set(&board.dispatch(0).device_state, 2);
        board::set(&board.device(0).needs_restart_code, 700);
    });
    let sentence = "silo 0: device lost, no worker answers; 0 shots predecoded on the CPU; restart the engine: after CUDA \
                    error 700 the driver opens no device in it";
    assert_eq!((for_good.verdict.cause, for_good.verdict.sentence.as_str()), (Cause::DeviceError, sentence));
    let twice = one(RuleId::Duplicates, |board| board::set(&board.harvest(0).duplicated, 2));
    assert_eq!((twice.site, twice.value, twice.count, twice.verdict.cause), (SILO, 2.0, Some(2), Cause::Defect));
    assert_eq!(twice.verdict.sentence, "silo 0: 2 shots answered more than once: a defect, please report");
    for rule in [RuleId::DeviceLost, RuleId::Duplicates, RuleId::Quarantine, RuleId::RingFull, RuleId::Errors] {
        none(rule, |_| {});
    }
}

/// The ring of answers has room for 4, and its reader lags by `lag`; 8 slots.
fn sink(board: &Board, lag: u64) {
    let harvest = board.harvest(0);
    board::set(&harvest.sink_capacity, 4);
    board::set(&harvest.sink_readers, 1);
    board::set(&harvest.sink_lags[0], lag);
}

#[test]
fn answers_that_nobody_read_make_shots_late_and_pile_up_whatever_stood_still_meanwhile() {
    for rule in [RuleId::LateAnswers, RuleId::Backlog] {
        let verdict = |full_looks: u64| {
            let (mut rules, board) = world();
            let mut found = Vec::new();
            for look in 0..30 {
                sink(&board, if look < 29 - full_looks { 0 } else { 4 });
                board::add(&board.feed(0).scheduled, 10);
                if look == 29 {
                    sink(&board, 0);
                    board::add(&board.harvest(0).answered, 20);
                    board::add(&board.harvest(0).late, 20);
                }
                found = rules.look(&board, look * 100 * MS, Some(&stall(0, 90)));
            }
            found.into_iter().find(|condition| condition.rule == rule).unwrap().verdict
        };
        assert_eq!(verdict(1).cause, Cause::Steal, "full for a moment");
        let unread = verdict(2);
        assert_eq!((unread.cause, unread.confidence), (Cause::RingFull, Confidence::Likely));
        assert!(unread.sentence.ends_with(": the reader of the answers took none"), "{}", unread.sentence);
    }
}

#[test]
fn a_full_ring_that_does_not_move_names_who_does_not_take() {
    let full = |change: &dyn Fn(&Board, u64)| {
        let found = after(2, RuleId::RingFull, |board, look| change(board, look));
        found.into_iter().map(|found| (found.site, found.value, found.verdict.sentence)).collect::<Vec<_>>()
    };
    let answers = full(&|board, _| sink(board, 4));
    let sentence = "silo 0: the ring of answers is full and does not move: its reader takes none";
    assert_eq!(answers, [(Site::Silo(0, 1), 100.0, sentence.to_owned())]);
    assert_eq!(full(&|board, _| sink(board, 3)), []);
    assert_eq!(full(&|board, _| sink(board, u64::MAX)), [], "nobody reads");
    assert_eq!(full(&|board, look| sink(board, if look == 0 { 3 } else { 4 })), [], "just now full");
    assert_eq!(full(&|board, look| (sink(board, 4), board::set(&board.harvest(0).position, look)).1), [], "it moves");

    let taken = |board: &Board, slots: u64| {
        board::set(&board.feed(0).position, slots);
        board::set(&board.dispatch(0).position, slots);
        let stamps = &board.slots(0)[3];
        board::set(&stamps.submitted, 5);
        board::set(&stamps.answered, 6);
    };
    let slots = full(&|board, _| taken(board, 8));
    let sentence = "silo 0: all 8 slots are taken, 1 answered, and harvest takes none";
    assert_eq!(slots, [(Site::Silo(0, 2), 100.0, sentence.to_owned())]);
    assert_eq!(full(&|board, _| taken(board, 7)), []);
    assert_eq!(full(&|board, _| (taken(board, 8), board::set(&board.slots(0)[3].harvested, 5)).1), []);
    assert_eq!(full(&|board, _| (taken(board, 8), board::set(&board.slots(0)[3].answered, 4)).1), []);
    assert_eq!(full(&|board, _| (taken(board, 8), board::set(&board.slots(0)[3].answered, 5)).1).len(), 1);
    assert_eq!(full(&|board, look| (taken(board, 8 + look), board::set(&board.harvest(0).position, look)).1), []);

    let waiting = |dispatched: u64| {
        full(&move |board, _| {
            board::set(&board.feed(0).position, 9);
            board::set(&board.dispatch(0).position, dispatched);
        })
    };
    let sentence = "silo 0: the rx ring is full and dispatch takes none";
    assert_eq!(waiting(1), [(Site::Silo(0, 3), 100.0, sentence.to_owned())]);
    assert_eq!(waiting(2), []);
    let moves = |board: &Board, look: u64| {
        board::set(&board.feed(0).position, 9 + look);
        board::set(&board.dispatch(0).position, 1 + look);
    };
    assert_eq!(full(&moves), []);
}

#[test]
fn a_role_that_claims_work_in_every_frame_and_moves_nothing_is_named() {
    let claims = |frames: u64, busy: u64, items: u64, moved: u64| {
        after(2, RuleId::NeverIdle, move |board, look| {
            if look == 1 {
                let block = board.thread(0);
                board::set(&block.frames, frames);
                board::set(&block.frames_busy, busy);
                board::set(&block.roles[0].items, items);
                board::set(&board.harvest(0).position, moved);
            }
        })
    };
    let found = &claims(100, 100, 105, 10)[0];
    assert_eq!((found.site, found.value, found.verdict.cause), (Site::Thread(0), 0.1, Cause::ClaimsWork));
    assert_eq!(
        found.verdict.sentence,
        "hot-0 has not idled for 100 ms: harvest claimed 105 items in 100 frames and moved 10"
    );
    assert_eq!(claims(100, 100, 104, 10), [], "four a shot and 64 are no more than it moved");
    assert_eq!(claims(100, 99, 105, 10), [], "it idled");
    assert_eq!(claims(106, 106, 105, 10), [], "a frame without an item");
    assert_eq!(claims(0, 0, 105, 10), []);
}

#[test]
fn what_a_role_moved_is_read_where_its_kind_keeps_it() {
    let (_, board) = world();
    let moved = |kind: RoleKind| reading::moved(&board, kind as usize, 0, 0);
    board::set(&board.feed(0).position, 1);
    board::set(&board.dispatch(0).position, 2);
    board::set(&board.dispatch(0).launched, 4);
    board::set(&board.device(0).completed, 8);
    let poll = board.poll(0);
    board::set(&poll.completed, 16);
    board::set(&poll.late_completions, 32);
    board::set(&poll.ready_pushed, 64);
    board::set(&poll.quarantined, 128);
    board::set(&board.decode(0, 0).decoding, 256);
    board::set(&board.decode(0, 0).decoded, 512);
    board::set(&board.harvest(0).position, 1_024);
    assert_eq!(moved(RoleKind::Feed), Some(1));
    assert_eq!(moved(RoleKind::Dispatch), Some(2));
    assert_eq!(moved(RoleKind::Device), Some(12));
    assert_eq!(moved(RoleKind::Poll), Some(240));
    assert_eq!(moved(RoleKind::Decode), Some(768));
    assert_eq!(moved(RoleKind::Harvest), Some(1_024));
    assert_eq!(moved(RoleKind::Graph), None);
    assert_eq!(reading::moved(&board, RoleKind::Decode as usize, 0, 1), None, "a decoder beyond the board's");
    assert_eq!(reading::moved(&board, RoleKind::Feed as usize, 1, 0), None, "a silo beyond the board's");
    // By the number of its silo, and its own.
    let shape = Shape { threads: 1, silos: 2, slots: 8, workers: 1, decoders: 2, streams: 1 };
    let board = Board::create(shape, Place::Private).unwrap();
    let block = board.thread(0);
    board::set(&block.roles_count, 2);
    board::set(&block.roles[0].identity, 1 << 40 | 1 << 8 | RoleKind::Decode as u64);
    board::set(&block.roles[1].identity, RoleKind::Graph as u64);
    board::set(&block.roles[1].items, 9);
    board::set(&board.decode(1, 1).decoded, 7);
    let roles = &reading::CounterReading::of(&board, 0, TickRate::NANOS).threads[0].roles;
    let read: Vec<_> = roles.iter().map(|role| (role.kind, role.moved)).collect();
    assert_eq!(read, [(RoleKind::Decode as usize, 7), (RoleKind::Graph as usize, 9)], "what has no counter moves all");
}

#[test]
fn a_role_that_ended_says_whether_it_or_its_thread_panicked_or_its_silo_stopped() {
    let ended = |file: &'static str, state: ThreadState| {
        let found = one(RuleId::RoleDied, |board| {
            let block = board.thread(0);
            board::set(&block.roles[0].died, 9);
            block.panic_file.write(file);
            board::set(&block.panic_line, 17);
            board::set(&block.state, state as u64);
        });
        assert_eq!((found.site, found.value, found.count), (Site::Thread(0), 1.0, Some(1)));
        assert_eq!(found.verdict.cause, Cause::Died);
        found.verdict.sentence
    };
    let with_silo = "harvest on hot-0 ended with its silo: it is not called until that comes back";
    assert_eq!(ended("", ThreadState::Panicked), with_silo);
    let outside = "hot-0 panicked at hot.rs:17, outside its roles: none of its 1 roles is called again";
    assert_eq!(ended("hot.rs", ThreadState::Panicked), outside);
    assert_eq!(ended("a.rs", ThreadState::Running), "harvest on hot-0 died at a.rs:17: it is never called again");
    none(RuleId::RoleDied, |board| board.thread(0).panic_file.write("a.rs"));
    // The others of its silo end after the one that panicked.
    let first = one(RuleId::RoleDied, |board| {
        let block = board.thread(0);
        board::set(&block.roles_count, 3);
        for (role, (kind, died)) in
            [(RoleKind::Dispatch, 12), (RoleKind::Poll, 11), (RoleKind::Decode, 0)].iter().enumerate()
        {
            board::set(&block.roles[role].identity, *kind as u64);
            board::set(&block.roles[role].died, *died);
        }
        block.panic_file.write("poll.rs");
    });
    assert_eq!((first.value, first.count), (2.0, Some(2)));
    assert!(first.verdict.sentence.starts_with("poll on hot-0 died at poll.rs:"), "{}", first.verdict.sentence);
}

#[test]
fn calls_of_the_allocator_and_lost_events_are_counted() {
    let calls = |site: &'static str| {
        one(RuleId::HotAllocation, move |board| {
            // The board counts from 1, so that 0 says that nothing is known.
            board::set(&board.thread(0).allocations, 4);
            board.thread(0).allocation_site.write(site);
        })
    };
    let found = calls("decode.rs:3");
    assert_eq!((found.site, found.value, found.count), (Site::Thread(0), 3.0, Some(3)));
    assert_eq!(found.verdict.cause, Cause::Allocation);
    assert_eq!(found.verdict.sentence, "hot-0: 3 calls of the allocator in Live, the first from decode.rs:3");
    assert!(calls("").verdict.sentence.ends_with("the first from a place being looked up"));
    none(RuleId::HotAllocation, |board| board::set(&board.thread(0).allocations, 1));
    let lost = one(RuleId::Events, |board| {
        board::set(&board.thread(0).events_dropped, 2);
        board::set(&board.log().unkept, 5);
    });
    assert_eq!((lost.site, lost.value, lost.count), (Site::Engine(0), 7.0, Some(7)));
    assert_eq!(lost.verdict.cause, Cause::Records);
    assert_eq!(lost.verdict.sentence, "7 events are not in the log: found no room, or could not be written");
    none(RuleId::Events, |_| {});
    // One call and one lost event each: said at the first look, and over half a second later.
    for rule in [RuleId::HotAllocation, RuleId::Events] {
        let found = |looks| {
            after(looks, rule, |board, look| {
                if look == 0 {
                    board::set(&board.thread(0).allocations, 2);
                    board::set(&board.thread(0).events_dropped, 1);
                }
            })
            .len()
        };
        assert_eq!([found(1), found(WINDOW as u64 + 1)], [1, 0], "{rule}");
    }
}

#[test]
fn clocks_that_are_degraded_or_were_set_are_named() {
    let degraded = one(RuleId::Clock, |board| {
        board.clock().source.write("CLOCK_MONOTONIC");
        board.clock().degraded.write("no invariant counter");
    });
    assert_eq!((degraded.site, degraded.value, degraded.count), (Site::Engine(0), 1.0, None));
    assert_eq!(degraded.verdict.sentence, "time is read from CLOCK_MONOTONIC: no invariant counter");
    let jumped = "the tick counter jumped (a suspend, or another host)";
    let kinds = [
        ("UTC was set", 3, "3 times: latencies come from the counter"),
        (jumped, 1, "once: latencies across the jump are wrong"),
    ];
    for (kind, (word, steps, latencies)) in kinds.into_iter().enumerate() {
        let step = one(RuleId::Clock, |board| {
            board::set(&board.clock().steps[kind], steps);
            board::set(&board.clock().step_ns[kind], (-2_500_000i64).cast_unsigned());
        });
        let site = Site::Engine(kind as u32 + 1);
        let steps = (steps as f64, Some(steps));
        assert_eq!((step.site, (step.value, step.count), step.verdict.cause), (site, steps, Cause::Clock));
        let sentence = format!("{word}, last by -2.500 ms, {latencies}");
        assert_eq!(step.verdict.sentence, sentence);
    }
    let long_ago = after(WINDOW as u64 + 1, RuleId::Clock, |board, look| {
        if look == 1 {
            board::set(&board.clock().steps[0], 1);
        }
    });
    assert_eq!(long_ago, [], "half a second later it is over");
    none(RuleId::Clock, |_| {});
}

#[test]
fn input_off_the_model_is_worse_if_it_is_bad() {
    let health = |verdict: HealthVerdict| {
        after(1, RuleId::InputHealth, move |board, _| {
            let feed = board.stream_feed(0);
            board::set(&feed.verdict, verdict.code());
            board::set(&feed.found_bits, 0.25f64.to_bits());
            board::set(&feed.expected_bits, 0.0125f64.to_bits());
        })
    };
    assert_eq!((health(HealthVerdict::Good), health(HealthVerdict::TooFew)), (Vec::new(), Vec::new()));
    let suspect = &health(HealthVerdict::Suspect)[0];
    assert_eq!((suspect.site, suspect.value, suspect.is_worse), (Site::Stream(0), 1.0, false));
    assert_eq!(suspect.verdict.sentence, "stream 0: input suspect; 25.00 % of detectors fire, the model says 1.25 %");
    let bad = &health(HealthVerdict::Bad)[0];
    assert_eq!((bad.value, bad.is_worse, bad.verdict.cause), (2.0, true, Cause::Input));
    assert!(bad.verdict.sentence.starts_with("stream 0: input bad: wrong model, noise or bit order; 25.00 %"));
}

#[test]
fn an_error_that_drifted_counts_by_how_many_times_it_is_off_in_either_direction() {
    let drift = |ratio: f64| {
        let found = after(1, RuleId::ModelDrift, move |board, _| {
            let feed = board.stream_feed(0);
            board::set(&feed.drifted, 5 | 8 << 32);
            board::set(&feed.drift_ratio_bits, ratio.to_bits());
        });
        (found[0].value, found[0].verdict.sentence.clone())
    };
    assert_eq!(drift(3.0), (3.0, "stream 0: edge D4–D7 happens 3.0 times as often as the model says".to_owned()));
    assert_eq!((drift(0.25).0, drift(0.0).0), (4.0, 1_000.0));
}

#[test]
fn a_live_source_is_silent_after_a_second_and_its_losses_count() {
    let source = |kind: u64, state: u64, silent_ns: u64| {
        let (mut rules, board) = world();
        let block = board.source();
        board::set(&block.kind, kind);
        board::set(&block.state, state);
        block.name.write("udp:1");
        board::set(&board.header().start_ticks, 7);
        board::set(&block.received_ticks, 7 + SECOND);
        let found = rules.look(&board, SECOND + silent_ns, None);
        found.into_iter().find(|condition| condition.rule == RuleId::Source)
    };
    let udp = SourceKind::Udp.code();
    let silent = source(udp, 1, SECOND + SECOND / 2).unwrap();
    assert_eq!((silent.site, silent.value, silent.verdict.cause), (Site::Engine(0), 1.5, Cause::Source));
    assert_eq!(silent.verdict.sentence, "udp:1 is silent for 1.5 s: see its senders in the sources view");
    assert!(source(udp, 1, SECOND + 1).is_some());
    assert_eq!([source(udp, 1, SECOND), source(udp, 2, 2 * SECOND), source(0, 1, 2 * SECOND)], [None, None, None]);
    let never = after(30, RuleId::Source, |board, _| {
        board::set(&board.source().kind, udp);
        board::set(&board.source().state, 1);
        board::set(&board.header().start_ticks, 0);
    });
    assert_eq!(never, []);

    let losing = |kind: u64| {
        after(2, RuleId::Source, move |board, look| {
            let block = board.source();
            board::set(&block.kind, kind);
            block.name.write("udp:1");
            board::set(&block.kernel_drops, 3 + 4 * look);
            board::set(&block.answers_dropped, 2 + look);
        })
    };
    let lost = &losing(udp)[0];
    assert_eq!((lost.site, lost.value, lost.count), (Site::Engine(1), 5.0, Some(10)));
    assert_eq!(lost.verdict.cause, Cause::Source);
    assert_eq!(
        lost.verdict.sentence,
        "udp:1: 5 lost in 0.5 s; in all 7 datagrams dropped by the system, 3 answers not taken"
    );
    assert_eq!(losing(0), []);
}

#[test]
fn free_space_is_looked_at_every_two_seconds_and_counts_below_its_least() {
    let (mut rules, board) = world();
    let mut disk = |free_mib: f64| {
        // A look between two checks of the disk keeps what the last one found.
        (rules.looked, rules.free_mib) = (1, Some(free_mib));
        rules.look(&board, 0, None).into_iter().find(|condition| condition.rule == RuleId::Disk)
    };
    let little = disk(FREE_MIB - 56.0).unwrap();
    assert_eq!((little.site, little.value, little.verdict.cause), (Site::Engine(0), 56.0, Cause::Records));
    let sentence = "found 200 MiB free where the run is kept, expected 256; free some space";
    assert_eq!(little.verdict.sentence, sentence);
    assert_eq!(disk(FREE_MIB), None);
    let looks = |looks: u64| {
        let mut rules = CounterRules::new(TickRate::NANOS, 1, Some(std::env::temp_dir()), Path::new("/no/such"));
        (0..looks).for_each(|look| {
            rules.free_mib = if look == 0 { None } else { Some(0.5) };
            rules.look(&board, look * 100 * MS, None);
        });
        rules.free_mib
    };
    assert_eq!(looks(20), Some(0.5), "not looked at again");
    assert_ne!(looks(21), Some(0.5), "looked at again");
}

#[test]
fn a_recording_that_cannot_be_written_is_an_alarm_whatever_the_free_space() {
    let said = "recorder: cannot write r.pwt (disk quota exceeded)";
    let refused = one(RuleId::Disk, |board| board.recorder().trouble.write(said));
    assert_eq!((refused.site, refused.value, refused.verdict.cause), (Site::Engine(1), FREE_MIB, Cause::Records));
    assert_eq!((refused.verdict.sentence.as_str(), refused.verdict.confidence), (said, Confidence::Certain));
    none(RuleId::Disk, |_| {});
}

#[cfg(unix)]
#[test]
fn free_space_is_that_of_users_in_mebibytes() {
    let place = std::env::temp_dir();
    let (found, system) = (reading::free_mib(&place).unwrap(), rustix::fs::statvfs(&place).unwrap());
    let all_mib = (system.f_blocks * system.f_frsize / 1_048_576) as f64;
    assert!(found > 0.0 && found <= all_mib, "{found} of {all_mib} MiB");
    assert!(found > all_mib / 1e4, "{found} of {all_mib} MiB: not in larger units");
}

#[test]
fn the_last_look_judges_the_last_window_whatever_its_rates() {
    let (mut rules, board) = world();
    rules.look(&board, 0, None);
    board::add(&board.harvest(0).errors[ErrorCode::BadAddress as usize], 2);
    board::set(&board.harvest(0).duplicated, 1);
    board::set(&board.thread(0).roles[0].died, 1);
    let found = rules.last(&board, 30 * MS);
    let judged: Vec<_> = found.iter().map(|condition| (condition.rule, condition.value)).collect();
    assert_eq!(judged, [(RuleId::Duplicates, 1.0), (RuleId::Errors, 2.0), (RuleId::RoleDied, 1.0)]);
    let at_once = CounterRules::new(TickRate::NANOS, 1, None, Path::new("/no/such")).last(&board, 0);
    assert_eq!(at_once.len(), 2, "without a look before there is no window for errors");
}

#[test]
fn stages_are_the_means_of_what_came_between_two_looks() {
    let (mut rules, board) = world();
    let stage = &board.latency(0).stages[0];
    stage.record(1_000_000);
    rules.look(&board, 0, None);
    stage.record(2_000);
    stage.record(4_000);
    board::add(&board.harvest(0).answered, 20);
    board::add(&board.harvest(0).late, 20);
    let found = rules.look(&board, 100 * MS, None);
    let late = found.into_iter().find(|condition| condition.rule == RuleId::LateAnswers).unwrap();
    let first = board::Stage::ALL[0].name();
    assert!(
        late.verdict.evidence.starts_with(&format!("silo 0, means: {first} 3.0 µs, ")),
        "{}",
        late.verdict.evidence
    );
}

#[test]
fn the_busiest_role_is_the_one_with_the_most_ticks_between_two_readings_and_the_first_of_two_alike() {
    let shape = Shape { threads: 3, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
    let board = Board::create(shape, Place::Private).unwrap();
    for (index, name) in ["one", "two", "three"].into_iter().enumerate() {
        let block = board.thread(index);
        block.name.write(name);
        board::set(&block.roles_count, 1);
        board::set(&block.roles[0].identity, RoleKind::Poll as u64);
        board::set(&block.roles[0].busy_ticks, 100);
    }
    let reading = || reading::CounterReading::of(&board, 0, TickRate::NANOS);
    let busiest = |ticks: [u64; 3]| {
        let then = reading();
        for (index, more) in ticks.into_iter().enumerate() {
            board::add(&board.thread(index).roles[0].busy_ticks, more);
            board::add(&board.thread(index).roles[0].items, 2 * more);
        }
        let found = reading::busiest(&board, &then, &reading()).unwrap();
        (found.thread, found.role, found.ticks, found.items)
    };
    assert_eq!(busiest([5, 9, 7]), ("two".to_owned(), "poll", 9, 18));
    assert_eq!(busiest([9, 9, 7]), ("one".to_owned(), "poll", 9, 18));
    assert_eq!(busiest([1, 2, 3]), ("three".to_owned(), "poll", 3, 6));
}
