//! Senders: one row for each address.
//!
//! Owns the rows. Searched for every datagram on the feed's thread: first the last sender, then
//! all. Bounds: [`PEERS_MAX`]; a further sender takes the row that has been silent longest, if that
//! is long enough. An answer carries its row's generation, which differs if another sender has the
//! row by now.

use super::batch::Address;
use crate::units::Ticks;

/// Most senders known at once.
pub(super) const PEERS_MAX: usize = 64;

/// One sender.
pub(super) struct Peer {
    pub(super) address: Address,
    pub(super) generation: u32,
    /// The sender's session; another session begins another generation.
    pub(super) session: u64,
    /// Its address is not on the board yet.
    pub(super) is_new: bool,
    pub(super) last: Ticks,
    pub(super) shots: u64,
    pub(super) answers: u64,
    pub(super) dropped: u64,
    /// It did not take answers in time; until it takes one, each answer is tried once.
    pub(super) is_stuck: bool,
}

/// The rows of all senders.
pub(super) struct Peers {
    rows: Vec<Peer>,
    recent: usize,
}

impl Peers {
    pub(super) fn new() -> Peers {
        Peers { rows: Vec::with_capacity(PEERS_MAX), recent: 0 }
    }

    pub(super) fn rows(&mut self) -> &mut [Peer] {
        &mut self.rows
    }

    /// The row of `address`, as a word for its answers. A new sender takes a free row, or one
    /// silent since `silent_since`.
    pub(super) fn find(&mut self, address: &Address, session: u64, now: Ticks, silent_since: Ticks) -> Option<u64> {
        let is_it = |peer: &Peer| peer.address.as_bytes() == address.as_bytes();
        if !self.rows.get(self.recent).is_some_and(is_it) {
            self.recent = match self.rows.iter().position(is_it) {
                Some(row) => row,
                None => self.admit(address, silent_since)?,
            };
        }
        let peer = &mut self.rows[self.recent];
        peer.last = now;
        if peer.session != session {
            // Shots of the previous session no longer have a recipient.
            (peer.session, peer.generation) = (session, peer.generation.wrapping_add(1));
        }
        Some(u64::from(peer.generation) << 32 | self.recent as u64)
    }

    fn admit(&mut self, address: &Address, silent_since: Ticks) -> Option<usize> {
        let fresh = |generation| Peer {
            address: *address,
            generation,
            session: 0,
            is_new: true,
            last: Ticks(0),
            shots: 0,
            answers: 0,
            dropped: 0,
            is_stuck: false,
        };
        if self.rows.len() < PEERS_MAX {
            self.rows.push(fresh(1));
            return Some(self.rows.len() - 1);
        }
        let (row, oldest) = self.rows.iter().enumerate().min_by_key(|(_, peer)| peer.last)?;
        (oldest.last <= silent_since).then(|| {
            self.rows[row] = fresh(self.rows[row].generation.wrapping_add(1));
            row
        })
    }

    /// The row that `word` names, if it still belongs to that sender.
    pub(super) fn of_word(&mut self, word: u64) -> Option<&mut Peer> {
        let peer = self.rows.get_mut((word & 0xffff_ffff) as usize)?;
        (u64::from(peer.generation) == word >> 32).then_some(peer)
    }
}
