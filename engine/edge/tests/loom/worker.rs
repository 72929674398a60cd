//! Models of workers and jobs: S3, S4, S6, W1, W2.

use loom::thread;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{Job, JobBank, Origin};
use pinwheel_edge::slot::workers::{DispatchWorkers, PollWorkers, Settled, State, bank};
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
        let (mut dispatch, mut device, _poll, _bank) = bank(1);
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 3));
        if let Some(mail) = device.rung(0) {
            assert_eq!((mail.generation, mail.address, mail.job), (1, 300, 3));
            assert_eq!(device.rung(0), None, "mail comes once");
        }
        dispatcher.join().unwrap();
    });
}

/// Poll reads the outputs of the completion it claimed, and the tags of its launch. Red without S4.release,
/// S4.acquire.
#[test]
fn poll_reads_whole_outputs() {
    loom::model(|| {
        let (mut dispatch, mut device, mut poll, _bank) = bank(1);
        let jobs = Arc::new(JobBank::new(1, 1, 1));
        let job = jobs.take().unwrap();
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

/// Dispatch refills mailbox and tags only after poll has read them, and finds the worker free. Red without
/// S6.release, S6.acquire.
#[test]
fn a_worker_is_reused_after_it_was_read() {
    loom::model(|| {
        let (mut dispatch, device, mut poll, bank) = bank(1);
        launch(&mut dispatch, 1);
        device.complete(0, 1);
        let polling = thread::spawn(move || {
            let Some(Settled::Job { ticket: found, generation: 1, .. }) = poll_once(&mut poll) else { panic!() };
            assert_eq!(found, ticket(1));
            poll.bank().release(0, 1);
        });
        if let Some(w) = dispatch.take_idle() {
            assert_eq!(dispatch.start(w, 200, Job::from_number(2), ticket(2), Ticks(0)), 2);
        }
        polling.join().unwrap();
        assert!(matches!(bank.state(0), (1, State::Free) | (2, State::Running)));
    });
}

/// `AfterDecode`: the decoder frees the worker, after it has read its job; the worker's next launch and the buffer's
/// next owner write later. Red without S6.release, S6.acquire, F1.release, F1.acquire (the buffer comes back
/// through a queue).
#[test]
fn a_decoder_frees_its_worker_after_it_read_its_job() {
    loom::model(|| {
        let (mut dispatch, device, mut poll, _bank) = bank(1);
        let jobs = Arc::new(JobBank::new(1, 1, 1));
        let queue = Arc::new(Fifo::<u32>::new(2));
        let job = jobs.take().unwrap();
        jobs.detectors(&job)[0].store(9);
        let w = dispatch.take_idle().unwrap();
        let generation = dispatch.start(w, 100, job, ticket(1), Ticks(0));
        device.complete(w, generation);
        let decoder = {
            let (jobs, queue, bank) = (Arc::clone(&jobs), Arc::clone(&queue), Arc::clone(dispatch.bank()));
            thread::spawn(move || {
                let Some(number) = queue.pop() else { return };
                let job = Job::from_number(number);
                let origin = jobs.origin(&job);
                assert_eq!((origin.ticket, jobs.detectors(&job)[0].load()), (ticket(1), 9));
                let (worker, generation) = origin.worker.unwrap();
                jobs.give(job);
                bank.release(worker.into(), generation);
            })
        };
        let polling = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || {
                let Some(Settled::Job { job, ticket, generation }) = poll_once(&mut poll) else { panic!() };
                let origin =
                    Origin { ticket, completed: Ticks(1), worker: Some((0, generation)), raw: false, by_rounds: false };
                jobs.set_origin(&job, &origin);
                queue.push(job.number()).unwrap();
            })
        };
        if let Some(w) = dispatch.take_idle() {
            let job = jobs.take().unwrap();
            jobs.detectors(&job)[0].store(10);
            assert_eq!(dispatch.start(w, 200, job, ticket(2), Ticks(0)), 2);
        }
        polling.join().unwrap();
        decoder.join().unwrap();
    });
}

/// A completion, its deadline and an unknown launch: one of them settles the worker, and the job comes back to one.
/// The CAS on the word decides (red when `shift` loads and stores instead); no edge is involved.
#[test]
fn deadline_and_completion_settle_once() {
    loom::model(|| {
        let (mut dispatch, mut device, mut poll, bank) = bank(1);
        let launched = launch(&mut dispatch, 1);
        let running = thread::spawn(move || {
            let mail = device.rung(0).unwrap();
            device.complete(0, mail.generation);
        });
        let polling = thread::spawn(move || {
            let mut settled = Vec::from_iter(poll_once(&mut poll));
            let expired = poll.running(0).and_then(|(generation, _)| poll.quarantine(0, generation));
            settled.extend(poll_once(&mut poll));
            (poll, settled, expired)
        });
        let unknown = dispatch.quarantine(0, launched);
        running.join().unwrap();
        let (mut poll, mut settled, expired) = polling.join().unwrap();
        settled.extend(poll_once(&mut poll));
        assert!(expired.is_none_or(|expired| expired == ticket(1)));
        let quarantined = u32::from(unknown) + u32::from(expired.is_some());
        match settled.as_slice() {
            [Settled::Job { job, generation, .. }] => {
                assert_eq!((job.number(), quarantined), (1, 0));
                bank.release(0, *generation);
            }
            [Settled::Late { job }] => assert_eq!((job.number(), quarantined), (1, 1)),
            other => panic!("{other:?}"),
        }
        assert_eq!((bank.state(0), bank.idle_mask()), ((1, State::Free), 1));
    });
}

/// A deadline that knows a launch only by its generation answers that launch's shot. Red without W1.release,
/// W1.acquire.
#[test]
fn a_deadline_expires_its_own_launch() {
    loom::model(|| {
        let (mut dispatch, _device, mut poll, bank) = bank(1);
        launch(&mut dispatch, 1);
        bank.complete(0, 1);
        assert_eq!(poll_once(&mut poll).as_ref().and_then(job_of), Some(1));
        bank.release(0, 1);
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 2));
        assert_eq!(poll.quarantine(0, 1), None, "the launch before is over");
        let expired = poll.quarantine(0, 2);
        assert!(expired.is_none_or(|expired| expired == ticket(2)));
        dispatcher.join().unwrap();
        let state = if expired.is_some() { State::Quarantined } else { State::Running };
        assert_eq!(bank.state(0), (2, state));
    });
}

