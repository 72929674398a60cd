//! Senders: one row for each address.
//!
//! Owns the rows. Searched for every datagram on the feed's thread: first the last sender, then
//! all. Bounds: [`PEERS_MAX`]; a further sender takes the row that has been silent longest, if that
//! is long enough. An answer carries its row's generation, which differs if another sender has the
//! row by now.

use super::batch::Address;
use crate::board::layout::PEERS_SHOWN;
use crate::board::{self, PeerRow, SourceBlock};
use crate::feed::address::Network;
use crate::units::Ticks;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most senders known at once.
pub(in crate::feed) const PEERS_MAX: usize = 64;

/// One sender.
pub(in crate::feed) struct Peer {
    pub(in crate::feed) address: Address,
    pub(in crate::feed) generation: u32,
    /// The sender's session; another session begins another generation.
    pub(in crate::feed) session: u64,
    /// Its address is not on the board yet.
    pub(in crate::feed) is_new: bool,
    pub(in crate::feed) last: Ticks,
    /// When its session was last welcomed.
    pub(in crate::feed) welcomed: Option<Ticks>,
    pub(in crate::feed) shots: u64,
    pub(in crate::feed) answers: u64,
    pub(in crate::feed) dropped: u64,
    /// It did not take answers in time; until it takes one, each answer is tried once.
    pub(in crate::feed) is_stuck: bool,
}

/// The rows of all senders.
pub(in crate::feed) struct Peers {
    rows: Vec<Peer>,
    recent: usize,
}

impl Peers {
    pub(in crate::feed) fn new() -> Peers {
        Peers { rows: Vec::with_capacity(PEERS_MAX), recent: 0 }
    }

    /// The row of `address`, as a word for its answers. A new sender takes a free row, or one
    /// silent since `silent_since`. An older session takes its sender's row over after the same silence.
    pub(in crate::feed) fn find(
        &mut self,
        address: &Address,
        session: u64,
        now: Ticks,
        silent_since: Ticks,
    ) -> Option<u64> {
        let is_it = |peer: &Peer| peer.address.as_bytes() == address.as_bytes();
        if !self.rows.get(self.recent).is_some_and(is_it) {
            self.recent = match self.rows.iter().position(is_it) {
                Some(row) => row,
                None => self.admit(address, silent_since)?,
            };
        }
        let peer = &mut self.rows[self.recent];
        if session < peer.session && peer.last > silent_since {
            // A late datagram of a session before. Its shots have no recipient, and those of the present one keep it.
            let before = peer.generation.wrapping_sub(1) & GENERATIONS;
            return Some(u64::from(before) << 32 | self.recent as u64);
        }
        peer.last = now;
        if peer.session != session {
            // Shots of the previous session no longer have a recipient.
            (peer.session, peer.generation) = (session, next_generation(peer.generation));
            peer.welcomed = None;
        }
        Some(u64::from(peer.generation) << 32 | self.recent as u64)
    }

    /// Whether the session of the row that `word` names is to be welcomed now: once in `every`.
    pub(in crate::feed) fn welcomes(&mut self, word: u64, now: Ticks, every: Ticks) -> bool {
        let Some(peer) = self.of_word(word) else { return false };
        let is_due = peer.welcomed.is_none_or(|then| now.since(then) >= every);
        if is_due {
            peer.welcomed = Some(now);
        }
        is_due
    }

    fn admit(&mut self, address: &Address, silent_since: Ticks) -> Option<usize> {
        let fresh = |generation| Peer {
            address: *address,
            generation,
            session: 0,
            is_new: true,
            last: Ticks(0),
            welcomed: None,
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
            self.rows[row] = fresh(next_generation(self.rows[row].generation));
            row
        })
    }

    /// The row that `word` names, if it still belongs to that sender.
    pub(in crate::feed) fn of_word(&mut self, word: u64) -> Option<&mut Peer> {
        let peer = self.rows.get_mut((word & 0xffff_ffff) as usize)?;
        (u64::from(peer.generation) == word >> 32).then_some(peer)
    }

    /// Publishes the first senders.
    pub(in crate::feed) fn publish(&mut self, block: &SourceBlock) {
        board::set(&block.peers_count, self.rows.len() as u64);
        for (row, peer) in block.peers.iter().zip(&mut self.rows).take(PEERS_SHOWN) {
            if std::mem::take(&mut peer.is_new) {
                write_address(row, &peer.address);
            }
            board::set(&row.seen, peer.last.0);
            board::set(&row.shots, peer.shots);
            board::set(&row.answers, peer.answers);
            board::set(&row.dropped, peer.dropped);
        }
    }
}

/// Bits of a generation. The highest bit of a row's word stays clear: it marks shots of other hosts
/// ([`crate::feed::bridge`]).
const GENERATIONS: u32 = u32::MAX >> 1;

/// The generation after `generation`.
fn next_generation(generation: u32) -> u32 {
    generation.wrapping_add(1) & GENERATIONS
}

/// Number of the row that `word` names, below [`PEERS_MAX`].
pub(in crate::feed) fn row(word: u64) -> usize {
    (word & 0xffff_ffff) as usize % PEERS_MAX
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from(bytes[at]) << 8 | u16::from(bytes[at + 1])
}

/// Address and port of a socket address; `None` for a path.
pub(in crate::feed) fn internet(address: &Address) -> Option<(IpAddr, u16)> {
    let bytes = address.as_bytes();
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    match family {
        libc::AF_INET => {
            let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((IpAddr::V4(Ipv4Addr::from(octets)), half(bytes, 2)))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((IpAddr::V6(Ipv6Addr::from(octets)), half(bytes, 2)))
        }
        _ => None,
    }
}

/// The file system guards paths; a list guards addresses, or they must belong to this machine.
pub(in crate::feed) fn is_allowed(allow: &[Network], address: &Address) -> bool {
    let Some((ip, _)) = internet(address) else { return true };
    if allow.is_empty() { ip.to_canonical().is_loopback() } else { allow.iter().any(|network| network.contains(ip)) }
}

/// Writes numbers: no text is formatted here.
fn write_address(row: &PeerRow, address: &Address) {
    match internet(address) {
        Some((ip, port)) => {
            let bits = match ip {
                IpAddr::V4(ip) => u128::from(ip.to_bits()),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            board::set(&row.address[0], (bits >> 64) as u64);
            board::set(&row.address[1], bits as u64);
            board::set(&row.port, u64::from(port));
            board::set(&row.family, if ip.is_ipv4() { 4 } else { 6 });
        }
        None => {
            let path = address.as_bytes().get(2..).unwrap_or_default();
            let path = path.strip_prefix(&[0]).unwrap_or(path);
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            row.path.write(std::str::from_utf8(&path[..end]).unwrap_or("?"));
            board::set(&row.family, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Address, Peers};
    use crate::units::Ticks;

    #[test]
    fn a_late_datagram_of_an_older_session_takes_no_answers_from_the_newer_one() {
        let (mut peers, address) = (Peers::new(), Address::none());
        let mut find = |session, now, silent_since| {
            let word = peers.find(&address, session, Ticks(now), Ticks(silent_since)).unwrap();
            (word, peers.of_word(word).map(|peer| peer.session))
        };
        let (older, newer) = (find(5, 10, 0), find(6, 11, 0));
        assert_eq!((older.1, newer.1), (Some(5), Some(6)));
        assert_eq!(find(5, 12, 0).1, None, "its shots have no recipient");
        assert_eq!(find(6, 13, 0), newer, "answers that are on their way have one");
        assert_eq!(find(5, 50, 13).1, Some(5), "the newer session is silent");
    }
}
