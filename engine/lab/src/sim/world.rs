//! One seed's world: a silo, its clock, its scheduler.
//!
//! Owns the roles and calls one per step, chosen by the seed; time moves between steps by small draws and, rarely, by a
//! jump of a frozen machine. Bounds: see the parent.

use super::checks;
use super::neighbour::Neighbour;
use super::{RehearsalError, Rehearsed, SHOTS, STEPS_MAX, Violation};
use crate::board::snapshot::{OverflowOutcome, SiloView};
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::code::sampler::Sampler;
use crate::code::shots::{Format, Layout, ShotSet, ShotWriter};
use crate::code::{Model, bundled_named};
use crate::decode::{Matcher, MatcherModel, ReadyError};
use crate::dispatch::Answer;
use crate::feed::Share;
use crate::feed::requests::MoveRequests;
use crate::feed::source::Source;
use crate::hot::{Frame, Init, Role, Scratch, Settings};
use crate::profile::{
    Faults, FreeWorker, IssueGate, Latency, Overflow, OverflowStrategy, Placement, Predecoder, Profile, Rate,
    ReadyPolicy, StartPolicy, WindowOverflow, WindowRounds,
};
use crate::silo::{self, Answers, Attached, Common, Decoding, Silo};
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::spin::Phase;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STREAMS: u32 = 3;
/// The window of the seeds that decode by windows: three of them for the four rounds of the model.
const WINDOW: WindowRounds = WindowRounds { commit_rounds: 2, buffer_rounds: 3 };

/// What all seeds share: the model, the shots, and what each shot's answer has to be.
pub(super) struct Script {
    decodings: [(Predecoder, Decoding, Vec<Vec<u64>>); 4],
    /// Answers of the last of these to shots that come by rounds: each window is predecoded by itself.
    predecoded_by_rounds: Vec<Vec<u64>>,
    pub(super) shots: Arc<ShotSet>,
}

impl Script {
    pub(super) fn new() -> Result<Script, RehearsalError> {
        let model = Arc::new(bundled_named("surface_d3@r12").expect("it is bundled"));
        let shots = Arc::new(draw_shots(&model));
        let decoding = |predecoder, window| -> Result<_, RehearsalError> {
            let decoding = Decoding::new(Arc::clone(&model), predecoder, window)?;
            let answers = answers(&model, &decoding, window, &shots)?;
            Ok((predecoder, decoding, answers))
        };
        let (none, local) = (Predecoder::None, Predecoder::Local);
        let decodings = [
            decoding(none, None)?,
            decoding(local, None)?,
            decoding(none, Some(WINDOW))?,
            decoding(local, Some(WINDOW))?,
        ];
        let by_rounds = MatcherModel::windowed_predecoding(&model, WINDOW, local)?.matcher_by_rounds();
        let predecoded_by_rounds = answers_of(&model, &mut *by_rounds.expect("it has windows"), &shots);
        Ok(Script { decodings, predecoded_by_rounds, shots })
    }

    /// Each shot's answer by one of the ways to decode, if shots come by rounds.
    pub(super) fn expected_by_rounds(&self, draw: u64) -> &[Vec<u64>] {
        let (predecoder, _, expected) = &self.decodings[(draw % 4) as usize];
        if *predecoder == Predecoder::Local { &self.predecoded_by_rounds } else { expected }
    }

    /// One of the ways to decode, and each shot's answer by it.
    pub(super) fn decoding(&self, draw: u64) -> (Predecoder, &Decoding, &[Vec<u64>]) {
        let (predecoder, decoding, expected) = &self.decodings[(draw % 4) as usize];
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
        writer.write_shot(&detectors).expect("a Vec takes what is written");
    }
    let bytes = writer.finish().expect("a Vec takes what is written");
    ShotSet::read(bytes.as_slice(), Format::B8, layout).expect("what was written is read back")
}

