//! Live shots with soft bytes: sockets, shared memory, and the clients in C and Python.

use crate::decoders::acknowledged;
use crate::live::{client, drained, start, unix, wait};
use crate::rig::{Home, beside_another, execute, profile, until};
use crate::shm_clients::{in_c, in_python};
use crate::soft::{Memory, SoftShot};
use pinwheel_edge::slot::outside::ClientEnd;
use pinwheel_engine::code::{Measurements, Model};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Command, LivePlace};
use pinwheel_engine::feed::client::{Client, Received, RegionClient};
use pinwheel_engine::feed::shm::layout;
use pinwheel_engine::profile::{HotAllocations, Profile, Silos};
use std::collections::BTreeMap;
use std::path::Path;
use std::process;
use std::sync::Arc;

/// Shots on their way at most.
const IN_FLIGHT: usize = 8;

fn place(text: &str) -> LivePlace {
    LivePlace::parse(text).unwrap()
}

/// Shots, of which one in three has no soft bytes, with what the matcher alone says.
fn drawn(seed: u64, count: usize) -> (Arc<Model>, Vec<SoftShot>, Vec<u64>) {
    let mut memory = Memory::new(seed);
    let (model, _) = memory.models();
    let mut matcher = MatcherModel::new(&model).unwrap().matcher();
    let mut shots: Vec<SoftShot> = (0..count).map(|_| memory.draw()).collect();
    shots.iter_mut().step_by(3).for_each(|shot| shot.soft.fill(0));
    let mut found = [0];
    let mut expected = |shot: &SoftShot| {
        matcher.decode(&shot.words(), &mut found).unwrap();
        found[0]
    };
    let expected = shots.iter().map(&mut expected).collect();
    (Arc::new(model), shots, expected)
}

/// Sends shots by three streams; the answers by index.
fn through(client: &mut dyn Client, shots: &[SoftShot]) -> BTreeMap<usize, Received> {
    let (mut answers, mut sent) = (BTreeMap::new(), 0);
    let bits = client.welcome().unwrap().unwrap().bits;
    wait("the last answer", || {
        while sent < shots.len() && sent < answers.len() + IN_FLIGHT {
            let shot = &shots[sent];
            // Without the flag, where all bytes are 0.
            let soft = if sent % 3 == 0 { &[][..] } else { &shot.soft };
            let (stream, sequence) = ((sent % 3) as u32, (sent / 3) as u64);
            if !client.send_soft(stream, sequence, &shot.bits(bits), soft).unwrap() {
                break;
            }
            sent += 1;
        }
        let mut take = |received: &Received| {
            let index = received.sequence as usize * 3 + received.stream as usize;
            assert!(answers.insert(index, *received).is_none(), "{received:?} came twice");
        };
        while client.receive(&mut take).unwrap() > 0 {}
        answers.len() == shots.len()
    });
    answers
}

fn three_streams(silos: u32) -> Profile {
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(silos), 3);
    profile.hot_allocations = HotAllocations::Count;
    profile
}

/// Shots through a source: what the matcher alone says, shot for shot.
fn answered(place: impl Fn(&Home) -> LivePlace, parts: u32, silos: u32) {
    let home = beside_another();
    let (model, shots, expected) = drawn(5, 900);
    let (engine, place) = start(&three_streams(silos), &model, place(&home), None);
    let mut client = client(&place, 1, parts);
    let welcome = client.welcome().unwrap().unwrap();
    assert_eq!((welcome.bits, welcome.soft_bytes), (model.detectors, 25));
    for (index, received) in through(client.as_mut(), &shots) {
        assert_eq!((received.status, received.observables[0]), (0, expected[index]), "shot {index}");
    }
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.malformed), (900, 0));
}

#[test]
fn soft_bytes_over_udp_are_read() {
    answered(|_| place("udp:127.0.0.1:0"), 1, 1);
}

