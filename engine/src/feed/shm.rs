//! A source in shared memory: another process writes shots into a ring and reads the answers there.
//!
//! Owns the region and the engine's end of its ring. Runs on the first silo's feed's thread. Bounds:
//! 64 slots read in a frame; a look at the client each millisecond. `engine/shm/README.md` specifies
//! the region byte by byte for authors of clients.
//!
//! Nothing in the region is trusted. A shot is copied once and only the copy is read; values,
//! numbers and streams are checked; the engine's own memory records which slots are held. A
//! client that breaks the rules gets an error for that slot or blocks itself. One risk remains:
//! a process that may write the file may also truncate it, which ends the engine with SIGBUS, as a
//! kill would. So the file belongs to this user alone (0600) unless the profile names a group.
//!
//! # Why an outer ring and one copy
//! See [`pinwheel_edge::slot::outside`]. The copy of a shot of distance 5 is three words of one cache
//! line; the bench area `live` measures the whole path against bare round trips.

pub mod layout;
#[expect(unsafe_code, reason = "maps the region")]
pub mod region;

use super::address::{OpenError, SourceAddress};
use super::assembly::Verdict;
use super::intake::{Intake, Taken};
use super::packet::{Part, Position, Status};
use super::wire::{Facts, Wire, status_of};
use crate::board::{self, Board};
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::Answer;
use crate::units::{Nanos, TickRate, Ticks};
use layout::{Shape, client as from_client, engine as from_engine};
use pinwheel_edge::slot::outside::EngineEnd;
use pinwheel_edge::slot::word::ErrorCode;
use region::Region;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

/// Slots of the ring.
pub const SLOTS: u32 = 1024;
/// How often the engine looks for another client and for a sign of life of this one, and gives its
/// own: the client writes those words as often as it likes, and each look takes their line from it.
const LOOK_EVERY: Nanos = Nanos(1_000_000);

/// The wire of a shared-memory source.
pub(super) struct RegionWire {
    region: Region,
    shape: Shape,
    end: EngineEnd,
    /// Number of clients that have used the ring.
    attached: u64,
    /// The session that has the ring.
    granted: u64,
    heartbeat: u64,
    looks: u64,
    next_look: Ticks,
    /// The copied shot after its head: sequence, payload.
    shot: Vec<u64>,
    /// An answer after its head: sequence, stream, latency, observables.
    record: Vec<u64>,
    board: Arc<Board>,
}

/// Checks that no other engine has the region at `place`; removes the file of a dead engine.
pub(super) fn can_make(place: &SourceAddress, boards: &Path) -> Result<(), OpenError> {
    let SourceAddress::Shm { name, .. } = place else { return Ok(()) };
    region::is_free(boards, name).map_err(|error| OpenError { place: place.to_string(), ..error })
}

impl RegionWire {
    pub(super) fn open(place: &SourceAddress, facts: &Facts, boards: &Path) -> Result<(RegionWire, String), OpenError> {
        let shape = Shape {
            slots: SLOTS,
            bits: facts.width.bits,
            encoding: facts.width.encoding,
            streams: facts.streams,
            observables: facts.observables,
            soft_bytes: facts.width.soft_bytes,
        };
        let SourceAddress::Shm { name, group } = place else {
            let (found, expected) = ("it is a socket".to_owned(), "shared memory");
            return Err(OpenError { place: place.to_string(), found, expected, remedy: "name shm:NAME" });
        };
        let region = Region::create(boards, name, group.as_deref(), &shape, facts.epoch)
            .map_err(|error| OpenError { place: place.to_string(), ..error })?;
        let wire = RegionWire {
            region,
            shape,
            end: EngineEnd::new(SLOTS as usize),
            attached: 0,
            granted: 0,
            heartbeat: 0,
            looks: 0,
            next_look: Ticks(0),
            shot: vec![0; shape.shot_words() - 1],
            record: vec![0; shape.answer_words() - 1],
            board: Arc::clone(&facts.board),
        };
        Ok((wire, place.to_string()))
    }

    /// Checks whether another client requests the ring, and whether its present client is alive; tells
    /// it that the engine is.
    fn look(&mut self, now: Ticks) {
        self.looks += 1;
        self.region.word(from_engine::HEARTBEAT).store(self.looks, Ordering::Relaxed);
        let block = self.board.source();
        // Relaxed: each word stands alone; U3 and U1 order what a client writes after it was
        // granted the ring.
        let word = |at: usize| self.region.word(at).load(Ordering::Relaxed);
        let (session, heartbeat) = (word(from_client::SESSION), word(from_client::HEARTBEAT));
        let is_new = session != 0 && session != self.granted;
        if is_new {
            (self.attached, self.granted) = (self.attached + 1, session);
            board::set(&block.client_pid, word(from_client::PID));
            board::set(&block.attached, self.attached);
            self.end.grant(&self.region.outside(&self.shape), session);
        }
        if is_new || heartbeat != self.heartbeat {
            self.heartbeat = heartbeat;
            board::set(&block.client_seen, now.0);
        }
    }

