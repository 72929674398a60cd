//! Blocks of placement: what the director knows of each silo, and what it decided.
//!
//! As in [`super`], whose hash covers these too. Written by the director, a cold thread, once a snapshot.

use super::super::histogram::HistogramBlock;
use super::super::text::Text;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use zerocopy::FromBytes;

/// Named queues of a silo, and the servers that count as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Written and not dispatched, of the slots.
    Rx,
    /// On the device, of its workers.
    Device,
    /// Device output that the graph role has not taken up.
    Ready,
    /// Ready tasks of all pools.
    Pool,
    /// Decode workers' time in tasks.
    Decode,
    /// Answered and not harvested, of the slots.
    Tx,
    /// Grants out of the arbiter's ports; a request that met a full frame counts as all of them.
    Ports,
}

/// How many there are.
pub const QUEUES: usize = Queue::ALL.len();

impl Queue {
    /// In path order.
    pub const ALL: [Queue; 7] =
        [Queue::Rx, Queue::Device, Queue::Ready, Queue::Pool, Queue::Decode, Queue::Tx, Queue::Ports];

    /// Name on screen and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Queue::Rx => "rx",
            Queue::Device => "device",
            Queue::Ready => "ready",
            Queue::Pool => "pool",
            Queue::Decode => "decode",
            Queue::Tx => "tx",
            Queue::Ports => "ports",
        }
    }
}

/// Decisions that are shown.
pub const DECISIONS_SHOWN: usize = 16;
/// Outcomes of an overflow that are counted; see [`crate::board::snapshot::OverflowOutcome`].
pub const OVERFLOW_OUTCOMES: usize = 6;

blocks! {
    /// The director.
    PlacementBlock {
        /// 1 once a director runs.
        is_on: AtomicU64,
        /// 1 if it may move streams.
        rebalances: AtomicU64,
        /// Streams that take part.
        streams: AtomicU64,
        /// Limits: high, critical, preferred, enter, leave; bits of f64 each.
        limits: [AtomicU64; 5],
        /// From one snapshot to the next, ns.
        refresh_ns: AtomicU64,
        /// Number of the newest snapshot.
        snapshot: AtomicU64,
        /// Its tick.
        snapshot_ticks: AtomicU64,
        /// Looks of its mean.
        looks: AtomicU64,
        /// Standard deviation over the known silos of their fullest queue, points, bits of an f64; not a number: fewer
        /// than two are known.
        spread_bits: AtomicU64,
        /// Streams placed.
        placed: AtomicU64,
        /// Of these: with every silo above the limit.
        placed_high: AtomicU64,
        /// Placements refused.
        refused: AtomicU64,
        /// Moves asked for.
        moves_asked: AtomicU64,
        /// Moves that the mover refused to begin.
        moves_refused: AtomicU64,
        /// Limits crossed by a queue, upwards and downwards.
        crossings: [AtomicU64; 2],
        /// Of the last one: silo << 8 | queue << 1 | 1 if upwards.
        crossing: AtomicU64,
        /// Its share before (not a number: not known) and after, bits of f64.
        crossing_bits: [AtomicU64; 2],
        /// Its tick; 0: none.
        crossing_ticks: AtomicU64,
        /// Decisions so far.
        decisions_count: AtomicU64,
        /// The last of them, by number modulo their count.
        decisions: [DecisionRow; DECISIONS_SHOWN],
        /// What one decision took.
        decision: HistogramBlock,
        /// What one look at all silos took.
        look: HistogramBlock,
        /// Strategy of placement.
        strategy: Text<4>,
        /// Why streams do not move although they should; empty: they do, or need not.
        hindrance: Text<32>,
    }

    /// One decision, with the numbers that it was made on.
    DecisionRow {
        /// Number from 1, stored last; 0 while it is written.
        number: AtomicU64,
        /// Tick.
        at: AtomicU64,
        /// 1 placed, 2 placed with all silos high, 3 refused, 4 move asked, 5 move refused.
        kind: AtomicU64,
        /// Stream.
        stream: AtomicU64,
        /// Silo that it leaves + 1; 0: none.
        from: AtomicU64,
        /// Silo that it goes to + 1; 0: none.
        to: AtomicU64,
        /// Why a stream moves or a placement was refused, by number.
        why: AtomicU64,
        /// Of the one chosen or left, and of the one it was compared with: silo + 1; 0: there was none.
        silos: [AtomicU64; 2],
        /// Their averages, bits of f64.
        average_bits: [AtomicU64; 2],
        /// Their fullest queues' shares, bits of f64.
        max_bits: [AtomicU64; 2],
        /// Their backlogs, ns.
        backlog_ns: [AtomicU64; 2],
        /// What they were charged for picks since the snapshot, bits of f64.
        charge_bits: [AtomicU64; 2],
        /// Of a move: the share that goes with the stream, bits of an f64.
        share_bits: AtomicU64,
    }

    /// One silo in the newest snapshot.
    SiloDepthBlock {
        /// Number of the snapshot, stored last.
        snapshot: AtomicU64,
        /// 1 known; else why not: 2 new, 3 not running, 4 silent, 5 died, 6 old.
        state: AtomicU64,
        /// What goes with it: ns of silence or age, code of the role that died.
        detail: AtomicU64,
        /// Queues that the silo has, a bit each.
        queues: AtomicU64,
        /// Shares of [`Queue::ALL`], bits of f64.
        share_bits: [AtomicU64; QUEUES],
        /// Their mean, bits of an f64.
        average_bits: AtomicU64,
        /// Fullest queue.
        fullest: AtomicU64,
        /// Shots arrived and not answered.
        waiting: AtomicU64,
        /// How long answering those takes, ns.
        backlog_ns: AtomicU64,
        /// Shots answered in the interval.
        processed: AtomicU64,
        /// Of these: with an error.
        errors: AtomicU64,
        /// Tick at which an answer was last seen to have come; 0: none yet.
        last_activity: AtomicU64,
        /// Queues over their limit, a bit each.
        over: AtomicU64,
        /// Since when the silo should give streams away; 0: it need not.
        pressed_since: AtomicU64,
        /// Streams that it owns.
        streams: AtomicU64,
        /// What it was charged for picks since the snapshot, bits of an f64.
        charge_bits: AtomicU64,
    }
}
