//! A lane: carries shots, complete or in pieces, to the feed of one silo from a link or from
//! another feed. In a stage one feed holds both ends.
//!
//! Owns the buffers, which two rings pass between the ends, as in [`super::stage`]; here both ends
//! are on hot threads. Bounds: the capacity it was made with, [`LANE_SHOTS`] from a link; a link
//! without room takes nothing from its source. R1 of each ring orders the words.

use crate::units::Ticks;
use pinwheel_edge::ring::spsc::{self, Consumer, Producer};
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::{DataWords, read_words, write_words};
use std::collections::VecDeque;
use std::sync::Arc;

/// Capacity of a lane from a link, in shots.
pub const LANE_SHOTS: usize = 1024;
const HEAD_WORDS: usize = 7;
/// Index of the piece in a head's words.
const PIECE: usize = 6;
/// Low bits of the word that holds whether the truth is known; the error code is above them.
const TRUTH_BITS: u32 = 16;

/// Capacity in shots of a lane between two of `silos` feeds: all lanes into one silo hold about as
/// many as a slot ring.
pub fn crossing_shots(silos: usize) -> usize {
    (512 / silos.max(1)).clamp(16, 256)
}

/// Header of a shot in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// Stream of the shot.
    pub stream: u32,
    /// Epoch of the route; 0 from a link.
    pub epoch: u32,
    /// The engine's sequence number of the shot in its stream.
    pub sequence: u64,
    /// Recipient of the answer.
    pub reply_to: ReplyTo,
    /// When the last part arrived.
    pub arrived: Ticks,
    /// Whether the words of true observables are valid.
    pub truth_known: bool,
    /// Which part of the shot the record holds.
    pub piece: Piece,
    /// The error to answer the shot with, if it waited too long or exceeded the queue limit.
    pub refused: Option<ErrorCode>,
}

/// The part of a shot that a record holds. The record repeats the words sent earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// The complete shot.
    Whole,
    /// The first words; their number.
    Opens(u32),
    /// Further words; the number of words present now.
    More(u32),
    /// The remaining words.
    Last,
    /// No words: the rest will never arrive.
    GivenUp,
    /// A mark instead of a shot. When it comes back, every shot put in before it has been taken
    /// out.
    Mark,
}

impl Piece {
    /// Whether it is a shot, or the first words of one.
    pub(super) fn begins(self) -> bool {
        matches!(self, Piece::Whole | Piece::Opens(_))
    }

    fn word(self) -> u64 {
        let (kind, words) = match self {
            Piece::Whole => (0, 0),
            Piece::Opens(words) => (1, words),
            Piece::More(words) => (2, words),
            Piece::Last => (3, 0),
            Piece::GivenUp => (4, 0),
            Piece::Mark => (5, 0),
        };
        kind << 32 | u64::from(words)
    }

    fn of_word(word: u64) -> Piece {
        match word >> 32 {
            0 => Piece::Whole,
            1 => Piece::Opens(word as u32),
            2 => Piece::More(word as u32),
            3 => Piece::Last,
            4 => Piece::GivenUp,
            _ => Piece::Mark,
        }
    }
}

/// The sending end; dropping it ends the lane.
pub struct LaneIn {
    words: Arc<DataWords>,
    full: Producer<u32>,
    free: Consumer<u32>,
}

/// The receiving end.
pub struct LaneOut {
    words: Arc<DataWords>,
    full: Consumer<u32>,
    free: Producer<u32>,
    /// Records taken from the ring and not yet taken out, oldest first.
    waiting: VecDeque<u32>,
    /// Which of them is next: those before it wait while the feed is held.
    next: usize,
    detector_words: usize,
}

/// A lane for `shots` shots of the given widths.
pub fn lane(detector_words: usize, observable_words: usize, shots: usize) -> (LaneIn, LaneOut) {
    let words = Arc::new(DataWords::new(shots, HEAD_WORDS + detector_words + observable_words));
    let (full, full_end) = spsc::channel(shots);
    let (mut free_end, free) = spsc::channel(shots);
    for number in 0..shots as u32 {
        assert!(free_end.push(number).is_ok(), "the free ring holds every buffer");
    }
    let out = LaneOut {
        words: Arc::clone(&words),
        full: full_end,
        free: free_end,
        waiting: VecDeque::with_capacity(shots),
        next: 0,
        detector_words,
    };
    (LaneIn { words, full, free }, out)
}