#[test]
fn soft_bytes_in_the_last_of_several_parts_over_a_unix_socket_are_read() {
    answered(unix, 3, 2);
}

#[test]
fn soft_bytes_through_shared_memory_are_read() {
    answered(|_| place("shm:test"), 1, 2);
}

#[test]
fn soft_bytes_go_with_measurements() {
    let _home = beside_another();
    let (model, shots, expected) = drawn(6, 60);
    // Each detector is an outcome; the last outcome is in none.
    let lines: String = (0..model.detectors).map(|detector| format!("D{detector} {detector}\n")).collect();
    let text = format!("measurements {}\n{lines}", model.detectors + 1);
    let map = Measurements::parse(&text, model.detectors, 1).unwrap();
    let (engine, place) = start(&three_streams(1), &model, place("udp:127.0.0.1:0"), Some(map));
    let mut client = client(&place, 1, 1);
    for (index, received) in through(client.as_mut(), &shots) {
        assert_eq!((received.status, received.observables[0]), (0, expected[index]), "shot {index}");
    }
    drained(engine);
}

/// Sends one shot with these soft bytes; the status of its answer.
fn status_of(client: &mut dyn Client, model: &Model, sequence: u64, soft: &[u8]) -> u16 {
    let bits = vec![0; model.detectors.div_ceil(8) as usize];
    assert!(client.send_soft(0, sequence, &bits, soft).unwrap());
    let mut told = None;
    wait("an answer", || client.receive(&mut |received| told = Some(received.status)).unwrap() > 0);
    told.unwrap()
}

#[test]
fn soft_bytes_that_the_engine_has_no_map_of_have_a_status_of_their_own() {
    let _home = beside_another();
    let (model, plain) = Memory::new(7).models();
    for (model, cases) in [(plain, &[(25, 261), (0, 0)][..]), (model, &[(24, 261), (26, 261), (25, 0), (0, 0)])] {
        let (engine, place) = start(&profile(), &Arc::new(model.clone()), place("udp:127.0.0.1:0"), None);
        let mut client = client(&place, 1, 1);
        for (sequence, (bytes, status)) in (0..).zip(cases) {
            assert_eq!(status_of(client.as_mut(), &model, sequence, &vec![9; *bytes]), *status, "{bytes} bytes");
        }
        let (_, source) = drained(engine);
        let refused = cases.iter().filter(|(_, status)| *status != 0).count() as u64;
        assert_eq!((source.malformed, source.accepted), (refused, cases.len() as u64 - refused));
    }
}

#[test]
fn the_soft_bytes_of_a_region_are_checked() {
    let home = beside_another();
    let (model, plain) = Memory::new(8).models();
    let (engine, _) = start(&profile(), &Arc::new(model), place("shm:test"), None);
    let mut client = RegionClient::new(&home.boards(), "test", 5);
    wait("a grant", || client.welcome().unwrap().is_some());
    let said = client.send_soft(0, 0, &[0; 3], &[1; 24]).unwrap_err().to_string();
    assert!(said.contains("found 24 soft bytes of a shot, expected 25"), "{said}");
    let (region, shape) = client.region().unwrap();
    assert_eq!((shape.version(), shape.soft_bytes, shape.shot_words()), (layout::VERSION_SOFT, 25, 7));
    let (outside, mut end) = (region.outside(shape), ClientEnd::new(shape.slots as usize));
    let full = u64::MAX;
    // Stream with its flag; sequence, bits and soft bytes; the status that comes back.
    let cases = [
        (layout::SOFT, [0, 0, full, full, full, 0xff], 0),
        // Padding of the last word; without the flag nothing there is read.
        (layout::SOFT, [1, 0, full, full, full, 0x1ff], 256),
        (0, [1, 0, full, full, full, full], 0),
        (layout::SOFT | 4, [2, 0, 0, 0, 0, 0], 4),
    ];
    for (position, (stream, shot, status)) in (0..).zip(cases) {
        assert!(end.publish(&outside, stream, &shot));
        let (mut answer, mut found) = ([0; 4], None);
        wait("an answer", || {
            found = end.collect(&outside, position, &mut answer);
            found.is_some()
        });
        assert_eq!(
            (found, answer[0], answer[1]),
            (Some(status), shot[0], u64::from(stream & !layout::SOFT)),
            "{shot:?}"
        );
    }
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.malformed, source.unknown_streams), (2, 1, 1));
    // A region without a map is of layout 2, as it was.
    let (engine, _) = start(&profile(), &Arc::new(plain), place("shm:plain"), None);
    let mut client = RegionClient::new(&home.boards(), "plain", 5);
    wait("a grant", || client.welcome().unwrap().is_some());
    let shape = *client.region().unwrap().1;
    assert_eq!((shape.version(), shape.shot_words()), (layout::VERSION, 3));
    drained(engine);
}

