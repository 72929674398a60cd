//! What every live source does with a part of a shot: check, put together, map, hand to the silo that owns the stream.
//!
//! Owns the assembly, the engine's own sequence numbers, the lanes, and the counters of the streams on the board. Runs on
//! the first silo's feed's thread. Bounds: the lanes; a source asks for [`Intake::room`] before it takes anything. Never
//! believes a sender: stream, width, session and number are checked before a bit is stored.

use super::assembly::{Assembly, Verdict, Width};
use super::lane::{Head, LaneIn};
use super::packet::Part;
use super::requests::home;
use crate::board::{self, Board};
use crate::code::Measurements;
use crate::units::Ticks;
use pinwheel_edge::slot::table::ReplyTo;
use std::sync::Arc;

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Its shot is whole and will be answered.
    Accepted,
    /// Its stream does not exist.
    UnknownStream,
    /// As the assembly says.
    Other(Verdict),
}

/// The common part of all live sources.
pub(super) struct Intake {
    assembly: Assembly,
    measurements: Option<Arc<Measurements>>,
    /// A lane to each silo; none once the source is closed.
    lanes: Vec<LaneIn>,
    silos: u32,
    /// Of each stream, the engine's next number.
    next: Vec<u64>,
    detectors: Vec<u64>,
    observables: Vec<u64>,
    accepted: u64,
    count: Option<u64>,
    board: Arc<Board>,
}

/// What an intake is made of.
pub(super) struct IntakeParts {
    pub(super) width: Width,
    pub(super) streams: u32,
    pub(super) silence: Ticks,
    pub(super) measurements: Option<Arc<Measurements>>,
    pub(super) lanes: Vec<LaneIn>,
    pub(super) detector_words: usize,
    pub(super) observable_words: usize,
    /// Takes so many shots, then no more.
    pub(super) count: Option<u64>,
    pub(super) board: Arc<Board>,
}

impl Intake {
    pub(super) fn new(parts: IntakeParts) -> Intake {
        let IntakeParts { width, streams, silence, measurements, lanes, .. } = parts;
        Intake {
            assembly: Assembly::new(streams, width, silence),
            measurements,
            silos: lanes.len() as u32,
            lanes,
            next: vec![0; streams as usize],
            detectors: vec![0; parts.detector_words],
            observables: vec![0; parts.observable_words],
            accepted: 0,
            count: parts.count,
            board: parts.board,
        }
    }

    /// Shots that may be offered now, whatever their streams; 0 when closed.
    pub(super) fn room(&self) -> u64 {
        let room = self.lanes.iter().map(LaneIn::room).min().unwrap_or(0);
        self.count.map_or(room, |count| room.min(count - self.accepted))
    }

    /// Whether nothing will be taken any more.
    pub(super) fn is_closed(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Takes no more; the feeds see the end behind the last shot.
    pub(super) fn close(&mut self) {
        self.lanes.clear();
    }

    /// Whether all shots that were asked for have come.
    pub(super) fn is_full(&self) -> bool {
        self.count.is_some_and(|count| self.accepted >= count)
    }

    /// Shots taken.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Streams there are.
    pub(super) fn streams(&self) -> u32 {
        self.assembly.streams()
    }

    /// Takes a part; there must be room.
    pub(super) fn offer(&mut self, part: &Part<'_>, peer: u64, now: Ticks) -> Taken {
        if part.stream >= self.streams() {
            board::add(&self.board.source().unknown_streams, 1);
            return Taken::UnknownStream;
        }
        let verdict = self.assembly.accept(part, now);
        let taken = if verdict == Verdict::Whole { self.pass_on(part, peer, now) } else { Taken::Other(verdict) };
        self.publish(part.stream, now);
        taken
    }

    fn pass_on(&mut self, part: &Part<'_>, peer: u64, now: Ticks) -> Taken {
        let bits = self.assembly.bits(part.stream);
        let truth_known = match &self.measurements {
            None => {
                self.detectors[..bits.len()].copy_from_slice(bits);
                false
            }
            Some(map) => {
                map.map(bits, &mut self.detectors, &mut self.observables);
                map.truth_known()
            }
        };
        let sequence = self.next[part.stream as usize];
        let reply_to = ReplyTo { peer, sequence: part.sequence };
        let head = Head { stream: part.stream, epoch: 0, sequence, reply_to, arrived: now, truth_known };
        let lane = &mut self.lanes[home(part.stream, self.silos)];
        assert!(lane.put(&head, &self.detectors, &self.observables), "a source asks for room before it takes anything");
        self.next[part.stream as usize] += 1;
        self.accepted += 1;
        let block = self.board.stream_source(part.stream as usize);
        board::set(&block.accepted, sequence + 1);
        board::set(&block.accepted_last, part.sequence);
        board::set(&self.board.source().accepted, self.accepted);
        Taken::Accepted
    }

    fn publish(&self, stream: u32, now: Ticks) {
        let (block, counts) = (self.board.stream_source(stream as usize), self.assembly.counts(stream));
        let words = [
            (&block.received_ticks, now.0),
            (&block.gaps, counts.gaps),
            (&block.duplicates, counts.duplicates),
            (&block.reordered, counts.reordered),
            (&block.malformed, counts.malformed),
            (&block.incomplete, counts.incomplete),
            (&block.stale, counts.stale),
            (&block.restarts, counts.restarts),
        ];
        words.iter().for_each(|(word, value)| board::set(word, *value));
        board::set(&self.board.source().received_ticks, now.0);
    }
}
