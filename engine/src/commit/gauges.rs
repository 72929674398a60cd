//! The graph's gauges on the board: how full it is, its oldest task, and the stream that has waited
//! longest.
//!
//! Owns the time at which each stream began to wait. Part of the graph role. Bounds: the streams,
//! scanned once in [`PUBLISH_EVERY`].

use super::reorder::ReorderBuffer;
use crate::board::{self, DecodeBlock, GraphBlock};
use crate::graph::{BlockedBy, CallerBody, Observed, Submitter};
use crate::hot::Frame;
use crate::pipe::lanes::DecodeLanes;
use crate::units::{Nanos, Ticks};

/// Interval between publications.
const PUBLISH_EVERY: Nanos = Nanos(200_000);

/// Waiting shots of one stream, and since when they wait.
#[derive(Clone, Copy, Default)]
struct Waiting {
    count: u32,
    since: Ticks,
}

/// The published values.
pub(super) struct GraphGauges {
    streams: Box<[Waiting]>,
    published: Ticks,
    oldest: u64,
}

impl GraphGauges {
    pub(super) fn new(streams: u32) -> GraphGauges {
        GraphGauges { streams: vec![Waiting::default(); streams as usize].into(), published: Ticks(0), oldest: 0 }
    }

    /// Counts one more shot that waits for the stream's order.
    pub(super) fn holds(&mut self, stream: u32, now: Ticks) {
        let waiting = &mut self.streams[stream as usize];
        if waiting.count == 0 {
            waiting.since = now;
        }
        waiting.count += 1;
    }

    /// Counts one shot less. The rest wait for another number from `now` on.
    pub(super) fn passes(&mut self, stream: u32, now: Ticks) {
        let waiting = &mut self.streams[stream as usize];
        waiting.count = waiting.count.saturating_sub(1);
        waiting.since = now;
    }

    /// Publishes, once in [`PUBLISH_EVERY`].
    pub(super) fn publish(
        &mut self,
        (block, decoders): (&GraphBlock, &[DecodeBlock]),
        submitter: &mut Submitter<CallerBody>,
        lanes: &DecodeLanes,
        reorder: &ReorderBuffer,
        frame: &Frame<'_>,
    ) {
        let now = frame.now;
        if now.since(self.published) < frame.clock().rate().ticks(PUBLISH_EVERY) {
            return;
        }
        self.published = now;
        let observed = submitter.observed();
        let words = [
            (&block.retired, observed.retired),
            (&block.window_used, observed.window_used),
            (&block.window_tasks, observed.window_tasks),
            (&block.stalls, observed.stalls),
            (&block.permits_used, observed.permits_used),
            (&block.permits, observed.permits),
            (&block.parked, observed.parked),
            (&block.waiting, reorder.count() as u64),
        ];
        words.into_iter().for_each(|(word, value)| board::set(word, value));
        block.ready.iter().zip(observed.ready).for_each(|(word, depth)| board::set(word, depth));
        for (worker, block) in decoders.iter().enumerate() {
            board::set(&block.in_lane, lanes.in_flight_of(worker));
        }
        self.publish_oldest(block, &observed, now);
        self.publish_held(block, reorder);
    }

    fn publish_oldest(&mut self, block: &GraphBlock, observed: &Observed, now: Ticks) {
        let Some((task, what, holdup)) = observed.oldest else {
            self.oldest = 0;
            board::set(&block.oldest, 0);
            return;
        };
        let (kind, count) = match holdup {
            BlockedBy::Worker => (0, 0),
            BlockedBy::Predecessors(count) => (1, u64::from(count)),
            BlockedBy::Gate { in_use } => (2, in_use),
        };
        if self.oldest != task.0 {
            self.oldest = task.0;
            board::set(&block.oldest_since, now.0);
        }
        board::set(&block.oldest_what, u64::from(what.kernel) | u64::from(what.stream) << 32);
        board::set(&block.oldest_holdup, kind | count << 8);
        board::set(&block.oldest, task.0);
    }

    fn publish_held(&self, block: &GraphBlock, reorder: &ReorderBuffer) {
        let held = (0u32..).zip(&self.streams).filter(|(_, waiting)| waiting.count > 0);
        match held.min_by_key(|(_, waiting)| waiting.since) {
            Some((stream, waiting)) => {
                board::set(&block.held_since, waiting.since.0);
                board::set(&block.held_sequence, reorder.next(stream));
                board::set(&block.held_stream, u64::from(stream) + 1);
            }
            None => board::set(&block.held_stream, 0),
        }
    }
}
