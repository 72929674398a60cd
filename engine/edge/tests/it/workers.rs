//! Workers, jobs and queues on one thread (and the queue's depth on three).

use crate::panics;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::ring::spsc;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{FreeJobs, Job, JobBank, Origin};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::{
    DispatchWorkers, Failure, PollWorkers, Resolved, Settled, WorkerEnds, WorkerState as State, bank,
};
use pinwheel_edge::units::Ticks;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// Items of the test that crosses threads; few where Miri runs it.
const ITEMS: u32 = if cfg!(miri) { 300 } else { 100_000 };
const TICKET: Ticket = Ticket { slot: 4, generation: 9 };

fn launch(dispatch: &mut DispatchWorkers, job: u32) -> (usize, u64) {
    let w = dispatch.take_idle().unwrap();
    let generation = dispatch.start(w, 64, Job::from_number(job), TICKET, Ticks(5));
    dispatch.bank().ring(w, generation);
    (w, generation)
}

fn settle(poll: &mut PollWorkers, w: usize) -> Option<Settled> {
    poll.claim_ready(w).then(|| poll.settle(w))
}

#[test]
fn sixty_four_workers_work() {
    let WorkerEnds { mut dispatch, mut device, mut poll, words: bank, .. } = bank(64);
    for round in 1..=3 {
        let launched: BTreeSet<_> = (0..64).map(|job| launch(&mut dispatch, job)).collect();
        assert_eq!(launched, (0..64).map(|w| (w, round)).collect());
        assert_eq!((dispatch.take_idle(), bank.idle_mask(), poll.busy_mask()), (None, 0, u64::MAX));
        for w in 0..64 {
            let mail = device.rung(w).unwrap();
            assert_eq!((mail.generation, mail.address, mail.job), (round, 64, w as u32));
            device.complete(w, mail.generation);
            let settled = settle(&mut poll, w);
            let job = Job::from_number(w as u32);
            assert_eq!(settled, Some(Settled::Job { job, ticket: TICKET, generation: round }));
            assert!(!poll.claim_ready(w), "a completion is claimed once");
            poll.release(w, round);
        }
        assert_eq!((bank.idle_mask(), poll.busy_mask()), (u64::MAX, 0));
    }
}

#[test]
fn sixty_five_workers_are_refused_and_none_are_never_taken() {
    assert!(panics(|| bank(65)));
    let WorkerEnds { mut dispatch, poll, words: bank, .. } = bank(0);
    assert_eq!((dispatch.take_idle(), bank.idle_mask(), poll.busy_mask()), (None, 0, 0));
}

#[test]
fn a_busy_mask_has_no_bits_of_missing_workers() {
    let WorkerEnds { mut dispatch, poll, words: bank, .. } = bank(3);
    assert_eq!((bank.idle_mask(), poll.busy_mask(), bank.len()), (0b111, 0, 3));
    let (w, _) = launch(&mut dispatch, 0);
    assert_eq!((w, poll.busy_mask()), (0, 1));
    let taken = dispatch.take_idle().unwrap();
    dispatch.untake(taken);
    assert_eq!(bank.idle_mask(), 0b110);
}

#[test]
fn a_late_completion_returns_worker_and_job_and_answers_no_shot() {
    let WorkerEnds { mut dispatch, mut device, mut poll, words: bank, .. } = bank(1);
    let (w, generation) = launch(&mut dispatch, 3);
    assert_eq!(poll.running(w), Some((1, Ticks(5))));
    assert_eq!(poll.quarantine(w, generation + 1), None, "another launch's deadline");
    assert_eq!(poll.quarantine(w, generation), Some(TICKET));
    assert_eq!(poll.quarantine(w, generation), None, "expired once");
    assert_eq!((poll.running(w), dispatch.take_idle(), dispatch.all_quarantined()), (None, None, true));
    let mail = device.rung(w).unwrap();
    device.complete(w, mail.generation);
    assert_eq!(settle(&mut poll, w), Some(Settled::Late { job: Job::from_number(3) }));
    assert_eq!((bank.state(w), bank.idle_mask()), ((1, State::Free), 1));
    assert_eq!(launch(&mut dispatch, 0), (0, 2));
}

