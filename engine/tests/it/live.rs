//! Live sources: shots of other threads, through sockets and shared memory.
//!
//! Longer than 500 lines, because clients, nonsense and golden sets go through the same few helpers
//! for each kind of source.

use crate::rig::{
    Home, assert_nothing_lost, beside_another, boards, config, end, execute, profile, shots, sink, total, until,
};
use pinwheel_edge::slot::outside::ClientEnd;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::snapshot::{SourceState, SourceView};
use pinwheel_engine::code::{Measurements, Model};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Command, Engine, Input, LivePlace, Network, Outcome};
use pinwheel_engine::feed::client::{Client, Received, RegionClient, SocketClient, connect};
use pinwheel_engine::feed::packet::{Encoding, Part, Position, Reply, Status, encode_hello, reply};
use pinwheel_engine::feed::shm::layout;
use pinwheel_engine::profile::{Device, Latency, Overflow, OverflowStrategy, Profile, Silos};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest wait for an answer that is not coming: then the test has failed.
const LIMIT: Duration = Duration::from_secs(120);

/// Shots that a client has on their way at most. Linux keeps ten datagrams for a unix socket that
/// nobody reads, and the engine drops what finds no room: a client that has no turn for a while
/// must not lose an answer.
const IN_FLIGHT: usize = 8;

pub(crate) fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("code/src/code/data").join(name)).unwrap()
}

pub(crate) fn model(name: &str) -> Arc<Model> {
    Arc::new(Model::parse(&data(&format!("{name}.dem"))).unwrap())
}

pub(crate) fn start(
    profile: &Profile,
    model: &Arc<Model>,
    place: LivePlace,
    map: Option<Measurements>,
) -> (Engine, LivePlace) {
    let input = Input::Live { model: Arc::clone(model), place, measurements: map.map(Arc::new) };
    let engine = Engine::start(config(profile, input, None)).unwrap();
    let shown = until(&engine, "an open source", |snapshot| snapshot.sources[0].state != SourceState::Waiting);
    // A port of 0 has become one.
    let place = LivePlace::parse(&shown.sources[0].name).unwrap();
    (engine, place)
}

fn udp() -> LivePlace {
    LivePlace::parse("udp:127.0.0.1:0").unwrap()
}

pub(crate) fn unix(home: &Home) -> LivePlace {
    LivePlace::Unix(home.file("shots"))
}

fn shm() -> LivePlace {
    LivePlace::parse("shm:test").unwrap()
}

pub(crate) fn client(place: &LivePlace, session: u64, parts: u32) -> Box<dyn Client> {
    let mut client = connect(place, &boards(), session, parts).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    client
}

pub(crate) fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let from = Instant::now();
    while !done() {
        assert!(from.elapsed() < LIMIT, "{what} never came");
        std::thread::park_timeout(Duration::from_micros(50));
    }
}

pub(crate) fn drained(engine: Engine) -> (Outcome, SourceView) {
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let source = outcome.snapshot.sources[0].clone();
    assert_eq!(source.accepted, source.answered + source.answers_dropped, "{source:?}");
    assert!(source.streams.iter().all(|stream| stream.lag == 0), "{source:?}");
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
    (outcome, source)
}

/// Sends records with at most `window` of them on their way; the answers by index.
fn through(client: &mut dyn Client, records: &[&[u8]], streams: u64, window: usize) -> BTreeMap<u64, Received> {
    let mut answers = BTreeMap::new();
    let mut sent = 0;
    wait("the last answer", || {
        // Whatever the socket or the window allows in one go.
        while sent < records.len() && sent < answers.len() + window {
            let index = sent as u64;
            if !client.send((index % streams) as u32, index / streams, records[sent]).unwrap() {
                break;
            }
            sent += 1;
        }
        let mut take = |received: &Received| {
            let index = received.sequence * streams + u64::from(received.stream);
            assert!(answers.insert(index, *received).is_none(), "{received:?} came twice");
        };
        while client.receive(&mut take).unwrap() > 0 {}
        answers.len() == records.len()
    });
    answers
}

