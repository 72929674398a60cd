//! Live sources: from a client's write to its read of the answer, with null device and decoder, one
//! shot at a time and many.
//!
//! The silo runs on one hot thread, the client on the other core. Shared memory is compared with
//! bare round trips of two lines between the same cores at the same pace, and with four times the
//! median round trip; UDP with an echo of the same datagrams by a dedicated thread, also
//! busy-polled. The path of a host without another one is beside the same path of an engine alone.

use super::hops::{EVERY, bare, quantiles};
use super::measure::{CLOCK, CORES, Placement, Suite, pin_to, ping_pong};
use super::roles::{NullSilo, STREAMS, Setup, wired};
use super::threads::{HotThreads, shared_on};
use pinwheel_edge::ring::broadcast;
use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::board;
use pinwheel_engine::code::bundled_named;
use pinwheel_engine::feed::address::SourceAddress;
use pinwheel_engine::feed::bridge::{BridgeEnd, bridge};
use pinwheel_engine::feed::client::connect;
use pinwheel_engine::feed::link::{Link, LinkParts};
use pinwheel_engine::feed::packet::{Encoding, HEADER_BYTES, Part, Position};
use pinwheel_engine::feed::source::{LiveEnd, Source};
use pinwheel_engine::units::Ticks;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SHOTS: u64 = 20_000;
/// Shots in transit at once in the throughput measurement.
const WINDOW: u64 = 32;
const WORKERS: u32 = 8;
const MODEL: &str = "surface_d5";
/// A shot of it.
const SHOT: [u8; 15] = [0; 15];
const PARTS: [&str; 4] = ["p50", "p99", "p99.9", "ns/shot"];

pub fn register(suite: &mut Suite) {
    let shots = suite.effort.scale(SHOTS);
    let place = || SourceAddress::parse(&format!("shm:bench-{}", std::process::id())).unwrap();
    let shm = move || through(&place(), false, shots);
    let shm = suite.case("shared memory", &PARTS, (Placement::CrossCore, 7), shm);
    let lines = suite.case("bare round trips", &PARTS[..3], (Placement::CrossCore, 7), move || bare(shots));
    let trips = suite.case("bare round trip", &["x4"], (Placement::CrossCore, 7), || vec![4.0 * ping_pong()]);
    let alone = move || through(&place(), true, shots);
    let alone = suite.case("shared memory, a host alone", &PARTS, (Placement::CrossCore, 7), alone);
    let udp = move || through(&SourceAddress::parse("udp:127.0.0.1:0").unwrap(), false, shots);
    let udp = suite.case("udp", &PARTS, (Placement::CrossCore, 7), udp);
    let echo = suite.case("bare udp echo", &PARTS, (Placement::CrossCore, 7), move || echoed(shots));
    suite.figure("live/shm_p50", "ns", shm, Some(("4-median-round-trips", trips)));
    for (part, name) in [(1, "p99"), (2, "p999")] {
        suite.figure(format!("live/shm_{name}"), "ns", shm.part(part), Some(("bare-round-trip", lines.part(part))));
    }
    suite.figure("live/shm_many", "ns/shot", shm.part(3), None);
    for (part, name) in [(0, "p50"), (1, "p99"), (2, "p999"), (3, "many")] {
        let unit = if part == 3 { "ns/shot" } else { "ns" };
        let peer = Some(("no-hosts", shm.part(part)));
        suite.figure(format!("live/shm_host_{name}"), unit, alone.part(part), peer);
        suite.figure(format!("live/udp_{name}"), unit, udp.part(part), Some(("bare-echo", echo.part(part))));
    }
}

/// A null silo behind a live source, and the source's actual address. With a bridge it is a host's, and no other
/// host is there.
fn silo(place: &SourceAddress, bridge: Option<BridgeEnd>) -> (NullSilo, SourceAddress) {
    let model = Arc::new(bundled_named(MODEL).unwrap());
    let setup = Setup::of(WORKERS);
    let board = setup.board();
    let parts = LinkParts {
        by_rounds: false,
        place,
        model: &model,
        measurements: None,
        silos: 1,
        streams: STREAMS,
        count: None,
        bridge,
        measured: None,
        epoch: 1,
        rate: CLOCK.rate(),
        board: Arc::clone(&board),
        boards: &board::directory(),
    };
    let mut linked = Link::open(parts).unwrap();
    let (sink, readers) = broadcast::channel(4096, 1);
    readers.into_iter().for_each(|reader| linked.taps.send(reader).unwrap());
    let lane = linked.lanes.pop().unwrap();
    let source = Source::Live(LiveEnd { lane, link: Some(Box::new(linked.link)) });
    (wired(&model, &setup, (board, source), Some(sink)), SourceAddress::parse(&linked.name).unwrap())
}

