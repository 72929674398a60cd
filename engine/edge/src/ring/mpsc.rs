//! Multi-producer single-consumer ring: a lane of its own for each producer.
//!
//! Owns one [`spsc`] ring per producer and the pool of those that nobody owns. Producers are one
//! thread each, the consumer is one. Bounds: the producers and the capacity given at construction,
//! [`BATCH`] for a batch; a lane is visited at most once more than there are lanes. Never waits,
//! never allocates after `channel`.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | M1 | [`Producer`]'s drop, free | [`Producer::try_clone`] free | the lane's cursors and items |
//! | M1 | [`Producer`]'s drop, free | [`Consumer::is_abandoned`] free (`M1.view`) | the last tails |
//!
//! Items cross by the edges of [`spsc`].
//!
//! # Why
//! With one array for all, every push is a contended compare-and-swap whose line crosses between
//! the producers' cores (60 to 250 ns), and a producer that loses its core between claim and write
//! holds up all others. With lanes a push is a plain store, nobody waits for anybody, and a loud
//! producer cannot take the room of a quiet one. The price: the order is each producer's own, with
//! none between producers, and an idle consumer looks at every lane.

use super::{BATCH, Full, spsc};
use crate::sync::{AtomicU64, Ordering, UnsafeCell, edge};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Producers of one ring, at most: a bit each.
pub const PRODUCERS_MAX: usize = 64;

struct Shared<T> {
    /// A bit for each lane that nobody owns.
    free: AtomicU64,
    /// `free` when all producers are gone.
    all: u64,
    /// The unowned lanes' ends.
    pool: Box<[UnsafeCell<Option<spsc::Producer<T>>>]>,
}

// SAFETY: a cell of the pool is touched only by the thread that owns its lane: who cleared its bit,
// until it sets it again; M1 orders one owner after the other.
unsafe impl<T: Copy + Send> Sync for Shared<T> {}
// SAFETY: it owns ends that may be sent.
unsafe impl<T: Copy + Send> Send for Shared<T> {}

impl<T: Copy + Send> Shared<T> {
    /// Takes a lane from the pool; retries only when another thread took or gave one in between.
    fn claim(self: &Arc<Self>) -> Option<Producer<T>> {
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            let number = free.trailing_zeros();
            if number == u64::BITS {
                return None;
            }
            let rest = free & (free - 1);
            // ORDERING: acquire side of M1: the lane's last owner has put its end back. Relaxed
            // would let our taking race with its putting. Model:
            // loom_mpsc::a_lane_is_handed_on_whole.
            let won = edge("M1.acquire", Ordering::Acquire);
            match self.free.compare_exchange_weak(free, rest, won, Ordering::Relaxed) {
                Ok(_) => break Some(self.lane(number)),
                Err(now) => free = now,
            }
        }
    }

    fn lane(self: &Arc<Self>, number: u32) -> Producer<T> {
        // SAFETY: the pointer is the cell's own; winning the bit made the cell ours.
        let end = self.pool[number as usize].with_mut(|cell| unsafe { (*cell).take() });
        let end = end.expect("a free lane has its end in the pool");
        Producer { shared: Arc::clone(self), number, end: ManuallyDrop::new(end) }
    }
}

/// A writing end.
pub struct Producer<T: Copy + Send> {
    shared: Arc<Shared<T>>,
    number: u32,
    /// Back in the pool after drop.
    end: ManuallyDrop<spsc::Producer<T>>,
}

/// The reading end.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    lanes: Box<[spsc::Consumer<T>]>,
    lane: usize,
    /// Items that `pop` may still take before it moves on to the next lane.
    left: usize,
}

