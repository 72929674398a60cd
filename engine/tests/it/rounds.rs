//! Shots whose rounds come one by one from another thread.

use crate::live::{drained, start, unix, wait};
use crate::rig::{Home, assert_nothing_lost, beside_another, config, end, execute, profile, until};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::code::{Model, Sampler, bundled_named};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Command, EndedBy, Engine, Input};
use pinwheel_engine::feed::client::{Client, Received, SocketClient};
use pinwheel_engine::feed::packet::{Encoding, Part, Position};
use pinwheel_engine::profile::{Predecoder, Profile, Window, WindowRounds};
use std::sync::Arc;

/// Parts of shots, each sent a while after the one before; in between the engine decodes what is there.
#[test]
fn windows_of_a_shot_are_decoded_while_its_parts_come_and_one_whose_rest_never_comes_is_answered_so() {
    let home = beside_another();
    for window in [Window::Some(SIZE), Window::Stream(SIZE), Window::Blocks(7)] {
        parts_of_shots(&home, window);
    }
}

const SIZE: WindowRounds = WindowRounds { commit_rounds: 5, buffer_rounds: 5 };

fn parts_of_shots(home: &Home, window: Window) {
    let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
    let local = Predecoder::Local;
    let matching = match window {
        Window::Stream(size) => MatcherModel::streamed(&model, size),
        Window::Blocks(rounds) => MatcherModel::in_blocks(&model, rounds),
        _ => MatcherModel::windowed(&model, SIZE, local),
    };
    let mut matcher = matching.unwrap().matcher_by_rounds().expect("it has windows");
    let mut profile = profile();
    (profile.window, profile.input.streams, profile.predecoder) = (window, 2, local);
    let (engine, place) = start(&profile, &model, unix(home), None);
    let mut client = SocketClient::connect(&place, 1, 25).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    let mut sampler = Sampler::new(&model, 3);
    let (mut shot, mut truth, mut expected) = (vec![0; model.detector_words()], [0], [0]);
    for sequence in 0..40u64 {
        sampler.draw(&mut shot, &mut truth);
        let bytes: Vec<u8> = shot.iter().flat_map(|word| word.to_le_bytes()).collect();
        // Of every fourth shot the last part is never sent: the next one begins instead.
        let is_cut = sequence % 4 == 3;
        let before = windows_decoded(&engine);
        let record = &bytes[..model.detectors.div_ceil(8) as usize];
        // As the socket has room.
        (0..24).for_each(|round| wait("room", || client.send_part(1, sequence, record, round).unwrap()));
        until(&engine, "a window before the last part", |snapshot| windows_of(snapshot) >= before + 3);
        if is_cut {
            continue;
        }
        wait("room", || client.send_part(1, sequence, record, 24).unwrap());
        matcher.decode(&shot, &mut expected).unwrap();
        let mut answers = Vec::new();
        let expected_answers = if sequence > 0 && sequence % 4 == 0 { 2 } else { 1 };
        wait("the answers", || {
            client.receive(&mut |received| answers.push(*received)).unwrap();
            answers.len() == expected_answers
        });
        let last = answers.pop().unwrap();
        assert_eq!((last.sequence, last.status, last.observables[0]), (sequence, 0, expected[0]));
        if let Some(cut) = answers.pop() {
            assert_eq!((cut.sequence, cut.status), (sequence - 1, ErrorCode::RoundsMissing as u16));
        }
    }
    // The last one was cut: the end of the source gives it up.
    let (outcome, source) = drained(engine);
    assert_eq!((source.accepted, source.streams[1].incomplete), (40, 9));
    assert_eq!(outcome.snapshot.silos[0].counters.errored, 10);
    let predecoded = outcome.snapshot.silos[0].counters.predecoded_events;
    assert_eq!(
        predecoded > 100,
        window == Window::Some(SIZE),
        "{predecoded} events: windows are predecoded, streams not"
    );
}

/// One part of a shot of stream 1, as a client may send it that keeps no rule.
fn part(sequence: u64, round: u32, first_bit: u32, soft: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let position = if soft.is_empty() { Position::Inner } else { Position::Last };
    let (session, stream, encoding) = (1, 1, Encoding::Bits);
    let part = Part {
        epoch: 0,
        session,
        sequence,
        stream,
        round,
        position,
        first_bit,
        bits: 24,
        encoding,
        payload: &[0; 3],
        soft,
    };
    part.encode(&mut bytes);
    bytes
}

fn by_rounds() -> (Arc<Model>, Profile) {
    let model = Arc::new(bundled_named("surface_d5@r25").unwrap());
    let mut profile = profile();
    (profile.window, profile.input.streams) = (Window::Stream(SIZE), 2);
    (model, profile)
}

/// An engine with two streams that shots reach by rounds, a client of it, and its model.
fn engine_by_rounds(home: &Home) -> (Engine, SocketClient, Arc<Model>) {
    let (model, profile) = by_rounds();
    let (engine, place) = start(&profile, &model, unix(home), None);
    let mut client = SocketClient::connect(&place, 1, 25).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    (engine, client, model)
}

