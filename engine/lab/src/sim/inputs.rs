//! The inputs of one seed: the model, the shots and their answers, and all sizes and faults drawn
//! from the seed.
//!
//! Runs before the first step. Bounds: see the parent.

use super::decoder_events::DRAWN;
use super::{SHOTS, SimulationError};
use crate::clock::Clock;
use crate::code::sampler::Sampler;
use crate::code::shots::{Format, Layout, ShotSet, ShotWriter};
use crate::code::{Model, bundled_named};
use crate::decode::prepared::{Models, Prepared};
use crate::decode::{Matcher, MatcherModel, ReadyError};
use crate::hot::Settings;
use crate::profile::{
    DEFAULT_NAME, Deadlines, Decoder, DecoderKind, Device, Faults, FreeWorker, IssueGate, Latency, Overflow,
    OverflowStrategy, Placement, Predecoder, Profile, Rate, ReadyPolicy, Rescue, ShotOrder, StartPolicy,
    StreamDeadline, StreamDecoder, Window, WindowOverflow, WindowRounds,
};
use crate::silo::Decoding;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The window of seeds that decode by windows: three windows over the model's four rounds.
const WINDOW: WindowRounds = WindowRounds { commit_rounds: 2, buffer_rounds: 3 };

/// What rescues shots.
const RESCUE: Rescue = Rescue::UnionFind;

/// Ways to decode that a seed draws from.
const DECODINGS: usize = 8;

/// The correct answer of each shot.
struct Answers {
    /// If shots arrive whole.
    whole: Vec<Vec<u64>>,
    /// If they arrive by rounds: each window is predecoded separately, a stream is not.
    by_rounds: Vec<Vec<u64>>,
    /// If other decoders decode whole shots.
    others: Vec<(DecoderKind, Vec<Vec<u64>>)>,
    /// These decoders and the first one, prepared; none with windows.
    ready: Option<Prepared>,
}

/// Shared by all seeds: the model, the shots, and the correct answer of each shot.
pub(super) struct Inputs {
    decodings: [(Predecoder, Decoding, Answers); DECODINGS],
    pub(super) shots: Arc<ShotSet>,
}

impl Inputs {
    pub(super) fn new() -> Result<Inputs, SimulationError> {
        let model = Arc::new(bundled_named("surface_d3@r12").expect("it is bundled"));
        let shots = Arc::new(draw_shots(&model));
        let decoding = |predecoder, window| -> Result<_, SimulationError> {
            // Only shots with deadlines are rescued; windows have none.
            let rescue = (window == Window::None).then_some(RESCUE);
            let mut profile = Profile::load(DEFAULT_NAME, None).expect("the built-in profile is sound").0;
            profile.deadlines.rescue = rescue;
            (profile.predecoder, profile.window) = (predecoder, window);
            let decoding = Decoding::of(Arc::clone(&model), &profile)?;
            let mut answers = answers(&model, &decoding, predecoder, window, &shots)?;
            if !decoding.has_windows() {
                answers.ready = Some(ready(&decoding, profile)?);
            }
            Ok((predecoder, decoding, answers))
        };
        let (none, local) = (Predecoder::None, Predecoder::Local);
        let decodings = [
            decoding(none, Window::None)?,
            decoding(local, Window::None)?,
            decoding(none, Window::Some(WINDOW))?,
            decoding(local, Window::Some(WINDOW))?,
            decoding(none, Window::Stream(WINDOW))?,
            decoding(local, Window::Stream(WINDOW))?,
            decoding(none, Window::Blocks(4))?,
            decoding(local, Window::Blocks(4))?,
        ];
        Ok(Inputs { decodings, shots })
    }

    /// The decoding that `draw` selects, and each shot's answer by it.
    fn decoding(&self, draw: u64) -> (Predecoder, &Decoding, &Answers) {
        let (predecoder, decoding, expected) = &self.decodings[(draw % DECODINGS as u64) as usize];
        (*predecoder, decoding, expected)
    }
}

fn draw_shots(model: &Model) -> ShotSet {
    let mut sampler = Sampler::new(model, 1);
    let (mut detectors, mut observables) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
    let layout = Layout::detectors(model.detectors);
    let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
    for _ in 0..SHOTS {
        sampler.draw(&mut detectors, &mut observables);
        writer.write_shot(&detectors).expect("writing to a Vec cannot fail");
    }
    let bytes = writer.finish().expect("writing to a Vec cannot fail");
    ShotSet::read(bytes.as_slice(), Format::B8, layout).expect("the shots just written can be read")
}

