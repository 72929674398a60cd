//! Deadlines under overload, in virtual time: the real roles and decoders of one silo, with decode times that
//! were recorded.
//!
//! One decode worker with a clock of its own. It decodes a shot as soon as it is free, and its clock then shows
//! when the decode has ended; the other roles take no time. Arrivals are drawn from a seed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "harness")]

use super::{Answers, Attached, Common, Decoding, wire};
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::code::sampler::Sampler;
use crate::code::{Model, bundled_named};
use crate::decode::prepared::Prepared;
use crate::decode::{DecodeError, Decoded, Matcher, MatcherModel};
use crate::feed::Share;
use crate::feed::requests::MoveRequests;
use crate::feed::source::Source;
use crate::feed::stage::{StageFill, stage};
use crate::hot::{Frame, Init, Role, Scratch, Settings};
use crate::pipe::Answer;
use crate::profile::{
    Deadlines, Decoder, Device, Latency, Predecoder, Profile, Rescue, ShotOrder, Silos, StreamDeadline, Window,
};
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::Phase;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The model: a surface code of distance 5 over 25 rounds, p = 0.005.
const MODEL: &str = "surface_d5@r25";
/// Detection events of the first row of [`TIMES_NS`], and of one row.
const FIRST_EVENTS: u32 = 12;
const EVENTS_A_ROW: u32 = 4;
/// Recorded times of 60,000 decodes of [`MODEL`], release build: at 10, 30, 50, 70 and 90 % of the shots of a row,
/// ns, of matching and of union-find.
#[rustfmt::skip]
const TIMES_NS: [([u64; 5], [u64; 5]); 18] = [
    ([480, 540, 590, 690, 1030], [590, 620, 650, 720, 860]),
    ([590, 690, 800, 930, 1300], [690, 750, 830, 1000, 1300]),
    ([810, 970, 1170, 1440, 1980], [840, 950, 1080, 1260, 1580]),
    ([1020, 1320, 1570, 1970, 2700], [990, 1120, 1270, 1480, 1870]),
    ([1480, 1840, 2190, 2650, 3520], [1180, 1340, 1520, 1750, 2170]),
    ([1960, 2370, 2790, 3360, 4400], [1370, 1560, 1760, 2020, 2470]),
    ([2420, 2900, 3390, 4030, 5210], [1580, 1780, 2010, 2300, 2790]),
    ([2870, 3420, 3990, 4710, 6030], [1790, 2030, 2270, 2590, 3140]),
    ([3320, 3970, 4590, 5380, 6880], [2010, 2280, 2550, 2900, 3500]),
    ([3740, 4460, 5180, 6080, 7680], [2230, 2530, 2830, 3200, 3860]),
    ([4180, 4960, 5740, 6710, 8620], [2460, 2780, 3080, 3500, 4230]),
    ([4670, 5540, 6350, 7440, 9290], [2710, 3050, 3400, 3820, 4560]),
    ([5120, 6030, 7010, 8000, 10040], [2960, 3300, 3680, 4120, 4910]),
    ([5660, 6670, 7700, 8720, 11180], [3200, 3600, 3990, 4420, 5310]),
    ([6190, 7360, 8440, 9670, 12350], [3500, 3890, 4300, 4830, 5790]),
    ([6820, 8000, 8970, 10510, 12900], [3830, 4180, 4580, 5060, 6290]),
    ([7740, 8690, 9940, 11080, 14320], [4210, 4620, 4930, 5310, 7020]),
    ([8820, 9310, 10560, 11420, 13300], [4550, 4820, 5430, 5820, 6440]),
];
/// All times are this many times as long, so that each decode fills a frame of its worker.
const SCALE: u64 = 100;
/// Mean of the recorded times of matching, scaled.
const MEAN_NS: f64 = 4_632.0 * SCALE as f64;
const LOAD: f64 = 1.2;
/// A decoder's first decode takes this many times as long as recorded.
const FIRST: u64 = 20;
const SHOTS: usize = 2_000;
const SEEDS: u64 = 20;

fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// A matcher whose decodes take recorded times on the clock that shows `nanos`.
struct Timed {
    matcher: Box<dyn Matcher>,
    is_rescue: bool,
    nanos: Arc<AtomicU64>,
    random: Xoshiro256PlusPlus,
    has_decoded: bool,
}

impl Matcher for Timed {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let events: u32 = syndrome.iter().map(|word| word.count_ones()).sum();
        let row = (events.saturating_sub(FIRST_EVENTS) / EVENTS_A_ROW).min(TIMES_NS.len() as u32 - 1);
        let (own, rescue) = TIMES_NS[row as usize];
        let times = if self.is_rescue { rescue } else { own };
        let took = times[(uniform(&mut self.random) * times.len() as f64) as usize];
        // The caches are cold, or the thread is interrupted.
        let took = if std::mem::replace(&mut self.has_decoded, true) { took } else { took * FIRST };
        self.nanos.fetch_add(took * SCALE, Ordering::Relaxed);
        self.matcher.decode(syndrome, observables)
    }

    fn bytes(&self) -> usize {
        self.matcher.bytes()
    }
}

fn timed(model: &Model, decoder: Decoder, nanos: &Arc<AtomicU64>, seed: u64) -> MatcherModel {
    let is_rescue = decoder == Decoder::UnionFind;
    let (matching, nanos) = (MatcherModel::of(model, decoder, Predecoder::None, Window::None).unwrap(), nanos.clone());
    MatcherModel::made_by(Arc::new(move || {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(is_rescue));
        Box::new(Timed { matcher: matching.matcher(), is_rescue, nanos: nanos.clone(), random, has_decoded: false })
    }))
}

/// What became of shots.
#[derive(Default)]
struct Found {
    /// Of each shot whether its answer was wrong; `None`: it was refused.
    wrong: Vec<Option<bool>>,
    missed: u64,
    refused: u64,
    rescued: u64,
}

impl Found {
    fn add(&mut self, other: Found) {
        self.wrong.extend(other.wrong);
        self.missed += other.missed;
        self.refused += other.refused;
        self.rescued += other.rescued;
    }

    fn share(&self, shots: u64) -> f64 {
        shots as f64 / self.wrong.len() as f64
    }

    /// The logical error rate of the shots that were answered.
    fn error_rate(&self) -> f64 {
        let answered: Vec<bool> = self.wrong.iter().filter_map(|wrong| *wrong).collect();
        answered.iter().filter(|wrong| **wrong).count() as f64 / answered.len() as f64
    }

    /// Logical errors, divided by those of `other` on the shots that have an answer here.
    fn errors_beside(&self, other: &Found) -> f64 {
        let both = self.wrong.iter().zip(&other.wrong).filter_map(|(own, other)| Some(((*own)?, (*other)?)));
        let (own, other) =
            both.fold((0, 0), |(own, other), wrong| (own + u32::from(wrong.0), other + u32::from(wrong.1)));
        f64::from(own) / f64::from(other)
    }
}

/// One silo, with its clocks.
struct World {
    board: Arc<Board>,
    settings: Arc<Settings>,
    clock: Clock,
    nanos: Arc<AtomicU64>,
    worker_clock: Clock,
    worker_nanos: Arc<AtomicU64>,
    /// Feed, dispatch, device and poll; graph and harvest; decode.
    path: Vec<Box<dyn Role>>,
    ends: Vec<Box<dyn Role>>,
    worker: Box<dyn Role>,
    fill: StageFill,
    answers: Reader<Answer>,
    scratch: Scratch,
}

