//! Shots with soft bytes: how sure each readout was.

use crate::heralds::erased;
use crate::rig::{assert_nothing_lost, beside_another, config, profile, replay, run, sink};
use pinwheel_engine::code::{Format, Layout, Mechanism, Model, Sampler, ShotSet, SoftMap, bit, flip};
use pinwheel_engine::decode::{Matcher, MatcherModel};
use pinwheel_engine::engine::Engine;
use pinwheel_engine::profile::{Decoder, Decoders, HotAllocations, Predecoder, ShotOrder, Silos, Window, WindowRounds};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt::Write;
use std::sync::Arc;

/// Uniform in (0, 1).
fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Normal, of mean 0 and deviation 1.
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let angle = 2.0 * std::f64::consts::PI * uniform(random);
    (-2.0 * uniform(random).ln()).sqrt() * angle.cos()
}

/// How often a normal value of deviation `sigma` is above 1, by Simpson's rule.
fn tail(sigma: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let (from, step) = (1.0 / sigma, 1e-3);
    let piece = |at: f64| step / 6.0 * (density(at) + 4.0 * density(at + step / 2.0) + density(at + step));
    (0..8_000).map(|index| piece(from + f64::from(index) * step)).sum()
}

/// A memory experiment of the repetition code, whose readouts are 1 or -1 with normal noise.
pub(crate) struct Memory {
    distance: u32,
    rounds: u32,
    /// Probability of a flip of each data qubit before each round.
    flips: f64,
    sigma: f64,
    random: Xoshiro256PlusPlus,
}

/// A shot: its detectors, the soft byte of each readout, and the observable.
pub(crate) struct SoftShot {
    pub(crate) detectors: Vec<u64>,
    pub(crate) soft: Vec<u8>,
    pub(crate) observable: u64,
}

impl SoftShot {
    /// As slots and matchers have it.
    pub(crate) fn words(&self) -> Vec<u64> {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.detectors.iter().copied().chain(self.soft.chunks(8).map(word)).collect()
    }

    /// The detectors in format b8.
    pub(crate) fn bits(&self, detectors: u32) -> Vec<u8> {
        let bytes = self.detectors.iter().flat_map(|word| word.to_le_bytes());
        bytes.take(detectors.div_ceil(8) as usize).collect()
    }
}

impl Memory {
    pub(crate) fn new(seed: u64) -> Memory {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Memory { distance: 5, rounds: 5, flips: 0.02, sigma: 0.62, random }
    }

    fn checks(&self) -> u32 {
        self.distance - 1
    }

    fn detector(&self, round: u32, check: u32) -> u32 {
        round * self.checks() + check
    }

    /// The detectors of the checks beside a data qubit.
    fn beside(&self, round: u32, qubit: u32) -> String {
        let checks = qubit.saturating_sub(1)..(qubit + 1).min(self.checks());
        checks.map(|check| format!(" D{}", self.detector(round, check))).collect()
    }

    /// The detectors that each readout flips if it is wrong, and whether it flips the observable.
    fn readouts(&self) -> Vec<(String, &'static str)> {
        let checks = (0..self.rounds).flat_map(|round| (0..self.checks()).map(move |check| (round, check)));
        let of_check = checks.map(|(round, check)| {
            (format!(" D{} D{}", self.detector(round, check), self.detector(round + 1, check)), "")
        });
        let observable = |qubit| if qubit == 0 { " L0" } else { "" };
        let of_data = (0..self.distance).map(|qubit| (self.beside(self.rounds, qubit), observable(qubit)));
        of_check.chain(of_data).collect()
    }

    /// The text of the model, and that of its map.
    pub(crate) fn texts(&self) -> (String, String) {
        let wrong = tail(self.sigma);
        let readouts = self.readouts();
        let (mut model, mut map) = (String::new(), format!("soft {}\n", readouts.len()));
        for (round, qubit) in (0..self.rounds).flat_map(|round| (0..self.distance).map(move |qubit| (round, qubit))) {
            let observable = if qubit == 0 { " L0" } else { "" };
            writeln!(model, "error({}){}{observable}", self.flips, self.beside(round, qubit)).unwrap();
        }
        for (byte, (detectors, observable)) in readouts.iter().enumerate() {
            writeln!(model, "error({wrong}){detectors}{observable}").unwrap();
            writeln!(map, "S{byte} {wrong}{detectors}").unwrap();
        }
        (model, map)
    }

