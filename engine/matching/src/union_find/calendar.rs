//! When what is due: a ring of lists, one for each unit of time.
//!
//! Owned by one decoder. An item is a half-edge or a node, and is in at most one list at a time: of
//! the ring, or of what a cluster that stands still keeps for later. So one link for each item holds
//! all lists. An item that is further ahead than the ring is long is put as far as that goes, and
//! looked at then. Adding and taking cost constant time.

use std::ops::Range;

use crate::graph::NONE;

/// Units of time that the ring spans; a power of two.
const SLOTS: usize = 512;
/// As a link: in no list.
const UNLISTED: u32 = u32::MAX - 1;

/// Items by time.
#[derive(Debug)]
pub(super) struct Calendar {
    /// The first item of each unit of time.
    first: Box<[u32; SLOTS]>,
    /// One bit for each slot: it has an item.
    is_occupied: [u64; SLOTS / 64],
    /// The item behind each, or [`UNLISTED`].
    next: Vec<u32>,
    now: i32,
}

impl Calendar {
    /// A calendar for items below `items`.
    pub(super) fn new(items: usize) -> Self {
        Self { first: Box::new([NONE; SLOTS]), is_occupied: [0; SLOTS / 64], next: vec![UNLISTED; items], now: 0 }
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        4 * (self.next.capacity() + SLOTS)
    }

    /// The time.
    #[inline]
    pub(super) const fn now(&self) -> i32 {
        self.now
    }

    /// Begins at time 0 with nothing.
    pub(super) fn clear(&mut self) {
        for (word, bits) in self.is_occupied.iter_mut().enumerate() {
            while *bits != 0 {
                self.first[word * 64 + bits.trailing_zeros() as usize] = NONE;
                *bits &= *bits - 1;
            }
        }
        self.now = 0;
    }

    /// Notes that `item`, one of the last shot's or never seen, is in no list.
    #[inline]
    pub(super) fn admit(&mut self, item: u32) {
        self.next[item as usize] = UNLISTED;
    }

    /// As [`Self::admit`], for all of `items`.
    pub(super) fn admit_all(&mut self, items: Range<u32>) {
        self.next[items.start as usize..items.end as usize].fill(UNLISTED);
    }

    /// Whether `item` is in no list.
    #[inline]
    pub(super) fn is_unlisted(&self, item: u32) -> bool {
        self.next[item as usize] == UNLISTED
    }

    /// Adds `item`, which is in no list, `wait` from now; at once if that is negative.
    #[inline]
    pub(super) fn push(&mut self, item: u32, wait: i32) {
        let slot = (self.now + wait.clamp(0, SLOTS as i32 - 1)) as usize % SLOTS;
        self.is_occupied[slot / 64] |= 1 << (slot % 64);
        self.next[item as usize] = std::mem::replace(&mut self.first[slot], item);
    }

    /// Takes an item of the earliest time, which becomes the present; `None` if nothing is due before
    /// `end`.
    #[inline]
    pub(super) fn pop_before(&mut self, end: i32) -> Option<u32> {
        let from = self.now as usize % SLOTS;
        let slot = self.occupied(from)?;
        let time = self.now + ((slot + SLOTS - from) % SLOTS) as i32;
        if time >= end {
            return None;
        }
        self.now = time;
        let item = self.first[slot];
        let behind = std::mem::replace(&mut self.next[item as usize], UNLISTED);
        self.first[slot] = behind;
        self.is_occupied[slot / 64] &= !(u64::from(behind == NONE) << (slot % 64));
        Some(item)
    }

    /// The first slot with an item, from `from` on and around.
    #[inline]
    fn occupied(&self, from: usize) -> Option<usize> {
        let (word, bit) = (from / 64, from % 64);
        let ahead = self.is_occupied[word] >> bit;
        if ahead != 0 {
            return Some(from + ahead.trailing_zeros() as usize);
        }
        // The word of `from` comes last again: it may have earlier slots, of a later time.
        (1..=SLOTS / 64).map(|step| (word + step) % (SLOTS / 64)).find_map(|word| {
            let bits = self.is_occupied[word];
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })
    }

    /// Puts `item`, which is in no list, before the list that begins with `list`.
    #[inline]
    pub(super) fn prepend(&mut self, list: &mut u32, item: u32) {
        self.next[item as usize] = std::mem::replace(list, item);
    }

    /// Takes the first item off `list`.
    #[inline]
    pub(super) fn take_first(&mut self, list: &mut u32) -> Option<u32> {
        let item = *list;
        if item == NONE {
            return None;
        }
        *list = std::mem::replace(&mut self.next[item as usize], UNLISTED);
        Some(item)
    }
}
