//! Numbers made from two snapshots: rates, quantiles of the last second, depths and ages.
//!
//! Pure; on the console thread; bounded by [`MARKS_MAX`] marks. Never guesses: without an earlier mark a rate is `None`
//! and shown as absent, not as zero.
//!
//! # Why marks and not snapshots
//!
//! Rates need the counters of a second ago, not its slots. A mark leaves the slots out, so that the past second of a large
//! engine costs kilobytes.

use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{Counters, SiloView, SlotState, SlotView, Snapshot, SourceView, WorkerState};
use std::collections::VecDeque;

/// Most marks kept: a second at 10 Hz.
pub const MARKS_MAX: usize = 10;

/// Counters of one earlier snapshot.
#[derive(Clone, Debug)]
struct Mark {
    at_ns: u64,
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
}

/// The marks of the last second.
#[derive(Clone, Debug, Default)]
pub struct Marks(VecDeque<Mark>);

/// Quantiles of a window, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// Values in the window.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// Rates of one silo, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Shots due.
    pub scheduled: f64,
    /// Shots written.
    pub submitted: f64,
    /// Shots dispatched.
    pub dispatched: f64,
    /// Completions claimed.
    pub completed: f64,
    /// Decodes begun.
    pub decoding: f64,
    /// Answers harvested.
    pub answered: f64,
    /// Answers with an error.
    pub errored: f64,
}

/// One silo.
#[derive(Clone, Debug, PartialEq)]
pub struct SiloDerived {
    /// Rates; `None` before the second snapshot.
    pub rates: Option<Rates>,
    /// Quantiles per stage of the window, in the snapshot's stage order; `None`: nothing passed.
    pub stages: Vec<Option<Quantiles>>,
    /// Dispatch's own work per shot, nanoseconds.
    pub dispatch_ns_per_shot: Option<f64>,
    /// Slots idle, written, in flight, completed.
    pub slots: [usize; 4],
    /// The slot that has waited longest since it was written, and for how long.
    pub oldest: Option<(usize, u64)>,
    /// Workers free, running, claimed, quarantined.
    pub workers: [usize; 4],
    /// Tasks run per second.
    pub tasks_per_s: Option<f64>,
    /// Decisions of its arbiter per second, by response; empty before the second snapshot, or if there is no arbiter.
    pub decisions_per_s: Vec<f64>,
    /// Per ring: entries, and times it was found full, per second; empty before the second snapshot.
    pub rings_per_s: Vec<(f64, f64)>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadDerived {
    /// Share of time in frames that did work, 0..=1.
    pub busy: Option<f64>,
    /// Items per second.
    pub items_per_s: Option<f64>,
    /// Frames per second.
    pub frames_per_s: Option<f64>,
    /// Frame gaps of the window.
    pub gap: Option<Quantiles>,
    /// The longest silence since the snapshot before: heartbeat age or frame gap, nanoseconds.
    pub silence_ns: u64,
}

/// Everything derived from a snapshot and the marks before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// Counters over all silos.
    pub totals: Counters,
    /// Rates over all silos.
    pub rates: Option<Rates>,
    /// Scheduled and not yet submitted.
    pub backlog: u64,
    /// Submitted and not yet answered.
    pub open: u64,
    /// Latency of the window over all silos.
    pub latency: Option<Quantiles>,
    /// Per silo.
    pub silos: Vec<SiloDerived>,
    /// Per thread.
    pub threads: Vec<ThreadDerived>,
    /// Per live source; `None` before the second snapshot.
    pub sources: Vec<Option<SourceRates>>,
    /// Per stream; empty before the second snapshot.
    pub streams: Vec<StreamRates>,
}

/// Rates of one stream, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamRates {
    /// Answers.
    pub answered: f64,
    /// Late ones.
    pub late: f64,
    /// Those with an error.
    pub errors: f64,
}

/// Rates of one live source, per second.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRates {
    /// Datagrams or slots looked at.
    pub received: f64,
    /// Shots taken.
    pub accepted: f64,
    /// Shots taken, by stream.
    pub streams: Vec<f64>,
    /// Shots taken, by sender shown.
    pub peers: Vec<f64>,
}

