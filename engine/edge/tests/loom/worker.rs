//! Models of workers and jobs: S3, S4, S6, W1, W2.

use loom::thread;
use pinwheel_edge::ring::spsc;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{FreeJobs, Job, JobBank, Origin};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::{
    DispatchWorkers, Failure, PollWorkers, Resolved, Settled, WorkerEnds, WorkerState as State, bank,
};
use pinwheel_edge::units::Ticks;
use std::sync::Arc;

/// The ticket that launch `n` of these models carries.
fn ticket(n: u64) -> Ticket {
    Ticket { slot: 10 + n as u32, generation: 20 + n }
}

/// Launch `n` on worker 0, which must be free: job `n`, address `100 n`, start `1000 n`.
fn launch(dispatch: &mut DispatchWorkers, n: u64) -> u64 {
    let w = dispatch.take_idle().unwrap();
    let generation = dispatch.start(w, 100 * n, Job::from_number(n as u32), ticket(n), Ticks(1000 * n));
    dispatch.bank().ring(w, generation);
    generation
}

/// One attempt of poll.
pub(crate) fn poll_once(poll: &mut PollWorkers) -> Option<Settled> {
    poll.claim_ready(0).then(|| poll.settle(0))
}

/// What one look of poll at the reports leads to.
fn resolve_once(poll: &mut PollWorkers) -> Option<Resolved> {
    (poll.reported() == 1).then(|| poll.resolve(0))
}

fn job_of(settled: &Settled) -> Option<u32> {
    match settled {
        Settled::Job { job, .. } | Settled::Late { job } => Some(job.number()),
        Settled::Stale => None,
    }
}

/// The device reads the mailbox of the doorbell it saw. Red without S3.release, S3.acquire.
#[test]
fn device_reads_its_own_mail() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut device, .. } = bank(1);
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 3));
        if let Some(mail) = device.rung(0) {
            assert_eq!((mail.generation, mail.address, mail.job), (1, 300, 3));
            assert_eq!(device.rung(0), None, "mail comes once");
        }
        dispatcher.join().unwrap();
    });
}

/// Poll reads the outputs of the completion it claimed, and the tags of its launch. Red without
/// S4.release, S4.acquire.
#[test]
fn poll_reads_whole_outputs() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut device, mut poll, .. } = bank(1);
        let (jobs, (mut free, [])) = (Arc::new(JobBank::new(1, 1, 1)), FreeJobs::new(1));
        let job = free.take().unwrap();
        let w = dispatch.take_idle().unwrap();
        let generation = dispatch.start(w, 100, job, ticket(1), Ticks(0));
        dispatch.bank().ring(w, generation);
        let running = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || {
                let mail = device.rung(0).unwrap();
                jobs.detectors(&Job::from_number(mail.job))[0].store(9);
                device.complete(0, mail.generation);
            })
        };
        if let Some(settled) = poll_once(&mut poll) {
            let Settled::Job { job, ticket: found, generation: 1 } = settled else { panic!("{settled:?}") };
            assert_eq!((jobs.detectors(&job)[0].load(), found), (9, ticket(1)));
        }
        running.join().unwrap();
    });
}

/// Dispatch refills mailbox and tags only after poll has read them, and finds the worker free. Red
/// without S6.release, S6.acquire.
#[test]
fn a_worker_is_reused_after_it_was_read() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, device, mut poll, words: bank, .. } = bank(1);
        launch(&mut dispatch, 1);
        device.complete(0, 1);
        let polling = thread::spawn(move || {
            let Some(Settled::Job { ticket: found, generation: 1, .. }) = poll_once(&mut poll) else { panic!() };
            assert_eq!(found, ticket(1));
            poll.release(0, 1);
        });
        if let Some(w) = dispatch.take_idle() {
            assert_eq!(dispatch.start(w, 200, Job::from_number(2), ticket(2), Ticks(0)), 2);
        }
        polling.join().unwrap();
        assert!(matches!(bank.state(0), (1, State::Free) | (2, State::Running)));
    });
}

/// `AfterDecode`: the graph role frees the worker, after it has read its job; the worker's next
/// launch and the buffer's next owner write later. Red without S6.release, S6.acquire, R1.release,
/// R1.acquire (the buffer goes on and comes back through rings).
#[test]
fn the_graph_role_frees_a_worker_after_it_read_its_job() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, device, mut poll, mut release, .. } = bank(1);
        let (jobs, (mut free, [mut returns])) = (Arc::new(JobBank::new(1, 1, 1)), FreeJobs::new(1));
        let (mut passes, mut takes) = spsc::channel::<u32>(1);
        let job = free.take().unwrap();
        jobs.detectors(&job)[0].store(9);
        let w = dispatch.take_idle().unwrap();
        let generation = dispatch.start(w, 100, job, ticket(1), Ticks(0));
        device.complete(w, generation);
        let graph = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || {
                let Some(number) = takes.pop() else { return };
                let job = Job::from_number(number);
                let origin = jobs.origin(&job);
                assert_eq!((origin.ticket, jobs.detectors(&job)[0].load()), (ticket(1), 9));
                let (worker, generation) = origin.worker.unwrap();
                returns.give(job);
                release.release(worker.into(), generation);
            })
        };
        let polling = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || {
                let Some(Settled::Job { job, ticket, generation }) = poll_once(&mut poll) else { panic!() };
                let origin =
                    Origin { ticket, completed: Ticks(1), worker: Some((0, generation)), raw: false, by_rounds: false };
                jobs.set_origin(&job, &origin);
                passes.push(job.number()).unwrap();
            })
        };
        if let Some(w) = dispatch.take_idle() {
            let Some(job) = free.take() else { panic!("it comes back before its worker") };
            jobs.detectors(&job)[0].store(10);
            assert_eq!(dispatch.start(w, 200, job, ticket(2), Ticks(0)), 2);
        }
        polling.join().unwrap();
        graph.join().unwrap();
    });
}

