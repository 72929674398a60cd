//! A source in shared memory: another process writes shots into a ring and reads the answers there.
//!
//! Owns the region and the engine's end of its ring. Runs on the first silo's feed's thread. Bounds: 64 slots looked at a
//! frame. `engine/shm/README.md` is the region's page for whoever writes the other side, byte by byte.
//!
//! Nothing in the region is believed: a shot is copied once and only the copy is looked at; offsets, widths, numbers and
//! streams are checked; which slots are held stands in memory of our own. A client that breaks the rules gets an error word
//! for that slot or waits for itself. One thing no check helps against: whoever may write the file may also cut it short,
//! which ends the engine with SIGBUS, as a kill would. So it is this user's alone (0600) unless the profile names a group.
//!
//! # Why an outer ring and one copy
//! See [`pinwheel_edge::slot::outside`]. The copy of a shot of distance 5 is two words; the bench area `live` measures the
//! whole way against bare round trips.

pub mod client;
pub mod layout;
#[expect(unsafe_code, reason = "maps the region")]
pub mod region;

use super::answer::Answer;
use super::assembly::{Verdict, Width};
use super::intake::{Intake, Taken};
use super::link::{Facts, Wire};
use super::packet::{Encoding, Part, Position, Status};
use super::place::{OpenError, Place};
use crate::board::{self, Board};
use crate::hot::{BUDGET_ITEMS, Frame};
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

/// The wire.
pub(super) struct RegionWire {
    region: Region,
    shape: Shape,
    end: EngineEnd,
    /// Clients that have had the ring.
    attached: u64,
    heartbeat: u64,
    frames: u64,
    width: Width,
    /// The copy of the shot looked at: its head, then its payload.
    shot: Vec<u64>,
    record: Vec<u64>,
    board: Arc<Board>,
}

/// Whether no other engine has that region; what a dead one left is removed.
pub(super) fn can_make(place: &Place) -> Result<(), OpenError> {
    let Place::Shm { name, .. } = place else { return Ok(()) };
    region::is_free(&crate::board::directory(), name).map_err(|error| OpenError { place: place.to_string(), ..error })
}

impl RegionWire {
    pub(super) fn open(place: &Place, facts: &Facts) -> Result<(RegionWire, String), OpenError> {
        let shape = Shape {
            slots: SLOTS,
            bits: facts.width.bits,
            encoding: facts.width.encoding,
            streams: facts.streams,
            observables: facts.observables,
        };
        let Place::Shm { name, group } = place else {
            let (found, expected) = ("a socket".to_owned(), "shared memory");
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

    /// Looks whether another client wants the ring, and whether the one that has it lives.
    fn look_at_client(&mut self, now: Ticks) {
        let block = self.board.source();
        // Relaxed: each word stands alone; what a client writes after it was granted the ring is ordered by U5 and U1.
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

    /// The copied shot as a part; `None` if its head or a value is not as the page says.
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

    /// Answers `slot` with what is in `record`; whether it was held.
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
        self.look_at_client(frame.now);
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
        // A client that has gone, and left the ring to another, is owed nothing.
        let is_told = peer >> 32 == self.attached && self.put(slot, word);
        let block = self.board.source();
        board::add(if is_told { &block.answered } else { &block.answers_dropped }, 1);
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