#[test]
fn a_worker_is_freed_once_and_only_for_the_generation_that_was_claimed() {
    let WorkerEnds { mut dispatch, device, mut poll, words: bank, .. } = bank(2);
    let (w, generation) = launch(&mut dispatch, 1);
    device.complete(w, generation);
    assert!(matches!(settle(&mut poll, w), Some(Settled::Job { .. })));
    assert_eq!(bank.state(w).1, State::Claimed);
    poll.release(w, generation + 1);
    assert_eq!(bank.state(w).1, State::Claimed, "a release of another generation is left alone");
    poll.release(w, generation);
    poll.release(w, generation);
    assert_eq!((bank.state(w), bank.idle_mask()), ((1, State::Free), 0b11));
}

#[test]
fn the_graph_role_frees_workers_in_turn_with_poll_and_each_generation_once() {
    let WorkerEnds { mut dispatch, device, mut poll, release: mut graph, words: bank } = bank(1);
    for round in 1..=6 {
        let (w, generation) = launch(&mut dispatch, 1);
        assert_eq!((generation, bank.idle_mask(), poll.busy_mask()), (round, 0, 1));
        device.complete(w, generation);
        assert!(matches!(settle(&mut poll, w), Some(Settled::Job { .. })));
        graph.release(w, generation.saturating_sub(3));
        assert_eq!(
            bank.state(w),
            (round, State::Claimed),
            "an older generation was freed by poll or by the graph role"
        );
        if round % 3 == 0 {
            poll.release(w, generation)
        } else {
            graph.release(w, generation)
        }
        if round % 3 == 1 {
            graph.release(w, generation);
        }
        assert_eq!((bank.state(w), bank.idle_mask(), poll.busy_mask()), ((round, State::Free), 1, 0));
    }
}

#[test]
fn a_launch_of_unknown_result_is_quarantined_unless_it_completed_or_expired() {
    let WorkerEnds { mut dispatch, device, mut poll, words: bank, .. } = bank(3);
    for (failure, code) in [(Failure::Unknown, ErrorCode::LaunchUnknown), (Failure::Lost, ErrorCode::DeviceLost)] {
        let (w, generation) = launch(&mut dispatch, 1);
        device.complete(w, generation);
        assert!(matches!(settle(&mut poll, w), Some(Settled::Job { .. })));
        dispatch.fail(w, failure);
        assert_eq!(poll.reported(), 0, "completed");
        poll.release(w, generation);
        let (w, generation) = launch(&mut dispatch, 1);
        dispatch.fail(w, failure);
        assert_eq!(poll.reported(), 1 << w);
        device.complete(w, generation);
        assert!(matches!(settle(&mut poll, w), Some(Settled::Job { .. })));
        assert_eq!((poll.resolve(w), poll.reported()), (Resolved::Nothing, 0), "completed in between");
        poll.release(w, generation);
        let (w, _) = launch(&mut dispatch, 2);
        dispatch.fail(w, failure);
        assert_eq!(bank.state(w).1, State::Running, "poll has not looked yet");
        assert_eq!((poll.reported(), poll.reported()), (1 << w, 1 << w), "it stays until it is resolved");
        assert_eq!(poll.resolve(w), Resolved::Quarantined { ticket: TICKET, code });
        assert_eq!((bank.state(w).1, poll.reported()), (State::Quarantined, 0));
    }
    assert!(!dispatch.all_quarantined());
    let (w, generation) = launch(&mut dispatch, 3);
    assert_eq!(poll.quarantine(w, generation), Some(TICKET));
    dispatch.fail(w, Failure::Unknown);
    assert_eq!(poll.reported(), 0, "expired");
    assert!(dispatch.all_quarantined());
}

