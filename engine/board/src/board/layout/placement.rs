//! Blocks of placement, with their views: queue depths of each silo, and the director's decisions.
//!
//! As in [`super`], whose hash covers these too. Written by the director, a cold thread, once a
//! snapshot.

use super::declare::Plain;
use crate::board::get;
use crate::board::histogram::HistogramBlock;
use crate::board::reading::{Now, flag, fraction};
use crate::board::snapshot::placement::{CrossingView, DecisionView, QueueView};
use crate::board::text::Text;
use serde::Serialize;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

/// Queues of a silo, and servers treated as queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Share of slots written and not yet dispatched.
    Rx,
    /// Share of workers on the device.
    Device,
    /// Device outputs that the graph role has not taken yet.
    Ready,
    /// Ready tasks of all pools.
    Pool,
    /// Share of the decode workers' time spent in tasks.
    Decode,
    /// Share of slots answered and not yet harvested.
    Tx,
    /// Grants out of the arbiter's ports; a request that finds a full frame counts as all of them.
    Ports,
}

/// Number of queues.
pub const QUEUES: usize = Queue::ALL.len();

pinwheel_edge::names! { Queue:
    Rx "rx", Device "device", Ready "ready", Pool "pool", Decode "decode", Tx "tx", Ports "ports",
}

/// Decisions shown.
pub const DECISIONS_SHOWN: usize = 16;
/// Counted outcomes of an overflow; see [`crate::streams::OverflowOutcome`].
pub const OVERFLOW_OUTCOMES: usize = 6;

