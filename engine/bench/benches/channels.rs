//! The peer of the path: the same work over bounded `crossbeam` channels.
//!
//! feed → jobs → dispatch → device → ready → pool → answers → collector; each arrow is a bounded
//! channel that carries the shot by value. As in ours, the null device and the null decoder copy
//! the shot and answer its parity. With two threads the feeder launches each shot as it takes it,
//! so that one channel leads to the pool and one back.
//!
//! Each form runs bare or measured. A measured one reads the clock five times a shot for the six
//! stamps (arrival and submission share a reading, and so do the decoder's begin and its answer)
//! and records nine histograms a shot.

use super::input::{Input, parity_of};
use super::measure::{CLOCK, CORES, median, ns_per, pin_to};
use super::roles::STREAMS;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use hdrhistogram::Histogram;
use pinwheel_engine::units::Ticks;

/// Words of a shot of the d=5 model.
const WORDS: usize = 2;
const CAPACITY: usize = 1024;
const BATCH: usize = 64;
const WINDOW: u64 = 2_048;

/// A shot in transit; `stamps` stay zero without measurement.
#[derive(Clone, Copy)]
struct Shot {
    stream: u32,
    sequence: u64,
    syndrome: [u64; WORDS],
    truth: u64,
    answer: u64,
    stamps: [u64; 7],
}

/// The measured peer's histograms, as many as the harvester's: of stages and of streams.
pub struct Meter {
    stages: Vec<Histogram<u64>>,
    streams: Vec<Histogram<u64>>,
}

/// Index of the histogram of latencies.
const TOTAL: usize = 6;

impl Meter {
    /// Creates empty histograms of `digits` significant digits.
    pub fn new(streams: u32, digits: u8) -> Meter {
        let histogram = || Histogram::new_with_bounds(1, 60_000_000_000, digits).unwrap();
        Meter { stages: (0..8).map(|_| histogram()).collect(), streams: (0..streams).map(|_| histogram()).collect() }
    }

    /// The histogram of latencies.
    pub fn total(&mut self) -> &mut Histogram<u64> {
        &mut self.stages[TOTAL]
    }

    /// Records the stamps of a shot of `stream`.
    pub fn record(&mut self, stream: u32, stamps: &[u64; 7]) {
        // Two cores' clocks may differ by a little: a span is then 0, as in ours.
        let ticks = |from: usize, to: usize| Ticks(stamps[to]).since(Ticks(stamps[from]));
        let span = |from: usize, to: usize| CLOCK.rate().nanos(ticks(from, to)).0.max(1);
        for stage in 0..TOTAL {
            self.stages[stage].saturating_record(span(stage, stage + 1));
        }
        self.stages[TOTAL].saturating_record(span(0, 6));
        self.stages[7].saturating_record(span(1, 6));
        self.streams[stream as usize].saturating_record(span(0, 6));
    }
}

/// Feeds the shots and checks the answers.
struct Ends<'a> {
    input: &'a Input,
    fed: u64,
    next: [u64; STREAMS as usize],
    collected: u64,
}