/// A completion, its deadline and a launch of unknown result: one of them settles the worker, and
/// the job comes back to one. Poll alone decides; a report that is published late finds the launch
/// ended.
#[test]
fn deadline_completion_and_unknown_result_settle_once() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut device, mut poll, words: bank, .. } = bank(1);
        launch(&mut dispatch, 1);
        let running = thread::spawn(move || {
            let mail = device.rung(0).unwrap();
            device.complete(0, mail.generation);
        });
        let polling = thread::spawn(move || {
            let mut settled = Vec::from_iter(poll_once(&mut poll));
            let mut resolved = Vec::from_iter(resolve_once(&mut poll));
            let expired = poll.running(0).and_then(|(generation, _)| poll.quarantine(0, generation));
            settled.extend(poll_once(&mut poll));
            resolved.extend(resolve_once(&mut poll));
            (poll, settled, resolved, expired)
        });
        dispatch.fail(0, Failure::Unknown);
        running.join().unwrap();
        let (mut poll, mut settled, mut resolved, expired) = polling.join().unwrap();
        settled.extend(poll_once(&mut poll));
        resolved.extend(resolve_once(&mut poll));
        assert!(expired.is_none_or(|expired| expired == ticket(1)));
        let unknown = Resolved::Quarantined { ticket: ticket(1), code: ErrorCode::LaunchUnknown };
        assert!(resolved.iter().all(|resolved| *resolved == unknown), "{resolved:?}");
        let quarantined = resolved.len() + usize::from(expired.is_some());
        match settled.as_slice() {
            [Settled::Job { job, generation, .. }] => {
                assert_eq!((job.number(), quarantined), (1, 0));
                poll.release(0, *generation);
            }
            [Settled::Late { job }] => assert_eq!((job.number(), quarantined), (1, 1)),
            other => panic!("{other:?}"),
        }
        assert_eq!((bank.state(0), bank.idle_mask()), ((1, State::Free), 1));
    });
}

/// Poll that sees that something was reported sees the report: none is lost, and each leads to one
/// step. Red without W2.release, W2.acquire.
#[test]
fn a_report_is_not_lost() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut poll, words: bank, .. } = bank(1);
        let polling = thread::spawn(move || {
            let resolved = resolve_once(&mut poll);
            (poll, resolved)
        });
        launch(&mut dispatch, 1);
        dispatch.fail(0, Failure::Lost);
        let (mut poll, first) = polling.join().unwrap();
        let resolved = [first, resolve_once(&mut poll), resolve_once(&mut poll)];
        let expected = Resolved::Quarantined { ticket: ticket(1), code: ErrorCode::DeviceLost };
        assert_eq!(Vec::from_iter(resolved.into_iter().flatten()), [expected]);
        assert!(dispatch.all_quarantined());
        assert_eq!(bank.state(0), (1, State::Quarantined));
    });
}

/// A deadline that knows a launch only by its generation answers that launch's shot. Red without
/// W1.release, W1.acquire.
#[test]
fn a_deadline_expires_its_own_launch() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut poll, words: bank, .. } = bank(1);
        launch(&mut dispatch, 1);
        bank.complete(0, 1);
        assert_eq!(poll_once(&mut poll).as_ref().and_then(job_of), Some(1));
        poll.release(0, 1);
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 2));
        assert_eq!(poll.quarantine(0, 1), None, "the launch before is over");
        let expired = poll.quarantine(0, 2);
        assert!(expired.is_none_or(|expired| expired == ticket(2)));
        dispatcher.join().unwrap();
        let state = if expired.is_some() { State::Quarantined } else { State::Running };
        assert_eq!(bank.state(0), (2, state));
    });
}

/// A deadline judges a launch by its own start. Red without W1.release, W1.acquire.
#[test]
fn a_running_worker_shows_its_own_start() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut poll, words: bank, .. } = bank(1);
        launch(&mut dispatch, 1);
        bank.complete(0, 1);
        poll_once(&mut poll).unwrap();
        poll.release(0, 1);
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 2));
        if let Some(running) = poll.running(0) {
            assert_eq!(running, (2, Ticks(2000)));
        }
        dispatcher.join().unwrap();
    });
}

