//! A source that speaks CUDA-Q's decoding protocol: a recorded conversation, decoders and clients,
//! statuses, and what must not stop it.

use crate::live::{data, model};
use crate::rig::{assert_nothing_lost, beside_another, config, end, profile, shots, until};
use crate::rounds::windows_of;
use crate::shm_clients::compile;
use pinwheel_engine::board::snapshot::{Snapshot, SourceState};
use pinwheel_engine::code::{Measurements, Model, Sampler, bundled_named};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Engine, Input, LivePlace, Network, Outcome};
use pinwheel_engine::feed::client::{Client as _, CudaqClient, CudaqDecoders, Received};
use pinwheel_engine::feed::cudaq::frame::{self, Call, HEADER_BYTES, SLOT_BYTES};
use pinwheel_engine::profile::{Predecoder, Profile, Silos, Window, WindowRounds};
use pinwheel_engine::streams::DecoderState;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const OK: i32 = 0;
const INVALID_DECODER: i32 = 1;
const BAD_REQUEST: i32 = 2;
const INTERNAL_ERROR: i32 = 3;
const NOT_READY: i32 = 4;

/// A decoder of `bits` measurements whose corrections are the measurements.
fn identity(bits: u32) -> Arc<Model> {
    let text: String = (0..bits).map(|bit| format!("error(0.1) D{bit} L{bit}\n")).collect();
    Arc::new(Model::parse(text.as_bytes()).unwrap())
}

fn place(text: &str, decoders: &[i64]) -> LivePlace {
    let mut place = LivePlace::parse(text).unwrap();
    if let LivePlace::Cudaq { decoders: numbers, .. } = &mut place {
        *numbers = decoders.to_vec();
    }
    place
}

/// An engine with these decoders, and the port of each.
fn start(profile: &Profile, model: &Arc<Model>, place: LivePlace) -> (Engine, Vec<u16>) {
    start_with(profile, model, place, None)
}

fn start_with(
    profile: &Profile,
    model: &Arc<Model>,
    place: LivePlace,
    map: Option<Measurements>,
) -> (Engine, Vec<u16>) {
    let input = Input::Live { model: Arc::clone(model), place, measurements: map.map(Arc::new) };
    let engine = Engine::start(config(profile, input, None)).unwrap();
    let shown = until(&engine, "open decoders", |snapshot| {
        let source = &snapshot.sources[0];
        source.state != SourceState::Waiting && source.streams.iter().all(|stream| stream.decoder.is_some())
    });
    let ports = shown.sources[0].streams.iter().map(|stream| stream.decoder.unwrap().port).collect();
    (engine, ports)
}

fn with_streams(streams: u32) -> Profile {
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(1), streams);
    profile
}

fn drained(engine: Engine) -> Outcome {
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
    outcome
}

/// A reply's status and result.
type Said = (i32, Vec<u8>);

/// A client that takes the k-th reply for its k-th request, as NVIDIA's does.
struct Caller {
    socket: UdpSocket,
    id: u32,
    expected: VecDeque<u32>,
}

impl Caller {
    fn new(port: u16) -> Caller {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Caller { socket, id: 0, expected: VecDeque::new() }
    }

    fn send(&mut self, decoder: i64, call: &Call<'_>) {
        self.id += 1;
        self.send_again(decoder, call);
    }

    /// With the number of the request before it.
    fn send_again(&mut self, decoder: i64, call: &Call<'_>) {
        let mut bytes = Vec::new();
        frame::write_request(self.id, decoder, call, &mut bytes);
        bytes.resize(SLOT_BYTES as usize, 0);
        self.send_raw(&bytes);
    }

    fn send_raw(&mut self, bytes: &[u8]) {
        self.socket.send(bytes).unwrap();
        self.expected.push_back(self.id);
    }

    fn take(&mut self) -> Said {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("each request has a reply");
        let reply = frame::reply(&bytes[..length]).unwrap();
        assert_eq!(Some(reply.id), self.expected.pop_front(), "replies come in the order of the requests");
        (reply.status, reply.result.to_vec())
    }

