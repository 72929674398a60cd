//! Bounded work-stealing deque of task ids.
//!
//! Owns a power-of-two array of atomic words between two cursors that only grow, but for the
//! owner's own step back in [`Owner::pop`]. The [`Owner`] pushes and pops at the bottom, newest
//! first; any [`Thief`] steals at the top, oldest first (Chase and Lev 2005, with the orderings of
//! Lê, Pop, Cohen and Zappa Nardelli 2013; the bottom is published by release stores instead of
//! their fence and relaxed stores, and 64-bit cursors cannot wrap). Bounds: the capacity; a steal
//! tries once. Foreign threads never push here: they have an injector.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | D1 | [`Owner::push`] bottom | [`Thief::steal`] bottom | the cell, and what its id names |
//! | D1 | [`Owner::pop`] bottom (`D1.pop`) | as above | the cells below, and what their ids name |
//! | D2 | [`Owner::pop`] fence between bottom and top | [`Thief::steal`] fence between top and bottom | that one of both sees the other |
//! | D3 | [`Thief::steal`] top | [`Owner::push`] top | that the cell was read |
//!
//! # Why
//! Cells are atomic: a thief that was overtaken reads a cell that the owner is rewriting, and
//! learns only from its failed exchange that the word was not for it (CVE-2021-32810 dropped such a
//! value twice). Lost and empty are different answers: a sweep may end on [`Steal::Empty`], never
//! on [`Steal::Retry`].

use crate::ring::Full;
use crate::sync::{AtomicU64, Ordering, Padded, edge, fence_edge};
use std::sync::Arc;

/// First position; above zero, so that the owner's step back from an empty deque has a number.
const FIRST: u64 = 1;

struct Cells {
    top: Padded<AtomicU64>,
    bottom: Padded<AtomicU64>,
    cells: Box<[AtomicU64]>,
}

impl Cells {
    #[inline(always)]
    fn at(&self, position: u64) -> &AtomicU64 {
        &self.cells[position as usize & (self.cells.len() - 1)]
    }
}

/// The one end that pushes and pops.
pub struct Owner {
    shared: Arc<Cells>,
    bottom: u64,
    /// A top that was; the real one is this or later.
    top_seen: u64,
}

/// An end that steals.
#[derive(Clone)]
pub struct Thief {
    shared: Arc<Cells>,
}

/// What came of a steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// There was nothing.
    Empty,
    /// Somebody else was quicker: there may be more.
    Retry,
    /// The oldest id.
    Success(u64),
}

/// An empty deque for `capacity` ids, rounded up to a power of two, at least 2.
///
/// # Panics
/// If `capacity` is 0 or above 2²⁴.
#[must_use]
pub fn deque(capacity: usize) -> (Owner, Thief) {
    assert!((1..=1 << 24).contains(&capacity), "deque capacity {capacity} outside 1..=2^24");
    let size = capacity.next_power_of_two().max(2);
    let shared = Arc::new(Cells {
        top: Padded(AtomicU64::new(FIRST)),
        bottom: Padded(AtomicU64::new(FIRST)),
        cells: (0..size).map(|_| AtomicU64::new(0)).collect(),
    });
    let thief = Thief { shared: Arc::clone(&shared) };
    (Owner { shared, bottom: FIRST, top_seen: FIRST }, thief)
}

impl Owner {
    /// Room left, looking at the top again only if `wanted` ids do not fit below the one seen last.
    #[inline(always)]
    fn room(&mut self, wanted: u64) -> u64 {
        let capacity = self.shared.cells.len() as u64;
        if self.bottom - self.top_seen + wanted > capacity {
            // ORDERING: acquire side of D3: the thief has read the cell before we overwrite it.
            // Relaxed would let the overwrite come first. Model:
            // loom_deque::room_comes_with_what_the_thief_did_before.
            self.top_seen = self.shared.top.0.load(edge("D3.acquire", Ordering::Acquire));
        }
        capacity - (self.bottom - self.top_seen)
    }

    /// Adds the newest id.
    ///
    /// # Errors
    /// [`Full`] with the id.
    #[inline(always)]
    pub fn push(&mut self, id: u64) -> Result<(), Full<u64>> {
        if self.room(1) == 0 {
            return Err(Full(id));
        }
        self.shared.at(self.bottom).store(id, Ordering::Relaxed);
        self.publish(1);
        Ok(())
    }

    /// Adds ids, the last one newest, with one publication; says how many there was room for.
    #[inline]
    pub fn push_slice(&mut self, ids: &[u64]) -> usize {
        let count = self.room(ids.len() as u64).min(ids.len() as u64);
        for (position, id) in (self.bottom..).zip(&ids[..count as usize]) {
            self.shared.at(position).store(*id, Ordering::Relaxed);
        }
        self.publish(count);
        count as usize
    }

    #[inline(always)]
    fn publish(&mut self, count: u64) {
        self.bottom += count;
        // ORDERING: release side of D1, publishing the cells and what their ids name. Relaxed could
        // show the bottom before its cell; SeqCst is for `pop` alone. Model:
        // loom_deque::a_stolen_id_comes_with_what_it_names.
        self.shared.bottom.0.store(self.bottom, edge("D1.release", Ordering::Release));
    }