fn answers(
    model: &Model,
    decoding: &Decoding,
    predecoder: Predecoder,
    window: Window,
    shots: &ShotSet,
) -> Result<Answers, SimulationError> {
    let matching = match window {
        Window::None => MatcherModel::new(model).map_err(ReadyError::from)?,
        Window::Some(size) => MatcherModel::windowed(model, size, predecoder)?,
        Window::Stream(size) => MatcherModel::streamed(model, size)?,
        Window::Blocks(rounds) => MatcherModel::in_blocks(model, rounds)?,
    };
    let by_rounds = matching.matcher_by_rounds();
    let by_rounds = by_rounds.map_or_else(Vec::new, |mut matcher| answers_of(model, &mut *matcher, shots));
    let whole = whole_answers(model, decoding, &mut *matching.matcher(), shots);
    let other = |decoder: &Decoder| -> Result<_, SimulationError> {
        let matching = MatcherModel::of(model, decoder.clone(), predecoder, window)?;
        Ok((decoder.kind(), whole_answers(model, decoding, &mut *matching.matcher(), shots)))
    };
    let others = if decoding.has_windows() { &[] } else { &DRAWN[1..] };
    let others = others.iter().map(other).collect::<Result<_, _>>()?;
    Ok(Answers { whole, by_rounds, others, ready: None })
}

/// The decoders of [`DRAWN`], prepared for whole shots.
fn ready(decoding: &Decoding, mut profile: Profile) -> Result<Prepared, ReadyError> {
    (profile.decoder, profile.input.streams) = (DRAWN[0].clone(), DRAWN.len() as u32);
    let streams = (0..).zip(&DRAWN).map(|(stream, decoder)| StreamDecoder { stream, decoder: decoder.clone() });
    profile.streams = streams.collect();
    Prepared::of(&Models::of(&decoding.model), &profile, &[])
}

fn whole_answers(model: &Model, decoding: &Decoding, matcher: &mut dyn Matcher, shots: &ShotSet) -> Vec<Vec<u64>> {
    let mut predecoder = decoding.predecoder();
    let mut residual = vec![0; model.detector_words()];
    let (mut found, mut flips) = (vec![0; model.observable_words()], vec![0; model.observable_words()]);
    let answer = |shot: &[u64]| {
        predecoder.predecode(shot, &mut residual, &mut flips);
        matcher.decode(&residual, &mut found).expect("shots of the model can be matched");
        found.iter().zip(&flips).map(|(found, flip)| found ^ flip).collect()
    };
    shots.iter().map(answer).collect()
}

fn answers_of(model: &Model, matcher: &mut dyn Matcher, shots: &ShotSet) -> Vec<Vec<u64>> {
    let mut found = vec![0; model.observable_words()];
    let answer = |shot: &[u64]| {
        matcher.decode(shot, &mut found).expect("shots of the model can be matched");
        found.clone()
    };
    shots.iter().map(answer).collect()
}

/// The first draws of a seed: decoding, faults and sizes.
pub(super) struct Drawn<'a> {
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) profile: Profile,
    pub(super) decoding: &'a Decoding,
    /// Each shot's correct answer.
    pub(super) expected: &'a [Vec<u64>],
    /// Each shot's correct answer by other decoders, if shots are whole.
    pub(super) others: &'a [(DecoderKind, Vec<Vec<u64>>)],
    /// The decoders of `others` and the first one, prepared, if shots are whole.
    pub(super) ready: Option<&'a Prepared>,
    pub(super) decoders: u32,
}

impl<'a> Drawn<'a> {
    /// Draws them from `seed`, with at most `decoders_max` decode workers a silo.
    pub(super) fn of(inputs: &'a Inputs, seed: u64, decoders_max: u64) -> Drawn<'a> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let way = random.next_u64();
        let (predecoder, decoding, answers) = inputs.decoding(way);
        let mut profile = draw_profile(&mut random, seed, predecoder);
        let decoders = 1 + (random.next_u64() % decoders_max) as u32;
        draw_graph(&mut random, &mut profile, decoders);
        profile.input.round_ns = draw_rounds(&mut random, decoding);
        draw_deadlines(seed, decoding, &mut profile);
        let expected = if profile.input.round_ns.is_some() { &answers.by_rounds } else { &answers.whole };
        Drawn { random, profile, decoding, expected, others: &answers.others, ready: answers.ready.as_ref(), decoders }
    }
}

/// A clock that is set by hand. It begins after zero: a timestamp of zero means "not yet".
pub(super) fn virtual_clock() -> (Arc<AtomicU64>, Clock) {
    let nanos = Arc::new(AtomicU64::new(1_000_000));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    (nanos, clock)
}

/// Live limits, with a rate in half of the seeds.
pub(super) fn draw_settings(random: &mut Xoshiro256PlusPlus, profile: &Profile) -> Arc<Settings> {
    let settings = Arc::new(Settings::new(&profile.limits));
    settings.set_rate_hz((!random.next_u64().is_multiple_of(2)).then_some(50_000.0));
    settings.set_overflow(&draw_overflow(random));
    settings
}