    /// The model, with and without its map.
    pub(crate) fn models(&self) -> (Model, Model) {
        let (model, map) = self.texts();
        let plain = Model::parse(model.as_bytes()).unwrap();
        (plain.clone().with_soft(Arc::new(SoftMap::parse(&map).unwrap())).unwrap(), plain)
    }

    /// Reads a bit: what it seems to be, and its byte.
    fn read(&mut self, bit: bool, soft: &mut Vec<u8>) -> bool {
        let signal = if bit { -1.0 } else { 1.0 } + self.sigma * normal(&mut self.random);
        // The logarithm of the odds that the sign is right.
        let odds = 2.0 * signal.abs() / (self.sigma * self.sigma);
        let steps = 10.0 * odds / std::f64::consts::LN_10 / 0.25;
        soft.push(1 + steps.round().min(254.0) as u8);
        signal < 0.0
    }

    pub(crate) fn draw(&mut self) -> SoftShot {
        let (mut data, mut soft) = (vec![false; self.distance as usize], Vec::new());
        let mut before = vec![false; self.checks() as usize];
        let mut detectors = vec![0; (self.detector(self.rounds + 1, 0) as usize).div_ceil(64)];
        for round in 0..self.rounds {
            for qubit in &mut data {
                *qubit ^= uniform(&mut self.random) < self.flips;
            }
            for check in 0..self.checks() {
                let at = check as usize;
                let found = self.read(data[at] ^ data[at + 1], &mut soft);
                if std::mem::replace(&mut before[at], found) != found {
                    flip(&mut detectors, self.detector(round, check));
                }
            }
        }
        let found: Vec<bool> = data.into_iter().map(|qubit| self.read(qubit, &mut soft)).collect();
        for check in 0..self.checks() {
            let at = check as usize;
            if found[at] ^ found[at + 1] ^ before[at] {
                flip(&mut detectors, self.detector(self.rounds, check));
            }
        }
        SoftShot { detectors, soft, observable: found[0].into() }
    }
}

fn matcher(model: &Model) -> Box<dyn Matcher> {
    MatcherModel::new(model).unwrap().matcher()
}

#[test]
fn soft_bytes_halve_the_logical_errors() {
    const SHOTS: u32 = 100_000;
    let mut memory = Memory::new(1);
    let (model, plain) = memory.models();
    let (with, without) = (MatcherModel::new(&model).unwrap(), MatcherModel::new(&plain).unwrap());
    let names = [&model, &plain].map(|model| MatcherModel::new(model).unwrap().name().to_owned());
    assert_eq!(names, ["sparse-blossom with soft bytes", "sparse-blossom"]);
    let (mut with, mut without) = (with.matcher(), without.matcher());
    let (mut errors, mut found) = ([0; 2], [0]);
    for _ in 0..SHOTS {
        let shot = memory.draw();
        with.decode(&shot.words(), &mut found).unwrap();
        errors[0] += u32::from(found[0] != shot.observable);
        without.decode(&shot.detectors, &mut found).unwrap();
        errors[1] += u32::from(found[0] != shot.observable);
    }
    assert!(errors[1] > 300 && 2 * errors[0] <= errors[1], "{errors:?} logical errors with and without soft bytes");
}

/// Heralds of erasures as bytes: 1 where one fires, 255 where not.
#[test]
fn heralds_given_as_soft_bytes_halve_the_logical_errors() {
    let (heralded, plain) = (erased(true), erased(false));
    let first = heralded.heralds[0];
    let mut map = format!("soft {}\n", heralded.heralds.len());
    for effect in heralded.errors.iter().map(Mechanism::effect) {
        let (herald, ends): (Vec<u32>, Vec<u32>) = effect.detectors.iter().partition(|detector| **detector >= first);
        if let ([herald], false) = (&herald[..], ends.is_empty()) {
            let ends: String = ends.iter().map(|end| format!(" D{end}")).collect();
            writeln!(map, "S{} 0.005{ends}", herald - first).unwrap();
        }
    }
    let model = plain.clone().with_soft(Arc::new(SoftMap::parse(&map).unwrap())).unwrap();
    let (mut with, mut without) = (matcher(&model), matcher(&plain));
    let mut sampler = Sampler::new(&heralded, 4);
    let mut shot = SoftShot { detectors: vec![0; heralded.detector_words()], soft: Vec::new(), observable: 0 };
    let (mut truth, mut found, mut errors) = ([0], [0], [0; 2]);
    for _ in 0..60_000 {
        sampler.draw(&mut shot.detectors, &mut truth);
        shot.soft.clear();
        for herald in first..heralded.detectors {
            let fires = bit(&shot.detectors, herald);
            shot.soft.push(if fires { 1 } else { 255 });
            if fires {
                flip(&mut shot.detectors, herald);
            }
        }
        with.decode(&shot.words(), &mut found).unwrap();
        errors[0] += usize::from(found != truth);
        without.decode(&shot.detectors, &mut found).unwrap();
        errors[1] += usize::from(found != truth);
    }
    assert!(errors[1] > 40 && 2 * errors[0] <= errors[1], "{errors:?} logical errors with and without heralds");
}

