//! Blocks of the engine as a whole and of its hot threads, with their views.
//!
//! As in [`super`], whose hash covers these too.

use super::declare::Plain;
use super::{LABEL_BYTES_MAX, NOTES_MAX, ROLES_MAX, RoleBlock, RoleView, SITE_FRAMES};
use crate::board::get;
use crate::board::histogram::HistogramBlock;
use crate::board::reading::{Now, flag, fraction, if_any, number, one_less};
use crate::board::snapshot::noise::NoiseView;
use crate::board::snapshot::threads::{CompetitorView, MemoryView, PriorityView};
use crate::board::text::Text;
use crate::profile::NAME_BYTES_MAX;
use crate::roles::{RoleKind, ThreadState};
use pinwheel_edge::spin::{Phase, SpinOrder, SpinPolicy};
use serde::Serialize;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

/// Gaps kept on the board for each thread.
pub const GAPS_MAX: usize = 16;

blocks! {
    /// The running engine: process, profile, input. Written at Init and by the control side.
    HeaderBlock => #[derive(Default)] EngineView(header, now, board_path: Option<String>) {
        /// [`MAGIC`](super::MAGIC), stored last.
        magic: AtomicU64,
        /// [`VERSION`](super::VERSION).
        layout_version: AtomicU64,
        /// [`hash`](super::hash).
        layout_hash: AtomicU64,
        /// Id of the process that writes the board.
        pid: AtomicU64 => pid: u32 = number,
        /// [`Shape::words`](super::Shape::words).
        shape: [AtomicU64; 6],
        /// Start of the process's engine, seconds since 1970.
        started_utc_s: AtomicU64 => started_utc_s,
        /// Tick at engine start.
        start_ticks: AtomicU64,
        /// Nanoseconds per tick, fixed point 32.32.
        nanos_per_tick_q32: AtomicU64,
        /// Code of the phase.
        phase: AtomicU64,
        /// Requested spin policy and its epoch, packed.
        spin_requested: AtomicU64,
        /// Answers after this long from their scheduled arrival are late, nanoseconds.
        late_ns: AtomicU64 => late_ns,
        /// A heartbeat older than this is a stall, nanoseconds.
        heartbeat_limit_ns: AtomicU64 => heartbeat_limit_ns,
        /// Scheduled rate in shots per second, bits of an f64; 0: as fast as slots come free.
        rate_hz_bits: AtomicU64,
        /// Detectors of a shot.
        detectors: AtomicU64 => detectors: u32 = number,
        /// Observables of the model.
        observables: AtomicU64 => observables: u32 = number,
        /// Bytes of the silos' memory (rings, slots, jobs), touched before Live.
        arenas_touched_bytes: AtomicU64 => silo_memory_bytes,
        /// Of these: locked in memory.
        arenas_locked_bytes: AtomicU64 => silo_memory_locked_bytes,
        /// How many of `notes` are in use.
        notes_count: AtomicU64,
        /// Version of the program.
        version: Text<4> => version,
        /// Name of the profile in force.
        profile: Text<{ NAME_BYTES_MAX / 8 }> => profile,
        /// The operator's label for this run; may be empty.
        label: Text<{ LABEL_BYTES_MAX / 8 }> => label,
        /// Input in words ("sampler surface_d5", "shots.b8").
        input: Text<32> => input,
        /// Device in words ("sim").
        device: Text<16> => device,
        /// Matcher in words.
        decoder: Text<16> => decoder,
        /// Epoch of the decoders that decode workers are to use.
        decoder_epoch_requested: AtomicU64 => decoder_epoch_requested,
        /// Error models by which shots are decoded, by file or name.
        model: Text<32> => model,
        /// Hash of the model of all streams that have none of their own.
        model_hash: AtomicU64 => model_hash,
        /// Predecoder in words.
        predecoder: Text<8> => predecoder,
        /// Memory of the decoder that all workers share, bytes.
        decoder_shared_bytes: AtomicU64 => decoder_shared_bytes,
        /// Memory of the decoder for each worker, bytes.
        decoder_worker_bytes: AtomicU64 => decoder_worker_bytes,
        /// Gap, decibels, below which an answer is not to be trusted; 0: all are.
        abstain_below_db: AtomicU64 => abstain_below_db,
        /// Origin of the rate ("half of the 41 kHz measured in warm-up", "--rate", "profile").
        rate_origin: Text<16> => rate_origin,
        /// Messages of the start (folded plan, no permission to pin, no `/dev/shm`).
        notes: [Text<32>; NOTES_MAX],
    } + {
        /// Phase that all threads read.
        phase: Phase = Phase::from_code(get(&header.phase)),
        /// Scheduled rate over all silos in shots per second; `None` is as fast as slots come free.
        rate_hz: Option<f64> = Some(fraction(&header.rate_hz_bits)).filter(|rate| *rate > 0.0),
        /// Spin policy that the profile in force asks for.
        spin_requested: SpinPolicy = SpinOrder::unpack(get(&header.spin_requested)).policy,
        /// Epoch of that request.
        spin_epoch_requested: u64 = SpinOrder::unpack(get(&header.spin_requested)).epoch,
        /// Path of the board; `None`: private memory, no other process can attach.
        board_path: Option<String> = board_path,
        /// Messages of the start (folded plan, no permission to pin, no `/dev/shm`).
        notes: Vec<String> =
            header.notes.iter().take(get(&header.notes_count) as usize).map(Text::read).collect(),
    }

    /// One hot thread. Written by it, except where another writer is named and `planned…` (Init),
    /// `policy_requested`, `refusal` (control).
    ThreadBlock => #[derive(Default)] ThreadView(block, now) {
        /// Tick of the start of its last frame.
        heartbeat: AtomicU64,
        /// Frames since start.
        frames: AtomicU64 => frames,
        /// 0 between roles, else the role's code + 1.
        stage: AtomicU64,
        /// Frames that did work.
        frames_busy: AtomicU64 => frames_busy,
        /// Work items since start.
        items: AtomicU64 => items,
        /// Ticks in frames that did work.
        busy_ticks: AtomicU64,
        /// Ticks in frames that found no work and then spun; see [`ThreadBlock::note_polling`].
        polling_ticks: AtomicU64,
        /// Times it yielded or slept by policy.
        yields: AtomicU64 => yields,
        /// Acknowledged spin policy and its epoch, packed.
        policy_acknowledged: AtomicU64,
        /// Thread id of the operating system; 0 before it runs.
        tid: AtomicU64 => tid: u32 = number,
        /// Code of a [`ThreadState`].
        state: AtomicU64,
        /// Whether pinning was verified.
        pinned: AtomicU64 => pinned: bool = flag,
        /// Last phase whose entry work (building, warming) is done, plus 1.
        phase_done: AtomicU64,
        /// Spin policy requested of this thread and its epoch, packed.
        policy_requested: AtomicU64,
        /// Core on which it was planned, if it is pinned.
        planned_core: AtomicU64 => core: Option<u32> = one_less,
        /// Whether no other hot thread is planned on the core.
        planned_exclusive: AtomicU64 => exclusive: bool = flag,
        /// How many of `roles` are in use.
        roles_count: AtomicU64,
        /// Line of the last role's panic; 0: none.
        panic_line: AtomicU64,
        /// File of the last role's panic, the end of its path.
        panic_file: Text<16>,
        /// Name of the thread, also in the operating system.
        name: Text<2> => name,
        /// Why it does not run the profile's policy, if so.
        refusal: Text<16> => policy_refusal: Option<String> = Text::read_if_any,
        /// 0: the allocator does not count in this program; else calls in Live + 1.
        allocations: AtomicU64,
        /// Calls in Live that the thread's own reserve served.
        allocations_lent: AtomicU64,
        /// Callers of the first call in Live, innermost first: addresses of this process.
        allocation_callers: [AtomicU64; SITE_FRAMES],
        /// The same as text (control).
        allocation_site: Text<32>,
        /// Bytes of the thread's arena: touched.
        arena_touched_bytes: AtomicU64,
        /// Of these: locked in memory.
        arena_locked_bytes: AtomicU64,
        /// Frames that began on a core other than the planned one.
        frames_elsewhere: AtomicU64 => frames_elsewhere,
        /// Its roles, in call order.
        roles: [RoleBlock; ROLES_MAX],
        /// Time from the start of one frame to the start of the next.
        frame_gap: HistogramBlock => frame_gap,
        /// Events that found no room in the log.
        events_dropped: AtomicU64 => events_dropped,
        /// Priority asked for, packed (Init).
        priority_asked: AtomicU64,
        /// Priority read back after it was last set, packed; 0: not visible. Written by the thread
        /// that set it.
        priority_found: AtomicU64,
        /// Why the priority differs from the requested one; empty: it does not, or none was
        /// requested. Written by the thread that set it.
        priority_refusal: Text<32>,
        /// Process of the last foreign thread that competed for its core; 0: none was seen (written
        /// by the watch of neighbours).
        competitor_pid: AtomicU64,
        /// Tick at which it was seen (likewise).
        competitor_seen: AtomicU64,
        /// Time that it was ready but did not run, ns (likewise).
        competitor_waited_ns: AtomicU64,
        /// Time that it ran, ns (likewise).
        competitor_ran_ns: AtomicU64,
        /// Time between the two samples, ns (likewise).
        competitor_span_ns: AtomicU64,
        /// Samples that found a competitor (likewise).
        competitor_samples: AtomicU64,
        /// Its command name (likewise).
        competitor_command: Text<2>,
        /// Its user (likewise).
        competitor_user: Text<4>,
        /// Frames of `polling_ticks` that lost their core meanwhile.
        noise_gaps: AtomicU64,
        /// Ticks of these frames.
        noise_gap_ticks: AtomicU64,
        /// Ticks of the longest of them.
        noise_gap_longest: AtomicU64,
        /// Time that the following words account for, ns; 0: none (the watchdog).
        noise_span_ns: AtomicU64,
        /// Time that it was ready but did not run, ns (likewise).
        noise_ready_ns: AtomicU64,
        /// Time that the hypervisor took from its core, ns (likewise).
        noise_stolen_ns: AtomicU64,
        /// Interrupts of its core (likewise).
        noise_interrupts: AtomicU64,
        /// Time that `noise_taken_by` had its core, ns (likewise).
        noise_taken_ns: AtomicU64,
        /// Who had its core for longest of all others; empty: nobody, or not visible (likewise).
        noise_taken_by: Text<16>,
        /// Gaps longer than this are recorded, ticks; 0: none (the watchdog).
        gap_limit_ticks: AtomicU64,
        /// Address of the last word of its stack, in this process; 0 if the system does not tell.
        stack_anchor: AtomicU64,
        /// Gaps recorded.
        gaps_count: AtomicU64,
        /// The last gaps; see [`ThreadBlock::note_gap`].
        gaps: [GapRow; GAPS_MAX],
    } + {
        /// Its roles in call order.
        roles: Vec<RoleView> = block.own_roles().iter().map(|role| RoleView::read(role, now)).collect(),
        /// Policy asked of this thread (after refusals).
        policy_requested: SpinPolicy = SpinOrder::unpack(get(&block.policy_requested)).policy,
        /// Policy that it runs.
        policy_acknowledged: SpinPolicy =
            SpinOrder::unpack(get(&block.policy_acknowledged)).policy,
        /// Epoch of the policy that it runs; lower than `spin_epoch_requested` until it has seen
        /// the switch.
        epoch_acknowledged: u64 = SpinOrder::unpack(get(&block.policy_acknowledged)).epoch,
        /// Its scheduling priority.
        priority: PriorityView = block.priority(),
        /// Foreign thread that competed for its core, last seen; `None`: none was seen.
        contended_by: Option<CompetitorView> = block.competitor(now),
        /// What took its core away.
        noise: NoiseView = block.noise(now),
        /// Age of the last heartbeat.
        heartbeat_age_ns: u64 =
            if block.state() == ThreadState::Running { now.age_ns(&block.heartbeat) } else { 0 },
        /// Nanoseconds spent in frames that did work, since start.
        busy_ns: u64 = now.span_ns(get(&block.busy_ticks)),
        /// Role it is in; `None` between roles.
        stage: Option<RoleKind> =
            one_less(&block.stage).and_then(|code| RoleKind::ALL.get(code as usize).copied()),
        /// Starting, running or finished.
        state: ThreadState = block.state(),
        /// Place of the last panic of one of its roles ("file:line").
        panic_site: Option<String> =
            if_any(&block.panic_line).map(|line| format!("{}:{line}", block.panic_file.read())),
        /// Memory given to it, and memory that it requested beyond.
        memory: MemoryView = block.memory(),
    }

    /// One long gap between two frames of a thread, which writes it.
    GapRow {
        /// Number of the gap being written.
        begun: AtomicU64,
        /// Number of the gap.
        number: AtomicU64,
        /// Tick of the start of the long frame.
        start: AtomicU64,
        /// Length, ticks.
        length: AtomicU64,
        /// Role code + 1 of the longest part; 0: outside all roles.
        stage: AtomicU64,
    }
}
