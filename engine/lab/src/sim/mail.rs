//! The mail between silos' arbiters, which is not reliable.
//!
//! Owns the letters under way. Bounds: [`MAIL_MAX`] letters; one that finds no room is lost. Some letters are lost, some come
//! twice, late or after younger ones.

use crate::arbiter::page::Silo;
use crate::decode::steward::{Letter, Link};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Letters under way.
const MAIL_MAX: usize = 64;

/// The mail.
pub(super) struct Mail {
    /// Its ends of the links, those of one pair of silos side by side.
    ends: Vec<Link>,
    /// Letters under way, and to which end.
    letters: Vec<(usize, Letter)>,
}

impl Mail {
    pub(super) fn new() -> Mail {
        Mail { ends: Vec::new(), letters: Vec::with_capacity(MAIL_MAX) }
    }

    /// The links of silos `one` and `other` to each other, with the mail between them.
    pub(super) fn join(&mut self, one: Silo, other: Silo) -> (Link, Link) {
        let (link, to_one) = Link::pair(one, other);
        let (to_other, other_link) = Link::pair(one, other);
        self.ends.extend([to_one, to_other]);
        (link, other_link)
    }

    /// Its turn: most letters arrive, in whatever order.
    pub(super) fn carry(&mut self, random: &mut Xoshiro256PlusPlus) {
        for end in 0..self.ends.len() {
            while self.letters.len() < MAIL_MAX
                && let Some(letter) = self.ends[end].takes.pop()
            {
                self.letters.push((end ^ 1, letter));
            }
        }
        for at in (0..self.letters.len()).rev() {
            let draw = random.next_u64();
            if !draw.is_multiple_of(3) {
                continue;
            }
            let (end, letter) = self.letters[at];
            let (is_lost, is_doubled) = ((draw >> 8).is_multiple_of(12), (draw >> 16).is_multiple_of(12));
            if !is_lost {
                let _ = self.ends[end].sends.push(letter);
            }
            if is_lost || !is_doubled {
                self.letters.remove(at);
            }
        }
    }
}
