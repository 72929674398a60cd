//! The feed's part of a bridge to engines of other hosts: shots leave to be decoded elsewhere, and
//! shots of other hosts are decoded here.
//!
//! Owns two lanes, two rings of answers, and the counts that keep each stream in order. The feed's end
//! is part of the [`super::intake`], on the first silo's feed's thread; the other end, [`Bridge`],
//! belongs to a cold thread that knows the hosts. Bounds: the capacities of lanes and rings; a full one
//! makes the source wait. Never waits, never allocates once made. An engine without a bridge pays a
//! test of one option for each shot.
//!
//! ```text
//!  sender ─▶ intake ─┬─ direct ──────────────▶ lane of the stream's silo ─▶ … ─▶ answer ─▶ sender
//!                    └─ away ─▶ Bridge::shots           ▲                            │
//!                          Bridge::taken_in ────────────┘      Bridge::answers ◀─────┘ (other hosts' shots)
//!                          Bridge::answered ─▶ sender
//! ```
//!
//! # Why the host that a stream arrives at stays its owner
//! Its engine accepted the shots and knows their senders. It gives away work, never the duty to answer:
//! what another host does not answer in time is put back by [`Bridge::taken_in`] and decoded here. So a
//! host that is lost, cut off or slow can neither lose a shot nor answer one twice.
//!
//! # Why a stream's answers stay in order
//! - Away, then here: while a shot of the stream is away, the intake sends further ones after it, even
//!   if the route says otherwise. A shot that comes back precedes them, and follows the answers that the
//!   bridge passed on before it ([`BridgeEnd::take_in`]).
//! - Here, then away: the record of a shot that leaves counts the shots of its stream that went direct
//!   before it. The bridge passes it on when that many, and all that it has put back, are answered
//!   ([`Routes::answered_here`]).

use super::lane::{Head, LANE_SHOTS, LaneIn, LaneOut, Piece, lane};
use crate::code::Model;
use crate::pipe::Answer;
use pinwheel_edge::ring::spsc::{self, Consumer, Producer};
use pinwheel_edge::slot::table::ReplyTo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bit of [`ReplyTo::peer`] that marks a shot of another host. Sources leave it clear.
const OTHERS: u64 = 1 << 63;

/// For each stream: whether its next shots leave, and how many of its own shots were answered here.
// Relaxed: each word stands alone. A route takes effect some frames later in any case; a count only
// grows, and what it counts has passed the thread that will send the next answer, too.
pub struct Routes {
    away: Box<[AtomicU32]>,
    answered_here: Box<[AtomicU64]>,
}

impl Routes {
    fn new(streams: u32) -> Routes {
        let (away, answered_here) = (0..streams).map(|_| (AtomicU32::new(0), AtomicU64::new(0))).unzip();
        let (away, answered_here): (Vec<_>, Vec<_>) = (away, answered_here);
        Routes { away: away.into(), answered_here: answered_here.into() }
    }

    /// Number of streams.
    pub fn streams(&self) -> u32 {
        self.away.len() as u32
    }

    /// Sends the next shots of `stream` to the bridge.
    pub fn send_away(&self, stream: u32) {
        self.away[stream as usize].store(1, Ordering::Relaxed);
    }

    /// Decodes the next shots of `stream` here, once none of its shots is away.
    pub fn keep(&self, stream: u32) {
        self.away[stream as usize].store(0, Ordering::Relaxed);
    }

    /// Whether the next shots of `stream` leave.
    pub fn is_away(&self, stream: u32) -> bool {
        self.away[stream as usize].load(Ordering::Relaxed) != 0
    }

    /// Shots of this engine's senders in `stream` that were answered here.
    pub fn answered_here(&self, stream: u32) -> u64 {
        self.answered_here[stream as usize].load(Ordering::Relaxed)
    }
}

/// The bridge's end, for a cold thread.
pub struct Bridge {
    /// Shots that another host is to decode. [`Head::sequence`]: shots of the stream that went direct
    /// before it.
    pub shots: LaneOut,
    /// Shots to decode here: others' ([`others`]), and own ones that come back with their own
    /// [`ReplyTo`]. Drop the lane when no more will come: a draining engine waits for that.
    pub taken_in: Option<LaneIn>,
    /// Answers to other hosts' shots, with the tag of each in [`Answer::reply_to`].
    pub answers: Consumer<Answer>,
    /// Answers of other hosts to shots that left, with [`Head::reply_to`] of each. In a stream, in the order
    /// of its shots; put in before a later shot of the stream comes back.
    pub answered: Producer<Answer>,
    /// Which streams leave.
    pub routes: Arc<Routes>,
    /// Words of a shot's detectors.
    pub detector_words: usize,
    /// Words of its observables.
    pub observable_words: usize,
}

/// Recipient of a shot of another host: `tag` comes back with its answer.
pub fn others(tag: u64, sequence: u64) -> ReplyTo {
    ReplyTo { peer: tag | OTHERS, sequence }
}

/// The tag that [`others`] was given.
pub fn tag_of(reply_to: ReplyTo) -> u64 {
    reply_to.peer & !OTHERS
}

/// The feed's end.
pub struct BridgeEnd {
    out: LaneIn,
    taken_in: LaneOut,
    answers: Producer<Answer>,
    answered: Consumer<Answer>,
    routes: Arc<Routes>,
    streams: Box<[Stream]>,
    /// Shots of other hosts that were taken in and not answered.
    others: u64,
}

#[derive(Clone, Copy, Default)]
struct Stream {
    /// Own shots that went direct.
    direct: u64,
    /// Own shots that left, and were neither answered nor put back.
    away: u64,
}

