//! Synthetic snapshots for tests, computed without an engine. One file per kind of data.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

mod alarms;
mod arbiter;
mod placement;
mod silo;
mod sources;
mod threads;

pub use arbiter::arbiter;
pub use placement::{overflow, placement};

use alarms::{alarms, incidents};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{
    ClockView, ControlView, EngineView, FaultView, LogView, RecorderView, ShadowView, Snapshot,
};
use pinwheel_engine::board::{Phase, SpinPolicy};
use pinwheel_engine::profile::DecoderKind;
use silo::{silo, stream};
use sources::sources;
use threads::{ring_thread, work_thread};

/// Shots per tenth of a second.
const SHOTS: u64 = 2_000;

/// Faults of the synthetic engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntheticFaults {
    /// No fault.
    None,
    /// One fault of every kind.
    All,
}

fn clock(tenths: u64, trouble: SyntheticFaults) -> ClockView {
    let utc_steps = if trouble == SyntheticFaults::All { tenths } else { 0 };
    ClockView { source: "invariant counter".to_owned(), pairs: tenths, utc_steps, ..ClockView::default() }
}

/// A picture after `tenths` tenths of a second.
pub fn snapshot(tenths: u64, trouble: SyntheticFaults) -> Snapshot {
    let at_ns = tenths * 100_000_000;
    let alarms = if trouble == SyntheticFaults::All { alarms(at_ns) } else { Vec::new() };
    let faults = match trouble {
        SyntheticFaults::None => Vec::new(),
        SyntheticFaults::All => vec![FaultView {
            code: 3,
            name: "launch deadline passed (worker)".to_owned(),
            silo: Some(0),
            count: 4,
            first_ns: 1,
            last_ns: at_ns / 2,
            detail: 5,
        }],
    };
    Snapshot {
        at_ns,
        engine: engine(),
        threads: vec![ring_thread(tenths, trouble), work_thread(tenths, trouble)],
        silos: vec![silo(tenths, trouble)],
        streams: vec![stream(tenths, trouble)],
        faults,
        clock: clock(tenths, trouble),
        log: LogView { dropped: if trouble == SyntheticFaults::All { 4 } else { 0 }, ..LogView::default() },
        recorder: RecorderView::default(),
        incidents: incidents(&alarms),
        alarms,
        sources: sources(tenths, trouble),
        control: ControlView::default(),
        placement: (tenths > 0).then(|| placement(tenths, trouble)),
        shadow: (tenths > 0).then(shadow),
    }
}

/// A shadow that gets one shot in a hundred.
fn shadow() -> ShadowView {
    ShadowView {
        is_on: true,
        decoder: Some(DecoderKind::UnionFind),
        one_in: 100,
        sampled: 2_010,
        left_out: 40,
        compared: 2_000,
        disagreements: 3,
        disagreements_kept: 3,
        shots_with_observables: 2_000,
        path_logical_errors: 11,
        shadow_logical_errors: 12,
        path_errors: 10,
        path_latency: Histogram::of(&[4_000, 5_000]),
        decode: Histogram::of(&[1_500, 2_500]),
        core_share: 0.004,
        ..ShadowView::default()
    }
}

fn engine() -> EngineView {
    EngineView {
        pid: 4_711,
        version: "0.1.0".to_owned(),
        phase: Phase::Live,
        started_utc_s: 1_767_276_000,
        profile: "lab".to_owned(),
        input: "sampler surface_d5".to_owned(),
        device: "sim".to_owned(),
        decoder: "sparse blossom".to_owned(),
        decoder_epoch_requested: 1,
        predecoder: "none".to_owned(),
        detectors: 120,
        observables: 1,
        rate_hz: Some(20_000.0),
        rate_origin: "half of the 40 kHz measured in warm-up".to_owned(),
        late_ns: 2_000_000,
        heartbeat_limit_ns: 20_000_000,
        spin_requested: SpinPolicy::Lab,
        spin_epoch_requested: 1,
        board_path: Some("/dev/shm/pinwheel-4711".to_owned()),
        silo_memory_bytes: 4 << 20,
        silo_memory_locked_bytes: 4 << 20,
        notes: vec!["no permission to pin: threads float".to_owned()],
        ..EngineView::default()
    }
}

fn times(tenths: u64, ns: u64) -> Histogram {
    let values: Vec<u64> = (0..tenths).flat_map(|t| (0..20).map(move |i| ns + ns / 20 * (i + t % 3))).collect();
    Histogram::of(&values)
}