blocks! {
    /// The director, which places and moves streams.
    PlacementBlock => #[derive(Default)] PlacementView(block, now, silos: Vec<SiloDepthView>) {
        /// 1 once a director runs.
        is_on: AtomicU64,
        /// Whether streams may move while the engine runs.
        rebalances: AtomicU64 => rebalances: bool = flag,
        /// Streams that take part.
        streams: AtomicU64 => streams,
        /// Limits: high, critical, preferred, enter, leave; bits of f64 each.
        limits: [AtomicU64; 5],
        /// Time from one snapshot to the next.
        refresh_ns: AtomicU64 => refresh_ns,
        /// Number of the newest snapshot; 0: none yet.
        snapshot: AtomicU64 => snapshot,
        /// Tick of that snapshot.
        snapshot_ticks: AtomicU64,
        /// Samples of the silos that the snapshot averages.
        samples: AtomicU64 => samples,
        /// Standard deviation, over the silos with known queues, of their fullest queue; points,
        /// bits of an f64; NaN: fewer than two silos are known.
        spread_bits: AtomicU64,
        /// Streams placed on a silo.
        placed: AtomicU64 => placed,
        /// Of these: placed with every silo above the limit.
        placed_high: AtomicU64 => placed_high,
        /// Placements of streams that were refused.
        refused: AtomicU64 => refused,
        /// Moves requested.
        moves_asked: AtomicU64 => moves_asked,
        /// Moves that could not be requested.
        moves_refused: AtomicU64 => moves_refused,
        /// Crossings of a limit upwards, and downwards.
        crossings: [AtomicU64; 2] => crossings,
        /// Last crossing: silo << 8 | queue << 1 | 1 if upwards.
        crossing: AtomicU64,
        /// Its queue's share before (NaN: not known) and after, bits of f64.
        crossing_bits: [AtomicU64; 2],
        /// Tick of that crossing; 0: none.
        crossing_ticks: AtomicU64,
        /// Decisions so far.
        decisions_count: AtomicU64,
        /// The last decisions, by number modulo the rows.
        decisions: [DecisionRow; DECISIONS_SHOWN],
        /// Duration of one decision.
        decision: HistogramBlock => decision_ns,
        /// Duration of one sample of all silos.
        look: HistogramBlock => look_ns,
        /// How a silo is chosen for a new stream.
        strategy: Text<4> => strategy,
        /// Why streams that should move do not, if so.
        hindrance: Text<32> => hindrance: Option<String> = Text::read_if_any,
    } + {
        /// An average at or above this excludes a silo.
        high: f64 = fraction(&block.limits[0]),
        /// A single queue at or above this excludes a silo.
        critical: f64 = fraction(&block.limits[1]),
        /// Placement avoids a silo with a queue fuller than this.
        preferred_max: f64 = fraction(&block.limits[2]),
        /// A queue counts as over its limit from this share on.
        enter: f64 = fraction(&block.limits[3]),
        /// A queue no longer counts as over its limit below this share.
        leave: f64 = fraction(&block.limits[4]),
        /// Age of the newest snapshot.
        age_ns: u64 = now.age_ns(&block.snapshot_ticks),
        /// Standard deviation, over the silos with known queues, of their fullest queue; percentage
        /// points; `None`: fewer than two silos are known.
        spread_points: Option<f64> =
            Some(fraction(&block.spread_bits)).filter(|spread| spread.is_finite()),
        /// Last crossing of a limit.
        crossing: Option<CrossingView> = block.crossing(now),
        /// Queues of each silo, by number.
        silos: Vec<SiloDepthView> = silos,
        /// The last decisions, newest first.
        decisions: Vec<DecisionView> = block.decisions(now),
    }

    /// One decision, with the numbers that it used.
    DecisionRow {
        /// Number from 1, stored last; 0 while it is written.
        number: AtomicU64,
        /// Tick of the decision.
        at: AtomicU64,
        /// 1 placed, 2 placed with all silos high, 3 refused, 4 move requested, 5 move refused.
        kind: AtomicU64,
        /// Stream that is placed or moved.
        stream: AtomicU64,
        /// Silo that it leaves + 1; 0: none.
        from: AtomicU64,
        /// Silo that it goes to + 1; 0: none.
        to: AtomicU64,
        /// Number of the reason for a move or a refusal.
        why: AtomicU64,
        /// The silo chosen or left, and the silo compared with it: number + 1; 0: none.
        silos: [AtomicU64; 2],
        /// Their averages, bits of f64.
        average_bits: [AtomicU64; 2],
        /// Their fullest queues' shares, bits of f64.
        max_bits: [AtomicU64; 2],
        /// Their backlogs, ns.
        backlog_ns: [AtomicU64; 2],
        /// Their charges for placements since the snapshot, bits of f64.
        charge_bits: [AtomicU64; 2],
        /// Of a move: the share that moves with the stream, bits of an f64.
        share_bits: AtomicU64,
    }

    /// Queue depths of one silo in the newest snapshot.
    SiloDepthBlock => #[derive(Default)] SiloDepthView(block, now, silo: u32) {
        /// Number of the snapshot.
        snapshot: AtomicU64,
        /// 1 known; otherwise the reason: 2 new, 3 not running, 4 silent, 5 died, 6 old.
        state: AtomicU64,
        /// Detail of the state: ns of silence or age, or code of the role that died.
        detail: AtomicU64,
        /// Queues that the silo has, one bit each.
        queues: AtomicU64,
        /// Shares of [`Queue::ALL`] that are taken, bits of f64.
        share_bits: [AtomicU64; QUEUES],
        /// Mean share of its queues.
        average_bits: AtomicU64 => average: f64 = fraction,
        /// Number of the fullest queue.
        fullest: AtomicU64,
        /// Shots that arrived and are not answered.
        waiting: AtomicU64 => waiting,
        /// Expected time to answer the waiting shots, nanoseconds.
        backlog_ns: AtomicU64 => backlog_ns,
        /// Shots answered in the interval.
        processed: AtomicU64 => processed,
        /// Of these: with an error.
        errors: AtomicU64 => errors,
        /// Tick at which the last answer was seen; 0: none yet.
        last_activity: AtomicU64,
        /// Queues over their limit, one bit each.
        over: AtomicU64,
        /// Tick since which the silo should give streams away; 0: it need not.
        pressed_since: AtomicU64,
        /// Streams that the silo owns.
        streams: AtomicU64 => streams,
        /// Share of the queues that streams placed since the snapshot are expected to take.
        charge_bits: AtomicU64 => charge: f64 = fraction,
    } + {
        /// Number of the silo.
        silo: u32 = silo,
        /// Why the silo's queues are unknown; `None`: they are known.
        unknown: Option<String> = block.unknown(),
        /// The silo's queues.
        queues: Vec<QueueView> = block.queues(),
        /// Share of the fullest queue.
        max: f64 =
            block.queues().iter().map(|queue| queue.utilization).fold(0.0, f64::max),
        /// Name of the fullest queue.
        fullest: &'static str =
            Queue::ALL.get(get(&block.fullest) as usize).map_or("", |queue| queue.name()),
        /// Time since the last answer was seen; `None`: none yet.
        idle_for_ns: Option<u64> = now.age_if_any(&block.last_activity),
        /// Time for which it should have given streams away; `None`: it need not.
        pressed_for_ns: Option<u64> = now.age_if_any(&block.pressed_since),
    }
}
