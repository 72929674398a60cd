//! A source behind a socket: takes datagrams, and sends answers back to their senders.
//!
//! Owns the socket, the senders' rows and both batches. Runs on the first silo's feed's thread.
//! Bounds: two batches of datagrams and of answers a frame; an answer that a sender does not take
//! within [`SEND_LIMIT`] is dropped and counted. Never blocks, never allocates once open, never
//! answers senders that are not allowed.
//!
//! The system charges unread answers to this one socket: a sender on a Unix socket that does not
//! read can use up its whole buffer. Until that sender ends, the other senders' answers are dropped
//! too. The engine continues, and the board shows the drops.

#[expect(unsafe_code, reason = "one system call for many datagrams")]
mod batch;
mod open;
mod peers;

use super::address::{Network, OpenError, SourceAddress};
use super::assembly::{Verdict, Width};
use super::intake::{Intake, Taken};
use super::packet::{self, Answered, Part, Request, Status, Welcome};
use super::wire::{Facts, Wire, status_of};
use crate::board::layout::PEERS_SHOWN;
use crate::board::{self, Board, PeerRow, SourceBlock};
use crate::hot::Frame;
use crate::pipe::Answer;
use crate::units::{Nanos, TickRate, Ticks};
use batch::{Address, BATCH, Batch};
use open::Listening;
use peers::Peers;
use pinwheel_edge::slot::word::ErrorCode;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::Arc;

/// Bytes requested for the socket's buffers: some thousand shots.
const BUFFER_BYTES: i32 = 4 << 20;
/// Batches taken in one frame.
const BATCHES: usize = 2;
/// How often the system is asked what it dropped.
const LOOK_EVERY: Nanos = Nanos(10_000_000);
/// Longest wait for a sender to take its answer.
const SEND_LIMIT: Nanos = Nanos(2_000_000);

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

/// Answers that wait for the next system call.
struct Outgoing {
    batch: Box<Batch>,
    from: usize,
    to: usize,
    /// Row of each answer's sender; `None` for a refusal or a welcome.
    rows: [Option<u64>; BATCH],
    /// Since when the first waiting answer has been refused.
    refused_since: Option<Ticks>,
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
            SourceAddress::Unix(_) | SourceAddress::Shm { .. } => Vec::new(),
        };
        board::set(&facts.board.source().buffer_bytes, batch::prepare(listening.socket.as_fd(), BUFFER_BYTES));
        let name = listening.name.clone();
        let wire = SocketWire {
            listening,
            allow,
            incoming: Box::new(Batch::new()),
            is_single: true,
            is_resting: false,
            next_look: Ticks(0),
            outgoing: Outgoing {
                batch: Box::new(Batch::new()),
                from: 0,
                to: 0,
                rows: [None; BATCH],
                refused_since: None,
            },
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
    fn take(&mut self, place: usize, intake: &mut Intake, now: Ticks) {
        let block = self.board.source();
        let (datagram, address) = self.incoming.datagram(place);
        if !is_allowed(&self.allow, address) {
            board::add(&block.foreign, 1);
            return;
        }
        let Ok(request) = packet::request(datagram) else {
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
                let (epoch, streams, observables) = (self.epoch, self.streams, self.observables);
                let Width { bits, encoding, soft_bytes } = self.width;
                let welcome = Welcome { epoch, session, streams, observables, bits, encoding, soft_bytes };
                self.outgoing.send_control(address, |room| packet::write_welcome(room, &welcome));
                return;
            }
            Request::Shot(part) => part,
        };
        if part.epoch != 0 && part.epoch != self.epoch {
            board::add(&block.other_epoch, 1);
            self.outgoing.refuse(address, &part, self.epoch, Status::OtherEpoch as u16);
            return;
        }
        match intake.offer(&part, word, now) {
            Taken::Accepted => self.peers.of_word(word).into_iter().for_each(|peer| peer.shots += 1),
            Taken::UnknownStream => {
                self.outgoing.refuse(address, &part, self.epoch, ErrorCode::UnknownStream as u16);
            }
            Taken::Other(verdict @ (Verdict::Malformed | Verdict::Soft)) => {
                board::add(&block.malformed, 1);
                let status = if verdict == Verdict::Soft { Status::Soft } else { Status::Malformed };
                self.outgoing.refuse(address, &part, self.epoch, status as u16);
            }
            // Not answered: these numbers were answered before, or never will be.
            Taken::Other(Verdict::Duplicate | Verdict::Stale | Verdict::Part | Verdict::Whole) => {}
        }
    }

    /// Publishes how many datagrams the system has dropped for lack of room.
    fn publish_drops(&self) {
        if let Some(dropped) = batch::dropped(self.listening.socket.as_fd()) {
            board::set(&self.block().kernel_drops, u64::from(dropped));
        }
    }

    fn publish_peers(&mut self) {
        let block = self.board.source();
        board::set(&block.peers_count, self.peers.rows().len() as u64);
        for (row, peer) in block.peers.iter().zip(self.peers.rows()).take(PEERS_SHOWN) {
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
                board::add(&self.block().lane_waits, u64::from(!intake.is_full()));
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
            (0..taken).for_each(|place| self.take(place, intake, now));
            items += taken as u32;
            (self.is_single, self.is_resting) = (taken == 0 || limit > 1 && taken == 1, taken == 1);
            if taken < BATCH || frame.is_spent(now) {
                break;
            }
        }
        if items > 0 {
            board::add(&self.block().received, u64::from(items));
            self.publish_peers();
        }
        items
    }

    fn has_room(&self) -> bool {
        self.outgoing.to < BATCH
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
        let place = self.outgoing.to;
        let bytes = packet::write_answer(self.outgoing.batch.room(place), &answered, &answer.observables);
        self.outgoing.put(bytes, &peer.address, Some(answer.reply_to.peer));
    }

    fn flush(&mut self, now: Ticks, rate: TickRate) {
        // Each iteration sends or drops at least one answer, or ends.
        while self.outgoing.from < self.outgoing.to {
            let Outgoing { from, to, .. } = self.outgoing;
            let sent = self.outgoing.batch.send(self.listening.socket.as_fd(), from, to);
            let gone = sent.as_ref().map_or(0, |sent| *sent);
            (from..from + gone).for_each(|place| self.settle(place, Settled::Sent));
            self.outgoing.from += gone;
            if gone > 0 {
                self.outgoing.refused_since = None;
            } else if !self.gives_up(sent.is_err(), now, rate) {
                return;
            }
        }
        (self.outgoing.from, self.outgoing.to) = (0, 0);
    }

    fn is_idle(&self) -> bool {
        self.outgoing.from == self.outgoing.to
    }

    fn open(&mut self) {}

    fn close(&mut self) {
        self.publish_peers();
        self.publish_drops();
    }
}

