//! Blocks off a shot's path, with their views: control, log, alarms, recorder, arbiter, stream
//! moves, silo lifecycles, live sources, the shadow.
//!
//! As in [`super`], whose hash covers these too.

use super::declare::Plain;
use super::{ARBITER_ROWS, MOVE_ROWS, PAGE_STATES, PEERS_SHOWN, RESPONSES};
use crate::board::get;
use crate::board::histogram::HistogramBlock;
use crate::board::reading::{Now, flag, if_any, one_less};
use crate::board::snapshot::SourceState;
use crate::board::snapshot::arbiter::{LeaseView, PortView, TransferView, TransitionView};
use crate::board::snapshot::control::{ActionView, HeldFeedView, RevertView};
use crate::board::snapshot::moves::{MoveFailure, MoveView};
use crate::board::snapshot::sources::{SourceClient, SourceDecoder};
use crate::board::text::Text;
use crate::profile::DecoderKind;
use crate::roles::{RecorderState, SiloState};
use crate::streams::SourceKind;
use pinwheel_edge::page::{Response, SILOS_MAX, State};
use serde::Serialize;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

blocks! {
    /// Control of the engine. Written under the control lock; `socket` and the fields after it by
    /// the socket's thread.
    ControlBlock => #[derive(Default, Eq)] ControlView(block, now) {
        /// 1 while the feed is held.
        held: AtomicU64,
        /// Tick since which the feed is held.
        held_since: AtomicU64,
        /// Who holds the feed, and why.
        held_by: Text<24>,
        /// Tick at which the previous profile is restored; 0: no revert is pending.
        revert_ticks: AtomicU64,
        /// Name of that profile.
        revert_to: Text<8>,
        /// Whether a lost terminal drains the engine; otherwise it keeps running.
        drains_on_hangup: AtomicU64 => drains_on_hangup: bool = flag,
        /// Actions on the engine from outside its threads.
        actions: AtomicU64 => actions,
        /// Tick of the last action.
        action_ticks: AtomicU64,
        /// The last action, and who took it.
        action: Text<32>,
        /// Of these: actions for which the event log had no room.
        actions_unlogged: AtomicU64 => actions_unlogged,
        /// Control socket of this user, if there is one.
        socket: Text<14> => socket: Option<String> = Text::read_if_any,
        /// Clients connected to the socket.
        clients: AtomicU64 => clients,
        /// Requests of clients that were answered.
        requests: AtomicU64 => requests,
        /// Of these: refused.
        refused: AtomicU64 => refused,
        /// Clients disconnected: of another user, over the limit, sending malformed requests, or
        /// not reading.
        dropped: AtomicU64 => dropped,
    } + {
        /// The feed is held; `None`: it runs.
        held: Option<HeldFeedView> = if_any(&block.held)
            .map(|_| HeldFeedView { for_ns: now.age_ns(&block.held_since), by: block.held_by.read() }),
        /// The pending revert to the previous profile; `None`: none is pending.
        revert: Option<RevertView> = if_any(&block.revert_ticks)
            .map(|_| RevertView { to: block.revert_to.read(), in_ns: now.left_ns(&block.revert_ticks) }),
        /// The last action.
        last: Option<ActionView> = if_any(&block.actions)
            .map(|_| ActionView { what: block.action.read(), at_ns: now.at_ns(get(&block.action_ticks)) }),
    }
    /// Event counts of a run. Written by the logger.
    LogBlock => #[derive(Copy, Default, Eq)] LogView(block, now, dropped: u64) {
        /// Events written to the log.
        written: AtomicU64 => written,
        /// Events taken and not written: the file is full, or cannot be written.
        unkept: AtomicU64 => unkept,
    } + {
        /// Events that found no room in their thread's lane.
        dropped: u64 = dropped,
    }
    /// One alarm. Written by the watchdog, through [`AlarmRow::publish`].
    AlarmRow {
        /// Number of the version being written.
        begun: AtomicU64,
        /// Versions written; 0: no alarm.
        versions: AtomicU64,
        /// The record's numbers, in the order of its fields.
        words: [AtomicU64; 19],
        /// Cause of the verdict, one word.
        cause: Text<4>,
        /// Who caused it, if that is somebody outside the engine.
        who: Text<16>,
        /// What is wrong and why, one sentence.
        sentence: Text<48>,
        /// Observations that support the verdict, lines.
        evidence: Text<192>,
        /// Stack of the stalled thread, lines.
        stack: Text<128>,
        /// Stack frame that caused the stall.
        culprit: Text<16>,
        /// What to do.
        runbook: Text<24>,
        /// The alarms that it explains, a line each: rule, tab, sentence.
        consequences: Text<192>,
    }
    /// The flight recorder. Written by it, except `run_dir` (Init).
    RecorderBlock => #[derive(Default, Eq)] RecorderView(block, now) {
        /// Code of a [`RecorderState`].
        state: AtomicU64,
        /// Samples of the whole board.
        frames: AtomicU64 => frames,
        /// Bytes of the recording.
        bytes: AtomicU64 => bytes,
        /// Fast samples taken.
        samples: AtomicU64 => samples,
        /// Times that fast samples were kept, for an alarm or a request.
        bursts: AtomicU64 => bursts,
        /// Longest step, nanoseconds.
        step_ns_max: AtomicU64 => step_ns_max,
        /// Sum of all steps, nanoseconds.
        step_ns: AtomicU64 => step_ns,
        /// Why it does not write to disk, if so.
        trouble: Text<32> => trouble: Option<String> = Text::read_if_any,
        /// The run's directory, if it has one.
        run_dir: Text<64> => run_dir: Option<String> = Text::read_if_any,
    } + {
        /// Where it writes.
        state: RecorderState = RecorderState::from_code(get(&block.state)),
    }

    /// The shadow: a second decoder that some of the shots are given to, off their path. Written by its
    /// thread; counts begin anew with each decoder, model or share of the shots.
    ShadowBlock => #[derive(Default)] ShadowView(block, now, sampled_in_all: u64, left_out_in_all: u64) {
        /// Tick since which it counts; 0: there has been no shadow.
        began: AtomicU64,
        /// Tick at which it was switched off; 0: it is on.
        ended: AtomicU64,
        /// Number of its decoder.
        decoder: AtomicU64,
        /// One shot in so many is given to it.
        one_in: AtomicU64 => one_in,
        /// Its error model; none: that by which each shot was answered.
        model: Text<32> => model: Option<String> = Text::read_if_any,
        /// Shots copied before it began, of all silos.
        sampled_before: AtomicU64,
        /// Shots left out before it began, of all silos.
        left_out_before: AtomicU64,
        /// Shots that both decoders answered.
        compared: AtomicU64 => compared,
        /// Of these: with different observables.
        disagreements: AtomicU64 => disagreements,
        /// Disagreements by the decoder of the path, by its number.
        disagreements_by: [AtomicU64; DecoderKind::ALL.len()],
        /// Disagreements kept in the run's directory, since the start of the run.
        kept: AtomicU64 => disagreements_kept,
        /// Compared shots whose true observables are known.
        judged: AtomicU64 => shots_with_observables,
        /// Of these: answered wrong on the path.
        path_wrong: AtomicU64 => path_logical_errors,
        /// Of these: answered wrong by the shadow.
        shadow_wrong: AtomicU64 => shadow_logical_errors,
        /// Not compared: answered with an error on the path.
        path_errors: AtomicU64 => path_errors,
        /// Not compared: the shadow found no answer.
        shadow_errors: AtomicU64 => shadow_errors,
        /// Not compared: decoded by a model that was no longer in force, or that the shadow's decoder
        /// refuses.
        other_model: AtomicU64 => other_model,
        /// Time that its thread worked, ticks.
        busy_ticks: AtomicU64,
        /// Latency of the compared shots on the path, from scheduled arrival to harvest.
        path_latency: HistogramBlock => path_latency,
        /// Time that the shadow decoded each of them.
        decode: HistogramBlock => decode,
        /// Why disagreements are no longer kept, if so.
        trouble: Text<32> => trouble: Option<String> = Text::read_if_any,
    } + {
        /// Whether shots are given to it now.
        is_on: bool = get(&block.ended) == 0,
        /// Its decoder.
        decoder: Option<DecoderKind> = DecoderKind::ALL.get(get(&block.decoder) as usize).copied(),
        /// Shots copied for it.
        sampled: u64 = sampled_in_all.saturating_sub(get(&block.sampled_before)),
        /// Shots chosen for it but left out, because it was behind.
        left_out: u64 = left_out_in_all.saturating_sub(get(&block.left_out_before)),
        /// Disagreements by the decoder of the path.
        disagreements_by: Vec<(DecoderKind, u64)> = DecoderKind::ALL.into_iter().zip(block.disagreements_by.view()).collect(),
        /// Share of a core that its thread took.
        core_share: f64 = block.core_share(now),
    }

    /// Arbiter of one silo, which writes this block.
    ArbiterBlock => #[derive(Default)] ArbiterView(block, now) {
        /// Pages; 0: no arbiter runs here.
        pages: AtomicU64 => pages,
        /// Tick of the sweep that counted `states` and found `leases`.
        counted_ticks: AtomicU64,
        /// Pages by state, in the order of `State::ALL`.
        states: [AtomicU64; PAGE_STATES],
        /// Decisions by response, in the order of `Response::NAMES`.
        decisions: [AtomicU64; RESPONSES],
        /// Granted moves that broke a lease on the operator's request.
        forced: AtomicU64 => forced,
        /// Pages transferred to other silos.
        left: AtomicU64 => left,
        /// Pages received from other silos.
        arrived: AtomicU64 => arrived,
        /// Grants that were cancelled: the page stayed.
        kept: AtomicU64 => kept,
        /// Grants that became in doubt.
        doubted: AtomicU64 => doubted,
        /// CANCELs sent for grants without an acknowledgement in time.
        cancels: AtomicU64 => cancels,
        /// Pages taken over from fenced silos.
        taken_over: AtomicU64 => taken_over,
        /// Of these: with a write in progress, so that their bytes are unusable.
        torn: AtomicU64 => torn,
        /// Requests that found a full frame and got no response.
        unheard: AtomicU64 => unheard,
        /// Grants to each port (a requesting silo).
        port_wins: [AtomicU64; SILOS_MAX as usize],
        /// Refusals to each port.
        port_refusals: [AtomicU64; SILOS_MAX as usize],
        /// Refusals of each port since its last grant.
        port_ages: [AtomicU64; SILOS_MAX as usize],
        /// Open grants.
        open_count: AtomicU64 => transfers_open,
        /// The first open grants: page | receiver << 20 | epoch << 26 | in doubt << 53 | 1 << 54;
        /// 0: none.
        open: [AtomicU64; ARBITER_ROWS],
        /// Tick of each open grant.
        open_since: [AtomicU64; ARBITER_ROWS],
        /// CANCELs sent for each open grant.
        open_cancels: [AtomicU64; ARBITER_ROWS],
        /// Leases that the last sweep found: page | hint << 20 | 1 << 54; 0: none.
        leases: [AtomicU64; ARBITER_ROWS],
        /// Tick at which each lease ends.
        lease_ends: [AtomicU64; ARBITER_ROWS],
        /// Page whose history is shown: the requested one, or the one in doubt for longest, or the
        /// last that moved.
        history_page: AtomicU64 => history_page: Option<u32> = one_less,
        /// Ticks of its transitions, oldest first; 0: no more.
        history_at: [AtomicU64; ARBITER_ROWS],
        /// Codes of the causes of the transitions.
        history_causes: [AtomicU64; ARBITER_ROWS],
        /// Page words after the transitions.
        history_words: [AtomicU64; ARBITER_ROWS],
        /// Time of one decision.
        decision: HistogramBlock => decision,
        /// From grant to acknowledgement.
        transfer: HistogramBlock => transfer,
    } + {
        /// Pages by state: (name, pages), as the last sweep counted them.
        states: Vec<(&'static str, u64)> =
            State::ALL.map(State::name).into_iter().zip(block.states.view()).collect(),
        /// Age of that count.
        counted_age_ns: u64 = now.age_ns(&block.counted_ticks),
        /// Decisions by response: (name, times).
        decisions: Vec<(&'static str, u64)> =
            Response::NAMES.into_iter().zip(block.decisions.view()).collect(),
        /// Ports that have sent requests, by silo.
        ports: Vec<PortView> = block.ports(),
        /// The first open grants.
        transfers: Vec<TransferView> =
            (0..ARBITER_ROWS).filter_map(|row| block.open(row, now)).collect(),
        /// The first leases that the last sweep found.
        leases: Vec<LeaseView> =
            (0..ARBITER_ROWS).filter_map(|row| block.lease(row, now)).collect(),
        /// Last transitions of the page, oldest first.
        history: Vec<TransitionView> =
            (0..ARBITER_ROWS).filter_map(|row| block.transition(row, now)).collect(),
    }

    /// Moves of the streams whose shots come from one silo's feed, which writes this block.
    MoveBlock => #[derive(Default)] MovesView(block, now) {
        /// Moves requested.
        asked: AtomicU64 => asked,
        /// Of these: to the stream's current silo, or of a stream that was already moving.
        needless: AtomicU64 => needless,
        /// Moves that were completed.
        done: AtomicU64 => done,
        /// Moves abandoned: the stream stayed.
        failed: AtomicU64 => failed,
        /// Last failed move: as in `open`, with the stage that failed; 0: none has failed.
        failed_row: AtomicU64,
        /// Its owner's last response: number + 1; 0: none.
        failed_refusal: AtomicU64,
        /// Tick of that failure.
        failed_at: AtomicU64,
        /// Shots that went through a stage.
        staged: AtomicU64 => staged,
        /// Times that a stage was full.
        stage_waits: AtomicU64 => stage_waits,
        /// Shots handed to other silos.
        handed_on: AtomicU64 => handed_on,
        /// Times that a queue to another silo was full.
        lane_waits: AtomicU64 => lane_waits,
        /// Shots of other silos' feeds put into slots here.
        taken_in: AtomicU64 => taken_in,
        /// Shots of other feeds that were returned, because the route of their stream had changed.
        sent_back: AtomicU64 => sent_back,
        /// Moves in progress: stream | from << 20 | to << 26 | stage << 32 | 1 << 63; 0: none.
        open: [AtomicU64; MOVE_ROWS],
        /// Tick since which each move is at its stage.
        open_since: [AtomicU64; MOVE_ROWS],
        /// Pause of a moved stream: from its first staged shot until the stage was released.
        pause: HistogramBlock => pause,
        /// Part of the pause until the owner had answered all earlier shots.
        quiesce: HistogramBlock => quiesce,
        /// Part of the pause from there until the page had arrived.
        transfer: HistogramBlock => transfer,
        /// Failover of a dead silo's streams: step, 0 idle | dead silo << 8 | streams << 16 |
        /// returned shots << 40.
        failover: AtomicU64,
    } + {
        /// The last failed move.
        last_failure: Option<MoveFailure> = block.last_failure(now),
        /// Moves in progress.
        open: Vec<MoveView> = block.open(now),
    }

    /// State of a silo and its restarts. Written by the control thread.
    LifecycleBlock => #[derive(Default)] LifecycleView(block, now) {
        /// Code of a [`SiloState`].
        state: AtomicU64,
        /// Tick of the last change of the state.
        since: AtomicU64,
        /// Times that its path was built, the start included.
        epoch: AtomicU64 => epoch,
        /// Times that the silo died.
        deaths: AtomicU64 => deaths,
        /// Times that the silo rejoined.
        rejoins: AtomicU64 => rejoins,
        /// Times that the silo was drained.
        drains: AtomicU64 => drains,
        /// Shots answered with an error because the silo died.
        errored: AtomicU64 => errored,
        /// Its last successor, if it has had one.
        successor: AtomicU64 => successor: Option<u32> = one_less,
        /// Streams that moved to successors.
        left: AtomicU64 => left,
        /// From a death until all its streams had moved to other silos.
        elsewhere: HistogramBlock => elsewhere,
        /// From a death to the first answer to one of its streams in another silo.
        answered: HistogramBlock => answered_elsewhere,
        /// From the rejoin request until the silo accepted shots again.
        rejoin: HistogramBlock => rejoin,
        /// Why the silo is not live, or why it stays dead.
        why: Text<32> => why,
    } + {
        /// What the silo is doing.
        state: SiloState = SiloState::from_code(get(&block.state)),
        /// Time in this state; 0: since the start.
        age_ns: u64 = now.age_if_any(&block.since).unwrap_or(0),
    }

    /// The live source. Written by the first silo's feed, except fields set at Init.
    SourceBlock => SourceView(block, now, kind: SourceKind, streams: Vec<SourceStream>) {
        /// [`SourceKind`] code; 0: shots come from a sampler or
        /// a file.
        kind: AtomicU64,
        /// Address, path or name of the source.
        name: Text<16> => name,
        /// Epoch of the engine at the source.
        epoch: AtomicU64 => epoch,
        /// Bits of a shot.
        width_bits: AtomicU64 => width_bits,
        /// Bytes of the socket's receive buffer; 0: it has none.
        buffer_bytes: AtomicU64 => buffer_bytes,
        /// 1 once the source accepts shots, 2 once it no longer does.
        state: AtomicU64,
        /// Datagrams or slots examined.
        received: AtomicU64 => received,
        /// Shots accepted; each is answered.
        accepted: AtomicU64 => accepted,
        /// Answers delivered to their senders.
        answered: AtomicU64 => answered,
        /// Answers that their senders did not accept.
        answers_dropped: AtomicU64 => answers_dropped,
        /// Datagrams or slots that hold no shot, or a shot of another width.
        malformed: AtomicU64 => malformed,
        /// From senders that are not allowed, or over the limit.
        foreign: AtomicU64 => foreign,
        /// For another epoch of the engine.
        other_epoch: AtomicU64 => other_epoch,
        /// For streams that do not exist.
        unknown_streams: AtomicU64 => unknown_streams,
        /// Datagrams that the system dropped because the buffer was full.
        kernel_drops: AtomicU64 => kernel_drops,
        /// Errors of the system other than "would block".
        errors: AtomicU64 => errors,
        /// Frames in which a queue was full, and no shot was accepted.
        lane_waits: AtomicU64 => lane_waits,
        /// Times that a client attached to the region.
        attached: AtomicU64,
        /// Process of the region's client, as the client reports it; 0: none.
        client_pid: AtomicU64,
        /// Tick at which the client's heartbeat last changed.
        client_seen: AtomicU64,
        /// Tick of the last part of a shot.
        received_ticks: AtomicU64,
        /// Shots that left to be decoded by another host.
        forwarded: AtomicU64 => forwarded,
        /// Answers of other hosts to them.
        forwarded_answered: AtomicU64 => forwarded_answered,
        /// Shots of other hosts that were decoded here, or will be.
        taken_in: AtomicU64 => taken_in,
        /// CUDA-Q: volumes that are missing from the run's file of measurements, because the disk did
        /// not keep up or refused, or the file was full.
        unrecorded: AtomicU64 => unrecorded,
        /// CUDA-Q: most decoders that computed at the same time.
        decoding_max: AtomicU64 => decoding_max,
        /// Known senders, also those not listed in `peers`.
        peers_count: AtomicU64 => peers_count,
        /// The first known senders.
        peers: [PeerRow; PEERS_SHOWN],
    } + {
        /// What carries the shots.
        kind: SourceKind = kind,
        /// Whether parts arrive.
        state: SourceState = block.state(now),
        /// Time since the last part; `None` before the first.
        silent_ns: Option<u64> = now.age_if_any(&block.received_ticks),
        /// The first known senders.
        peers: Vec<SourcePeer> = block.peers.iter().take(get(&block.peers_count) as usize)
            .map(|row| SourcePeer::read(row, now)).collect(),
        /// Shared memory only: the attached client.
        client: Option<SourceClient> = block.client(now),
        /// What each stream received, by number.
        streams: Vec<SourceStream> = streams,
    }

    /// One sender. Written by the first silo's feed.
    PeerRow => #[derive(Default, Eq)] SourcePeer(row, now) {
        /// 0: none, 4 or 6: IP version of the address, 1: a path.
        family: AtomicU64,
        /// Port of the address.
        port: AtomicU64,
        /// The address's bits, high word first.
        address: [AtomicU64; 2],
        /// The path of its socket.
        path: Text<12>,
        /// Tick of its last datagram.
        seen: AtomicU64,
        /// Shots taken from it; CUDA-Q: calls.
        shots: AtomicU64 => shots,
        /// Answers sent to it.
        answers: AtomicU64 => answers,
        /// Answers that it did not accept.
        dropped: AtomicU64 => dropped,
    } + {
        /// Address of its datagrams.
        address: String = row.address(),
        /// Time since its last datagram.
        silent_ns: u64 = now.age_ns(&row.seen),
    }

    /// A stream as recorded by the live source. Written by the first silo's feed.
    StreamSourceBlock => #[derive(Copy, Default, Eq)] SourceStream(block, now, id: u32, accepted: u64, answered: u64) {
        /// Shots of the stream that were accepted.
        accepted: AtomicU64,
        /// Answers returned, whether or not their sender accepted them.
        answered: AtomicU64,
        /// Last accepted sequence number of the sender.
        accepted_last: AtomicU64 => accepted_last,
        /// Last answered sequence number of the sender.
        answered_last: AtomicU64 => answered_last,
        /// Tick of the last part of a shot.
        received_ticks: AtomicU64,
        /// Sequence numbers of the sender that were skipped.
        gaps: AtomicU64 => gaps,
        /// Shots received again.
        duplicates: AtomicU64 => duplicates,
        /// Shots received after a later one.
        reordered: AtomicU64 => reordered,
        /// Malformed parts.
        malformed: AtomicU64 => malformed,
        /// Shots abandoned because parts are missing.
        incomplete: AtomicU64 => incomplete,
        /// Parts of earlier sessions, or too far behind.
        stale: AtomicU64 => stale,
        /// Times that a new session replaced the previous one.
        restarts: AtomicU64 => restarts,
        /// CUDA-Q: code of a [`DecoderState`](crate::streams::DecoderState); 0: the stream is no
        /// decoder of that protocol.
        decoder_state: AtomicU64,
        /// CUDA-Q: the decoder's number, in two's complement.
        decoder: AtomicU64,
        /// CUDA-Q: the decoder's port.
        port: AtomicU64,
        /// CUDA-Q: calls of enqueue_syndromes.
        enqueues: AtomicU64,
        /// CUDA-Q: calls of get_corrections.
        gets: AtomicU64,
        /// CUDA-Q: calls of reset_decoder.
        resets: AtomicU64,
        /// CUDA-Q: replies with status OK.
        replies_ok: AtomicU64,
        /// CUDA-Q: replies with status BAD_REQUEST.
        replies_bad_request: AtomicU64,
        /// CUDA-Q: replies with status INTERNAL_ERROR.
        replies_internal_error: AtomicU64,
        /// CUDA-Q: replies with status NOT_READY.
        replies_not_ready: AtomicU64,
        /// CUDA-Q: row of the last caller among the senders, plus 1; 0: none.
        caller: AtomicU64,
    } + {
        /// CUDA-Q: the decoder.
        decoder: Option<SourceDecoder> = block.decoder(),
        /// Number of the stream.
        id: u32 = id,
        /// Shots of the stream that were accepted.
        accepted: u64 = accepted,
        /// Answers returned, whether or not their sender accepted them.
        answered: u64 = answered,
        /// Shots accepted and not answered yet.
        lag: u64 = accepted.saturating_sub(answered),
        /// Time since the last part; `None` before the first.
        silent_ns: Option<u64> = now.age_if_any(&block.received_ticks),
    }
}
