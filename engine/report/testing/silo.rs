//! A synthetic silo: its ring, workers, graph and stream.

use super::{SHOTS, SyntheticFaults, arbiter, overflow, times};
use pinwheel_engine::board::snapshot::{
    Counters, DeviceState, ErrorCount, FlushesView, GraphView, GraphWorkerView, HeldView, InputHealthView,
    LifecycleView, OldestView, ReadyView, RingView, RunningView, SiloView, SlotState, SlotTimes, SlotView, StageView,
    StreamView, WaitsOn, WorkerState, WorkerView,
};
use pinwheel_engine::streams::HealthVerdict;

pub(super) fn silo(tenths: u64, trouble: SyntheticFaults) -> SiloView {
    let shots = tenths * SHOTS;
    let bad = trouble == SyntheticFaults::All;
    let counters = Counters {
        scheduled: shots + 17,
        submitted: shots + 5,
        dispatched: shots + 4,
        launched: shots + 4,
        completed: shots + 2,
        decoding: shots + 1,
        answered: shots,
        errored: if bad { tenths } else { 0 },
        late: if bad { tenths / 2 } else { 0 },
        duplicated: u64::from(bad),
        quarantined: u64::from(bad),
        device_losses: u64::from(bad),
        shots_with_observables: shots,
        logical_errors: shots / 5_000,
        dispatch_ns: (shots + 4) * 87,
        ..Counters::default()
    };
    let errors =
        if bad { vec![ErrorCount { code: 5, name: "launch deadline".to_owned(), count: tenths }] } else { Vec::new() };
    let workers = workers(trouble);
    SiloView {
        id: 0,
        device: if bad { DeviceState::Recovering } else { DeviceState::Online },
        counters,
        errors,
        rings: [("rx", 1_024, 3), ("ready", 8, 1), ("lanes", 128, 6), ("tx", 1_024, 2), ("answers", 1_024, 0)]
            .map(|(name, capacity, depth)| RingView {
                lags: if name == "answers" { vec![Some(depth)] } else { Vec::new() },
                name: name.to_owned(),
                capacity,
                depth,
                pushed: shots,
                refusals: 0,
            })
            .to_vec(),
        idle_mask: (0..8).filter(|i| workers[*i].state == WorkerState::Free).fold(0, |mask, i| mask | 1 << i),
        workers,
        slots: (0..1_024).map(|slot| self::slot(slot, tenths, shots)).collect(),
        stages: [
            ("feed", 2_000),
            ("dispatch", 1_200),
            ("device", 9_400),
            ("queue", 300),
            ("decode", 24_000),
            ("harvest", 200),
        ]
        .map(|(name, ns)| StageView { name, time: times(tenths, ns) })
        .to_vec(),
        latency: times(tenths, 37_000),
        latency_from_submit: times(tenths, 35_000),
        timer_lateness: times(tenths, 700),
        arbiter: (tenths > 0).then(|| arbiter(tenths, trouble)),
        moves: (trouble == SyntheticFaults::All).then(|| super::placement::moves(tenths)),
        graph: graph(tenths, trouble),
        gpu: None,
        overflow: overflow(tenths, trouble),
        lifecycle: LifecycleView { epoch: 1, ..LifecycleView::default() },
    }
}

