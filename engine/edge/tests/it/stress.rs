//! A million shots on two real threads, with late, unknown and expired launches: each is answered
//! exactly once.

use crate::Seeded;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{FreeJobs, Job, JobBank, JobReturn, Origin};
use pinwheel_edge::slot::table::{
    AnswerTimes, DispatchEnd, FeedEnd, Geometry, HarvestEnd, ReplyTo, ShotHeader, SlotTable, table,
};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::{
    DeviceWorkers, DispatchWorkers, Failure, PollWorkers, ReleaseEnd, Resolved, Settled, WorkerEnds, WorkerState, bank,
};
use pinwheel_edge::units::Ticks;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

const SHOTS: u64 = 1_000_000;
const SLOTS: u32 = 64;
const WORKERS: usize = 5;

/// Feed, dispatch, harvest: one thread.
struct Front<'a> {
    feed: FeedEnd,
    dispatch: DispatchEnd,
    harvest: HarvestEnd,
    workers: DispatchWorkers,
    table: &'a SlotTable,
    jobs: &'a JobBank,
    free: FreeJobs,
    seeded: Seeded,
    answers: Vec<u8>,
    errors: u64,
}

impl Front<'_> {
    fn feed(&mut self) -> bool {
        let sequence = self.feed.submitted();
        if sequence == SHOTS {
            return false;
        }
        let Some(vacant) = self.feed.vacant() else { return false };
        let (scheduled, submitted) = (Ticks(sequence), Ticks(sequence));
        let header = ShotHeader { stream: 0, sequence, scheduled, submitted, reply_to: ReplyTo::default() };
        vacant.submit(&header, &[sequence], Some(&[sequence]));
        true
    }

    fn dispatch(&mut self) -> bool {
        let Some(arrived) = self.dispatch.arrived() else { return false };
        let Some(job) = self.free.take() else { return false };
        let Some(w) = self.workers.take_idle() else {
            self.free.give(job);
            return false;
        };
        let ticket = self.dispatch.hold(&arrived, Ticks(0));
        let number = job.number();
        let generation = self.workers.start(w, arrived.address, job, ticket, Ticks(0));
        match self.seeded.below(500) {
            // It did not start; the deadline may be about to quarantine it.
            0 => {
                self.workers.fail(w, Failure::NotStarted);
                self.fail(ticket, ErrorCode::LaunchFailed);
            }
            1 => {
                self.workers.bank().ring(w, generation);
                self.workers.fail(w, Failure::Unknown);
            }
            // A device that completes inside the launch.
            2..50 => {
                self.jobs.detectors(&Job::from_number(number))[0].store(arrived.sequence);
                self.workers.bank().complete(w, generation);
            }
            _ => self.workers.bank().ring(w, generation),
        }
        self.dispatch.retire();
        true
    }

    fn fail(&self, ticket: Ticket, code: ErrorCode) {
        if let Some(claim) = self.table.claim(ticket) {
            claim.fail(code, AnswerTimes::default());
        }
    }

    fn harvest(&mut self) -> bool {
        self.harvest.begin();
        let mut found = false;
        while let Some(answered) = self.harvest.next_answered() {
            found = true;
            let sequence = answered.header.sequence;
            self.answers[sequence as usize] += 1;
            assert_eq!(self.harvest.truth(&answered)[0].load(), sequence);
            if answered.error.is_none() {
                assert_eq!(self.harvest.observables(&answered)[0].load(), sequence, "another shot's answer");
            }
            self.errors += u64::from(answered.error.is_some());
            self.harvest.take(&answered);
        }
        found
    }
}

/// Device, poll, decoder: the other thread.
struct Back<'a> {
    device: DeviceWorkers,
    poll: PollWorkers,
    release: ReleaseEnd,
    ready: VecDeque<u32>,
    table: &'a SlotTable,
    jobs: &'a JobBank,
    returns: JobReturn,
    seeded: Seeded,
}

impl Back<'_> {
    fn device(&mut self, w: usize) -> bool {
        let Some(mail) = self.device.rung(w) else { return false };
        let job = Job::from_number(mail.job);
        let word = self.table.payload_at(mail.address).unwrap()[0].load();
        self.jobs.detectors(&job)[0].store(word);
        self.device.complete(w, mail.generation);
        true
    }

    fn poll(&mut self, w: usize) {
        if self.poll.reported() >> w & 1 == 1 {
            match self.poll.resolve(w) {
                Resolved::Quarantined { ticket, code } => self.fail(ticket, code),
                Resolved::Freed { job } => self.returns.give(job),
                Resolved::Nothing => {}
            }
        }
        if self.poll.claim_ready(w) {
            match self.poll.settle(w) {
                Settled::Job { job, ticket, generation } => {
                    let worker = Some((w as u8, generation));
                    self.jobs.set_origin(
                        &job,
                        &Origin { ticket, completed: Ticks(0), worker, raw: false, by_rounds: false },
                    );
                    self.ready.push_back(job.number());
                }
                Settled::Late { job } => self.returns.give(job),
                Settled::Stale => {}
            }
        } else if self.seeded.below(5_000) == 0
            && let Some((generation, _)) = self.poll.running(w)
            && let Some(ticket) = self.poll.quarantine(w, generation)
        {
            self.fail(ticket, ErrorCode::LaunchDeadline);
        }
    }

    fn fail(&self, ticket: Ticket, code: ErrorCode) {
        if let Some(claim) = self.table.claim(ticket) {
            claim.fail(code, AnswerTimes::default());
        }
    }

    fn decode(&mut self) {
        let Some(number) = self.ready.pop_front() else { return };
        let job = Job::from_number(number);
        let origin = self.jobs.origin(&job);
        if let Some(claim) = self.table.claim(origin.ticket) {
            claim.answer(&[self.jobs.detectors(&job)[0].load()], AnswerTimes::default());
        }
        let (worker, generation) = origin.worker.unwrap();
        self.returns.give(job);
        self.release.release(worker.into(), generation);
    }
}

