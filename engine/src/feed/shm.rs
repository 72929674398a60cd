//! A source in shared memory: another process writes shots into a ring and reads the answers there.
//!
//! Owns the region and the engine's end of its ring. Runs on the first silo's feed's thread. Bounds:
//! 64 slots read in a frame. `engine/shm/README.md` specifies the region byte by byte for authors of
//! clients.
//!
//! Nothing in the region is trusted. A shot is copied once and only the copy is read; offsets,
//! widths, numbers and streams are checked; the engine's own memory records which slots are held. A
//! client that breaks the rules gets an error word for that slot or blocks itself. One risk remains:
//! a process that may write the file may also truncate it, which ends the engine with SIGBUS, as a
//! kill would. So the file belongs to this user alone (0600) unless the profile names a group.
//!
//! # Why an outer ring and one copy
//! See [`pinwheel_edge::slot::outside`]. The copy of a shot of distance 5 is two words; the bench
//! area `live` measures the whole path against bare round trips.

pub mod layout;
#[expect(unsafe_code, reason = "maps the region")]
pub mod region;

use super::address::{OpenError, SourceAddress};
use super::assembly::{Verdict, Width};
use super::intake::{Intake, Taken};
use super::packet::{Encoding, Part, Position, Status};
use super::wire::{Facts, Wire};
use crate::board::{self, Board};
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::Answer;
use crate::units::{TickRate, Ticks};
use layout::{Shape, client as from_client, engine as from_engine};
use pinwheel_edge::slot::outside::EngineEnd;
use pinwheel_edge::slot::word::{self, ErrorCode};
use pinwheel_edge::sync::read_words;
use region::Region;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

/// Slots of the ring.
pub const SLOTS: u32 = 1024;

/// The wire of a shared-memory source.
pub(super) struct RegionWire {
    region: Region,
    shape: Shape,
    end: EngineEnd,
    /// Number of clients that have used the ring.
    attached: u64,
    heartbeat: u64,
    frames: u64,
    width: Width,
    /// The copied shot: its head, then its payload.
    shot: Vec<u64>,
    record: Vec<u64>,
    board: Arc<Board>,
}

/// Checks that no other engine has the region at `place`; removes the file of a dead engine.
pub(super) fn can_make(place: &SourceAddress) -> Result<(), OpenError> {
    let SourceAddress::Shm { name, .. } = place else { return Ok(()) };
    region::is_free(&crate::board::directory(), name).map_err(|error| OpenError { place: place.to_string(), ..error })
}

impl RegionWire {
    pub(super) fn open(place: &SourceAddress, facts: &Facts) -> Result<(RegionWire, String), OpenError> {
        let shape = Shape {
            slots: SLOTS,
            bits: facts.width.bits,
            encoding: facts.width.encoding,
            streams: facts.streams,
            observables: facts.observables,
        };
        let SourceAddress::Shm { name, group } = place else {
            let (found, expected) = ("it is a socket".to_owned(), "shared memory");
            return Err(OpenError { place: place.to_string(), found, expected, remedy: "name shm:NAME" });
        };
        let region = Region::create(&crate::board::directory(), name, group.as_deref(), &shape, facts.epoch)
            .map_err(|error| OpenError { place: place.to_string(), ..error })?;
        let wire = RegionWire {
            region,
            shape,
            end: EngineEnd::new(SLOTS as usize),
            attached: 0,
            heartbeat: 0,
            frames: 0,
            width: facts.width,
            shot: vec![0; shape.shot_words()],
            record: vec![0; shape.answer_words()],
            board: Arc::clone(&facts.board),
        };
        Ok((wire, place.to_string()))
    }

    /// Checks whether another client requests the ring, and whether its present client is alive.
    fn check_client(&mut self, now: Ticks) {
        let block = self.board.source();
        // Relaxed: each word stands alone; U5 and U1 order what a client writes after it was
        // granted the ring.
        let word = |at: usize| self.region.word(at).load(Ordering::Relaxed);
        let session = word(from_client::SESSION);
        if session != 0 && session != word(from_engine::GRANTED) {
            self.attached += 1;
            board::set(&block.client_pid, word(from_client::PID));
            board::set(&block.client_seen, now.0);
            board::set(&block.attached, self.attached);
            self.end.grant(&self.region.outside(&self.shape), session);
        }
        let heartbeat = self.region.word(from_client::HEARTBEAT).load(Ordering::Relaxed);
        if heartbeat != self.heartbeat {
            self.heartbeat = heartbeat;
            board::set(&block.client_seen, now.0);
        }
    }

