//! The board's byte layout: the blocks and their offsets.
//!
//! Declares every name and offset once. All blocks are `repr(C)`, 128-byte aligned, made of 64-bit
//! atomics and valid for any bytes. The region is a header followed by one array per kind of block,
//! in the order of [`Layout`]'s fields, each starting on a 128-byte boundary. [`hash`] covers every
//! field's name and offset, and where each array begins: two builds with different layouts refuse
//! each other.
//!
//! A block, the view that shows it and the reader of that view are one declaration; `declare.rs`
//! explains it.

#[macro_use]
mod declare;
mod places;

pub(super) use places::Layout;
pub use places::Shape;

use super::get;
use super::histogram::{DEADLINES_NS, HistogramBlock};
use super::reading::{Now, fraction, number};
use super::snapshot::clock::{PairView, StepView};
use super::snapshot::placement::OutcomeCount;
use super::snapshot::{DecoderShots, DriftView};
use super::text::Text;
use crate::fault::FaultCode;
use crate::profile::{DecoderKind, THREAD_ROLES_MAX};
use crate::roles::RoleKind;
use crate::streams::HealthVerdict;
use pinwheel_edge::page::{Response, State};
use serde::Serialize;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

/// "PINWHEEL" read as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PINWHEEL");
/// Layout version, for changes of meaning that the hash does not cover.
pub const VERSION: u64 = 2;
/// Most roles that one thread runs.
pub const ROLES_MAX: usize = THREAD_ROLES_MAX;
/// Longest label of a run, bytes.
pub const LABEL_BYTES_MAX: usize = 128;
/// Notes that the header holds.
pub const NOTES_MAX: usize = 8;
/// Stack frames kept of a hot thread's first allocation.
pub const SITE_FRAMES: usize = 24;
/// Hottest detectors shown for a stream.
pub const HOTTEST_MAX: usize = 5;
/// Most readers of a silo's answers.
pub const ANSWER_READERS_MAX: usize = 4;
/// Task counters of one worker of a pool.
pub const COUNTS_MAX: usize = 16;
/// Transfers, leases and transitions shown for an arbiter.
pub const ARBITER_ROWS: usize = 16;
/// Stream moves shown for a feed: all that it makes at once.
pub const MOVE_ROWS: usize = 4;
/// States of a page.
pub const PAGE_STATES: usize = State::ALL.len();
/// Responses of an arbiter.
pub const RESPONSES: usize = Response::NAMES.len();
/// Senders shown for a live source.
pub const PEERS_SHOWN: usize = 8;
/// Error numbers that harvest counts, 0 unused.
pub const ERRORS_MAX: usize = 32;

mod off_path;
mod path;
mod placement;
mod threads;

pub use declare::Plain;
pub use off_path::{
    AlarmRow, ArbiterBlock, ArbiterView, ControlBlock, ControlView, LifecycleBlock, LifecycleView, LogBlock, LogView,
    MoveBlock, MovesView, PeerRow, RecorderBlock, RecorderView, ShadowBlock, ShadowView, SourceBlock, SourcePeer,
    SourceStream, SourceView, StreamSourceBlock,
};
pub use path::{
    Counters, DecodeBlock, DeviceBlock, DispatchBlock, FeedBlock, GpuView, GraphBlock, GraphView, GraphWorkerView,
    HarvestBlock, OverflowView, PollBlock, WHOLE_SHOT,
};
pub use placement::{
    DECISIONS_SHOWN, DecisionRow, OVERFLOW_OUTCOMES, PlacementBlock, PlacementView, QUEUES, Queue, SiloDepthBlock,
    SiloDepthView,
};
pub use threads::{EngineView, GAPS_MAX, GapRow, HeaderBlock, ThreadBlock, ThreadView};