/// Both ends, for `streams` streams of shots of `model`.
pub fn bridge(model: &Model, streams: u32) -> (BridgeEnd, Bridge) {
    let (detector_words, observable_words) = (model.shot_words(), model.observable_words());
    let (out, shots) = lane(detector_words, observable_words, LANE_SHOTS);
    let (put, taken_in) = lane(detector_words, observable_words, LANE_SHOTS);
    let (answers, answers_out) = spsc::channel(LANE_SHOTS);
    let (answered_in, answered) = spsc::channel(LANE_SHOTS);
    let routes = Arc::new(Routes::new(streams));
    let end = BridgeEnd {
        out,
        taken_in,
        answers,
        answered,
        routes: Arc::clone(&routes),
        streams: vec![Stream::default(); streams as usize].into(),
        others: 0,
    };
    let bridge = Bridge {
        shots,
        taken_in: Some(put),
        answers: answers_out,
        answered: answered_in,
        routes,
        detector_words,
        observable_words,
    };
    (end, bridge)
}

/// Whose shot an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// A sender of this engine.
    Sender,
    /// Another host.
    OtherHost,
}

impl Recipient {
    pub(super) fn of(reply_to: ReplyTo) -> Recipient {
        if reply_to.peer & OTHERS == 0 { Recipient::Sender } else { Recipient::OtherHost }
    }
}

impl BridgeEnd {
    /// Number of streams.
    pub(crate) fn streams(&self) -> u32 {
        self.routes.streams()
    }

    /// Shots that may leave now.
    pub(super) fn room(&self) -> u64 {
        self.out.room()
    }

    /// Whether the next shot of `stream` leaves; otherwise counts it as direct.
    pub(super) fn leaves(&mut self, stream: u32) -> bool {
        let counts = &mut self.streams[stream as usize];
        let leaves = counts.away > 0 || self.routes.is_away(stream);
        counts.direct += u64::from(!leaves);
        leaves
    }

    /// Sends a shot away; there must be room.
    pub(super) fn send(&mut self, head: &Head, detectors: &[u64], observables: &[u64]) {
        let counts = &mut self.streams[head.stream as usize];
        let head = Head { sequence: counts.direct, ..*head };
        assert!(self.out.put(&head, detectors, observables), "the source checks for room before it takes a part");
        counts.away += 1;
    }

    /// The next shot to decode here. None comes while the answers to those under way would not fit
    /// into the ring: so a bridge that stands still never holds up the answers to this engine's senders.
    pub(super) fn take_in(&mut self, detectors: &mut [u64], observables: &mut [u64]) -> Option<(Head, Recipient)> {
        if self.others >= self.answers.room() {
            return None;
        }
        // Earlier answers first: decoded here, the shot could be answered before they leave. What was passed on before
        // this shot was put in is visible once the shot is (R1 of the lane).
        self.taken_in.peek()?;
        if self.answered.depth() > 0 {
            return None;
        }
        let head = self.taken_in.take(detectors, observables)?;
        debug_assert_eq!(head.piece, Piece::Whole);
        let whose = Recipient::of(head.reply_to);
        match whose {
            Recipient::Sender => self.note_back(head.stream),
            Recipient::OtherHost => self.others += 1,
        }
        Some((head, whose))
    }

    /// Whether no more shots will come in.
    pub(super) fn has_ended(&self) -> bool {
        self.taken_in.has_ended()
    }

    /// The next answer of another host.
    pub(super) fn next_answered(&mut self) -> Option<Answer> {
        let answer = self.answered.pop()?;
        self.note_back(answer.stream);
        Some(answer)
    }

    fn note_back(&mut self, stream: u32) {
        let counts = &mut self.streams[stream as usize];
        debug_assert!(counts.away > 0, "a shot comes back once");
        counts.away = counts.away.saturating_sub(1);
    }

    /// Counts an answer to an own shot that was decoded here.
    pub(super) fn note_answered_here(&mut self, stream: u32) {
        let count = &self.routes.answered_here[stream as usize];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Hands over an answer to another host's shot.
    pub(super) fn answer(&mut self, answer: &Answer) {
        self.others = self.others.saturating_sub(1);
        assert!(self.answers.push(*answer).is_ok(), "a shot is taken in only if its answer has room");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::bridge;
    use crate::code::bundled_named;
    use crate::feed::lane::{Head, Piece};
    use crate::pipe::Answer;
    use crate::units::Ticks;
    use pinwheel_edge::slot::table::ReplyTo;

    #[test]
    fn a_shot_that_comes_back_is_decoded_after_the_answers_that_were_passed_on_before_it() {
        let model = bundled_named("surface_d3").unwrap();
        let (mut end, mut bridge) = bridge(&model, 1);
        let (mut detectors, mut observables) = (vec![0; bridge.detector_words], vec![0; bridge.observable_words]);
        let head = |number| Head {
            stream: 0,
            epoch: 0,
            sequence: 0,
            reply_to: ReplyTo { peer: 1, sequence: number },
            arrived: Ticks(0),
            truth_known: false,
            piece: Piece::Whole,
            refused: None,
        };
        bridge.routes.send_away(0);
        for number in 0..2 {
            assert!(end.leaves(0));
            end.send(&head(number), &detectors, &observables);
        }
        let first = bridge.shots.take(&mut detectors, &mut observables).unwrap();
        let second = bridge.shots.take(&mut detectors, &mut observables).unwrap();
        bridge.answered.push(Answer { reply_to: first.reply_to, ..Answer::default() }).unwrap();
        assert!(bridge.taken_in.as_mut().unwrap().put(&second, &detectors, &observables));
        assert!(end.take_in(&mut detectors, &mut observables).is_none());
        assert_eq!(end.next_answered().unwrap().reply_to.sequence, 0);
        assert_eq!(end.take_in(&mut detectors, &mut observables).unwrap().0.reply_to.sequence, 1);
    }
}
