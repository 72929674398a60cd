//! Replies and calls in the order of their arrival: each client's replies leave in the order of its
//! requests.
//!
//! Owns an entry for each request that has no reply on its way yet, and a copy of each call that
//! waits for its decoder. Runs on the feed's thread. Bounds: the capacity it was made with; a wire
//! without room takes no request. Never allocates after construction.
//!
//! # Why each client has an order of its own
//! A client takes its k-th reply for its k-th request. A client whose decoder computes must not
//! delay the others on the same port.

use super::frame::Status;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;

/// What an entry waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing: the reply can leave.
    Replied,
    /// The answer to the volume that it completed.
    Decode,
    /// Its decoder computes; the call is taken afterwards.
    Call,
    /// Nothing: the reply has left.
    Gone,
}

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Its number and time, which the reply repeats.
    pub(super) id: u32,
    pub(super) timestamp: u64,
    /// The port that it came through.
    pub(super) port: usize,
    /// Its sender.
    pub(super) peer: u64,
    /// Bytes of the datagram.
    pub(super) bytes: usize,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) status: Status,
    pub(super) result: [u64; OBSERVABLE_WORDS_MAX],
    pub(super) result_bytes: usize,
}

impl Content {
    /// A reply without a result.
    pub(super) const fn bare(status: Status) -> Content {
        Content { status, result: [0; OBSERVABLE_WORDS_MAX], result_bytes: 0 }
    }
}

#[derive(Clone, Copy)]
struct Entry {
    asked: Asked,
    stage: Stage,
    /// Session of the call, where it waits.
    session: usize,
    content: Content,
}

/// The requests without a reply on its way.
pub(super) struct Queue {
    entries: Box<[Entry]>,
    /// Copies of the waiting calls, a slot for each entry.
    calls: Box<[u8]>,
    slot_bytes: usize,
    /// Numbers of the oldest entry, and of the next one.
    head: usize,
    tail: usize,
    /// Entries whose replies can leave, in order or not.
    replied: usize,
}

impl Queue {
    pub(super) fn new(capacity: usize, slot_bytes: usize) -> Queue {
        let asked = Asked { id: 0, timestamp: 0, port: 0, peer: 0, bytes: 0 };
        let entry = Entry { asked, stage: Stage::Gone, session: 0, content: Content::bare(Status::Ok) };
        Queue {
            entries: vec![entry; capacity].into(),
            calls: vec![0; capacity * slot_bytes].into(),
            slot_bytes,
            head: 0,
            tail: 0,
            replied: 0,
        }
    }