/// A part that overlaps, one beyond the shot, and one with soft bytes where there is no map of them.
#[test]
fn a_shot_whose_part_is_refused_has_one_answer() {
    let home = beside_another();
    let (engine, mut client, model) = engine_by_rounds(&home);
    let refused = [part(0, 1, 0, &[]), part(1, 1, model.detectors - 1, &[]), part(2, 1, 24, &[1, 2])];
    let mut answers = Vec::new();
    for (sequence, wrong) in (0..).zip(&refused) {
        for bytes in [&part(sequence, 0, 0, &[]), wrong] {
            wait("room", || client.send_raw(bytes).unwrap());
        }
        wait("an answer", || client.receive(&mut |received| answers.push(*received)).unwrap() > 0);
    }
    let (_, source) = drained(engine);
    wait("the rest", || client.receive(&mut |received| answers.push(*received)).unwrap() == 0);
    let told: Vec<_> = answers.iter().map(|answer| (answer.sequence, answer.status)).collect();
    let missing = ErrorCode::RoundsMissing as u16;
    assert_eq!(told, [(0, missing), (1, missing), (2, missing)]);
    assert_eq!((source.accepted, source.malformed), (3, 3));
}

#[test]
fn a_counted_run_takes_its_last_shot_whole() {
    let home = beside_another();
    let (model, profile) = by_rounds();
    let input = Input::Live { model: Arc::clone(&model), place: unix(&home), measurements: None };
    let engine = Engine::start(config(&profile, input, Some(3))).unwrap();
    let mut client = SocketClient::connect(&unix(&home), 1, 25).unwrap();
    wait("a welcome", || client.welcome().unwrap().is_some());
    let record = vec![0; model.detectors.div_ceil(8) as usize];
    let mut answers = Vec::new();
    for sequence in 0..3 {
        (0..25).for_each(|round| wait("room", || client.send_part(1, sequence, &record, round).unwrap()));
        wait("an answer", || client.receive(&mut |received| answers.push(*received)).unwrap() > 0);
    }
    let told: Vec<_> = answers.iter().map(|answer| (answer.sequence, answer.status)).collect();
    assert_eq!(told, [(0, 0), (1, 0), (2, 0)]);
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert_eq!(outcome.ended_by, EndedBy::Count);
}

pub(crate) fn windows_of(snapshot: &Snapshot) -> u64 {
    snapshot.silos[0].graph.window.count()
}

fn windows_decoded(engine: &Engine) -> u64 {
    windows_of(&engine.snapshot())
}

/// Both say that shots under way finish. Stops of the engine come first.
fn goes_on_after(stop: &Command, is_stopped: fn(&Snapshot) -> bool) {
    let home = beside_another();
    let (engine, mut client, model) = engine_by_rounds(&home);
    let record = vec![0; model.detectors.div_ceil(8) as usize];
    for stream in [0, 1] {
        (0..24).for_each(|round| wait("room", || client.send_part(stream, 0, &record, round).unwrap()));
    }
    until(&engine, "open shots", |now| now.silos[0].counters.submitted == 2);
    execute(&engine, stop.clone()).unwrap();
    until(&engine, "the stop", is_stopped);
    for stream in [0, 1] {
        wait("room", || client.send_part(stream, 0, &record, 24).unwrap());
    }
    let mut answers = Vec::new();
    wait("the answers", || {
        client.receive(&mut |received| answers.push(received.status)).unwrap();
        answers.len() == 2
    });
    assert_eq!(answers, [0, 0]);
    let (outcome, _) = drained(engine);
    assert_eq!(outcome.snapshot.silos[0].counters.errored, 0);
}

#[test]
fn a_shot_whose_rounds_are_coming_goes_on_while_the_feed_is_held() {
    goes_on_after(&Command::Pause, |_| true);
}

#[test]
fn a_shot_whose_rounds_are_coming_goes_on_while_the_engine_drains() {
    goes_on_after(&Command::Drain, |now| now.engine.phase == Phase::Drain);
}

#[test]
fn a_shot_that_waits_while_the_feed_is_held_holds_up_no_rounds_of_others() {
    let home = beside_another();
    let (engine, mut client, model) = engine_by_rounds(&home);
    let record = vec![0; model.detectors.div_ceil(8) as usize];
    let send = |client: &mut SocketClient, stream, rounds: std::ops::Range<u32>| {
        rounds.for_each(|round| wait("room", || client.send_part(stream, 0, &record, round).unwrap()));
    };
    let answer = |client: &mut SocketClient| {
        let mut answers = Vec::new();
        let mut note = |received: &Received| answers.push((received.stream, received.status));
        wait("an answer", || client.receive(&mut note).unwrap() > 0);
        answers
    };
    send(&mut client, 0, 0..24);
    until(&engine, "an open shot", |now| now.silos[0].counters.submitted == 1);
    execute(&engine, Command::Pause).unwrap();
    send(&mut client, 1, 0..25);
    send(&mut client, 0, 24..25);
    assert_eq!(answer(&mut client), [(0, 0)]);
    assert_eq!(engine.snapshot().silos[0].counters.submitted, 1, "the other one waits");
    execute(&engine, Command::Resume).unwrap();
    assert_eq!(answer(&mut client), [(1, 0)]);
    let (outcome, _) = drained(engine);
    assert_eq!(outcome.snapshot.silos[0].counters.errored, 0);
}
