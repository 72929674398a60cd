use crate::authority::Authority;
use crate::certificates::secured;
use crate::cluster::{Host, cluster, pair};
use pinwheel_hosts::link::Topic;
use std::time::{Duration, Instant};

/// Questions in each measurement.
const COUNT: usize = 1_000;

#[test]
#[ignore = "a measurement"]
fn round_trips_of_a_kilobyte() {
    let (_one, two) = pair(|question, reply| reply.send(question.body));
    measure("without certificates", &two);
    let (cluster, authority) = (cluster(), Authority::new());
    let settings = |name: &str, others: &[String], allowed: &str| {
        secured(&cluster, name, authority.host(name), "quic/127.0.0.1:0", others, &[allowed])
    };
    let one = Host::open(&settings("one", &[], "two"));
    let two = Host::open(&settings("two", &one.link.endpoints(), "one"));
    two.sees("one");
    measure("with certificates", &two);
}

/// Asks host `one` one question after another.
fn measure(what: &str, host: &Host) {
    let body = vec![7; 1_024];
    let trip = || {
        let begun = Instant::now();
        assert!(host.ask("one", Topic::Shots, &body, Duration::from_secs(5)).is_ok());
        begun.elapsed()
    };
    (0..100).for_each(|_| _ = trip());
    let mut trips: Vec<Duration> = (0..COUNT).map(|_| trip()).collect();
    trips.sort();
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count).unwrap_or_default();
    println!(
        "{COUNT} round trips of 1 kB {what}, two links in one process of {threads} threads: p50 {:?}, p99 {:?}, max {:?}",
        trips[COUNT / 2],
        trips[COUNT * 99 / 100],
        trips[COUNT - 1],
    );
}
