//! Models of the whole path of a shot, with and without faults: the sound variants of the protocol,
//! each answered exactly once. They hold whatever order feed, dispatch, device, poll, decode and
//! harvest come in.

use crate::loom_slot::{harvest, hold, one_slot, submit, times};
use crate::loom_worker::poll_once;
use loom::thread;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{FreeJobs, Job, JobBank, JobReturn};
use pinwheel_edge::slot::table::SlotTable;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::{
    DeviceWorkers, DispatchWorkers, Failure, PollWorkers, Resolved, Settled, WorkerEnds, WorkerState, bank,
};
use pinwheel_edge::units::Ticks;
use std::sync::Arc;

/// What poll and decode make of a completion: the answer, if the ticket is still open; the job goes
/// back.
fn decode(table: &SlotTable, jobs: &JobBank, (poll, returns): (&mut PollWorkers, &mut JobReturn)) -> bool {
    match poll_once(poll) {
        Some(Settled::Job { job, ticket, generation }) => {
            let observable = jobs.detectors(&job)[0].load();
            poll.release(0, generation);
            let claim = table.claim(ticket);
            let answered = claim.map(|claim| claim.answer(&[observable], times(1))).is_some();
            returns.give(job);
            answered
        }
        Some(Settled::Late { job }) => {
            returns.give(job);
            false
        }
        Some(Settled::Stale) | None => false,
    }
}

/// What poll makes of a report: the answer, if the launch has not ended otherwise.
fn answer_unknown(table: &SlotTable, poll: &mut PollWorkers) -> bool {
    if poll.reported() == 0 {
        return false;
    }
    let Resolved::Quarantined { ticket, code } = poll.resolve(0) else { panic!("nothing is freed here") };
    table.claim(ticket).unwrap().fail(code, times(1));
    true
}

/// No faults, the feed reading rx before tx: one slot serves two shots in turn, fed and harvested
/// while they pass through dispatch and decode. Red without S1.release, S1.acquire, S5.release,
/// S5.acquire, S7.release, S7.acquire, S8.release, S8.acquire.
#[test]
fn one_slot_serves_two_shots_once_each() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        assert!(submit(&mut feed, 1));
        let feeder = thread::spawn(move || {
            let submitted = submit(&mut feed, 2);
            (feed, submitted)
        });
        let harvesting = thread::spawn(move || {
            let found = harvest(&mut harvester);
            (harvester, found)
        });
        let mut pass = |table: &SlotTable| {
            if let Some((arrived, ticket)) = hold(&mut dispatch) {
                let payload = table.payload_at(arrived.address).unwrap()[0].load();
                table.claim(ticket).unwrap().answer(&[payload], times(1));
                dispatch.retire();
            }
        };
        pass(&table);
        pass(&table);
        let (mut feed, submitted) = feeder.join().unwrap();
        let (mut harvester, first) = harvesting.join().unwrap();
        let mut answers = Vec::from_iter(first);
        answers.extend(harvest(&mut harvester));
        if !submitted {
            assert!(submit(&mut feed, 2));
        }
        pass(&table);
        answers.extend(harvest(&mut harvester));
        assert_eq!(answers, [(1, Ok(1)), (2, Ok(2))]);
        assert!(table.is_idle(0));
    });
}

/// The launch deadline (poll) and the shot deadline (another thread) against device and decode: one
/// answer, the worker and the job come back. Red without S4.release, S4.acquire.
#[test]
fn deadlines_and_a_completion_answer_once() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        let WorkerEnds { dispatch: mut workers, mut device, mut poll, words: bank, .. } = bank(1);
        let (jobs, (mut free, [mut returns])) = (Arc::new(JobBank::new(1, 1, 1)), FreeJobs::new(1));
        assert!(submit(&mut feed, 1));
        let (_, ticket) = hold(&mut dispatch).unwrap();
        launch(&mut workers, &mut free, ticket);
        dispatch.retire();
        let running = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || run_device(&mut device, &jobs))
        };
        let shot_deadline = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                table.claim(ticket).map(|claim| claim.fail(ErrorCode::ShotDeadline, times(1))).is_some()
            })
        };
        let decoded = decode(&table, &jobs, (&mut poll, &mut returns));
        let overdue = poll.running(0).and_then(|(generation, _)| poll.quarantine(0, generation));
        let expired = overdue.and_then(|ticket| table.claim(ticket));
        let launch_deadline = expired.map(|claim| claim.fail(ErrorCode::LaunchDeadline, times(1))).is_some();
        running.join().unwrap();
        let shot_deadline = shot_deadline.join().unwrap();
        let decoded = decode(&table, &jobs, (&mut poll, &mut returns)) || decoded;
        let expected = match (decoded, launch_deadline, shot_deadline) {
            (true, false, false) => Ok(9),
            (false, true, false) => Err(ErrorCode::LaunchDeadline),
            (false, false, true) => Err(ErrorCode::ShotDeadline),
            many => panic!("answered by {many:?}"),
        };
        assert_eq!(harvest(&mut harvester), Some((1, expected)));
        assert_eq!((bank.state(0), bank.idle_mask(), free.count()), ((1, WorkerState::Free), 1, 1));
        assert!(table.is_idle(0));
    });
}

/// A launch that reported an error although the graph runs: quarantined and answered, or completed
/// and answered; never both, and its late completion returns worker and job. Red without
/// S3.release, S3.acquire, S4.release, S4.acquire.
#[test]
fn an_unknown_launch_that_ran_answers_once() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        let WorkerEnds { dispatch: mut workers, mut device, mut poll, words: bank, .. } = bank(1);
        let (jobs, (mut free, [mut returns])) = (Arc::new(JobBank::new(1, 1, 1)), FreeJobs::new(1));
        assert!(submit(&mut feed, 1));
        let running = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || {
                run_device(&mut device, &jobs);
                device
            })
        };
        let polling = {
            let (table, jobs) = (Arc::clone(&table), Arc::clone(&jobs));
            thread::spawn(move || {
                let decoded = decode(&table, &jobs, (&mut poll, &mut returns));
                let unknown = answer_unknown(&table, &mut poll);
                (poll, returns, decoded, unknown)
            })
        };
        let (_, ticket) = hold(&mut dispatch).unwrap();
        launch(&mut workers, &mut free, ticket);
        workers.fail(0, Failure::Unknown);
        dispatch.retire();
        run_device(&mut running.join().unwrap(), &jobs);
        let (mut poll, mut returns, decoded, unknown) = polling.join().unwrap();
        let unknown = answer_unknown(&table, &mut poll) || unknown;
        let decoded = decode(&table, &jobs, (&mut poll, &mut returns)) || decoded;
        assert!(decoded != unknown);
        let expected = if decoded { Ok(9) } else { Err(ErrorCode::LaunchUnknown) };
        assert_eq!(harvest(&mut harvester), Some((1, expected)));
        assert_eq!((bank.state(0), bank.idle_mask(), free.count()), ((1, WorkerState::Free), 1, 1));
    });
}

fn launch(workers: &mut DispatchWorkers, free: &mut FreeJobs, ticket: Ticket) {
    let w = workers.take_idle().unwrap();
    let generation = workers.start(w, 100, free.take().unwrap(), ticket, Ticks(0));
    workers.bank().ring(w, generation);
}

fn run_device(device: &mut DeviceWorkers, jobs: &JobBank) {
    if let Some(mail) = device.rung(0) {
        jobs.detectors(&Job::from_number(mail.job))[0].store(9);
        device.complete(0, mail.generation);
    }
}
