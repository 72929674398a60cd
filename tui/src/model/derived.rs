//! Numbers computed from two snapshots: rates, quantiles of the last second, depths and ages.
//!
//! Pure; on the console thread; bounded by [`MARKS_MAX`] marks. Without an earlier mark a rate is
//! `None` and shown as absent, not as zero.
//!
//! # Why marks and not snapshots
//!
//! Rates need only the counters of a second ago. A mark leaves the slots out, so the last second of
//! a large engine takes kilobytes.

use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{
    Counters, NoiseShares, NoiseView, SiloView, SlotState, SlotView, Snapshot, SourceView, ThreadView, WorkerState,
};
use pinwheel_report::report::merged;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Most marks kept: a second at 10 Hz.
pub const MARKS_MAX: usize = 10;
/// Least length of the window of rates and percentiles, if there are marks so old: a second, less
/// half of a tenth.
const WINDOW_NS: u64 = 950_000_000;

/// Counters of one earlier snapshot.
#[derive(Clone, Debug)]
struct Mark {
    at_ns: u64,
    totals: Counters,
    silos: Vec<SiloMark>,
    threads: Vec<ThreadMark>,
    sources: Vec<SourceView>,
    streams: Vec<[u64; 3]>,
}

#[derive(Clone, Debug)]
struct SiloMark {
    counters: Counters,
    latency: Histogram,
    stages: Vec<Histogram>,
    tasks: u64,
    decisions: Vec<u64>,
    rings: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct ThreadMark {
    frames: u64,
    items: u64,
    busy_ns: u64,
    frame_gap: Histogram,
    /// The longest gap between the snapshot before and this one.
    gap_max_ns: u64,
    noise: NoiseView,
}

/// The marks of the last second.
#[derive(Clone, Debug, Default)]
pub struct Marks(VecDeque<Mark>);

/// Quantiles of a window, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// Number of values in the window.
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

/// Rates of one silo, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub scheduled: f64,
    pub submitted: f64,
    pub dispatched: f64,
    pub completed: f64,
    pub decoding: f64,
    pub answered: f64,
    /// Answers with an error.
    pub errored: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SiloDerived {
    /// Rates; `None` before the second snapshot.
    pub rates: Option<Rates>,
    /// Quantiles per stage of the window, in the snapshot's stage order; `None`: no shot passed.
    pub stages: Vec<Option<Quantiles>>,
    /// CPU time of dispatch per shot, nanoseconds.
    pub dispatch_ns_per_shot: Option<f64>,
    /// Number of slots idle, written, in flight, completed.
    pub slots: [usize; 4],
    /// Index and waiting time, in nanoseconds, of the slot that was written longest ago and is not harvested.
    pub oldest: Option<(usize, u64)>,
    /// Number of workers free, running, claimed, quarantined.
    pub workers: [usize; 4],
    pub tasks_per_s: Option<f64>,
    /// Decisions of its arbiter per second, by response; empty before the second snapshot or
    /// without an arbiter.
    pub decisions_per_s: Vec<f64>,
    /// Per ring: entries and refusals (ring full) per second; empty before the second snapshot.
    pub rings_per_s: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ThreadDerived {
    /// Share of time in frames that did work, 0..=1.
    pub busy: Option<f64>,
    pub items_per_s: Option<f64>,
    pub frames_per_s: Option<f64>,
    /// Frame gaps of the window.
    pub gap: Option<Quantiles>,
    /// What took its core away in the window; `None` before the second snapshot, or if it is not measured.
    pub noise: Option<NoiseShares>,
    /// Longest silence since the last snapshot: heartbeat age or frame gap, nanoseconds.
    pub silence_ns: u64,
}

/// All numbers derived from a snapshot and the marks before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// Counters over all silos.
    pub totals: Counters,
    /// Rates over all silos.
    pub rates: Option<Rates>,
    /// Shots scheduled and not submitted.
    pub backlog: u64,
    /// Shots submitted and not answered.
    pub open: u64,
    /// Latency of the window over all silos.
    pub latency: Option<Quantiles>,
    pub silos: Vec<SiloDerived>,
    pub threads: Vec<ThreadDerived>,
    /// Per live source; `None` before the second snapshot.
    pub sources: Vec<Option<SourceRates>>,
    /// Per stream; empty before the second snapshot.
    pub streams: Vec<StreamRates>,
}

/// Rates of one stream, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamRates {
    pub answered: f64,
    pub late: f64,
    /// Answers with an error.
    pub errors: f64,
}