impl LaneIn {
    /// Free buffers, as last returned by the receiving end.
    pub fn room(&self) -> u64 {
        self.free.depth()
    }

    /// Puts a shot in; `false` if there is no room.
    pub fn put(&mut self, head: &Head, detectors: &[u64], observables: &[u64]) -> bool {
        let Some(number) = self.free.pop() else { return false };
        let record = self.words.record(number as usize);
        let ReplyTo { peer, sequence } = head.reply_to;
        let truth = u64::from(head.truth_known) | head.refused.map_or(0, |code| (code as u64) << TRUTH_BITS);
        let stream = u64::from(head.stream) | u64::from(head.epoch) << 32;
        let words = [stream, head.sequence, peer, sequence, head.arrived.0, truth, head.piece.word()];
        write_words(record, &words);
        write_words(&record[HEAD_WORDS..], detectors);
        write_words(&record[HEAD_WORDS + detectors.len()..], observables);
        assert!(self.full.push(number).is_ok(), "the full ring holds every buffer");
        true
    }
}

impl LaneOut {
    /// Stream, epoch and piece of the oldest record, without taking it.
    pub fn peek(&mut self) -> Option<(u32, u32, Piece)> {
        self.next = 0;
        self.look()
    }

    /// The same of the oldest record that continues a shot of a stream for which `is_open` holds.
    /// Other records wait. Looks at each of them once until [`LaneOut::peek`] starts anew.
    pub fn peek_further(&mut self, is_open: impl Fn(u32) -> bool) -> Option<(u32, u32, Piece)> {
        loop {
            let record = self.look()?;
            let (stream, _, piece) = record;
            if !piece.begins() && is_open(stream) {
                return Some(record);
            }
            self.next += 1;
        }
    }

    fn look(&mut self) -> Option<(u32, u32, Piece)> {
        if self.next == self.waiting.len() {
            self.waiting.push_back(self.full.pop()?);
        }
        let record = self.words.record(*self.waiting.get(self.next)? as usize);
        let (word, piece) = (record[0].load(), Piece::of_word(record[PIECE].load()));
        Some((word as u32, (word >> 32) as u32, piece))
    }

    /// Takes the record last peeked at, or the oldest, and copies its words.
    pub fn take(&mut self, detectors: &mut [u64], observables: &mut [u64]) -> Option<Head> {
        let number = self.waiting.remove(self.next).or_else(|| self.full.pop())?;
        let record = self.words.record(number as usize);
        let mut words = [0; HEAD_WORDS];
        read_words(record, &mut words);
        let [stream, sequence, peer, theirs, arrived, truth, piece] = words;
        read_words(&record[HEAD_WORDS..], detectors);
        read_words(&record[HEAD_WORDS + self.detector_words..], observables);
        assert!(self.free.push(number).is_ok(), "the free ring holds every buffer");
        let reply_to = ReplyTo { peer, sequence: theirs };
        let (epoch, stream) = ((stream >> 32) as u32, stream as u32);
        let (arrived, piece) = (Ticks(arrived), Piece::of_word(piece));
        // Most shots are not refused: skips the search through the codes for them.
        let code = (truth >> TRUTH_BITS) as u16;
        let refused = if code == 0 { None } else { ErrorCode::from_number(code) };
        Some(Head { stream, epoch, sequence, reply_to, arrived, truth_known: truth & 1 != 0, piece, refused })
    }

    /// Number of shots in the lane.
    pub fn depth(&self) -> u64 {
        self.full.depth() + self.waiting.len() as u64
    }

