//! The wire of a source that speaks CUDA-Q's protocol: sockets in, sessions and replies behind them.
//!
//! Owns a socket for each port, a [`Session`] for each decoder, the clients' rows, and the
//! [`Queue`] of replies. Runs on the first silo's feed's thread. Bounds: two batches of datagrams a
//! frame, [`QUEUE_BYTES`] of waiting calls; a full queue takes no further datagrams, and the system
//! keeps them until its buffer is full. Never blocks, never allocates once open, never replies to
//! clients that are not allowed.
//!
//! # Why the wire asks the system which ports have datagrams
//! With a port for each decoder, a call for each of them would cost more than a decode. One call
//! says which of them have any.

use super::frame::{self, Call, Function, HEADER_BYTES, SLOT_BYTES_MAX, Status};
use super::numbers::Numbers;
use super::queue::{Asked, Content, Queue};
use super::session::{Session, Verdict, VolumePart};
use crate::board::{self, Board, StreamSourceBlock};
use crate::fault::FaultCode;
use crate::feed::address::{Network, OpenError, SourceAddress};
use crate::feed::assembly::Verdict as PartVerdict;
use crate::feed::intake::{Intake, Taken};
use crate::feed::packet::{Encoding, Part, Position};
use crate::feed::socket::batch::{self, Address, BATCH, Batch};
use crate::feed::socket::open::{self, Listening};
use crate::feed::socket::outgoing::Outgoing;
use crate::feed::socket::peers::{PEERS_MAX, Peers, internet, is_allowed, row};
use crate::feed::socket::{BATCHES, BUFFER_BYTES, LOOK_EVERY};
use crate::feed::wire::{Facts, Wire};
use crate::hot::Frame;
use crate::pipe::Answer;
use crate::pipe::samples::SampleWriter;
use crate::streams::DecoderState;
use crate::units::{TickRate, Ticks};
use rustix::event::{Timespec, epoll};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Bytes of waiting calls, at most [`QUEUED_MAX`] of them and at least [`QUEUED_MIN`].
const QUEUE_BYTES: usize = 1 << 20;
const QUEUED_MAX: usize = 1024;
const QUEUED_MIN: usize = 2 * BATCH;
/// Smallest slot: the longest call without measurements, and one byte of them.
const SLOT_BYTES_MIN: u32 = 57;
/// All senders have one session each: the protocol has none.
const SESSION: u64 = 1;

struct Port {
    listening: Listening,
    outgoing: Outgoing,
}

/// The wire of such a source.
pub(in crate::feed) struct CudaqWire {
    ports: Vec<Port>,
    /// Says which ports have datagrams; `None` for one port.
    ready: Option<OwnedFd>,
    allow: Vec<Network>,
    slot_bytes: u32,
    incoming: Box<Batch>,
    /// Whether the next call takes one datagram: the last call for many took at most one, or the
    /// last one for one took none.
    is_single: bool,
    /// Whether the next frame leaves the ports alone: a decode is under way, and the last call took
    /// one datagram.
    is_resting: bool,
    next_look: Ticks,
    /// Numbers of the decoders, sorted, with their streams.
    decoders: Box<[(i64, usize)]>,
    sessions: Box<[Session]>,
    /// For each session: how many calls wait for it.
    waiting: Box<[u32]>,
    /// Sessions that decode.
    decoding: u64,
    /// Whether waiting calls need the intake.
    is_resumable: bool,
    is_closed: bool,
    /// When the last call or answer came.
    heard: Ticks,
    queue: Queue,
    peers: Peers,
    numbers: Box<[Numbers; PEERS_MAX]>,
    result_bytes: usize,
    silence: Ticks,
    /// Takes a copy of each volume.
    measured: Option<SampleWriter>,
    board: Arc<Board>,
}

/// What a call leads to.
enum Outcome {
    Reply(Content),
    /// The reply waits for the answer to the volume.
    Decodes,
}

/// The way of a call's measurements into the engine.
struct Way<'a> {
    stream: usize,
    peer: u64,
    now: Ticks,
    /// `None`: the engine takes no more measurements.
    intake: Option<&'a mut Intake>,
}

