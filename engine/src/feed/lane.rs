//! A lane: shots, whole or piece by piece, on their way to the feed of one silo, from a link or from another feed; or in a
//! stage, whose both ends are one feed's.
//!
//! Owns the buffers; handed to and fro by two rings, as in [`super::stage`], whose cold twin this is: both ends are hot.
//! Bounds: what it was made for, [`LANE_SHOTS`] from a link; a link that finds no room takes nothing from its source. R1 of each ring orders the words.

use crate::units::Ticks;
use pinwheel_edge::ring::spsc::{self, Consumer, Producer};
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::{DataWords, read_words, write_words};
use std::sync::Arc;

/// Shots that a lane from a link holds.
pub const LANE_SHOTS: usize = 1024;
const HEAD_WORDS: usize = 7;
/// Where in a head it says what it is.
const PIECE: usize = 6;
/// Of the word that says whether the truth is known; an error stands above them.
const TRUTH_BITS: u32 = 16;

/// What goes before a shot's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Stream.
    pub stream: u32,
    /// Epoch of the route by which it goes; from a link 0.
    pub epoch: u32,
    /// The engine's number of it in the stream.
    pub sequence: u64,
    /// Who gets the answer.
    pub reply_to: ReplyTo,
    /// When its last part came.
    pub arrived: Ticks,
    /// Whether the words of true observables are.
    pub truth_known: bool,
    /// What of the shot it is.
    pub piece: Piece,
    /// With which error it is to be answered: it waited too long, or was one too many.
    pub refused: Option<ErrorCode>,
}

/// What of a shot is in a record. The words before those that are new are there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// All of it.
    Whole,
    /// Its first words, so many.
    Opens(u32),
    /// As many as this are there now.
    More(u32),
    /// The rest.
    Last,
    /// Nothing: the rest will never come.
    GivenUp,
    /// No shot: a mark. All that was put in before it has been taken out once it comes back.
    Mark,
}

impl Piece {
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

/// The link's end; dropped, it ends the lane.
pub struct LaneIn {
    words: Arc<DataWords>,
    full: Producer<u32>,
    free: Consumer<u32>,
}

/// The feed's end.
pub struct LaneOut {
    words: Arc<DataWords>,
    full: Consumer<u32>,
    free: Producer<u32>,
    /// A shot that was looked at and not taken.
    next: Option<u32>,
    detector_words: usize,
}

/// A lane for so many shots of so many words of detectors and observables.
#[must_use]
pub fn lane(detector_words: usize, observable_words: usize, shots: usize) -> (LaneIn, LaneOut) {
    let words = Arc::new(DataWords::new(shots, HEAD_WORDS + detector_words + observable_words));
    let (full, full_end) = spsc::channel(shots);
    let (mut free_end, free) = spsc::channel(shots);
    for number in 0..shots as u32 {
        assert!(free_end.push(number).is_ok(), "the free ring holds every buffer");
    }
    let out = LaneOut { words: Arc::clone(&words), full: full_end, free: free_end, next: None, detector_words };
    (LaneIn { words, full, free }, out)
}

impl LaneIn {
    /// Shots it has room for, as the feed last said.
    #[must_use]
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
    /// Stream and epoch of the next shot, and what of it comes next; it stays.
    pub fn peek(&mut self) -> Option<(u32, u32, Piece)> {
        self.next = self.next.or_else(|| self.full.pop());
        let record = self.words.record(self.next? as usize);
        let (word, piece) = (record[0].load(), Piece::of_word(record[PIECE].load()));
        Some((word as u32, (word >> 32) as u32, piece))
    }

    /// Copies the next shot.
    pub fn take(&mut self, detectors: &mut [u64], observables: &mut [u64]) -> Option<Head> {
        let number = self.next.take().or_else(|| self.full.pop())?;
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
        // Most are not refused: the codes are not gone through for those.
        let code = (truth >> TRUTH_BITS) as u16;
        let refused = if code == 0 { None } else { ErrorCode::from_number(code) };
        Some(Head { stream, epoch, sequence, reply_to, arrived, truth_known: truth & 1 != 0, piece, refused })
    }

    /// Shots in it.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.full.depth() + u64::from(self.next.is_some())
    }

    /// Whether the other end is gone and nothing is left.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // The end first: whatever was put in before it is then seen.
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
}
