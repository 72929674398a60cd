//! CUDA-Q's decoding protocol: from a bare client's call to the reply, with a running engine that
//! matches the bundled code of distance 3.
//!
//! Once all roles share one hot thread and the client spins on the other core; once the engine has
//! the plan that it makes itself, which on two cores is the same, and the client yields on the core of
//! cold threads while it waits.
//! A shot is one `enqueue_syndromes` that fills the volume, whose reply comes after the decode, and
//! one `get_corrections`. Compared with an echo of the same datagrams by a dedicated thread, also
//! busy-polled.

use super::hops::{EVERY, quantiles};
use super::live::echo;
use super::measure::{CLOCK, CORES, Placement, Suite, pin_to};
use super::overhead::unrecorded;
use pinwheel_engine::board::snapshot::SourceState;
use pinwheel_engine::code::{Model, Sampler, bundled_named};
use pinwheel_engine::engine::{Engine, Input, LivePlace};
use pinwheel_engine::feed::cudaq::frame::{self, Call, SLOT_BYTES};
use pinwheel_engine::profile::{Decoders, Device, Profile, Silos, Source, ThreadSpec, Threads};
use pinwheel_engine::roles::RoleKind;
use std::net::UdpSocket;
use std::sync::Arc;

const SHOTS: u64 = 20_000;
const PARTS: [&str; 6] = ["enqueue p50", "enqueue p99", "enqueue p99.9", "get p50", "get p99", "get p99.9"];

pub fn register(suite: &mut Suite) {
    let shots = suite.effort.scale(SHOTS);
    let one = move || called(shots, one_thread(), Wait::Spins);
    let one = suite.case("one thread", &PARTS, (Placement::CrossCore, 7), one);
    let two = move || called(shots, Threads::Auto, Wait::Yields);
    let two = suite.case("default plan", &PARTS, (Placement::CrossCore, 7), two);
    let bare = move |wait| move || echo(None, |port| trips(port, shots, wait));
    let spinning = suite.case("bare echo, spinning", &PARTS, (Placement::CrossCore, 7), bare(Wait::Spins));
    let yielding = suite.case("bare echo, yielding", &PARTS, (Placement::CrossCore, 7), bare(Wait::Yields));
    let names = ["enqueue_p50", "enqueue_p99", "enqueue_p999", "get_p50", "get_p99", "get_p999"];
    for (part, name) in names.into_iter().enumerate() {
        let peer = Some(("bare-echo", spinning.part(part)));
        suite.figure(format!("cudaq/{name}"), "ns", one.part(part), peer);
    }
    for (part, name) in names.into_iter().enumerate() {
        let peer = Some(("bare-echo", yielding.part(part)));
        suite.figure(format!("cudaq/default_{name}"), "ns", two.part(part), peer);
    }
}

/// What the client does while it waits for a reply.
#[derive(Clone, Copy)]
enum Wait {
    Spins,
    Yields,
}

/// All roles on the partner's core.
fn one_thread() -> Threads {
    use RoleKind::{Decode, Device, Dispatch, Feed, Graph, Harvest, Poll};
    let roles = vec![Feed, Dispatch, Device, Poll, Graph, Decode, Harvest];
    Threads::Explicit(vec![ThreadSpec { name: "hot-0".to_owned(), roles, silo: 0, core: Some(CORES.there) }])
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
fn trips(port: u16, shots: u64, wait: Wait) -> Vec<f64> {
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
            while socket.recv(&mut reply).is_err() {
                if let Wait::Yields = wait {
                    std::thread::yield_now();
                }
            }
            times.push(CLOCK.rate().nanos(CLOCK.ticks().since(sent)).0);
            assert_eq!(reply[12..16], [1, 0, 0, 0], "the number of the request");
        }
    }
    times.iter().flat_map(|times| quantiles(times)).collect()
}

fn called(shots: u64, threads: Threads, wait: Wait) -> Vec<f64> {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    (profile.silos, profile.input.streams, profile.threads) = (Silos::Count(1), 1, threads);
    (profile.decoders, profile.device) = (Decoders::Count(1), Device::None);
    profile.input.source = Source::Cudaq {
        address: "127.0.0.1:0".to_owned(),
        allow: Vec::new(),
        config: "surface_d3".to_owned(),
        slot_size: SLOT_BYTES,
    };
    let place = LivePlace::parse("cudaq:127.0.0.1:0").unwrap();
    let input = Input::Live { model: model(), place, measurements: None };
    let engine = Engine::start(unrecorded(profile, input)).unwrap();
    let port = loop {
        let snapshot = engine.snapshot();
        let source = &snapshot.sources[0];
        if let (false, Some(decoder)) = (source.state == SourceState::Waiting, source.streams[0].decoder) {
            break decoder.port;
        }
        std::thread::yield_now();
    };
    if let (Wait::Yields, Some(core)) = (wait, engine.plan().cold_cores.first()) {
        pin_to(*core);
    }
    let found = trips(port, shots, wait);
    engine.request_drain();
    let _ = engine.finish();
    found
}