    /// Whether the sending end was dropped and the lane is empty.
    pub fn has_ended(&self) -> bool {
        // Checks the sending end first: every earlier shot is then visible.
        self.full.is_abandoned() && self.depth() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, LANE_SHOTS, Piece, lane};
    use crate::units::Ticks;
    use pinwheel_edge::slot::table::ReplyTo;
    use pinwheel_edge::slot::word::ErrorCode;

    #[test]
    fn a_full_lane_refuses_and_an_end_comes_after_the_last_shot() {
        let (mut link, mut feed) = lane(2, 1, LANE_SHOTS);
        let head = |n: u64| Head {
            stream: 3,
            epoch: n as u32 + 1,
            sequence: n,
            reply_to: ReplyTo { peer: !n, sequence: n + 7 },
            arrived: Ticks(n + 1),
            truth_known: n.is_multiple_of(2),
            piece: [Piece::Whole, Piece::Opens(7), Piece::More(n as u32), Piece::Last, Piece::GivenUp][n as usize % 5],
            refused: [None, Some(ErrorCode::OverflowDeadline), Some(ErrorCode::DroppedNew)][n as usize % 3],
        };
        for n in 0..LANE_SHOTS as u64 {
            assert!(link.put(&head(n), &[n, !n], &[n / 2]));
        }
        assert!(link.room() == 0 && !link.put(&head(0), &[0, 0], &[0]));
        drop(link);
        let (mut detectors, mut observables) = ([0; 2], [0; 1]);
        for n in 0..LANE_SHOTS as u64 {
            assert!(!feed.has_ended());
            assert_eq!(feed.peek(), Some((3, n as u32 + 1, head(n).piece)));
            assert_eq!(feed.take(&mut detectors, &mut observables), Some(head(n)));
            assert_eq!((detectors, observables), ([n, !n], [n / 2]));
        }
        assert!(feed.has_ended() && feed.take(&mut detectors, &mut observables).is_none());
    }

    #[test]
    fn pieces_of_open_shots_pass_those_that_wait_and_these_keep_their_order() {
        let (mut link, mut feed) = lane(1, 1, 8);
        let put = |link: &mut super::LaneIn, stream: u32, piece: Piece| {
            let reply_to = ReplyTo { peer: 0, sequence: 0 };
            let (arrived, refused) = (Ticks(0), None);
            let head = Head { stream, epoch: 0, sequence: 0, reply_to, arrived, truth_known: false, piece, refused };
            assert!(link.put(&head, &[0], &[0]));
        };
        let take = |feed: &mut super::LaneOut| feed.take(&mut [0], &mut [0]).map(|head| (head.stream, head.piece));
        let further = |feed: &mut super::LaneOut| {
            feed.peek_further(|stream| stream < 2).map(|(stream, _, piece)| (stream, piece))
        };
        // The feed may be held after it peeked at a record.
        put(&mut link, 2, Piece::Opens(1));
        assert_eq!(feed.peek(), Some((2, 0, Piece::Opens(1))));
        put(&mut link, 0, Piece::More(1));
        put(&mut link, 2, Piece::Last);
        put(&mut link, 0, Piece::Last);
        put(&mut link, 1, Piece::GivenUp);
        for expected in [(0, Piece::More(1)), (0, Piece::Last), (1, Piece::GivenUp)] {
            assert_eq!(further(&mut feed), Some(expected));
            assert_eq!(further(&mut feed), Some(expected), "not taken yet");
            assert_eq!(take(&mut feed), Some(expected));
        }
        assert_eq!((further(&mut feed), feed.depth()), (None, 2));
        put(&mut link, 0, Piece::Whole);
        assert_eq!(further(&mut feed), None);
        put(&mut link, 1, Piece::Last);
        assert_eq!(further(&mut feed), Some((1, Piece::Last)));
        // It runs again before that was taken.
        for expected in [(2, Piece::Opens(1)), (2, Piece::Last), (0, Piece::Whole), (1, Piece::Last)] {
            assert_eq!(feed.peek().map(|(stream, _, piece)| (stream, piece)), Some(expected));
            assert_eq!(take(&mut feed), Some(expected));
        }
        assert_eq!((link.room(), feed.depth()), (8, 0));
    }
}