/// A ring for up to `producers` producers, each with room for `capacity` items, rounded up to a
/// power of two.
///
/// # Panics
/// If `producers` is 0 or above [`PRODUCERS_MAX`], or `capacity` is 0 or above 2²⁴.
#[must_use]
pub fn channel<T: Copy + Send>(producers: usize, capacity: usize) -> (Producer<T>, Consumer<T>) {
    assert!((1..=PRODUCERS_MAX).contains(&producers), "{producers} producers of a ring, not 1..={PRODUCERS_MAX}");
    let (pool, lanes): (Vec<_>, Vec<_>) = (0..producers)
        .map(|_| spsc::channel(capacity))
        .map(|(producer, consumer)| (UnsafeCell::new(Some(producer)), consumer))
        .unzip();
    let all = u64::MAX >> (PRODUCERS_MAX - producers);
    // The first lane is the first producer's.
    let shared = Arc::new(Shared { free: AtomicU64::new(all & !1), all, pool: pool.into() });
    (shared.lane(0), Consumer { shared, lanes: lanes.into(), lane: 0, left: BATCH })
}

impl<T: Copy + Send> Producer<T> {
    /// Another producer, or `None` if all lanes are owned. A lane may come with items of an earlier
    /// owner still in it.
    #[must_use]
    pub fn try_clone(&self) -> Option<Producer<T>> {
        self.shared.claim()
    }

    /// Appends `item`.
    ///
    /// # Errors
    /// [`Full`] with the item if this producer's lane has no room.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        self.end.push(item)
    }

    /// Appends the first of `items`, as [`spsc::Producer::push_slice`].
    #[inline]
    pub fn push_slice(&mut self, items: &[T]) -> usize {
        self.end.push_slice(items)
    }

    /// Free slots of this producer's lane, at least.
    pub fn room(&mut self) -> u64 {
        self.end.room()
    }

    /// Items of this producer's lane that the consumer has not read, as it last published.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.end.depth()
    }

    /// The lane's number, below the number of producers; after a drop another producer may have it.
    #[must_use]
    pub fn lane(&self) -> usize {
        self.number as usize
    }
}

impl<T: Copy + Send> Drop for Producer<T> {
    fn drop(&mut self) {
        // SAFETY: `end` is not used again: this is the drop.
        let end = unsafe { ManuallyDrop::take(&mut self.end) };
        // SAFETY: the pointer is the cell's own, and the cell is ours until the bit below.
        self.shared.pool[self.number as usize].with_mut(|cell| unsafe { *cell = Some(end) });
        // ORDERING: release side of M1, publishing the end in its cell and what was pushed through
        // it. Relaxed would let the next owner take a half-written end, or the consumer miss the
        // last item. Models: loom_mpsc::a_lane_is_handed_on_whole,
        // an_abandoned_ring_shows_its_last_item.
        self.shared.free.fetch_or(1 << self.number, edge("M1.release", Ordering::Release));
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Takes the oldest item of a lane: the one at hand, until it is empty or [`BATCH`] items came
    /// from it.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        for _ in 0..=self.lanes.len() {
            if self.left > 0
                && let Some(item) = self.lanes[self.lane].pop()
            {
                self.left -= 1;
                return Some(item);
            }
            self.turn();
        }
        None
    }

    /// Hands items to `take`, at most `limit` and at most [`BATCH`]; each call begins with the next
    /// lane, so that none starves. Returns how many: fewer than asked for means that every lane was
    /// found empty.
    #[inline]
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(T)) -> usize {
        let limit = limit.min(BATCH);
        let mut count = 0;
        for _ in 0..self.lanes.len() {
            self.turn();
            count += self.lanes[self.lane].drain(limit - count, &mut take);
            if count == limit {
                break;
            }
        }
        count
    }

    #[inline(always)]
    fn turn(&mut self) {
        self.lane += 1;
        if self.lane == self.lanes.len() {
            self.lane = 0;
        }
        self.left = BATCH;
    }

    /// Items in the lanes now, as their producers last published.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.lanes.iter().map(spsc::Consumer::depth).sum()
    }

    /// Whether all producers have been dropped. Everything they pushed is visible to a `pop` after
    /// this call: empty then means empty for ever.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        // ORDERING: acquire side of M1, see the producer's drop. Claims in between are
        // read-modify-writes: they carry every earlier drop's release on.
        self.shared.free.load(edge("M1.view", Ordering::Acquire)) == self.shared.all
    }
}