/// The golden set through a source: what the matcher alone says, shot for shot.
fn golden(name: &str, place: impl Fn(&Home) -> LivePlace, parts: u32, silos: u32) {
    let home = beside_another();
    let model = model(name);
    let bytes = data(&format!("{name}.dets.b8"));
    let set = shots(&bytes, model.detectors);
    let mut matcher = MatcherModel::new(&model).unwrap().matcher();
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(silos), 3);
    let (engine, place) = start(&profile, &model, place(&home), None);
    let mut client = client(&place, 1, parts);
    let records: Vec<&[u8]> = bytes.chunks_exact(model.detectors.div_ceil(8) as usize).collect();
    let answers = through(client.as_mut(), &records, 3, IN_FLIGHT);
    let mut bare = vec![0; model.observable_words()];
    for (index, received) in answers {
        matcher.decode(set.shot(index as usize), &mut bare).unwrap();
        assert_eq!((received.status, &received.observables[..bare.len()]), (0, &bare[..]), "shot {index}");
    }
    let (_, source) = drained(engine);
    assert_eq!(source.accepted, records.len() as u64);
    for stream in &source.streams {
        assert_eq!((stream.gaps, stream.duplicates, stream.malformed, stream.incomplete), (0, 0, 0, 0), "{stream:?}");
        assert_eq!(stream.accepted_last, (records.len() as u64 - 1 - u64::from(stream.id)) / 3);
    }
}

/// Answers below the bound have a status of their own, and their observables, at both kinds of source.
#[test]
fn an_answer_that_is_not_to_be_trusted_has_a_status_and_its_observables() {
    let _home = beside_another();
    let (name, streams) = ("surf_z_d3_r3_p0.005", 4);
    let model = model(name);
    let bytes = data(&format!("{name}.dets.b8"));
    let records: Vec<&[u8]> = bytes.chunks_exact(3).collect();
    let shots = shots(&bytes, model.detectors);
    let mut matcher = MatcherModel::new(&model).unwrap().with_confidence(&model).unwrap().matcher();
    for place in [udp(), shm()] {
        let mut profile = profile();
        (profile.input.streams, profile.confidence, profile.abstain_below) = (streams as u32, true, Some(20));
        let (engine, place) = start(&profile, &model, place, None);
        let answers = through(client(&place, 1, 1).as_mut(), &records, streams, IN_FLIGHT);
        let mut abstained = 0;
        for (index, received) in &answers {
            let mut found = [0];
            let gap = matcher.decode(shots.shot(*index as usize), &mut found).unwrap().gap.unwrap();
            let is_trusted = gap * 10.0 / std::f64::consts::LN_10 >= 20.0;
            assert_eq!(received.status, if is_trusted { 0 } else { 260 }, "shot {index}: {gap}");
            assert_eq!(received.observables[0], found[0], "shot {index}");
            abstained += u64::from(!is_trusted);
        }
        assert_eq!(answers.len(), records.len());
        let (outcome, _) = drained(engine);
        assert!(abstained > 10 && total(&outcome.snapshot, |c| c.abstained) == abstained, "{abstained}");
        assert_eq!(total(&outcome.snapshot, |c| c.errored), 0);
    }
}

#[test]
fn a_golden_set_over_udp_is_decoded_as_from_a_file() {
    golden("surf_z_d3_r3_p0.005", |_| udp(), 1, 1);
}

#[test]
fn a_golden_set_in_rounds_over_a_unix_socket_and_two_silos_is_decoded_as_from_a_file() {
    golden("surf_z_d5_r5_p0.005", unix, 6, 2);
}

#[test]
fn a_golden_set_through_shared_memory_and_two_silos_is_decoded_as_from_a_file() {
    golden("surf_z_d5_r5_p0.005", |_| shm(), 1, 2);
}