impl World {
    /// `deadlines`: of each stream, in mean decodes.
    fn new(model: &Arc<Model>, (order, rescue): (ShotOrder, Option<Rescue>), deadlines: &[f64], seed: u64) -> World {
        let mut profile = Profile::load("lab", None).unwrap().0;
        profile.silos = Silos::Count(1);
        profile.slots = 1024;
        profile.device = Device::Sim { latency: Latency::None };
        profile.input.streams = deadlines.len() as u32;
        profile.input.joint_every = None;
        let streams = (0..).zip(deadlines);
        let streams = streams.map(|(stream, of)| StreamDeadline { stream, answer_us: (of * MEAN_NS / 1e3) as u32 });
        profile.deadlines = Deadlines { order, rescue, answer_us: None, streams: streams.collect() };
        assert_eq!(profile.validate(), []);
        let start = 1_000_000;
        let (nanos, worker_nanos) = (Arc::new(AtomicU64::new(start)), Arc::new(AtomicU64::new(start)));
        let (clock, worker_clock) =
            (Clock::virtual_time(Arc::clone(&nanos)), Clock::virtual_time(Arc::clone(&worker_nanos)));
        let own = timed(model, Decoder::Matching, &worker_nanos, seed);
        let rescue = rescue.map(|rescue| (rescue, timed(model, Decoder::UnionFind, &worker_nanos, seed)));
        let prepared = Prepared::with_rescue(Decoder::Matching, own, rescue);
        let decoding = Decoding::with(Arc::clone(model), prepared, Predecoder::None).unwrap();
        let streams = profile.input.streams;
        let shape =
            Shape { threads: 1, silos: 1, slots: profile.slots, workers: profile.workers, decoders: 1, streams };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        let settings = Arc::new(Settings::new(&profile.limits));
        let common = Common {
            board: Arc::clone(&board),
            settings: Arc::clone(&settings),
            clock: clock.clone(),
            decoders: decoding.changes(),
            decoding,
            moves: Arc::new(MoveRequests::new(streams, 1, false)),
            joints: None,
        };
        let (fill, end) = stage(model.detector_words());
        let (share, passed_on) = (Share::of(0, 1, streams, None), Answers::PassedOn { readers: 1 });
        let silo = wire(&profile, share, 1, Source::Stage(end), passed_on, Attached::default(), &common).unwrap();
        let mut init = Init { clock: &clock, board: &board };
        let mut roles: Vec<Box<dyn Role>> =
            silo.specs.into_iter().map(|spec| (spec.build)(&mut init).unwrap()).collect();
        let worker = roles.pop().unwrap();
        let ends = roles.split_off(4);
        let answers = silo.answers.into_iter().next().unwrap();
        let scratch = Scratch::new();
        World {
            board,
            settings,
            clock,
            nanos,
            worker_clock,
            worker_nanos,
            path: roles,
            ends,
            worker,
            fill,
            answers,
            scratch,
        }
    }

    fn call(roles: &mut [Box<dyn Role>], clock: &Clock, scratch: &mut Scratch) {
        for role in roles {
            let _ = role.work(&mut Frame::new(clock, clock.ticks(), Phase::Live, scratch));
        }
    }

    /// The worker is free at `now`: takes its results, and gives it its next shot. Returns when it is free
    /// again.
    fn decode(&mut self, now: u64) -> u64 {
        World::call(&mut self.ends, &self.clock, &mut self.scratch);
        self.worker_nanos.store(now, Ordering::Relaxed);
        let mut frame = Frame::new(&self.worker_clock, self.worker_clock.ticks(), Phase::Live, &mut self.scratch);
        let _ = self.worker.work(&mut frame);
        self.worker_nanos.load(Ordering::Relaxed)
    }