fn through(place: &SourceAddress, is_host: bool, shots: u64) -> Vec<f64> {
    let model = bundled_named(MODEL).unwrap();
    let (end, _bridge) = is_host.then(|| bridge(&model, STREAMS)).unzip();
    let (mut silo, place) = silo(place, end);
    let shared = shared_on(Arc::clone(&silo.board));
    let specs = std::mem::take(&mut silo.specs);
    let running = HotThreads::start(&shared, SpinPolicy::Prod, [(CORES.there, specs)]);
    shared.phase.advance(Phase::Live);
    let mut client = connect(&place, &board::directory(), 1, 1).unwrap();
    while client.welcome().unwrap().is_none() {
        std::thread::yield_now();
    }
    let found = trips(shots, |number, take| {
        let Some(number) = number else { return client.receive(&mut |_| *take += 1).map(|_| true).unwrap() };
        client.send((number % u64::from(STREAMS)) as u32, number / u64::from(STREAMS), &SHOT).unwrap()
    });
    shared.phase.advance(Phase::Shutdown);
    running.join();
    found
}

/// Sends one message at a time at a pace, then many at once: `step` sends message `Some(n)`, or
/// counts returned messages.
fn trips(shots: u64, mut step: impl FnMut(Option<u64>, &mut u64) -> bool) -> Vec<f64> {
    let every = CLOCK.rate().ticks(EVERY);
    let (mut times, mut next, mut back) = (Vec::with_capacity(shots as usize), CLOCK.ticks(), 0);
    for number in 0..shots {
        while CLOCK.ticks() < next {
            std::hint::spin_loop();
        }
        let sent = CLOCK.ticks();
        next = sent.plus(every);
        while !step(Some(number), &mut back) {}
        while back == number {
            step(None, &mut back);
        }
        times.push(CLOCK.rate().nanos(CLOCK.ticks().since(sent)).0);
    }
    let (from, mut sent): (Ticks, u64) = (CLOCK.ticks(), shots);
    while back < 2 * shots {
        if sent < 2 * shots && sent - back < WINDOW && step(Some(sent), &mut back) {
            sent += 1;
        }
        step(None, &mut back);
    }
    let mut found = quantiles(&times);
    found.push(CLOCK.rate().nanos(CLOCK.ticks().since(from)).0 as f64 / shots as f64);
    found
}

/// The same datagrams to a thread that returns as many bytes as an answer has.
fn echoed(shots: u64) -> Vec<f64> {
    // A header and one byte of observables.
    echo(Some(HEADER_BYTES + 1), |port| {
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        here.connect(("127.0.0.1", port)).unwrap();
        here.set_nonblocking(true).unwrap();
        let (mut out, mut bytes) = (Vec::new(), [0; 256]);
        let part = Part {
            epoch: 1,
            session: 1,
            sequence: 0,
            stream: 0,
            round: 0,
            position: Position::Last,
            first_bit: 0,
            bits: 120,
            encoding: Encoding::Bits,
            payload: &SHOT,
            soft: &[],
        };
        trips(shots, |number, back| match number {
            Some(sequence) => {
                Part { sequence, ..part }.encode(&mut out);
                here.send(&out).is_ok()
            }
            None => {
                *back += u64::from(here.recv(&mut bytes).is_ok());
                true
            }
        })
    })
}

/// Calls `client` with the port of a thread that returns each datagram, or its first `answer_bytes`.
pub fn echo<R>(answer_bytes: Option<usize>, client: impl FnOnce(u16) -> R) -> R {
    let there = UdpSocket::bind("127.0.0.1:0").unwrap();
    there.set_nonblocking(true).unwrap();
    let port = there.local_addr().unwrap().port();
    let ended = Arc::new(AtomicU64::new(0));
    let echo = {
        let ended = Arc::clone(&ended);
        std::thread::spawn(move || {
            pin_to(CORES.there);
            let mut bytes = [0; 256];
            while ended.load(Ordering::Relaxed) == 0 {
                if let Ok((length, from)) = there.recv_from(&mut bytes) {
                    let _ = there.send_to(&bytes[..answer_bytes.unwrap_or(length)], from);
                }
            }
        })
    };
    let found = client(port);
    ended.store(1, Ordering::Relaxed);
    echo.join().unwrap();
    found
}