impl Way<'_> {
    /// Takes a call whose session does not decode.
    fn run(mut self, session: &mut Session, call: &Call<'_>, result_bytes: usize) -> Outcome {
        let verdict = match call {
            Call::Enqueue { .. } if self.intake.is_none() => {
                session.fail();
                Verdict::Reply(Status::Ok)
            }
            _ => session.call(call),
        };
        let outcome = match verdict {
            Verdict::Reply(status) => Outcome::Reply(Content::bare(status)),
            Verdict::Corrections(result) => Outcome::Reply(Content { status: Status::Ok, result, result_bytes }),
            Verdict::Part if self.pass_on(session) => Outcome::Reply(Content::bare(Status::Ok)),
            Verdict::LastPart if self.pass_on(session) => Outcome::Decodes,
            Verdict::Part | Verdict::LastPart => {
                session.fail();
                Outcome::Reply(Content::bare(Status::Ok))
            }
        };
        if let Some(intake) = self.intake
            && session.takes_given_up()
        {
            intake.give_up(self.stream as u32, self.now);
        }
        outcome
    }

    /// Passes on what the session has; returns whether it was taken.
    fn pass_on(&mut self, session: &mut Session) -> bool {
        let Some(intake) = &mut self.intake else { return false };
        let VolumePart { volume, part, is_last, first_bit, bits, packed } = session.part();
        let part = Part {
            epoch: 0,
            session: SESSION,
            sequence: volume,
            stream: self.stream as u32,
            round: part,
            position: if is_last { Position::Last } else { Position::Inner },
            first_bit,
            bits,
            encoding: Encoding::Bits,
            payload: packed,
            soft: &[],
        };
        let taken = intake.offer(&part, self.peer, self.now);
        matches!(taken, Taken::Accepted | Taken::Other(PartVerdict::Whole | PartVerdict::Part))
    }
}

/// The streams of the decoders, sorted by the decoders' numbers.
fn decoders_of(place: &SourceAddress, ids: &[i64], facts: &Facts) -> Result<Box<[(i64, usize)]>, OpenError> {
    let refused = |found, expected, remedy| OpenError { place: place.to_string(), found, expected, remedy };
    let streams = facts.streams as usize;
    if !ids.is_empty() && ids.len() != streams {
        let found = format!("{} decoders for {streams} streams", ids.len());
        return Err(refused(found, "a stream for each decoder", "leave the number of streams out"));
    }
    let number = |stream: usize| ids.get(stream).copied().unwrap_or(stream as i64);
    let mut decoders: Vec<(i64, usize)> = (0..streams).map(|stream| (number(stream), stream)).collect();
    decoders.sort_unstable();
    match decoders.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(decoders.into()),
        Some(pair) => {
            Err(refused(format!("decoder {} twice", pair[0].0), "a number of its own for each decoder", "renumber one"))
        }
    }
}

fn check_slot(place: &SourceAddress, slot_bytes: u32, result_bytes: usize) -> Result<(), OpenError> {
    let refused = |found, expected, remedy| OpenError { place: place.to_string(), found, expected, remedy };
    if !(SLOT_BYTES_MIN..=SLOT_BYTES_MAX).contains(&slot_bytes) {
        return Err(refused(format!("slots of {slot_bytes} bytes"), "57..=65507 bytes", "256 is common"));
    }
    if HEADER_BYTES + result_bytes > slot_bytes as usize {
        let found = format!("slots of {slot_bytes} bytes and {result_bytes} bytes of corrections");
        return Err(refused(found, "slots of 24 bytes more than the corrections", "raise the slot size of both ends"));
    }
    Ok(())
}