/// Edges of a random graph: its ends and observable, the probability of its errors other than readouts, and its
/// readouts with theirs.
struct RandomEdge {
    named: String,
    observable: &'static str,
    rest: f64,
    readouts: Vec<(usize, f64)>,
}

/// A text with the probability of each readout that `of` says.
fn text_of(edges: &[RandomEdge], of: impl Fn(usize, f64) -> f64) -> String {
    let mut text = String::new();
    for RandomEdge { named, observable, rest, readouts } in edges {
        writeln!(text, "error({rest}){named}{observable}").unwrap();
        for (byte, wrong) in readouts {
            writeln!(text, "error({}){named}{observable}", of(*byte, *wrong)).unwrap();
        }
    }
    text
}

/// A ring of detectors with chords and boundaries. Some edges are likelier than not.
fn random_edges(random: &mut Xoshiro256PlusPlus, bytes: usize) -> Vec<RandomEdge> {
    let detectors = 6 + random.next_u64() % 9;
    let ring = (0..detectors).map(|at| (at, (at + 1) % detectors));
    let chords: Vec<_> = (0..detectors / 2).map(|at| (at, at + 2 + random.next_u64() % (detectors - at - 2))).collect();
    let ends = ring.chain(chords).map(|(a, b)| format!(" D{} D{}", a.min(b), a.max(b)));
    let mut named: Vec<String> = ends.chain((0..3).map(|at| format!(" D{at}"))).collect();
    named.sort();
    named.dedup();
    let edge = |named: String| RandomEdge {
        named,
        observable: if random.next_u64().is_multiple_of(3) { " L0" } else { "" },
        rest: 0.001 + uniform(random) * if random.next_u64().is_multiple_of(8) { 0.6 } else { 0.1 },
        readouts: (0..random.next_u64() % 4)
            .map(|_| (random.next_u64() as usize % bytes, 0.001 + 0.1 * uniform(random)))
            .collect::<std::collections::BTreeMap<_, _>>()
            .into_iter()
            .collect(),
    };
    let mut edges: Vec<RandomEdge> = named.into_iter().map(edge).collect();
    // Each byte is about something.
    for byte in 0..bytes {
        if edges.iter().all(|edge| edge.readouts.iter().all(|(of, _)| *of != byte)) {
            let at = byte % edges.len();
            edges[at].readouts.push((byte, 0.01));
        }
    }
    edges
}

#[test]
fn each_shot_is_matched_as_by_a_model_made_for_its_soft_bytes() {
    const BYTES: usize = 11;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut ties = 0;
    for seed in 0..60 {
        let edges = random_edges(&mut random, BYTES);
        let model = Model::parse(text_of(&edges, |_, mean| mean).as_bytes()).unwrap();
        let lines = edges
            .iter()
            .flat_map(|edge| edge.readouts.iter().map(|(byte, wrong)| format!("S{byte} {wrong}{}\n", edge.named)));
        let map = SoftMap::parse(&format!("soft {BYTES} 0.5\n{}", lines.collect::<String>())).unwrap();
        let model = model.with_soft(Arc::new(map)).unwrap();
        let mut own = matcher(&model);
        for _ in 0..50 {
            let mut byte = || if random.next_u64().is_multiple_of(3) { 0 } else { random.next_u64() as u8 };
            let soft: Vec<u8> = (0..BYTES).map(|_| byte()).collect();
            let wrong = |at: usize, mean: f64| match soft[at] {
                0 => mean,
                byte => 1.0 / (1.0 + 10f64.powf(f64::from(byte - 1) * 0.05)),
            };
            let made = Model::parse(text_of(&edges, wrong).as_bytes()).unwrap();
            let mut shot = SoftShot { detectors: vec![0], soft, observable: 0 };
            Sampler::new(&model, random.next_u64()).draw(&mut shot.detectors, &mut [0]);
            let (mut found, mut expected) = ([0], [0]);
            let weight = own.decode(&shot.words(), &mut found).unwrap().weight.unwrap();
            let by_made = matcher(&made).decode(&shot.detectors, &mut expected).unwrap().weight.unwrap();
            assert!((weight - by_made).abs() < 1e-5 * (1.0 + by_made.abs()), "{weight}, not {by_made}: graph {seed}");
            ties += usize::from(found != expected);
        }
    }
    assert!(ties <= 3, "{ties} predictions of 3,000 differ at equal weights");
}