/// Rates of one live source, per second.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRates {
    /// Datagrams or slots received.
    pub received: f64,
    pub accepted: f64,
    /// Shots taken, by stream.
    pub streams: Vec<f64>,
    /// Shots taken, by sender shown.
    pub peers: Vec<f64>,
}

impl Marks {
    /// Derives from `snapshot`, then keeps its mark. A restarted engine (its time decreases) clears
    /// the past.
    pub fn derive(&mut self, snapshot: &Snapshot) -> Derived {
        if self.0.back().is_some_and(|last| last.at_ns > snapshot.at_ns || !same_shape(last, snapshot)) {
            self.0.clear();
        }
        // Pictures of another host come more seldom than ten times a second.
        let begins_early = |mark: &Mark| mark.at_ns.saturating_add(WINDOW_NS) <= snapshot.at_ns;
        while self.0.get(1).is_some_and(begins_early) {
            self.0.pop_front();
        }
        let derived = derive(snapshot, self.0.front(), self.0.back());
        if self.0.len() == MARKS_MAX {
            self.0.pop_front();
        }
        let mark = mark(snapshot, self.0.back());
        self.0.push_back(mark);
        derived
    }
}

fn same_shape(mark: &Mark, snapshot: &Snapshot) -> bool {
    mark.silos.len() == snapshot.silos.len()
        && mark.threads.len() == snapshot.threads.len()
        && mark.streams.len() == snapshot.streams.len()
        && mark.silos.iter().zip(&snapshot.silos).all(|(m, s)| m.stages.len() == s.stages.len())
}

/// `last`: the mark before.
fn mark(snapshot: &Snapshot, last: Option<&Mark>) -> Mark {
    let silo = |silo: &SiloView| SiloMark {
        counters: silo.counters,
        latency: silo.latency.clone(),
        stages: silo.stages.iter().map(|stage| stage.time.clone()).collect(),
        tasks: silo.graph.ran,
        decisions: decisions(silo),
        rings: silo.rings.iter().map(|ring| (ring.pushed, ring.refusals)).collect(),
    };
    let threads = snapshot.threads.iter().enumerate().map(|(i, thread)| ThreadMark {
        frames: thread.frames,
        items: thread.items,
        busy_ns: thread.busy_ns,
        frame_gap: thread.frame_gap.clone(),
        gap_max_ns: last.map_or(0, |mark| longest_gap_ns(thread, &mark.threads[i])),
        noise: thread.noise.clone(),
    });
    let (silos, threads) = (snapshot.silos.iter().map(silo).collect(), threads.collect());
    let streams = snapshot.streams.iter().map(|stream| [stream.answered, stream.late, stream.errors]).collect();
    let (totals, sources) = (snapshot.totals(), snapshot.sources.clone());
    Mark { at_ns: snapshot.at_ns, totals, silos, threads, sources, streams }
}

fn derive(snapshot: &Snapshot, first: Option<&Mark>, last: Option<&Mark>) -> Derived {
    let first = first.filter(|mark| mark.at_ns < snapshot.at_ns);
    let seconds = first.map_or(0.0, |mark| (snapshot.at_ns - mark.at_ns) as f64 / 1e9);
    let silos: Vec<SiloDerived> = snapshot
        .silos
        .iter()
        .enumerate()
        .map(|(i, silo)| derive_silo(silo, first.map(|mark| &mark.silos[i]), snapshot.at_ns, seconds))
        .collect();
    let totals = snapshot.totals();
    Derived {
        totals,
        rates: first.map(|mark| rates(&mark.totals, &totals, seconds)),
        backlog: totals.scheduled.saturating_sub(totals.submitted),
        open: totals.submitted.saturating_sub(totals.answered),
        latency: first.and_then(|mark| {
            let silos = snapshot.silos.iter().zip(&mark.silos);
            let windows: Vec<Histogram> = silos.map(|(silo, mark)| silo.latency.since(&mark.latency)).collect();
            quantiles(&merged(windows.iter()))
        }),
        silos,
        threads: derive_threads(snapshot, first, last, seconds),
        sources: derive_sources(snapshot, first, seconds),
        streams: first.map_or_else(Vec::new, |mark| derive_streams(snapshot, mark, seconds)),
    }
}