/// An example client with a file of shots and one of soft bytes gets what the matcher alone says.
fn example(mut command: process::Command) {
    let home = beside_another();
    let (model, shots, expected) = drawn(10, 300);
    let file = |name: &str, bytes: Vec<u8>| {
        std::fs::write(home.file(name), bytes).unwrap();
        home.file(name)
    };
    let bits = file("shots.b8", shots.iter().flat_map(|shot| shot.bits(model.detectors)).collect());
    let soft = file("soft.b8", shots.iter().flat_map(|shot| shot.soft.clone()).collect());
    let short = file("short.b8", vec![1; 24]);
    let (engine, _) = start(&profile(), &model, place("shm:example"), None);
    let region = home.boards().join("input-example");
    let mut ran = |soft: &Path| command.args([&region, &bits]).arg(soft).output().unwrap();
    let output = ran(&soft);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = expected.iter().enumerate().map(|(index, flips)| format!("{index} 0 {flips:x}"));
    assert!(text.lines().map(str::to_owned).eq(lines), "{text}");
    let (program, arguments) = (command.get_program().to_owned(), command.get_args().next().map(ToOwned::to_owned));
    let mut again = process::Command::new(program);
    again.args(arguments.filter(|word| Path::new(word).extension().is_some_and(|ending| ending == "py")));
    let output = again.args([&region, &bits, &short]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.trim().lines().count() == 1 && said.contains("soft"), "{said}");
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.malformed), (300, 0));
}

#[test]
fn the_example_in_c_sends_soft_bytes() {
    in_c(example);
}

#[test]
fn the_example_in_python_sends_soft_bytes() {
    in_python(example);
}

#[test]
fn another_model_gets_the_map_of_the_run_or_is_refused() {
    let home = beside_another();
    let (model, shots, expected) = drawn(11, 90);
    let (text, _) = Memory::new(11).texts();
    let file = |name: &str, text: String| {
        std::fs::write(home.file(name), text).unwrap();
        Some(home.file(name).display().to_string())
    };
    // The same errors in another order: the same answers. Errors of less probability than the readouts'.
    let same = file("same.dem", text.lines().rev().map(|line| format!("{line}\n")).collect());
    let other = file("other.dem", text.replace("error(0.0", "error(0.000"));
    let (engine, place) = start(&three_streams(1), &model, place("udp:127.0.0.1:0"), None);
    let said = execute(&engine, Command::Model { file: other, stream: None }).unwrap_err().to_string();
    assert!(said.contains("the map of soft bytes, line 2: found readouts of"), "{said}");
    execute(&engine, Command::Model { file: same, stream: None }).unwrap();
    until(&engine, "acknowledgements", acknowledged);
    let mut client = client(&place, 1, 1);
    for (index, received) in through(client.as_mut(), &shots) {
        assert_eq!((received.status, received.observables[0]), (0, expected[index]), "shot {index}");
    }
    drained(engine);
}
