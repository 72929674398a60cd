//! One silo's share of an input's shots.
//!
//! Plain data, made before Live. Owned by the feed, whose hot thread looks up each shot by its turn.
//! Bounds: the turns of an [`Order`]; without an order the index is arithmetic.

use super::order::Order;
use crate::pipe::home;

/// The streams that one silo's feed serves, and the number of shots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of the silo.
    pub silo: usize,
    /// Streams of the whole engine.
    pub streams: u32,
    /// Streams of this silo, ascending.
    pub own: Vec<u32>,
    /// Shots of all streams together; `None`: until the input or the run ends.
    pub count: Option<u64>,
    /// This silo's turns, where streams have unequal rates; `None`: round robin.
    pub turns: Option<OwnTurns>,
}

/// One silo's part of an [`Order`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTurns {
    /// Index in the cycle, index among the silo's streams, and earlier turns of this stream in the
    /// cycle.
    turns: Box<[(u32, u32, u32)]>,
    /// For each of the silo's streams: its turns in a cycle.
    counts: Box<[u32]>,
    /// Turns of a cycle, of all silos together.
    cycle: u64,
}

impl Share {
    /// The streams whose home is silo `silo`: see [`home`].
    pub fn of(silo: usize, silos: u32, streams: u32, count: Option<u64>) -> Share {
        let own = (0..streams).filter(|stream| home(*stream, silos) == silo).collect();
        Share { silo, streams, own, count, turns: None }
    }

    /// The same share with streams in `order`.
    #[must_use]
    pub fn in_order(mut self, order: &Order) -> Share {
        let own = |stream: u32| self.own.binary_search(&stream).ok();
        let all = (0..).zip(order.turns());
        let turns = all.filter_map(|(place, turn)| Some((place, own(turn.stream)? as u32, turn.nth))).collect();
        let counts = self.own.iter().map(|stream| order.turns_of(*stream)).collect();
        self.turns = Some(OwnTurns { turns, counts, cycle: order.turns().len() as u64 });
        self
    }

    /// This silo's fraction of all shots.
    pub(super) fn fraction(&self) -> f64 {
        match &self.turns {
            None => self.own.len() as f64 / f64::from(self.streams),
            Some(own) => own.turns.len() as f64 / own.cycle as f64,
        }
    }

    /// This silo's shot at `turn`; `None` if there is none.
    #[inline]
    pub(super) fn due(&self, Turn { lap, place }: Turn) -> Option<Due> {
        let due = if let Some(OwnTurns { turns, counts, cycle }) = &self.turns {
            let (index, own, nth) = *turns.get(place)?;
            let sequence = lap * u64::from(counts[own as usize]) + u64::from(nth);
            let own = own as usize;
            Due { index: lap * cycle + u64::from(index), own, stream: self.own[own], sequence }
        } else {
            let stream = *self.own.get(place)?;
            let index = lap * u64::from(self.streams) + u64::from(stream);
            Due { index, own: place, stream, sequence: lap }
        };
        self.count.is_none_or(|count| due.index < count).then_some(due)
    }

    #[inline]
    pub(super) fn after(&self, Turn { lap, place }: Turn) -> Turn {
        let places = self.turns.as_ref().map_or(self.own.len(), |own| own.turns.len());
        if place + 1 < places { Turn { lap, place: place + 1 } } else { Turn { lap: lap + 1, place: 0 } }
    }
}

/// Whose turn it is among one silo's streams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// Times that all turns have been taken.
    lap: u64,
    place: usize,
}

/// A shot of a source that holds complete shots.
#[derive(Debug, PartialEq)]
pub(super) struct Due {
    /// Index in the input.
    pub(super) index: u64,
    /// Index of its stream among this silo's.
    pub(super) own: usize,
    pub(super) stream: u32,
    pub(super) sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::super::order::Order;
    use super::{Due, Share, Turn};

    /// All shots of `share`, in order.
    fn all(share: &Share) -> impl Iterator<Item = Due> {
        let mut turn = Turn::default();
        std::iter::from_fn(move || {
            let due = share.due(turn)?;
            turn = share.after(turn);
            Some(due)
        })
    }

    #[test]
    fn silos_share_a_skewed_input_without_gap_or_overlap_too() {
        const COUNT: u64 = 3_000;
        let weights: Vec<f64> = (1..=7).map(|n| f64::from(n).powf(-1.1)).collect();
        let order = Order::new(&weights);
        let mut seen = vec![0; COUNT as usize];
        let mut shots = [0u64; 7];
        for silo in 0..3 {
            let share = Share::of(silo, 3, 7, Some(COUNT)).in_order(&order);
            for Due { index, own, stream, sequence } in all(&share) {
                assert_eq!((order.index(stream, sequence), share.own[own]), (index, stream));
                assert_eq!(sequence, shots[stream as usize], "in its order");
                shots[stream as usize] += 1;
                seen[index as usize] += 1;
            }
        }
        assert!(seen.iter().all(|times| *times == 1));
        let most = shots[0] as f64 / COUNT as f64 * weights.iter().sum::<f64>();
        assert!((most - 1.0).abs() < 0.1, "{shots:?}");
    }

    #[test]
    fn silos_share_an_input_without_gap_or_overlap() {
        for (silos, streams, count) in [(1, 1, 10), (2, 5, 23), (3, 4, 100), (4, 2, 9)] {
            let mut seen = vec![0; count as usize];
            for silo in 0..silos {
                let share = Share::of(silo as usize, silos, streams, Some(count));
                for Due { index, stream, sequence, .. } in all(&share) {
                    assert_eq!(index, sequence * u64::from(streams) + u64::from(stream));
                    seen[index as usize] += 1;
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{silos} silos, {streams} streams: {seen:?}");
        }
    }

    #[test]
    fn a_silo_without_streams_gets_nothing() {
        assert_eq!(all(&Share::of(3, 4, 2, None)).next(), None);
    }
}