    /// Takes the shot at the cursor, if there is one; when that was.
    fn take(&mut self, intake: &mut Intake, frame: &Frame<'_>) -> Option<Ticks> {
        let (slot, named) = self.end.take(&self.region.outside(&self.shape), &mut self.shot)?;
        let now = frame.ticks();
        // Where shots may have soft bytes, a bit beside the stream says whether this one has.
        let stream = if self.shape.soft_bytes == 0 { named } else { named & !layout::SOFT };
        let refused = match part(&self.shot, (stream, stream != named), self.attached, &self.shape) {
            None => Some(Status::Malformed as u16),
            Some(part) => {
                let peer = self.attached << 32 | u64::from(slot);
                match intake.offer(&part, peer, now) {
                    Taken::Accepted => None,
                    Taken::UnknownStream => Some(ErrorCode::UnknownStream as u16),
                    Taken::Other(Verdict::Duplicate) => Some(Status::Duplicate as u16),
                    Taken::Other(Verdict::Stale) => Some(Status::Stale as u16),
                    // Shots in a region are whole, and none is taken without room.
                    Taken::GivenUp
                    | Taken::Surplus
                    | Taken::Other(Verdict::Malformed | Verdict::Soft | Verdict::Part | Verdict::Whole) => {
                        Some(Status::Malformed as u16)
                    }
                }
            }
        };
        if let Some(code) = refused {
            board::add(&self.board.source().malformed, u64::from(code == Status::Malformed as u16));
            self.record.fill(0);
            (self.record[0], self.record[1]) = (self.shot[0], u64::from(stream));
            self.put(slot, code);
        }
        Some(now)
    }

    /// Writes the answer in `record` for `slot`; returns whether the slot was held.
    fn put(&mut self, slot: u32, status: u16) -> bool {
        self.end.answer(&self.region.outside(&self.shape), slot, u32::from(status), &self.record)
    }
}

/// A copied shot, of a stream and with or without soft bytes, as a part of `session`; `None` if a value violates the
/// specification.
pub fn part<'a>(shot: &'a [u64], (stream, has_soft): (u32, bool), session: u64, shape: &Shape) -> Option<Part<'a>> {
    let (sequence, rest) = shot.split_first()?;
    let (payload, soft) = rest.split_at_checked(shape.payload_words())?;
    let (payload, padding) = payload.as_bytes().split_at_checked(shape.payload_bytes())?;
    let (soft, soft_padding) = match has_soft {
        false => Default::default(),
        true => soft.as_bytes().split_at_checked(shape.soft_bytes as usize)?,
    };
    let part = Part {
        epoch: 0,
        session,
        sequence: *sequence,
        stream,
        round: 0,
        position: Position::Last,
        first_bit: 0,
        bits: shape.bits,
        encoding: shape.encoding,
        payload,
        soft,
    };
    (part.is_binary() && padding.iter().chain(soft_padding).all(|byte| *byte == 0)).then_some(part)
}

impl Wire for RegionWire {
    fn receive(&mut self, intake: &mut Intake, frame: &Frame<'_>) -> u32 {
        if frame.now >= self.next_look {
            self.next_look = frame.now.plus(frame.clock().rate().ticks(LOOK_EVERY));
            self.look(frame.now);
        }
        let mut items = 0;
        while items < BUDGET_ITEMS && self.attached > 0 {
            if intake.room() == 0 {
                board::add(&self.board.source().lane_waits, u64::from(!intake.is_full(frame.now)));
                break;
            }
            let Some(now) = self.take(intake, frame) else { break };
            items += 1;
            if frame.is_spent(now) {
                break;
            }
        }
        if items > 0 {
            board::add(&self.board.source().received, u64::from(items));
        }
        items
    }

    fn has_room(&self) -> bool {
        true
    }

    fn answer(&mut self, answer: &Answer, _now: Ticks) {
        let peer = answer.reply_to.peer;
        let slot = (peer & 0xffff_ffff) as u32;
        let head = [answer.reply_to.sequence, u64::from(answer.stream), answer.latency_ns];
        self.record[..head.len()].copy_from_slice(&head);
        let flips = self.record.len() - head.len();
        self.record[head.len()..].copy_from_slice(&answer.observables[..flips]);
        let status = status_of(answer);
        // A client that has left, and whose ring another client has, gets no answer.
        let is_delivered = peer >> 32 == self.attached && self.put(slot, status);
        let block = self.board.source();
        board::add(if is_delivered { &block.answered } else { &block.answers_dropped }, 1);
    }

    fn flush(&mut self, _now: Ticks, _rate: TickRate) {}

    fn is_idle(&self) -> bool {
        true
    }

    fn open(&mut self) {
        self.region.word(from_engine::STATE).store(layout::STATE_LIVE, Ordering::Relaxed);
    }

    fn close(&mut self) {
        self.region.word(from_engine::STATE).store(layout::STATE_CLOSED, Ordering::Relaxed);
    }
}
