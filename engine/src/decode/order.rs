//! The order of each stream: what has come before its turn, until the sequence numbers before it are known.
//!
//! Owns a table of open addressing with a place for whatever can wait. Kept by the graph role. Bounds: two shots under
//! way are never further apart than the slots, because slots are reused in ring order, so no more than that many wait;
//! what is told of a shot answered elsewhere may come on top, a ring's worth. While a stream is held up for want of its page,
//! nothing more is taken in once twice as many as the slots wait. Never allocates after construction.
//!
//! # Why a table
//! A stream whose oldest shot hangs in the device can have all the other slots behind it, and so can any of a thousand
//! streams: a window for each would be a thousand times as large as what waits. Blocks of [`BLOCK`] numbers are spread by
//! a multiplied hash; within a block a number follows the one before, for they are dense and come one after the other:
//! spread one by one, each look was a cache miss (two thirds of the role's time with nothing kept at all).

/// What there is of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A job whose decode is a task.
    Job(u32),
    /// An answer given elsewhere.
    Tombstone,
}

/// Numbers of a stream that lie side by side.
const BLOCK: u64 = 8;

#[derive(Clone, Copy)]
struct Place {
    stream: u32,
    sequence: u64,
    held: Held,
}

/// The table.
pub(super) struct Order {
    /// Of each stream: the sequence number whose turn it is.
    next: Box<[u64]>,
    places: Box<[Option<Place>]>,
    count: usize,
}

impl Order {
    /// For `streams` streams over `slots` slots.
    pub(super) fn new(streams: u32, slots: u32) -> Order {
        let places = (slots as usize * 8).next_power_of_two();
        Order { next: vec![0; streams as usize].into(), places: vec![None; places].into(), count: 0 }
    }

    /// The sequence number whose turn it is.
    pub(super) fn next(&self, stream: u32) -> u64 {
        self.next[stream as usize]
    }

    /// Whether the number has been passed, or waits already.
    pub(super) fn is_known(&self, stream: u32, sequence: u64) -> bool {
        sequence < self.next(stream) || self.find(stream, sequence).is_some()
    }

    /// Keeps what came of a number that is not known yet.
    ///
    /// # Panics
    /// If it is known, or six times as many as there are slots wait.
    pub(super) fn keep(&mut self, stream: u32, sequence: u64, held: Held) {
        assert!(!self.is_known(stream, sequence), "stream {stream}: {sequence} came twice");
        assert!(self.count < self.places.len() / 4 * 3, "no two shots under way are further apart than the slots");
        let mut at = self.home(stream, sequence);
        while self.places[at].is_some() {
            at = self.after(at);
        }
        self.places[at] = Some(Place { stream, sequence, held });
        self.count += 1;
    }

    /// What there is of the stream's next number.
    pub(super) fn peek(&self, stream: u32) -> Option<Held> {
        self.find(stream, self.next(stream)).and_then(|at| self.places[at]).map(|place| place.held)
    }

    /// Goes on to the stream's next number, and forgets what was kept of this one.
    pub(super) fn pass(&mut self, stream: u32) {
        if let Some(at) = self.find(stream, self.next(stream)) {
            self.forget(at);
        }
        self.next[stream as usize] += 1;
    }

    /// The stream has come from elsewhere, where all numbers before `next` were committed.
    ///
    /// # Panics
    /// If something of it waits here, or more was passed here.
    pub(super) fn resume(&mut self, stream: u32, next: u64) {
        assert!(self.next(stream) <= next, "stream {stream}: passed {} here, {next} elsewhere", self.next(stream));
        assert!(self.peek(stream).is_none(), "stream {stream}: something waits where it was not taken");
        self.next[stream as usize] = next;
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How far ahead of its stream's turn a number may be: what waits, what is under way, and what its rings hold.
    pub(super) fn reach(&self) -> u64 {
        self.places.len() as u64
    }

    /// Whether twice as many as there are slots wait: what is held up for want of a page must not fill the table.
    pub(super) fn is_crowded(&self) -> bool {
        self.count >= self.places.len() / 4
    }

    fn home(&self, stream: u32, sequence: u64) -> usize {
        let block = (sequence / BLOCK).wrapping_add(u64::from(stream) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((block >> 32) as usize * BLOCK as usize + (sequence % BLOCK) as usize) & (self.places.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    fn find(&self, stream: u32, sequence: u64) -> Option<usize> {
        // As always where one decoder takes up what comes in its turn.
        if self.count == 0 {
            return None;
        }
        let mut at = self.home(stream, sequence);
        while let Some(place) = &self.places[at] {
            if (place.stream, place.sequence) == (stream, sequence) {
                return Some(at);
            }
            at = self.after(at);
        }
        None
    }

    /// Empties a place, and moves up what stands behind it and would no longer be found.
    fn forget(&mut self, mut at: usize) {
        let mask = self.places.len() - 1;
        self.places[at] = None;
        self.count -= 1;
        let mut from = self.after(at);
        while let Some(place) = self.places[from] {
            let home = self.home(place.stream, place.sequence);
            if from.wrapping_sub(home) & mask >= from.wrapping_sub(at) & mask {
                self.places[at] = self.places[from].take();
                at = from;
            }
            from = self.after(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, Order};
    use std::collections::BTreeMap;

    #[test]
    fn any_order_of_arrival_leaves_in_order_and_a_second_arrival_is_seen() {
        let (streams, slots) = (3u32, 8u64);
        let mut order = Order::new(streams, slots as u32);
        let mut seed = 1u64;
        let mut draw = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut known: BTreeMap<(u32, u64), Held> = BTreeMap::new();
        for round in 0..100_000u64 {
            let stream = draw(u64::from(streams)) as u32;
            let next = order.next(stream);
            // As far ahead as a third of the slots lets each of three streams be.
            let sequence = (next + draw(slots / 2)).saturating_sub(draw(2));
            let expected = sequence < next || known.contains_key(&(stream, sequence));
            assert_eq!(order.is_known(stream, sequence), expected, "round {round}");
            if !expected {
                let held = if draw(2) == 0 { Held::Tombstone } else { Held::Job(round as u32) };
                order.keep(stream, sequence, held);
                known.insert((stream, sequence), held);
            }
            while let Some(held) = order.peek(stream) {
                assert_eq!(known.remove(&(stream, order.next(stream))), Some(held));
                order.pass(stream);
            }
            assert_eq!(order.count(), known.len());
        }
        assert!((0..streams).all(|stream| order.next(stream) > 1_000));
    }

    #[test]
    fn a_number_that_came_in_its_turn_is_passed_without_being_kept() {
        let mut order = Order::new(1, 8);
        order.keep(0, 1, Held::Tombstone);
        assert_eq!(order.peek(0), None);
        order.pass(0);
        assert_eq!((order.next(0), order.peek(0)), (1, Some(Held::Tombstone)));
        order.pass(0);
        assert_eq!((order.next(0), order.count()), (2, 0));
    }
}