#[test]
fn the_engine_answers_a_file_with_its_soft_bytes() {
    let home = beside_another();
    let mut memory = Memory::new(2);
    let (model, _) = memory.models();
    let mut matcher = matcher(&model);
    let (mut bits, mut soft, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = [0];
    for index in 0..2_000 {
        let mut shot = memory.draw();
        if index % 5 == 0 {
            shot.soft.fill(0);
        }
        bits.extend(shot.bits(model.detectors));
        soft.extend(&shot.soft);
        matcher.decode(&shot.words(), &mut found).unwrap();
        expected.push(found[0]);
    }
    let bytes = model.soft.as_ref().unwrap().bytes();
    let bits = ShotSet::read(&bits[..], Format::B8, Layout::detectors(model.detectors)).unwrap();
    let soft = ShotSet::read(&soft[..], Format::B8, Layout::detectors(8 * bytes)).unwrap();
    let (model, shots) = (Arc::new(model), Arc::new(bits.with_soft(&soft).unwrap()));
    for silos in [1, 2] {
        let mut profile = profile();
        (profile.silos, profile.hot_allocations) = (Silos::Count(silos), HotAllocations::Count);
        profile.decoders = Decoders::Count(1);
        let path = home.file("predictions.b8");
        let mut config = config(&profile, replay(&model, &shots), None);
        config.sink = Some(sink(&profile, model.observables, Some(&path), None));
        let outcome = run(config);
        assert_nothing_lost(&outcome);
        assert_eq!(outcome.snapshot.engine.decoder, "sparse-blossom with soft bytes");
        let predicted = ShotSet::read(&std::fs::read(&path).unwrap()[..], Format::B8, Layout::observables(1)).unwrap();
        assert!(predicted.iter().map(|word| word[0]).eq(expected.iter().copied()), "{silos} silos");
        for thread in &outcome.snapshot.threads {
            assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
        }
    }
}

#[test]
fn decoders_that_ignore_soft_bytes_answer_as_without_them() {
    let mut memory = Memory::new(3);
    let (model, plain) = memory.models();
    for decoder in [Decoder::Correlated, Decoder::UnionFind] {
        let of = |model: &Model| MatcherModel::of(model, decoder.clone(), Predecoder::None, Window::None).unwrap();
        let (mut own, mut other) = (of(&model).matcher(), of(&plain).matcher());
        for _ in 0..200 {
            let (shot, mut found, mut expected) = (memory.draw(), [0], [0]);
            own.decode(&shot.words(), &mut found).unwrap();
            other.decode(&shot.detectors, &mut expected).unwrap();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn what_cannot_read_soft_bytes_refuses_them_before_anything_starts() {
    let _home = beside_another();
    let (model, _) = Memory::new(4).models();
    let model = Arc::new(model);
    let shots = ShotSet::zeros(Layout::detectors(64 * model.shot_words() as u32), 1);
    let shots = Arc::new(shots);
    let plain = profile();
    let mut changed = vec![plain.clone(); 4];
    changed[0].window = Window::Some(WindowRounds { commit_rounds: 2, buffer_rounds: 2 });
    changed[1].predecoder = Predecoder::Local;
    changed[2].confidence = true;
    changed[3].deadlines.order = ShotOrder::Deadline;
    for profile in changed {
        let said = Engine::start(config(&profile, replay(&model, &shots), None)).err().unwrap().to_string();
        assert!(said.contains("the model has a map of soft bytes, which is for whole shots"), "{said}");
    }
}
