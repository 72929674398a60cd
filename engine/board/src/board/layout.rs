//! The board's byte layout: blocks, and where each lies.
//!
//! Owns names and offsets, once. All blocks are `repr(C)`, 128-byte aligned, made of 64-bit atomics and valid for any
//! bytes; the region is a header followed by one array per kind of block, in the order of [`Layout`]'s fields, each
//! starting on a 128-byte boundary. [`hash`] covers every field's name and offset, so that two builds either agree on
//! all of them or refuse each other.
//!
//! Longer than 500 lines, because a table of fields is read from top to bottom.

mod places;

pub(super) use places::Layout;
pub use places::Shape;

use super::gaps::GAPS_MAX;
use super::histogram::{BUCKETS, HistogramBlock};
use super::text::Text;
use crate::profile::{NAME_BYTES_MAX, THREAD_ROLES_MAX};
use pinwheel_edge::page::{Response, State};
use pinwheel_edge::slot::WORKERS_MAX;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

/// "PINWHEEL" read as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PINWHEEL");
/// Layout version; the hash covers what it forgets.
pub const VERSION: u64 = 1;
/// Most roles that one thread runs.
pub const ROLES_MAX: usize = THREAD_ROLES_MAX;
/// Longest label of a run, bytes.
pub const LABEL_BYTES_MAX: usize = 128;
/// Notes that the header holds.
pub const NOTES_MAX: usize = 8;
/// Callers kept of a hot thread's first allocation.
pub const SITE_FRAMES: usize = 24;
/// Hottest detectors that a stream shows.
pub const HOTTEST_MAX: usize = 5;
/// Most readers of a silo's answers.
pub const ANSWER_READERS_MAX: usize = 4;
/// Counters of a pool's worker.
pub const COUNTS_MAX: usize = 16;
/// Transfers, leases and transitions that an arbiter shows.
pub const ARBITER_ROWS: usize = 16;
/// Moves of streams that a feed shows: all that it makes at once.
pub const MOVE_ROWS: usize = 4;
/// States of a page.
pub const PAGE_STATES: usize = State::ALL.len();
/// Responses of an arbiter.
pub const RESPONSES: usize = Response::NAMES.len();
/// Senders that a live source shows.
pub const PEERS_SHOWN: usize = 8;
/// Error numbers that harvest counts, 0 unused.
pub const ERRORS_MAX: usize = 32;

