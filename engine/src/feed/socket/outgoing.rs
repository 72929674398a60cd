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
    /// Row of each recipient, and whether it gets an answer. Refusals and welcomes are not counted.
    rows: [(u64, bool); BATCH],
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
        Outgoing { batch: Box::new(Batch::new(bytes)), from: 0, to: 0, rows: [(0, true); BATCH], refused_since: None }
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
    pub(in crate::feed) fn put(&mut self, to: &Address, row: u64, write: impl FnOnce(&mut [u8]) -> usize) {
        let bytes = write(self.batch.room(self.to));
        self.batch.address(self.to, bytes, to);
        self.rows[self.to] = (row, true);
        self.to += 1;
    }

    /// Sends a refusal or welcome; drops it without room, because the sender repeats its request.
    pub(super) fn send_control(&mut self, to: &Address, row: u64, write: impl FnOnce(&mut [u8]) -> usize) {
        if self.has_room() {
            self.put(to, row, write);
            self.rows[self.to - 1] = (row, false);
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
        let is_stuck = peers.of_word(self.rows[self.from].0).is_some_and(|peer| peer.is_stuck);
        is_refused || is_stuck || rate.nanos(now.since(since)) >= SEND_LIMIT
    }

    fn settle(&self, place: usize, how: Settled, peers: &mut Peers, block: &SourceBlock) {
        let (word, is_answer) = self.rows[place];
        let count = u64::from(is_answer);
        board::add(if how == Settled::Sent { &block.answered } else { &block.answers_dropped }, count);
        let Some(peer) = peers.of_word(word) else { return };
        match how {
            Settled::Sent => (peer.answers, peer.is_stuck) = (peer.answers + count, false),
            Settled::Dropped => (peer.dropped, peer.is_stuck) = (peer.dropped + count, true),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Address, Batch, Outgoing, Peers};
    use crate::board::{self, Board, Place, Shape};
    use crate::feed::socket::batch::prepare;
    use crate::units::{TickRate, Ticks};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    /// They wait once for a sender that does not read, as its answers do, and then hold up nobody.
    #[test]
    fn refusals_to_a_sender_that_takes_none_hold_up_no_answer_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let bound = |name: &str| UnixDatagram::bind(folder.path().join(name)).unwrap();
        let [here, deaf, other] = ["here", "deaf", "other"].map(bound);
        prepare(here.as_fd(), 4 << 20);
        let (mut peers, mut batch) = (Peers::new(), Batch::new(8));
        let mut known = |sender: &UnixDatagram| -> (Address, u64) {
            sender.send_to(&[1], folder.path().join("here")).unwrap();
            assert_eq!(batch.receive(here.as_fd(), 1).unwrap(), 1);
            let address = *batch.datagram(0).1;
            (address, peers.find(&address, 1, Ticks(0), Ticks(0)).unwrap())
        };
        let (deaf_known, other_known) = (known(&deaf), known(&other));
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let mut outgoing = Outgoing::new(8);
        let mut flush = |outgoing: &mut Outgoing, now| {
            outgoing.flush(here.as_fd(), &mut peers, board.source(), Ticks(now), TickRate::NANOS);
            outgoing.is_idle()
        };
        let refuse = |outgoing: &mut Outgoing| outgoing.send_control(&deaf_known.0, deaf_known.1, |_| 1);
        // Until the system holds no more for it.
        loop {
            refuse(&mut outgoing);
            if !flush(&mut outgoing, 0) {
                break;
            }
        }
        assert!(flush(&mut outgoing, 2_000_000), "it had its time");
        (0..5).for_each(|_| refuse(&mut outgoing));
        outgoing.put(&other_known.0, other_known.1, |_| 1);
        assert!(flush(&mut outgoing, 2_000_000));
        assert_eq!(other.recv(&mut [0; 8]).unwrap(), 1);
        assert_eq!((board::get(&board.source().answered), board::get(&board.source().answers_dropped)), (1, 0));
    }
}
