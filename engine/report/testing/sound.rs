//! A sound run as its outcome, for tests.

use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{
    ClockView, ControlView, Counters, DeviceState, EngineView, GraphView, InputHealthView, LifecycleView, LogView,
    OverflowView, RecorderView, RoleView, SiloView, Snapshot, StageView, StreamView, ThreadView,
};
use pinwheel_engine::engine::{EndedBy, EnvironmentResult, Outcome};
use pinwheel_engine::roles::{RoleKind, ThreadState};
use pinwheel_engine::streams::HealthVerdict;

fn engine() -> EngineView {
    EngineView {
        pid: 1,
        version: "0.1.0".to_owned(),
        phase: Phase::Shutdown,
        profile: "lab".to_owned(),
        input: "sampler surface_d5".to_owned(),
        device: "sim".to_owned(),
        decoder: "matching".to_owned(),
        predecoder: "none".to_owned(),
        detectors: 120,
        observables: 1,
        rate_hz: Some(500.0),
        rate_origin: "--rate".to_owned(),
        late_ns: 2_000_000,
        heartbeat_limit_ns: 20_000_000,
        spin_requested: SpinPolicy::Lab,
        spin_epoch_requested: 1,
        silo_memory_bytes: 4 << 20,
        silo_memory_locked_bytes: 4 << 20,
        notes: vec!["folded onto one hot thread".to_owned()],
        ..EngineView::default()
    }
}

fn environment() -> EnvironmentResult {
    let rows = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let (fail, warn) = (rows(["isolcpus", "nohz_full"]), rows(["swap", "smt"]));
    EnvironmentResult { fail, warn, file: Some("logs/x/environment.json".to_owned()), trouble: None }
}

fn thread() -> ThreadView {
    let role = RoleView { kind: RoleKind::Decode, silo: 0, index: 1, items: 1_000, died_frame: None };
    ThreadView {
        name: "hot-0".to_owned(),
        tid: 7,
        roles: vec![role],
        core: Some(1),
        pinned: true,
        exclusive: true,
        policy_requested: SpinPolicy::Lab,
        policy_acknowledged: SpinPolicy::Lab,
        epoch_acknowledged: 1,
        heartbeat_age_ns: 10,
        frames: 5_000,
        frames_busy: 1_000,
        items: 1_000,
        busy_ns: 1_000_000,
        yields: 3,
        frame_gap: Histogram::of(&[100, 200, 300]),
        state: ThreadState::Finished,
        ..ThreadView::default()
    }
}

fn silo(id: u32) -> SiloView {
    let counters = Counters {
        scheduled: 500,
        submitted: 500,
        dispatched: 500,
        answered: 500,
        shots_with_observables: 50,
        logical_errors: 5,
        dispatch_ns: 40_000,
        ..Counters::default()
    };
    SiloView {
        id,
        device: DeviceState::Online,
        counters,
        errors: Vec::new(),
        rings: Vec::new(),
        idle_mask: 0,
        workers: Vec::new(),
        slots: Vec::new(),
        stages: ["feed", "decode"].map(|name| StageView { name, time: Histogram::of(&[1_000; 500]) }).into(),
        latency: Histogram::of(&[50_000; 500]),
        latency_from_submit: Histogram::of(&[40_000; 500]),
        timer_lateness: Histogram::of(&[700; 20]),
        graph: GraphView::default(),
        arbiter: None,
        moves: None,
        gpu: None,
        overflow: OverflowView { strategy: "Block", ..OverflowView::default() },
        lifecycle: LifecycleView { epoch: 1, ..LifecycleView::default() },
    }
}

fn stream(id: u32) -> StreamView {
    StreamView {
        id,
        answered: 1_000,
        frame: 1,
        latency: Histogram::of(&[50_000; 1_000]),
        input_health: InputHealthView {
            drift: None,
            verdict: HealthVerdict::Good,
            shots_examined: 1_000,
            fraction_found: 0.05,
            fraction_expected: 0.05,
            hottest: Vec::new(),
        },
        ..StreamView::default()
    }
}

/// A sound run of two silos with 1,000 answers.
pub fn sound() -> Outcome {
    Outcome {
        snapshot: Snapshot {
            at_ns: 2_100_000_000,
            engine: engine(),
            threads: vec![thread()],
            silos: vec![silo(0), silo(1)],
            streams: vec![stream(0)],
            faults: Vec::new(),
            clock: ClockView { source: "invariant counter".to_owned(), pairs: 21, ..ClockView::default() },
            sources: Vec::new(),
            placement: None,
            shadow: None,
            log: LogView { written: 9, dropped: 1, unkept: 0 },
            alarms: Vec::new(),
            incidents: Vec::new(),
            recorder: RecorderView::default(),
            control: ControlView::default(),
        },
        ended_by: EndedBy::Count,
        elapsed_live_ns: 2_000_000_000,
        unanswered: Vec::new(),
        sink: None,
        events: None,
        input_error: None,
        counted: Vec::new(),
        environment: Some(environment()),
        task_times: Vec::new(),
    }
}