macro_rules! blocks {
    ($( $(#[$meta:meta])* $name:ident { $( $(#[$field_meta:meta])* $field:ident: $ty:ty, )* } )*) => {
        $(
            $(#[$meta])*
            #[repr(C, align(128))]
            #[derive(FromBytes)]
            pub struct $name { $( $(#[$field_meta])* pub $field: $ty, )* }
        )*
        /// Every block's fields: (block, field, offset).
        pub(super) const FIELDS: &[(&str, &str, usize)] = &[
            $( $( (stringify!($name), stringify!($field), offset_of!($name, $field)), )* )*
        ];
        pub(super) const SIZES: &[usize] = &[ $( size_of::<$name>(), )* ];
    };
}

mod beside;
mod placement;

pub use beside::{
    AlarmRow, ArbiterBlock, ControlBlock, LifeBlock, LogBlock, MoveBlock, PeerRow, RecorderBlock, SourceBlock,
    StreamSourceBlock,
};
pub use placement::{DECISIONS_SHOWN, DecisionRow, OVERFLOW_OUTCOMES, PlacementBlock, QUEUES, Queue, SiloDepthBlock};

blocks! {
    /// What runs, and on what. Written at Init and by the control side.
    HeaderBlock {
        /// [`MAGIC`], stored last.
        magic: AtomicU64,
        /// [`VERSION`].
        layout_version: AtomicU64,
        /// [`hash`].
        layout_hash: AtomicU64,
        /// Process id.
        pid: AtomicU64,
        /// [`Shape::words`].
        shape: [AtomicU64; 6],
        /// Engine start, seconds since 1970.
        started_utc_s: AtomicU64,
        /// Tick at engine start.
        start_ticks: AtomicU64,
        /// Nanoseconds per tick, 32.32.
        nanos_per_tick_q32: AtomicU64,
        /// Phase code.
        phase: AtomicU64,
        /// Requested spin order, packed.
        spin_requested: AtomicU64,
        /// Answers later than this are late, ns.
        late_ns: AtomicU64,
        /// Heartbeats older than this are stalls, ns.
        heartbeat_limit_ns: AtomicU64,
        /// Scheduled rate in shots per second, bits of an f64; 0: as fast as slots come free.
        rate_hz_bits: AtomicU64,
        /// Detectors of a shot.
        detectors: AtomicU64,
        /// Observables of an answer.
        observables: AtomicU64,
        /// Bytes of the silos' arenas: touched.
        arenas_touched_bytes: AtomicU64,
        /// Of these: locked in memory.
        arenas_locked_bytes: AtomicU64,
        /// Notes in use.
        notes_count: AtomicU64,
        /// Version of the program.
        version: Text<4>,
        /// Profile in force.
        profile: Text<{ NAME_BYTES_MAX / 8 }>,
        /// Operator's label.
        label: Text<{ LABEL_BYTES_MAX / 8 }>,
        /// Input.
        input: Text<32>,
        /// Device.
        device: Text<16>,
        /// Matcher.
        decoder: Text<8>,
        /// Predecoder.
        predecoder: Text<8>,
        /// How the rate came about.
        rate_origin: Text<16>,
        /// Things said once.
        notes: [Text<32>; NOTES_MAX],
    }
    /// One hot thread. Written by it, except where another writer is named and `planned…` (Init), `policy_requested`,
    /// `refusal` (control).
    ThreadBlock {
        /// Tick of the start of its last frame.
        heartbeat: AtomicU64,
        /// Frames.
        frames: AtomicU64,
        /// 0 between roles, else the role's code + 1.
        stage: AtomicU64,
        /// Frames with work.
        frames_busy: AtomicU64,
        /// Work items.
        items: AtomicU64,
        /// Ticks in frames with work.
        busy_ticks: AtomicU64,
        /// Yields and sleeps by policy.
        yields: AtomicU64,
        /// Acknowledged spin order, packed.
        policy_acknowledged: AtomicU64,
        /// Thread id of the system.
        tid: AtomicU64,
        /// 0 starting, 1 running, 2 finished, 3 panicked outside its roles.
        state: AtomicU64,
        /// 1 if pinning was verified.
        pinned: AtomicU64,
        /// Last phase whose entry work (building, warming) is done, + 1.
        phase_done: AtomicU64,
        /// Requested spin order of this thread, packed.
        policy_requested: AtomicU64,
        /// Planned core + 1; 0: none.
        planned_core: AtomicU64,
        /// 1 if the core is its own.
        planned_exclusive: AtomicU64,
        /// Roles in use.
        roles_count: AtomicU64,
        /// Line of the last role's panic; 0: none.
        panic_line: AtomicU64,
        /// File of the last role's panic, the end of its path.
        panic_file: Text<16>,
        /// Name.
        name: Text<2>,
        /// Why it does not run the profile's policy; empty: it does.
        refusal: Text<16>,
        /// 0: the allocator does not count here; else calls in Live + 1.
        allocations: AtomicU64,
        /// Calls in Live that the thread's own reserve served.
        allocations_lent: AtomicU64,
        /// Callers of the first call in Live, innermost first: addresses of this process.
        allocation_callers: [AtomicU64; SITE_FRAMES],
        /// The same in words (control).
        allocation_site: Text<32>,
        /// Bytes of the thread's arena: touched.
        arena_touched_bytes: AtomicU64,
        /// Of these: locked in memory.
        arena_locked_bytes: AtomicU64,
        /// Frames that began on a core other than the planned one.
        frames_elsewhere: AtomicU64,
        /// Roles.
        roles: [RoleBlock; ROLES_MAX],
        /// Gaps between frame starts.
        frame_gap: HistogramBlock,
        /// Events that found no room in the log.
        events_dropped: AtomicU64,
        /// Priority asked for, packed (Init).
        priority_asked: AtomicU64,
        /// Priority that it was found to have when it was last set, packed; 0: not visible. By whoever set it.
        priority_found: AtomicU64,
        /// Why that is not what was asked for; empty: it is, or nothing was asked. By whoever set it.
        priority_refusal: Text<32>,
        /// Process of the last thread of others that wanted its core; 0: none was seen (the watch of neighbours).
        rival_pid: AtomicU64,
        /// Tick at which it was seen (likewise).
        rival_seen: AtomicU64,
        /// Time that it stood ready, ns (likewise).
        rival_waited_ns: AtomicU64,
        /// Time that it ran, ns (likewise).
        rival_ran_ns: AtomicU64,
        /// Time between the two looks, ns (likewise).
        rival_span_ns: AtomicU64,
        /// Looks that found somebody (likewise).
        rival_looks: AtomicU64,
        /// Its name (likewise).
        rival_command: Text<2>,
        /// Its user (likewise).
        rival_user: Text<4>,
        /// Gaps longer than this are written down, ticks; 0: none (the watchdog).
        gap_limit_ticks: AtomicU64,
        /// An address in its stack: where to look for its end (of this process).
        stack_anchor: AtomicU64,
        /// Gaps written down.
        gaps_count: AtomicU64,
        /// The last of them; see [`ThreadBlock::note_gap`].
        gaps: [GapRow; GAPS_MAX],
    }
    /// One long gap between two frames of a thread, which writes it.
    GapRow {
        /// Number of the gap being written.
        begun: AtomicU64,
        /// Number of the gap.
        number: AtomicU64,
        /// Tick of the start of the frame that took so long.
        start: AtomicU64,
        /// How long, ticks.
        length: AtomicU64,
        /// Role code + 1 of the longest part; 0: outside all roles.
        stage: AtomicU64,
    }
    /// Feed of one silo.
    FeedBlock {
        /// Shots whose scheduled time has come.
        scheduled: AtomicU64,
        /// Shots submitted.
        submitted: AtomicU64,
        /// Slot writes ever, warm-up included.
        position: AtomicU64,
        /// Times the next slot was taken.
        slot_waits: AtomicU64,
        /// 1 when nothing more will be submitted.
        exhausted: AtomicU64,
        /// Shots that found no slot, by outcome; `SentToCpu` is dispatch's.
        overflow: [AtomicU64; OVERFLOW_OUTCOMES],
        /// The strategy in force.
        overflow_strategy: AtomicU64,
        /// Since when shots wait for a slot; 0: none waits.
        overflow_since: AtomicU64,
        /// Silo that they wait for: this one, or the one that a stream of this feed is decoded in.
        overflow_silo: AtomicU64,
        /// Times that they began to.
        overflow_episodes: AtomicU64,
        /// The longest of them, ticks.
        overflow_ticks_max: AtomicU64,
        /// The longest from the last full ring to the moment when none waited, ticks.
        overflow_recovery_ticks_max: AtomicU64,
    }
    /// Dispatch of one silo.
    DispatchBlock {
        /// Shots taken.
        dispatched: AtomicU64,
        /// Slots taken ever, warm-up included.
        position: AtomicU64,
        /// Launches accepted.
        launched: AtomicU64,
        /// Attempts that found every worker busy.
        worker_waits: AtomicU64,
        /// Tickets that another answerer had closed.
        claims_lost: AtomicU64,
        /// Shots sent to the CPU predecoder.
        cpu_fallbacks: AtomicU64,
        /// Shots that came by rounds, and passed the device.
        by_rounds: AtomicU64,
        /// Device losses.
        device_losses: AtomicU64,
        /// Workers quarantined by an unknown launch.
        quarantined: AtomicU64,
        /// Ticks in frames of dispatch that took shots.
        busy_ticks: AtomicU64,
        /// 0 online, 1 lost, 2 recovering.
        device_state: AtomicU64,
    }
    /// The device of one silo: its role, or who launches it and who keeps it.
    DeviceBlock {
        /// Completions.
        completed: AtomicU64,
        /// Detection events that the predecoder removed.
        predecoded_events: AtomicU64,
        /// 1 if it is a GPU (Init).
        is_gpu: AtomicU64,
        /// Launch calls, of a device that is no thread (dispatch).
        launches: AtomicU64,
        /// Of these: answered with an error (dispatch).
        launch_errors: AtomicU64,
        /// The driver's code for the last error; 0: none (dispatch).
        error_code: AtomicU64,
        /// What a launch call took (dispatch).
        launch: HistogramBlock,
        /// From a graph's start to its end by the device's events, sampled (the device's keeper).
        graph: HistogramBlock,
        /// Contexts made anew after a loss (likewise).
        renewals: AtomicU64,
        /// Attempts at that which failed (likewise).
        renewals_failed: AtomicU64,
        /// Free memory of the device, bytes (likewise).
        memory_free_bytes: AtomicU64,
        /// All memory of the device, bytes; 0: not visible (likewise).
        memory_total_bytes: AtomicU64,
        /// Clock of the multiprocessors, MHz; 0: not visible (likewise).
        clock_sm_mhz: AtomicU64,
        /// Clock of the memory, MHz; 0: not visible (likewise).
        clock_memory_mhz: AtomicU64,
        /// From a graph's end to poll's claim, sampled, as far as the clocks of both can be compared (likewise).
        transit: HistogramBlock,
        /// What those may all be wrong by, ns, as of the last look (likewise).
        transit_error_ns: AtomicU64,
    }
    /// Poll of one silo.
    PollBlock {
        /// Completions claimed.
        completed: AtomicU64,
        /// Completions after the answer.
        late_completions: AtomicU64,
        /// Tickets that another answerer had closed.
        claims_lost: AtomicU64,
        /// Workers quarantined at their deadline.
        quarantined: AtomicU64,
        /// Depth of the ready queue.
        ready_depth: AtomicU64,
        /// Jobs ever put into the ready queue.
        ready_pushed: AtomicU64,
        /// Capacity of the ready queue.
        ready_capacity: AtomicU64,
        /// Idle mask.
        idle_mask: AtomicU64,
        /// Worker words (generation << 2 | state).
        worker_words: [AtomicU64; WORKERS_MAX],
        /// Tick at which poll first saw that word.
        worker_since: [AtomicU64; WORKERS_MAX],
        /// Slot of the launch.
        worker_slots: [AtomicU64; WORKERS_MAX],
        /// From the deadline of a timer to the frame that found it expired.
        timer_lateness: HistogramBlock,
    }
    /// One decode worker.
    DecodeBlock {
        /// Decodes begun.
        decoding: AtomicU64,
        /// Answers given.
        answered: AtomicU64,
        /// Tickets that another answerer had closed.
        claims_lost: AtomicU64,
        /// Detection events that the CPU predecoder removed.
        predecoded_events: AtomicU64,
        /// Ticks spent decoding.
        busy_ticks: AtomicU64,
        /// Sequence numbers committed.
        committed: AtomicU64,
        /// Of these: tombstones, for they were answered with an error.
        tombstones: AtomicU64,
        /// What the pool's worker counted, by number of the task graph's `Count`.
        counts: [AtomicU64; COUNTS_MAX],
        /// Tasks that are its own, as of its last turn.
        deque_depth: AtomicU64,
        /// The task whose body it runs; 0: none.
        task: AtomicU64,
        /// When it began.
        task_since: AtomicU64,
        /// Kernel and stream of it: kernel | stream << 32.
        task_what: AtomicU64,
        /// From submission to begin, of one task in many.
        wake: HistogramBlock,
        /// What releasing those that waited cost, of one task in many.
        release: HistogramBlock,
        /// Time in each window, where shots are decoded by windows.
        window: HistogramBlock,
    }
    /// The graph of one silo's decode pool. Written by the graph role.
    GraphBlock {
        /// Jobs taken up.
        jobs: AtomicU64,
        /// Of these: given back at once, for their shots had been answered.
        claims_lost: AtomicU64,
        /// Of the jobs: refused for want of room in the window (`Abort`).
        refused: AtomicU64,
        /// Sequence numbers that were answered with an error elsewhere, in their turn.
        told: AtomicU64,
        /// Tasks submitted.
        submitted: AtomicU64,
        /// Tasks retired.
        retired: AtomicU64,
        /// Tasks submitted and not retired.
        window_used: AtomicU64,
        /// Most of them.
        window_tasks: AtomicU64,
        /// Submissions that found no room at once.
        stalls: AtomicU64,
        /// Tasks in the queues of each pool.
        ready: [AtomicU64; 4],
        /// Most in each.
        ready_tasks: AtomicU64,
        /// Permits in use, and how many there are; 0: no gate.
        permits_used: AtomicU64,
        /// Permits.
        permits: AtomicU64,
        /// Tasks set aside for want of a permit.
        parked: AtomicU64,
        /// The oldest task under way; 0: none.
        oldest: AtomicU64,
        /// When it was first seen to be the oldest.
        oldest_since: AtomicU64,
        /// Kernel and stream of it: kernel | stream << 32.
        oldest_what: AtomicU64,
        /// What holds it up: 0 a worker, 1 predecessors, 2 a permit; and how many, << 8.
        oldest_holdup: AtomicU64,
        /// Sequence numbers that came before their turn, of all streams.
        waiting: AtomicU64,
        /// Shots under way whose rounds are still coming.
        arriving: AtomicU64,
        /// Of the stream that has waited longest for its turn: its number + 1; 0: none waits.
        held_stream: AtomicU64,
        /// The sequence number that it waits for.
        held_sequence: AtomicU64,
        /// Since when.
        held_since: AtomicU64,
        /// What a submission cost, one in many.
        submit: HistogramBlock,
        /// The order in which ready tasks are taken.
        policy: Text<4>,
        /// Sequence numbers that dead silos left unanswered, committed as errors by this heir.
        buried: AtomicU64,
    }
    /// Harvest of one silo.
    HarvestBlock {
        /// Answers taken.
        answered: AtomicU64,
        /// Answers taken ever, warm-up included.
        position: AtomicU64,
        /// Of the answers: with an error word.
        errored: AtomicU64,
        /// Late.
        late: AtomicU64,
        /// For a sequence number answered before.
        duplicated: AtomicU64,
        /// Before an older shot of the stream.
        out_of_order: AtomicU64,
        /// Judged against the truth.
        judged: AtomicU64,
        /// Of these: wrong.
        logical_errors: AtomicU64,
        /// Times the answer ring was full.
        sink_waits: AtomicU64,
        /// Capacity of the answer ring; 0: no sink.
        sink_capacity: AtomicU64,
        /// Error words by number.
        errors: [AtomicU64; ERRORS_MAX],
        /// Readers of the answer ring.
        sink_readers: AtomicU64,
        /// Answers that each of them has not read yet; all ones: it has left.
        sink_lags: [AtomicU64; ANSWER_READERS_MAX],
        /// Joint readouts.
        joint_read: AtomicU64,
        /// Of these: what the answers of both streams say.
        joint_consistent: AtomicU64,
        /// Joint readouts that were given up.
        joint_refused: AtomicU64,
    }
    /// Latency histograms of one silo.
    LatencyBlock {
        /// From scheduled arrival to harvest.
        total: HistogramBlock,
        /// From submission to harvest.
        from_submit: HistogramBlock,
        /// By [`Stage`].
        stages: [HistogramBlock; Stage::ALL.len()],
    }
    /// Life of the shot last written into one slot: ticks, 0 = not yet.
    SlotStamps {
        /// Stream (feed).
        stream: AtomicU64,
        /// Sequence number (feed).
        sequence: AtomicU64,
        /// Scheduled arrival (feed).
        scheduled: AtomicU64,
        /// Submission (feed).
        submitted: AtomicU64,
        /// Taken by dispatch.
        dispatched: AtomicU64,
        /// Worker + 1; 0: CPU path (dispatch).
        worker: AtomicU64,
        /// Completion claimed (poll).
        completed: AtomicU64,
        /// Decode begun (decoder).
        decoding: AtomicU64,
        /// Answered (whoever holds the ticket's claim).
        answered: AtomicU64,
        /// Harvested.
        harvested: AtomicU64,
    }

    /// A stream, as the feed sees it.
    StreamFeedBlock {
        /// Owner silo.
        silo: AtomicU64,
        /// Health verdict code.
        verdict: AtomicU64,
        /// Shots examined.
        examined: AtomicU64,
        /// Fraction of detectors that fired, bits of an f64.
        found_bits: AtomicU64,
        /// The model's fraction, bits of an f64.
        expected_bits: AtomicU64,
        /// Hottest detectors + 1; 0: none.
        hottest: [AtomicU64; HOTTEST_MAX],
        /// Their fractions, bits of an f64.
        hottest_bits: [AtomicU64; HOTTEST_MAX],
        /// Shots that found no slot, by outcome; `SentToCpu` is dispatch's.
        overflow: [AtomicU64; OVERFLOW_OUTCOMES],
    }

    /// A stream, as harvest sees it.
    StreamHarvestBlock {
        /// Answers.
        answered: AtomicU64,
        /// With an error word.
        errors: AtomicU64,
        /// Late.
        late: AtomicU64,
        /// Judged.
        judged: AtomicU64,
        /// Wrong.
        logical_errors: AtomicU64,
        /// The Pauli frame: parity of each of the first 64 observables over its answers; errors leave it.
        frame: AtomicU64,
        /// From scheduled arrival to harvest.
        latency: HistogramBlock,
    }
    /// One kind of fault in one silo; any role counts.
    FaultRow {
        /// How often.
        count: AtomicU64,
        /// First tick.
        first_ticks: AtomicU64,
        /// Last tick.
        last_ticks: AtomicU64,
        /// Number that goes with the last one.
        detail: AtomicU64,
    }
    /// One duty of one thread.
    RoleBlock {
        /// kind | silo << 8 | index << 40.
        identity: AtomicU64,
        /// Work items.
        items: AtomicU64,
        /// Frame of its panic + 1; 0: alive.
        died: AtomicU64,
        /// Ticks of its calls that handled items.
        busy_ticks: AtomicU64,
    }
    /// What the engine's clock is, and the newest pair on which it met the system's. Written by the control side;
    /// the pair through [`ClockBlock::publish`].
    ClockBlock {
        /// Number of the pair being written.
        pairs_begun: AtomicU64,
        /// Pairs taken.
        pairs: AtomicU64,
        /// Of the newest pair: tick.
        ticks: AtomicU64,
        /// Of the newest pair: the system's monotonic clock, ns.
        monotonic_ns: AtomicU64,
        /// Of the newest pair: UTC, ns since 1970.
        utc_ns: AtomicU64,
        /// Of the newest pair: from the counter's reading before to the one after.
        width_ticks: AtomicU64,
        /// Steps of UTC, of the counter.
        steps: [AtomicU64; 2],
        /// Size of the last step of each, ns, as a signed number.
        step_ns: [AtomicU64; 2],
        /// Tick of the pair that showed it.
        step_ticks: [AtomicU64; 2],
        /// What the ticks are.
        source: Text<16>,
        /// Why they are not the counter's; empty: they are.
        degraded: Text<32>,
    }
}

/// Stages between scheduled arrival and harvest, in path order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Scheduled to submitted.
    Feed,
    /// Submitted to taken by dispatch.
    Dispatch,
    /// Taken to output claimed.
    Device,
    /// Claimed to decode begun.
    Queue,
    /// Decode begun to answered; for its turn in its stream, too, an answer waits here.
    Decode,
    /// Answered to harvested.
    Harvest,
}

impl Stage {
    /// In path order.
    pub const ALL: [Stage; 6] =
        [Stage::Feed, Stage::Dispatch, Stage::Device, Stage::Queue, Stage::Decode, Stage::Harvest];

    /// Name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Feed => "feed",
            Stage::Dispatch => "dispatch",
            Stage::Device => "device",
            Stage::Queue => "queue",
            Stage::Decode => "decode",
            Stage::Harvest => "harvest",
        }
    }
}

/// FNV-1a over every field's name and offset, every block's size, and the histogram's buckets.
#[must_use]
pub fn hash() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for (block, field, offset) in FIELDS.iter().chain(beside::FIELDS).chain(placement::FIELDS) {
        eat(block.as_bytes());
        eat(field.as_bytes());
        eat(&offset.to_le_bytes());
    }
    for size in SIZES.iter().chain(beside::SIZES).chain(placement::SIZES) {
        eat(&size.to_le_bytes());
    }
    eat(&BUCKETS.to_le_bytes());
    hash
}

const _: () = assert!(size_of::<SlotStamps>() == 128 && size_of::<FaultRow>() == 128);
const _: () = assert!(size_of::<HistogramBlock>().is_multiple_of(128) && offset_of!(HistogramBlock, buckets) == 128);