/// Clients that come, send, and vanish with answers on their way; each with a newer session.
fn restarted(place: impl Fn(&Home) -> LivePlace, shots: u64) {
    let home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let bytes = data("surf_z_d3_r3_p0.005.dets.b8");
    let records: Vec<&[u8]> = bytes.chunks_exact(3).collect();
    let (engine, place) = start(&profile(), &model, place(&home), None);
    let mut sent = 0;
    for session in 1.. {
        let mut client = client(&place, session, 1);
        let mut seen = BTreeMap::new();
        // Killed in the middle: a prime number of shots, and no wait for the last answers.
        for index in 0..4_999u64 {
            wait("room to send", || {
                client
                    .receive(&mut |got| assert!(seen.insert((got.stream, got.sequence), got.status).is_none()))
                    .unwrap();
                index < seen.len() as u64 + IN_FLIGHT as u64
                    && client.send((index % 4) as u32, index / 4, records[index as usize % records.len()]).unwrap()
            });
            sent += 1;
        }
        assert!(seen.values().all(|status| *status == 0));
        if sent >= shots {
            break;
        }
    }
    // A socket keeps what a killed client sent; a ring that goes to the next client is emptied.
    let sessions = sent / 4_999;
    let least = if matches!(place, LivePlace::Shm { .. }) { sent - 64 * sessions } else { sent };
    until(&engine, "every shot", |snapshot| snapshot.sources[0].accepted >= least);
    let (outcome, source) = drained(engine);
    assert!((least..=sent).contains(&source.accepted) && source.kernel_drops == 0, "{sent} sent: {source:?}");
    assert!(outcome.snapshot.streams.iter().all(|stream| stream.errors == 0));
    if let Some(client) = source.client {
        assert_eq!((client.attached, client.pid), (sessions, u64::from(std::process::id())));
    }
    let restarts: u64 = source.streams.iter().map(|stream| stream.restarts).sum();
    assert_eq!(restarts, 4 * (sessions - 1), "each stream sees each new session");
    assert!(source.answers_dropped <= 64 * sessions, "{source:?}");
}

#[test]
fn shots_of_clients_that_are_killed_and_started_again_are_answered_once_each_over_udp() {
    restarted(|_| udp(), 14_000);
}

#[test]
fn shots_of_clients_that_are_killed_and_started_again_are_answered_once_each_over_a_unix_socket() {
    restarted(unix, 14_000);
}

#[test]
fn shots_of_clients_that_are_killed_and_started_again_are_answered_once_each_through_shared_memory() {
    restarted(|_| shm(), 14_000);
}

#[test]
#[ignore = "a million shots over each source"]
fn a_million_shots_of_clients_that_are_killed_are_answered_once_each() {
    restarted(|_| udp(), 1_000_000);
    restarted(|_| shm(), 1_000_000);
    restarted(unix, 1_000_000);
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Datagrams that nearly are shots, and some that are, for `seconds` at least: the engine takes
/// what is sound, and goes on.
fn nonsense(place: LivePlace, seconds: u64) {
    let model = model("surf_z_d3_r3_p0.005");
    let (engine, place) = start(&profile(), &model, place, None);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut client = SocketClient::connect(&place, 1, 1).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    let (from, mut before, mut sent) = (Instant::now(), 0, 0u64);
    let mut bytes = Vec::new();
    // Until the engine has met enough of it too, however late it looks.
    let is_enough =
        |sent: u64| sent > 25_000 && sent.is_multiple_of(100) && engine.snapshot().sources[0].malformed > 1_000;
    while from.elapsed() < Duration::from_secs(seconds) || !is_enough(sent) {
        assert!(from.elapsed() < Duration::from_secs(seconds) + LIMIT, "{:?}", engine.snapshot().sources[0]);
        nonsensical(&mut random, &mut bytes);
        sent += u64::from(client.send_raw(&bytes).unwrap());
        client.receive(&mut |_| ()).unwrap();
        if sent == 20_000 {
            before = resident_kb();
        }
    }
    // Whoever comes after is served.
    let mut sound = self::client(&place, u64::MAX - 1, 1);
    let answers = through(sound.as_mut(), &[&[0u8, 0, 0][..]; 40], 4, IN_FLIGHT);
    assert!(answers.values().all(|received| received.status == 0));
    let (_, source) = drained(engine);
    assert!(source.malformed > 1_000 && source.accepted >= 40 && source.errors == 0, "{source:?}");
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < 16_384, "{grown} KiB more after {sent} datagrams");
}

