//! A bridge to other hosts: the test itself is the other host.

use crate::live::{client, data, model, unix, wait};
use crate::rig::{assert_nothing_lost, beside_another, config, end, profile, until};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_engine::board::snapshot::SourceState;
use pinwheel_engine::code::Model;
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Engine, Input, StartError};
use pinwheel_engine::feed::bridge::{self, Bridge};
use pinwheel_engine::feed::client::Received;
use pinwheel_engine::feed::lane::{Head, Piece};
use pinwheel_engine::pipe::Answer;
use pinwheel_engine::profile::Silos;
use pinwheel_engine::units::Ticks;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

const STREAMS: u32 = 3;
/// Shots on their way in the client's socket at most.
const IN_FLIGHT: u64 = 8;

/// The other host: decodes shots that leave, returns some, and has shots of its own decoded.
struct Other<'a> {
    bridge: Bridge,
    model: &'a MatcherModel,
    /// Shots that left and are not passed on yet: an earlier one of their stream is not answered here.
    waiting: VecDeque<(Head, Vec<u64>)>,
    returned: [u64; STREAMS as usize],
    passed_on: u64,
    random: Xoshiro256PlusPlus,
}

impl Other<'_> {
    fn step(&mut self) {
        let mut detectors = vec![0; self.bridge.detector_words];
        let mut observables = vec![0; self.bridge.observable_words];
        while let Some(head) = self.bridge.shots.take(&mut detectors, &mut observables) {
            self.waiting.push_back((head, detectors.clone()));
        }
        self.change_a_route();
        // Some shots wait here while their route changes.
        if !self.random.next_u64().is_multiple_of(4) {
            return;
        }
        // A stream keeps its order; a shot that waits holds up those of its stream only.
        let mut held = [false; STREAMS as usize];
        let mut left = VecDeque::new();
        for (head, detectors) in std::mem::take(&mut self.waiting) {
            let stream = head.stream as usize;
            let here = head.sequence + self.returned[stream];
            if held[stream] {
                left.push_back((head, detectors));
            } else if !self.bridge.routes.is_away(head.stream)
                && self.bridge.taken_in.as_mut().unwrap().put(&head, &detectors, &[0])
            {
                self.returned[stream] += 1;
            } else if self.bridge.routes.answered_here(head.stream) == here {
                self.answer(&head, &detectors);
            } else {
                held[stream] = true;
                left.push_back((head, detectors));
            }
        }
        self.waiting = left;
    }

    fn change_a_route(&mut self) {
        if self.random.next_u64().is_multiple_of(64) {
            let stream = self.random.next_u64() as u32 % STREAMS;
            if self.bridge.routes.is_away(stream) {
                self.bridge.routes.keep(stream);
            } else {
                self.bridge.routes.send_away(stream);
            }
        }
    }

    fn answer(&mut self, head: &Head, detectors: &[u64]) {
        let mut observables = [0; OBSERVABLE_WORDS_MAX];
        let words = self.bridge.observable_words;
        self.model.matcher().decode(detectors, &mut observables[..words]).unwrap();
        let answer =
            Answer { stream: head.stream, reply_to: head.reply_to, latency_ns: 1, observables, ..Answer::default() };
        self.bridge.answered.push(answer).unwrap();
        self.passed_on += 1;
    }
}

fn start(silos: u32, name: &str, path: pinwheel_engine::engine::LivePlace) -> (Engine, Arc<Model>, Bridge) {
    let model = model(name);
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(silos), STREAMS);
    let (end, bridge) = bridge::bridge(&model, STREAMS);
    let input = Input::Live { model: Arc::clone(&model), place: path, measurements: None };
    let mut config = config(&profile, input, None);
    config.bridge = Some(end);
    let engine = Engine::start(config).unwrap();
    until(&engine, "an open source", |snapshot| snapshot.sources[0].state != SourceState::Waiting);
    (engine, model, bridge)
}

/// Shots of three streams, of which each leaves and comes back at random.
fn streams_that_leave_and_come_back(silos: u32) {
    let home = beside_another();
    let name = "surf_z_d3_r3_p0.005";
    let place = unix(&home);
    let (engine, model, bridge) = start(silos, name, place.clone());
    let matcher = MatcherModel::new(&model).unwrap();
    let bytes = data(&format!("{name}.dets.b8"));
    let width = model.detectors.div_ceil(8) as usize;
    let records: Vec<&[u8]> = bytes.chunks_exact(width).collect();
    let shots = 6_000;
    let random = Xoshiro256PlusPlus::seed_from_u64(silos.into());
    let mut other = Other {
        bridge,
        model: &matcher,
        waiting: VecDeque::new(),
        returned: [0; STREAMS as usize],
        passed_on: 0,
        random,
    };
    let mut client = client(&place, 1, 1);
    let (mut sent, mut answered) = (0, 0);
    let mut next = [0; STREAMS as usize];
    wait("the last answer", || {
        while sent < shots && sent < answered + IN_FLIGHT {
            let record = records[sent as usize % records.len()];
            if !client.send((sent % 3) as u32, sent / 3, record).unwrap() {
                break;
            }
            sent += 1;
        }
        other.step();
        let mut take = |received: &Received| {
            let stream = received.stream as usize;
            assert_eq!(received.sequence, next[stream], "in order, and once: {received:?}");
            next[stream] += 1;
            answered += 1;
            let index = (received.sequence * 3 + u64::from(received.stream)) as usize % records.len();
            assert_eq!(received.status, 0);
            assert_eq!(received.observables[0], predicted(&matcher, &model, records[index]), "{received:?}");
        };
        while client.receive(&mut take).unwrap() > 0 {}
        answered == shots
    });
    let returned: u64 = other.returned.iter().sum();
    assert!(other.passed_on > 0 && returned > 0, "{} passed on, {returned} returned", other.passed_on);
    let passed_on = other.passed_on;
    drop(other);
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let source = &outcome.snapshot.sources[0];
    assert_eq!((source.accepted, source.answered), (shots, shots));
    assert_eq!((source.forwarded, source.forwarded_answered), (passed_on + returned, passed_on));
    assert!(source.streams.iter().all(|stream| stream.lag == 0), "{source:?}");
}