fn derive_streams(snapshot: &Snapshot, mark: &Mark, seconds: f64) -> Vec<StreamRates> {
    let streams = snapshot.streams.iter().zip(&mark.streams);
    let rates = streams.map(|(now, [answered, late, errors])| StreamRates {
        answered: per_s(now.answered, *answered, seconds),
        late: per_s(now.late, *late, seconds),
        errors: per_s(now.errors, *errors, seconds),
    });
    rates.collect()
}

fn derive_sources(snapshot: &Snapshot, first: Option<&Mark>, seconds: f64) -> Vec<Option<SourceRates>> {
    let rates = |(at, source): (usize, &SourceView)| {
        let before = first.and_then(|mark| mark.sources.get(at))?;
        let streams = source.streams.iter().zip(&before.streams);
        // A new sender has no rate yet.
        let peers = source.peers.iter().map(|peer| {
            let earlier = before.peers.iter().find(|earlier| earlier.address == peer.address);
            earlier.map_or(0.0, |earlier| per_s(peer.shots, earlier.shots, seconds))
        });
        Some(SourceRates {
            received: per_s(source.received, before.received, seconds),
            accepted: per_s(source.accepted, before.accepted, seconds),
            streams: streams.map(|(now, before)| per_s(now.accepted, before.accepted, seconds)).collect(),
            peers: peers.collect(),
        })
    };
    snapshot.sources.iter().enumerate().map(rates).collect()
}

/// Nanoseconds since the shot was written; until that timestamp is visible, the time in the slot's
/// state.
pub fn waiting_ns(slot: &SlotView, at_ns: u64) -> u64 {
    match slot.times.submitted_ns {
        0 => slot.since_ns,
        written_ns => at_ns.saturating_sub(written_ns),
    }
}

fn derive_silo(silo: &SiloView, mark: Option<&SiloMark>, at_ns: u64, seconds: f64) -> SiloDerived {
    let stage = |(i, stage): (usize, &pinwheel_engine::board::snapshot::StageView)| {
        mark.and_then(|mark| quantiles(&stage.time.since(&mark.stages[i])))
    };
    let mut slots = [0; 4];
    for slot in &silo.slots {
        slots[slot_class(slot.state)] += 1;
    }
    let waiting = silo.slots.iter().enumerate().filter(|(_, slot)| slot.state != SlotState::Idle);
    // Of two that wait equally long, the one that is not answered yet, then the first.
    let ranked = waiting.map(|(i, slot)| (waiting_ns(slot, at_ns), slot.state != SlotState::Completed, Reverse(i)));
    let oldest = ranked.max().map(|(age_ns, _, Reverse(i))| (i, age_ns));
    let mut workers = [0; 4];
    for worker in &silo.workers {
        workers[worker_class(worker.state)] += 1;
    }
    SiloDerived {
        rates: mark.map(|mark| rates(&mark.counters, &silo.counters, seconds)),
        stages: silo.stages.iter().enumerate().map(stage).collect(),
        dispatch_ns_per_shot: mark.and_then(|mark| dispatch_cost(&mark.counters, &silo.counters)),
        slots,
        oldest,
        workers,
        tasks_per_s: mark.map(|mark| per_s(silo.graph.ran, mark.tasks, seconds)),
        decisions_per_s: mark.map_or_else(Vec::new, |mark| {
            let decisions = decisions(silo).into_iter().zip(&mark.decisions);
            decisions.map(|(now, before)| per_s(now, *before, seconds)).collect()
        }),
        rings_per_s: mark.map_or_else(Vec::new, |mark| {
            let rings = silo.rings.iter().zip(&mark.rings);
            rings
                .map(|(ring, (pushed, full))| {
                    (per_s(ring.pushed, *pushed, seconds), per_s(ring.refusals, *full, seconds))
                })
                .collect()
        }),
    }
}

fn decisions(silo: &SiloView) -> Vec<u64> {
    silo.arbiter.iter().flat_map(|arbiter| &arbiter.decisions).map(|(_, times)| *times).collect()
}