/// Outcome of sending an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    Sent,
    Dropped,
}

impl SocketWire {
    /// The first waiting answer was not taken. Returns `true` if it is dropped, `false` if it stays
    /// for the next frame.
    fn gives_up(&mut self, is_refused: bool, now: Ticks, rate: TickRate) -> bool {
        let place = self.outgoing.from;
        let since = *self.outgoing.refused_since.get_or_insert(now);
        let row = self.outgoing.rows[place];
        let is_stuck = row.and_then(|word| self.peers.of_word(word)).is_some_and(|peer| peer.is_stuck);
        let never = is_refused || is_stuck || rate.nanos(now.since(since)) >= SEND_LIMIT;
        if never {
            self.settle(place, Settled::Dropped);
            self.outgoing.from += 1;
            self.outgoing.refused_since = None;
        }
        never
    }

    fn settle(&mut self, place: usize, how: Settled) {
        let Some(word) = self.outgoing.rows[place] else { return };
        let block = self.board.source();
        board::add(if how == Settled::Sent { &block.answered } else { &block.answers_dropped }, 1);
        let Some(peer) = self.peers.of_word(word) else { return };
        match how {
            Settled::Sent => (peer.answers, peer.is_stuck) = (peer.answers + 1, false),
            Settled::Dropped => (peer.dropped, peer.is_stuck) = (peer.dropped + 1, true),
        }
    }
}

impl Outgoing {
    fn put(&mut self, bytes: usize, to: &Address, row: Option<u64>) {
        self.batch.address(self.to, bytes, to);
        self.rows[self.to] = row;
        self.to += 1;
    }

    /// Sends a refusal or welcome; drops it without room, because the sender repeats its request.
    fn send_control(&mut self, to: &Address, write: impl FnOnce(&mut [u8]) -> usize) {
        if self.to < BATCH {
            let bytes = write(self.batch.room(self.to));
            self.put(bytes, to, None);
        }
    }

    fn refuse(&mut self, to: &Address, part: &Part<'_>, epoch: u64, status: u16) {
        let Part { session, sequence, stream, .. } = *part;
        let answered = Answered { epoch, session, sequence, stream, status, observables: 0, latency_ns: 0, flips: &[] };
        self.send_control(to, |room| packet::write_answer(room, &answered, &[]));
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from(bytes[at]) << 8 | u16::from(bytes[at + 1])
}

/// Address and port of a socket address; `None` for a path.
fn internet(address: &Address) -> Option<(IpAddr, u16)> {
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
fn is_allowed(allow: &[Network], address: &Address) -> bool {
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