    /// Requests that can be taken.
    pub(super) fn room(&self) -> usize {
        self.entries.len() - (self.tail - self.head)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    fn push(&mut self, asked: Asked, stage: Stage, session: usize, content: Content) {
        assert!(self.room() > 0, "the wire checks for room before it takes a request");
        self.entries[self.tail % self.entries.len()] = Entry { asked, stage, session, content };
        self.tail += 1;
    }

    /// Adds a reply.
    pub(super) fn reply(&mut self, asked: Asked, content: Content) {
        self.push(asked, Stage::Replied, 0, content);
        self.replied += 1;
    }

    /// Adds a request whose reply waits for the answer to a volume of `session`.
    pub(super) fn wait_for_decode(&mut self, asked: Asked, session: usize) {
        self.push(asked, Stage::Decode, session, Content::bare(Status::Ok));
    }

    /// Adds a call that waits until `session` has decoded.
    pub(super) fn wait_for_session(&mut self, asked: Asked, session: usize, datagram: &[u8]) {
        let from = self.tail % self.entries.len() * self.slot_bytes;
        self.calls[from..from + datagram.len()].copy_from_slice(datagram);
        self.push(asked, Stage::Call, session, Content::bare(Status::Ok));
    }

    /// The volume of `session` is decoded: its reply can leave.
    pub(super) fn decoded(&mut self, session: usize) {
        let Some(place) = self.first(session, Stage::Decode) else { return };
        self.entries[place].stage = Stage::Replied;
        self.replied += 1;
    }

    /// The oldest call that waits for `session`, with its place.
    pub(super) fn waiting_call(&self, session: usize) -> Option<(usize, Asked, &[u8])> {
        let place = self.first(session, Stage::Call)?;
        let asked = self.entries[place].asked;
        Some((place, asked, &self.calls[place * self.slot_bytes..][..asked.bytes]))
    }

    /// The call at `place` has this reply.
    pub(super) fn replied(&mut self, place: usize, content: Content) {
        let entry = &mut self.entries[place];
        (entry.stage, entry.content) = (Stage::Replied, content);
        self.replied += 1;
    }

    /// The call at `place` completed a volume: its reply waits for the answer.
    pub(super) fn decodes(&mut self, place: usize) {
        self.entries[place].stage = Stage::Decode;
    }

    fn first(&self, session: usize, stage: Stage) -> Option<usize> {
        let is_it = |entry: &Entry| entry.session == session && entry.stage == stage;
        (self.head..self.tail).map(|number| number % self.entries.len()).find(|place| is_it(&self.entries[*place]))
    }

    /// Passes each reply that may leave to `send`, in order, which returns whether it took it. `row`:
    /// number of a sender below 64.
    pub(super) fn send(&mut self, row: impl Fn(u64) -> usize, mut send: impl FnMut(&Asked, &Content) -> bool) {
        // Senders of which an earlier request has no reply yet.
        let mut blocked = 0_u64;
        for number in self.head..self.tail {
            if self.replied == 0 {
                break;
            }
            let entry = &mut self.entries[number % self.entries.len()];
            if entry.stage == Stage::Gone {
                continue;
            }
            let sender = 1_u64 << row(entry.asked.peer);
            let may_leave = entry.stage == Stage::Replied && blocked & sender == 0;
            if may_leave && send(&entry.asked, &entry.content) {
                entry.stage = Stage::Gone;
                self.replied -= 1;
            } else {
                blocked |= sender;
            }
        }
        while !self.is_empty() && self.entries[self.head % self.entries.len()].stage == Stage::Gone {
            self.head += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Content, Queue};
    use crate::feed::cudaq::frame::Status;

    const DONE: Content = Content::bare(Status::Ok);

    fn asked(id: u32, peer: u64) -> Asked {
        Asked { id, timestamp: 0, port: 0, peer, bytes: 2 }
    }

    fn sent(queue: &mut Queue, most: usize) -> Vec<u32> {
        let mut sent = Vec::new();
        queue.send(
            |peer| peer as usize,
            |asked, _| {
                let takes = sent.len() < most;
                sent.extend(takes.then_some(asked.id));
                takes
            },
        );
        sent
    }

    #[test]
    fn a_client_waits_for_its_own_requests_only() {
        let mut queue = Queue::new(4, 2);
        queue.wait_for_decode(asked(1, 0), 7);
        queue.reply(asked(2, 0), DONE);
        queue.reply(asked(3, 63), DONE);
        assert_eq!(sent(&mut queue, 9), [3]);
        assert_eq!((sent(&mut queue, 9), queue.room()), (vec![], 1), "the hole is filled once the oldest has gone");
        queue.decoded(6);
        assert!(sent(&mut queue, 9).is_empty());
        queue.decoded(7);
        assert_eq!((sent(&mut queue, 1), sent(&mut queue, 9)), (vec![1], vec![2]));
        assert!(queue.is_empty() && queue.room() == 4);
    }

    #[test]
    fn calls_wait_for_their_decoder_in_order_with_their_datagrams() {
        let mut queue = Queue::new(3, 2);
        // Around the end of the ring.
        for round in 0..5 {
            queue.wait_for_session(asked(1, 0), 1, &[round, 1]);
            queue.wait_for_session(asked(2, 0), 2, &[round, 2]);
            queue.wait_for_session(asked(3, 0), 1, &[round, 3]);
            assert_eq!(queue.room(), 0);
            let place = |queue: &Queue, session, bytes: &[u8]| {
                let (place, _, datagram) = queue.waiting_call(session).expect("it waits");
                assert_eq!(datagram, bytes);
                place
            };
            let at = place(&queue, 1, &[round, 1]);
            queue.decodes(at);
            let at = place(&queue, 1, &[round, 3]);
            queue.replied(at, DONE);
            assert!(sent(&mut queue, 9).is_empty());
            queue.decoded(1);
            assert_eq!(sent(&mut queue, 9), [1]);
            let at = place(&queue, 2, &[round, 2]);
            queue.replied(at, DONE);
            assert_eq!((sent(&mut queue, 9), queue.waiting_call(1)), (vec![2, 3], None));
        }
    }
}
