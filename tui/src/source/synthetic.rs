//! An engine that is not there: snapshots by arithmetic, for tests.
//!
//! Longer than 500 lines, because it has a value for every field of the snapshot; each part that grew has a file of its own.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

mod placement;

pub use placement::{overflow, placement};

use super::past::Past;
use super::{Offer, Source, offers_of};
use crate::model::deeds::Deed;
use crate::model::found::{Brought, Event};
use pinwheel_edge::page::Response;
use pinwheel_engine::board::alarms::{AlarmState, Confidence, Site};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{
    AlarmView, ArbiterView, ClockView, ControlView, Counters, DeviceState, EngineView, ErrorCount, FaultView,
    FlushesView, GraphView, GraphWorkerView, HealthVerdict, HeldView, HintName, InputHealthView, LeaseView, LifeView,
    LogView, MemoryView, OldestView, PageCause, PortView, PriorityView, ReadyView, RecorderView, RingView, RivalView,
    RoleView, RunningView, SiloView, SlotState, SlotTimes, SlotView, Snapshot, SourceKind, SourcePeer, SourceState,
    SourceStream, SourceView, StageView, StreamView, ThreadState, ThreadView, TransferView, TransitionView, WaitsOn,
    WorkerState, WorkerView,
};
use pinwheel_engine::board::{Phase, SpinPolicy};
use pinwheel_engine::host::check::{Row, Verdict};
use pinwheel_engine::host::usage::CoreUse;
use pinwheel_engine::profile::{self, Profile, RoleKind};
use std::time::Duration;

/// Shots per tenth of a second.
const SHOTS: u64 = 2_000;

/// What is wrong with the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Something of everything.
    All,
}

fn clock(tenths: u64, trouble: Trouble) -> ClockView {
    let utc_steps = if trouble == Trouble::All { tenths } else { 0 };
    ClockView { source: "invariant counter".to_owned(), pairs: tenths, utc_steps, ..ClockView::default() }
}

