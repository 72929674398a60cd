//! The peer under a [`Case`]: a pool over bounded `crossbeam` channels.
//!
//! The feeding thread sends shots into one channel, the workers decode and send them into another,
//! and the feeding thread collects, puts each stream's answers in order, checks them, and records
//! the nine histograms (eight of a silo, one of a stream) of the same resolution as the engine's.
//! Same decoder, same arrivals, the same six stamps. As in ours, threads spin. Shots of up to three
//! words travel by value; wider ones by number, and the worker reads the set. It has no deadlines,
//! tickets or board.

use super::course::{Course, Step};
use super::{Case, Form, Found};
use crate::channels::Meter;
use crate::input::parity_of;
use crate::measure::{CLOCK, CORES, ns_per, pin_to};
use crossbeam_channel::{Receiver, Sender, bounded};
use hdrhistogram::Histogram;
use pinwheel_engine::decode::Matcher;
use pinwheel_engine::units::{Nanos, Ticks};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const BATCH: usize = 64;
const LINE_WORDS: usize = 3;
/// Longest time that the feeding thread decodes before it feeds and collects again: as a frame.
const DECODES: Nanos = Nanos(50_000);

#[derive(Clone, Copy)]
struct Shot {
    stream: u32,
    sequence: u64,
    index: usize,
    words: [u64; LINE_WORDS],
    answer: u64,
    stamps: [u64; 7],
}

/// Measures the peer of `case`'s form: two pools that share nothing for two silos.
pub fn run(case: &Case, rate_hz: Option<f64>) -> Found {
    let (own, there) = match case.form {
        Form::OneCore | Form::TwoSilos => (true, false),
        Form::OneWorker => (false, true),
        Form::TwoWorkers => (true, true),
    };
    let silos = if case.form == Form::TwoSilos { 2 } else { 1 };
    let streams = (case.streams / silos).max(1);
    let found: Vec<_> = std::thread::scope(|scope| {
        let pool = |core| scope.spawn(move || Pool::new(case, rate_hz, streams).run(core, own, there));
        let pools: Vec<_> = [CORES.here, CORES.there].into_iter().take(silos as usize).map(pool).collect();
        pools.into_iter().map(|pool| pool.join().unwrap()).collect()
    });
    let mut latency = found[0].2.clone();
    found[1..].iter().for_each(|(.., more)| latency.add(more).expect("equal bounds"));
    Found {
        ns_per_shot: 1.0 / found.iter().map(|(ns, ..)| 1.0 / ns).sum::<f64>(),
        rate_hz: found.iter().map(|(_, hz, _)| hz).sum(),
        latency_ns: [0.5, 0.99, 0.999].map(|q| latency.value_at_quantile(q) as f64),
    }
}

/// What decodes on one thread.
struct Decoder<'a> {
    case: &'a Case,
    matcher: Option<Box<dyn Matcher>>,
    observables: Vec<u64>,
}

impl<'a> Decoder<'a> {
    fn new(case: &'a Case) -> Decoder<'a> {
        let matcher = case.matching.as_ref().map(|model| model.matcher());
        Decoder { case, matcher, observables: vec![0; case.input.model.observable_words()] }
    }

    fn decode(&mut self, shot: &mut Shot) {
        shot.stamps[4] = CLOCK.ticks().0;
        let words = self.case.input.model.detector_words();
        let syndrome = if words <= LINE_WORDS { &shot.words[..words] } else { self.case.input.shots.shot(shot.index) };
        shot.answer = match &mut self.matcher {
            None => parity_of(syndrome),
            Some(matcher) => {
                matcher.decode(syndrome, &mut self.observables).expect("shots of the model can be matched");
                self.observables[0]
            }
        };
        shot.stamps[5] = CLOCK.ticks().0;
    }
}

/// The feeding thread.
struct Pool<'a> {
    case: &'a Case,
    course: Course,
    streams: u32,
    /// Rate in ticks per shot, from a time and a count on; `None`: as fast as they are taken.
    pace: Option<(Ticks, u64, f64)>,
    fed: u64,
    collected: u64,
    /// The next sequence number of each stream, and answers that wait for an earlier one.
    next: Vec<u64>,
    waiting: BTreeMap<(u32, u64), Shot>,
    meter: Meter,
}

