//! What the graph role shows of its graph: how full it is, which task is the oldest, which stream waits for its turn.
//!
//! Owns when each stream began to wait. Part of the graph role. Bounds: the streams, looked through once in
//! [`PUBLISH_EVERY`].

use super::order::Order;
use crate::board::{self, GraphBlock};
use crate::graph::{Brought, Holdup, Observed, Submitter};
use crate::hot::Frame;
use crate::units::{Nanos, Ticks};

/// How often the graph is looked at.
const PUBLISH_EVERY: Nanos = Nanos(200_000);

/// Of one stream: what waits for its turn, and since when.
#[derive(Clone, Copy, Default)]
struct Waiting {
    count: u32,
    since: Ticks,
}

/// What is shown.
pub(super) struct Shown {
    streams: Box<[Waiting]>,
    published: Ticks,
    oldest: u64,
}

impl Shown {
    pub(super) fn new(streams: u32) -> Shown {
        Shown { streams: vec![Waiting::default(); streams as usize].into(), published: Ticks(0), oldest: 0 }
    }

    /// One more waits for the turn of its stream.
    pub(super) fn holds(&mut self, stream: u32, now: Ticks) {
        let waiting = &mut self.streams[stream as usize];
        if waiting.count == 0 {
            waiting.since = now;
        }
        waiting.count += 1;
    }

    /// A number has had its turn; those that wait on do so for another one from now.
    pub(super) fn passes(&mut self, stream: u32, now: Ticks) {
        let waiting = &mut self.streams[stream as usize];
        waiting.count = waiting.count.saturating_sub(1);
        waiting.since = now;
    }

    /// Publishes, if it is time.
    pub(super) fn publish(
        &mut self,
        block: &GraphBlock,
        submitter: &mut Submitter<Brought>,
        order: &Order,
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
            (&block.waiting, order.count() as u64),
        ];
        words.into_iter().for_each(|(word, value)| board::set(word, value));
        block.ready.iter().zip(observed.ready).for_each(|(word, depth)| board::set(word, depth));
        self.publish_oldest(block, &observed, now);
        self.publish_held(block, order);
    }

    fn publish_oldest(&mut self, block: &GraphBlock, observed: &Observed, now: Ticks) {
        let Some((task, what, holdup)) = observed.oldest else {
            self.oldest = 0;
            board::set(&block.oldest, 0);
            return;
        };
        let (kind, count) = match holdup {
            Holdup::Worker => (0, 0),
            Holdup::Predecessors(count) => (1, u64::from(count)),
            Holdup::Gate { in_use } => (2, in_use),
        };
        if self.oldest != task.0 {
            self.oldest = task.0;
            board::set(&block.oldest_since, now.0);
        }
        board::set(&block.oldest_what, u64::from(what.kernel) | u64::from(what.stream) << 32);
        board::set(&block.oldest_holdup, kind | count << 8);
        board::set(&block.oldest, task.0);
    }

    fn publish_held(&self, block: &GraphBlock, order: &Order) {
        let held = (0u32..).zip(&self.streams).filter(|(_, waiting)| waiting.count > 0);
        match held.min_by_key(|(_, waiting)| waiting.since) {
            Some((stream, waiting)) => {
                board::set(&block.held_since, waiting.since.0);
                board::set(&block.held_sequence, order.next(stream));
                board::set(&block.held_stream, u64::from(stream) + 1);
            }
            None => board::set(&block.held_stream, 0),
        }
    }
}