/// A quarantined worker is freed by its late completion or by a recovery, never by both; its next
/// launch writes after poll has read the tags, and the old completion does not touch it. Red
/// without S6.release, S6.acquire, W2.release, W2.acquire.
#[test]
fn recovery_and_late_completion_free_once() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, device, mut poll, words: bank, .. } = bank(1);
        launch(&mut dispatch, 1);
        assert_eq!(poll.quarantine(0, 1), Some(ticket(1)));
        assert!(dispatch.all_quarantined());
        let completing = thread::spawn(move || device.complete(0, 1));
        let polling = thread::spawn(move || {
            let mut ends = Vec::new();
            for _ in 0..2 {
                ends.extend(poll_once(&mut poll).as_ref().and_then(job_of));
                match resolve_once(&mut poll) {
                    Some(Resolved::Freed { job }) => ends.push(job.number()),
                    other => assert!(matches!(other, None | Some(Resolved::Nothing)), "{other:?}"),
                }
            }
            (poll, ends)
        });
        dispatch.recover();
        assert!(!dispatch.all_quarantined());
        let launched = dispatch.take_idle().map(|w| {
            assert_eq!(dispatch.start(w, 200, Job::from_number(2), ticket(2), Ticks(0)), 2);
        });
        completing.join().unwrap();
        let (mut poll, mut ends) = polling.join().unwrap();
        if let Some(Resolved::Freed { job }) = resolve_once(&mut poll) {
            ends.push(job.number());
        }
        assert!(matches!(poll_once(&mut poll), None | Some(Settled::Stale)), "the old completion is of no launch");
        assert_eq!(ends, [1]);
        let expected = if launched.is_some() { (2, State::Running) } else { (1, State::Free) };
        assert_eq!((bank.state(0), bank.idle_mask()), (expected, u64::from(launched.is_none())));
    });
}

/// A launch that did not start is freed although the deadline may have quarantined it; the next one
/// writes after the deadline has read the tags. Red without S6.release, S6.acquire, W2.release,
/// W2.acquire.
#[test]
fn a_launch_that_did_not_start_meets_the_deadline() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut poll, words: bank, .. } = bank(1);
        launch(&mut dispatch, 1);
        let polling = thread::spawn(move || {
            let expired = poll.running(0).and_then(|(generation, _)| poll.quarantine(0, generation));
            assert!(expired.is_none_or(|expired| expired == ticket(1)));
            let freed = resolve_once(&mut poll);
            (poll, freed)
        });
        dispatch.fail(0, Failure::NotStarted);
        let launched = dispatch.take_idle().map(|w| dispatch.start(w, 200, Job::from_number(2), ticket(2), Ticks(0)));
        let (mut poll, freed) = polling.join().unwrap();
        let freed = [freed, resolve_once(&mut poll)].into_iter().flatten();
        assert_eq!(Vec::from_iter(freed), [Resolved::Freed { job: Job::from_number(1) }]);
        let expected = if launched.is_some() { (2, State::Running) } else { (1, State::Free) };
        assert_eq!(bank.state(0), expected);
    });
}

/// After a recovery, poll may still hold the old completion while the next launch runs and
/// completes: that launch is settled once, with its own outputs. Red without S3.release, S3.acquire,
/// S4.release, S4.acquire; and with a generation that is read beside the ready flag instead of in
/// it.
#[test]
fn an_old_completion_never_settles_the_next_launch() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut device, mut poll, words: bank, .. } = bank(1);
        let jobs = Arc::new(JobBank::new(4, 1, 1));
        launch(&mut dispatch, 1);
        device.rung(0).unwrap();
        device.complete(0, 1);
        assert_eq!(poll.quarantine(0, 1), Some(ticket(1)));
        dispatch.recover();
        assert_eq!(resolve_once(&mut poll), Some(Resolved::Freed { job: Job::from_number(1) }));
        let running = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || {
                let mail = device.rung(0);
                if let Some(mail) = mail {
                    jobs.detectors(&Job::from_number(mail.job))[0].store(9);
                    device.complete(0, mail.generation);
                }
                mail.is_some()
            })
        };
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 2));
        let mut settled_jobs = 0;
        let mut poll_and_check = || {
            let Some(settled) = poll_once(&mut poll) else { return };
            match settled {
                Settled::Job { job, ticket: found, generation: 2 } => {
                    assert_eq!((job.number(), found, jobs.detectors(&job)[0].load()), (2, ticket(2), 9));
                    settled_jobs += 1;
                }
                other => assert_eq!(other, Settled::Stale),
            }
        };
        poll_and_check();
        poll_and_check();
        let completed = running.join().unwrap();
        assert_eq!(dispatcher.join().unwrap(), 2);
        poll_and_check();
        let state = if completed { State::Claimed } else { State::Running };
        assert_eq!((settled_jobs, bank.state(0)), (u32::from(completed), (2, state)));
    });
}
