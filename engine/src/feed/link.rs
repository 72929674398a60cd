//! The link to a live source: takes parts from it, gives answers back to it.
//!
//! Owns the wire (socket or region), the intake behind it, and an end of every silo's answer ring. Part of the first
//! silo's feed, on its thread; the feeds of all silos take their shots from lanes. Bounds: 64 parts and 64 answers a frame;
//! what a sender does not take in time is dropped and counted, so no sender can hold the engine up.
//!
//! ```text
//! wire ─▶ intake ─▶ lane of the stream's silo ─▶ feed ─▶ slot … harvest ─▶ answer ring ─▶ link ─▶ wire
//! ```
//!
//! # Why in the feed, and why system calls on a hot thread
//! Each rx ring has one feed, and a lane costs one copy: a role of its own would add a thread hop on small machines and
//! nothing on large ones, where the feed has a core and nothing else to do. A socket is busy-polled without blocking, as
//! seed 004 §3 has its I/O threads do: an empty look costs about a third of a microsecond.

use super::answer::Answer;
use super::assembly::Width;
use super::intake::{Intake, IntakeParts};
use super::lane::{LANE_SHOTS, LaneOut, lane};
use super::place::{OpenError, Place};
use crate::board::snapshot::SourceKind;
use crate::board::{self, Board};
use crate::code::{Encoding, Measurements, Model};
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::spin::Phase;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Without a part for so long, a stream or a sender's row may be taken over.
const SILENCE: Nanos = Nanos(1_000_000_000);

/// What carries parts and answers.
pub(super) trait Wire: Send {
    /// Takes parts into `intake`, within a frame's budget; returns how many it looked at.
    fn receive(&mut self, intake: &mut Intake, frame: &Frame<'_>) -> u32;
    /// Whether [`Wire::answer`] can be called.
    fn has_room(&self) -> bool;
    /// Takes an answer to its sender.
    fn answer(&mut self, answer: &Answer, now: Ticks);
    /// Sends what it holds back.
    fn flush(&mut self, now: Ticks, rate: TickRate);
    /// Whether it holds nothing back.
    fn is_idle(&self) -> bool;
    /// The engine is live.
    fn open(&mut self);
    /// The engine takes no more.
    fn close(&mut self);
}

/// What a wire has to know.
pub(super) struct Facts {
    pub(super) epoch: u64,
    pub(super) streams: u32,
    pub(super) observables: u32,
    pub(super) width: Width,
    pub(super) silence: Ticks,
    pub(super) board: Arc<Board>,
}

/// The link.
pub struct Link {
    wire: Box<dyn Wire>,
    intake: Intake,
    taps: Receiver<Reader<Answer>>,
    readers: Vec<Reader<Answer>>,
    /// The ring that this frame began with.
    first: usize,
    delivered: u64,
    rate: TickRate,
    board: Arc<Board>,
}

/// A link, the ends that the feeds take their shots from, and where the ends of the answer rings go.
pub struct Linked {
    /// For the first silo's feed.
    pub link: Link,
    /// For each silo's feed.
    pub lanes: Vec<LaneOut>,
    /// Takes an end of each silo's answer ring.
    pub taps: Sender<Reader<Answer>>,
    /// Where the source really is.
    pub name: String,
}

/// What a link is opened for.
pub struct LinkParts<'a> {
    /// Where.
    pub place: &'a Place,
    /// What its shots are.
    pub model: &'a Model,
    /// From measurements, if it sends those.
    pub measurements: Option<Arc<Measurements>>,
    /// Silos.
    pub silos: u32,
    /// Streams of the whole engine.
    pub streams: u32,
    /// Whether what has come of a shot is passed on before all of it has.
    pub by_rounds: bool,
    /// Takes so many shots, then no more.
    pub count: Option<u64>,
    /// The engine's epoch at the source: another one at each start.
    pub epoch: u64,
    /// The clock's rate.
    pub rate: TickRate,
    /// The board.
    pub board: Arc<Board>,
}