fn nonsensical(random: &mut Xoshiro256PlusPlus, bytes: &mut Vec<u8>) {
    let payload = [random.next_u64().to_le_bytes(), random.next_u64().to_le_bytes()].concat();
    let small = |random: &mut Xoshiro256PlusPlus, below: u64| random.next_u64() % below;
    let part = Part {
        epoch: 0,
        session: small(random, 4),
        sequence: if small(random, 50) == 0 { random.next_u64() } else { small(random, 2_000) },
        stream: small(random, 6) as u32,
        round: small(random, 4) as u32,
        position: if small(random, 2) == 0 { Position::Last } else { Position::Inner },
        first_bit: small(random, 30) as u32,
        bits: small(random, 40) as u32,
        encoding: Encoding::Bits,
        payload: &payload[..small(random, 17) as usize],
        soft: &payload[..small(random, 3) as usize],
    };
    part.encode(bytes);
    match small(random, 8) {
        0 => bytes.truncate(small(random, 64) as usize),
        1 | 2 => {
            let place = small(random, bytes.len() as u64) as usize;
            bytes[place] = random.next_u64() as u8;
        }
        3 => *bytes = (0..small(random, 300)).map(|_| random.next_u64() as u8).collect(),
        4 => bytes.resize(9_000, 7),
        _ => {}
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}

#[test]
fn invalid_datagrams_over_udp_are_counted_and_affect_no_other_client() {
    let _home = beside_another();
    nonsense(udp(), 0);
}

#[test]
fn invalid_datagrams_over_a_unix_socket_are_counted_and_affect_no_other_client() {
    let home = beside_another();
    nonsense(unix(&home), 0);
}

/// Every word that a client may write, at random, while it also sends: heads, records, heartbeat,
/// session.
fn scribbled(seconds: u64) {
    let model = model("surf_z_d3_r3_p0.005");
    let (engine, place) = start(&profile(), &model, shm(), None);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let (from, mut writes) = (Instant::now(), 0u64);
    let (mut before, directory) = (0, boards());
    let mut scribbler = RegionClient::new(&directory, "test", 77);
    wait("a grant", || scribbler.welcome().unwrap().is_some());
    let is_enough =
        |writes: u64| writes > 150_000 && writes.is_multiple_of(1_000) && engine.snapshot().sources[0].malformed > 0;
    while from.elapsed() < Duration::from_secs(seconds) || !is_enough(writes) {
        assert!(from.elapsed() < Duration::from_secs(seconds) + LIMIT, "{:?}", engine.snapshot().sources[0]);
        let (region, shape) = scribbler.region().unwrap();
        let any_word = (random.next_u64() % (shape.bytes() as u64 / 8)) as usize * 8;
        // One slot after the other, so that the engine finds shots where it looks for them.
        let slot = writes as u32 % shape.slots;
        let value = match random.next_u64() % 8 {
            0 => random.next_u64(),
            1 => 0,
            // The turn of the first lap or the second, and a stream that is there or nearly.
            2..=6 => (random.next_u64() % 5) << 32 | (u64::from(slot + 1) + random.next_u64() % 2 * 1024),
            _ => random.next_u64() % 130,
        };
        // The header's own words stay: a client that comes later has to find the region.
        let at = match random.next_u64() % 8 {
            0 => layout::client::HEARTBEAT,
            1 if writes % 5_000 == 0 => layout::client::SESSION,
            2 | 3 if any_word >= layout::HEADER_BYTES => any_word,
            _ => shape.shot_at(slot),
        };
        region.word(at).store(value, Ordering::Relaxed);
        writes += 1;
        if writes == 100_000 {
            before = resident_kb();
        }
    }
    drop(scribbler);
    let mut sound = client(&place, 1 << 60, 1);
    let answers = through(sound.as_mut(), &[&[0u8, 0, 0][..]; 40], 4, IN_FLIGHT);
    assert!(answers.values().all(|received| received.status == 0));
    let (_, source) = drained(engine);
    assert!(source.malformed > 0 && source.accepted >= 40, "{source:?}");
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < 16_384, "{grown} KiB more after {writes} words");
}