/// Draws the strategy for shots that find no free slot.
fn draw_overflow(random: &mut Xoshiro256PlusPlus) -> Overflow {
    let strategy = OverflowStrategy::ALL[(random.next_u64() % OverflowStrategy::ALL.len() as u64) as usize];
    Overflow { strategy, deadline_ms: 1, keep_shots: 1 + (random.next_u64() % 8) as u32 }
}

/// Draws the policy of the task graph, in half of the seeds with the smallest capacity a profile
/// allows.
fn draw_graph(random: &mut Xoshiro256PlusPlus, profile: &mut Profile, decoders: u32) {
    let mut pick = |count: u64| random.next_u64() % count;
    let graph = &mut profile.graph;
    let least = profile.slots + profile.workers + decoders;
    graph.ready =
        [ReadyPolicy::Auto, ReadyPolicy::Fifo, ReadyPolicy::FifoPerStream, ReadyPolicy::WorkSteal][pick(4) as usize];
    graph.placement = if pick(2) == 0 { Placement::Releaser } else { Placement::ByStream };
    graph.start = if pick(2) == 0 { StartPolicy::Immediate } else { StartPolicy::Threshold(1 + pick(8) as u32) };
    graph.overflow = if pick(4) == 0 { WindowOverflow::Abort } else { WindowOverflow::Stall };
    graph.window_tasks = if pick(2) == 0 { least } else { 8_192 };
    graph.issue = match pick(4) {
        0 => IssueGate::Global(1 + pick(3) as u32),
        1 => IssueGate::PerStream(1 + pick(2) as u32),
        2 => IssueGate::PerPool(1 + pick(3) as u32),
        _ => IssueGate::Open,
    };
    graph.batch_tasks = 1 + pick(4) as u32;
}

/// With decoding by windows, shots arrive by rounds in half of the seeds; in some so slowly that
/// they expire before the last round.
fn draw_rounds(random: &mut Xoshiro256PlusPlus, decoding: &Decoding) -> Option<u32> {
    let period = [200, 2_000, 20_000, 100_000][(random.next_u64() % 4) as usize];
    let is_drawn = random.next_u64().is_multiple_of(2);
    (decoding.has_windows() && is_drawn).then_some(period)
}

/// In half of the seeds whose shots are decoded whole, deadlines: the first stream's is nearer.
fn draw_deadlines(seed: u64, decoding: &Decoding, profile: &mut Profile) {
    if decoding.has_windows() || (seed / 2).is_multiple_of(2) {
        return;
    }
    profile.deadlines = Deadlines {
        order: ShotOrder::Deadline,
        rescue: Some(RESCUE),
        answer_us: Some(profile.limits.shot_deadline_us / 2),
        streams: vec![StreamDeadline { stream: 0, answer_us: 20 }],
    };
}

/// A small silo with every kind of fault, at drawn probabilities.
fn draw_profile(random: &mut Xoshiro256PlusPlus, seed: u64, predecoder: Predecoder) -> Profile {
    let mut uniform = |scale: f64| scale * (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut profile = Profile::load(DEFAULT_NAME, None).expect("the built-in profile is sound").0;
    profile.faults = Faults {
        seed,
        not_started: uniform(0.05),
        unknown: uniform(0.05),
        never_ready: uniform(0.02),
        late_ready: uniform(0.05),
        inside_launch: uniform(0.2),
        late_by_us: 600,
        lose_device_every: (uniform(1.0) < 0.5).then_some(400),
        recover_after_ms: 1,
        decoder_panic: uniform(0.02),
        bad_address: uniform(0.02),
        role_panic: None,
        role_allocation: None,
    };
    profile.device = Device::Sim { latency: Latency::Uniform { min_us: 0.0, max_us: 40.0 } };
    if (seed / 4) % 4 == 1 {
        let Faults { seed, decoder_panic, bad_address, .. } = profile.faults;
        profile.device = Device::None;
        profile.faults = Faults { seed, decoder_panic, bad_address, ..Faults::default() };
    }
    profile.free_worker = if uniform(1.0) < 0.5 { FreeWorker::AfterCopy } else { FreeWorker::AfterDecode };
    profile.predecoder = predecoder;
    profile.slots = [8, 16, 32][(uniform(3.0) as usize).min(2)];
    profile.workers = 1 + uniform(6.0) as u32;
    profile.input.rate = Rate::Max;
    profile.input.joint_every = (uniform(1.0) < 0.7).then(|| 10 + uniform(40.0) as u32);
    profile.limits.launch_deadline_us = 400;
    profile.limits.shot_deadline_us = 500 + uniform(1_500.0) as u32;
    profile
}
