//! Workers, jobs and queues on one thread (and the queue's depth on three).

use crate::panics;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::ring::spsc;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{Job, JobBank, Origin};
use pinwheel_edge::slot::workers::{DispatchWorkers, PollWorkers, Settled, State, bank};
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
    let (mut dispatch, mut device, mut poll, bank) = bank(64);
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
            bank.release(w, round);
        }
        assert_eq!((bank.idle_mask(), poll.busy_mask()), (u64::MAX, 0));
    }
}

#[test]
fn sixty_five_workers_and_none_are_refused() {
    assert!(panics(|| bank(65)));
    assert!(panics(|| bank(0)));
}

#[test]
fn a_busy_mask_has_no_bits_of_workers_that_do_not_exist() {
    let (mut dispatch, _device, poll, bank) = bank(3);
    assert_eq!((bank.idle_mask(), poll.busy_mask(), bank.len()), (0b111, 0, 3));
    let (w, _) = launch(&mut dispatch, 0);
    assert_eq!((w, poll.busy_mask()), (0, 1));
    let taken = dispatch.take_idle().unwrap();
    dispatch.untake(taken);
    assert_eq!(bank.idle_mask(), 0b110);
}

#[test]
fn a_late_completion_returns_worker_and_job_and_answers_nobody() {
    let (mut dispatch, mut device, mut poll, bank) = bank(1);
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
fn a_launch_of_unknown_fate_is_quarantined_unless_it_completed() {
    let (mut dispatch, device, mut poll, bank) = bank(2);
    let (w, generation) = launch(&mut dispatch, 1);
    device.complete(w, generation);
    let Some(Settled::Job { generation, .. }) = settle(&mut poll, w) else { panic!() };
    assert!(!dispatch.quarantine(w, generation), "completed");
    assert_eq!(bank.state(w).1, State::Claimed);
    bank.release(w, generation + 1);
    assert_eq!(bank.state(w).1, State::Claimed, "a release of another generation is left alone");
    bank.release(w, generation);
    bank.release(w, generation);
    assert_eq!((bank.state(w).1, bank.idle_mask()), (State::Free, 0b11));
    let (w, generation) = launch(&mut dispatch, 1);
    assert!(dispatch.quarantine(w, generation) && !dispatch.all_quarantined());
}

#[test]
fn a_launch_that_did_not_start_gives_worker_and_job_back() {
    let (mut dispatch, _device, mut poll, bank) = bank(1);
    let (w, generation) = launch(&mut dispatch, 6);
    assert_eq!(dispatch.abort(w, generation), Some(Job::from_number(6)));
    assert_eq!((bank.idle_mask(), dispatch.abort(w, generation)), (1, None));
    let (w, generation) = launch(&mut dispatch, 7);
    assert_eq!(poll.quarantine(w, generation), Some(TICKET));
    assert_eq!(dispatch.abort(w, generation), Some(Job::from_number(7)), "although the deadline was first");
    assert_eq!((bank.state(w), bank.idle_mask()), ((2, State::Free), 1));
}

#[test]
fn a_recovery_frees_the_quarantined_and_old_completions_are_stale() {
    let (mut dispatch, device, mut poll, bank) = bank(3);
    let launched: Vec<_> = (0..3).map(|job| launch(&mut dispatch, job)).collect();
    assert!(dispatch.quarantine(0, launched[0].1) && dispatch.quarantine(1, launched[1].1));
    device.complete(0, 1);
    assert!(poll.claim_ready(0), "claimed before the recovery, settled after the next launch");
    let mut returned = Vec::new();
    dispatch.recover(|job| returned.push(job.number()));
    assert_eq!((returned.as_slice(), bank.idle_mask()), (&[0, 1][..], 0b011));
    assert_eq!(bank.state(2).1, State::Running, "a worker that is not quarantined stays");
    assert_eq!(launch(&mut dispatch, 9), (0, 2));
    device.complete(0, 2);
    assert_eq!(poll.settle(0), Settled::Stale);
    let settled = settle(&mut poll, 0);
    assert_eq!(settled, Some(Settled::Job { job: Job::from_number(9), ticket: TICKET, generation: 2 }));
    assert!(!poll.claim_ready(0));
}

#[test]
fn a_worker_that_is_not_free_is_not_launched() {
    let (mut dispatch, _device, _poll, _bank) = bank(1);
    launch(&mut dispatch, 0);
    assert!(panics(|| dispatch.start(0, 64, Job::from_number(1), TICKET, Ticks(0))));
}

#[test]
fn jobs_are_conserved_and_a_second_return_is_refused() {
    let jobs = JobBank::new(5, 1, 1);
    let taken: Vec<_> = (0..5).map(|_| jobs.take().unwrap()).collect();
    let numbers: BTreeSet<_> = taken.iter().map(Job::number).collect();
    assert_eq!((numbers, jobs.take(), jobs.free()), ((0..5).collect(), None, 0));
    for job in taken {
        jobs.give(job);
    }
    assert_eq!(jobs.free(), 5);
    assert!(panics(|| jobs.give(Job::from_number(2))), "the queue would have room for it: 5 is no power of two");
    assert_eq!(jobs.free(), 5);
}

#[test]
fn an_origin_comes_back_as_it_was_set() {
    let jobs = JobBank::new(2, 1, 1);
    let job = jobs.take().unwrap();
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