fn answers(
    model: &Model,
    decoding: &Decoding,
    window: Option<WindowRounds>,
    shots: &ShotSet,
) -> Result<Vec<Vec<u64>>, RehearsalError> {
    let mut matcher = match window {
        None => MatcherModel::new(model).map_err(ReadyError::from)?.matcher(),
        Some(size) => MatcherModel::windowed(model, size)?.matcher(),
    };
    let mut predecoder = decoding.predecoder();
    let mut residual = vec![0; model.detector_words()];
    let (mut found, mut flips) = (vec![0; model.observable_words()], vec![0; model.observable_words()]);
    Ok(shots
        .iter()
        .map(|shot| {
            predecoder.predecode(shot, &mut residual, &mut flips);
            matcher.decode(&residual, &mut found).expect("shots of the model can be matched");
            found.iter().zip(&flips).map(|(found, flip)| found ^ flip).collect()
        })
        .collect())
}

fn answers_of(model: &Model, matcher: &mut dyn Matcher, shots: &ShotSet) -> Vec<Vec<u64>> {
    let mut found = vec![0; model.observable_words()];
    let answer = |shot: &[u64]| {
        matcher.decode(shot, &mut found).expect("shots of the model can be matched");
        found.clone()
    };
    shots.iter().map(answer).collect()
}

/// One seed.
pub(super) struct World<'a> {
    seed: u64,
    random: Xoshiro256PlusPlus,
    nanos: Arc<AtomicU64>,
    clock: Clock,
    board: Arc<Board>,
    silo: Silo,
    roles: Vec<Box<dyn Role>>,
    answers: Reader<Answer>,
    expected: &'a [Vec<u64>],
    answered: Vec<u32>,
    /// Of each stream: answers with an error, and the parity of all others.
    errors: [u64; STREAMS as usize],
    frames: [Vec<u64>; STREAMS as usize],
    jobs: u64,
    decoders: u64,
    steps: u64,
    scratch: Scratch,
    neighbour: Neighbour,
}

