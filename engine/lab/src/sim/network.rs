//! The unreliable links between the silos' arbiters.
//!
//! Owns the messages in transit. Bounds: [`MESSAGES_MAX`] messages; further ones are lost. Some
//! messages are lost, some are duplicated, delayed or reordered.

use crate::arbiter::page::Silo;
use crate::commit::arbiter_driver::{Link, PageMessage};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Maximum of messages in transit.
const MESSAGES_MAX: usize = 64;

/// The simulated network.
pub(super) struct Network {
    /// Its endpoints of the links; the two of a pair of silos are adjacent.
    ends: Vec<Link>,
    /// Messages in transit, with the index of their destination.
    messages: Vec<(usize, PageMessage)>,
}

impl Network {
    pub(super) fn new() -> Network {
        Network { ends: Vec::new(), messages: Vec::with_capacity(MESSAGES_MAX) }
    }

    /// Links silos `one` and `other` through this network.
    pub(super) fn join(&mut self, one: Silo, other: Silo) -> (Link, Link) {
        let (link, to_one) = Link::pair(one, other);
        let (to_other, other_link) = Link::pair(one, other);
        self.ends.extend([to_one, to_other]);
        (link, other_link)
    }

    /// Delivers most messages, in random order.
    pub(super) fn carry(&mut self, random: &mut Xoshiro256PlusPlus) {
        for end in 0..self.ends.len() {
            while self.messages.len() < MESSAGES_MAX
                && let Some(message) = self.ends[end].takes.pop()
            {
                self.messages.push((end ^ 1, message));
            }
        }
        for at in (0..self.messages.len()).rev() {
            let draw = random.next_u64();
            if !draw.is_multiple_of(3) {
                continue;
            }
            let (end, message) = self.messages[at];
            let (is_lost, is_duplicated) = ((draw >> 8).is_multiple_of(12), (draw >> 16).is_multiple_of(12));
            if !is_lost {
                let _ = self.ends[end].sends.push(message);
            }
            if is_lost || !is_duplicated {
                self.messages.remove(at);
            }
        }
    }
}
