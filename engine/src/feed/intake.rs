//! The common path of all live sources: checks parts, assembles and maps shots, and hands them to
//! the silo that owns the stream.
//!
//! Owns the assembly, the engine's own sequence numbers, the lanes, and the counters of the streams
//! on the board. Runs on the thread of the first silo's feed. Bounds: the lanes; a source checks
//! [`Intake::room`] before it takes a part. Never trusts a sender: stream, width, session and
//! number are checked before a bit is stored.

use super::assembly::{Assembly, Verdict, Width};
use super::bridge::{BridgeEnd, Recipient};
use super::lane::{Head, LaneIn, Piece};
use super::packet::Part;
use crate::board::{self, Board};
use crate::code::{Measurements, words};
use crate::pipe::home;
use crate::units::Ticks;
use pinwheel_edge::slot::table::ReplyTo;
use std::sync::Arc;

/// Outcome of offering a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Its shot will be answered.
    Accepted,
    /// Its shot was accepted before and is given up because of it: the engine answers that shot.
    GivenUp,
    /// It would begin a shot after the last one that was asked for.
    Surplus,
    /// Its stream does not exist.
    UnknownStream,
    /// The verdict of the assembly.
    Other(Verdict),
}

/// The common part of all live sources.
pub(super) struct Intake {
    assembly: Assembly,
    measurements: Option<Arc<Measurements>>,
    /// A lane to each silo; empty once the source is closed.
    lanes: Vec<LaneIn>,
    silos: u32,
    /// For each stream, the engine's next sequence number.
    next: Vec<u64>,
    detectors: Vec<u64>,
    observables: Vec<u64>,
    /// For each stream: the shot that was opened and is incomplete. `None` where shots are passed
    /// on complete.
    opened: Option<Box<[Option<Opened>]>>,
    /// To engines of other hosts.
    bridge: Option<BridgeEnd>,
    accepted: u64,
    count: Option<u64>,
    /// Time without a part after which an open shot is not awaited.
    silence: Ticks,
    board: Arc<Board>,
}

/// A shot whose first rounds were passed on.
#[derive(Clone, Copy)]
struct Opened {
    sequence: u64,
    reply_to: ReplyTo,
    words: u32,
    /// When its last part arrived.
    seen: Ticks,
}

pub(super) struct IntakeParts {
    pub(super) width: Width,
    pub(super) streams: u32,
    pub(super) silence: Ticks,
    pub(super) measurements: Option<Arc<Measurements>>,
    pub(super) lanes: Vec<LaneIn>,
    pub(super) detector_words: usize,
    pub(super) observable_words: usize,
    /// Whether the rounds of a shot are passed on before the shot is complete.
    pub(super) by_rounds: bool,
    /// To engines of other hosts; excludes `by_rounds`.
    pub(super) bridge: Option<BridgeEnd>,
    /// Number of shots after which the intake takes no more.
    pub(super) count: Option<u64>,
    pub(super) board: Arc<Board>,
}

impl Intake {
    pub(super) fn new(parts: IntakeParts) -> Intake {
        let IntakeParts { width, streams, silence, measurements, lanes, .. } = parts;
        let assembly = Assembly::new(streams, width, silence);
        Intake {
            // What was passed on by rounds is answered without the missing ones.
            assembly: if parts.by_rounds { assembly.answering_given_up() } else { assembly },
            measurements,
            silos: lanes.len() as u32,
            lanes,
            next: vec![0; streams as usize],
            detectors: vec![0; parts.detector_words],
            observables: vec![0; parts.observable_words],
            opened: parts.by_rounds.then(|| vec![None; streams as usize].into()),
            bridge: parts.bridge,
            accepted: 0,
            count: parts.count,
            silence,
            board: parts.board,
        }
    }

    /// Shots that can be offered now, for any streams; 0 when closed.
    pub(super) fn room(&self) -> u64 {
        match self.count {
            Some(count) if !self.has_open() => self.room_in_lanes().min(count - self.accepted),
            // Of open shots the other parts are taken after the last shot, too.
            _ => self.room_in_lanes(),
        }
    }

    /// As [`Intake::room`], and once all requested shots have arrived, room for parts of others: they
    /// are surplus.
    pub(super) fn room_and_surplus(&self, now: Ticks) -> u64 {
        if self.is_full(now) { self.room_in_lanes() } else { self.room() }
    }