impl<'a> World<'a> {
    pub(super) fn new(script: &'a Script, seed: u64) -> Result<World<'a>, RehearsalError> {
        let Drawn { mut random, profile, decoding, expected, decoders } = Drawn::of(script, seed, 3);
        let (nanos, clock) = virtual_clock();
        let (slots, workers) = (profile.slots, profile.workers);
        let shape = Shape { threads: 1, silos: 2, slots, workers, decoders, streams: STREAMS };
        let board = Arc::new(Board::create(shape, Place::Private)?);
        let settings = draw_settings(&mut random, &profile);
        let (decoding, clock_of) = (decoding.clone(), clock.clone());
        let moves = Arc::new(MoveRequests::new(STREAMS, 1, false));
        let joints = silo::tally(&profile, &decoding.model);
        let common = Common { board: Arc::clone(&board), settings, clock: clock_of, decoding, moves, joints };
        let source = Source::Replay { shots: Arc::clone(&script.shots), observables: None };
        let share = Share::of(0, 1, STREAMS, Some(SHOTS));
        let answers = Answers::PassedOn { readers: 1 };
        let observable_words = common.decoding.model.observable_words();
        let is_greedy = random.next_u64().is_multiple_of(2);
        let (neighbour, link) = Neighbour::new(&clock, STREAMS, observable_words, is_greedy);
        let attached = Attached { links: vec![link], ..Attached::default() };
        let mut silo = silo::wire(&profile, share, decoders, source, answers, attached, &common)?;
        let mut init = Init { clock: &clock, board: &board };
        let built: Result<Vec<_>, _> = silo.specs.drain(..).map(|spec| (spec.build)(&mut init)).collect();
        let answers = silo.answers.pop().expect("answers were asked for");
        Ok(World {
            seed,
            random,
            nanos,
            clock,
            board,
            roles: built?,
            answers,
            expected,
            answered: vec![0; SHOTS as usize],
            errors: [0; STREAMS as usize],
            frames: std::array::from_fn(|_| vec![0; silo.pipe.table.geometry().observable_words as usize]),
            jobs: silo.pipe.jobs.free(),
            silo,
            decoders: u64::from(decoders),
            steps: 0,
            scratch: Scratch::new(),
            neighbour,
        })
    }

    /// What is wrong with the state of `stream`, after its last shot.
    fn misjudged(&self, stream: u32) -> Option<String> {
        let state = self.silo.states.read(stream);
        let own = |index: &u64| index % u64::from(STREAMS) == u64::from(stream);
        let shots = (0..SHOTS).filter(own).count() as u64;
        let errors = self.errors[stream as usize];
        if (state.committed, state.tombstones, &state.frame) == (shots, errors, &self.frames[stream as usize]) {
            return None;
        }
        let frame = &self.frames[stream as usize];
        Some(format!(
            "stream {stream}: found {state:?}, expected {shots} committed, {errors} tombstones, frame {frame:?}"
        ))
    }

    fn is_drained(&self) -> bool {
        board::get(&self.board.feed(0).position) == board::get(&self.board.harvest(0).position)
            && checks::in_graph(&self.silo, &self.board, self.decoders) == 0
            && checks::committed(&self.board, 0, self.decoders) == SHOTS
            && self.roles.iter().all(|role| role.is_drained())
    }

    fn run(&mut self, phase: Phase, done: impl Fn(&World<'_>) -> bool) -> Option<String> {
        while !done(self) {
            if self.steps == STEPS_MAX {
                let left: Vec<_> =
                    self.roles.iter().filter(|role| !role.is_drained()).map(|role| role.kind().name()).collect();
                let (fed, harvested) =
                    (board::get(&self.board.feed(0).position), board::get(&self.board.harvest(0).position));
                let left = left.join(" ");
                return Some(format!(
                    "not through {phase:?} after {STEPS_MAX} steps: wedged with {fed} written and {harvested} harvested; not drained: {left}"
                ));
            }
            let before = self.away();
            self.step(phase);
            if let Some((stream, committed)) = before.into_iter().find(|(stream, committed)| {
                self.silo.states.read(*stream).committed != *committed && !self.is_here(*stream)
            }) {
                return Some(format!("stream {stream} was committed beyond {committed} while its page was away"));
            }
            let broken = checks::broken(&self.silo, &self.board, self.jobs, self.decoders);
            let broken = broken.or_else(|| self.neighbour.broken(&self.silo.states));
            if let Some(what) = broken.or_else(|| self.take_answers()) {
                return Some(what);
            }
        }
        None
    }

    fn is_here(&self, stream: u32) -> bool {
        self.silo.states.pages().word(stream).is_writable()
    }

    /// Streams whose page is not here, and how far they are committed.
    fn away(&self) -> Vec<(u32, u64)> {
        let away = (0..STREAMS).filter(|stream| !self.is_here(*stream));
        away.map(|stream| (stream, self.silo.states.read(stream).committed)).collect()
    }

    fn step(&mut self, phase: Phase) {
        self.steps += 1;
        let draw = self.random.next_u64();
        // Mostly a few hundred nanoseconds; once in a thousand steps the machine stands still for 20 ms.
        let pass = if draw.is_multiple_of(1_000) { 20_000_000 } else { draw % 2_000 };
        self.nanos.fetch_add(pass, Ordering::Relaxed);
        self.neighbour.carry(&mut self.random);
        let pick = (self.random.next_u64() % (self.roles.len() as u64 + 2)) as usize;
        if pick == self.roles.len() {
            self.silo.recovery.step(self.clock.ticks(), self.clock.rate());
            return;
        }
        if pick > self.roles.len() {
            let mut split = || false;
            let frame = Frame::rehearsed(&self.clock, phase, &mut self.scratch, &mut split);
            self.neighbour.step(&frame, self.board.arbiter(1), &mut self.random);
            return;
        }
        let random = &mut self.random;
        let mut split = || random.next_u64().is_multiple_of(4);
        let mut frame = Frame::rehearsed(&self.clock, phase, &mut self.scratch, &mut split);
        let _ = self.roles[pick].work(&mut frame);
    }

    fn take_answers(&mut self) -> Option<String> {
        while let Some(answer) = self.answers.read() {
            let index = answer.sequence * u64::from(STREAMS) + u64::from(answer.stream);
            let times = self.answered.get_mut(index as usize)?;
            *times += 1;
            let expected = &self.expected[index as usize];
            let stream = answer.stream as usize;
            match answer.error {
                Some(_) => self.errors[stream] += 1,
                None if answer.observables[..expected.len()] != expected[..] => {
                    return Some(format!("the answer of shot {index} is not the decode of that shot"));
                }
                None => self.frames[stream].iter_mut().zip(expected).for_each(|(parity, word)| *parity ^= word),
            }
        }
        None
    }
}

impl Rehearsed for World<'_> {
    fn steps(&self) -> u64 {
        self.steps
    }

    fn play(&mut self) -> Option<Violation> {
        let what = self.run(Phase::Live, |world| board::get(&world.board.feed(0).exhausted) != 0);
        let what = what.or_else(|| self.run(Phase::Drain, |world| world.is_drained()));
        let what = what.or_else(|| {
            self.neighbour.rest();
            let settled = self.run(Phase::Drain, |world| world.neighbour.is_settled(&world.silo.states));
            settled.map(|what| format!("a page is lost: {what}"))
        });
        let what = what.or_else(|| {
            let harvest = self.board.harvest(0);
            let (read, consistent) = (board::get(&harvest.joint_read), board::get(&harvest.joint_consistent));
            (read != consistent).then(|| format!("of {read} joint readouts {consistent} are what both streams say"))
        });
        let what = what.or_else(|| {
            let (index, times) = self.answered.iter().enumerate().find(|(_, times)| **times != 1)?;
            Some(format!("shot {index} was answered {times} times"))
        });
        let what = what.or_else(|| (0..STREAMS).find_map(|stream| self.misjudged(stream)));
        what.map(|what| Violation { seed: self.seed, step: self.steps, what })
    }

    fn faults(&self) -> Vec<(String, u64)> {
        let snapshot = self.board.snapshot(&self.clock);
        let silo = &snapshot.silos[0];
        let counters = &silo.counters;
        let named = [
            ("late_completion", counters.late_completions),
            ("device_loss", counters.device_losses),
            ("worker_quarantined", counters.quarantined),
            ("cpu_fallback", counters.cpu_fallbacks),
            ("came_by_rounds", board::get(&self.board.dispatch(0).by_rounds)),
            ("claim_lost", counters.claims_lost),
            ("device_recovered", recovered(&snapshot)),
            ("joint_read", counters.joint_read),
            ("joint_refused", counters.joint_refused),
            ("waited", outcome(silo, OverflowOutcome::Waited)),
            ("sent_to_cpu", outcome(silo, OverflowOutcome::SentToCpu)),
        ];
        let pages = silo.arbiter.iter().flat_map(|pages| {
            let names = ["page_left", "page_back", "page_kept", "page_in_doubt"];
            names.into_iter().zip([pages.left, pages.arrived, pages.kept, pages.doubted])
        });
        let errors = silo.errors.iter().map(|error| (error.name.clone(), error.count));
        errors.chain(named.into_iter().chain(pages).map(|(name, count)| (name.to_string(), count))).collect()
    }
}

/// What every seed draws first: how it decodes, with which faults and sizes.
pub(super) struct Drawn<'a> {
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) profile: Profile,
    pub(super) decoding: &'a Decoding,
    /// Each shot's answer.
    pub(super) expected: &'a [Vec<u64>],
    pub(super) decoders: u32,
}

