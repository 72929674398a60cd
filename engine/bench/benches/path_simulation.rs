//! A simulation of the path of whole shots over more cores than there are, in virtual time.
//!
//! One thread feeds, assigns, commits and harvests in frames; each decode worker has a core of its
//! own, or decodes on that thread ([`Setting::workers`] is 0). All times are constants that a
//! benchmark has measured on few cores ([`Costs`]); only their order in time is computed. Silos
//! share no line on the path, so a silo is simulated alone. Pure and deterministic. Bounds: the
//! shots of a [`Setting`].
//!
//! # What it leaves out
//! The order of a stream's answers, memory bandwidth, a line that takes longer between distant
//! cores, and preemption. Its throughput is therefore an upper bound beyond the measured cores.

use std::collections::VecDeque;

/// Most shots that a step of a frame handles, and most results on their way from one worker.
const BATCH: usize = 64;
/// Most shots on their way to one worker, and to each of several: as `pipe::lanes`.
const DEPTH_MAX: usize = 64;
const DEPTH_MIN: usize = 2;
/// With several workers: time of decoding that waits at each, ns.
const LANE_NS: f64 = 2_000.0;

/// Measured times, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// A frame without work.
    pub frame_ns: f64,
    /// Feed, dispatch, poll and assignment of one shot.
    pub front_ns: f64,
    /// Commit and harvest of one shot.
    pub back_ns: f64,
    /// Times of decodes, taken in turn; at least one.
    pub decode_ns: Vec<f64>,
    /// What a thread that reads a line pays if another core wrote it.
    pub line_ns: f64,
    /// Lines that a shot takes to its worker; as many come back.
    pub lines: f64,
    /// The workers take shots from one queue: its head goes from worker to worker with each shot.
    pub is_one_queue: bool,
    /// Slots: most shots between feed and harvest.
    pub slots: usize,
}

/// The size of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Decode workers with a core of their own; 0: the only thread decodes too.
    pub workers: usize,
    /// Evenly spaced arrivals per second; `None`: as fast as slots come free.
    pub rate_hz: Option<f64>,
    pub shots: usize,
}

/// The result of a simulation, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Mean time between two answers.
    pub ns_per_shot: f64,
    /// Quantiles of the latency, from scheduled arrival to harvest: 50 %, 99 %, 99.9 %.
    pub latency_ns: [f64; 3],
}

/// A decode worker: the shots on their way through it, each with its arrival and the end of its
/// decode.
#[derive(Default)]
struct Worker {
    shots: VecDeque<(f64, f64)>,
    free_at: f64,
}

struct World<'a> {
    costs: &'a Costs,
    /// Time of the path's thread.
    now: f64,
    arrivals: Arrivals,
    /// Arrivals of shots that wait for a worker.
    ready: VecDeque<f64>,
    workers: Vec<Worker>,
    depth: usize,
    /// When the head of the only queue is free.
    head_free_at: f64,
    assigned: usize,
    latencies: Vec<f64>,
}

struct Arrivals {
    every_ns: Option<f64>,
    fed: usize,
    shots: usize,
}

impl Arrivals {
    /// Arrival of the next shot, if it arrives at all.
    fn next(&self, now: f64) -> Option<f64> {
        (self.fed < self.shots).then(|| self.every_ns.map_or(now, |every| self.fed as f64 * every))
    }
}