impl<'a> Ends<'a> {
    fn new(input: &'a Input) -> Ends<'a> {
        assert_eq!(input.model.detector_words(), WORDS, "the peer carries shots of this width by value");
        Ends { input, fed: 0, next: [0; STREAMS as usize], collected: 0 }
    }

    fn shots(&self) -> u64 {
        self.input.shots.len() as u64
    }

    fn next(&mut self) -> Option<Shot> {
        if self.fed == self.shots() {
            return None;
        }
        let (index, stream) = (self.fed as usize, (self.fed % u64::from(STREAMS)) as u32);
        self.fed += 1;
        let mut syndrome = [0; WORDS];
        syndrome.copy_from_slice(self.input.shots.shot(index));
        let truth = self.input.truth.as_ref().expect("the input has its parities").shot(index)[0];
        let sequence = index as u64 / u64::from(STREAMS);
        Some(Shot { stream, sequence, syndrome, truth, answer: 0, stamps: [0; 7] })
    }

    fn collect(&mut self, shot: &Shot) {
        let next = &mut self.next[shot.stream as usize];
        assert!(*next == shot.sequence && shot.answer == shot.truth, "in order, once, and right");
        *next += 1;
        self.collected += 1;
    }
}

fn stamp(shot: &mut Shot, stages: std::ops::Range<usize>, measures: bool) {
    if measures {
        let now = CLOCK.ticks().0;
        shot.stamps[stages].fill(now);
    }
}

/// Moves at most a batch from one channel to the next.
fn step(from: &Receiver<Shot>, to: &Sender<Shot>, mut work: impl FnMut(&mut Shot)) {
    for _ in 0..BATCH {
        let Ok(mut shot) = from.try_recv() else { break };
        work(&mut shot);
        to.try_send(shot).expect("every channel has room for all shots in transit");
    }
}

/// Runs all steps on one thread, 64 shots at a time; returns nanoseconds per shot of the median
/// window.
pub fn one_core(input: &Input, mut meter: Option<Meter>) -> f64 {
    let (jobs, arrived) = bounded(CAPACITY);
    let (launch, launched) = bounded(CAPACITY);
    let (ready, tasks) = bounded(CAPACITY);
    let (answers, answered) = bounded(CAPACITY);
    let mut ends = Ends::new(input);
    let measures = meter.is_some();
    let (mut windows, mut from, mut collected) = (Vec::new(), CLOCK.ticks(), 0);
    while ends.collected < ends.shots() {
        for _ in 0..BATCH {
            let Some(mut shot) = ends.next() else { break };
            stamp(&mut shot, 0..2, measures);
            jobs.try_send(shot).expect("every channel has room for all shots in transit");
        }
        step(&arrived, &launch, |shot| stamp(shot, 2..3, measures));
        step(&launched, &ready, |shot| stamp(shot, 3..4, measures));
        step(&tasks, &answers, |shot| {
            shot.answer = parity_of(&shot.syndrome);
            stamp(shot, 4..6, measures);
        });
        for _ in 0..BATCH {
            let Ok(mut shot) = answered.try_recv() else { break };
            ends.collect(&shot);
            if let Some(meter) = &mut meter {
                stamp(&mut shot, 6..7, true);
                meter.record(shot.stream, &shot.stamps);
            }
        }
        if ends.collected - collected >= WINDOW {
            windows.push(ns_per(from, ends.collected - collected));
            (from, collected) = (CLOCK.ticks(), ends.collected);
        }
    }
    median(&windows)
}

/// Feeds and collects on one core, with a pool of one worker on the other; returns nanoseconds per
/// shot.
pub fn pool(input: &Input, mut meter: Option<Meter>) -> f64 {
    let (jobs, tasks) = bounded::<Shot>(CAPACITY);
    let (answers, answered) = bounded::<Shot>(CAPACITY);
    let measures = meter.is_some();
    let worker = std::thread::spawn(move || {
        pin_to(CORES.there);
        while let Ok(mut shot) = tasks.recv() {
            shot.answer = parity_of(&shot.syndrome);
            stamp(&mut shot, 4..6, measures);
            if answers.send(shot).is_err() {
                break;
            }
        }
    });
    let mut ends = Ends::new(input);
    let mut held = None;
    let from = CLOCK.ticks();
    while ends.collected < ends.shots() {
        for _ in 0..BATCH {
            let fed = || {
                let mut shot = ends.next()?;
                stamp(&mut shot, 0..2, measures);
                stamp(&mut shot, 2..3, measures);
                stamp(&mut shot, 3..4, measures);
                Some(shot)
            };
            let Some(shot) = held.take().or_else(fed) else { break };
            if let Err(refused) = jobs.try_send(shot) {
                held = Some(refused.into_inner());
                break;
            }
        }
        loop {
            match answered.try_recv() {
                Ok(mut shot) => {
                    ends.collect(&shot);
                    if let Some(meter) = &mut meter {
                        stamp(&mut shot, 6..7, true);
                        meter.record(shot.stream, &shot.stamps);
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => panic!("the pool left early"),
            }
        }
        if held.is_some() || ends.fed == ends.shots() {
            std::thread::yield_now();
        }
    }
    let found = ns_per(from, ends.shots());
    drop(jobs);
    worker.join().unwrap();
    found
}