    /// Takes the newest id.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<u64> {
        if self.bottom == self.top_seen {
            // The top only grows, so nothing can be between it and the bottom.
            return None;
        }
        let last = self.bottom - 1;
        // ORDERING: release side of D1, for the ids that stay: a thief that sees this bottom need not
        // see any that `publish` stored, and a relaxed store publishes nothing. Model:
        // loom_deque::an_id_that_a_pop_leaves_comes_with_what_it_names.
        self.shared.bottom.0.store(last, edge("D1.pop", Ordering::Release));
        // ORDERING: owner's side of D2: either this thread sees the thief's top, or the thief sees
        // this bottom. No acquire and release pair orders a store before a later load of another
        // word; only two sequentially consistent fences do. Model:
        // loom_deque::the_last_id_goes_to_one.
        fence_edge("D2.owner", Ordering::SeqCst);
        self.top_seen = self.shared.top.0.load(Ordering::Relaxed);
        if self.top_seen > last {
            // Relaxed, here and below: no id is left, so no thief's exchange succeeds with this bottom.
            self.shared.bottom.0.store(self.bottom, Ordering::Relaxed);
            self.top_seen = self.bottom;
            return None;
        }
        let id = self.shared.at(last).load(Ordering::Relaxed);
        if self.top_seen < last {
            self.bottom = last;
            return Some(id);
        }
        // The last one: thieves may be at it, so it is taken as they would take it. The exchange
        // itself decides; nothing is published, for the cell is this thread's own.
        let won = self.shared.top.0.compare_exchange(last, last + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.shared.bottom.0.store(self.bottom, Ordering::Relaxed);
        self.top_seen = self.bottom;
        won.then_some(id)
    }

    /// Ids inside, at most: thieves may have taken some.
    #[inline(always)]
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.bottom.saturating_sub(self.shared.top.0.load(Ordering::Relaxed))
    }

    /// Ids it can hold.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shared.cells.len() as u64
    }
}

impl Thief {
    /// Takes the oldest id, in one attempt.
    #[inline(always)]
    pub fn steal(&self) -> Steal {
        let top = self.shared.top.0.load(Ordering::Relaxed);
        // ORDERING: thief's side of D2, see `Owner::pop`. It also makes this bottom as new as this
        // top.
        fence_edge("D2.thief", Ordering::SeqCst);
        // ORDERING: acquire side of D1, see `Owner::publish`.
        let bottom = self.shared.bottom.0.load(edge("D1.acquire", Ordering::Acquire));
        if top >= bottom {
            return Steal::Empty;
        }
        let id = self.shared.at(top).load(Ordering::Relaxed);
        // ORDERING: release side of D3: the cell was read before the owner sees room. What came
        // before the fence above is published by it; only the reading of the cell needs this
        // release, and no model can show that, for loom never lets a load see a store that is yet
        // to come. A failed exchange publishes nothing.
        match self.shared.top.0.compare_exchange(top, top + 1, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Steal::Success(id),
            Err(_) => Steal::Retry,
        }
    }

    /// Ids inside, as two loads see it: the top first, so it is never negative.
    #[inline(always)]
    #[must_use]
    pub fn depth(&self) -> u64 {
        let top = self.shared.top.0.load(Ordering::Relaxed);
        self.shared.bottom.0.load(Ordering::Relaxed).saturating_sub(top)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Steal, deque};
    use crate::ring::Full;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_owner_takes_the_newest_and_a_thief_the_oldest() {
        let (mut owner, thief) = deque(4);
        assert_eq!(owner.push_slice(&[1, 2, 3]), 3);
        assert_eq!((owner.pop(), thief.steal()), (Some(3), Steal::Success(1)));
        assert_eq!((owner.pop(), owner.pop(), thief.steal()), (Some(2), None, Steal::Empty));
    }

    #[test]
    fn a_full_deque_gives_the_id_back_and_wraps_without_losing_any() {
        let (mut owner, thief) = deque(2);
        for round in 0..100 {
            assert_eq!((owner.push(round), owner.push(round + 1)), (Ok(()), Ok(())));
            assert_eq!(owner.push(9), Err(Full(9)));
            assert_eq!(owner.push_slice(&[9, 9]), 0);
            assert_eq!((thief.steal(), owner.pop(), owner.pop()), (Steal::Success(round), Some(round + 1), None));
        }
    }

    #[test]
    fn an_owner_and_two_thieves_lose_and_double_nothing() {
        const IDS: u64 = 200_000;
        let (mut owner, thief) = deque(64);
        let (sum, left) = (AtomicU64::new(0), AtomicU64::new(IDS));
        let (sum, left) = (&sum, &left);
        let take = move |id: u64| {
            sum.fetch_add(id, Ordering::Relaxed);
            left.fetch_sub(1, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let thief = thief.clone();
                scope.spawn(move || {
                    while left.load(Ordering::Relaxed) > 0 {
                        match thief.steal() {
                            Steal::Success(id) => take(id),
                            _ => std::thread::yield_now(),
                        }
                    }
                });
            }
            for id in 0..IDS {
                while owner.push(id).is_err() {
                    owner.pop().into_iter().for_each(take);
                }
                if id % 3 == 0 {
                    owner.pop().into_iter().for_each(take);
                }
            }
            while let Some(id) = owner.pop() {
                take(id);
            }
        });
        assert_eq!(sum.load(Ordering::Relaxed), (0..IDS).sum());
    }
}
