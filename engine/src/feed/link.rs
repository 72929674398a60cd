//! The link to a live source: takes in its parts, and sends the answers back.
//!
//! Owns the wire (socket or region), the intake behind it, and an end of every silo's answer ring.
//! Part of the first silo's feed, on its thread; the feeds of all silos take their shots from
//! lanes. Bounds: 64 parts a frame, and 64 answers at its start and again after harvest. Answers that
//! a sender does not take in time are dropped and counted, so no sender can block the engine.
//!
//! ```text
//! wire ─▶ intake ─▶ lane of the stream's silo ─▶ feed ─▶ slot … harvest ─▶ answer ring ─▶ link ─▶ wire
//! ```
//!
//! Answers leave at the start of the feed's frame, before the wire is asked for more, and at once
//! where harvest runs on the same thread ([`Role::send_answers`](crate::hot::Role::send_answers)).
//!
//! # Why in the feed, and why system calls on a hot thread
//! Each rx ring has one feed, and a lane costs one copy. A role of its own would add a thread hop
//! on small machines and gain nothing on large ones, where the feed has a core of its own. A socket
//! is busy-polled without blocking, as by the I/O threads of seed 004 §3: a poll of an empty socket
//! costs about a third of a microsecond.

use super::address::{OpenError, SourceAddress};
use super::assembly::Width;
use super::bridge::{BridgeEnd, Recipient};
use super::intake::{Intake, IntakeParts};
use super::lane::{LANE_SHOTS, LaneOut, lane};
use super::wire::{Facts, Wire};
use crate::board::{self, Board};
use crate::code::{Encoding, Measurements, Model};
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::Answer;
use crate::pipe::samples::SampleWriter;
use crate::streams::SourceKind;
use crate::units::{Nanos, TickRate};
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::spin::Phase;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Silence after which a stream or a sender's row may be taken over.
const SILENCE: Nanos = Nanos(1_000_000_000);

/// The link to one live source.
pub struct Link {
    wire: Box<dyn Wire>,
    intake: Intake,
    taps: Receiver<Reader<Answer>>,
    readers: Vec<Reader<Answer>>,
    /// The answer ring served first in this frame.
    first: usize,
    /// Answers to this engine's senders, and to other hosts.
    delivered: u64,
    delivered_to_others: u64,
    /// Shots taken from other hosts.
    accepted_of_others: u64,
    is_wire_closed: bool,
    rate: TickRate,
    board: Arc<Board>,
}

/// An opened link, with the ends that the feeds and the harvesters need.
pub struct Linked {
    /// For the first silo's feed.
    pub link: Link,
    /// For each silo's feed.
    pub lanes: Vec<LaneOut>,
    /// Takes one end of each silo's answer ring.
    pub taps: Sender<Reader<Answer>>,
    /// Address of the source as opened, with its actual port.
    pub name: String,
}

/// Configuration of a link.
pub struct LinkParts<'a> {
    /// Address of the source.
    pub place: &'a SourceAddress,
    /// Model of its shots.
    pub model: &'a Model,
    /// Map from measurements to detectors, if the source sends measurements.
    pub measurements: Option<Arc<Measurements>>,
    /// Number of silos.
    pub silos: u32,
    /// Streams of the whole engine.
    pub streams: u32,
    /// Whether the rounds of a shot are passed on before the shot is complete.
    pub by_rounds: bool,
    /// Number of shots after which the link takes no more.
    pub count: Option<u64>,
    /// Takes copies of measurements, for a source of CUDA-Q's protocol.
    pub measured: Option<SampleWriter>,
    /// To engines of other hosts; excludes `by_rounds`.
    pub bridge: Option<BridgeEnd>,
    /// The engine's epoch at the source: different at each start.
    pub epoch: u64,
    /// The clock's rate.
    pub rate: TickRate,
    /// The board.
    pub board: Arc<Board>,
    /// Directory of boards, which has the region of a source through shared memory.
    pub boards: &'a Path,
}