fn graph(tenths: u64, trouble: SyntheticFaults) -> GraphView {
    let (shots, bad) = (tenths * SHOTS, trouble == SyntheticFaults::All);
    let worker = |task: Option<RunningView>| GraphWorkerView {
        ran: shots / 2,
        stolen: shots / 50,
        steals_failed: shots / 20,
        depth: 2,
        in_lane: 3,
        shots: shots / 2,
        task,
        decoder_epoch: 1,
        decoder_change_ns: 0,
        expected_ns: 0,
        rescue_expected_ns: 0,
    };
    let running = RunningView { id: shots + 9, kernel: "decode", stream: 2, age_ns: 14_000 };
    let waits_on = if bad { WaitsOn::Permit(2) } else { WaitsOn::Worker };
    GraphView {
        policy: "work stealing".to_owned(),
        submitted: shots + 4,
        ran: shots + 2,
        retired: shots,
        window_used: 4,
        window_tasks: 8_192,
        lane_shots: 64,
        window_stalls: if bad { 12 } else { 0 },
        ready: vec![ReadyView { pool: "cpu", depth: 3, capacity: 16_384 }],
        permits_used: if bad { 2 } else { 0 },
        permits: if bad { 2 } else { 0 },
        parked: u64::from(bad),
        gate_waits: if bad { 31 } else { 0 },
        flushes: FlushesView { full: 0, late: 0, idle: shots / 9, turn: shots / 7 },
        committed: shots,
        tombstones: if bad { tenths } else { 0 },
        refused: u64::from(bad),
        workers: vec![worker(Some(running)), worker(None)],
        submit: times(tenths, 90),
        wake: times(tenths, 800),
        release: times(tenths, 60),
        oldest: Some(OldestView { id: shots + 1, kernel: "window", stream: 1, age_ns: 41_000, waits_on, worker: None }),
        held: bad.then_some(HeldView { stream: 3, sequence: 991, age_ns: 420_000 }),
        waiting: if bad { 5 } else { 0 },
        ..GraphView::default()
    }
}

fn workers(trouble: SyntheticFaults) -> Vec<WorkerView> {
    let state = |i: u64| match i {
        5 if trouble == SyntheticFaults::All => WorkerState::Quarantined,
        1 | 2 => WorkerState::Running,
        4 => WorkerState::Claimed,
        _ => WorkerState::Free,
    };
    let worker = |i: u64| WorkerView {
        state: state(i),
        generation: 1_000 + i,
        since_ns: 4_000 + i * 100,
        slot: 400 + i as u32,
        launches: 12_000 + i,
    };
    (0..8).map(worker).collect()
}

/// Slots 400..=405 of the ring are in use, one in each state; earlier slots have been used, later
/// ones not yet.
fn slot(slot: u64, tenths: u64, shots: u64) -> SlotView {
    let state = match slot {
        400 => SlotState::Completed,
        401..=403 => SlotState::InFlight,
        404 | 405 => SlotState::Written,
        _ => SlotState::Idle,
    };
    let start_ns = (tenths * 100_000_000).saturating_sub(60_000);
    let at = |from: SlotState, ns: u64| if slot <= 405 && reached(state) >= reached(from) { start_ns + ns } else { 0 };
    let times = SlotTimes {
        scheduled_ns: if slot <= 405 { start_ns } else { 0 },
        submitted_ns: at(SlotState::Written, 2_000),
        dispatched_ns: at(SlotState::InFlight, 3_200),
        completed_ns: at(SlotState::InFlight, 12_600),
        decoding_ns: at(SlotState::InFlight, 12_900),
        answered_ns: at(SlotState::Completed, 36_900),
        harvested_ns: if state == SlotState::Idle && slot < 400 { start_ns + 37_100 } else { 0 },
    };
    SlotView {
        state,
        since_ns: 61_000 - slot.min(1_000) * 20,
        stream: (slot % 4) as u32,
        sequence: shots + slot,
        worker: (reached(state) >= 2).then_some((slot % 8) as u8),
        times,
    }
}

fn reached(state: SlotState) -> u8 {
    match state {
        SlotState::Written => 1,
        SlotState::InFlight => 2,
        SlotState::Completed => 3,
        SlotState::Idle => 4,
    }
}

pub(super) fn stream(tenths: u64, trouble: SyntheticFaults) -> StreamView {
    let verdict = if trouble == SyntheticFaults::All { HealthVerdict::Bad } else { HealthVerdict::Good };
    StreamView {
        answered: tenths * SHOTS,
        shots_with_observables: tenths * SHOTS,
        logical_errors: tenths * SHOTS / 5_000,
        frame: tenths & 1,
        latency: times(tenths, 37_000),
        input_health: InputHealthView {
            drift: None,
            verdict,
            shots_examined: tenths * SHOTS,
            fraction_found: if trouble == SyntheticFaults::All { 0.49 } else { 0.021 },
            fraction_expected: 0.021,
            hottest: vec![(17, 0.03)],
        },
        ..StreamView::default()
    }
}
