//! Who sends: a row for each address, found again by its bytes.
//!
//! Owns the rows. Called for every datagram on the feed's thread: the last sender is looked at first, then all. Bounds:
//! [`PEERS_MAX`]; a new one then takes the row of whoever has been silent longest, if that is long enough. A row's
//! generation tells an answer that its asker's row is another's by now.

use super::batch::Address;
use crate::units::Ticks;

/// Senders known at once.
pub(super) const PEERS_MAX: usize = 64;

/// One sender.
pub(super) struct Peer {
    pub(super) address: Address,
    pub(super) generation: u32,
    /// The session that it sends in; another one begins another generation.
    pub(super) session: u64,
    /// Its address is not on the board yet.
    pub(super) is_new: bool,
    pub(super) last: Ticks,
    pub(super) shots: u64,
    pub(super) answers: u64,
    pub(super) dropped: u64,
    /// It took no answers in time: until it takes one, each is tried once.
    pub(super) is_stuck: bool,
}

/// All of them.
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

    /// The row of this address, as a word for its answers; a new one if there is room, or if another has been silent since
    /// `silent_since`.
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
            // What was asked in the session before has nobody left to be told.
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

    /// The row that `word` was given out for, if it is still that sender's.
    pub(super) fn of_word(&mut self, word: u64) -> Option<&mut Peer> {
        let peer = self.rows.get_mut((word & 0xffff_ffff) as usize)?;
        (u64::from(peer.generation) == word >> 32).then_some(peer)
    }
}