    /// Decodes [`SHOTS`] shots drawn from `seed`.
    fn run(&mut self, model: &Model, seed: u64) -> Found {
        let mut sampler = Sampler::new(model, seed);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(!seed);
        let (mut detectors, mut truths) = (vec![0; model.detector_words()], Vec::with_capacity(SHOTS));
        let streams = self.board.shape().streams;
        let start = self.nanos.load(Ordering::Relaxed);
        let mut found = Found { wrong: vec![None; SHOTS], ..Found::default() };
        let (mut arrival, mut free_at, mut answered) = (start as f64, start, 0);
        while answered < SHOTS {
            let has_more = truths.len() < SHOTS;
            // The next arrival, or the end of the decode under way.
            let now = self.nanos.load(Ordering::Relaxed);
            let next = if has_more && (free_at <= now || arrival < free_at as f64) { arrival as u64 } else { free_at };
            self.nanos.store(next.max(now), Ordering::Relaxed);
            if has_more && arrival as u64 <= next {
                let mut truth = vec![0; model.observable_words()];
                sampler.draw(&mut detectors, &mut truth);
                assert!(self.fill.offer(&detectors));
                truths.push(truth);
                arrival -= uniform(&mut random).ln() * MEAN_NS / LOAD;
                (0..2).for_each(|_| World::call(&mut self.path, &self.clock, &mut self.scratch));
            }
            let now = self.nanos.load(Ordering::Relaxed);
            if free_at <= now {
                free_at = self.decode(now);
            }
            while let Some(answer) = self.answers.read() {
                let index = answer.sequence * u64::from(streams) + u64::from(answer.stream);
                let truth = &truths[index as usize];
                answered += 1;
                assert!(answer.error.is_none_or(|error| error == ErrorCode::DeadlineTooNear), "{answer:?}");
                found.wrong[index as usize] =
                    answer.error.is_none().then(|| answer.observables[..truth.len()] != truth[..]);
            }
        }
        for stream in 0..streams {
            let block = self.board.stream_harvest(stream as usize);
            found.missed += board::get(&block.missed);
            found.refused += board::get(&block.refused);
            found.rescued += board::get(&block.rescued);
        }
        found
    }
}

/// All seeds with these settings.
fn simulated(model: &Arc<Model>, how: (ShotOrder, Option<Rescue>), deadlines: &[f64]) -> Found {
    let mut all = Found::default();
    for seed in 0..SEEDS {
        all.add(World::new(model, how, deadlines, seed).run(model, seed));
    }
    all
}

/// Both orders beside each other, `deadlines` in mean decodes.
fn check(deadlines: &[f64]) {
    let model = Arc::new(bundled_named(MODEL).unwrap());
    let fifo = simulated(&model, (ShotOrder::Fifo, None), deadlines);
    let kept = simulated(&model, (ShotOrder::Deadline, Some(Rescue::UnionFind)), deadlines);
    let (refused, rescued) = (kept.share(kept.refused), kept.share(kept.rescued));
    let (misses, misses_before) = (kept.share(kept.missed), fifo.share(fifo.missed));
    let (rises, rises_beside) = (kept.error_rate() / fifo.error_rate(), kept.errors_beside(&fifo));
    println!(
        "{deadlines:?}: missed {misses:.4}, {misses_before:.4} first in, first out; refused {refused:.4}, rescued \
         {rescued:.4}; logical error rate {rises:.3} times, {rises_beside:.3} times on the same shots"
    );
    assert!(kept.refused > 0 && kept.rescued > 0 && fifo.refused + fifo.rescued == 0);
    assert!(misses <= 0.1 * misses_before);
    assert!(rises <= 1.05 && rises_beside <= 1.05);
}

#[test]
fn at_120_percent_load_misses_fall_to_a_tenth_and_few_logical_errors_are_added() {
    check(&[4.0]);
}

#[test]
fn of_two_streams_the_one_with_the_nearer_deadline_comes_first() {
    check(&[3.0, 9.0]);
}

/// The rescue decoder tells none.
#[test]
fn an_answer_of_the_rescue_decoder_abstains_where_small_gaps_do() {
    let model = Arc::new(bundled_named(MODEL).unwrap());
    for below in [Some(1), None] {
        let mut world = World::new(&model, (ShotOrder::Deadline, Some(Rescue::UnionFind)), &[4.0], 0);
        world.settings.set_abstain_below_db(below);
        let found = world.run(&model, 0);
        let abstained = board::get(&world.board.harvest(0).abstained);
        assert!(
            found.rescued > 0 && abstained == below.map_or(0, |_| found.rescued),
            "{abstained} of {}",
            found.rescued
        );
    }
}