#[test]
fn a_client_that_overwrites_the_region_affects_no_other_client() {
    let _home = beside_another();
    scribbled(0);
}

#[test]
fn an_invalid_shot_in_the_region_is_answered_with_its_error_and_counted() {
    let _home = beside_another();
    let (engine, _) = start(&profile(), &model("surf_z_d3_r3_p0.005"), shm(), None);
    let mut client = RegionClient::new(&boards(), "test", 5);
    wait("a grant", || client.welcome().unwrap().is_some());
    let (region, shape) = client.region().unwrap();
    let (outside, mut end) = (region.outside(shape), ClientEnd::new(shape.slots as usize));
    // Stream, sequence and bits; the status that comes back.
    let cases = [
        (0, [0, 0], 0),
        (4, [1, 0], 4),
        (u32::MAX, [2, 0], 4),
        (0, [3, 1 << 24], 256),
        (0, [0, 0], 257),
        (0, [4, 0], 0),
    ];
    for (position, (stream, shot, status)) in (0..).zip(cases) {
        assert!(end.publish(&outside, stream, &shot));
        let (mut answer, mut found) = ([0; 4], None);
        wait("an answer", || {
            found = end.collect(&outside, position, &mut answer);
            found.is_some()
        });
        assert_eq!((found, answer[0], answer[1]), (Some(status), shot[0], u64::from(stream)), "{shot:?}");
    }
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.malformed, source.unknown_streams), (2, 1, 2));
    assert_eq!((source.streams[0].duplicates, source.streams[0].gaps), (1, 3));
}

#[test]
#[ignore = "ten minutes of nonsense at each source"]
fn ten_minutes_of_invalid_input_affect_no_other_client() {
    let home = beside_another();
    // Another time, in seconds at each source, by PINWHEEL_NONSENSE_S.
    let seconds = std::env::var("PINWHEEL_NONSENSE_S").map_or(600, |seconds| seconds.parse().unwrap());
    nonsense(udp(), seconds);
    scribbled(seconds);
    nonsense(unix(&home), seconds);
}

#[test]
fn measurements_become_detection_events_on_their_way_in() {
    let _home = beside_another();
    let model = Arc::new(Model::parse(b"error(0.1) D0 D2\nerror(0.1) D1 D3 L0\nerror(0.1) D2 D3\n").unwrap());
    let text = "measurements 5 int32\nD0 0\nD1 1\nD2 0 2\nD3 1 3 !\nL0 4";
    let map = Measurements::parse(text, 4, 1).unwrap();
    let (engine, place) = start(&profile(), &model, udp(), Some(map));
    let mut client = client(&place, 1, 2);
    let welcome = client.welcome().unwrap().unwrap();
    assert_eq!((welcome.bits, welcome.encoding), (5, Encoding::Int32));
    // Noiseless; D1 and D3, which flip the observable, but not as it was measured; the same, as it was measured.
    let answers = through(client.as_mut(), &[&[0b0_1000][..], &[0b0_1010], &[0b1_1010]], 4, 3);
    let flips: Vec<u64> = answers.values().map(|received| received.observables[0]).collect();
    assert_eq!((answers[&0].status, flips), (0, vec![0, 1, 1]));
    let (outcome, _) = drained(engine);
    let judged: u64 = outcome.snapshot.streams.iter().map(|stream| stream.shots_with_observables).sum();
    let wrong: u64 = outcome.snapshot.streams.iter().map(|stream| stream.logical_errors).sum();
    assert_eq!((judged, wrong), (3, 1));
}