impl CudaqWire {
    pub(in crate::feed) fn open(place: &SourceAddress, facts: Facts) -> Result<(CudaqWire, String), OpenError> {
        let SourceAddress::Cudaq { at, allow, slot_bytes, decoders: ids } = place else {
            unreachable!("the link opens this wire for such a place only")
        };
        let result_bytes = facts.observables.div_ceil(8) as usize;
        check_slot(place, *slot_bytes, result_bytes)?;
        let decoders = decoders_of(place, ids, &facts)?;
        let count = if at.port() == 0 { decoders.len() } else { 1 };
        let bytes = *slot_bytes as usize;
        let open = |_| Ok(Port { listening: open::listen(place)?, outgoing: Outgoing::new(bytes) });
        let ports = (0..count).map(open).collect::<Result<Vec<Port>, OpenError>>()?;
        let ready = (count > 1).then(|| watch(&ports)).transpose().map_err(|error| OpenError {
            place: place.to_string(),
            found: error.to_string(),
            expected: "a descriptor for each port",
            remedy: "raise the limit of open files (ulimit -n)",
        })?;
        for port in &ports {
            let granted = batch::prepare(port.listening.socket.as_fd(), BUFFER_BYTES);
            board::set(&facts.board.source().buffer_bytes, granted);
        }
        let name = ports[0].listening.name.clone();
        let streams = decoders.len();
        let wire = CudaqWire {
            ports,
            ready,
            allow: allow.clone(),
            slot_bytes: *slot_bytes,
            incoming: Box::new(Batch::new(bytes)),
            is_single: true,
            is_resting: false,
            next_look: Ticks(0),
            decoders,
            sessions: (0..streams).map(|_| Session::new(facts.width.bits, facts.observables)).collect(),
            waiting: vec![0; streams].into(),
            decoding: 0,
            is_resumable: false,
            is_closed: false,
            heard: Ticks(0),
            queue: Queue::new((QUEUE_BYTES / bytes).clamp(QUEUED_MIN, QUEUED_MAX), bytes),
            peers: Peers::new(),
            numbers: Box::new([Numbers::default(); PEERS_MAX]),
            result_bytes,
            silence: facts.silence,
            measured: facts.measured,
            board: facts.board,
        };
        wire.publish_decoders();
        Ok((wire, name))
    }

    /// Numbers and ports of the decoders.
    fn publish_decoders(&self) {
        let port_of = |listening: &Listening| listening.name.rsplit(':').next().and_then(|port| port.parse().ok());
        for (number, stream) in &self.decoders {
            let port = &self.ports[if self.ports.len() > 1 { *stream } else { 0 }];
            let block = self.board.stream_source(*stream);
            board::set(&block.decoder, number.cast_unsigned());
            board::set(&block.port, port_of(&port.listening).unwrap_or(0));
        }
    }

    /// Takes the datagram at `place`, which came through `port`.
    fn take(&mut self, place: usize, port: usize, intake: &mut Intake, now: Ticks) {
        let block = self.board.source();
        let (datagram, address) = self.incoming.datagram(place);
        if !is_allowed(&self.allow, address) {
            board::add(&block.foreign, 1);
            return;
        }
        // No call of a known function: without a reply and without an effect, whatever sent it.
        let Some(request) = frame::request(datagram, self.slot_bytes) else {
            board::add(&block.malformed, 1);
            return;
        };
        let silent_since = Ticks(now.0.saturating_sub(self.silence.0));
        let Some(peer) = self.peers.find(address, SESSION, now, silent_since) else {
            board::add(&block.foreign, 1);
            return;
        };
        self.peers.of_word(peer).into_iter().for_each(|peer| peer.shots += 1);
        if self.numbers[row(peer)].skips(peer, request.id) {
            self.board.fault(0, FaultCode::RequestsMissing, now, sender(address));
        }
        let asked = Asked { id: request.id, timestamp: request.timestamp, port, peer, bytes: datagram.len() };
        let Some(decoder) = request.decoder else {
            self.reply(None, asked, Content::bare(Status::BadRequest));
            return;
        };
        let Ok(found) = self.decoders.binary_search_by_key(&decoder, |(number, _)| *number) else {
            board::add(&block.unknown_streams, 1);
            self.reply(None, asked, Content::bare(Status::InvalidDecoder));
            return;
        };
        let session = self.decoders[found].1;
        self.heard = now;
        count_call(self.board.stream_source(session), &request.call, peer);
        if self.sessions[session].state() == DecoderState::Decoding || self.waiting[session] > 0 {
            self.queue.wait_for_session(asked, session, datagram);
            self.waiting[session] += 1;
            return;
        }
        let way = Way { stream: session, peer, now, intake: Some(intake) };
        match way.run(&mut self.sessions[session], &request.call, self.result_bytes) {
            Outcome::Reply(content) => self.reply(Some(session), asked, content),
            Outcome::Decodes => {
                self.queue.wait_for_decode(asked, session);
                self.begin_decode(session);
            }
        }
        self.publish_state(session);
    }