blocks! {
    /// Latency histograms of one silo.
    LatencyBlock {
        /// From scheduled arrival to harvest.
        total: HistogramBlock,
        /// From submission to harvest.
        from_submit: HistogramBlock,
        /// Time in each stage, in the order of [`Stage::ALL`].
        stages: [HistogramBlock; Stage::ALL.len()],
    }

    /// Times of the shot last written into one slot: ticks, 0 = not yet.
    SlotStamps {
        /// Stream of the shot (feed).
        stream: AtomicU64,
        /// Sequence number (feed).
        sequence: AtomicU64,
        /// Scheduled arrival (feed).
        scheduled: AtomicU64,
        /// Written into the slot (feed).
        submitted: AtomicU64,
        /// Taken by dispatch.
        dispatched: AtomicU64,
        /// Worker + 1; 0: CPU path (dispatch).
        worker: AtomicU64,
        /// Completion claimed (poll).
        completed: AtomicU64,
        /// Decode begun (decoder; of a whole shot, the graph role when it answers).
        decoding: AtomicU64,
        /// Answered (the role that holds the ticket's claim).
        answered: AtomicU64,
        /// Taken by harvest.
        harvested: AtomicU64,
    }

    /// A stream as recorded by the feed: its owner, and whether its detection events fit the model.
    StreamFeedBlock => #[derive(Default)] InputHealthView(feed, now) {
        /// Silo that owns the stream.
        silo: AtomicU64,
        /// Code of the input health verdict.
        verdict: AtomicU64,
        /// Shots whose detection events were counted.
        examined: AtomicU64 => shots_examined,
        /// Fraction of detectors that fired.
        found_bits: AtomicU64 => fraction_found: f64 = fraction,
        /// Fraction of detectors that fire according to the model.
        expected_bits: AtomicU64 => fraction_expected: f64 = fraction,
        /// Hottest detectors + 1; 0: none.
        hottest: [AtomicU64; HOTTEST_MAX],
        /// Their fractions, bits of an f64.
        hottest_bits: [AtomicU64; HOTTEST_MAX],
        /// Shots that found no slot, by outcome; `SentToCpu` is dispatch's.
        overflow: [AtomicU64; OVERFLOW_OUTCOMES],
        /// Shots that were counted to find drifts (this word and the next three: the drift watch).
        drift_shots: AtomicU64,
        /// The detectors of the error that drifted: the one + 1, and the other + 1 in the high half; 0: none.
        drifted: AtomicU64,
        /// How often it happens, divided by the model's, bits of an f64.
        drift_ratio_bits: AtomicU64,
        /// Since when.
        drift_since: AtomicU64,
    } + {
        /// The error that differs most from the model, if one does; only with `input.watch_drift`.
        drift: Option<DriftView> = feed.drift(now),
        /// Whether the input fits the model.
        verdict: HealthVerdict = HealthVerdict::from_code(get(&feed.verdict)),
        /// Detectors that fire most above the model: (detector, fraction).
        hottest: Vec<(u32, f64)> = feed.hottest(),
    }

    /// A stream as recorded by harvest.
    StreamHarvestBlock => #[derive(Default)] StreamView(harvest, now, id: u32, feed: &StreamFeedBlock) {
        /// Answers harvested, errors included.
        answered: AtomicU64 => answered,
        /// Of these, with an error word.
        errors: AtomicU64 => errors,
        /// Of these, late.
        late: AtomicU64 => late,
        /// Answers that could be compared with a true observable.
        judged: AtomicU64 => shots_with_observables,
        /// Of these, answers with a wrong observable.
        logical_errors: AtomicU64 => logical_errors,
        /// Shots without an answer by their deadline, errors included; counted where `deadlines` are set.
        missed: AtomicU64 => missed,
        /// Answers that the rescue decoder gave.
        rescued: AtomicU64 => rescued,
        /// Of these, answers with a wrong observable.
        rescued_wrong: AtomicU64 => rescued_wrong,
        /// Errors because no decoder could have answered by the deadline.
        refused: AtomicU64 => refused,
        /// Pauli frame of the stream: for each of the first 64 observables, the parity over its
        /// answers; errors do not change it.
        frame: AtomicU64 => frame,
        /// Wrong answers and errors by the first of [`DEADLINES_NS`] that each of them kept; an
        /// answer that kept none is not counted.
        wrong_in: [AtomicU64; DEADLINES_NS.len()] => wrong_in,
        /// Hash of the error model by which its shots are decoded. Written by cold threads.
        model_hash: AtomicU64 => model_hash,
        /// Answers without an error by the decoder that gave them, by its number.
        decoded_by: [AtomicU64; DecoderKind::ALL.len()],
        /// Of these, answers that could be compared with a true observable.
        judged_by: [AtomicU64; DecoderKind::ALL.len()],
        /// Of these, answers with a wrong observable.
        wrong_by: [AtomicU64; DecoderKind::ALL.len()],
        /// From scheduled arrival to harvest.
        latency: HistogramBlock => latency,
    } + {
        /// Its answers without an error, by decoder; only decoders that gave some.
        decoders: Vec<DecoderShots> = harvest.decoders(),
        /// Number of the stream.
        id: u32 = id,
        /// Silo that owns it.
        silo: u32 = number(&feed.silo),
        /// How its detection events compare with the model.
        input_health: InputHealthView = InputHealthView::read(feed, now),
        /// Its shots that found no slot, by outcome; only outcomes that occurred.
        overflow: Vec<OutcomeCount> = OutcomeCount::all(&feed.overflow),
    }

    /// One kind of fault in one silo; any role counts.
    FaultRow => #[derive(Default, Eq)] FaultView(row, now, silo: u32, kind: FaultCode) {
        /// How often it occurred.
        count: AtomicU64 => count,
        /// Tick of the first time.
        first_ticks: AtomicU64,
        /// Tick of the last time.
        last_ticks: AtomicU64,
        /// A number recorded with the last one (worker, slot, role …); the name states its meaning.
        detail: AtomicU64 => detail,
    } + {
        /// Number of the fault.
        code: u16 = kind.number(),
        /// Its name and meaning.
        name: String = kind.describe(get(&row.detail)),
        /// Silo, if it belongs to one.
        silo: Option<u32> = Some(silo),
        /// First time, nanoseconds since start.
        first_ns: u64 = now.at_ns(get(&row.first_ticks)),
        /// Last time, nanoseconds since start.
        last_ns: u64 = now.at_ns(get(&row.last_ticks)),
    }

    /// One role of one thread.
    RoleBlock => #[derive(Eq)] RoleView(block, now) {
        /// kind | silo << 8 | index << 40.
        identity: AtomicU64,
        /// Work items since start.
        items: AtomicU64 => items,
        /// Frame in which it panicked + 1; 0: it runs.
        died: AtomicU64,
        /// Ticks of its calls that handled items.
        busy_ticks: AtomicU64,
    } + {
        /// What the role does.
        kind: RoleKind = block.kind(),
        /// Silo of the role.
        silo: u32 = block.silo(),
        /// Number among the silo's decode workers; 0 for other roles.
        index: u32 = block.index(),
        /// Frame in which it panicked; it is never called again. `None`: it runs.
        died_frame: Option<u64> = get(&block.died).checked_sub(1),
    }

    /// The engine's clock, and the newest pair of its time and the system's. Written by the control
    /// side; the pair through [`ClockBlock::publish`].
    ClockBlock => #[derive(Default, Eq)] ClockView(block, now) {
        /// Number of the pair being written.
        pairs_begun: AtomicU64,
        /// Pairs of (ticks, monotonic, UTC) taken.
        pairs: AtomicU64 => pairs,
        /// Of the newest pair: tick.
        ticks: AtomicU64,
        /// Of the newest pair: the system's monotonic clock, ns.
        monotonic_ns: AtomicU64,
        /// Of the newest pair: UTC, ns since 1970.
        utc_ns: AtomicU64,
        /// Of the newest pair: ticks between the counter readings before and after the system's.
        width_ticks: AtomicU64,
        /// Steps seen: of UTC, of the counter.
        steps: [AtomicU64; 2],
        /// Size of the last step of each, ns, as a signed number.
        step_ns: [AtomicU64; 2],
        /// Tick of the pair that showed the last step of each.
        step_ticks: [AtomicU64; 2],
        /// Source of the ticks.
        source: Text<16> => source,
        /// Why the ticks do not come from the counter, if so.
        degraded: Text<32> => degraded: Option<String> = Text::read_if_any,
    } + {
        /// The newest of the pairs; `None` before the first.
        pair: Option<PairView> = block.pair_view(now),
        /// Times that UTC was set or took in a leap second.
        utc_steps: u64 = get(&block.steps[0]),
        /// Last step of UTC.
        utc_step_last: Option<StepView> = block.last_step(0, now),
        /// Times that the counter jumped against monotonic time.
        counter_steps: u64 = get(&block.steps[1]),
        /// Last step of the counter.
        counter_step_last: Option<StepView> = block.last_step(1, now),
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
    /// Decode begun to answered, including the wait for the answer's turn in its stream.
    Decode,
    /// Answered to harvested.
    Harvest,
}

