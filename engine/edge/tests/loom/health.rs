//! Models of the device's health word: H1.

use loom::thread;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::health::{Health, HealthWord};
use pinwheel_edge::slot::jobs::{FreeJobs, Job, JobBank};
use pinwheel_edge::slot::workers::{Resolved, WorkerEnds, bank};
use pinwheel_edge::units::Ticks;
use std::sync::Arc;

/// A device that is being reset writes a late output; recovery opens it again; dispatch, which sees
/// it recovered, takes its workers back and refills mail and job after that write. Red without
/// H1.release, H1.acquire.
#[test]
fn a_reset_device_writes_no_more() {
    loom::model(|| {
        let WorkerEnds { mut dispatch, mut device, mut poll, .. } = bank(1);
        let (jobs, (mut free, [])) = (Arc::new(JobBank::new(1, 1, 1)), FreeJobs::new(1));
        let health = Arc::new(HealthWord::new());
        let ticket = |generation| Ticket { slot: 0, generation };
        let w = dispatch.take_idle().unwrap();
        let generation = dispatch.start(w, 100, free.take().unwrap(), ticket(1), Ticks(0));
        dispatch.bank().ring(w, generation);
        assert_eq!(poll.quarantine(w, generation), Some(ticket(1)));
        assert!(dispatch.all_quarantined());
        health.advance(Health::Online);
        health.advance(Health::Lost);
        let resetting = {
            let (jobs, health) = (Arc::clone(&jobs), Arc::clone(&health));
            thread::spawn(move || {
                assert_eq!(health.current(), Health::Resetting);
                let mail = device.rung(0).unwrap();
                jobs.detectors(&Job::from_number(mail.job))[0].store(9);
                health.advance(Health::Resetting);
            })
        };
        let recovery = {
            let health = Arc::clone(&health);
            thread::spawn(move || {
                if health.current() == Health::Reset {
                    health.advance(Health::Reset);
                }
            })
        };
        if health.current() == Health::Recovered {
            dispatch.recover();
            assert_eq!(poll.reported(), 1);
            let Resolved::Freed { job } = poll.resolve(w) else { panic!() };
            free.give(job);
            health.advance(Health::Recovered);
            let job = free.take().unwrap();
            jobs.detectors(&job)[0].store(10);
            let w = dispatch.take_idle().unwrap();
            assert_eq!(dispatch.start(w, 200, job, ticket(2), Ticks(0)), 2);
        }
        resetting.join().unwrap();
        recovery.join().unwrap();
    });
}