/// A deadline judges a launch by its own start. Red without W1.release, W1.view.
#[test]
fn a_running_worker_shows_its_own_start() {
    loom::model(|| {
        let (mut dispatch, _device, mut poll, bank) = bank(1);
        launch(&mut dispatch, 1);
        bank.complete(0, 1);
        poll_once(&mut poll).unwrap();
        bank.release(0, 1);
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 2));
        if let Some(running) = poll.running(0) {
            assert_eq!(running, (2, Ticks(2000)));
        }
        dispatcher.join().unwrap();
    });
}

/// A quarantined worker is freed by its late completion or by a recovery, never by both; its next launch writes after
/// the deadline has read the tags, and the old completion does not touch it. Red without W2.release, W2.acquire.
#[test]
fn recovery_and_late_completion_free_once() {
    loom::model(|| {
        let (mut dispatch, device, mut poll, bank) = bank(1);
        launch(&mut dispatch, 1);
        device.complete(0, 1);
        let polling = thread::spawn(move || {
            assert_eq!(poll.quarantine(0, 1), Some(ticket(1)));
            poll_once(&mut poll).unwrap()
        });
        let mut recovered = Vec::new();
        dispatch.recover(|job| recovered.push(job.number()));
        if !recovered.is_empty() {
            assert_eq!(launch(&mut dispatch, 2), 2);
        }
        let settled = polling.join().unwrap();
        match settled {
            Settled::Late { job } => assert_eq!((job.number(), recovered.len()), (1, 0)),
            Settled::Stale => assert_eq!(recovered, [1]),
            Settled::Job { .. } => panic!("the deadline had it"),
        }
        let expected = if recovered.is_empty() { (1, State::Free) } else { (2, State::Running) };
        assert_eq!((bank.state(0), bank.idle_mask()), (expected, u64::from(recovered.is_empty())));
    });
}

/// A launch that did not start is freed although the deadline quarantined it; the next one writes after the deadline
/// has read the tags. Red without W2.release, W2.abort.
#[test]
fn an_abort_meets_the_deadline() {
    loom::model(|| {
        let (mut dispatch, _device, mut poll, bank) = bank(1);
        launch(&mut dispatch, 1);
        let polling = thread::spawn(move || poll.quarantine(0, 1));
        let aborted = dispatch.abort(0, 1).map(|job| job.number());
        if aborted == Some(1) {
            assert_eq!(launch(&mut dispatch, 2), 2);
        }
        let expired = polling.join().unwrap();
        assert!(expired.is_none_or(|expired| expired == ticket(1)));
        let expected = if aborted.is_some() { (2, State::Running) } else { (1, State::Quarantined) };
        assert_eq!(bank.state(0), expected);
    });
}

/// After a recovery, poll may still hold the old completion while the next launch runs and completes: that launch is
/// settled at most once, with its own outputs. Red without S3.release, S3.acquire, S4.release, S4.acquire; and with a
/// generation that is read beside the ready flag instead of in it. That its completion is not lost is left to the
/// threads of `it.rs`: loom does not put a plain store and a concurrent CAS on one word in order.
#[test]
fn an_old_completion_never_settles_the_next_launch() {
    loom::model(|| {
        let (mut dispatch, mut device, mut poll, bank) = bank(1);
        let jobs = Arc::new(JobBank::new(4, 1, 1));
        launch(&mut dispatch, 1);
        device.rung(0).unwrap();
        device.complete(0, 1);
        assert!(dispatch.quarantine(0, 1));
        dispatch.recover(|job| assert_eq!(job.number(), 1));
        let running = {
            let jobs = Arc::clone(&jobs);
            thread::spawn(move || {
                if let Some(mail) = device.rung(0) {
                    jobs.detectors(&Job::from_number(mail.job))[0].store(9);
                    device.complete(0, mail.generation);
                }
            })
        };
        let dispatcher = thread::spawn(move || launch(&mut dispatch, 2));
        let mut settled_jobs = 0;
        for settled in [poll_once(&mut poll), poll_once(&mut poll)].into_iter().flatten() {
            match settled {
                Settled::Job { job, ticket: found, generation: 2 } => {
                    assert_eq!((job.number(), found, jobs.detectors(&job)[0].load()), (2, ticket(2), 9));
                    settled_jobs += 1;
                }
                other => assert_eq!(other, Settled::Stale),
            }
        }
        running.join().unwrap();
        assert_eq!(dispatcher.join().unwrap(), 2);
        let state = [State::Running, State::Claimed][settled_jobs];
        assert_eq!(bank.state(0), (2, state));
    });
}