fn dispatch_cost(before: &Counters, now: &Counters) -> Option<f64> {
    let shots = now.dispatched.saturating_sub(before.dispatched);
    (shots > 0).then(|| now.dispatch_ns.saturating_sub(before.dispatch_ns) as f64 / shots as f64)
}

/// The longest gap since `mark`. A recording has the gaps in every second snapshot: in the others it is that of the
/// snapshot before.
fn longest_gap_ns(thread: &ThreadView, mark: &ThreadMark) -> u64 {
    let is_left_out = thread.frames > mark.frames && thread.frame_gap.count() == mark.frame_gap.count();
    if is_left_out { mark.gap_max_ns } else { thread.frame_gap.since(&mark.frame_gap).max_ns() }
}

fn derive_threads(snapshot: &Snapshot, first: Option<&Mark>, last: Option<&Mark>, seconds: f64) -> Vec<ThreadDerived> {
    let one = |(i, thread): (usize, &ThreadView)| {
        let mark = first.map(|mark| &mark.threads[i]);
        let gap_max_ns = last.map_or(0, |mark| longest_gap_ns(thread, &mark.threads[i]));
        ThreadDerived {
            busy: mark.map(|mark| (per_s(thread.busy_ns, mark.busy_ns, seconds) / 1e9).clamp(0.0, 1.0)),
            items_per_s: mark.map(|mark| per_s(thread.items, mark.items, seconds)),
            frames_per_s: mark.map(|mark| per_s(thread.frames, mark.frames, seconds)),
            gap: mark.and_then(|mark| quantiles(&thread.frame_gap.since(&mark.frame_gap))),
            noise: mark.and_then(|mark| thread.noise.since(&mark.noise).shares()),
            // Before a thread's first frame its heartbeat age is the age of the clock.
            silence_ns: if thread.frames == 0 { 0 } else { thread.heartbeat_age_ns.max(gap_max_ns) },
        }
    };
    snapshot.threads.iter().enumerate().map(one).collect()
}

fn per_s(now: u64, before: u64, seconds: f64) -> f64 {
    now.saturating_sub(before) as f64 / seconds
}

/// Quantiles of a window; `None`: it has no value.
pub fn quantiles(window: &Histogram) -> Option<Quantiles> {
    let count = window.count();
    (count > 0).then(|| Quantiles {
        count,
        p50_ns: window.quantile_ns(0.50),
        p99_ns: window.quantile_ns(0.99),
        p999_ns: window.quantile_ns(0.999),
        max_ns: window.max_ns(),
    })
}

fn rates(before: &Counters, now: &Counters, seconds: f64) -> Rates {
    Rates {
        scheduled: per_s(now.scheduled, before.scheduled, seconds),
        submitted: per_s(now.submitted, before.submitted, seconds),
        dispatched: per_s(now.dispatched, before.dispatched, seconds),
        completed: per_s(now.completed, before.completed, seconds),
        decoding: per_s(now.decoding, before.decoding, seconds),
        answered: per_s(now.answered, before.answered, seconds),
        errored: per_s(now.errored, before.errored, seconds),
    }
}

/// UTC of a moment after the engine's start, nanoseconds since 1970. Without a pair of clocks the start is known to
/// a second.
pub fn utc_ns(snapshot: &Snapshot, at_ns: u64) -> u64 {
    match &snapshot.clock.pair {
        Some(pair) => pair.utc_ns.saturating_add(at_ns).saturating_sub(pair.at_ns),
        None => snapshot.engine.started_utc_s.saturating_mul(1_000_000_000).saturating_add(at_ns),
    }
}

/// Index of a slot's state in [`SiloDerived::slots`].
pub fn slot_class(state: SlotState) -> usize {
    match state {
        SlotState::Idle => 0,
        SlotState::Written => 1,
        SlotState::InFlight => 2,
        SlotState::Completed => 3,
    }
}

/// Index of a worker's state in [`SiloDerived::workers`].
pub fn worker_class(state: WorkerState) -> usize {
    match state {
        WorkerState::Free => 0,
        WorkerState::Running => 1,
        WorkerState::Claimed => 2,
        WorkerState::Quarantined => 3,
    }
}