impl Marks {
    /// Derives from `snapshot`, then keeps its mark. An engine that was started anew (time runs back) clears the past.
    pub fn derive(&mut self, snapshot: &Snapshot) -> Derived {
        if self.0.back().is_some_and(|last| last.at_ns > snapshot.at_ns || !same_shape(last, snapshot)) {
            self.0.clear();
        }
        let derived = derive(snapshot, self.0.front(), self.0.back());
        if self.0.len() == MARKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(mark(snapshot));
        derived
    }
}

fn same_shape(mark: &Mark, snapshot: &Snapshot) -> bool {
    mark.silos.len() == snapshot.silos.len()
        && mark.threads.len() == snapshot.threads.len()
        && mark.streams.len() == snapshot.streams.len()
        && mark.silos.iter().zip(&snapshot.silos).all(|(m, s)| m.stages.len() == s.stages.len())
}

fn mark(snapshot: &Snapshot) -> Mark {
    let silo = |silo: &SiloView| SiloMark {
        counters: silo.counters,
        latency: silo.latency.clone(),
        stages: silo.stages.iter().map(|stage| stage.time.clone()).collect(),
        tasks: silo.graph.ran,
        decisions: decisions(silo),
        rings: silo.rings.iter().map(|ring| (ring.pushed, ring.refusals)).collect(),
    };
    let threads = snapshot.threads.iter().map(|thread| ThreadMark {
        frames: thread.frames,
        items: thread.items,
        busy_ns: thread.busy_ns,
        frame_gap: thread.frame_gap.clone(),
    });
    let (silos, threads) = (snapshot.silos.iter().map(silo).collect(), threads.collect());
    let streams = snapshot.streams.iter().map(|stream| [stream.answered, stream.late, stream.errors]).collect();
    Mark { at_ns: snapshot.at_ns, silos, threads, sources: snapshot.sources.clone(), streams }
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
    let totals = snapshot.silos.iter().fold(Counters::default(), |sum, silo| add(sum, &silo.counters));
    Derived {
        totals,
        rates: silos.iter().filter_map(|silo| silo.rates).reduce(sum_rates),
        backlog: totals.scheduled.saturating_sub(totals.submitted),
        open: totals.submitted.saturating_sub(totals.answered),
        latency: first.and_then(|mark| window_latency(snapshot, mark)),
        silos,
        threads: derive_threads(snapshot, first, last, seconds),
        sources: derive_sources(snapshot, first, seconds),
        streams: first.map_or_else(Vec::new, |mark| derive_streams(snapshot, mark, seconds)),
    }
}

fn derive_streams(snapshot: &Snapshot, mark: &Mark, seconds: f64) -> Vec<StreamRates> {
    let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let streams = snapshot.streams.iter().zip(&mark.streams);
    let rates = streams.map(|(now, [answered, late, errors])| StreamRates {
        answered: per_s(now.answered, *answered),
        late: per_s(now.late, *late),
        errors: per_s(now.errors, *errors),
    });
    rates.collect()
}

fn derive_sources(snapshot: &Snapshot, first: Option<&Mark>, seconds: f64) -> Vec<Option<SourceRates>> {
    let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let rates = |(at, source): (usize, &SourceView)| {
        let before = first.and_then(|mark| mark.sources.get(at))?;
        let streams = source.streams.iter().zip(&before.streams);
        // A sender that was not there before has no rate yet.
        let peers = source.peers.iter().map(|peer| {
            let earlier = before.peers.iter().find(|earlier| earlier.address == peer.address);
            earlier.map_or(0.0, |earlier| per_s(peer.shots, earlier.shots))
        });
        Some(SourceRates {
            received: per_s(source.received, before.received),
            accepted: per_s(source.accepted, before.accepted),
            streams: streams.map(|(now, before)| per_s(now.accepted, before.accepted)).collect(),
            peers: peers.collect(),
        })
    };
    snapshot.sources.iter().enumerate().map(rates).collect()
}

fn window_latency(snapshot: &Snapshot, mark: &Mark) -> Option<Quantiles> {
    let mut window = Histogram::default();
    for (silo, before) in snapshot.silos.iter().zip(&mark.silos) {
        window.merge(&silo.latency.since(&before.latency));
    }
    quantiles(&window)
}

