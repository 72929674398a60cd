//! A source behind a socket: takes datagrams, and sends answers back to their senders.
//!
//! Owns the socket, the senders' rows and both batches. Runs on the first silo's feed's thread.
//! Bounds: two batches of datagrams and of answers a frame; an answer that a sender does not take
//! in time is dropped and counted ([`outgoing`]). Never blocks, never allocates once open, never
//! answers senders that are not allowed.
//!
//! The system charges unread answers to this one socket: a sender on a Unix socket that does not
//! read can use up its whole buffer. Until that sender ends, the other senders' answers are dropped
//! too. The engine continues, and the board shows the drops.

#[expect(unsafe_code, reason = "one system call for many datagrams")]
pub(super) mod batch;
pub(super) mod open;
pub(super) mod outgoing;
pub(super) mod peers;

use super::address::{Network, OpenError, SourceAddress};
use super::assembly::{Verdict, Width};
use super::intake::{Intake, Taken};
use super::packet::{self, Answered, DATAGRAM_BYTES_MAX, Part, Position, Request, Status, Welcome};
use super::wire::{Facts, Wire, status_of};
use crate::board::{self, Board, SourceBlock};
use crate::hot::Frame;
use crate::pipe::Answer;
use crate::units::{Nanos, TickRate, Ticks};
use batch::{Address, BATCH, Batch};
use open::Listening;
use outgoing::Outgoing;
use peers::{Peers, is_allowed};
use pinwheel_edge::slot::word::ErrorCode;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Bytes requested for the socket's buffers: some thousand shots.
pub(super) const BUFFER_BYTES: i32 = 4 << 20;
/// Batches taken in one frame.
pub(super) const BATCHES: usize = 2;
/// A session is welcomed once in this time: while an engine starts, hundreds of hellos of one sender wait, and
/// as many welcomes would fill the buffer that its answers come to.
const WELCOME_EVERY: Nanos = Nanos(1_000_000);
/// How often the system is asked what it dropped.
pub(super) const LOOK_EVERY: Nanos = Nanos(10_000_000);

/// The wire of a socket source.
pub(super) struct SocketWire {
    listening: Listening,
    allow: Vec<Network>,
    incoming: Box<Batch>,
    /// Whether the next call takes one datagram: the last call for many took at most one, or the last
    /// one for one took none.
    is_single: bool,
    /// Whether the next frame leaves the socket alone: the last call took one datagram.
    is_resting: bool,
    next_look: Ticks,
    outgoing: Outgoing,
    peers: Peers,
    epoch: u64,
    streams: u32,
    observables: u32,
    width: Width,
    silence: Ticks,
    board: Arc<Board>,
}

/// Checks that a socket can be opened at `place`: opens and closes one.
pub(super) fn can_listen(place: &SourceAddress) -> Result<(), OpenError> {
    open::listen(place).map(drop)
}

impl SocketWire {
    pub(super) fn open(place: &SourceAddress, facts: &Facts) -> Result<(SocketWire, String), OpenError> {
        let listening = open::listen(place)?;
        let allow = match place {
            SourceAddress::Udp { allow, .. } => allow.clone(),
            SourceAddress::Unix(_) | SourceAddress::Shm { .. } | SourceAddress::Cudaq { .. } => Vec::new(),
        };
        board::set(&facts.board.source().buffer_bytes, batch::prepare(listening.socket.as_fd(), BUFFER_BYTES));
        let name = listening.name.clone();
        let wire = SocketWire {
            listening,
            allow,
            incoming: Box::new(Batch::new(DATAGRAM_BYTES_MAX)),
            is_single: true,
            is_resting: false,
            next_look: Ticks(0),
            outgoing: Outgoing::new(DATAGRAM_BYTES_MAX),
            peers: Peers::new(),
            epoch: facts.epoch,
            streams: facts.streams,
            observables: facts.observables,
            width: facts.width,
            silence: facts.silence,
            board: Arc::clone(&facts.board),
        };
        Ok((wire, name))
    }

    fn block(&self) -> &SourceBlock {
        self.board.source()
    }

