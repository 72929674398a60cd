//! Blocks of one silo's path, in path order, with their views and their total.
//!
//! As in [`super`], whose hash covers these too.

use super::declare::Plain;
use super::{ANSWER_READERS_MAX, COUNTS_MAX, ERRORS_MAX, OVERFLOW_OUTCOMES};
use crate::board::histogram::{Histogram, HistogramBlock};
use crate::board::reading::{Now, if_any, number, sum};
use crate::board::snapshot::graph::{FlushesView, HeldView, OldestView, ReadyView, RunningView};
use crate::board::snapshot::placement::OutcomeCount;
use crate::board::text::Text;
use pinwheel_edge::slot::WORKERS_MAX;
use serde::Serialize;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

blocks! {
    /// Counts of one silo's path since the start.
    total Counters {
        /// Time that dispatch spent in frames in which it took shots, nanoseconds.
        dispatch_ns,
    }

    /// The feed of one silo, and its shots that found no slot.
    FeedBlock => #[derive(Default, Eq)] OverflowView(block, now) {
        /// Shots whose scheduled time has come (submitted + backlog).
        scheduled: AtomicU64 [counter scheduled],
        /// Shots taken from the source: into a slot, or forwarded to the silo that decodes their
        /// stream.
        submitted: AtomicU64 [counter submitted],
        /// Slot writes since the start, warm-up included.
        position: AtomicU64,
        /// Attempts of the feed that found the next slot taken.
        slot_waits: AtomicU64 [counter slot_waits],
        /// 1 when nothing more will be submitted.
        exhausted: AtomicU64,
        /// Shots that found no slot, by outcome; dispatch counts `SentToCpu`.
        overflow: [AtomicU64; OVERFLOW_OUTCOMES],
        /// Number of the strategy in force.
        overflow_strategy: AtomicU64,
        /// Tick since which shots wait for a slot; 0: none waits.
        overflow_since: AtomicU64,
        /// Silo whose slots are full: this one, or another one that decodes a stream of this feed.
        overflow_silo: AtomicU64,
        /// Times that the ring became full while shots arrived.
        overflow_episodes: AtomicU64 => episodes,
        /// The longest episode, ticks.
        overflow_ticks_max: AtomicU64,
        /// Longest recovery: from the last full ring until no shot waits, ticks.
        overflow_recovery_ticks_max: AtomicU64,
    } + {
        /// The strategy in force, as the profile spells it.
        strategy: &'static str = block.strategy(),
        /// Time for which shots have waited at a full ring; `None`: none waits.
        full_for_ns: Option<u64> = now.age_if_any(&block.overflow_since),
        /// Silo whose slots are full: this one, or another one that decodes a stream of this feed;
        /// `None`: no shot waits.
        full_silo: Option<u32> =
            if_any(&block.overflow_since).map(|_| number(&block.overflow_silo)),
        /// The longest episode.
        longest_ns: u64 = now.span_ns(block.overflow_ticks_max.view()),
        /// Longest recovery: from the last full ring until no shot waits.
        recovery_ns_max: u64 = now.span_ns(block.overflow_recovery_ticks_max.view()),
        /// Shots by outcome; only outcomes that occurred.
        outcomes: Vec<OutcomeCount> = OutcomeCount::all(&block.overflow),
    }

    /// Dispatch of one silo.
    DispatchBlock {
        /// Shots that dispatch took from slots.
        dispatched: AtomicU64 [counter dispatched],
        /// Slots taken since the start, warm-up included.
        position: AtomicU64,
        /// Launches that the device accepted.
        launched: AtomicU64 [counter launched],
        /// Attempts of dispatch that found every worker busy.
        worker_waits: AtomicU64 [counter worker_waits],
        /// Claims of a ticket that failed because another role had closed it.
        claims_lost: AtomicU64 [counter claims_lost],
        /// Shots predecoded on the CPU because the device was lost.
        cpu_fallbacks: AtomicU64 [counter cpu_fallbacks],
        /// Shots that arrive in rounds and bypass the device.
        by_rounds: AtomicU64 [counter by_rounds],
        /// Times the device was declared lost.
        device_losses: AtomicU64 [counter device_losses],
        /// Job buffers taken since the start, without those that dispatch gave back itself.
        jobs_taken: AtomicU64,
        /// Jobs that dispatch passed to the graph role since the start.
        ready_pushed: AtomicU64,
        /// Ticks in frames of dispatch that took shots.
        busy_ticks: AtomicU64,
        /// 0 online, 1 lost, 2 recovering.
        device_state: AtomicU64,
    }

    /// The device of one silo. Its view describes a GPU.
    DeviceBlock => #[derive(Default, Eq)] GpuView(block, now) {
        /// Launches that the device completed.
        completed: AtomicU64,
        /// Detection events that a predecoder removed, on the device or on the CPU.
        predecoded_events: AtomicU64 [counter predecoded_events],
        /// 1 if it is a GPU (Init).
        is_gpu: AtomicU64,
        /// Launch calls in Live, of a device without a thread.
        launches: AtomicU64 => launches,
        /// Launch calls that returned an error.
        launch_errors: AtomicU64 => launch_errors,
        /// The driver's code for the last error; 0: none.
        error_code: AtomicU64 => error_code,
        /// Duration of a launch call.
        launch: HistogramBlock => launch_ns,
        /// From a graph's start to its end by the device's events, sampled ten times a second.
        graph: HistogramBlock => graph_ns,
        /// Contexts recreated after a loss.
        renewals: AtomicU64 => renewals,
        /// Failed attempts to recreate the context.
        renewals_failed: AtomicU64 => renewals_failed,
        /// The driver's code, if it opens the device in this process no more; 0: none. The engine
        /// must be started again.
        needs_restart_code: AtomicU64 => needs_restart_code,
        /// Free memory of the device, bytes.
        memory_free_bytes: AtomicU64,
        /// All memory of the device, bytes, if visible.
        memory_total_bytes: AtomicU64 => memory_total_bytes: Option<u64> = if_any,
        /// Clock of the multiprocessors, if visible.
        clock_sm_mhz: AtomicU64 => clock_sm_mhz: Option<u64> = if_any,
        /// Clock of the memory, if visible.
        clock_memory_mhz: AtomicU64 => clock_memory_mhz: Option<u64> = if_any,
        /// From a graph's end to poll's claim, sampled, where the clocks of both can be compared.
        transit: HistogramBlock => completion_to_claim_ns,
        /// Possible error of all these times: half of the uncertainty of the offset between the two
        /// clocks, nanoseconds.
        transit_error_ns: AtomicU64 => completion_to_claim_error_ns,
    } + {
        /// Free memory of the device, bytes; `None`: not visible yet.
        memory_free_bytes: Option<u64> =
            if_any(&block.memory_total_bytes).map(|_| block.memory_free_bytes.view()),
    }

    /// Poll of one silo.
    PollBlock {
        /// Completions that poll claimed.
        completed: AtomicU64 [counter completed],
        /// Completions of jobs whose ticket was closed already.
        late_completions: AtomicU64 [counter late_completions],
        /// Tickets that another answerer had closed.
        claims_lost: AtomicU64 [adds claims_lost],
        /// Workers quarantined: after a launch with an unknown result, or at their deadline.
        quarantined: AtomicU64 [counter quarantined],
        /// Job buffers returned since the start: of late completions and of launches that failed.
        jobs_returned: AtomicU64,
        /// Depth of poll's ring to the graph role; without a device, of dispatch's.
        ready_depth: AtomicU64,
        /// Jobs put into that ring since the start.
        ready_pushed: AtomicU64,
        /// Capacity of that ring.
        ready_capacity: AtomicU64,
        /// Free workers, one bit each.
        idle_mask: AtomicU64,
        /// State word of each worker (generation << 2 | state).
        worker_words: [AtomicU64; WORKERS_MAX],
        /// Tick at which poll first saw that word.
        worker_since: [AtomicU64; WORKERS_MAX],
        /// Slot of the worker's launch.
        worker_slots: [AtomicU64; WORKERS_MAX],
        /// From the deadline of a timer to the frame that found it expired.
        timer_lateness: HistogramBlock,
    }

    /// One decode worker.
    DecodeBlock => #[derive(Default, Eq)] GraphWorkerView(block, now) {
        /// Shots whose decode began.
        decoding: AtomicU64 [counter decoding],
        /// Whole shots whose decode ended.
        decoded: AtomicU64 => shots,
        /// Epoch of the decoders that it uses; 0: it has none yet.
        decoder_epoch: AtomicU64 => decoder_epoch,
        /// Time between two shots that it spent on its last change of decoders, ticks; 0: none yet.
        decoder_change_ticks: AtomicU64,
        /// Detection events that the CPU predecoder removed.
        predecoded_events: AtomicU64 [adds predecoded_events],
        /// Ticks that its decoder is expected to take for a shot with as many detection events as usual, where shots
        /// have deadlines; 0: not measured.
        expected_ticks: AtomicU64,
        /// As `expected_ticks`, of the rescue decoder.
        rescue_expected_ticks: AtomicU64,
        /// Ticks spent decoding.
        busy_ticks: AtomicU64,
        /// Counters of the pool's worker, by number of the task graph's `Count`.
        counts: [AtomicU64; COUNTS_MAX],
        /// Tasks in its own queue at its last turn.
        deque_depth: AtomicU64 => depth,
        /// Whole shots assigned to it whose results are not back. Written by the graph role.
        in_lane: AtomicU64 => in_lane,
        /// The task that it runs, or the slot + 1 of the whole shot that it decodes; 0: none.
        task: AtomicU64,
        /// Tick at which the task began.
        task_since: AtomicU64,
        /// Kernel and stream: kernel | stream << 32. The kernel of a whole shot is [`WHOLE_SHOT`].
        task_what: AtomicU64,
        /// From a task's submission to its begin, sampled.
        wake: HistogramBlock,
        /// Time to release the waiting successors of a task, sampled.
        release: HistogramBlock,
        /// Time to decode each window, where shots are decoded by windows.
        window: HistogramBlock,
    } + {
        /// Tasks that this worker ran.
        ran: u64 = block.counted(Counted::Ran),
        /// Of these, stolen.
        stolen: u64 = block.counted(Counted::Stolen),
        /// Steals that found no task, or that another thief won.
        steals_failed: u64 =
            sum([block.counted(Counted::StealsEmpty), block.counted(Counted::StealsLost)]),
        /// The task that it runs now.
        task: Option<RunningView> = block.running(now),
        /// Time that its decoder is expected to take for a usual shot, where shots have deadlines; 0: not measured.
        expected_ns: u64 = now.span_ns(block.expected_ticks.view()),
        /// As `expected_ns`, of the rescue decoder.
        rescue_expected_ns: u64 = now.span_ns(block.rescue_expected_ticks.view()),
        /// Time between two shots that it spent on its last change of decoders.
        decoder_change_ns: u64 = now.span_ns(block.decoder_change_ticks.view()),
    }

    /// The graph of one silo's decode pool. Written by the graph role.
    GraphBlock => #[derive(Default)] GraphView(block, now, decoders: &[DecodeBlock]) {
        /// Jobs taken from the ready queue.
        jobs: AtomicU64,
        /// Of these: answered.
        answered: AtomicU64,
        /// Of these: returned without an answer, because their shots had been answered.
        claims_lost: AtomicU64 [adds claims_lost],
        /// Sequence numbers committed.
        committed: AtomicU64 => committed,
        /// Of these: tombstones, committed for shots that were answered with an error.
        tombstones: AtomicU64 => tombstones,
        /// Whole shots that a worker's lane holds at most.
        lane_shots: AtomicU64 => lane_shots,
        /// Times a whole shot found every lane full.
        lane_waits: AtomicU64 => lane_waits,
        /// Shots refused before they reached a worker: for want of room in the window (`Abort`), or because their
        /// deadlines could not be met.
        refused: AtomicU64 => refused,
        /// Sequence numbers answered with an error elsewhere and passed to the graph in stream
        /// order.
        errors_received: AtomicU64,
        /// Tasks submitted to the graph.
        submitted: AtomicU64 => submitted,
        /// Tasks that ended and left the window.
        retired: AtomicU64 => retired,
        /// Tasks submitted and not retired, at the last sample.
        window_used: AtomicU64 => window_used,
        /// Tasks that the window holds at most.
        window_tasks: AtomicU64 => window_tasks,
        /// Submissions that found the window full.
        stalls: AtomicU64 => window_stalls,
        /// Tasks in the queues of each pool.
        ready: [AtomicU64; 4],
        /// Tasks that each queue holds at most.
        ready_tasks: AtomicU64,
        /// Permits in use.
        permits_used: AtomicU64 => permits_used,
        /// Permits in all; 0: there is no gate.
        permits: AtomicU64 => permits,
        /// Tasks that wait for a permit now.
        parked: AtomicU64 => parked,
        /// The oldest unfinished task; 0: none.
        oldest: AtomicU64,
        /// Tick at which it was first seen to be the oldest.
        oldest_since: AtomicU64,
        /// Its kernel and stream: kernel | stream << 32.
        oldest_what: AtomicU64,
        /// What it waits for: 0 a worker, 1 predecessors, 2 a permit; and how many, << 8.
        oldest_holdup: AtomicU64,
        /// Sequence numbers of all streams that wait for an earlier one.
        waiting: AtomicU64 => waiting,
        /// Shots of which rounds are still arriving.
        arriving: AtomicU64 => arriving,
        /// Stream that has waited longest for a missing sequence number: its number + 1; 0: none
        /// waits.
        held_stream: AtomicU64,
        /// The missing sequence number.
        held_sequence: AtomicU64,
        /// Tick since which it waits.
        held_since: AtomicU64,
        /// Time of a submission, sampled.
        submit: HistogramBlock => submit,
        /// The order in which ready tasks are taken.
        policy: Text<4> => policy,
        /// Sequence numbers that dead silos left unanswered, committed as errors by this successor.
        skipped: AtomicU64,
    } + {
        /// Tasks run.
        ran: u64 = counted(decoders, Counted::Ran),
        /// Ready tasks in the queue of each pool that has one.
        ready: Vec<ReadyView> = block.ready(),
        /// Tasks that had to wait for a permit, since the start.
        gate_waits: u64 = counted(decoders, Counted::GateWaits),
        /// Batches of completions resolved, by reason.
        flushes: FlushesView = flushes(decoders),
        /// The decode workers that run the tasks.
        workers: Vec<GraphWorkerView> =
            decoders.iter().map(|decoder| GraphWorkerView::read(decoder, now)).collect(),
        /// From a task's submission to its begin, sampled.
        wake: Histogram = merged(decoders, |decoder| &decoder.wake),
        /// Time to release the waiting successors of a task, sampled.
        release: Histogram = merged(decoders, |decoder| &decoder.release),
        /// Time to decode each window, where shots are decoded by windows.
        window: Histogram = merged(decoders, |decoder| &decoder.window),
        /// The oldest unfinished task.
        oldest: Option<OldestView> = block.oldest(now, decoders),
        /// The stream that has waited longest for a missing sequence number.
        held: Option<HeldView> = block.held(now),
    }

    /// Harvest of one silo.
    HarvestBlock {
        /// Answers harvested, errors included.
        answered: AtomicU64 [counter answered],
        /// Answers taken since the start, warm-up included.
        position: AtomicU64,
        /// Answers that carry an error word.
        errored: AtomicU64 [counter errored],
        /// Answers after their deadline.
        late: AtomicU64 [counter late],
        /// Shots without an answer by their deadline, errors included; counted where `deadlines` are set.
        missed: AtomicU64 [counter missed],
        /// Answers that the rescue decoder gave.
        rescued: AtomicU64 [counter rescued],
        /// Errors because no decoder could have answered by the deadline.
        refused: AtomicU64 [counter refused],
        /// Answers whose sequence number had been answered before.
        duplicated: AtomicU64 [counter duplicated],
        /// Answers that overtook an earlier shot of their stream.
        out_of_order: AtomicU64 [counter out_of_order],
        /// Answers that could be compared with a true observable.
        judged: AtomicU64 [counter shots_with_observables],
        /// Of these, answers with a wrong observable.
        logical_errors: AtomicU64 [counter logical_errors],
        /// Times the answer ring was full.
        sink_waits: AtomicU64,
        /// Capacity of the answer ring; 0: no sink.
        sink_capacity: AtomicU64,
        /// Answers by error number.
        errors: [AtomicU64; ERRORS_MAX],
        /// Readers of the answer ring.
        sink_readers: AtomicU64,
        /// Answers that each reader has not read yet; all ones: it has detached.
        sink_lags: [AtomicU64; ANSWER_READERS_MAX],
        /// Joint readouts of two streams.
        joint_read: AtomicU64 [counter joint_read],
        /// Of these: joint readouts that agree with the answers of both streams.
        joint_consistent: AtomicU64 [counter joint_consistent],
        /// Joint readouts that were abandoned.
        joint_refused: AtomicU64 [counter joint_refused],
        /// Answers whose gap is below the bound for trust.
        abstained: AtomicU64 [counter abstained],
        /// Of these: answers that could be compared with a true observable.
        abstained_judged: AtomicU64 [counter abstained_with_observables],
        /// Of these: answers with a wrong observable.
        abstained_wrong: AtomicU64 [counter abstained_logical_errors],
        /// Shots copied for the shadow.
        shadow_sampled: AtomicU64,
        /// Shots not copied for it, because it had not read the copies before.
        shadow_left_out: AtomicU64,
    }
}

