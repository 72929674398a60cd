//! Answers on their way out of one socket.
//!
//! Owns the batch of answers that wait for the next system call. Runs on the feed's thread. Bounds:
//! one batch; an answer that its recipient does not take within [`SEND_LIMIT`] is dropped and
//! counted, so that no recipient blocks the others.

use super::batch::{Address, BATCH, Batch};
use super::peers::Peers;
use crate::board::{self, SourceBlock};
use crate::units::{Nanos, TickRate, Ticks};
use std::os::fd::BorrowedFd;

/// Longest wait for a sender to take its answer.
const SEND_LIMIT: Nanos = Nanos(2_000_000);

/// Answers that wait for the next system call.
pub(in crate::feed) struct Outgoing {
    batch: Box<Batch>,
    from: usize,
    to: usize,
    /// Row of each answer's sender; `None` for a refusal or a welcome.
    rows: [Option<u64>; BATCH],
    /// Since when the first waiting answer has been refused.
    refused_since: Option<Ticks>,
}

/// Outcome of sending an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    Sent,
    Dropped,
}

impl Outgoing {
    /// Room for answers of at most `bytes` bytes.
    pub(in crate::feed) fn new(bytes: usize) -> Outgoing {
        Outgoing { batch: Box::new(Batch::new(bytes)), from: 0, to: 0, rows: [None; BATCH], refused_since: None }
    }

    /// Whether another answer fits.
    pub(in crate::feed) fn has_room(&self) -> bool {
        self.to < BATCH
    }

    /// Whether no answer waits.
    pub(in crate::feed) fn is_idle(&self) -> bool {
        self.from == self.to
    }

    /// Adds an answer of which `write` returns the bytes; there must be room.
    pub(in crate::feed) fn put(&mut self, to: &Address, row: Option<u64>, write: impl FnOnce(&mut [u8]) -> usize) {
        let bytes = write(self.batch.room(self.to));
        self.batch.address(self.to, bytes, to);
        self.rows[self.to] = row;
        self.to += 1;
    }

    /// Sends a refusal or welcome; drops it without room, because the sender repeats its request.
    pub(super) fn send_control(&mut self, to: &Address, write: impl FnOnce(&mut [u8]) -> usize) {
        if self.has_room() {
            self.put(to, None, write);
        }
    }

    /// Sends what waits, as far as the recipients take it.
    pub(in crate::feed) fn flush(
        &mut self,
        socket: BorrowedFd<'_>,
        peers: &mut Peers,
        block: &SourceBlock,
        now: Ticks,
        rate: TickRate,
    ) {
        // Each iteration sends or drops at least one answer, or ends.
        while self.from < self.to {
            let sent = self.batch.send(socket, self.from, self.to);
            let gone = sent.as_ref().map_or(0, |sent| *sent);
            (self.from..self.from + gone).for_each(|place| self.settle(place, Settled::Sent, peers, block));
            self.from += gone;
            if gone > 0 {
                self.refused_since = None;
            } else if self.gives_up(sent.is_err(), peers, now, rate) {
                self.settle(self.from, Settled::Dropped, peers, block);
                self.from += 1;
                self.refused_since = None;
            } else {
                return;
            }
        }
        (self.from, self.to) = (0, 0);
    }

    /// The first waiting answer was not taken. Returns `true` if it is to be dropped, `false` if it
    /// stays for the next frame.
    fn gives_up(&mut self, is_refused: bool, peers: &mut Peers, now: Ticks, rate: TickRate) -> bool {
        let since = *self.refused_since.get_or_insert(now);
        let row = self.rows[self.from];
        let is_stuck = row.and_then(|word| peers.of_word(word)).is_some_and(|peer| peer.is_stuck);
        is_refused || is_stuck || rate.nanos(now.since(since)) >= SEND_LIMIT
    }

    fn settle(&self, place: usize, how: Settled, peers: &mut Peers, block: &SourceBlock) {
        let Some(word) = self.rows[place] else { return };
        board::add(if how == Settled::Sent { &block.answered } else { &block.answers_dropped }, 1);
        let Some(peer) = peers.of_word(word) else { return };
        match how {
            Settled::Sent => (peer.answers, peer.is_stuck) = (peer.answers + 1, false),
            Settled::Dropped => (peer.dropped, peer.is_stuck) = (peer.dropped + 1, true),
        }
    }
}