pinwheel_edge::names! { Stage:
    Feed "feed", Dispatch "dispatch", Device "device", Queue "queue", Decode "decode", Harvest "harvest",
}

/// FNV-1a over every field's name and offset, and over the place of each array on a board with one of
/// everything: so it also covers the sizes of blocks, and how many a board has of what no [`Shape`] says.
pub fn hash() -> u64 {
    hash_with(&Layout::of(Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 }))
}

fn hash_with(layout: &Layout) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for (block, field, offset) in
        threads::FIELDS.iter().chain(path::FIELDS).chain(FIELDS).chain(off_path::FIELDS).chain(placement::FIELDS)
    {
        eat(block.as_bytes());
        eat(field.as_bytes());
        eat(&offset.to_le_bytes());
    }
    eat(format!("{layout:?}").as_bytes());
    hash
}

const _: () = assert!(size_of::<SlotStamps>() == 128 && size_of::<FaultRow>() == 128);
const _: () = assert!(size_of::<HistogramBlock>().is_multiple_of(128) && offset_of!(HistogramBlock, buckets) == 128);

#[cfg(test)]
mod tests {
    use super::{FaultRow, Layout, Shape, hash, hash_with};

    /// With sums that wrap, slots far beyond a small region would be read.
    #[test]
    #[should_panic(expected = "fits into the address space")]
    fn a_shape_that_no_memory_holds_is_refused() {
        let most = u32::MAX;
        Layout::of(Shape { threads: 1, silos: most, slots: most, workers: 1, decoders: 1, streams: 1 });
    }

    /// As with one error code more: every array behind the fault rows begins a row later, on as many pages.
    #[test]
    fn a_board_with_another_number_of_fault_rows_has_another_hash() {
        let layout = Layout::of(Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 });
        let later = Layout { clock: layout.clock + size_of::<FaultRow>(), ..layout };
        assert_eq!(hash_with(&layout), hash());
        assert_ne!(hash_with(&later), hash());
    }
}
