//! Checks of texts, shots and packets that the engine reads and others may write, for inputs that are any bytes. Each
//! panics if something does not hold: an input is refused in words, or it means what it says.

use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_engine::code::graph::Graph;
use pinwheel_engine::code::heralds::heralds;
use pinwheel_engine::code::{Format, Layout, Measurements, Model, Rounds, ShotSet, ShotWriter, SoftMap, words};
use pinwheel_engine::engine::command::InputSpec;
use pinwheel_engine::engine::wire::{self, Outcome, Reply};
use pinwheel_engine::feed::address::SourceAddress;
use pinwheel_engine::feed::assembly::{Assembly, Width};
use pinwheel_engine::feed::cudaq::frame::{self, Call};
use pinwheel_engine::feed::cudaq::session::{Session, Verdict};
use pinwheel_engine::feed::packet::{self, Encoding, Request};
use pinwheel_engine::profile::Profile;
use pinwheel_engine::streams::DecoderState;
use pinwheel_engine::units::Ticks;
use pinwheel_lab::graphs::graph_spec::GraphSpec;

/// Reads numbers from bytes; 0 behind their end.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// A number below `end`, of one byte if that is enough and else of two.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let first = usize::from(self.byte());
        let number = if end <= 256 { first } else { first | usize::from(self.byte()) << 8 };
        number % end
    }

    /// A word: one of those that are likely to matter, or any.
    pub(super) fn word(&mut self) -> u64 {
        match self.byte() {
            255 => self.take(8).iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            254 => u64::MAX,
            power @ 190..254 => 1 << (power - 190),
            number => u64::from(number),
        }
    }

    /// The next bytes, fewer at the end.
    pub(super) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// The first of `bytes` as a number below `end`, and the rest.
fn below(bytes: &[u8], end: u8) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (first % end, rest))
}

/// A refusal is a sentence for a person: short, but for the word of the input that it may quote with each byte written
/// as `\u{11}`. Whatever prints it filters control characters.
pub(super) fn is_said(text: &str) {
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
    let are_measured = observables == 2;
    let layout = Layout { detectors: detectors.into(), observables: observables.into(), are_measured };
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

/// A map from measurements to detectors, which maps any outcomes to bits of the model; and one of soft bytes.
pub fn any_map(bytes: &[u8]) {
    let (detectors, bytes) = below(bytes, 40);
    let text = String::from_utf8_lossy(bytes);
    match Measurements::parse(&text, detectors.into(), 1) {
        Ok(map) => {
            let outcomes = vec![u64::MAX; words(map.count())];
            let (mut mapped, mut observables) = ([0], [0]);
            map.map(&outcomes, &mut mapped, &mut observables);
            assert!(mapped[0] >> detectors == 0 && observables[0] <= 1, "bits beyond the model");
        }
        Err(said) => is_said(&said.to_string()),
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
            Some(Request::Shot(part)) => {
                let mut written = Vec::new();
                part.encode(&mut written);
                assert_eq!(packet::request(&written), Some(Request::Shot(part)));
                // Intake refuses streams that there are not.
                if part.stream < 2 {
                    let _ = assembly.accept(&part, Ticks(now));
                }
                for stream in 0..2 {
                    assert!(assembly.open_words(stream).is_none_or(|words| words <= 2));
                    assert!(assembly.bits(stream)[1] >> 36 == 0, "bits beyond the shot");
                }
            }
            Some(Request::Hello { .. }) | None => {}
        }
    }
}

/// Calls of CUDA-Q's protocol to one decoder, each with its length before it. After a call that completes a volume, a
/// byte says what the decode gives. Measurements are passed on whole and in order, and corrections add up.
pub fn any_calls(bytes: &[u8]) {
    const BITS: u32 = 150;
    let mut bytes = Bytes(bytes);
    let mut session = Session::new(BITS, 9);
    let (mut measured, mut passed_on, mut sum) = (Vec::new(), Vec::new(), 0);
    while !bytes.is_empty() {
        let length = usize::from(bytes.byte());
        let datagram = bytes.take(length);
        let _ = frame::reply(datagram);
        let Some(request) = frame::request(datagram, 200) else { continue };
        if let (Some(decoder), Call::Enqueue { .. } | Call::Corrections { .. } | Call::Reset) =
            (request.decoder, request.call)
        {
            let mut written = Vec::new();
            frame::write_request(request.id, decoder, &request.call, &mut written);
            let again = frame::request(&written, 200).expect("a call is a call");
            // A time and bytes behind the call are not written.
            assert_eq!((again.id, again.decoder, again.call), (request.id, request.decoder, request.call));
        }
        let verdict = session.call(&request.call);
        match request.call {
            Call::Enqueue { bits, packed } if session.state() != DecoderState::Failed => {
                measured.extend((0..bits).map(|bit| packed[bit as usize / 8] >> (bit % 8) & 1));
            }
            _ => {}
        }
        match verdict {
            Verdict::Part | Verdict::LastPart => {
                let part = session.part();
                assert_eq!((part.first_bit as usize, part.is_last), (passed_on.len(), verdict == Verdict::LastPart));
                passed_on.extend((0..part.bits).map(|bit| part.packed[bit as usize / 8] >> (bit % 8) & 1));
                assert!(passed_on[..] == measured[..passed_on.len()] && passed_on.len() <= BITS as usize);
                if part.is_last {
                    let volume = part.volume;
                    assert!(passed_on.len() == BITS as usize && !session.answer(volume + 1, None));
                    let found = bytes.byte();
                    let mut observables = [0; OBSERVABLE_WORDS_MAX];
                    observables[0] = u64::from(found);
                    assert!(session.answer(volume, (found != 255).then_some(&observables)));
                    sum ^= u64::from(found);
                    (measured, passed_on) = (Vec::new(), Vec::new());
                }
            }
            Verdict::Corrections(found) => assert!(found[0] == sum && found[1..].iter().all(|word| *word == 0)),
            Verdict::Reply(_) => {}
        }
        let was_cleared = matches!(request.call, Call::Corrections { is_clearing: true, .. })
            && matches!(verdict, Verdict::Corrections(_));
        let is_empty = session.state() == DecoderState::Failed || request.call == Call::Reset;
        if was_cleared || is_empty {
            sum = 0;
        }
        if is_empty {
            (measured, passed_on) = (Vec::new(), Vec::new());
        }
        let _ = session.takes_given_up();
    }
}

/// A line to the control socket; the address and the words of an input. A request that is taken is the same after a
/// journey through JSON.
pub fn any_line(bytes: &[u8]) {
    match wire::read_request(bytes) {
        Ok(request) => {
            let line = serde_json::to_vec(&request).expect("a request is JSON");
            assert_eq!(wire::read_request(&line), Ok(request));
        }
        Err(said) => is_said(&said),
    }
    let text = String::from_utf8_lossy(bytes);
    if let Err(said) = SourceAddress::parse(&text) {
        is_said(&said);
    }
    if let Err(said) = InputSpec::parse(&text) {
        is_said(&said);
    }
}

/// A line that answers a request, as `ctl` and an attached console read it: what is taken is one line for a person, and
/// the same after a journey through JSON.
pub fn any_reply(bytes: &[u8]) {
    let outcome = match wire::read_reply(bytes) {
        Ok(outcome) => outcome,
        Err(said) => return is_said(&said),
    };
    if let Outcome::Done(done) = &outcome {
        assert!(!done.to_string().is_empty());
    }
    let line =
        serde_json::to_vec(&Reply { version: wire::VERSION, outcome: outcome.clone() }).expect("a reply is JSON");
    assert_eq!(wire::read_reply(&line), Ok(outcome));
}
