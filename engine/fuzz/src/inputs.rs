//! Checks of everything that the engine reads and others may write, for inputs that are any bytes. Each panics
//! if something does not hold: an input is refused in words, or it means what it says.

use pinwheel_engine::board::image::Image;
use pinwheel_engine::code::graph::Graph;
use pinwheel_engine::code::heralds::heralds;
use pinwheel_engine::code::{Format, Layout, Measurements, Model, Rounds, ShotSet, ShotWriter, SoftMap, words};
use pinwheel_engine::engine::command::InputSpec;
use pinwheel_engine::engine::wire;
use pinwheel_engine::feed::address::SourceAddress;
use pinwheel_engine::feed::assembly::{Assembly, Width};
use pinwheel_engine::feed::packet::{self, Encoding, Request};
use pinwheel_engine::profile::Profile;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Ticks;
use pinwheel_lab::graphs::graph_spec::GraphSpec;

/// The first of `bytes` as a number below `end`, and the rest.
fn below(bytes: &[u8], end: u8) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (first % end, rest))
}

/// A refusal is a sentence for a person: short, but for the word of the input that it may quote with each byte written
/// as `\u{11}`. Whatever prints it filters control characters.
fn is_said(text: &str) {
    assert!(!text.is_empty() && text.len() < 8_000, "{} bytes", text.len());
}

/// An error model: its text gives the same model again; its graph and its rounds are made or refused.
pub fn any_dem(bytes: &[u8]) {
    let model = match Model::parse(bytes) {
        Ok(model) => model,
        Err(said) => return is_said(&said.to_string()),
    };
    let fractions = model.expected_detection_fractions();
    assert!(fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction)));
    if model.errors.len() > 10_000 || model.detectors > 10_000 {
        return;
    }
    let again = Model::parse(model.to_string().as_bytes()).expect("its own text");
    assert_eq!((again.hash(), &again.heralds), (model.hash(), &model.heralds));
    match Graph::new(&model) {
        Ok(graph) => {
            let edges = graph.edges.len();
            let of = heralds(&model, &graph).into_iter().flat_map(|all| all.heralds).flat_map(|herald| herald.edges);
            of.for_each(|(edge, weight)| assert!((edge as usize) < edges && weight.is_finite()));
        }
        Err(said) => is_said(&said.to_string()),
    }
    if let Ok(rounds) = Rounds::new(&model) {
        let members: usize = (0..rounds.count()).map(|round| rounds.members(round).len()).sum();
        assert_eq!(members, model.detectors as usize);
    }
}

/// Shots in one of the formats: what is read is written again, and read again as the same.
pub fn any_shot_file(bytes: &[u8]) {
    let (format, bytes) = below(bytes, 3);
    let (detectors, bytes) = below(bytes, 140);
    let (observables, bytes) = below(bytes, 3);
    let format = Format::ALL[usize::from(format)];
    let layout = Layout { detectors: detectors.into(), observables: observables.into() };
    let shots = match ShotSet::read(bytes, format, layout) {
        Ok(shots) => shots,
        Err(said) => return is_said(&said.to_string()),
    };
    let mut writer = ShotWriter::new(Vec::new(), format, layout);
    for shot in shots.iter() {
        assert_eq!(shot.len(), words(layout.detectors + layout.observables));
        writer.write_shot(shot).expect("memory takes it");
    }
    let written = writer.finish().expect("memory takes it");
    let again = ShotSet::read(&written[..], format, layout).expect("its own text");
    assert!(again.iter().eq(shots.iter()));
}

/// A map from measurements to detectors, and one of soft bytes.
pub fn any_map(bytes: &[u8]) {
    let (detectors, bytes) = below(bytes, 40);
    let text = String::from_utf8_lossy(bytes);
    if let Err(said) = Measurements::parse(&text, detectors.into(), 1) {
        is_said(&said.to_string());
    }
    if let Err(said) = SoftMap::parse(&text) {
        is_said(&said.to_string());
    }
}

/// A profile: one that is taken is the same after a journey through JSON.
pub fn any_profile(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Profile::parse(&text, "any.ron") {
        Ok(profile) => {
            let value = serde_json::to_value(&profile).expect("a profile is JSON");
            assert_eq!(serde_json::from_value::<Profile>(value).expect("its own JSON"), profile);
        }
        Err(said) => is_said(&said.to_string()),
    }
}

/// A task graph in a file.
pub fn any_graph(bytes: &[u8]) {
    if let Err(said) = GraphSpec::parse(&String::from_utf8_lossy(bytes)) {
        is_said(&said.to_string());
    }
}

/// A recording: each of its moments is a snapshot, or is refused.
pub fn any_recording(bytes: &[u8]) {
    let mut tape = match Tape::from_bytes(bytes.to_vec()) {
        Ok(tape) => tape,
        Err(said) => return is_said(&said.to_string()),
    };
    for at in tape.keys().into_iter().take(4) {
        if let Ok(Some(moment)) = tape.at(at) {
            let _ = moment.snapshot();
        }
    }
    if let Some((from, to)) = tape.span() {
        let mut moments = 0;
        let _ = tape.play(from, to, |_| moments += 1);
        let _ = tape.play_fast(from, to, |_| moments += 1);
    }
}

/// A board in a file, as another program may have left it.
pub fn any_board(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("pinwheel-fuzz-board-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("there is room");
    match Image::open(&path) {
        Ok((image, _)) => {
            let _ = image.last_sign();
            if let (Ok(board), Some(clock)) = (image.board(), image.clock(Ticks(1 << 40))) {
                let _ = board.snapshot(&clock);
            }
        }
        Err(said) => is_said(&said.to_string()),
    }
    let _ = std::fs::remove_file(&path);
}

/// Datagrams one after the other, each behind its length: parts that are taken are taken once.
pub fn any_datagrams(mut bytes: &[u8]) {
    let mut assembly = Assembly::new(2, Width { bits: 100, encoding: Encoding::Bits, soft_bytes: 13 }, Ticks(1_000));
    let mut now = 0;
    while let Some((&length, rest)) = bytes.split_first() {
        let (datagram, rest) = rest.split_at(usize::from(length).min(rest.len()));
        bytes = rest;
        now += 1;
        let _ = packet::reply(datagram);
        match packet::request(datagram) {
            Ok(Request::Shot(part)) => {
                let mut written = Vec::new();
                part.encode(&mut written);
                assert_eq!(packet::request(&written), Ok(Request::Shot(part)));
                // Intake refuses streams that there are not.
                if part.stream < 2 {
                    let _ = assembly.accept(&part, Ticks(now));
                }
                for stream in 0..2 {
                    assert!(assembly.open_words(stream).is_none_or(|words| words <= 2));
                    assert!(assembly.bits(stream)[1] >> 36 == 0, "bits beyond the shot");
                }
            }
            Ok(Request::Hello { .. }) => {}
            Err(said) => is_said(&said.to_string()),
        }
    }
}

/// A line to the control socket, and one that answers it; the address and the words of an input.
pub fn any_line(bytes: &[u8]) {
    if let Err(said) = wire::read_request(bytes) {
        is_said(&said);
    }
    if let Err(said) = wire::read_reply(bytes) {
        is_said(&said);
    }
    let text = String::from_utf8_lossy(bytes);
    if let Err(said) = SourceAddress::parse(&text) {
        is_said(&said);
    }
    if let Err(said) = InputSpec::parse(&text) {
        is_said(&said);
    }
}