    fn call(&mut self, decoder: i64, call: &Call<'_>) -> Said {
        self.send(decoder, call);
        self.take()
    }

    fn enqueue(&mut self, decoder: i64, bits: u32, packed: &[u8]) -> i32 {
        self.call(decoder, &Call::Enqueue { bits, packed }).0
    }

    fn get(&mut self, decoder: i64, return_bits: i64, is_clearing: bool) -> Said {
        self.call(decoder, &Call::Corrections { return_bits, is_clearing })
    }

    fn reset(&mut self, decoder: i64) -> i32 {
        self.call(decoder, &Call::Reset).0
    }
}

/// Datagrams of the recording: the time, who sent it (client or server), its bytes.
fn recorded() -> Vec<(bool, Vec<u8>)> {
    let text = include_str!("../captures/cudaq.hex");
    let datagram = |line: &str| {
        let (_, rest) = line.split_once(" us ").unwrap();
        let (from, rest) = rest.split_once(" len ").unwrap();
        let rest = rest.trim_end_matches(" (+zero padding)");
        let mut words = rest.split_whitespace();
        let length: usize = words.next().unwrap().parse().unwrap();
        let mut bytes: Vec<u8> = words.map(|word| u8::from_str_radix(word, 16).unwrap()).collect();
        bytes.resize(length, 0);
        (from == "C>S", bytes)
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(datagram).collect()
}

/// NVIDIA's client and server, as they were recorded: the same replies, byte for byte, whether the
/// requests come one by one or all at once.
#[test]
fn a_recorded_conversation_gets_the_same_replies_byte_for_byte() {
    let _home = beside_another();
    let recorded = recorded();
    let (requests, replies): (Vec<_>, Vec<_>) = recorded.into_iter().partition(|(is_request, _)| *is_request);
    assert_eq!((requests.len(), replies.len()), (20, 20));
    for waits in [true, false] {
        let (engine, ports) = start(&with_streams(1), &identity(3), place("cudaq:127.0.0.1:0", &[]));
        let client = Caller::new(ports[0]).socket;
        let mut found = Vec::new();
        let mut take = || {
            let mut bytes = [0; 4096];
            let length = client.recv(&mut bytes).unwrap();
            found.push(bytes[..length].to_vec());
        };
        for (_, request) in &requests {
            client.send(request).unwrap();
            if waits {
                take();
            }
        }
        if !waits {
            requests.iter().for_each(|_| take());
        }
        for ((_, expected), found) in replies.iter().zip(&found) {
            let used = HEADER_BYTES + frame::reply(expected).unwrap().result.len();
            assert_eq!((&expected[..used], expected.len()), (&found[..used], found.len()));
            // Unused bytes: NVIDIA's server leaves there what an earlier reply had.
            assert!(found[used..].iter().all(|byte| *byte == 0));
        }
        drained(engine);
    }
}

/// Every shot of the golden set by calls: corrections as the matcher alone says, added up over two
/// volumes where they are not cleared.
fn golden(place: LivePlace, decoders: &[i64], chunk: usize) {
    let _home = beside_another();
    let name = "surf_z_d3_r3_p0.005";
    let (model, bytes) = (model(name), data(&format!("{name}.dets.b8")));
    let set = shots(&bytes, model.detectors);
    let mut matcher = MatcherModel::new(&model).unwrap().matcher();
    let (engine, ports) = start(&with_streams(decoders.len() as u32), &model, place);
    // Two clients share the decoders' ports, and each has decoders of its own.
    let mut callers: Vec<[Caller; 2]> = ports.iter().map(|port| [Caller::new(*port), Caller::new(*port)]).collect();
    let record_bytes = model.detectors.div_ceil(8) as usize;
    let mut sums = vec![0; decoders.len()];
    for (index, record) in bytes.chunks_exact(record_bytes).enumerate().take(2_000) {
        let which = index % decoders.len();
        let (caller, decoder) = (&mut callers[which][which % 2], decoders[which]);
        for (place, part) in record.chunks(chunk).enumerate() {
            let bits = (model.detectors - (place * chunk * 8) as u32).min(part.len() as u32 * 8);
            caller.send(decoder, &Call::Enqueue { bits, packed: part });
        }
        let is_clearing = index % 3 > 0;
        caller.send(decoder, &Call::Corrections { return_bits: 1, is_clearing });
        record.chunks(chunk).for_each(|_| assert_eq!(caller.take(), (OK, Vec::new())));
        let mut bare = vec![0; model.observable_words()];
        matcher.decode(set.shot(index), &mut bare).unwrap();
        sums[which] ^= bare[0] as u8;
        assert_eq!(caller.take(), (OK, vec![sums[which]]), "shot {index}");
        if is_clearing {
            sums[which] = 0;
        }
    }
    let outcome = drained(engine);
    let source = &outcome.snapshot.sources[0];
    assert_eq!((source.accepted, source.malformed, source.unknown_streams), (2_000, 0, 0));
    let found: Vec<i64> = source.streams.iter().map(|stream| stream.decoder.unwrap().number).collect();
    assert_eq!(found, decoders);
}

#[test]
fn decoders_on_one_port_give_the_corrections_of_the_matcher() {
    golden(place("cudaq:127.0.0.1:0", &[7]), &[7], 3);
}

#[test]
fn decoders_with_a_port_each_give_the_corrections_of_the_matcher() {
    let decoders = [-3, 900, i64::MAX, 0, i64::MIN];
    golden(place("cudaq:127.0.0.1:0", &decoders), &decoders, 1);
}

/// Decoders that share a port: the port is one that was free a moment ago.
fn one_port(decoders: &[i64]) -> LivePlace {
    let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    place(&format!("cudaq:{at}"), decoders)
}

#[test]
fn statuses_follow_the_protocol() {
    let _home = beside_another();
    let (engine, ports) = start(&with_streams(2), &identity(9), one_port(&[4, 5]));
    assert_eq!(ports[0], ports[1]);
    let mut caller = Caller::new(ports[0]);
    let not_found = [Call::Reset, Call::Enqueue { bits: 9, packed: &[0, 0] }];
    for call in not_found.iter().chain(&[Call::Corrections { return_bits: 9, is_clearing: false }]) {
        assert_eq!(caller.call(6, call), (INVALID_DECODER, vec![]));
    }
    assert_eq!(
        (caller.get(4, 9, false).0, caller.get(4, 0, false).0, caller.get(4, 8, false).0),
        (NOT_READY, BAD_REQUEST, BAD_REQUEST)
    );
    assert_eq!((caller.enqueue(4, 9, &[0x55, 1]), caller.get(4, 9, false)), (OK, (OK, vec![0x55, 1])));
    // More than there is room for: acknowledged, and the decoder has failed until it is reset.
    assert_eq!(
        (caller.enqueue(4, 10, &[0, 0]), caller.get(4, 9, true).0, caller.get(4, 9, true).0),
        (OK, INTERNAL_ERROR, INTERNAL_ERROR)
    );
    assert_eq!((caller.enqueue(4, 9, &[1, 1]), caller.get(4, 9, false).0), (OK, INTERNAL_ERROR));
    // The other decoder works on.
    assert_eq!((caller.enqueue(5, 9, &[2, 0]), caller.get(5, 9, true)), (OK, (OK, vec![2, 0])));
    assert_eq!((caller.reset(4), caller.enqueue(4, 9, &[3, 0]), caller.get(4, 9, true)), (OK, OK, (OK, vec![3, 0])));
    let snapshot = until(&engine, "a ready decoder", |snapshot| decoder(snapshot, 1).gets == 1);
    let (first, second) = (decoder(&snapshot, 0), decoder(&snapshot, 1));
    assert_eq!((first.enqueues, first.gets, first.resets), (4, 8, 1));
    assert_eq!((first.ok, first.bad_request, first.internal_error, first.not_ready), (7, 2, 3, 1));
    assert_eq!(
        (first.state, second.state, second.caller),
        (DecoderState::Collecting, DecoderState::Collecting, Some(0))
    );
    assert_eq!(snapshot.sources[0].unknown_streams, 3);
    drained(engine);
}

fn decoder(snapshot: &Snapshot, stream: usize) -> pinwheel_engine::board::snapshot::SourceDecoder {
    snapshot.sources[0].streams[stream].decoder.unwrap()
}

/// A run of so many shots ends once its clients have asked for the last corrections, or are silent.
#[test]
fn the_last_corrections_of_a_run_of_so_many_shots_can_be_asked_for() {
    let _home = beside_another();
    for asks in [true, false] {
        let place = place("cudaq:127.0.0.1:0", &[]);
        let input = Input::Live { model: identity(3), place, measurements: None };
        let engine = Engine::start(config(&with_streams(1), input, Some(2))).unwrap();
        let shown = until(&engine, "an open decoder", |snapshot| snapshot.sources[0].state != SourceState::Waiting);
        let mut caller = Caller::new(shown.sources[0].streams[0].decoder.unwrap().port);
        assert_eq!((caller.enqueue(0, 3, &[1]), caller.get(0, 3, true)), (OK, (OK, vec![1])));
        assert_eq!(caller.enqueue(0, 3, &[6]), OK);
        if asks {
            let frames = |snapshot: &Snapshot| snapshot.threads.iter().map(|thread| thread.frames).min();
            let before = frames(&engine.snapshot());
            until(&engine, "frames after the last answer", |now| frames(now) > before.map(|before| before + 100));
            assert_eq!(caller.get(0, 3, false), (OK, vec![6]));
        }
        let outcome = end(engine);
        assert_nothing_lost(&outcome);
        assert_eq!(outcome.snapshot.sources[0].accepted, 2);
    }
}

/// What stops NVIDIA's server does not stop this one: it has no effect, and is counted.
#[test]
fn strays_and_another_client_on_the_port_have_no_effect() {
    let _home = beside_another();
    let (engine, ports) = start(&with_streams(1), &identity(3), place("cudaq:127.0.0.1:0", &[]));
    let (mut one, mut other) = (Caller::new(ports[0]), Caller::new(ports[0]));
    let mut strays = 0;
    for round in 0..50 {
        let found = round % 8;
        one.send(0, &Call::Enqueue { bits: 3, packed: &[found] });
        for stray in [
            &[0; SLOT_BYTES as usize][..],
            b"QRUC",
            &[],
            &[0x52, 0x51, 0x55, 0x43, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[9; 4000],
        ] {
            other.socket.send(stray).unwrap();
            strays += 1;
        }
        other.send(1, &Call::Reset);
        one.send(0, &Call::Corrections { return_bits: 3, is_clearing: true });
        assert_eq!(
            (other.take(), one.take(), one.take()),
            ((INVALID_DECODER, vec![]), (OK, vec![]), (OK, vec![found]))
        );
    }
    let outcome = drained(engine);
    let source = &outcome.snapshot.sources[0];
    assert_eq!((source.malformed, source.peers_count, source.answers_dropped), (strays, 2, 0));
}

/// `pinwheel send` begins each shot with an empty decoder: one that a client before it left in the middle of a volume,
/// or failed, or with corrections that nobody asked for.
#[test]
fn a_client_that_sends_shots_finds_its_decoders_as_they_were_left_and_resets_them() {
    let _home = beside_another();
    let (engine, ports) = start(&with_streams(3), &identity(9), one_port(&[0, 1, 2]));
    let mut earlier = Caller::new(ports[0]);
    assert_eq!((earlier.enqueue(0, 9, &[0xff, 1]), earlier.enqueue(1, 4, &[9])), (OK, OK));
    assert_eq!((earlier.enqueue(2, 10, &[0, 0]), earlier.get(2, 9, true).0), (OK, INTERNAL_ERROR));
    let decoders = CudaqDecoders { numbers: vec![0, 1, 2], bits: 9, observables: 9 };
    let at = ([127, 0, 0, 1], ports[0]).into();
    let mut client = CudaqClient::connect(at, decoders, SLOT_BYTES, 2).unwrap();
    while client.welcome().unwrap().is_none() {}
    let mut answers = Vec::new();
    for (stream, shot) in (0..3).map(|stream| (stream, [0x50 | stream as u8, 1])) {
        let mut is_sent = false;
        while answers.len() <= stream as usize {
            // Replies to the calls before it make room.
            is_sent = is_sent || client.send(stream, 7, &shot).unwrap();
            let mut take = |answer: &Received| answers.push((answer.stream, answer.status, answer.observables[0]));
            client.receive(&mut take).unwrap();
        }
    }
    assert_eq!(answers, [(0, 0, 0x150), (1, 0, 0x151), (2, 0, 0x152)]);
    drained(engine);
}

/// The socket has no other protection.
#[test]
fn a_caller_that_is_not_on_the_list_gets_no_reply() {
    let _home = beside_another();
    let mut place = place("cudaq:127.0.0.1:0", &[]);
    if let LivePlace::Cudaq { allow, .. } = &mut place {
        allow.push(Network::parse("127.0.0.2").unwrap());
    }
    let (engine, ports) = start(&with_streams(1), &identity(3), place);
    let stranger = Caller::new(ports[0]);
    stranger.socket.send(&[0; SLOT_BYTES as usize]).unwrap();
    until(&engine, "a foreign datagram", |snapshot| snapshot.sources[0].foreign == 1);
    let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
    socket.connect(("127.0.0.1", ports[0])).unwrap();
    let mut caller = Caller { socket, ..Caller::new(ports[0]) };
    assert_eq!(caller.reset(0), OK);
    assert_eq!(drained(engine).snapshot.sources[0].peers_count, 1);
}

/// A lost request is told by a fault with the client's address.
#[test]
fn missing_requests_leave_a_fault_with_the_clients_address() {
    let _home = beside_another();
    let (engine, ports) = start(&with_streams(1), &identity(3), place("cudaq:127.0.0.1:0", &[]));
    let mut caller = Caller::new(ports[0]);
    for _ in 0..3 {
        assert_eq!(caller.reset(0), OK);
    }
    caller.id += 1;
    assert_eq!(caller.reset(0), OK);
    let outcome = drained(engine);
    let fault = outcome.snapshot.faults.iter().find(|fault| fault.code == 44).expect("it is counted");
    let address = caller.socket.local_addr().unwrap().to_string();
    assert!(fault.count == 1 && fault.name.contains(&address), "{fault:?}");
}

/// A decode that fails fails its decoder only: here a syndrome that no errors of the model explain.
#[test]
fn a_failed_decode_fails_the_decoder_until_it_is_reset() {
    let _home = beside_another();
    // Two detectors that only fire together.
    let model = Arc::new(Model::parse(b"error(0.1) D0 D1 L0\n").unwrap());
    let (engine, ports) = start(&with_streams(1), &model, place("cudaq:127.0.0.1:0", &[]));
    let mut caller = Caller::new(ports[0]);
    caller.send(0, &Call::Enqueue { bits: 2, packed: &[1] });
    caller.send(0, &Call::Corrections { return_bits: 1, is_clearing: true });
    assert_eq!((caller.take().0, caller.take().0, caller.get(0, 1, false).0), (OK, INTERNAL_ERROR, INTERNAL_ERROR));
    assert_eq!((caller.reset(0), caller.enqueue(0, 2, &[3]), caller.get(0, 1, false)), (OK, OK, (OK, vec![1])));
    drained(engine);
}

/// Measurements of a volume are rounds: windows are decoded while they come, although a detector
/// combines two rounds of measurements. A volume that is reset in the middle is nobody's.
#[test]
fn windows_of_a_volume_are_decoded_before_its_last_measurements_come() {
    const BACK: usize = 24;
    let _home = beside_another();
    let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
    let count = model.detectors as usize;
    let parity = |detector: usize| match detector.checked_sub(BACK) {
        Some(earlier) => format!("D{detector} {earlier} {detector}\n"),
        None => format!("D{detector} {detector}\n"),
    };
    let lines: String = (0..count).map(parity).collect();
    let map = Measurements::parse(&format!("measurements {count}\n{lines}"), model.detectors, 1).unwrap();
    let size = WindowRounds { commit_rounds: 5, buffer_rounds: 5 };
    let mut matcher =
        MatcherModel::windowed(&model, size, Predecoder::None).unwrap().matcher_by_rounds().expect("it has windows");
    let mut profile = with_streams(1);
    profile.window = Window::Some(size);
    let (engine, ports) = start_with(&profile, &model, place("cudaq:127.0.0.1:0", &[]), Some(map));
    let mut caller = Caller::new(ports[0]);
    let mut sampler = Sampler::new(&model, 3);
    let (mut shot, mut truth, mut expected) = (vec![0; model.detector_words()], [0], [0]);
    for volume in 0..20 {
        sampler.draw(&mut shot, &mut truth);
        let mut measured: Vec<bool> = (0..count).map(|bit| shot[bit / 64] >> (bit % 64) & 1 == 1).collect();
        (BACK..count).for_each(|bit| measured[bit] ^= measured[bit - BACK]);
        let chunks: Vec<&[bool]> = measured.chunks(BACK).collect();
        let (last, others) = chunks.split_last().unwrap();
        let mut enqueue = |bits: &[bool]| {
            let mut packed = vec![0_u8; bits.len().div_ceil(8)];
            bits.iter().enumerate().for_each(|(at, one)| packed[at / 8] |= u8::from(*one) << (at % 8));
            assert_eq!(caller.enqueue(0, bits.len() as u32, &packed), OK);
        };
        let before = windows_of(&engine.snapshot());
        others.iter().for_each(|bits| enqueue(bits));
        until(&engine, "windows before the last part", |snapshot| windows_of(snapshot) >= before + 3);
        if volume % 4 == 3 {
            assert_eq!(caller.reset(0), OK);
            continue;
        }
        enqueue(last);
        matcher.decode(&shot, &mut expected).unwrap();
        assert_eq!(caller.get(0, 1, true), (OK, vec![expected[0] as u8]), "volume {volume}");
    }
    let outcome = drained(engine);
    assert_eq!(outcome.snapshot.sources[0].streams[0].incomplete, 5);
}

/// The protocol's rules once more, for decoders whose corrections are their measurements.
#[derive(Default)]
struct Expected {
    measured: Vec<bool>,
    corrections: u64,
    is_ready: bool,
    has_failed: bool,
}

const BITS: usize = 21;

impl Expected {
    fn enqueue(&mut self, bits: &[bool]) -> Said {
        if !self.has_failed && self.measured.len() + bits.len() > BITS {
            self.fail();
        } else if !self.has_failed {
            self.measured.extend(bits);
            self.is_ready = self.measured.len() == BITS;
            if self.is_ready {
                self.measured.drain(..).enumerate().for_each(|(at, one)| self.corrections ^= u64::from(one) << at);
            }
        }
        (OK, vec![])
    }

    fn fail(&mut self) {
        *self = Expected { has_failed: true, ..Expected::default() };
    }

    fn get(&mut self, return_bits: i64, is_clearing: bool) -> Said {
        let status = match return_bits {
            ..=0 => BAD_REQUEST,
            _ if self.has_failed => INTERNAL_ERROR,
            _ if return_bits != BITS as i64 => BAD_REQUEST,
            _ if !self.is_ready => NOT_READY,
            _ => OK,
        };
        if status != OK {
            return (status, vec![]);
        }
        let found = self.corrections.to_le_bytes()[..BITS.div_ceil(8)].to_vec();
        if is_clearing {
            (self.is_ready, self.corrections) = (false, 0);
        }
        (OK, found)
    }
}

/// One client of many: its next datagram, and the reply that it expects, if any.
struct MixedClient {
    random: Xoshiro256PlusPlus,
    caller: Caller,
    /// Decoders of this client alone.
    decoders: Vec<(i64, Expected)>,
    awaited: VecDeque<Said>,
    taken: u64,
}

impl MixedClient {
    fn draw(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    fn step(&mut self) {
        let which = self.draw(self.decoders.len() as u64) as usize;
        match self.draw(100) {
            // A stray: no reply.
            0 => {
                let stray = [0x52, 0x51, 0x55, 0x43, self.draw(256) as u8, 0, 0, 0, 8];
                self.caller.socket.send(&stray).unwrap();
            }
            1 => {
                self.caller.send(1 << 40, &Call::Reset);
                self.awaited.push_back((INVALID_DECODER, vec![]));
            }
            // Malformed: no measurements.
            2 => {
                let mut bytes = Vec::new();
                self.caller.id += 1;
                let call = Call::Enqueue { bits: 0, packed: &[] };
                frame::write_request(self.caller.id, self.decoders[which].0, &call, &mut bytes);
                self.caller.send_raw(&bytes);
                self.decoders[which].1.fail();
                self.awaited.push_back((BAD_REQUEST, vec![]));
            }
            // Two calls in the order in which a network swapped them.
            3 => {
                let first = self.caller.id;
                for id in [first + 1, first] {
                    self.caller.id = id;
                    let call = Call::Corrections { return_bits: BITS as i64, is_clearing: true };
                    self.caller.send(self.decoders[which].0, &call);
                    let said = self.decoders[which].1.get(BITS as i64, true);
                    self.awaited.push_back(said);
                }
                self.caller.id = first + 2;
            }
            4..8 => {
                self.caller.send(self.decoders[which].0, &Call::Reset);
                self.decoders[which].1 = Expected::default();
                self.awaited.push_back((OK, vec![]));
            }
            8..40 => {
                let return_bits = if self.draw(20) == 0 { self.draw(40) as i64 - 3 } else { BITS as i64 };
                let is_clearing = self.draw(2) == 0;
                self.caller.send(self.decoders[which].0, &Call::Corrections { return_bits, is_clearing });
                let said = self.decoders[which].1.get(return_bits, is_clearing);
                self.awaited.push_back(said);
                if self.draw(20) == 0 {
                    self.caller.send_again(self.decoders[which].0, &Call::Corrections { return_bits, is_clearing });
                    let said = self.decoders[which].1.get(return_bits, is_clearing);
                    self.awaited.push_back(said);
                }
            }
            _ => {
                let left = BITS - self.decoders[which].1.measured.len();
                let bits = if self.draw(30) == 0 { left + 1 } else { 1 + self.draw(left as u64) as usize };
                let drawn = self.random.next_u64();
                let measured: Vec<bool> = (0..bits).map(|at| drawn >> at & 1 == 1).collect();
                let packed = &drawn.to_le_bytes()[..bits.div_ceil(8)];
                let call = Call::Enqueue { bits: bits as u32, packed };
                self.caller.send(self.decoders[which].0, &call);
                let said = self.decoders[which].1.enqueue(&measured);
                self.awaited.push_back(said);
                // Doubled: new measurements, and a reply of its own.
                if self.draw(20) == 0 {
                    self.caller.send_again(self.decoders[which].0, &call);
                    let said = self.decoders[which].1.enqueue(&measured);
                    self.awaited.push_back(said);
                }
            }
        }
    }

    fn take(&mut self) {
        let expected = self.awaited.pop_front().unwrap();
        assert_eq!(self.caller.take(), expected, "reply {} of seed", self.taken);
        self.taken += 1;
    }
}

/// 32 decoders, four clients, `calls` replies: each datagram is replied to once, in order, with the
/// status of the protocol.
fn run_clients(calls: u64) -> Outcome {
    let decoders: Vec<i64> = (0..32).map(|number| number * 3 - 5).collect();
    let (engine, ports) = start(&with_streams(32), &identity(BITS as u32), one_port(&decoders));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let mine = decoders.iter().filter(|number| number.rem_euclid(4) == client);
            let decoders = mine.map(|number| (*number, Expected::default())).collect();
            let (random, caller) = (Xoshiro256PlusPlus::seed_from_u64(client as u64), Caller::new(ports[0]));
            let mut client = MixedClient { random, caller, decoders, awaited: VecDeque::new(), taken: 0 };
            std::thread::spawn(move || {
                while client.taken < calls / 4 {
                    let burst = 1 + client.draw(16);
                    (0..burst).for_each(|_| client.step());
                    while !client.awaited.is_empty() {
                        client.take();
                    }
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    drained(engine)
}

#[test]
fn calls_of_all_kinds_get_the_protocols_statuses_and_one_reply_each() {
    let _home = beside_another();
    let outcome = run_clients(20_000);
    let source = &outcome.snapshot.sources[0];
    assert!(source.malformed > 50 && source.unknown_streams > 50 && source.kernel_drops == 0, "{source:?}");
    assert!(source.decoding_max > 0 && source.answers_dropped == 0, "{source:?}");
}

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Minutes: the same with 10⁶ calls, in memory that does not grow.
#[test]
#[ignore = "a million calls"]
fn a_million_calls_are_replied_to_in_memory_that_does_not_grow() {
    let _home = beside_another();
    run_clients(20_000);
    let before = resident_kib();
    run_clients(1_000_000);
    let after = resident_kib();
    assert!(after < before + 8_192, "{before} KiB, then {after} KiB");
}

/// A datagram with a reply that is shorter than its request is padded; a result is never cut.
#[test]
fn replies_are_as_long_as_their_requests_and_hold_the_result() {
    let _home = beside_another();
    let (engine, ports) = start(&with_streams(1), &identity(100), place("cudaq:127.0.0.1:0", &[]));
    let caller = Caller::new(ports[0]);
    let mut bytes = Vec::new();
    let mut lengths = Vec::new();
    for call in
        [Call::Enqueue { bits: 100, packed: &[0xff; 13] }, Call::Corrections { return_bits: 100, is_clearing: false }]
    {
        for padded in [0, 100, 256] {
            frame::write_request(1, 0, &call, &mut bytes);
            bytes.resize(bytes.len().max(padded), 0);
            caller.socket.send(&bytes).unwrap();
            let mut reply = [0xff; 512];
            let length = caller.socket.recv(&mut reply).unwrap();
            lengths.push((bytes.len(), length));
            assert!(frame::reply(&reply[..length]).is_some());
        }
    }
    let enqueue = HEADER_BYTES + 32 + 13;
    let get = HEADER_BYTES + 17;
    assert_eq!(lengths, [(enqueue, enqueue), (100, 100), (256, 256), (get, get), (100, 100), (256, 256)]);
    drained(engine);
}

/// They would spoil every later call.
#[test]
fn the_wire_in_c_passes_over_replies_to_calls_that_have_ended_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("calls.c"), folder.path().join("calls"));
    let calls = r#"
#include <stdio.h>
int main(void) {
    for (int call = 0; call < 2; call++) {
        void *frame = NULL, *request, *result;
        uint64_t bytes;
        int32_t error = __cudaq_device_call_acquire_realtime_frame(0, 1, 8, 0, &frame, &request, &result);
        if (error == 0) error = __cudaq_device_call_dispatch_realtime_frame(frame, &bytes);
        printf("%d\n", error);
        __cudaq_device_call_safely_release_realtime_frame(frame);
    }
    return 0;
}
"#;
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("cudaq/wire.c");
    std::fs::write(&source, format!("#include \"{}\"{calls}", wire.display())).unwrap();
    compile(&source, &program);
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let caller = Command::new(program).env("PINWHEEL_CUDAQ_PORT", port).stdout(Stdio::piped()).spawn().unwrap();
    let mut bytes = [0; SLOT_BYTES as usize];
    for call in 1..=2 {
        let (_, from) = server.recv_from(&mut bytes).unwrap();
        for id in [call - 1, call] {
            let length = frame::write_reply(&mut bytes, (id, 0, frame::Status::Ok), &[], 0, 0);
            server.send_to(&bytes[..length], from).unwrap();
        }
    }
    assert_eq!(caller.wait_with_output().unwrap().stdout, b"0\n0\n");
}