    /// Takes the calls that wait for `session`, in order, until one completes a volume. Without an
    /// intake, measurements wait for the next frame, unless no frame will have one.
    fn resume(&mut self, session: usize, mut intake: Option<&mut Intake>, now: Ticks) {
        while self.waiting[session] > 0 && self.sessions[session].state() != DecoderState::Decoding {
            let Some((place, asked, datagram)) = self.queue.waiting_call(session) else { return };
            let Some(request) = frame::request(datagram, self.slot_bytes) else { return };
            let may_pass_on = match &intake {
                Some(intake) => intake.room_and_surplus(now) > 0,
                None => self.is_closed || !matches!(request.call, Call::Enqueue { .. }),
            };
            if !may_pass_on {
                self.is_resumable = true;
                return;
            }
            let way = Way { stream: session, peer: asked.peer, now, intake: intake.as_deref_mut() };
            match way.run(&mut self.sessions[session], &request.call, self.result_bytes) {
                Outcome::Reply(content) => {
                    count_status(self.board.stream_source(session), content.status);
                    self.queue.replied(place, content);
                }
                Outcome::Decodes => {
                    self.queue.decodes(place);
                    self.begin_decode(session);
                }
            }
            self.waiting[session] -= 1;
        }
        self.publish_state(session);
    }

    /// Takes the calls that wait for any session that does not decode.
    fn resume_all(&mut self, mut intake: Option<&mut Intake>, now: Ticks) {
        self.is_resumable = false;
        for session in 0..self.sessions.len() {
            if self.waiting[session] > 0 {
                self.resume(session, intake.as_deref_mut(), now);
            }
        }
    }

    fn reply(&mut self, session: Option<usize>, asked: Asked, content: Content) {
        session.into_iter().for_each(|session| count_status(self.board.stream_source(session), content.status));
        self.queue.reply(asked, content);
    }

    /// The volume of `session` is on its way to the decoder.
    fn begin_decode(&mut self, session: usize) {
        if let Some(measured) = &mut self.measured {
            let volume = self.sessions[session].volume();
            let has_room = measured.offer(|record| {
                for (word, bytes) in record.iter().zip(volume.chunks(8)) {
                    word.store(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
                }
            });
            board::add(&self.board.source().unrecorded, u64::from(!has_room));
        }
        self.decoding += 1;
        let most = &self.board.source().decoding_max;
        board::set(most, board::get(most).max(self.decoding));
    }

    fn publish_state(&self, session: usize) {
        board::set(&self.board.stream_source(session).decoder_state, self.sessions[session].state().code());
    }

    /// Takes the datagrams of `port`; returns how many.
    fn receive_from(&mut self, port: usize, intake: &mut Intake, frame: &Frame<'_>) -> usize {
        // After the last shot, clients still ask for its corrections.
        let room = self.queue.room().min(intake.room_and_surplus(frame.now) as usize);
        if room == 0 {
            board::add(&self.board.source().lane_waits, u64::from(!intake.is_full(frame.now)));
            return 0;
        }
        let limit = if self.is_single { 1 } else { BATCH };
        let socket = self.ports[port].listening.socket.as_fd();
        let Ok(taken) = self.incoming.receive(socket, limit.min(room)) else {
            board::add(&self.board.source().errors, 1);
            return 0;
        };
        let now = frame.ticks();
        (0..taken).for_each(|place| self.take(place, port, intake, now));
        self.is_single = taken == 0 || limit > 1 && taken == 1;
        taken
    }

    /// The ports that have datagrams, at most [`BATCHES`] of them; a port that is alone always
    /// counts.
    fn ready(&self) -> ([usize; BATCHES], usize) {
        let Some(ready) = &self.ready else { return ([0; BATCHES], BATCHES) };
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; BATCHES];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let found = epoll::wait(ready, &mut events, Some(&at_once)).unwrap_or(0);
        (events.map(|event| event.data.u64() as usize), found)
    }

    fn publish_drops(&self) {
        let dropped = |port: &Port| batch::dropped(port.listening.socket.as_fd());
        let dropped: u64 = self.ports.iter().filter_map(dropped).map(u64::from).sum();
        board::set(&self.board.source().kernel_drops, dropped);
    }
}