/// Simulates `setting` with `costs`.
///
/// # Panics
/// If there is no shot, no slot, or no time of a decode.
pub fn play(costs: &Costs, setting: Setting) -> Course {
    assert!(setting.shots > 0 && costs.slots > 0 && !costs.decode_ns.is_empty(), "an empty simulation");
    let mean = costs.decode_ns.iter().sum::<f64>() / costs.decode_ns.len() as f64;
    let depth = match setting.workers {
        _ if costs.is_one_queue => costs.slots,
        0 | 1 => DEPTH_MAX,
        _ => ((LANE_NS / mean.max(1.0)) as usize).clamp(DEPTH_MIN, DEPTH_MAX),
    };
    let every_ns = setting.rate_hz.map(|hz| 1e9 / hz.max(1e-9));
    let mut workers = Vec::with_capacity(setting.workers);
    workers.resize_with(setting.workers, Worker::default);
    let mut world = World {
        costs,
        now: 0.0,
        arrivals: Arrivals { every_ns, fed: 0, shots: setting.shots },
        ready: VecDeque::with_capacity(costs.slots),
        workers,
        depth,
        head_free_at: 0.0,
        assigned: 0,
        latencies: Vec::with_capacity(setting.shots),
    };
    while world.latencies.len() < setting.shots {
        world.frame();
    }
    let ns_per_shot = world.now / setting.shots as f64;
    let mut latencies = world.latencies;
    latencies.sort_by(f64::total_cmp);
    let quantile = |q: f64| latencies[((q * latencies.len() as f64).ceil() as usize).clamp(1, latencies.len()) - 1];
    Course { ns_per_shot, latency_ns: [0.5, 0.99, 0.999].map(quantile) }
}

