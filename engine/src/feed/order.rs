//! The order of the streams' shots in an input whose streams have unequal rates.
//!
//! Plain data, made before Live and read by feeds, readers and the sink that restores the input's
//! order. Bounds: a cycle of [`TURNS_MAX`] turns and one more turn for each stream. For streams at
//! equal rates the order is arithmetic.
//!
//! # Why a cycle
//! A feed on a hot thread must know in a few ns which stream is next, and several feeds must divide
//! one input without gaps and without communication. In a cycle shared by all feeds, each turn has
//! an index, a stream, and the number of earlier turns of that stream.

use std::sync::Arc;

/// Most turns of a cycle, except that each stream has at least one.
pub const TURNS_MAX: usize = 1 << 16;
/// Turns of the stream with the fewest, where the cycle is long enough.
const TURNS_LEAST: f64 = 4.0;

/// The order of an input's shots.
#[derive(Clone, Debug)]
pub enum InputOrder {
    /// This many streams in round robin.
    InTurn(u32),
    /// Streams with unequal weights.
    Skewed(Arc<Order>),
}

impl InputOrder {
    /// The order of `streams` streams; `weights` unless they are equal.
    pub fn new(streams: u32, weights: Option<&[f64]>) -> InputOrder {
        weights.map_or(InputOrder::InTurn(streams), |weights| InputOrder::Skewed(Arc::new(Order::new(weights))))
    }

    /// The stream of the shot at index `index` of the input.
    pub fn stream_at(&self, index: u64) -> u32 {
        match self {
            InputOrder::InTurn(streams) => (index % u64::from(*streams)) as u32,
            InputOrder::Skewed(order) => order.stream_at(index),
        }
    }

    /// The index in the input of shot `sequence` of `stream`.
    pub fn index(&self, stream: u32, sequence: u64) -> u64 {
        match self {
            InputOrder::InTurn(streams) => sequence * u64::from(*streams) + u64::from(stream),
            InputOrder::Skewed(order) => order.index(stream, sequence),
        }
    }
}

/// The multiples of the golden ratio are spread as evenly as possible modulo 1.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// One turn of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its stream.
    pub stream: u32,
    /// Earlier turns of this stream in the cycle.
    pub nth: u32,
}

/// The order of an input whose streams have unequal rates.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    turns: Box<[Turn]>,
    /// For each stream, the start of its indices in `places`; then the end of the last stream's.
    starts: Box<[u32]>,
    /// Indices in the cycle, by stream, ascending.
    places: Box<[u32]>,
}

impl Order {
    /// An order in which streams occur as often as `weights` says, each as evenly spaced as
    /// possible.
    ///
    /// # Panics
    /// If there are no weights, or a weight is not above 0.
    pub fn new(weights: &[f64]) -> Order {
        let sum: f64 = weights.iter().sum();
        let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(least > 0.0 && sum.is_finite(), "weights are checked with the profile");
        let wanted = (TURNS_LEAST * sum / least).min(TURNS_MAX as f64);
        let counts: Vec<u32> = weights.iter().map(|weight| ((weight / sum * wanted).round() as u32).max(1)).collect();
        let mut due: Vec<(f64, Turn)> = Vec::new();
        for (stream, count) in (0..).zip(&counts) {
            // Each stream has its own phase: otherwise many equally rare streams would all come at
            // once.
            let phase = (f64::from(stream) * GOLDEN).fract();
            due.extend((0..*count).map(|nth| ((f64::from(nth) + phase) / f64::from(*count), Turn { stream, nth })));
        }
        due.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.stream.cmp(&other.1.stream)));
        let turns: Box<[Turn]> = due.into_iter().map(|(_, turn)| turn).collect();
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        let mut places = vec![0; turns.len()].into_boxed_slice();
        for (place, turn) in (0..).zip(&turns) {
            places[(starts[turn.stream as usize] + turn.nth) as usize] = place;
        }
        Order { turns, starts: starts.into(), places }
    }

    /// The turns of a cycle.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Number of turns of `stream` in a cycle.
    pub fn turns_of(&self, stream: u32) -> u32 {
        self.starts[stream as usize + 1] - self.starts[stream as usize]
    }

    /// The stream of the shot at index `index` of the input.
    pub fn stream_at(&self, index: u64) -> u32 {
        self.turns[(index % self.turns.len() as u64) as usize].stream
    }

    /// The index in the input of shot `sequence` of `stream`.
    pub fn index(&self, stream: u32, sequence: u64) -> u64 {
        let own = u64::from(self.turns_of(stream));
        let place = self.places[self.starts[stream as usize] as usize + (sequence % own) as usize];
        sequence / own * self.turns.len() as u64 + u64::from(place)
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, TURNS_MAX};

    #[test]
    fn every_index_belongs_to_one_shot_and_every_shot_has_one() {
        let order = Order::new(&[4.0, 1.0, 2.5]);
        let mut next = [0u64; 3];
        for index in 0..200 {
            let stream = order.stream_at(index);
            assert_eq!(order.index(stream, next[stream as usize]), index);
            next[stream as usize] += 1;
        }
        assert!(next.iter().all(|shots| *shots > 20), "{next:?}");
    }

    #[test]
    fn streams_come_as_often_as_their_weights_say_and_evenly_spaced() {
        let weights: Vec<f64> = (1..=1_000).map(|n| f64::from(n).powf(-1.1)).collect();
        let order = Order::new(&weights);
        let (sum, turns) = (weights.iter().sum::<f64>(), order.turns().len() as f64);
        assert!(order.turns().len() <= TURNS_MAX + weights.len());
        for (stream, weight) in (0..).zip(&weights) {
            let got = f64::from(order.turns_of(stream)) / turns;
            let off = got / (weight / sum) - 1.0;
            assert!(off.abs() < 0.15, "stream {stream} comes {off:+} too often");
        }
        let of_first = order.turns().iter().enumerate().filter(|(_, turn)| turn.stream == 0).map(|(place, _)| place);
        let gaps: Vec<usize> = of_first.clone().zip(of_first.skip(1)).map(|(one, next)| next - one).collect();
        let mean = turns / f64::from(order.turns_of(0));
        assert!(gaps.iter().all(|gap| (*gap as f64) < 3.0 * mean), "{mean} on average: {:?}", gaps.iter().max());
    }

    #[test]
    fn equal_weights_take_turns() {
        let order = Order::new(&[1.0; 5]);
        for index in 0..50 {
            let mut round: Vec<u32> = (index..index + 5).map(|index| order.stream_at(index)).collect();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4], "from {index} on");
        }
    }
}
