//! Synthetic threads: the ring's, and one that decodes.

use super::{SHOTS, SyntheticFaults};
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{CompetitorView, NoiseView, PriorityView, RoleView, ThreadView};
use pinwheel_engine::roles::RoleKind;
use pinwheel_engine::roles::ThreadState;

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
        priority: PriorityView { asked: "normal".to_owned(), found: Some("normal".to_owned()), why_not: None },
        heartbeat_age_ns: 20_000 + tenths % 7 * 900,
        frames: tenths * 90_000,
        frames_busy: tenths * 1_900,
        items: tenths * SHOTS * kinds.len() as u64,
        busy_ns: tenths * busy_ns_per_tenth,
        yields: tenths * 40,
        stage: kinds.first().copied(),
        frame_gap: gaps(tenths),
        state: ThreadState::Running,
        noise: noise(tenths),
        ..ThreadView::default()
    }
}

fn noise(tenths: u64) -> NoiseView {
    NoiseView {
        span_ns: tenths * 100_000_000,
        ready_ns: tenths * 1_800_000,
        stolen_ns: 0,
        interrupts: tenths * 25,
        polling_ns: tenths * 50_000_000,
        gaps: tenths * 4,
        gap_ns: tenths * 1_050_000,
        longest_gap_ns: 4_100_000,
        taken_by: "cc1 ×14, children of make (1311), user ada".to_owned(),
        taken_by_ns: tenths * 1_500_000,
    }
}

fn gaps(tenths: u64) -> Histogram {
    let values: Vec<u64> = (0..tenths).flat_map(|t| [900, 1_100, 2_100 + t % 5 * 40_000]).collect();
    Histogram::of(&values)
}

pub(super) fn ring_thread(tenths: u64, trouble: SyntheticFaults) -> ThreadView {
    let mut ring = thread("hot-0", tenths, &RoleKind::RING, 41_000_000);
    if trouble == SyntheticFaults::All {
        ring.heartbeat_age_ns = 31_000_000;
        ring.policy_refusal = Some("core 1 is shared with another thread".to_owned());
        ring.frames_elsewhere = 3;
        ring.contended_by = Some(CompetitorView {
            pid: 1_312,
            user: "ada".to_owned(),
            command: "make".to_owned(),
            waited_ns: 312_000_000,
            ran_ns: 81_000_000,
            span_ns: 1_000_000_000,
            age_ns: 400_000_000,
            samples: 3,
        });
    }
    ring
}

pub(super) fn work_thread(tenths: u64, trouble: SyntheticFaults) -> ThreadView {
    let mut work = thread("work-0", tenths, &[RoleKind::Decode], 63_000_000);
    work.core = None;
    work.pinned = false;
    work.exclusive = false;
    if trouble == SyntheticFaults::All {
        work.roles[0].died_frame = Some(77);
        work.panic_site = Some("decode/matcher.rs:41".to_owned());
        work.memory.allocations = Some(12);
        work.memory.first_site = Some("shatter (matcher.rs:271)".to_owned());
    }
    work
}