impl Link {
    /// Opens the source.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn open(parts: LinkParts<'_>) -> Result<Linked, OpenError> {
        let LinkParts { model, measurements, streams, board, .. } = parts;
        let width = measurements.as_ref().map_or(Width { bits: model.detectors, encoding: Encoding::Bits }, |map| {
            Width { bits: map.count(), encoding: map.encoding() }
        });
        let silence = parts.rate.ticks(SILENCE);
        let observables = model.observables;
        let facts = Facts { epoch: parts.epoch, streams, observables, width, silence, board: Arc::clone(&board) };
        let (wire, kind, name) = open_wire(parts.place, &facts)?;
        let (detector_words, observable_words) = (model.detector_words(), model.observable_words());
        let (ins, lanes) = (0..parts.silos).map(|_| lane(detector_words, observable_words, LANE_SHOTS)).unzip();
        let intake = IntakeParts {
            width,
            streams,
            silence,
            measurements,
            lanes: ins,
            detector_words,
            observable_words,
            by_rounds: parts.by_rounds,
            count: parts.count,
            board: Arc::clone(&board),
        };
        let block = board.source();
        block.name.write(&name);
        board::set(&block.epoch, parts.epoch);
        board::set(&block.width_bits, u64::from(width.bits));
        board::set(&block.kind, kind.code());
        let (taps, taken) = channel();
        let readers = Vec::with_capacity(parts.silos as usize);
        let (intake, rate) = (Intake::new(intake), parts.rate);
        let link = Link { wire, intake, taps: taken, readers, first: 0, delivered: 0, rate, board };
        Ok(Linked { link, lanes, taps, name })
    }

    /// One frame; returns parts and answers handled.
    pub(super) fn work(&mut self, frame: &Frame<'_>) -> u32 {
        if self.readers.len() < self.readers.capacity() {
            // Before Live: the ends come once the rings are there.
            self.readers.extend(self.taps.try_iter());
        }
        if matches!(frame.phase, Phase::Drain | Phase::Shutdown) || self.intake.is_full() {
            self.close();
        }
        let mut items = self.deliver(frame);
        if frame.phase == Phase::Live && !self.intake.is_closed() {
            if board::get(&self.board.source().state) == 0 {
                board::set(&self.board.source().state, 1);
                self.wire.open();
            }
            items += self.wire.receive(&mut self.intake, frame);
        }
        self.wire.flush(frame.now, self.rate);
        items
    }

    /// Hands answers to the wire, a ring after another; each frame begins with another ring, so that none starves.
    fn deliver(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        let rings = self.readers.len();
        self.first = (self.first + 1) % rings.max(1);
        for at in self.first..self.first + rings {
            let reader = &mut self.readers[at % rings];
            while items < BUDGET_ITEMS {
                if !self.wire.has_room() {
                    self.wire.flush(frame.now, self.rate);
                }
                if !self.wire.has_room() {
                    break;
                }
                let Some(answer) = reader.read() else { break };
                let block = self.board.stream_source(answer.stream as usize);
                board::add(&block.answered, 1);
                board::set(&block.answered_last, answer.reply_to.sequence);
                self.wire.answer(&answer, frame.now);
                items += 1;
            }
        }
        self.delivered += u64::from(items);
        items
    }

    fn close(&mut self) {
        if !self.intake.is_closed() {
            self.intake.close();
            self.wire.close();
            board::set(&self.board.source().state, 2);
        }
    }

    /// Whether every shot taken has been answered to its sender.
    pub(super) fn is_drained(&self) -> bool {
        self.intake.is_closed() && self.delivered == self.intake.accepted() && self.wire.is_idle()
    }
}

/// Whether a source could be had at `place` now.
///
/// # Errors
/// As [`Link::open`].
#[cfg(target_os = "linux")]
pub fn can_open(place: &Place) -> Result<(), OpenError> {
    match place {
        Place::Udp { .. } | Place::Unix(_) => super::socket::can_listen(place),
        Place::Shm { .. } => super::shm::can_make(place),
    }
}

/// Never: there are none on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn can_open(place: &Place) -> Result<(), OpenError> {
    Err(none_here(place))
}

#[cfg(target_os = "linux")]
fn open_wire(place: &Place, facts: &Facts) -> Result<(Box<dyn Wire>, SourceKind, String), OpenError> {
    let (wire, name): (Box<dyn Wire>, String) = match place {
        Place::Udp { .. } | Place::Unix(_) => {
            let (wire, name) = super::socket::SocketWire::open(place, facts)?;
            (Box::new(wire), name)
        }
        Place::Shm { .. } => {
            let (wire, name) = super::shm::RegionWire::open(place, facts)?;
            (Box::new(wire), name)
        }
    };
    let kind = match place {
        Place::Udp { .. } => SourceKind::Udp,
        Place::Unix(_) => SourceKind::Unix,
        Place::Shm { .. } => SourceKind::Shm,
    };
    Ok((wire, kind, name))
}

#[cfg(not(target_os = "linux"))]
fn open_wire(place: &Place, _facts: &Facts) -> Result<(Box<dyn Wire>, SourceKind, String), OpenError> {
    Err(none_here(place))
}

#[cfg(not(target_os = "linux"))]
fn none_here(place: &Place) -> OpenError {
    let (expected, remedy) = ("Linux, where live sources are built", "run it there, or give the shots as a file");
    OpenError { place: place.to_string(), found: std::env::consts::OS.to_owned(), expected, remedy }
}