impl<'a> Pool<'a> {
    fn new(case: &'a Case, rate_hz: Option<f64>, streams: u32) -> Pool<'a> {
        Pool {
            case,
            course: Course::new(case.plan(rate_hz)),
            streams,
            pace: None,
            fed: 0,
            collected: 0,
            next: vec![0; streams as usize],
            waiting: BTreeMap::new(),
            // One digit: as many buckets as the engine's histograms.
            meter: Meter::new(streams, 1),
        }
    }

    /// Runs the course on `core`, decoding here, on the other core, or on both.
    fn run(mut self, core: u32, own: bool, there: bool) -> (f64, f64, Histogram<u64>) {
        pin_to(core);
        let (jobs, tasks) = bounded::<Shot>(self.case.slots as usize);
        let (answers, answered) = bounded::<Shot>(self.case.slots as usize);
        let ended = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (tasks_there, answers_there, case) = (tasks.clone(), answers.clone(), self.case);
            let has_ended = Arc::clone(&ended);
            if there {
                scope.spawn(move || work(case, &tasks_there, &answers_there, &has_ended));
            }
            let mut decoder = own.then(|| Decoder::new(case));
            while self.step(&jobs) {
                if let Some(decoder) = &mut decoder {
                    self.decode(decoder, &tasks);
                }
                for _ in 0..BATCH {
                    let Ok(shot) = answered.try_recv() else { break };
                    self.collect(shot);
                }
            }
            // Relaxed: the worker only looks whether it is over.
            ended.store(true, Ordering::Relaxed);
        });
        let (ns, hz) = self.course.found();
        (ns, hz, self.meter.total().clone())
    }

    /// Follows the course and feeds what is due. Returns whether the course goes on.
    fn step(&mut self, jobs: &Sender<Shot>) -> bool {
        let now = CLOCK.ticks();
        match self.course.step(self.collected, now) {
            Step::Continue => {}
            Step::Pace(hz) => {
                self.pace = Some((now, self.fed, CLOCK.rate().ticks(Nanos(1_000_000_000)).0 as f64 / hz));
            }
            Step::Count => self.meter.total().reset(),
            Step::End => return false,
        }
        for _ in 0..BATCH {
            let is_full = self.fed - self.collected >= u64::from(self.case.slots);
            if is_full || self.fed == self.case.input.shots.len() as u64 {
                break;
            }
            let now = CLOCK.ticks();
            let due = self
                .pace
                .map_or(now, |(from, count, every)| from.plus(Ticks(((self.fed - count) as f64 * every) as u64)));
            if due > now {
                break;
            }
            let mut shot = self.draw();
            shot.stamps[0] = due.0;
            shot.stamps[1] = now.0;
            shot.stamps[2] = CLOCK.ticks().0;
            shot.stamps[3] = CLOCK.ticks().0;
            jobs.try_send(shot).expect("the channel has room for all shots in transit");
        }
        true
    }

    fn draw(&mut self) -> Shot {
        let (index, streams) = (self.fed as usize, u64::from(self.streams));
        let (stream, sequence) = ((self.fed % streams) as u32, self.fed / streams);
        self.fed += 1;
        let mut words = [0; LINE_WORDS];
        let shot = self.case.input.shots.shot(index);
        if shot.len() <= LINE_WORDS {
            words[..shot.len()].copy_from_slice(shot);
        }
        Shot { stream, sequence, index, words, answer: 0, stamps: [0; 7] }
    }

    /// Decodes and collects what waits, as long as a frame may take.
    fn decode(&mut self, decoder: &mut Decoder<'_>, tasks: &Receiver<Shot>) {
        let until = CLOCK.ticks().plus(CLOCK.rate().ticks(DECODES));
        for _ in 0..BATCH {
            let Ok(mut shot) = tasks.try_recv() else { break };
            decoder.decode(&mut shot);
            self.collect(shot);
            if shot.stamps[5] >= until.0 {
                break;
            }
        }
    }

    fn collect(&mut self, shot: Shot) {
        if self.next[shot.stream as usize] != shot.sequence {
            assert!(self.waiting.insert((shot.stream, shot.sequence), shot).is_none(), "once");
            return;
        }
        self.give(shot);
        while let Some(shot) = self.waiting.remove(&(shot.stream, self.next[shot.stream as usize])) {
            self.give(shot);
        }
    }

    /// Answers a shot that is the next of its stream.
    fn give(&mut self, mut shot: Shot) {
        let truth = self.case.input.truth.as_ref().expect("the input has its answers").shot(shot.index)[0];
        assert!(shot.answer == truth, "right");
        self.next[shot.stream as usize] += 1;
        self.collected += 1;
        shot.stamps[6] = CLOCK.ticks().0;
        self.meter.record(shot.stream, &shot.stamps);
    }
}

/// Times of `count` decodes of `case`'s shots, with their two stamps, nanoseconds.
pub fn decodes(case: &Case, count: usize) -> Vec<f64> {
    let mut pool = Pool::new(case, None, case.streams);
    let mut decoder = Decoder::new(case);
    let mut decode = |_| {
        let mut shot = pool.draw();
        let from = CLOCK.ticks();
        decoder.decode(&mut shot);
        ns_per(from, 1)
    };
    (0..count).map(&mut decode).collect()
}

/// A worker on the other core.
fn work(case: &Case, tasks: &Receiver<Shot>, answers: &Sender<Shot>, ended: &AtomicBool) {
    pin_to(CORES.there);
    let mut decoder = Decoder::new(case);
    while !ended.load(Ordering::Relaxed) {
        let Ok(mut shot) = tasks.try_recv() else {
            std::hint::spin_loop();
            continue;
        };
        decoder.decode(&mut shot);
        answers.try_send(shot).expect("the channel has room for all shots in transit");
    }
}