    fn room_in_lanes(&self) -> u64 {
        let room = self.lanes.iter().map(LaneIn::room).min().unwrap_or(0);
        // A part may end one shot and begin another.
        let room = if self.opened.is_some() { room / 2 } else { room };
        self.bridge.as_ref().map_or(room, |bridge| room.min(bridge.room()))
    }

    /// Whether rounds of a shot are missing that was passed on.
    fn has_open(&self) -> bool {
        self.opened.iter().flatten().any(Option::is_some)
    }

    /// Whether no shot may begin any more.
    fn has_all(&self) -> bool {
        self.count.is_some_and(|count| self.accepted >= count)
    }

    /// No shot begins any more; those that are open go on.
    pub(super) fn take_no_more(&mut self) {
        self.count = Some(self.accepted);
    }

    /// Whether the intake is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Closes the intake; the feeds see the end after the last shot.
    pub(super) fn close(&mut self) {
        self.lanes.clear();
    }

    /// Whether all requested shots have arrived, each whole unless its sender has fallen silent.
    pub(super) fn is_full(&self, now: Ticks) -> bool {
        let is_awaited = |opened: &Opened| now.since(opened.seen) < self.silence;
        self.has_all() && !self.opened.iter().flatten().flatten().any(is_awaited)
    }

    /// Number of shots taken.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// The bridge to other hosts.
    pub(super) fn bridge(&mut self) -> Option<&mut BridgeEnd> {
        self.bridge.as_mut()
    }

    /// Takes shots from the bridge while there is room; returns how many, and how many of them are other
    /// hosts'.
    pub(super) fn take_in(&mut self, limit: u32, now: Ticks) -> (u32, u32) {
        let (mut items, mut others) = (0, 0);
        while items < limit && self.lanes.iter().all(|lane| lane.room() > 0) {
            let Some(bridge) = &mut self.bridge else { break };
            let Some((head, whose)) = bridge.take_in(&mut self.detectors, &mut self.observables) else { break };
            others += u32::from(whose == Recipient::OtherHost);
            // An own shot keeps its time of arrival.
            let arrived = if whose == Recipient::OtherHost { now } else { head.arrived };
            let sequence = self.next[head.stream as usize];
            self.next[head.stream as usize] += 1;
            let head = Head { sequence, epoch: 0, arrived, ..head };
            let put = self.lanes[home(head.stream, self.silos)].put(&head, &self.detectors, &self.observables);
            assert!(put, "each lane has room");
            items += 1;
        }
        (items, others)
    }

    /// Number of streams.
    pub(super) fn streams(&self) -> u32 {
        self.assembly.streams()
    }

    /// Takes a part; there must be room.
    pub(super) fn offer(&mut self, part: &Part<'_>, peer: u64, now: Ticks) -> Taken {
        if part.stream >= self.streams() {
            board::add(&self.board.source().unknown_streams, 1);
            return Taken::UnknownStream;
        }
        if self.has_all() && !self.is_of_open(part, peer) {
            return Taken::Surplus;
        }
        let verdict = self.assembly.accept(part, now);
        let taken = match (&self.opened, verdict) {
            (Some(_), _) => self.pass_on_rounds(part, verdict, peer, now),
            (None, Verdict::Whole) => self.pass_on(part, peer, now),
            (None, _) => Taken::Other(verdict),
        };
        self.publish(part.stream, now);
        taken
    }

    /// Gives up the open shot of `stream`: its other parts will not come. There must be room.
    pub(super) fn give_up(&mut self, stream: u32, now: Ticks) {
        self.assembly.give_up(stream);
        self.pass_on_given_up(stream, now);
        self.publish(stream, now);
    }

    /// Passes on that the open shot of `stream` was given up, if it was.
    fn pass_on_given_up(&mut self, stream: u32, now: Ticks) {
        let Some(places) = &mut self.opened else { return };
        if self.assembly.take_gave_up(stream)
            && let Some(opened) = places[stream as usize].take()
        {
            self.put(stream, &opened, now, Piece::GivenUp);
        }
    }