    /// Takes the slot at the cursor; `false` if there is none.
    fn take(&mut self, intake: &mut Intake, now: Ticks) -> bool {
        let outside = self.region.outside(&self.shape);
        let Some((slot, at)) = self.end.arrived(&outside) else { return false };
        let place = self.shape.record_at(at);
        if let Some(place) = place {
            read_words(self.region.data(place, self.shot.len()), &mut self.shot);
        }
        self.end.hold(&outside);
        let sequence = self.shot[0];
        let refused = match place.map(|_| self.part()) {
            None => Some(ErrorCode::BadAddress as u16),
            Some(None) => Some(Status::Malformed as u16),
            Some(Some(part)) => {
                let peer = self.attached << 32 | u64::from(slot);
                match intake.offer(&part, peer, now) {
                    Taken::Accepted => None,
                    Taken::UnknownStream => Some(ErrorCode::UnknownStream as u16),
                    Taken::Other(Verdict::Duplicate) => Some(Status::Duplicate as u16),
                    Taken::Other(Verdict::Stale) => Some(Status::Stale as u16),
                    Taken::Other(Verdict::Malformed | Verdict::Part | Verdict::Whole) => Some(Status::Malformed as u16),
                }
            }
        };
        if let Some(code) = refused {
            let block = self.board.source();
            let is_shape = code == ErrorCode::BadAddress as u16 || code == Status::Malformed as u16;
            board::add(&block.malformed, u64::from(is_shape));
            self.record.fill(0);
            (self.record[0], self.record[1]) = (sequence, self.shot[1]);
            self.put(slot, layout::refusal(code));
        }
        true
    }

    /// The copied shot as a part; `None` if its head or a value violates the specification.
    fn part(&self) -> Option<Part<'_>> {
        let [sequence, stream, bits, flags, ..] = self.shot[..] else { return None };
        let payload = self.shot[layout::SHOT_HEAD_WORDS..].as_bytes();
        let bytes = match self.width.encoding {
            Encoding::Bits => self.width.bits.div_ceil(8) as usize,
            Encoding::Int32 => self.width.bits as usize * 4,
        };
        let (payload, padding) = payload.split_at_checked(bytes)?;
        let part = Part {
            epoch: 0,
            session: self.attached,
            sequence,
            stream: u32::try_from(stream).ok()?,
            round: 0,
            position: Position::Last,
            first_bit: 0,
            bits: self.width.bits,
            encoding: self.width.encoding,
            payload,
        };
        let is_sound = bits == u64::from(self.width.bits) && flags == 0 && part.is_binary();
        (is_sound && padding.iter().all(|byte| *byte == 0)).then_some(part)
    }

    /// Writes the answer in `record` for `slot`; returns whether the slot was held.
    fn put(&mut self, slot: u32, answer: u64) -> bool {
        let outside = self.region.outside(&self.shape);
        let place = self.shape.answer_at(slot % self.shape.slots);
        self.end.answer(&outside, slot, (self.region.data(place, self.record.len()), &self.record), answer)
    }
}

impl Wire for RegionWire {
    fn receive(&mut self, intake: &mut Intake, frame: &Frame<'_>) -> u32 {
        self.frames += 1;
        self.region.word(from_engine::HEARTBEAT).store(self.frames, Ordering::Relaxed);
        self.check_client(frame.now);
        let mut items = 0;
        while items < BUDGET_ITEMS && self.attached > 0 {
            if intake.room() == 0 {
                board::add(&self.board.source().lane_waits, u64::from(!intake.is_full()));
                break;
            }
            let now = frame.ticks();
            if frame.is_spent(now) || !self.take(intake, now) {
                break;
            }
            items += 1;
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
        let head =
            [answer.reply_to.sequence, u64::from(answer.stream), answer.latency_ns, u64::from(self.shape.observables)];
        self.record[..head.len()].copy_from_slice(&head);
        let flips = self.record.len() - head.len();
        self.record[head.len()..].copy_from_slice(&answer.observables[..flips]);
        let word = answer.error.map_or(word::ready(answer.reply_to.sequence), word::error);
        // A client that has left, and whose ring another client has, gets no answer.
        let is_delivered = peer >> 32 == self.attached && self.put(slot, word);
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