impl World<'_> {
    /// One frame of the path's thread; without work it ends at the next event.
    fn frame(&mut self) {
        self.now += self.costs.frame_ns;
        let items = self.feed() + self.assign() + self.collect();
        if items > 0 {
            return;
        }
        let has_slot = self.arrivals.fed - self.latencies.len() < self.costs.slots;
        let arrival = self.arrivals.next(self.now).filter(|_| has_slot);
        let ends = self.workers.iter().filter_map(|worker| worker.shots.front().map(|(_, end)| *end));
        let next = ends.chain(arrival).fold(f64::INFINITY, f64::min);
        self.now = self.now.max(next);
    }

    fn feed(&mut self) -> usize {
        let mut items = 0;
        while items < BATCH
            && self.arrivals.fed - self.latencies.len() < self.costs.slots
            && let Some(arrival) = self.arrivals.next(self.now).filter(|arrival| *arrival <= self.now)
        {
            self.now += self.costs.front_ns;
            self.arrivals.fed += 1;
            self.ready.push_back(arrival);
            items += 1;
        }
        items
    }

    /// Gives shots to the workers with the fewest, or decodes them.
    fn assign(&mut self) -> usize {
        let mut items = 0;
        while items < BATCH && !self.ready.is_empty() {
            let decode_ns = self.costs.decode_ns[self.assigned % self.costs.decode_ns.len()];
            if self.workers.is_empty() {
                self.now += decode_ns;
                self.harvest();
            } else if !self.send(decode_ns) {
                break;
            }
            self.assigned += 1;
            items += 1;
        }
        items
    }

    /// Sends the next shot to a worker: the one with the fewest, or, from one queue, the one that is
    /// free first. Returns whether one had room.
    fn send(&mut self, decode_ns: f64) -> bool {
        let several = self.workers.len() > 1;
        let next = if self.costs.is_one_queue {
            self.workers.iter_mut().min_by(|one, other| one.free_at.total_cmp(&other.free_at))
        } else {
            self.workers.iter_mut().min_by_key(|worker| worker.shots.len())
        };
        let Some(worker) = next else { return false };
        if worker.shots.len() >= self.depth {
            return false;
        }
        let Some(arrival) = self.ready.pop_front() else { return false };
        let line_ns = self.costs.line_ns;
        let mut begin = self.now.max(worker.free_at);
        if self.costs.is_one_queue && several {
            begin = begin.max(self.head_free_at);
            self.head_free_at = begin + line_ns;
        }
        let end = begin + self.costs.lines * line_ns + decode_ns;
        worker.free_at = end;
        worker.shots.push_back((arrival, end));
        true
    }

    /// Commits and harvests what the workers have decoded.
    fn collect(&mut self) -> usize {
        let mut items = 0;
        for at in 0..self.workers.len() {
            while items < BATCH
                && let Some((arrival, _)) = self.workers[at].shots.pop_front_if(|(_, end)| *end <= self.now)
            {
                self.now += self.costs.lines * self.costs.line_ns + self.costs.back_ns;
                self.latencies.push(self.now - arrival);
                items += 1;
            }
        }
        items
    }

    /// Commits and harvests the shot that this thread has decoded.
    fn harvest(&mut self) {
        if let Some(arrival) = self.ready.pop_front() {
            self.now += self.costs.back_ns;
            self.latencies.push(self.now - arrival);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Costs, Course, Setting, play};

    fn costs(decode_ns: f64) -> Costs {
        Costs {
            frame_ns: 50.0,
            front_ns: 120.0,
            back_ns: 80.0,
            decode_ns: vec![decode_ns],
            line_ns: 20.0,
            lines: 1.0,
            is_one_queue: false,
            slots: 1_024,
        }
    }

    fn unpaced(costs: &Costs, workers: usize) -> Course {
        play(costs, Setting { workers, rate_hz: None, shots: 20_000 })
    }

    fn is_near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 0.03
    }

    #[test]
    fn one_workers_throughput_is_that_of_the_slowest_stage() {
        for decode_ns in [10.0, 100.0, 1_000.0, 40_000.0] {
            let found = unpaced(&costs(decode_ns), 1).ns_per_shot;
            let slowest = f64::max(120.0 + 80.0 + 20.0, decode_ns + 20.0);
            assert!(is_near(found, slowest), "{decode_ns}: {found}, expected {slowest}");
        }
    }

    #[test]
    fn on_one_core_the_stages_add_up_and_no_line_crosses() {
        let found = unpaced(&costs(300.0), 0).ns_per_shot;
        assert!(is_near(found, 500.0), "{found}");
    }

    #[test]
    fn more_workers_never_decrease_throughput_by_more_than_the_batches_differ() {
        for is_one_queue in [false, true] {
            for decode_ns in [5.0, 50.0, 400.0, 3_000.0, 30_000.0] {
                let costs = Costs { is_one_queue, ..costs(decode_ns) };
                let counts = (1..=16).chain([24, 32, 48, 64]);
                let times: Vec<f64> = counts.map(|workers| unpaced(&costs, workers).ns_per_shot).collect();
                for pair in times.windows(2) {
                    assert!(pair[1] < pair[0] * 1.03, "{decode_ns} ns: {times:?}");
                }
            }
        }
    }

    #[test]
    fn workers_add_up_until_the_path_is_the_slowest_stage() {
        let found = [1, 2, 4, 8].map(|workers| unpaced(&costs(3_000.0), workers).ns_per_shot);
        for (workers, found) in [1.0, 2.0, 4.0, 8.0].into_iter().zip(found) {
            assert!(found < 3_020.0 / workers * 1.15, "{workers} workers: {found}");
        }
        assert!(is_near(unpaced(&costs(3_000.0), 32).ns_per_shot, 220.0));
    }

    #[test]
    fn a_lone_shots_latency_is_the_sum_of_its_stages() {
        let lone = Setting { workers: 4, rate_hz: Some(10_000.0), shots: 1_000 };
        let [p50, .., p999] = play(&costs(3_000.0), lone).latency_ns;
        let least = 120.0 + 20.0 + 3_000.0 + 20.0 + 80.0;
        assert!(p50 >= least && p999 < least + 3.0 * 50.0, "{p50}, {p999}, at least {least}");
    }

    #[test]
    fn latency_rises_with_the_load_and_has_no_bound_beyond_the_capacity() {
        let capacity = 1e9 / unpaced(&costs(3_000.0), 1).ns_per_shot;
        let at = |load: f64| {
            let setting = Setting { workers: 1, rate_hz: Some(capacity * load), shots: 20_000 };
            play(&costs(3_000.0), setting).latency_ns[1]
        };
        assert!(at(0.5) <= at(0.9) && at(0.9) < 20_000.0, "{} {}", at(0.5), at(0.9));
        assert!(at(1.1) > 1e6, "{}", at(1.1));
    }

    #[test]
    fn equal_settings_take_equal_courses() {
        let mixed = Costs { decode_ns: vec![1_000.0, 9_000.0, 2_500.0], ..costs(0.0) };
        let setting = Setting { workers: 3, rate_hz: Some(4e5), shots: 5_000 };
        assert_eq!(play(&mixed, setting), play(&mixed, setting));
    }
}
