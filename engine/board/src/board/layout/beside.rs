//! Blocks of what stands beside a shot's path: control, logs, alarms, recorder, arbiter, live sources.
//!
//! As in [`super`], whose hash covers these too.

use super::super::histogram::HistogramBlock;
use super::super::text::Text;
use super::{ARBITER_ROWS, MOVE_ROWS, PAGE_STATES, PEERS_SHOWN, RESPONSES};
use pinwheel_edge::page::SILOS_MAX;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

blocks! {
    /// How the engine is acted on. Written under the steering's lock, but for what belongs to the socket's thread.
    ControlBlock {
        /// 1 while the feed is held.
        held: AtomicU64,
        /// Tick since which it is.
        held_since: AtomicU64,
        /// By whom, and why.
        held_by: Text<24>,
        /// Tick at which the profile before comes back; 0: none does.
        revert_ticks: AtomicU64,
        /// Its name.
        revert_to: Text<8>,
        /// 1: a lost terminal drains the engine; 0: it goes on without one.
        drains_on_hangup: AtomicU64,
        /// Things done to the engine from outside its threads.
        actions: AtomicU64,
        /// Tick of the last.
        action_ticks: AtomicU64,
        /// What it was, and by whom.
        action: Text<32>,
        /// Of these: for which the log of events had no room.
        actions_unlogged: AtomicU64,
        /// Where the socket is; empty: there is none (the socket's thread, like all that follow).
        socket: Text<14>,
        /// Clients connected.
        clients: AtomicU64,
        /// Requests answered.
        requests: AtomicU64,
        /// Of these: refused.
        refused: AtomicU64,
        /// Clients that were sent away: of another user, one too many, talking nonsense, or not reading.
        dropped: AtomicU64,
    }
    /// The log of events. Written by the logger.
    LogBlock {
        /// Events written down.
        written: AtomicU64,
        /// Events taken and not written down: the file is full, or cannot be written.
        unkept: AtomicU64,
    }
    /// One alarm. Written by the watchdog, through [`AlarmRow::publish`].
    AlarmRow {
        /// Number of the version being written.
        begun: AtomicU64,
        /// Versions written; 0: no alarm.
        versions: AtomicU64,
        /// The record's numbers, in the order of its fields.
        words: [AtomicU64; 14],
        /// The verdict's cause in a word.
        cause: Text<4>,
        /// What is wrong and why.
        sentence: Text<48>,
        /// What the verdict rests on, lines.
        evidence: Text<192>,
        /// Stack of the stalled thread, lines.
        stack: Text<128>,
        /// The line to blame.
        culprit: Text<16>,
        /// What to do.
        runbook: Text<24>,
    }
    /// The flight recorder. Written by it, but for `run_dir` (Init).
    RecorderBlock {
        /// 0: none runs; 1: writes to disk; 2: keeps the last minutes in memory only; 3: has ended.
        state: AtomicU64,
        /// Pictures of the whole board.
        frames: AtomicU64,
        /// Bytes of the recording.
        bytes: AtomicU64,
        /// Fast samples taken.
        samples: AtomicU64,
        /// Times that fast samples were kept, for an alarm or a request.
        bursts: AtomicU64,
        /// Its longest step, ns.
        step_ns_max: AtomicU64,
        /// Its steps, ns together.
        step_ns: AtomicU64,
        /// Why it does not write to disk; empty: it does.
        trouble: Text<32>,
        /// The run's directory; empty: it has none.
        run_dir: Text<64>,
    }

    /// Arbiter of one silo. Written by it.
    ArbiterBlock {
        /// Pages; 0: no arbiter runs here.
        pages: AtomicU64,
        /// Tick of the round that counted `states` and found `leases`.
        counted_ticks: AtomicU64,
        /// Pages by state, in the order of `State::ALL`.
        states: [AtomicU64; PAGE_STATES],
        /// Decisions by response, in the order of `Response::NAMES`.
        decisions: [AtomicU64; RESPONSES],
        /// Of those granted: moves that broke a lease at the operator's word.
        forced: AtomicU64,
        /// Pages that left.
        left: AtomicU64,
        /// Pages that arrived.
        arrived: AtomicU64,
        /// Grants that were cancelled: the page stayed.
        kept: AtomicU64,
        /// Grants that came to be in doubt.
        doubted: AtomicU64,
        /// CANCELs sent.
        cancels: AtomicU64,
        /// Pages inherited from fenced silos.
        inherited: AtomicU64,
        /// Of these: with a write in progress.
        torn: AtomicU64,
        /// Requests that met a full frame, and went unanswered.
        unheard: AtomicU64,
        /// Grants to each port.
        port_wins: [AtomicU64; SILOS_MAX as usize],
        /// Refusals to each port.
        port_refusals: [AtomicU64; SILOS_MAX as usize],
        /// Refusals of each port since its last grant.
        port_ages: [AtomicU64; SILOS_MAX as usize],
        /// Grants that are out.
        open_count: AtomicU64,
        /// The first of them: page | receiver << 20 | epoch << 26 | in doubt << 53 | 1 << 54; 0: none.
        open: [AtomicU64; ARBITER_ROWS],
        /// Tick of each grant.
        open_since: [AtomicU64; ARBITER_ROWS],
        /// CANCELs sent for each.
        open_cancels: [AtomicU64; ARBITER_ROWS],
        /// Leases that the last round found: page | hint << 20 | 1 << 54; 0: none.
        leases: [AtomicU64; ARBITER_ROWS],
        /// Tick at which each ends.
        lease_ends: [AtomicU64; ARBITER_ROWS],
        /// Page whose history follows + 1; 0: none.
        history_page: AtomicU64,
        /// Ticks of its transitions, oldest first; 0: no more.
        history_at: [AtomicU64; ARBITER_ROWS],
        /// Their causes.
        history_causes: [AtomicU64; ARBITER_ROWS],
        /// The words after them.
        history_words: [AtomicU64; ARBITER_ROWS],
        /// Time of one decision.
        decision: HistogramBlock,
        /// From grant to acknowledgement.
        transfer: HistogramBlock,
    }

    /// Moves of the streams whose shots come from one silo's feed. Written by it.
    MoveBlock {
        /// Moves asked for.
        asked: AtomicU64,
        /// Of these: to where the stream was, or of one that moved already.
        needless: AtomicU64,
        /// Moves made.
        done: AtomicU64,
        /// Moves given up: the stream stayed.
        failed: AtomicU64,
        /// Of the last of them: as in `open`, at the stage that failed; 0: none has.
        failed_row: AtomicU64,
        /// What its owner had said last: number of the response + 1; 0: nothing.
        failed_refusal: AtomicU64,
        /// When.
        failed_at: AtomicU64,
        /// Shots that went through a stage.
        staged: AtomicU64,
        /// Times that a stage was full.
        stage_waits: AtomicU64,
        /// Shots handed to other silos.
        handed_on: AtomicU64,
        /// Times that a lane to another silo was full.
        lane_waits: AtomicU64,
        /// Shots of other silos' feeds put into slots here.
        taken_in: AtomicU64,
        /// Of those that came: sent back, for the stream's route was another one.
        sent_back: AtomicU64,
        /// Moves under way: stream | from << 20 | to << 26 | stage << 32 | 1 << 63; 0: none.
        open: [AtomicU64; MOVE_ROWS],
        /// Since when each is at its stage.
        open_since: [AtomicU64; MOVE_ROWS],
        /// How long streams that moved stood still: from the first shot that was staged until the stage went out.
        pause: HistogramBlock,
        /// Until the owner had answered all.
        quiesce: HistogramBlock,
        /// From there to the page's arrival.
        transfer: HistogramBlock,
        /// A rescue of a dead silo's streams: its step, 0 at rest | dead silo << 8 | streams << 16 | shots that came back << 40.
        rescue: AtomicU64,
    }

    /// How a silo lives. Written by the control thread.
    LifeBlock {
        /// [`SiloState`](crate::board::snapshot::SiloState) code.
        state: AtomicU64,
        /// Since when.
        since: AtomicU64,
        /// Times that its path was built, the start included.
        epoch: AtomicU64,
        /// Times that it died.
        deaths: AtomicU64,
        /// Times that it came back.
        rejoins: AtomicU64,
        /// Times that it was emptied.
        drains: AtomicU64,
        /// Shots answered with an error because it died.
        errored: AtomicU64,
        /// Its last heir + 1; 0: it has had none.
        heir: AtomicU64,
        /// Streams that it left to heirs.
        left: AtomicU64,
        /// From a death to where all its streams were taken elsewhere.
        elsewhere: HistogramBlock,
        /// From a death to the first answer that one of its streams got elsewhere.
        answered: HistogramBlock,
        /// From the wish to come back to where it took shots again.
        rejoin: HistogramBlock,
        /// Why it is not live, or why it stays dead.
        why: Text<32>,
    }

    /// The live source. Written by the first silo's feed, but for what is set at Init.
    SourceBlock {
        /// [`SourceKind`](crate::board::snapshot::SourceKind) code; 0: shots come from a sampler or a file.
        kind: AtomicU64,
        /// Where it is (Init).
        name: Text<16>,
        /// The engine's epoch at it (Init).
        epoch: AtomicU64,
        /// Bits of a shot (Init).
        width_bits: AtomicU64,
        /// Bytes of the socket's receive buffer (Init).
        buffer_bytes: AtomicU64,
        /// 1 once shots are taken, 2 once none is any more.
        state: AtomicU64,
        /// Datagrams or slots looked at.
        received: AtomicU64,
        /// Shots taken.
        accepted: AtomicU64,
        /// Answers handed to their senders.
        answered: AtomicU64,
        /// Answers that their senders did not take.
        answers_dropped: AtomicU64,
        /// What was no shot, or none of this width.
        malformed: AtomicU64,
        /// From senders that are not allowed, or one too many.
        foreign: AtomicU64,
        /// For another epoch of the engine.
        other_epoch: AtomicU64,
        /// For streams that there are not.
        unknown_streams: AtomicU64,
        /// Datagrams that the system dropped for want of room.
        kernel_drops: AtomicU64,
        /// Refusals of the system other than "nothing there".
        errors: AtomicU64,
        /// Frames in which a lane was full and nothing was taken.
        lane_waits: AtomicU64,
        /// Times that another client took the region.
        attached: AtomicU64,
        /// Process of the region's client, as it says; 0: none.
        client_pid: AtomicU64,
        /// Tick at which its heartbeat last moved.
        client_seen: AtomicU64,
        /// Tick of the last part.
        received_ticks: AtomicU64,
        /// Senders known.
        peers_count: AtomicU64,
        /// The first of them.
        peers: [PeerRow; PEERS_SHOWN],
    }

    /// One sender. Written by the first silo's feed.
    PeerRow {
        /// 0: none, 4 and 6: the address's version, 1: a path.
        family: AtomicU64,
        /// Of the address.
        port: AtomicU64,
        /// The address's bits, high word first.
        address: [AtomicU64; 2],
        /// The path.
        path: Text<12>,
        /// Tick of its last datagram.
        seen: AtomicU64,
        /// Shots taken from it.
        shots: AtomicU64,
        /// Answers sent to it.
        answers: AtomicU64,
        /// Answers that it did not take.
        dropped: AtomicU64,
    }

    /// A stream, as the live source sees it. Written by the first silo's feed.
    StreamSourceBlock {
        /// Shots taken.
        accepted: AtomicU64,
        /// Answers that came back, whether or not their sender took them.
        answered: AtomicU64,
        /// Sequence number last taken, the sender's.
        accepted_last: AtomicU64,
        /// Sequence number last answered, the sender's.
        answered_last: AtomicU64,
        /// Tick of the last part.
        received_ticks: AtomicU64,
        /// Numbers skipped.
        gaps: AtomicU64,
        /// Came again.
        duplicates: AtomicU64,
        /// Came after a younger one.
        reordered: AtomicU64,
        /// Do not fit.
        malformed: AtomicU64,
        /// Given up with parts missing.
        incomplete: AtomicU64,
        /// Of older sessions, or too far behind.
        stale: AtomicU64,
        /// Times another session took over.
        restarts: AtomicU64,
    }
}