/// Time since the shot was written; before that word is seen, the time in its state.
fn waiting_ns(slot: &SlotView, at_ns: u64) -> u64 {
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
    let mut oldest: Option<(usize, u64)> = None;
    for (i, slot) in silo.slots.iter().enumerate() {
        slots[slot_class(slot.state)] += 1;
        let waiting = matches!(slot.state, SlotState::Written | SlotState::InFlight);
        let age_ns = waiting_ns(slot, at_ns);
        if waiting && oldest.is_none_or(|(_, age)| age_ns > age) {
            oldest = Some((i, age_ns));
        }
    }
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
        tasks_per_s: mark.map(|mark| silo.graph.ran.saturating_sub(mark.tasks) as f64 / seconds),
        decisions_per_s: mark.map_or_else(Vec::new, |mark| {
            let per_s = |(now, before): (u64, &u64)| now.saturating_sub(*before) as f64 / seconds;
            decisions(silo).into_iter().zip(&mark.decisions).map(per_s).collect()
        }),
        rings_per_s: mark.map_or_else(Vec::new, |mark| {
            let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            let rings = silo.rings.iter().zip(&mark.rings);
            rings.map(|(ring, (pushed, full))| (per_s(ring.pushed, *pushed), per_s(ring.refusals, *full))).collect()
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

fn derive_threads(snapshot: &Snapshot, first: Option<&Mark>, last: Option<&Mark>, seconds: f64) -> Vec<ThreadDerived> {
    let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let one = |(i, thread): (usize, &pinwheel_engine::board::snapshot::ThreadView)| {
        let mark = first.map(|mark| &mark.threads[i]);
        let gap_max_ns = last.map_or(0, |mark| thread.frame_gap.since(&mark.threads[i].frame_gap).max_ns());
        ThreadDerived {
            busy: mark.map(|mark| (per_s(thread.busy_ns, mark.busy_ns) / 1e9).clamp(0.0, 1.0)),
            items_per_s: mark.map(|mark| per_s(thread.items, mark.items)),
            frames_per_s: mark.map(|mark| per_s(thread.frames, mark.frames)),
            gap: mark.and_then(|mark| quantiles(&thread.frame_gap.since(&mark.frame_gap))),
            // Before its first frame a thread's heartbeat is as old as the clock.
            silence_ns: if thread.frames == 0 { 0 } else { thread.heartbeat_age_ns.max(gap_max_ns) },
        }
    };
    snapshot.threads.iter().enumerate().map(one).collect()
}

fn quantiles(window: &Histogram) -> Option<Quantiles> {
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
    let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    Rates {
        scheduled: per_s(now.scheduled, before.scheduled),
        submitted: per_s(now.submitted, before.submitted),
        dispatched: per_s(now.dispatched, before.dispatched),
        completed: per_s(now.completed, before.completed),
        decoding: per_s(now.decoding, before.decoding),
        answered: per_s(now.answered, before.answered),
        errored: per_s(now.errored, before.errored),
    }
}

fn sum_rates(a: Rates, b: Rates) -> Rates {
    Rates {
        scheduled: a.scheduled + b.scheduled,
        submitted: a.submitted + b.submitted,
        dispatched: a.dispatched + b.dispatched,
        completed: a.completed + b.completed,
        decoding: a.decoding + b.decoding,
        answered: a.answered + b.answered,
        errored: a.errored + b.errored,
    }
}

/// The counters that the console shows over all silos.
fn add(sum: Counters, silo: &Counters) -> Counters {
    Counters {
        scheduled: sum.scheduled + silo.scheduled,
        submitted: sum.submitted + silo.submitted,
        answered: sum.answered + silo.answered,
        errored: sum.errored + silo.errored,
        late: sum.late + silo.late,
        duplicated: sum.duplicated + silo.duplicated,
        out_of_order: sum.out_of_order + silo.out_of_order,
        shots_with_observables: sum.shots_with_observables + silo.shots_with_observables,
        logical_errors: sum.logical_errors + silo.logical_errors,
        ..sum
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