#[test]
fn a_million_shots_on_two_threads_are_answered_once_each() {
    let (feed, dispatch, harvest, slots) = table(Geometry { slots: SLOTS, detector_words: 1, observable_words: 1 });
    let WorkerEnds { dispatch: workers, device, poll, release, words } = bank(WORKERS);
    let count = SLOTS as usize + WORKERS;
    let (jobs, (free, [returns])) = (JobBank::new(count, 1, 1), FreeJobs::new(count));
    let done = AtomicBool::new(false);
    let (table, jobs, done) = (&*slots, &jobs, &done);
    let answers = vec![0; SHOTS as usize];
    let seeded = Seeded(1);
    let mut front = Front { feed, dispatch, harvest, workers, table, jobs, free, seeded, answers, errors: 0 };
    let mut back = Back { device, poll, release, ready: VecDeque::new(), table, jobs, returns, seeded: Seeded(2) };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let mut worked = false;
                for w in 0..WORKERS {
                    worked |= back.device(w);
                    back.poll(w);
                    back.decode();
                }
                if !worked {
                    std::thread::yield_now();
                }
            }
        });
        let all = (1 << WORKERS) - 1;
        while front.harvest.tail() < SHOTS || front.free.count() < count || words.idle_mask() != all {
            let worked = [front.feed(), front.dispatch(), front.harvest()];
            if worked == [false; 3] {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(front.answers.iter().all(|times| *times == 1));
    assert!(front.errors > 1_000 && front.errors < SHOTS / 10, "{} errors", front.errors);
    assert!((0..SLOTS).all(|slot| table.is_idle(slot)));
    assert!((0..WORKERS).all(|w| words.state(w).1 == WorkerState::Free));
}

/// Recoveries race with poll: each launch ends as a completion, as a late one, or in the recovery;
/// the completion that follows a recovery is not lost.
#[test]
fn a_launch_that_races_with_recoveries_ends_exactly_once() {
    const ROUNDS: u64 = 200_000;
    let WorkerEnds { mut dispatch, device, mut poll, words, .. } = bank(1);
    let (jobs, (mut free, [mut returns])) = (JobBank::new(2, 1, 1), FreeJobs::new(2));
    let done = AtomicBool::new(false);
    let (jobs, done) = (&jobs, &done);
    let (settled, recovered) = std::thread::scope(|scope| {
        let polling = scope.spawn(move || {
            let (mut settled, mut recovered) = (0, 0);
            while !done.load(Ordering::Acquire) {
                if poll.reported() == 1
                    && let Resolved::Freed { job } = poll.resolve(0)
                {
                    recovered += 1;
                    returns.give(job);
                }
                if !poll.claim_ready(0) {
                    std::thread::yield_now();
                    continue;
                }
                match poll.settle(0) {
                    Settled::Job { job, ticket, generation } => {
                        assert_eq!(ticket.generation, generation, "another launch's tags");
                        assert_eq!(jobs.detectors(&job)[0].load(), generation, "another launch's outputs");
                        settled += 1;
                        returns.give(job);
                        poll.release(0, generation);
                    }
                    Settled::Late { job } => {
                        settled += 1;
                        returns.give(job);
                    }
                    Settled::Stale => {}
                }
            }
            (settled, recovered)
        });
        for generation in 1..=ROUNDS {
            let w = loop {
                match dispatch.take_idle() {
                    Some(w) => break w,
                    None => std::thread::yield_now(),
                }
            };
            let job = free.take().unwrap();
            jobs.detectors(&job)[0].store(generation);
            let ticket = Ticket { slot: 0, generation };
            assert_eq!(dispatch.start(w, 0, job, ticket, Ticks(0)), generation);
            // A completion alone; one that may be before the report; one that races with the recovery.
            let late = generation % 3 == 2;
            if !late {
                device.complete(w, generation);
            }
            if generation % 3 > 0 {
                dispatch.fail(w, Failure::Unknown);
                while words.state(w).1 == WorkerState::Running {
                    std::thread::yield_now();
                }
                dispatch.recover();
            }
            if late {
                device.complete(w, generation);
            }
        }
        while words.idle_mask() == 0 || free.count() < 2 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Release);
        polling.join().unwrap()
    });
    assert_eq!(recovered + settled, ROUNDS);
    assert!(recovered > 0 && settled > 0);
}