impl Wire for CudaqWire {
    fn receive(&mut self, intake: &mut Intake, frame: &Frame<'_>) -> u32 {
        if frame.now >= self.next_look {
            self.next_look = frame.now.plus(frame.clock().rate().ticks(LOOK_EVERY));
            self.publish_drops();
            self.measured.iter_mut().for_each(SampleWriter::hand_over);
        }
        if self.is_resumable {
            self.resume_all(Some(intake), frame.now);
        }
        if std::mem::take(&mut self.is_resting) {
            return 0;
        }
        let (ports, count) = self.ready();
        let mut items = 0;
        for port in &ports[..count] {
            let taken = self.receive_from(*port, intake, frame);
            items += taken;
            // A port that is alone has no more.
            if taken < BATCH && self.ready.is_none() || frame.is_spent(frame.ticks()) {
                break;
            }
        }
        if items > 0 {
            // Where one thread has all roles, the answer leaves sooner if the frame after the call
            // does not ask a port that is likely empty.
            self.is_resting = items == 1 && self.decoding > 0;
            let block = self.board.source();
            board::add(&block.received, items as u64);
            self.peers.publish(block);
            // What needs no decode is answered in the same look.
            self.flush(frame.now, frame.clock().rate());
        }
        items as u32
    }

    fn has_room(&self) -> bool {
        true
    }

    fn answer(&mut self, answer: &Answer, now: Ticks) {
        let session = answer.stream as usize;
        let is_trusted = answer.error.is_none() && !answer.abstained;
        let found = is_trusted.then_some(&answer.observables);
        if self.sessions[session].answer(answer.reply_to.sequence, found) {
            self.heard = now;
            self.decoding -= 1;
            count_status(self.board.stream_source(session), Status::Ok);
            self.queue.decoded(session);
            self.resume(session, None, now);
        }
    }

    fn flush(&mut self, now: Ticks, rate: TickRate) {
        let CudaqWire { ports, queue, peers, board, slot_bytes, .. } = self;
        let block = board.source();
        let mut sends = !queue.is_empty();
        while std::mem::take(&mut sends) {
            queue.send(row, |asked, content| {
                let outgoing = &mut ports[asked.port].outgoing;
                if !outgoing.has_room() {
                    // Tried again where the full batch has left.
                    sends = true;
                    return false;
                }
                // A client whose row another one has taken by now gets no reply.
                let Some(to) = peers.of_word(asked.peer).map(|peer| peer.address) else {
                    board::add(&block.answers_dropped, 1);
                    return true;
                };
                outgoing.put(&to, asked.peer, |room| {
                    let head = (asked.id, asked.timestamp, content.status);
                    let padded = asked.bytes.min(*slot_bytes as usize);
                    frame::write_reply(room, head, &content.result, content.result_bytes, padded)
                });
                true
            });
            for port in &mut *ports {
                port.outgoing.flush(port.listening.socket.as_fd(), peers, block, now, rate);
            }
            sends &= ports.iter().all(|port| port.outgoing.is_idle());
        }
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.ports.iter().all(|port| port.outgoing.is_idle())
    }

    fn is_awaited(&self, now: Ticks) -> bool {
        now.since(self.heard) < self.silence && self.sessions.iter().any(Session::is_awaited)
    }

    fn open(&mut self) {
        (0..self.sessions.len()).for_each(|session| self.publish_state(session));
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.resume_all(None, Ticks(0));
        self.peers.publish(self.board.source());
        self.publish_drops();
        self.measured.iter_mut().for_each(SampleWriter::hand_over);
    }
}

/// A descriptor that says which ports have datagrams.
fn watch(ports: &[Port]) -> rustix::io::Result<OwnedFd> {
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, port) in (0..).zip(ports) {
        let data = epoll::EventData::new_u64(number);
        epoll::add(&ready, &port.listening.socket, data, epoll::EventFlags::IN)?;
    }
    Ok(ready)
}

fn count_call(block: &StreamSourceBlock, call: &Call<'_>, peer: u64) {
    let count = match call.function() {
        Function::Enqueue => &block.enqueues,
        Function::Corrections => &block.gets,
        Function::Reset => &block.resets,
    };
    board::add(count, 1);
    board::set(&block.caller, row(peer) as u64 + 1);
}

fn count_status(block: &StreamSourceBlock, status: Status) {
    let count = match status {
        Status::Ok => &block.replies_ok,
        Status::BadRequest => &block.replies_bad_request,
        Status::InternalError => &block.replies_internal_error,
        Status::NotReady => &block.replies_not_ready,
        // No decoder has it.
        Status::InvalidDecoder => return,
    };
    board::add(count, 1);
}

/// A sender's address as a fault's detail: the IPv4 address, then 16 bits of the port.
fn sender(address: &Address) -> u64 {
    match internet(address) {
        Some((IpAddr::V4(ip), port)) => u64::from(ip.to_bits()) << 16 | u64::from(port),
        Some((IpAddr::V6(_), port)) => u64::from(port),
        None => 0,
    }
}