    /// Takes the datagram at `place`.
    fn take(&mut self, place: usize, intake: &mut Intake, now: Ticks, rate: TickRate) {
        let block = self.board.source();
        let (datagram, address) = self.incoming.datagram(place);
        if !is_allowed(&self.allow, address) {
            board::add(&block.foreign, 1);
            return;
        }
        let Some(request) = packet::request(datagram) else {
            board::add(&block.malformed, 1);
            return;
        };
        let silent_since = Ticks(now.0.saturating_sub(self.silence.0));
        let session = match request {
            Request::Hello { session } | Request::Shot(Part { session, .. }) => session,
        };
        let Some(word) = self.peers.find(address, session, now, silent_since) else {
            board::add(&block.foreign, 1);
            return;
        };
        let part = match request {
            Request::Hello { session } => {
                // Without room the sender says hello again.
                if !self.outgoing.has_room() || !self.peers.welcomes(word, now, rate.ticks(WELCOME_EVERY)) {
                    return;
                }
                let (epoch, streams, observables) = (self.epoch, self.streams, self.observables);
                let Width { bits, encoding, soft_bytes } = self.width;
                let welcome = Welcome { epoch, session, streams, observables, bits, encoding, soft_bytes };
                self.outgoing.send_control(address, word, |room| packet::write_welcome(room, &welcome));
                return;
            }
            Request::Shot(part) => part,
        };
        if part.epoch != 0 && part.epoch != self.epoch {
            board::add(&block.other_epoch, 1);
            refuse_shot(&mut self.outgoing, (address, word), &part, self.epoch, Status::OtherEpoch as u16);
            return;
        }
        match intake.offer(&part, word, now) {
            Taken::Accepted => self.peers.of_word(word).into_iter().for_each(|peer| peer.shots += 1),
            Taken::GivenUp => board::add(&block.malformed, 1),
            Taken::UnknownStream => {
                refuse_shot(&mut self.outgoing, (address, word), &part, self.epoch, ErrorCode::UnknownStream as u16);
            }
            Taken::Other(verdict @ (Verdict::Malformed | Verdict::Soft)) => {
                board::add(&block.malformed, 1);
                let status = if verdict == Verdict::Soft { Status::Soft } else { Status::Malformed };
                refuse(&mut self.outgoing, (address, word), &part, self.epoch, status as u16);
            }
            // Not answered: these numbers were answered before, or never will be.
            Taken::Surplus | Taken::Other(Verdict::Duplicate | Verdict::Stale | Verdict::Part | Verdict::Whole) => {}
        }
    }

    /// Publishes how many datagrams the system has dropped for lack of room.
    fn publish_drops(&self) {
        if let Some(dropped) = batch::dropped(self.listening.socket.as_fd()) {
            board::set(&self.block().kernel_drops, u64::from(dropped));
        }
    }
}

impl Wire for SocketWire {
    fn receive(&mut self, intake: &mut Intake, frame: &Frame<'_>) -> u32 {
        if frame.now >= self.next_look {
            self.next_look = frame.now.plus(frame.clock().rate().ticks(LOOK_EVERY));
            self.publish_drops();
        }
        // Where one thread has all roles, the answer to a shot that came alone leaves in the frame after
        // it: sooner, if that frame does not ask a socket that is likely empty.
        if std::mem::take(&mut self.is_resting) {
            return 0;
        }
        let mut items = 0;
        for _ in 0..BATCHES {
            let room = intake.room();
            if room == 0 {
                board::add(&self.block().lane_waits, u64::from(!intake.is_full(frame.now)));
                break;
            }
            let limit = if self.is_single { 1 } else { BATCH };
            let taken = match self.incoming.receive(self.listening.socket.as_fd(), limit.min(room as usize)) {
                Ok(taken) => taken,
                Err(_) => {
                    board::add(&self.block().errors, 1);
                    break;
                }
            };
            let now = frame.ticks();
            (0..taken).for_each(|place| self.take(place, intake, now, frame.clock().rate()));
            items += taken as u32;
            (self.is_single, self.is_resting) = (taken == 0 || limit > 1 && taken == 1, taken == 1);
            if taken < BATCH || frame.is_spent(now) {
                break;
            }
        }
        if items > 0 {
            board::add(&self.block().received, u64::from(items));
            self.peers.publish(self.board.source());
        }
        items
    }

    fn has_room(&self) -> bool {
        self.outgoing.has_room()
    }

    fn answer(&mut self, answer: &Answer, _now: Ticks) {
        let Some(peer) = self.peers.of_word(answer.reply_to.peer) else {
            board::add(&self.board.source().answers_dropped, 1);
            return;
        };
        let answered = Answered {
            epoch: self.epoch,
            session: peer.session,
            sequence: answer.reply_to.sequence,
            stream: answer.stream,
            status: status_of(answer),
            observables: self.observables,
            latency_ns: answer.latency_ns,
            flips: &[],
        };
        let (to, row) = (&peer.address, answer.reply_to.peer);
        self.outgoing.put(to, row, |room| packet::write_answer(room, &answered, &answer.observables));
    }

    fn flush(&mut self, now: Ticks, rate: TickRate) {
        self.outgoing.flush(self.listening.socket.as_fd(), &mut self.peers, self.board.source(), now, rate);
    }

    fn is_idle(&self) -> bool {
        self.outgoing.is_idle()
    }

    fn open(&mut self) {}

    fn close(&mut self) {
        self.peers.publish(self.board.source());
        self.publish_drops();
    }
}

/// Refuses a shot of which every part would be refused: once, with its last part.
fn refuse_shot(outgoing: &mut Outgoing, to: (&Address, u64), part: &Part<'_>, epoch: u64, status: u16) {
    if part.position == Position::Last {
        refuse(outgoing, to, part, epoch, status);
    }
}

/// Refuses a part, with the reason as the status. `to`: the sender's address and row.
fn refuse(outgoing: &mut Outgoing, (to, row): (&Address, u64), part: &Part<'_>, epoch: u64, status: u16) {
    let Part { session, sequence, stream, .. } = *part;
    let answered = Answered { epoch, session, sequence, stream, status, observables: 0, latency_ns: 0, flips: &[] };
    outgoing.send_control(to, row, |room| packet::write_answer(room, &answered, &[]));
}
