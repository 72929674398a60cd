//! Which of an input's shots are one silo's.
//!
//! Plain data, made before Live and owned by the feed, on whose hot thread a shot's place is looked up. Bounds: the turns of an
//! [`Order`]; without one it is arithmetic.

use super::order::Order;
use super::requests;

/// Which streams one silo's feed serves, and how many shots of them.
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
    /// This silo's turns, where streams come at unequal rates; `None`: one stream after another.
    pub turns: Option<OwnTurns>,
}

/// One silo's part of an [`Order`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTurns {
    /// Place in the cycle, which of the silo's streams, and how many turns that had in the cycle before.
    turns: Box<[(u32, u32, u32)]>,
    /// By the silo's streams: turns in a cycle.
    counts: Box<[u32]>,
    /// Turns of a cycle, all silos' together.
    cycle: u64,
}

impl Share {
    /// The streams whose home is silo `silo`: see [`requests::home`].
    #[must_use]
    pub fn of(silo: usize, silos: u32, streams: u32, count: Option<u64>) -> Share {
        let own = (0..streams).filter(|stream| requests::home(*stream, silos) == silo).collect();
        Share { silo, streams, own, count, turns: None }
    }

    /// The same with streams that come in `order`.
    #[must_use]
    pub fn in_order(mut self, order: &Order) -> Share {
        let own = |stream: u32| self.own.binary_search(&stream).ok();
        let all = (0..).zip(order.turns());
        let turns = all.filter_map(|(place, turn)| Some((place, own(turn.stream)? as u32, turn.nth))).collect();
        let counts = self.own.iter().map(|stream| order.turns_of(*stream)).collect();
        self.turns = Some(OwnTurns { turns, counts, cycle: order.turns().len() as u64 });
        self
    }

    /// How much of what all silos get is this one's.
    pub(super) fn fraction(&self) -> f64 {
        match &self.turns {
            None => self.own.len() as f64 / f64::from(self.streams),
            Some(own) => own.turns.len() as f64 / own.cycle as f64,
        }
    }

    /// This silo's `n`-th shot; `None`: there is none.
    pub(super) fn place(&self, n: u64) -> Option<Due> {
        let due = if let Some(OwnTurns { turns, counts, cycle }) = &self.turns {
            let round = n.checked_div(turns.len() as u64)?;
            let (place, own, nth) = turns[(n % turns.len() as u64) as usize];
            let sequence = round * u64::from(counts[own as usize]) + u64::from(nth);
            let own = own as usize;
            Due { index: round * cycle + u64::from(place), own, stream: self.own[own], sequence }
        } else {
            let streams = self.own.len() as u64;
            let own = n.checked_rem(streams)? as usize;
            let (stream, sequence) = (self.own[own], n / streams);
            Due { index: sequence * u64::from(self.streams) + u64::from(stream), own, stream, sequence }
        };
        self.count.is_none_or(|count| due.index < count).then_some(due)
    }
}

/// A shot of a source that has whole ones.
#[derive(Debug, PartialEq)]
pub(super) struct Due {
    /// Place in the input.
    pub(super) index: u64,
    /// Its stream's place among this silo's, and its number.
    pub(super) own: usize,
    pub(super) stream: u32,
    pub(super) sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::super::order::Order;
    use super::{Due, Share};

    #[test]
    fn silos_share_a_skewed_input_without_gap_or_overlap_too() {
        const COUNT: u64 = 3_000;
        let weights: Vec<f64> = (1..=7).map(|n| f64::from(n).powf(-1.1)).collect();
        let order = Order::new(&weights);
        let mut seen = vec![0; COUNT as usize];
        let mut shots = [0u64; 7];
        for silo in 0..3 {
            let share = Share::of(silo, 3, 7, Some(COUNT)).in_order(&order);
            for n in 0.. {
                let Some(Due { index, own, stream, sequence }) = share.place(n) else { break };
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
                for n in 0.. {
                    let Some(Due { index, stream, sequence, .. }) = share.place(n) else { break };
                    assert_eq!(index, sequence * u64::from(streams) + u64::from(stream));
                    seen[index as usize] += 1;
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{silos} silos, {streams} streams: {seen:?}");
        }
    }

    #[test]
    fn a_silo_without_streams_gets_nothing() {
        assert_eq!(Share::of(3, 4, 2, None).place(0), None);
    }
}
