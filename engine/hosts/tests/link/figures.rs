use crate::authority::Authority;
use crate::certificates::secured;
use crate::cluster::{Host, cluster, pair, settings};
use pinwheel_hosts::description::{Description, Load};
use pinwheel_hosts::link::{Question, Reply, Topic};
use pinwheel_hosts::placing::{Candidacy, Change, Placing, StreamLoad};
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

#[test]
#[ignore = "a measurement"]
fn a_stream_is_placed_among_three_hosts_whose_depth_is_asked_fresh() {
    let cluster = cluster();
    let described = |_: Question<'_>, reply: Reply| {
        let said = Description { load: Load { average: 0.1, max: 0.2, backlog_ns: 0 }, ..Description::default() };
        reply.send(&serde_json::to_vec(&said).unwrap());
    };
    let open = |name: &str, endpoints: &[String]| Host::with(&settings(&cluster, name, endpoints), described).unwrap();
    let one = open("one", &[]);
    let two = open("two", &one.link.endpoints());
    let own = open("own", &[one.link.endpoints(), two.link.endpoints()].concat());
    ["one", "two"].iter().for_each(|name| _ = own.sees(name));
    let mut placing = Placing::new(4, 1);
    let streams: Vec<StreamLoad> =
        (0..4).map(|stream| StreamLoad { stream, share: 0.25, is_away: false, at: None, is_placed: false }).collect();
    let mut place = |number: usize| {
        let begun = Instant::now();
        let asked = ["one", "two"].map(|name| own.ask_later(name, Topic::Describe, &[], Duration::from_secs(5)));
        let others = asked.map(|answer| {
            let said: Description = serde_json::from_slice(&answer.recv().unwrap().unwrap()).unwrap();
            Candidacy { load: said.load, trip_ns: begun.elapsed().as_nanos() as u64, taken: said.taken }
        });
        let pressed = Load { average: 0.5, max: 0.9, backlog_ns: 0 };
        let change = placing.change(pressed, &others, &streams, (number as u64 + 1) * 10_000_000_000);
        assert!(matches!(change, Some(Change::Give { .. })), "{change:?}");
        begun.elapsed()
    };
    (0..100).for_each(|number| _ = place(number));
    let mut times: Vec<Duration> = (100..100 + COUNT).map(place).collect();
    times.sort();
    let (p50, p99, max) = (times[COUNT / 2], times[COUNT * 99 / 100], times[COUNT - 1]);
    println!(
        "{COUNT} placements among three hosts in one process, depth asked fresh: p50 {p50:?}, p99 {p99:?}, max {max:?}"
    );
}