    /// Passes on the pieces of a shot as they arrive.
    fn pass_on_rounds(&mut self, part: &Part<'_>, verdict: Verdict, peer: u64, now: Ticks) -> Taken {
        let stream = part.stream as usize;
        let was_open = self.is_of_open(part, peer);
        self.pass_on_given_up(part.stream, now);
        if was_open && matches!(verdict, Verdict::Malformed | Verdict::Soft) {
            return Taken::GivenUp;
        }
        let open = self.opened.as_ref().and_then(|places| places[stream]);
        match (verdict, open, self.open_words(part.stream)) {
            (Verdict::Whole, None, _) => self.pass_on(part, peer, now),
            (Verdict::Whole, Some(opened), _) => {
                self.set_open(stream, None);
                self.put(part.stream, &opened, now, Piece::Last);
                Taken::Other(verdict)
            }
            (Verdict::Part, None, Some(words)) => {
                let reply_to = ReplyTo { peer, sequence: part.sequence };
                let opened = Opened { sequence: self.next[stream], reply_to, words, seen: now };
                self.set_open(stream, Some(opened));
                self.put(part.stream, &opened, now, Piece::Opens(words));
                self.next[stream] += 1;
                self.count(part);
                Taken::Accepted
            }
            (Verdict::Part, Some(opened), Some(words)) => {
                self.set_open(stream, Some(Opened { words, seen: now, ..opened }));
                if words > opened.words {
                    self.put(part.stream, &opened, now, Piece::More(words));
                }
                Taken::Other(verdict)
            }
            _ => Taken::Other(verdict),
        }
    }

    /// Whether the part belongs to a shot whose first rounds were passed on.
    fn is_of_open(&self, part: &Part<'_>, peer: u64) -> bool {
        let reply_to = ReplyTo { peer, sequence: part.sequence };
        let open = self.opened.as_ref().and_then(|places| places[part.stream as usize]);
        open.is_some_and(|open| open.reply_to == reply_to)
    }

    /// Leading words of the open shot of `stream` whose detectors are known.
    fn open_words(&self, stream: u32) -> Option<u32> {
        let words = self.assembly.open_words(stream)?;
        let Some(map) = &self.measurements else { return Some(words) };
        // The last word is passed on with the end of the shot.
        Some(map.words_known(words * 64).min(self.detectors.len() - 1) as u32)
    }

    /// Writes the detectors and observables of what has arrived of a shot of `stream`; returns whether
    /// the observables are known.
    fn fill(&mut self, stream: u32) -> bool {
        let bits = self.assembly.bits(stream);
        let Some(map) = &self.measurements else {
            self.detectors[..bits.len()].copy_from_slice(bits);
            return false;
        };
        let (outcomes, soft) = bits.split_at(words(map.count()));
        let detector_words = self.detectors.len() - soft.len();
        let (detectors, own) = self.detectors.split_at_mut(detector_words);
        map.map(outcomes, detectors, &mut self.observables);
        own.copy_from_slice(soft);
        map.truth_known()
    }

    fn set_open(&mut self, stream: usize, opened: Option<Opened>) {
        self.opened.iter_mut().for_each(|places| places[stream] = opened);
    }

    /// Puts a piece of an open shot into its lane, with all bits received so far.
    fn put(&mut self, stream: u32, opened: &Opened, now: Ticks, piece: Piece) {
        self.fill(stream);
        let Opened { sequence, reply_to, .. } = *opened;
        let head =
            Head { stream, epoch: 0, sequence, reply_to, arrived: now, truth_known: false, piece, refused: None };
        let lane = &mut self.lanes[home(stream, self.silos)];
        assert!(
            lane.put(&head, &self.detectors, &self.observables),
            "the source checks for room before it takes a part"
        );
    }

    /// Counts a shot that will be answered.
    fn count(&mut self, part: &Part<'_>) {
        self.accepted += 1;
        let block = self.board.stream_source(part.stream as usize);
        board::add(&block.accepted, 1);
        board::set(&block.accepted_last, part.sequence);
        board::set(&self.board.source().accepted, self.accepted);
    }

    fn pass_on(&mut self, part: &Part<'_>, peer: u64, now: Ticks) -> Taken {
        let truth_known = self.fill(part.stream);
        let sequence = self.next[part.stream as usize];
        let reply_to = ReplyTo { peer, sequence: part.sequence };
        let (stream, piece, refused) = (part.stream, Piece::Whole, None);
        let head = Head { stream, epoch: 0, sequence, reply_to, arrived: now, truth_known, piece, refused };
        self.count(part);
        if let Some(bridge) = &mut self.bridge
            && bridge.leaves(stream)
        {
            bridge.send(&head, &self.detectors, &self.observables);
            board::add(&self.board.source().forwarded, 1);
            return Taken::Accepted;
        }
        self.next[part.stream as usize] += 1;
        let lane = &mut self.lanes[home(part.stream, self.silos)];
        assert!(
            lane.put(&head, &self.detectors, &self.observables),
            "the source checks for room before it takes a part"
        );
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