impl<'a> Drawn<'a> {
    /// Of `seed`, with at most so many decode workers a silo.
    pub(super) fn of(script: &'a Script, seed: u64, decoders_max: u64) -> Drawn<'a> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let way = random.next_u64();
        let (predecoder, decoding, expected) = script.decoding(way);
        let mut profile = draw_profile(&mut random, seed, predecoder);
        let decoders = 1 + (random.next_u64() % decoders_max) as u32;
        draw_graph(&mut random, &mut profile, decoders);
        profile.input.round_ns = draw_rounds(&mut random, decoding);
        let expected = if profile.input.round_ns.is_some() { script.expected_by_rounds(way) } else { expected };
        Drawn { random, profile, decoding, expected, decoders }
    }
}

/// A clock that stands where it is put. It begins after zero: a stamp of zero means "not yet".
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

/// Any strategy for shots that find no slot.
fn draw_overflow(random: &mut Xoshiro256PlusPlus) -> Overflow {
    let strategy = OverflowStrategy::ALL[(random.next_u64() % OverflowStrategy::ALL.len() as u64) as usize];
    Overflow { strategy, deadline_ms: 1, keep_shots: 1 + (random.next_u64() % 8) as u32 }
}

/// A graph of any policy, in half of the seeds with as little room as a profile may give it.
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
    graph.ready_tasks = least;
    graph.issue = match pick(4) {
        0 => IssueGate::Global(1 + pick(3) as u32),
        1 => IssueGate::PerStream(1 + pick(2) as u32),
        2 => IssueGate::PerPool(1 + pick(3) as u32),
        _ => IssueGate::Open,
    };
    graph.batch_tasks = 1 + pick(4) as u32;
}

