//! Which of a level's 65,536 lists hold something.
//!
//! Owns three bitmaps, each the summary of the one below: 65,536 bits, 1,024, 16. Single owner. Bounds: setting and
//! clearing touch at most three words, a search at most six. Never allocates after construction.

/// log2 of the lists of one level.
pub(super) const LEVEL_BITS: u32 = 16;
/// Lists of one level.
pub(super) const LEVEL: usize = 1 << LEVEL_BITS;
const MASK: usize = LEVEL - 1;
const WORDS: usize = LEVEL / 64;
const SUMMARIES: usize = WORDS / 64;

/// The bitmaps of one level.
#[derive(Debug)]
pub(super) struct Occupancy {
    words: Box<[u64; WORDS]>,
    summaries: [u64; SUMMARIES],
    top: u32,
}

impl Occupancy {
    pub(super) fn new() -> Occupancy {
        Occupancy { words: Box::new([0; WORDS]), summaries: [0; SUMMARIES], top: 0 }
    }

    pub(super) fn set(&mut self, list: usize) {
        let word = (list & MASK) / 64;
        self.words[word] |= 1 << (list % 64);
        self.summaries[word / 64] |= 1 << (word % 64);
        self.top |= 1 << (word / 64);
    }

    pub(super) fn clear(&mut self, list: usize) {
        let word = (list & MASK) / 64;
        self.words[word] &= !(1 << (list % 64));
        if self.words[word] != 0 {
            return;
        }
        self.summaries[word / 64] &= !(1 << (word % 64));
        if self.summaries[word / 64] == 0 {
            self.top &= !(1 << (word / 64));
        }
    }

    pub(super) fn is_set(&self, list: usize) -> bool {
        self.words[(list & MASK) / 64] >> (list % 64) & 1 != 0
    }

    /// How many lists beyond `from`, going round, the first occupied one lies; `None` if all are empty.
    pub(super) fn distance(&self, from: usize) -> Option<usize> {
        let from = from & MASK;
        let found = self.first_from(from).or_else(|| self.first_from(0))?;
        Some(found.wrapping_sub(from) & MASK)
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
    use super::{LEVEL, Occupancy};

    #[test]
    fn the_next_occupied_list_is_found_across_any_gap() {
        let marks = [0, 1, 63, 64, 4_095, 4_096, 4_097, 40_000, LEVEL - 1];
        for from in [0, 1, 5, 63, 64, 4_095, 4_096, 39_999, 40_000, 40_001, LEVEL - 1] {
            for mark in marks {
                let mut occupancy = Occupancy::new();
                assert_eq!(occupancy.distance(from), None);
                occupancy.set(mark);
                assert!(occupancy.is_set(mark));
                assert_eq!(occupancy.distance(from), Some((mark + LEVEL - from) % LEVEL), "from {from} to {mark}");
                occupancy.clear(mark);
                assert_eq!(occupancy.distance(from), None, "{mark} cleared");
            }
        }
    }

    #[test]
    fn clearing_one_list_hides_no_other() {
        let mut occupancy = Occupancy::new();
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
}