impl Link {
    /// Opens the source.
    ///
    /// # Errors
    /// If the source cannot be opened.
    pub fn open(parts: LinkParts<'_>) -> Result<Linked, OpenError> {
        let LinkParts { place, model, measurements, streams, board, .. } = parts;
        let (bits, encoding) = match &measurements {
            None => (model.detectors, Encoding::Bits),
            // This protocol has one encoding.
            Some(map) if matches!(place, SourceAddress::Cudaq { .. }) => (map.count(), Encoding::Bits),
            Some(map) => (map.count(), map.encoding()),
        };
        let width = Width { bits, encoding, soft_bytes: model.soft.as_ref().map_or(0, |map| map.bytes()) };
        let silence = parts.rate.ticks(SILENCE);
        let observables = model.observables;
        let (epoch, measured) = (parts.epoch, parts.measured);
        let facts = Facts { epoch, streams, observables, width, silence, measured, board: Arc::clone(&board) };
        let (wire, kind, name) = open_wire(place, facts, parts.boards)?;
        let (detector_words, observable_words) = (model.shot_words(), model.observable_words());
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
            bridge: parts.bridge,
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
        let link = Link {
            wire,
            intake,
            taps: taken,
            readers,
            first: 0,
            delivered: 0,
            delivered_to_others: 0,
            accepted_of_others: 0,
            is_wire_closed: false,
            rate,
            board,
        };
        Ok(Linked { link, lanes, taps, name })
    }

    /// One frame; returns the parts and answers handled.
    pub(super) fn work(&mut self, frame: &Frame<'_>) -> u32 {
        if self.readers.len() < self.readers.capacity() {
            // Before Live: the ends arrive after the rings are made.
            self.readers.extend(self.taps.try_iter());
        }
        let is_draining = frame.phase == Phase::Drain;
        if is_draining {
            // Shots whose rounds are coming were accepted: they go on.
            self.intake.take_no_more();
        }
        let has_all = self.intake.is_full(frame.now) && (is_draining || !self.wire.is_awaited(frame.now));
        if has_all || frame.phase == Phase::Shutdown {
            self.close();
        }
        // Answers leave before the wire is asked for more.
        let mut items = self.send_answers(frame);
        if !self.intake.is_closed() {
            items += self.take_in(frame);
        }
        if matches!(frame.phase, Phase::Live | Phase::Drain) && !self.is_wire_closed {
            if board::get(&self.board.source().state) == 0 {
                board::set(&self.board.source().state, 1);
                self.wire.open();
            }
            items += self.wire.receive(&mut self.intake, frame);
        }
        items
    }

    /// Sends the answers that wait in the answer rings; returns how many.
    pub(super) fn send_answers(&mut self, frame: &Frame<'_>) -> u32 {
        let items = self.deliver(frame);
        self.wire.flush(frame.now, self.rate);
        items
    }

    /// Takes shots from the bridge to other hosts.
    fn take_in(&mut self, frame: &Frame<'_>) -> u32 {
        if self.intake.bridge().is_none() {
            return 0;
        }
        let (items, others) = self.intake.take_in(BUDGET_ITEMS, frame.now);
        self.accepted_of_others += u64::from(others);
        board::add(&self.board.source().taken_in, u64::from(others));
        items
    }

    /// Passes answers to the wire, ring by ring. Each frame begins with another ring, so that none
    /// starves.
    fn deliver(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        let rings = self.readers.len();
        self.first = (self.first + 1) % rings.max(1);
        for at in self.first..self.first + rings {
            while items < BUDGET_ITEMS {
                if !self.wire.has_room() {
                    self.wire.flush(frame.now, self.rate);
                }
                if !self.wire.has_room() {
                    break;
                }
                let Some(answer) = self.readers[at % rings].read() else { break };
                items += 1;
                if let Some(bridge) = self.intake.bridge() {
                    if Recipient::of(answer.reply_to) == Recipient::OtherHost {
                        bridge.answer(&answer);
                        self.delivered_to_others += 1;
                        continue;
                    }
                    bridge.note_answered_here(answer.stream);
                }
                self.pass_back(&answer, frame);
            }
        }
        items + self.deliver_answered_elsewhere(frame)
    }

