//! CUDA-Q's decoding protocol: from a bare client's call to the reply, with a running engine that
//! matches the bundled code of distance 3.
//!
//! The engine has the threads that its plan gives it on this machine; the client spins on its own.
//! A shot is one `enqueue_syndromes` that fills the volume, whose reply comes after the decode, and
//! one `get_corrections`. Compared with an echo of the same datagrams by a dedicated thread, also
//! busy-polled.

use super::hops::{EVERY, quantiles};
use super::live::echo;
use super::measure::{CLOCK, Placement, Suite};
use pinwheel_engine::board::snapshot::SourceState;
use pinwheel_engine::code::{Model, Sampler, bundled_named};
use pinwheel_engine::engine::{Config, Engine, Input, LivePlace};
use pinwheel_engine::feed::cudaq::frame::{self, Call, SLOT_BYTES};
use pinwheel_engine::profile::{Profile, Silos};
use std::net::UdpSocket;
use std::sync::Arc;

const SHOTS: u64 = 20_000;
const PARTS: [&str; 6] = ["enqueue p50", "enqueue p99", "enqueue p99.9", "get p50", "get p99", "get p99.9"];

/// Registers the area `cudaq`.
pub fn register(suite: &mut Suite) {
    let shots = suite.effort.scale(SHOTS);
    let calls = suite.case("calls", &PARTS, (Placement::CrossCore, 7), move || called(shots));
    let bare =
        suite.case("bare udp echo", &PARTS, (Placement::CrossCore, 7), move || echo(None, |port| trips(port, shots)));
    for (part, name) in
        ["enqueue_p50", "enqueue_p99", "enqueue_p999", "get_p50", "get_p99", "get_p999"].into_iter().enumerate()
    {
        suite.figure(format!("cudaq/{name}"), "ns", calls.part(part), Some(("bare-echo", bare.part(part))));
    }
}

/// The calls of a shot; measurements are detection events.
fn datagrams(model: &Model) -> [Vec<u8>; 2] {
    let (mut shot, mut truth) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
    let mut sampler = Sampler::new(model, 1);
    while shot.iter().all(|word| *word == 0) {
        sampler.draw(&mut shot, &mut truth);
    }
    let bytes: Vec<u8> = shot.iter().flat_map(|word| word.to_le_bytes()).collect();
    let packed = &bytes[..model.detectors.div_ceil(8) as usize];
    let calls = [
        Call::Enqueue { bits: model.detectors, packed },
        Call::Corrections { return_bits: i64::from(model.observables), is_clearing: true },
    ];
    calls.map(|call| {
        let mut out = Vec::new();
        frame::write_request(1, 0, &call, &mut out);
        out.resize(SLOT_BYTES as usize, 0);
        out
    })
}

fn model() -> Arc<Model> {
    Arc::new(bundled_named("surface_d3").unwrap())
}

/// Round trips of both calls at a pace, in nanoseconds.
fn trips(port: u16, shots: u64) -> Vec<f64> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let (datagrams, mut reply) = (datagrams(&model()), [0; 512]);
    let every = CLOCK.rate().ticks(EVERY);
    let (mut times, mut next) = ([(); 2].map(|()| Vec::with_capacity(shots as usize)), CLOCK.ticks());
    for _ in 0..shots {
        while CLOCK.ticks() < next {
            std::hint::spin_loop();
        }
        next = CLOCK.ticks().plus(every);
        for (times, datagram) in times.iter_mut().zip(&datagrams) {
            let sent = CLOCK.ticks();
            assert_eq!(socket.send(datagram).unwrap(), datagram.len());
            while socket.recv(&mut reply).is_err() {}
            times.push(CLOCK.rate().nanos(CLOCK.ticks().since(sent)).0);
            assert_eq!(reply[12..16], [1, 0, 0, 0], "the number of the request");
        }
    }
    times.iter().flat_map(|times| quantiles(times)).collect()
}

fn called(shots: u64) -> Vec<f64> {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    (profile.silos, profile.input.streams) = (Silos::Count(1), 1);
    let place = LivePlace::parse("cudaq:127.0.0.1:0").unwrap();
    let engine = Engine::start(Config {
        profile_name: "lab".to_owned(),
        profile,
        label: String::new(),
        input: Input::Live { model: model(), place, measurements: None },
        count: None,
        duration: None,
        sink: None,
        events: None,
        run_dir: None,
        profiles: None,
        environment: None,
        notes: Vec::new(),
        drill_command: None,
    })
    .unwrap();
    let port = loop {
        let snapshot = engine.snapshot();
        let source = &snapshot.sources[0];
        if let (false, Some(decoder)) = (source.state == SourceState::Waiting, source.streams[0].decoder) {
            break decoder.port;
        }
        std::thread::yield_now();
    };
    let found = trips(port, shots);
    engine.request_drain();
    let _ = engine.finish();
    found
}