/// Stands for the kernel of a task where a worker decodes a whole shot, which is no task.
pub const WHOLE_SHOT: u64 = 3;

/// Counters of a pool's worker that are shown, with their places in the task graph's own list.
#[derive(Clone, Copy)]
pub(in crate::board) enum Counted {
    Ran = 0,
    Stolen = 3,
    StealsEmpty = 4,
    StealsLost = 5,
    GateWaits = 7,
    FlushesFull = 8,
    FlushesLate = 9,
    FlushesIdle = 10,
    FlushesTurn = 11,
}

impl DecodeBlock {
    pub(in crate::board) fn counted(&self, what: Counted) -> u64 {
        self.counts[what as usize].view()
    }
}

fn counted(decoders: &[DecodeBlock], what: Counted) -> u64 {
    sum(decoders.iter().map(|decoder| decoder.counted(what)))
}

fn flushes(decoders: &[DecodeBlock]) -> FlushesView {
    FlushesView {
        full: counted(decoders, Counted::FlushesFull),
        late: counted(decoders, Counted::FlushesLate),
        idle: counted(decoders, Counted::FlushesIdle),
        turn: counted(decoders, Counted::FlushesTurn),
    }
}

fn merged(decoders: &[DecodeBlock], of: fn(&DecodeBlock) -> &HistogramBlock) -> Histogram {
    let mut merged = Histogram::default();
    decoders.iter().for_each(|decoder| merged.merge(&of(decoder).snapshot()));
    merged
}