    /// Passes answers of other hosts to the wire.
    fn deliver_answered_elsewhere(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        while items < BUDGET_ITEMS && self.wire.has_room() {
            let Some(answer) = self.intake.bridge().and_then(BridgeEnd::next_answered) else { break };
            board::add(&self.board.source().forwarded_answered, 1);
            self.pass_back(&answer, frame);
            items += 1;
        }
        items
    }

    fn pass_back(&mut self, answer: &Answer, frame: &Frame<'_>) {
        let block = self.board.stream_source(answer.stream as usize);
        board::add(&block.answered, 1);
        board::set(&block.answered_last, answer.reply_to.sequence);
        self.wire.answer(answer, frame.now);
        self.delivered += 1;
    }

    /// Closes the wire, and then the intake, once no more shots come from other hosts: until then, shots
    /// that are away may come back.
    fn close(&mut self) {
        if !self.is_wire_closed {
            self.is_wire_closed = true;
            self.wire.close();
            board::set(&self.board.source().state, 2);
        }
        let is_bridge_open = |bridge: &mut BridgeEnd| !bridge.has_ended();
        if !self.intake.is_closed() && !self.intake.bridge().is_some_and(is_bridge_open) {
            self.intake.close();
        }
    }

    /// Whether every accepted shot has been answered to its sender.
    pub(super) fn is_drained(&self) -> bool {
        let is_answered = self.delivered == self.intake.accepted();
        let are_others_answered = self.delivered_to_others == self.accepted_of_others;
        self.intake.is_closed() && is_answered && are_others_answered && self.wire.is_idle()
    }
}

/// Checks whether a source can be opened at `place` now; `boards` has the regions of shared memory.
///
/// # Errors
/// As [`Link::open`].
#[cfg(target_os = "linux")]
pub fn can_open(place: &SourceAddress, boards: &Path) -> Result<(), OpenError> {
    match place {
        SourceAddress::Udp { .. } | SourceAddress::Unix(_) | SourceAddress::Cudaq { .. } => {
            super::socket::can_listen(place)
        }
        SourceAddress::Shm { .. } => super::shm::can_make(place, boards),
    }
}

/// Always fails: this system has no live sources.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn can_open(place: &SourceAddress, _boards: &Path) -> Result<(), OpenError> {
    Err(none_here(place))
}

#[cfg(target_os = "linux")]
fn open_wire(
    place: &SourceAddress,
    facts: Facts,
    boards: &Path,
) -> Result<(Box<dyn Wire>, SourceKind, String), OpenError> {
    let (wire, name): (Box<dyn Wire>, String) = match place {
        SourceAddress::Udp { .. } | SourceAddress::Unix(_) => {
            let (wire, name) = super::socket::SocketWire::open(place, &facts)?;
            (Box::new(wire), name)
        }
        SourceAddress::Cudaq { .. } => {
            let (wire, name) = super::cudaq::CudaqWire::open(place, facts)?;
            (Box::new(wire), name)
        }
        SourceAddress::Shm { .. } => {
            let (wire, name) = super::shm::RegionWire::open(place, &facts, boards)?;
            (Box::new(wire), name)
        }
    };
    let kind = match place {
        SourceAddress::Udp { .. } => SourceKind::Udp,
        SourceAddress::Cudaq { .. } => SourceKind::Cudaq,
        SourceAddress::Unix(_) => SourceKind::Unix,
        SourceAddress::Shm { .. } => SourceKind::Shm,
    };
    Ok((wire, kind, name))
}

#[cfg(not(target_os = "linux"))]
fn open_wire(
    place: &SourceAddress,
    _facts: Facts,
    _boards: &Path,
) -> Result<(Box<dyn Wire>, SourceKind, String), OpenError> {
    Err(none_here(place))
}

#[cfg(not(target_os = "linux"))]
fn none_here(place: &SourceAddress) -> OpenError {
    let (expected, remedy) = ("Linux", "run it there, or give the shots as a file");
    OpenError { place: place.to_string(), found: std::env::consts::OS.to_owned(), expected, remedy }
}
