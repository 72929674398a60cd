//! The event queue: at most one entry for each item, the earliest first.
//!
//! Owned by one search. An item is a node or a region, a plain index. Times never go below the last
//! time taken, so this is a radix heap: bucket `b` holds the times whose highest bit that differs
//! from the last time is bit `b - 1`. Buckets are linked lists through the entries, so an entry is
//! moved or removed in constant time and nothing stale stays behind. Bounded by one entry for each
//! item; never allocates after [`EventQueue::new`].

/// No item.
const NONE: u32 = u32::MAX;
/// In `before` of a list's first entry: the rest is the bucket.
const FIRST: u32 = 1 << 31;
/// Times are below `2^(BUCKETS - 1)`.
const BUCKETS: usize = 64;
/// The time of an item that is not queued.
const NEVER: i64 = i64::MAX;

/// An item's place.
#[derive(Debug, Clone, Copy)]
struct Entry {
    time: i64,
    before: u32,
    after: u32,
}

const IDLE: Entry = Entry { time: NEVER, before: NONE, after: NONE };

/// A queue of items by time.
#[derive(Debug)]
pub(crate) struct EventQueue {
    entries: Vec<Entry>,
    heads: [u32; BUCKETS],
    /// One bit for each bucket that has entries.
    occupied: u64,
    /// The time last taken.
    now: i64,
}

impl EventQueue {
    /// A queue of `items` items, below `2^31`.
    pub(crate) fn new(items: usize) -> Self {
        Self { entries: vec![IDLE; items], heads: [NONE; BUCKETS], occupied: 0, now: 0 }
    }

    /// Bytes on the heap.
    pub(crate) const fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// The time last taken.
    #[inline]
    pub(crate) const fn now(&self) -> i64 {
        self.now
    }

    /// When `item` is queued; later than all times if it is not.
    #[inline]
    pub(crate) fn time(&self, item: u32) -> i64 {
        self.entries[item as usize].time
    }

    /// Queues `item` at `time`, or moves it there.
    #[inline]
    pub(crate) fn set(&mut self, item: u32, time: i64) {
        let queued = self.entries[item as usize].time;
        if time == queued {
            return;
        }
        if queued != NEVER {
            self.unlink(item);
        }
        self.link(item, time);
    }

    /// Takes `item` out, if it is queued.
    #[inline]
    pub(crate) fn remove(&mut self, item: u32) {
        if self.entries[item as usize].time != NEVER {
            self.unlink(item);
        }
    }

    /// Takes the earliest item out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        if self.occupied & 1 == 0 {
            if self.occupied == 0 {
                return None;
            }
            self.advance();
        }
        let item = self.heads[0];
        self.unlink(item);
        Some(item)
    }

    /// Empties the queue and sets the time to 0, in time proportional to what is queued.
    pub(crate) fn clear(&mut self) {
        self.discard();
        self.now = 0;
    }

    /// Empties the queue, in time proportional to what is queued.
    pub(crate) fn discard(&mut self) {
        while self.occupied != 0 {
            let bucket = self.occupied.trailing_zeros() as usize;
            let mut item = self.heads[bucket];
            while item != NONE {
                let entry = &mut self.entries[item as usize];
                item = entry.after;
                *entry = IDLE;
            }
            self.heads[bucket] = NONE;
            self.occupied &= self.occupied - 1;
        }
    }

    #[inline]
    fn link(&mut self, item: u32, time: i64) {
        let bucket = 64 - (time ^ self.now).leading_zeros();
        let head = std::mem::replace(&mut self.heads[bucket as usize], item);
        if head != NONE {
            self.entries[head as usize].before = item;
        }
        self.entries[item as usize] = Entry { time, before: FIRST | bucket, after: head };
        self.occupied |= 1 << bucket;
    }

    #[inline]
    fn unlink(&mut self, item: u32) {
        let Entry { before, after, .. } = std::mem::replace(&mut self.entries[item as usize], IDLE);
        if after != NONE {
            self.entries[after as usize].before = before;
        }
        if before & FIRST == 0 {
            self.entries[before as usize].after = after;
            return;
        }
        let bucket = (before & !FIRST) as usize;
        self.heads[bucket] = after;
        if after == NONE {
            self.occupied &= !(1 << bucket);
        }
    }

    /// Moves time on to the earliest entry and spreads its bucket over the lower ones.
    fn advance(&mut self) {
        let bucket = self.occupied.trailing_zeros() as usize;
        let head = std::mem::replace(&mut self.heads[bucket], NONE);
        self.occupied &= !(1 << bucket);
        let (mut earliest, mut item) = (NEVER, head);
        while item != NONE {
            let entry = &self.entries[item as usize];
            earliest = earliest.min(entry.time);
            item = entry.after;
        }
        self.now = earliest;
        item = head;
        while item != NONE {
            let Entry { time, after, .. } = self.entries[item as usize];
            self.link(item, time);
            item = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_by_time_and_each_is_queued_once() {
        let mut queue = EventQueue::new(64);
        let mut times = [NEVER; 64];
        let mut state = 7u64;
        let mut draw = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            let item = draw(64) as u32;
            match draw(4) {
                0 => {
                    queue.remove(item);
                    times[item as usize] = NEVER;
                }
                1 => {
                    let expected = times.iter().copied().min().filter(|&time| time != NEVER);
                    let popped = queue.pop();
                    assert_eq!(popped.map(|item| times[item as usize]), expected);
                    if let Some(item) = popped {
                        assert_eq!(queue.now(), times[item as usize]);
                        times[item as usize] = NEVER;
                    }
                }
                _ => {
                    let span = 1 << draw(40);
                    let time = queue.now() + draw(span) as i64;
                    queue.set(item, time);
                    times[item as usize] = time;
                }
            }
        }
        queue.clear();
        assert_eq!((queue.pop(), queue.now()), (None, 0));
    }
}