fn predicted(matcher: &MatcherModel, model: &Model, record: &[u8]) -> u64 {
    let mut words = vec![0; model.shot_words()];
    record.iter().enumerate().for_each(|(at, byte)| words[at / 8] |= u64::from(*byte) << (at % 8 * 8));
    let mut observables = vec![0; model.observable_words()];
    matcher.matcher().decode(&words, &mut observables).unwrap();
    observables[0]
}

#[test]
fn streams_that_leave_and_come_back_are_answered_once_each_and_in_order() {
    streams_that_leave_and_come_back(1);
}

#[test]
fn streams_of_two_silos_leave_and_come_back() {
    streams_that_leave_and_come_back(2);
}

#[test]
fn shots_of_other_hosts_are_answered_to_the_bridge_while_a_sender_is_served() {
    let home = beside_another();
    let name = "surf_z_d3_r3_p0.005";
    let place = unix(&home);
    let (engine, model, mut bridge) = start(1, name, place.clone());
    let bytes = data(&format!("{name}.dets.b8"));
    let records: Vec<&[u8]> = bytes.chunks_exact(model.detectors.div_ceil(8) as usize).collect();
    let matcher = MatcherModel::new(&model).unwrap();
    // More than all rings hold, and no answer is taken until the end of the sender's shots.
    let theirs = 3_000;
    let mut client = client(&place, 1, 1);
    let (mut put, mut taken) = (0, 0);
    let (mut sent, mut answered) = (0, 0);
    let head = |number: u64| Head {
        stream: (number % 3) as u32,
        epoch: 0,
        sequence: 0,
        reply_to: bridge::others(number, 7),
        arrived: Ticks(0),
        truth_known: false,
        piece: Piece::Whole,
        refused: None,
    };
    let words = |record: &[u8]| {
        let mut words = vec![0; model.shot_words()];
        record.iter().enumerate().for_each(|(at, byte)| words[at / 8] |= u64::from(*byte) << (at % 8 * 8));
        words
    };
    wait("the last answer", || {
        while put < theirs {
            let record = records[put as usize % records.len()];
            if !bridge.taken_in.as_mut().unwrap().put(&head(put), &words(record), &[0]) {
                break;
            }
            put += 1;
        }
        // A sender is served although nobody takes the bridge's answers.
        if sent < 500 && sent < answered + IN_FLIGHT && client.send(0, sent, records[0]).unwrap() {
            sent += 1;
        }
        while client.receive(&mut |_| answered += 1).unwrap() > 0 {}
        if answered < 500 {
            return false;
        }
        while let Some(answer) = bridge.answers.pop() {
            let number = bridge::tag_of(answer.reply_to);
            assert_eq!((answer.stream, answer.reply_to.sequence, answer.error), ((number % 3) as u32, 7, None));
            assert_eq!(answer.observables[0], predicted(&matcher, &model, records[number as usize % records.len()]));
            taken += 1;
        }
        taken == theirs
    });
    let source = engine.snapshot().sources[0].clone();
    assert_eq!((source.taken_in, source.accepted), (theirs, 500));
    drop(bridge);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_draining_engine_takes_back_what_is_away_before_it_ends() {
    let home = beside_another();
    let place = unix(&home);
    let (engine, model, mut bridge) = start(1, "surf_z_d3_r3_p0.005", place.clone());
    let bytes = data("surf_z_d3_r3_p0.005.dets.b8");
    let record = &bytes[..model.detectors.div_ceil(8) as usize];
    let mut client = client(&place, 1, 1);
    bridge.routes.send_away(0);
    let (mut sent, mut away) = (0, VecDeque::new());
    let (mut detectors, mut observables) = (vec![0; bridge.detector_words], vec![0; bridge.observable_words]);
    wait("shots that left", || {
        if sent < 5 && client.send(0, sent, record).unwrap() {
            sent += 1;
        }
        if let Some(head) = bridge.shots.take(&mut detectors, &mut observables) {
            away.push_back((head, detectors.clone()));
        }
        while client.receive(&mut |_| ()).unwrap() > 0 {}
        away.len() == 5
    });
    engine.request_drain();
    until(&engine, "a closed source", |snapshot| snapshot.sources[0].state == SourceState::Closed);
    for (head, detectors) in away {
        assert!(bridge.taken_in.as_mut().unwrap().put(&head, &detectors, &[0]));
    }
    drop(bridge);
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert_eq!((outcome.snapshot.sources[0].accepted, outcome.snapshot.sources[0].answered), (5, 5));
}

#[test]
fn a_bridge_without_a_live_source_or_of_other_streams_is_refused() {
    let home = beside_another();
    let model = model("surf_z_d3_r3_p0.005");
    let mut profile = profile();
    profile.input.streams = STREAMS;
    let refused = |input, streams| {
        let mut config = config(&profile, input, Some(10));
        config.bridge = Some(bridge::bridge(&model, streams).0);
        Engine::start(config).map(|_| ()).unwrap_err()
    };
    assert!(matches!(refused(crate::rig::sampler(), STREAMS), StartError::BridgeInput));
    let input = Input::Live { model: Arc::clone(&model), place: unix(&home), measurements: None };
    assert!(matches!(refused(input, 5), StartError::BridgeStreams { found: 5, expected: 3 }));
    assert!(!Path::new(&home.file("shots")).exists());
}