#[test]
fn an_invalid_shot_is_reported_to_its_sender_and_counted() {
    let _home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let (engine, place) = start(&profile(), &model, udp(), None);
    let mut client = SocketClient::connect(&place, 7, 1).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    let epoch = client.welcome().unwrap().unwrap().epoch;
    let shot = Part {
        epoch: 0,
        session: 7,
        sequence: 0,
        stream: 0,
        round: 0,
        position: Position::Last,
        first_bit: 0,
        bits: 24,
        encoding: Encoding::Bits,
        payload: &[0, 0, 0],
        soft: &[],
    };
    let parts = [
        (Part { epoch: epoch ^ 1, ..shot }, 259),
        (Part { stream: 4, ..shot }, 4),
        (Part { bits: 16, payload: &[0, 0], ..shot }, 256),
        // More bytes than bits, and a word of 32 bits that is none.
        (Part { payload: &[0; 4], ..shot }, 256),
        (Part { bits: 1, encoding: Encoding::Int32, payload: &[2, 0, 0, 0], ..shot }, 256),
        (Part { sequence: 5, ..shot }, 0),
    ];
    let mut bytes = Vec::new();
    for (part, status) in parts {
        part.encode(&mut bytes);
        assert!(client.send_raw(&bytes).unwrap());
        let mut told = None;
        wait("an answer", || client.receive(&mut |received| told = Some(received.status)).unwrap() > 0);
        assert_eq!(told, Some(status), "{part:?}");
    }
    let (_, source) = drained(engine);
    assert_eq!((source.other_epoch, source.unknown_streams, source.malformed, source.accepted), (1, 1, 3, 1));
    assert_eq!((source.peers.len(), source.peers[0].shots, source.peers[0].answers), (1, 1, 1));
    assert!(source.peers[0].address.starts_with("127.0.0.1:"), "{source:?}");
}

/// Each of its parts would be refused.
#[test]
fn a_shot_in_parts_of_an_unknown_stream_or_an_earlier_engine_has_one_answer() {
    let _home = beside_another();
    let (engine, place) = start(&profile(), &model("surf_z_d3_r3_p0.005"), udp(), None);
    let mut client = SocketClient::connect(&place, 7, 1).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    let epoch = client.welcome().unwrap().unwrap().epoch;
    let mut bytes = Vec::new();
    for (epoch, stream) in [(epoch, 4), (epoch ^ 1, 0), (epoch, 0)] {
        for round in 0..3 {
            let part = Part {
                epoch,
                session: 7,
                sequence: 0,
                stream,
                round,
                position: if round == 2 { Position::Last } else { Position::Inner },
                first_bit: 8 * round,
                bits: 8,
                encoding: Encoding::Bits,
                payload: &[0],
                soft: &[],
            };
            part.encode(&mut bytes);
            assert!(client.send_raw(&bytes).unwrap());
        }
    }
    let mut told = Vec::new();
    wait("the last answer", || {
        client.receive(&mut |received| told.push(received.status)).unwrap();
        told.last() == Some(&0)
    });
    assert_eq!(told, [ErrorCode::UnknownStream as u16, Status::OtherEpoch as u16, 0]);
    let (_, source) = drained(engine);
    assert_eq!((source.unknown_streams, source.other_epoch, source.accepted), (3, 3, 1));
}

#[test]
fn a_shot_of_which_a_part_was_lost_is_answered_when_it_is_sent_again() {
    let _home = beside_another();
    let (engine, place) = start(&profile(), &model("surf_z_d3_r3_p0.005"), udp(), None);
    let mut client = SocketClient::connect(&place, 1, 3).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    let mut answered = Vec::new();
    // The middle part of the first is missing.
    for (sequence, rounds) in [(0, &[0, 2][..]), (1, &[0, 1, 2]), (0, &[0, 1, 2]), (2, &[0, 1, 2])] {
        for round in rounds {
            wait("room", || client.send_part(0, sequence, &[1, 0, 0], *round).unwrap());
        }
    }
    wait("the last answer", || {
        client.receive(&mut |received| answered.push((received.sequence, received.status))).unwrap();
        answered.iter().any(|(sequence, _)| *sequence == 2)
    });
    assert_eq!(answered, [(1, 0), (0, 0), (2, 0)]);
    let (_, source) = drained(engine);
    let stream = &source.streams[0];
    assert_eq!((stream.incomplete, stream.reordered, stream.duplicates, source.accepted), (1, 1, 0, 3));
}