#[test]
fn a_launch_that_did_not_start_gives_worker_and_job_back() {
    let WorkerEnds { mut dispatch, mut poll, words: bank, .. } = bank(1);
    let (w, _) = launch(&mut dispatch, 6);
    dispatch.fail(w, Failure::NotStarted);
    assert_eq!((bank.idle_mask(), poll.reported()), (0, 1));
    assert_eq!(poll.resolve(w), Resolved::Freed { job: Job::from_number(6) });
    assert_eq!((bank.state(w), bank.idle_mask(), poll.reported()), ((1, State::Free), 1, 0));
    let (w, generation) = launch(&mut dispatch, 7);
    assert_eq!(poll.quarantine(w, generation), Some(TICKET));
    assert!(dispatch.all_quarantined());
    dispatch.fail(w, Failure::NotStarted);
    assert!(!dispatch.all_quarantined(), "it is about to be free");
    assert_eq!(poll.reported(), 1);
    assert_eq!(poll.resolve(w), Resolved::Freed { job: Job::from_number(7) }, "although the deadline was first");
    assert_eq!((bank.state(w), bank.idle_mask()), ((2, State::Free), 1));
}

#[test]
fn two_reports_of_one_worker_that_poll_has_not_seen_are_not_taken_for_none() {
    let WorkerEnds { mut dispatch, mut poll, words: bank, .. } = bank(1);
    let (w, generation) = launch(&mut dispatch, 6);
    assert_eq!(poll.quarantine(w, generation), Some(TICKET));
    dispatch.fail(w, Failure::Unknown);
    dispatch.recover();
    assert!(!dispatch.all_quarantined());
    assert_eq!((poll.reported(), poll.resolve(w)), (1, Resolved::Freed { job: Job::from_number(6) }));
    assert_eq!(bank.idle_mask(), 1);
}

#[test]
fn a_recovery_frees_the_quarantined_and_old_completions_are_stale() {
    let WorkerEnds { mut dispatch, device, mut poll, words: bank, .. } = bank(3);
    for job in 0..3 {
        launch(&mut dispatch, job);
    }
    for w in 0..2 {
        dispatch.fail(w, Failure::Unknown);
        assert_eq!(poll.reported(), 1 << w);
        assert!(matches!(poll.resolve(w), Resolved::Quarantined { .. }));
    }
    device.complete(0, 1);
    assert!(poll.claim_ready(0), "claimed before the recovery, settled after the next launch");
    dispatch.recover();
    assert_eq!(poll.reported(), 0b011);
    let freed = [0, 1].map(|w| poll.resolve(w));
    assert_eq!((freed, bank.idle_mask()), ([0, 1].map(|job| Resolved::Freed { job: Job::from_number(job) }), 0b011));
    assert_eq!(bank.state(2).1, State::Running, "a worker that is not quarantined stays");
    assert_eq!(launch(&mut dispatch, 9), (0, 2));
    device.complete(0, 2);
    assert_eq!(poll.settle(0), Settled::Stale);
    let settled = settle(&mut poll, 0);
    assert_eq!(settled, Some(Settled::Job { job: Job::from_number(9), ticket: TICKET, generation: 2 }));
    assert!(!poll.claim_ready(0));
}

#[test]
fn a_completion_that_was_late_before_the_recovery_frees_its_worker_alone() {
    let WorkerEnds { mut dispatch, device, mut poll, words: bank, .. } = bank(1);
    let (w, generation) = launch(&mut dispatch, 3);
    assert_eq!(poll.quarantine(w, generation), Some(TICKET));
    dispatch.recover();
    device.complete(w, generation);
    assert_eq!(settle(&mut poll, w), Some(Settled::Late { job: Job::from_number(3) }));
    assert_eq!(poll.reported(), 0);
    assert_eq!((bank.state(w), bank.idle_mask()), ((1, State::Free), 1));
}