/// A picture after `tenths` tenths of a second.
pub fn snapshot(tenths: u64, trouble: Trouble) -> Snapshot {
    let at_ns = tenths * 100_000_000;
    let faults = match trouble {
        Trouble::None => Vec::new(),
        Trouble::All => vec![FaultView {
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
        log: LogView { dropped: if trouble == Trouble::All { 4 } else { 0 }, ..LogView::default() },
        recorder: RecorderView::default(),
        alarms: if trouble == Trouble::All { alarms(at_ns) } else { Vec::new() },
        sources: sources(tenths, trouble),
        control: ControlView::default(),
        placement: (tenths > 0).then(|| placement(tenths, trouble)),
    }
}

/// None without trouble; a socket whose one sender has fallen silent with all of it.
fn sources(tenths: u64, trouble: Trouble) -> Vec<SourceView> {
    if trouble == Trouble::None {
        return Vec::new();
    }
    let accepted = SHOTS * tenths;
    let stream = SourceStream {
        accepted,
        answered: accepted - 7,
        lag: 7,
        accepted_last: accepted + 11,
        answered_last: accepted + 4,
        silent_ns: Some(2_300_000_000),
        gaps: 12,
        duplicates: 3,
        reordered: 2,
        malformed: 1,
        incomplete: 4,
        stale: 5,
        restarts: 1,
        id: 0,
    };
    let peer = SourcePeer {
        address: "127.0.0.1:41234".to_owned(),
        silent_ns: 2_300_000_000,
        shots: accepted,
        answers: accepted - 9,
        dropped: 2,
    };
    vec![SourceView {
        kind: SourceKind::Udp,
        name: "udp:127.0.0.1:7000".to_owned(),
        state: SourceState::Silent,
        silent_ns: Some(2_300_000_000),
        epoch: 0x1234_5678_9abc,
        width_bits: 120,
        buffer_bytes: 425_984,
        received: accepted + 40,
        accepted,
        answered: accepted - 9,
        answers_dropped: 2,
        malformed: 6,
        foreign: 8,
        other_epoch: 3,
        unknown_streams: 1,
        kernel_drops: 17,
        errors: 0,
        lane_waits: 5,
        peers_count: 1,
        peers: vec![peer],
        client: None,
        streams: vec![stream],
    }]
}

/// One that calls, one that was worse, one that healed.
fn alarms(at_ns: u64) -> Vec<AlarmView> {
    let alarm = |number, rule, site, severity, cause: &str, sentence: &str| AlarmView {
        number,
        rule,
        site,
        thread: None,
        severity,
        state: AlarmState::Active,
        first_ns: at_ns / 4,
        onset_ns: at_ns / 2,
        last_ns: at_ns,
        ended_ns: None,
        duration_ns: at_ns / 2,
        judged_after_ns: Some(21_000_000),
        count: 3,
        acknowledged_ns: None,
        snoozed_until_ns: None,
        confidence: Confidence::Certain,
        cause: cause.to_owned(),
        sentence: sentence.to_owned(),
        evidence: vec!["ran 31.0 ms, ready and not run 0.0 ms".to_owned(), "state R, core 1".to_owned()],
        stack: Vec::new(),
        culprit: None,
        runbook: "open the alarm: its verdict names the cause".to_owned(),
    };
    let lost = "silo 0: device lost, no worker answers; 7 shots predecoded on the CPU";
    let long = "hot-0 stood still 31.0 ms in poll: long handler: poll computes, at poller.rs:88 (ran 31.0 ms)";
    let gap = "work-0 stood still 14.2 ms: descheduled 13.9 ms by cargo (8123) on core 0, which ran 13.1 ms";
    vec![
        alarm(2, "device_lost", Site::Silo(0, 0), profile::Severity::Critical, "device hung", lost),
        AlarmView {
            thread: Some("hot-0".to_owned()),
            stack: vec!["compute (poller.rs:88)".to_owned(), "work (poller.rs:41)".to_owned()],
            culprit: Some("poller.rs:88 (compute)".to_owned()),
            ..alarm(1, "heartbeat", Site::Thread(0), profile::Severity::Warn, "long handler", long)
        },
        AlarmView {
            thread: Some("work-0".to_owned()),
            state: AlarmState::Ended,
            ended_ns: Some(at_ns / 2 + 14_200_000),
            duration_ns: 14_200_000,
            confidence: Confidence::Likely,
            ..alarm(3, "frame_gap", Site::Thread(1), profile::Severity::Note, "descheduled", gap)
        },
    ]
}

fn engine() -> EngineView {
    EngineView {
        pid: 4_711,
        version: "0.1.0".to_owned(),
        phase: Phase::Live,
        started_utc_s: 1_767_276_000,
        profile: "lab".to_owned(),
        label: String::new(),
        input: "sampler surface_d5".to_owned(),
        device: "sim".to_owned(),
        decoder: "sparse blossom".to_owned(),
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
    }
}

fn thread(name: &str, tenths: u64, kinds: &[RoleKind], busy_ns_per_tenth: u64) -> ThreadView {
    let roles =
        kinds.iter().map(|kind| RoleView { kind: *kind, silo: 0, index: 0, items: tenths * SHOTS, died_frame: None });
    ThreadView {
        name: name.to_owned(),
        tid: 4_712,
        roles: roles.collect(),
        core: Some(1),
        pinned: true,
        exclusive: true,
        policy_requested: SpinPolicy::Lab,
        policy_acknowledged: SpinPolicy::Lab,
        epoch_acknowledged: 1,
        policy_refusal: None,
        priority: PriorityView { asked: "normal".to_owned(), found: Some("normal".to_owned()), why_not: None },
        contended_by: None,
        heartbeat_age_ns: 20_000 + tenths % 7 * 900,
        frames: tenths * 90_000,
        frames_busy: tenths * 1_900,
        items: tenths * SHOTS * kinds.len() as u64,
        busy_ns: tenths * busy_ns_per_tenth,
        yields: tenths * 40,
        stage: kinds.first().copied(),
        frame_gap: gaps(tenths),
        state: ThreadState::Running,
        panic_site: None,
        memory: MemoryView::default(),
        frames_elsewhere: 0,
        events_dropped: 0,
    }
}

fn gaps(tenths: u64) -> Histogram {
    let values: Vec<u64> = (0..tenths).flat_map(|t| [900, 1_100, 2_100 + t % 5 * 40_000]).collect();
    Histogram::of(&values)
}

fn ring_thread(tenths: u64, trouble: Trouble) -> ThreadView {
    let mut ring = thread("hot-0", tenths, &RoleKind::RING, 41_000_000);
    if trouble == Trouble::All {
        ring.heartbeat_age_ns = 31_000_000;
        ring.policy_refusal = Some("core 1 is shared with another thread".to_owned());
        ring.frames_elsewhere = 3;
        ring.contended_by = Some(RivalView {
            pid: 1_312,
            user: "ada".to_owned(),
            command: "make".to_owned(),
            waited_ns: 312_000_000,
            ran_ns: 81_000_000,
            span_ns: 1_000_000_000,
            age_ns: 400_000_000,
            looks: 3,
        });
    }
    ring
}

fn work_thread(tenths: u64, trouble: Trouble) -> ThreadView {
    let mut work = thread("work-0", tenths, &[RoleKind::Decode], 63_000_000);
    work.core = None;
    work.pinned = false;
    work.exclusive = false;
    if trouble == Trouble::All {
        work.roles[0].died_frame = Some(77);
        work.panic_site = Some("decode/matcher.rs:41".to_owned());
        work.memory.allocations = Some(12);
        work.memory.first_site = Some("shatter (matcher.rs:271)".to_owned());
    }
    work
}

fn silo(tenths: u64, trouble: Trouble) -> SiloView {
    let shots = tenths * SHOTS;
    let bad = trouble == Trouble::All;
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
        rings: [("rx", 1_024, 3), ("ready", 8, 1), ("tx", 1_024, 2), ("answers", 1_024, 0)]
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
        moves: None,
        graph: graph(tenths, trouble),
        gpu: None,
        overflow: overflow(tenths, trouble),
        life: LifeView { epoch: 1, ..LifeView::default() },
    }
}

fn graph(tenths: u64, trouble: Trouble) -> GraphView {
    let (shots, bad) = (tenths * SHOTS, trouble == Trouble::All);
    let worker = |task: Option<RunningView>| GraphWorkerView {
        ran: shots / 2,
        stolen: shots / 50,
        steals_failed: shots / 20,
        depth: 2,
        task,
    };
    let running = RunningView { id: shots + 9, kernel: "decode", stream: 2, age_ns: 14_000 };
    let waits_on = if bad { WaitsOn::Permit(2) } else { WaitsOn::Worker };
    GraphView {
        arriving: 0,
        policy: "work stealing".to_owned(),
        submitted: shots + 4,
        ran: shots + 2,
        retired: shots,
        window_used: 4,
        window_tasks: 8_192,
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
        window: Histogram::default(),
        oldest: Some(OldestView {
            id: shots + 1,
            kernel: "decode+commit",
            stream: 1,
            age_ns: 41_000,
            waits_on,
            worker: None,
        }),
        held: bad.then_some(HeldView { stream: 3, sequence: 991, age_ns: 420_000 }),
        waiting: if bad { 5 } else { 0 },
    }
}

fn times(tenths: u64, ns: u64) -> Histogram {
    let values: Vec<u64> = (0..tenths).flat_map(|t| (0..20).map(move |i| ns + ns / 20 * (i + t % 3))).collect();
    Histogram::of(&values)
}

/// An arbiter under contention; in trouble one grant is in doubt.
pub fn arbiter(tenths: u64, trouble: Trouble) -> ArbiterView {
    let bad = trouble == Trouble::All;
    let transfer = |page: u32, age_ns, remedy: Option<&str>| TransferView {
        page,
        receiver: 1,
        epoch: 40 + page,
        age_ns,
        cancels: if remedy.is_some() { 1_203 } else { 0 },
        remedy: remedy.map(str::to_owned),
    };
    let doubt = "page 7: granted to silo 1 in epoch 47, no ACK for 12000 us after 1203 CANCELs; expected its arbiter to \
                 answer: look in threads for silo 1 (late: it ends the doubt when it runs again; died: end and join its threads)";
    let mut transfers = vec![transfer(3, 1_900, None)];
    transfers.extend(bad.then(|| transfer(7, 12_000_000, Some(doubt))));
    let seen = |i: u64| TransitionView {
        at_ns: tenths * 100_000_000 - 9_000 * (16 - i),
        cause: PageCause::ALL[i as usize % 8],
        state: ["TRANSFERRING", "TRANSFERRING", "NOT_OWNER", "IDLE", "IN_DOUBT", "IDLE", "NOT_OWNER", "LEASED"]
            [i as usize % 8],
        owner: (i % 2) as u8,
        epoch: 31 + i as u32,
    };
    ArbiterView {
        pages: 1_024,
        states: vec![
            ("IDLE", 480),
            ("LOCAL_HOT", 21),
            ("LEASED", 2),
            ("TRANSFERRING", 1),
            ("NOT_OWNER", 520 - u64::from(bad)),
            ("IN_DOUBT", u64::from(bad)),
        ],
        counted_age_ns: 81_000_000,
        decisions: Response::NAMES
            .into_iter()
            .enumerate()
            .map(|(i, name)| (name, tenths * (11 - i as u64) * 1_000))
            .collect(),
        forced: u64::from(bad),
        left: tenths * 4_000,
        arrived: tenths * 4_001,
        kept: tenths,
        doubted: tenths + u64::from(bad),
        cancels: tenths + 1_203 * u64::from(bad),
        inherited: 512 * u64::from(bad),
        torn: u64::from(bad),
        unheard: u64::from(bad),
        ports: vec![
            PortView { silo: 1, wins: tenths * 4_000, refusals: tenths * 900, age: 0 },
            PortView { silo: 2, wins: tenths * 10, refusals: tenths * 7_000, age: 5 },
        ],
        transfers_open: transfers.len() as u64,
        transfers,
        leases: vec![
            LeaseView { page: 12, hint: HintName::Lock, left_ns: 41_000 },
            LeaseView { page: 900, hint: HintName::Lease, left_ns: 3_100_000_000 },
        ],
        history_page: Some(7),
        history: (0..16).map(seen).collect(),
        decision: times(tenths, 31),
        transfer: times(tenths, 2_900),
    }
}

fn workers(trouble: Trouble) -> Vec<WorkerView> {
    let state = |i: u64| match i {
        5 if trouble == Trouble::All => WorkerState::Quarantined,
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

/// Slots 400..=405 of the ring are in use, one in each stage of its life; those before were, those after were not yet.
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

fn stream(tenths: u64, trouble: Trouble) -> StreamView {
    let verdict = if trouble == Trouble::All { HealthVerdict::Bad } else { HealthVerdict::Good };
    StreamView {
        id: 0,
        silo: 0,
        answered: tenths * SHOTS,
        errors: 0,
        late: 0,
        shots_with_observables: tenths * SHOTS,
        logical_errors: tenths * SHOTS / 5_000,
        frame: tenths & 1,
        latency: times(tenths, 37_000),
        input_health: InputHealthView {
            verdict,
            shots_examined: tenths * SHOTS,
            fraction_found: if trouble == Trouble::All { 0.49 } else { 0.021 },
            fraction_expected: 0.021,
            hottest: vec![(17, 0.03)],
        },
        overflow: Vec::new(),
    }
}

/// What there is to be read beside the board.
pub fn beside(trouble: Trouble) -> Vec<Brought> {
    let verdict = if trouble == Trouble::All { Verdict::Fail } else { Verdict::Pass };
    let row = |id: &str, found: &str, expected: &str, verdict| Row {
        id: id.to_owned(),
        found: found.to_owned(),
        expected: expected.to_owned(),
        verdict,
        why: "a scheduler tick on a hot core is a frame that comes late".to_owned(),
        fix: if verdict == Verdict::Pass { String::new() } else { "boot with nohz_full=1".to_owned() },
    };
    let core = |core: u32| CoreUse {
        core,
        node: 0,
        sibling: None,
        allowed: true,
        claimed_by: None,
        pinned_by: Vec::new(),
        busy: (core > 0).then_some(0.41),
    };
    let event = |number: u64, event: &str, text: &str| Event {
        number,
        utc: format!("2026-01-01T14:00:0{number}.500000000Z"),
        at_ns: Some(number * 1_000_000_000 + 500_000_000),
        thread: "watchdog".to_owned(),
        event: event.to_owned(),
        text: text.to_owned(),
        numbers: vec![number],
    };
    vec![
        Brought::Environment(Ok(vec![
            row("nohz_full", "none", "core 1", verdict),
            row("governor", "performance", "performance", Verdict::Pass),
            row("throttling", "no counter", "none in the last minute", Verdict::NotVisible),
        ])),
        Brought::Cores(Ok(vec![core(0), core(1)])),
        Brought::Log(Ok(vec![
            event(0, "phase", "WARMUP"),
            event(1, "phase", "LIVE"),
            event(2, "alarm_onset", "hot-0 stood still 31.0 ms"),
            event(2, "operated", "feed held by ada (uid 1000, process 7, pts/3): tea"),
        ])),
    ]
}

/// A source that plays the pictures above and notes what was asked of it.
pub struct Synthetic {
    tenths: u64,
    current: (String, Profile),
    /// Profiles applied.
    pub applied: Vec<String>,
    /// For how long the last of them was asked for.
    pub lent: Option<Duration>,
    /// Drains asked for.
    pub drains: u32,
    /// Notes kept.
    pub notes: Vec<String>,
    /// What was done to silos, streams and the input.
    pub deeds: Vec<Deed>,
    /// Reasons given, one for each switch, drain and deed.
    pub whys: Vec<String>,
}

impl Synthetic {
    /// An engine that runs profile lab.
    pub fn new() -> Synthetic {
        let lab = Profile::load("lab", None).unwrap().0;
        Synthetic {
            tenths: 0,
            current: ("lab".to_owned(), lab),
            applied: Vec::new(),
            lent: None,
            drains: 0,
            notes: Vec::new(),
            deeds: Vec::new(),
            whys: Vec::new(),
        }
    }
}

impl Source for Synthetic {
    fn snapshot(&mut self) -> Option<Snapshot> {
        self.tenths += 1;
        let mut snapshot = snapshot(self.tenths, Trouble::None);
        let policy = match self.current.1.spin {
            profile::SpinPolicy::Prod => SpinPolicy::Prod,
            profile::SpinPolicy::Lab => SpinPolicy::Lab,
            profile::SpinPolicy::Shared => SpinPolicy::Shared,
        };
        let epoch = 1 + self.applied.len() as u64;
        snapshot.engine.profile.clone_from(&self.current.0);
        snapshot.engine.spin_requested = policy;
        snapshot.engine.spin_epoch_requested = epoch;
        for thread in &mut snapshot.threads {
            (thread.policy_requested, thread.policy_acknowledged) = (policy, policy);
            thread.epoch_acknowledged = epoch;
        }
        Some(snapshot)
    }

    fn apply(&mut self, name: &str, profile: &Profile, lent: Option<Duration>, why: &str) -> Result<(), String> {
        self.whys.push(why.to_owned());
        self.current = (name.to_owned(), profile.clone());
        self.lent = lent;
        self.applied.push(name.to_owned());
        Ok(())
    }

    fn drain(&mut self, why: &str) -> Result<(), String> {
        self.whys.push(why.to_owned());
        self.drains += 1;
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.drains > 0
    }

    fn act(&mut self, deed: &Deed, why: &str) -> Result<(), String> {
        self.whys.push(why.to_owned());
        self.deeds.push(deed.clone());
        Ok(())
    }

    fn offers(&self) -> Vec<Offer> {
        offers_of(None, &self.current.1)
    }

    /// Pictures of every tenth of a second since the start.
    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        const TENTH_NS: u64 = 100_000_000;
        let start_ns = snapshot(0, Trouble::None).at_ns;
        let at = (at_ns.saturating_sub(start_ns) / TENTH_NS).clamp(1, self.tenths.max(1));
        let pictures = (at.saturating_sub(30).max(1)..=at).map(|tenths| snapshot(tenths, Trouble::None)).collect();
        let (from_ns, to_ns) = (start_ns + TENTH_NS, start_ns + self.tenths * TENTH_NS);
        Ok(Past { pictures, from_ns, to_ns, notes: vec![(from_ns, "cooled down".to_owned())] })
    }

    fn note(&mut self, text: &str) -> Result<(), String> {
        self.notes.push(text.to_owned());
        Ok(())
    }
}