#[test]
fn a_stop_answers_the_shots_that_wait_for_a_slot() {
    let _home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let (engine, place) = start(&profile(), &model, udp(), None);
    let mut client = client(&place, 1, 1);
    execute(&engine, Command::Pause).unwrap();
    let shots = 300;
    for sequence in 0..shots {
        wait("room", || client.send(0, sequence, &[1, 0, 0]).unwrap());
        // The socket's buffer holds few.
        if sequence % 8 == 7 {
            until(&engine, "the shots", |snapshot| snapshot.sources[0].accepted == sequence + 1);
        }
    }
    until(&engine, "the shots", |snapshot| snapshot.sources[0].accepted == shots);
    execute(&engine, Command::Stop).unwrap();
    let mut answers = BTreeMap::new();
    wait("the answers", || {
        client.receive(&mut |received| assert!(answers.insert(received.sequence, received.status).is_none())).unwrap();
        answers.len() as u64 == shots
    });
    let drained = ErrorCode::Drained as u16;
    assert!(answers.values().all(|status| [0, drained].contains(status)), "{answers:?}");
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let source = &outcome.snapshot.sources[0];
    assert_eq!((source.accepted, source.answered, source.answers_dropped), (shots, shots, 0));
}

/// Two workers that take 5 ms each have all of them after half a second. The pause is longer than
/// the deadline.
#[test]
fn shots_that_find_no_slot_before_a_pause_are_decoded_after_it() {
    let _home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let mut profile = profile();
    profile.device = Device::Sim { latency: Latency::Fixed { us: 5_000.0 } };
    profile.workers = 2;
    profile.placement.overflow = Overflow { strategy: OverflowStrategy::Block, deadline_ms: 2_000, keep_shots: 16 };
    let (engine, place) = start(&profile, &model, udp(), None);
    let mut client = client(&place, 1, 1);
    let shots = 200;
    for sequence in 0..shots {
        wait("room", || client.send(0, sequence, &[1, 0, 0]).unwrap());
        if sequence % 8 == 7 {
            until(&engine, "the shots", |snapshot| snapshot.sources[0].accepted == sequence + 1);
        }
    }
    until(&engine, "a full ring", |snapshot| snapshot.silos[0].overflow.full_for_ns.is_some());
    execute(&engine, Command::Pause).unwrap();
    let held = until(&engine, "no overflow while held", |snapshot| snapshot.silos[0].overflow.full_for_ns.is_none());
    assert!(held.sources[0].answered < shots);
    until(&engine, "the end of the pause", |snapshot| snapshot.at_ns > held.at_ns + 2_500_000_000);
    execute(&engine, Command::Resume).unwrap();
    let mut answered = 0;
    wait("the answers", || {
        client
            .receive(&mut |received| {
                assert_eq!(received.status, 0, "{received:?}");
                answered += 1;
            })
            .unwrap();
        answered == shots
    });
    drained(engine);
}

#[test]
fn a_client_of_a_unix_socket_goes_on_with_the_engine_that_listens_there_next() {
    let home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let (engine, place) = start(&profile(), &model, unix(&home), None);
    let mut client = client(&place, 1, 1);
    drained(engine);
    // Nobody is there: the first refusal loses the connection.
    for _ in 0..3 {
        assert!(!client.send(0, 0, &[0, 0, 0]).unwrap());
    }
    let (engine, _) = start(&profile(), &model, unix(&home), None);
    wait("room", || client.send(0, 0, &[0, 0, 0]).unwrap());
    let mut status = None;
    wait("an answer", || client.receive(&mut |received| status = Some(received.status)).unwrap() > 0);
    assert_eq!(status, Some(Status::OtherEpoch as u16));
    drained(engine);
}