#[test]
fn a_completion_of_no_launch_is_stale_and_hides_no_later_one() {
    let WorkerEnds { mut dispatch, device, mut poll, .. } = bank(1);
    let (w, generation) = launch(&mut dispatch, 3);
    device.complete(w, generation + 7);
    assert_eq!(settle(&mut poll, w), Some(Settled::Stale));
    device.complete(w, generation);
    assert!(matches!(settle(&mut poll, w), Some(Settled::Job { generation: 1, .. })));
}

#[test]
fn a_worker_that_is_not_free_is_not_launched() {
    let WorkerEnds { mut dispatch, .. } = bank(1);
    launch(&mut dispatch, 0);
    assert!(panics(|| dispatch.untake(0)));
    assert!(panics(|| dispatch.start(0, 64, Job::from_number(1), TICKET, Ticks(0))));
}

#[test]
fn jobs_are_conserved_and_a_second_return_is_refused() {
    let (mut jobs, [mut returns]) = FreeJobs::new(5);
    let mut taken: Vec<_> = (0..5).map(|_| jobs.take().unwrap()).collect();
    let numbers: BTreeSet<_> = taken.iter().map(Job::number).collect();
    assert_eq!((numbers, jobs.take(), jobs.count(), jobs.taken()), ((0..5).collect(), None, 0, 5));
    returns.give(taken.pop().unwrap());
    for job in taken {
        jobs.give(job);
    }
    assert_eq!((jobs.count(), jobs.taken()), (5, 1));
    assert!(panics(|| jobs.give(Job::from_number(2))));
    returns.give(Job::from_number(2));
    assert!(panics(|| assert_eq!(jobs.count(), 5)), "a second return is noticed where it arrives");
}

#[test]
fn buffers_that_came_back_are_taken_before_those_that_were_never_used() {
    let (mut jobs, [mut returns]) = FreeJobs::new(5);
    let mut two = || {
        jobs.collect();
        let taken: Vec<_> = (0..2).map(|_| jobs.take().unwrap()).collect();
        taken.into_iter().map(|job| (job.number(), returns.give(job)).0).collect::<BTreeSet<_>>()
    };
    let first = two();
    assert_eq!([two(), two()], [first.clone(), first]);
}

#[test]
fn an_origin_comes_back_as_it_was_set() {
    let (jobs, job) = (JobBank::new(2, 1, 1), Job::from_number(1));
    for (worker, raw) in [(None, true), (Some((0, 7)), false), (Some((63, u64::MAX)), false)] {
        let origin = Origin { ticket: TICKET, completed: Ticks(11), worker, raw, by_rounds: !raw };
        jobs.set_origin(&job, &origin);
        assert_eq!(jobs.origin(&job), origin);
    }
}

#[test]
fn an_abandoned_ring_is_emptied_first() {
    let (mut tx, mut rx) = spsc::channel::<u8>(2);
    assert!(!rx.is_abandoned());
    tx.push(1).unwrap();
    drop(tx);
    assert!(rx.is_abandoned());
    assert_eq!((rx.pop(), rx.pop()), (Some(1), None));
}

#[test]
fn a_queues_depth_stays_between_nothing_and_its_capacity() {
    let queue = Fifo::new(4);
    let done = AtomicBool::new(false);
    let mut depths = BTreeSet::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for item in 0..ITEMS {
                while queue.push(item).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            for item in 0..ITEMS {
                while queue.pop().map(|found| assert_eq!(found, item)).is_none() {
                    std::thread::yield_now();
                }
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            depths.insert(queue.depth());
        }
    });
    assert!(depths.last().is_none_or(|depth| *depth <= queue.capacity()), "{depths:?}");
    assert_eq!((queue.depth(), queue.pushed()), (0, u64::from(ITEMS)));
}