pub(super) fn outcome(silo: &SiloView, outcome: OverflowOutcome) -> u64 {
    let counted = silo.overflow.outcomes.iter().find(|counted| counted.outcome == outcome.name());
    counted.map_or(0, |counted| counted.count)
}

fn recovered(snapshot: &crate::board::snapshot::Snapshot) -> u64 {
    let code = crate::fault::FaultCode::DeviceRecovered.number();
    snapshot.faults.iter().filter(|fault| fault.code == code).map(|fault| fault.count).sum()
}

/// Where shots are decoded by windows, they come by rounds in half of the seeds; so slowly in some that they expire on the
/// way.
fn draw_rounds(random: &mut Xoshiro256PlusPlus, decoding: &Decoding) -> Option<u32> {
    let period = [200, 2_000, 20_000, 100_000][(random.next_u64() % 4) as usize];
    let is_drawn = random.next_u64().is_multiple_of(2);
    (decoding.has_windows() && is_drawn).then_some(period)
}

/// A small silo with every kind of fault, each more or less likely.
fn draw_profile(random: &mut Xoshiro256PlusPlus, seed: u64, predecoder: Predecoder) -> Profile {
    let mut uniform = |scale: f64| scale * (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut profile = Profile::load(crate::profile::DEFAULT_NAME, None).expect("the built-in profile is sound").0;
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
    profile.device = crate::profile::Device::Sim { latency: Latency::Uniform { min_us: 0.0, max_us: 40.0 } };
    profile.free_worker = if uniform(1.0) < 0.5 { FreeWorker::AfterCopy } else { FreeWorker::AfterDecode };
    profile.predecoder = predecoder;
    profile.slots = [8, 16, 32][(uniform(3.0) as usize).min(2)];
    profile.workers = 1 + uniform(6.0) as u32;
    profile.input.streams = STREAMS;
    profile.input.rate = Rate::Max;
    profile.input.joint_every = (uniform(1.0) < 0.7).then(|| 10 + uniform(40.0) as u32);
    profile.limits.launch_deadline_us = 400;
    profile.limits.shot_deadline_us = 500 + uniform(1_500.0) as u32;
    profile
}