/// A sender that says hello until it is welcomed, while the engine starts, has said it hundreds of times.
#[test]
fn hellos_that_come_together_get_one_welcome() {
    let _home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let (engine, place) = start(&profile(), &model, udp(), None);
    let LivePlace::Udp { at, .. } = place else { unreachable!("it is the engine's place") };
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(at).unwrap();
    sender.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut hello = Vec::new();
    encode_hello(1, &mut hello);
    let from = Instant::now();
    for _ in 0..1_000 {
        assert_eq!(sender.send(&hello).unwrap(), hello.len());
    }
    // The last one is of another session: its welcome is the last of all. On a loaded machine the system may lose it.
    encode_hello(2, &mut hello);
    let (mut bytes, mut welcomes) = ([0; 64], 0);
    assert_eq!(sender.send(&hello).unwrap(), hello.len());
    loop {
        let Ok(length) = sender.recv(&mut bytes) else {
            assert!(from.elapsed() < LIMIT, "no welcome");
            assert_eq!(sender.send(&hello).unwrap(), hello.len());
            continue;
        };
        let Some(Reply::Welcome(welcome)) = reply(&bytes[..length]) else { panic!("a welcome is the only reply") };
        if welcome.session == 2 {
            break;
        }
        welcomes += 1;
    }
    let milliseconds = from.elapsed().as_millis();
    assert!((1..=milliseconds + 1).contains(&welcomes), "{welcomes} in {milliseconds} ms");
    drained(engine);
}

#[test]
fn a_sender_that_takes_no_answers_loses_them_and_the_engine_goes_on() {
    let home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let (engine, place) = start(&profile(), &model, unix(&home), None);
    let mut deaf = client(&place, 1, 1);
    let mut sent = 0;
    // Until the system holds no more for it, however much that is here.
    while engine.snapshot().sources[0].answers_dropped < 100 {
        for _ in 0..500 {
            wait("room", || deaf.send((sent % 2) as u32, sent / 2, &[0, 0, 0]).unwrap());
            sent += 1;
        }
        assert!(sent < 1_000_000, "{:?}", engine.snapshot().sources[0]);
    }
    drop(deaf);
    let mut other = client(&place, 2, 1);
    for index in 0..200 {
        let mut found = None;
        wait("room", || other.send(3, index, &[0, 0, 0]).unwrap());
        wait("an answer", || other.receive(&mut |received| found = Some(received.sequence)).unwrap() > 0);
        assert_eq!(found, Some(index));
    }
    let (_, source) = drained(engine);
    assert_eq!(source.accepted, sent + 200);
    assert_eq!(source.peers.iter().map(|peer| peer.dropped).max(), Some(source.answers_dropped));
}

#[test]
fn a_sender_that_is_not_on_the_list_is_counted_and_not_answered() {
    let _home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let allow = vec![Network::parse("10.0.0.0/8").unwrap()];
    let listed = LivePlace::Udp { at: "127.0.0.1:0".parse().unwrap(), allow };
    let (engine, place) = start(&profile(), &model, listed, None);
    let mut stranger = SocketClient::connect(&place, 1, 1).unwrap();
    wait("a hello counted", || {
        assert!(stranger.welcome().unwrap().is_none());
        engine.snapshot().sources[0].foreign > 3
    });
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.peers.len()), (0, 0));
}

#[test]
fn an_answer_line_has_the_senders_number() {
    let home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let (profile, path) = (profile(), home.file("answers"));
    let input = Input::Live { model: Arc::clone(&model), place: unix(&home), measurements: None };
    let mut config = config(&profile, input, Some(2));
    config.sink = Some(sink(&profile, model.observables, None, Some(&path)));
    let engine = Engine::start(config).unwrap();
    let mut client = client(&unix(&home), 1, 1);
    for sequence in [1_000_000, 1_000_007] {
        wait("room", || client.send(2, sequence, &[0, 0, 0]).unwrap());
    }
    // It ends by its count.
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let text = std::fs::read_to_string(path).unwrap();
    let mut numbers: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1_000_000, 1_000_007]);
    assert_eq!(outcome.snapshot.sources[0].streams[2].gaps, 6);
    assert!(!home.file("shots").exists(), "the socket's path is gone with the engine");
}
