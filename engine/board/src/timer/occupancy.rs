//! Bitmaps of the occupied lists of a tier.
//!
//! Owns three bitmaps, each the summary of the one below: up to 65,536 bits, 1,024, 16. Single owner. Bounds: setting
//! and clearing touch at most three words, a search at most six. Never allocates after construction.

/// Bits of a summary: words of the largest tier over 64.
const SUMMARIES: usize = 16;

/// The bitmaps of a tier of `64 × WORDS` lists; a power of two.
#[derive(Debug)]
pub(super) struct Occupancy<const WORDS: usize> {
    words: Box<[u64; WORDS]>,
    summaries: [u64; SUMMARIES],
    top: u32,
}

impl<const WORDS: usize> Occupancy<WORDS> {
    const MASK: usize = WORDS * 64 - 1;

    pub(super) fn new() -> Occupancy<WORDS> {
        const { assert!(WORDS.is_power_of_two() && WORDS <= 64 * SUMMARIES) };
        Occupancy { words: Box::new([0; WORDS]), summaries: [0; SUMMARIES], top: 0 }
    }

    pub(super) fn set(&mut self, list: usize) {
        let word = (list & Self::MASK) / 64;
        self.words[word] |= 1 << (list % 64);
        self.summaries[word / 64] |= 1 << (word % 64);
        self.top |= 1 << (word / 64);
    }

    pub(super) fn clear(&mut self, list: usize) {
        let word = (list & Self::MASK) / 64;
        self.words[word] &= !(1 << (list % 64));
        if self.words[word] != 0 {
            return;
        }
        self.summaries[word / 64] &= !(1 << (word % 64));
        if self.summaries[word / 64] == 0 {
            self.top &= !(1 << (word / 64));
        }
    }

    /// Distance from `from`, with wrap-around, to the first occupied list; `None` if all are empty.
    pub(super) fn distance(&self, from: usize) -> Option<usize> {
        let from = from & Self::MASK;
        let found = self.first_from(from).or_else(|| self.first_from(0))?;
        Some(found.wrapping_sub(from) & Self::MASK)
    }

    fn first_from(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        let rest = self.words[word] & (!0 << (from % 64));
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let word = self.word_from(word + 1)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }

    fn word_from(&self, word: usize) -> Option<usize> {
        if word >= WORDS {
            return None;
        }
        let summary = word / 64;
        let rest = self.summaries[summary] & (!0 << (word % 64));
        if rest != 0 {
            return Some(summary * 64 + rest.trailing_zeros() as usize);
        }
        let rest = self.top & (!0 << (summary + 1));
        let summary = rest.trailing_zeros() as usize;
        (summary < SUMMARIES).then(|| summary * 64 + self.summaries[summary].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Occupancy;

    const LISTS: usize = 65_536;

    #[test]
    fn the_next_occupied_list_is_found_across_any_gap() {
        let marks = [0, 1, 63, 64, 4_095, 4_096, 4_097, 40_000, LISTS - 1];
        for from in [0, 1, 5, 63, 64, 4_095, 4_096, 39_999, 40_000, 40_001, LISTS - 1] {
            for mark in marks {
                let mut occupancy = Occupancy::<1024>::new();
                assert_eq!(occupancy.distance(from), None);
                occupancy.set(mark);
                assert_eq!(occupancy.distance(from), Some((mark + LISTS - from) % LISTS), "from {from} to {mark}");
                occupancy.clear(mark);
                assert_eq!(occupancy.distance(from), None, "{mark} cleared");
            }
        }
    }

    #[test]
    fn clearing_one_list_hides_no_other() {
        let mut occupancy = Occupancy::<1024>::new();
        for list in [10, 11, 700, 50_000] {
            occupancy.set(list);
        }
        occupancy.clear(10);
        assert_eq!(occupancy.distance(0), Some(11));
        occupancy.clear(11);
        assert_eq!(occupancy.distance(0), Some(700));
        occupancy.clear(700);
        assert_eq!(occupancy.distance(0), Some(50_000));
    }

    #[test]
    fn a_small_tier_goes_round_at_its_end() {
        let mut occupancy = Occupancy::<4>::new();
        occupancy.set(3);
        assert_eq!(occupancy.distance(3), Some(0));
        assert_eq!(occupancy.distance(4), Some(255));
        assert_eq!(occupancy.distance(255 + 256), Some(4));
        occupancy.set(200);
        assert_eq!(occupancy.distance(4), Some(196));
    }
}
