//! Pseudo-random numbers: SplitMix64. Owned by one round or one thread; the same seed draws the same numbers.

/// The state of one sequence.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// The sequence of a seed and of a part of the work, such as a round's number.
    pub fn new(seed: u64, part: u64) -> Draw {
        let mut draw = Draw(seed ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        draw.next();
        Draw(draw.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True once in `count` draws.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }

    /// A number in 0..1, 0 excluded.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / ((1u64 << 53) + 1) as f64
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// A sequence that is independent of what this one draws later.
    pub fn fork(&mut self) -> Draw {
        Draw(self.next())
    }
}
