//! Assembles parts into complete shots: tracks the sequence numbers and the open shot of each
//! stream.
//!
//! Owns one window of sequence numbers and one open shot per stream. Pure: parts and ticks in, a
//! verdict out, so that tests cover every order of arrival. Called by the link on the feed's
//! thread; never allocates after construction. Bounds: the [`WINDOW`] newest numbers, one
//! open shot a stream, [`ROUNDS_MAX`] parts a shot, [`SKIPPED_MAX`] numbers skipped by a single
//! shot.
//!
//! ```text
//! session older ─▶ stale     number seen ─▶ duplicate     part overlaps or is too wide ─▶ malformed
//! number far ahead ─▶ malformed, unless it follows another number that far ahead
//! part of a new number ─▶ open (an unfinished shot before it: incomplete) ─ all parts ─▶ whole
//! ```
//!
//! # Why one open shot
//! A sender finishes a shot before it begins the next of that stream. Parts of two shots of one
//! stream interleave only where a network reorders by more than a shot; then the older shot is
//! given up and counted. Its late parts do not displace the newer one.
//!
//! # Why the number of a shot that was given up is missing again
//! A part was lost, and nobody has answered the shot: its sender sends it again by the same number.
//! Where shots are passed on by rounds it has an answer ([`Assembly::answering_given_up`]).
//!
//! # Why a single number far ahead is refused
//! A damaged number would move the window beyond every shot of the sender, and all later shots
//! would be too far behind. So it is refused, and two successive numbers are accepted, as receivers
//! of RTP do (RFC 3550, appendix A.1). A sender that did skip so many loses the first shot after
//! the gap. The first number of a session cannot be compared: if the second is far behind it, the
//! first was the damaged one.

use super::packet::{Encoding, Part, Position, ROUNDS_MAX};
use crate::units::Ticks;

/// Newest sequence numbers among which duplicates are recognised.
pub const WINDOW: u64 = 256;
/// Most numbers that a single shot may skip: 100 s at 10,000 shots a second.
pub const SKIPPED_MAX: u64 = 1 << 20;
const WINDOW_WORDS: usize = (WINDOW / 64) as usize;
const ROUND_WORDS: usize = (ROUNDS_MAX / 64) as usize;

/// Verdict on a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It completed its shot; [`Assembly::bits`] returns the bits.
    Whole,
    /// Other parts are missing.
    Part,
    /// Its number, or this part of it, was received before.
    Duplicate,
    /// It belongs to an older session, is too far behind, or comes late while a newer shot is open.
    Stale,
    /// It is no valid part of a shot of this width.
    Malformed,
    /// It has soft bytes, but not as many as the shots may have.
    Soft,
}

/// Errors of the sender or the network so far. A number that was skipped and arrived later counts
/// in `gaps` and in `reordered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Numbers skipped.
    pub gaps: u64,
    /// Parts or shots received again.
    pub duplicates: u64,
    /// Shots that arrived after a later one.
    pub reordered: u64,
    /// Parts that do not fit, and refused numbers.
    pub malformed: u64,
    /// Shots given up with parts missing.
    pub incomplete: u64,
    /// Parts of older sessions, too far behind, or late.
    pub stale: u64,
    /// Times that another session took over.
    pub restarts: u64,
}

/// Width and encoding of all shots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Bits of a shot.
    pub bits: u32,
    /// How the bits are encoded.
    pub encoding: Encoding,
    /// Soft bytes that a shot may have; 0: none.
    pub soft_bytes: u32,
}

#[derive(Clone, Debug)]
struct Stream {
    session: u64,
    /// The lowest number not seen yet; meaningless before the first.
    next: u64,
    /// Numbers accepted since the first accepted number of the session.
    taken: u64,
    /// The number after a refused number that was far ahead.
    after_jump: Option<u64>,
    /// Bit `n % WINDOW`: number `n` of the window is settled.
    settled: [u64; WINDOW_WORDS],
    open: Option<Open>,
    /// An open shot was given up since the last query.
    gave_up: bool,
    last: Ticks,
    counts: Counts,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    sequence: u64,
    rounds: [u64; ROUND_WORDS],
    parts: u32,
    last: Option<u32>,
    bits: u32,
    /// Leading words whose bits have all arrived.
    words: u32,
}

/// The assembly of all streams.
pub struct Assembly {
    width: Width,
    /// Words of a shot: of its bits, and then of its soft bytes.
    words: usize,
    bit_words: usize,
    /// Silence after which any other session may take over a stream.
    silence: Ticks,
    /// Whether a shot that is given up is answered.
    answers_given_up: bool,
    streams: Vec<Stream>,
    /// For each stream: the bits of its open shot, then a mask of the bits received.
    bits: Vec<u64>,
    covered: Vec<u64>,
}

impl Assembly {
    /// An assembly of `streams` streams.
    pub fn new(streams: u32, width: Width, silence: Ticks) -> Assembly {
        let bit_words = width.bits.div_ceil(64) as usize;
        let words = bit_words + width.soft_bytes.div_ceil(8) as usize;
        let stream = Stream {
            session: 0,
            next: 0,
            taken: 0,
            after_jump: None,
            settled: [0; WINDOW_WORDS],
            open: None,
            gave_up: false,
            last: Ticks(0),
            counts: Counts::default(),
        };
        let all = words * streams as usize;
        Assembly {
            width,
            words,
            bit_words,
            silence,
            answers_given_up: false,
            streams: vec![stream; streams as usize],
            bits: vec![0; all],
            covered: vec![0; all],
        }
    }

    /// For shots that are answered when they are given up: their numbers are not taken again.
    #[must_use]
    pub fn answering_given_up(self) -> Assembly {
        Assembly { answers_given_up: true, ..self }
    }

    /// Number of streams.
    pub fn streams(&self) -> u32 {
        self.streams.len() as u32
    }

    /// The bits of the shot that was [`Verdict::Whole`]; from the next word on its soft bytes, 0 if it has none.
    pub fn bits(&self, stream: u32) -> &[u64] {
        let from = stream as usize * self.words;
        &self.bits[from..from + self.words]
    }

    /// Leading words of the open shot of `stream` whose bits have all arrived.
    pub fn open_words(&self, stream: u32) -> Option<u32> {
        self.streams[stream as usize].open.map(|open| open.words)
    }

    /// Whether an open shot of `stream` was given up since the last call.
    pub fn take_gave_up(&mut self, stream: u32) -> bool {
        std::mem::take(&mut self.streams[stream as usize].gave_up)
    }

    /// Gives up the open shot of `stream`, if there is one.
    pub fn give_up(&mut self, stream: u32) {
        self.streams[stream as usize].give_up(self.answers_given_up);
    }

    /// Errors of `stream` so far.
    pub fn counts(&self, stream: u32) -> Counts {
        self.streams[stream as usize].counts
    }

    /// Takes a part of an existing stream.
    ///
    /// # Panics
    /// If the stream does not exist.
    pub fn accept(&mut self, part: &Part<'_>, now: Ticks) -> Verdict {
        let verdict = self.judge(part, now);
        let counts = &mut self.streams[part.stream as usize].counts;
        match verdict {
            Verdict::Whole | Verdict::Part => {}
            Verdict::Duplicate => counts.duplicates += 1,
            Verdict::Stale => counts.stale += 1,
            Verdict::Malformed | Verdict::Soft => counts.malformed += 1,
        }
        verdict
    }

    fn judge(&mut self, part: &Part<'_>, now: Ticks) -> Verdict {
        if part.session == 0 || part.sequence == u64::MAX || !self.fits(part) {
            return self.refuse(part, Verdict::Malformed);
        }
        if !part.soft.is_empty() && part.soft.len() != self.width.soft_bytes as usize {
            return self.refuse(part, Verdict::Soft);
        }
        let (silence, answers_given_up) = (self.silence, self.answers_given_up);
        let stream = &mut self.streams[part.stream as usize];
        if !stream.belongs(part, now, silence) {
            return Verdict::Stale;
        }
        stream.last = now;
        let is_whole = part.is_whole(self.width.bits);
        let is_open = stream.open.is_some_and(|open| open.sequence == part.sequence);
        if !is_open {
            match stream.classify(part.sequence) {
                NumberClass::FarAhead if stream.after_jump != Some(part.sequence) => {
                    stream.after_jump = Some(part.sequence + 1);
                    return Verdict::Malformed;
                }
                NumberClass::FarBehindFirst => {
                    stream.counts.malformed += 1;
                    stream.begin_at(part.sequence);
                    stream.advance(part.sequence);
                }
                NumberClass::New | NumberClass::FarAhead => stream.advance(part.sequence),
                // A late part: the newer shot would lose its place.
                NumberClass::Missing if stream.open.is_some_and(|open| open.sequence > part.sequence) && !is_whole => {
                    return Verdict::Stale;
                }
                NumberClass::Missing => stream.counts.reordered += 1,
                NumberClass::Settled => return Verdict::Duplicate,
                NumberClass::Behind => return Verdict::Stale,
            }
            stream.give_up(answers_given_up);
            stream.settle(part.sequence);
            if is_whole {
                let bits = &mut self.bits[part.stream as usize * self.words..];
                part.each_word(|word, value, _| bits[word] = value);
                if self.words > self.bit_words {
                    write_soft(part.soft, &mut bits[self.bit_words..self.words]);
                }
                return Verdict::Whole;
            }
            self.begin(part);
        }
        self.add(part)
    }

    /// Refuses the part. A shot with a refused part is answered by that, and so given up.
    fn refuse(&mut self, part: &Part<'_>, verdict: Verdict) -> Verdict {
        let stream = &mut self.streams[part.stream as usize];
        if stream.session == part.session && stream.open.is_some_and(|open| open.sequence == part.sequence) {
            (stream.open, stream.gave_up) = (None, true);
        }
        verdict
    }

    fn fits(&self, part: &Part<'_>) -> bool {
        let end = u64::from(part.first_bit) + u64::from(part.bits);
        let is_within = end <= u64::from(self.width.bits) && part.round < ROUNDS_MAX;
        part.encoding == self.width.encoding && part.bits > 0 && is_within
    }

    fn begin(&mut self, part: &Part<'_>) {
        let from = part.stream as usize * self.words;
        self.bits[from..from + self.words].fill(0);
        self.covered[from..from + self.words].fill(0);
        let open = Open { sequence: part.sequence, rounds: [0; ROUND_WORDS], parts: 0, last: None, bits: 0, words: 0 };
        self.streams[part.stream as usize].open = Some(open);
    }

    /// Adds the part to the open shot.
    fn add(&mut self, part: &Part<'_>) -> Verdict {
        let from = part.stream as usize * self.words;
        let bits = &mut self.bits[from..from + self.words];
        let covered = &mut self.covered[from..from + self.words];
        let Stream { open: place, gave_up, .. } = &mut self.streams[part.stream as usize];
        let Some(open) = place else { return Verdict::Stale };
        let (word, bit) = (part.round as usize / 64, 1u64 << (part.round % 64));
        if open.rounds[word] & bit != 0 {
            return Verdict::Duplicate;
        }
        let mut overlap = 0;
        part.each_word(|word, _, mask| overlap |= covered[word] & mask);
        let beyond = open.last.is_some_and(|last| part.round > last || part.position == Position::Last);
        if overlap != 0 || beyond {
            (*place, *gave_up) = (None, true);
            return Verdict::Malformed;
        }
        part.each_word(|word, value, mask| {
            bits[word] |= value;
            covered[word] |= mask;
        });
        if !part.soft.is_empty() {
            write_soft(part.soft, &mut bits[self.bit_words..]);
        }
        open.rounds[word] |= bit;
        open.parts += 1;
        open.bits += part.bits;
        // Never counts the last word: completion is reported separately.
        while (open.words as usize) + 1 < self.bit_words && covered[open.words as usize] == u64::MAX {
            open.words += 1;
        }
        if part.position == Position::Last {
            open.last = Some(part.round);
        }
        let Some(last) = open.last else { return Verdict::Part };
        match (open.parts.cmp(&(last + 1)), open.bits == self.width.bits) {
            (std::cmp::Ordering::Less, _) => Verdict::Part,
            (std::cmp::Ordering::Equal, true) => {
                *place = None;
                Verdict::Whole
            }
            // A part above the last one, or bits that were never sent.
            _ => {
                (*place, *gave_up) = (None, true);
                Verdict::Malformed
            }
        }
    }
}

/// Packs soft bytes into words, and fills the rest with 0.
fn write_soft(soft: &[u8], words: &mut [u64]) {
    words.fill(0);
    for (word, bytes) in words.iter_mut().zip(soft.chunks(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
}

enum NumberClass {
    New,
    /// More than [`SKIPPED_MAX`] numbers ahead.
    FarAhead,
    /// More than [`SKIPPED_MAX`] behind the only number so far.
    FarBehindFirst,
    Missing,
    Settled,
    Behind,
}

impl Stream {
    /// Whether the part belongs to the stream's session. A newer session takes over; after a
    /// silence any session does.
    fn belongs(&mut self, part: &Part<'_>, now: Ticks, silence: Ticks) -> bool {
        if part.session == self.session {
            return true;
        }
        if self.session != 0 && part.session < self.session && now.since(self.last) < silence {
            return false;
        }
        self.counts.restarts += u64::from(self.session != 0);
        // No number of that session is taken again.
        self.give_up(true);
        self.session = part.session;
        self.begin_at(part.sequence);
        true
    }

    /// Starts the window at `sequence`: numbers before it are neither missing nor settled.
    fn begin_at(&mut self, sequence: u64) {
        (self.next, self.settled) = (sequence, [0; WINDOW_WORDS]);
        (self.taken, self.after_jump) = (0, None);
    }

    /// Gives up the open shot. Unless it is answered, its number is missing again.
    fn give_up(&mut self, is_answered: bool) {
        let Some(open) = self.open.take() else { return };
        self.counts.incomplete += 1;
        self.gave_up = true;
        if !is_answered {
            // Where the window has moved on, the bit is that of a number that is not settled.
            let (word, bit) = slot(open.sequence);
            self.settled[word] &= !bit;
        }
    }

    fn classify(&self, sequence: u64) -> NumberClass {
        if sequence >= self.next {
            return if sequence - self.next > SKIPPED_MAX { NumberClass::FarAhead } else { NumberClass::New };
        }
        match self.next - sequence {
            behind if behind > SKIPPED_MAX && self.taken == 1 => return NumberClass::FarBehindFirst,
            behind if behind > WINDOW => return NumberClass::Behind,
            _ => {}
        }
        let (word, bit) = slot(sequence);
        if self.settled[word] & bit == 0 { NumberClass::Missing } else { NumberClass::Settled }
    }

    /// Moves the window so that `sequence` is its newest number; counts skipped numbers as gaps.
    fn advance(&mut self, sequence: u64) {
        let skipped = sequence - self.next;
        self.counts.gaps = self.counts.gaps.saturating_add(skipped);
        if skipped >= WINDOW {
            self.settled = [0; WINDOW_WORDS];
        } else {
            for number in self.next..=sequence {
                let (word, bit) = slot(number);
                self.settled[word] &= !bit;
            }
        }
        (self.next, self.after_jump) = (sequence + 1, None);
    }

    fn settle(&mut self, sequence: u64) {
        let (word, bit) = slot(sequence);
        self.settled[word] |= bit;
        self.taken += 1;
    }
}

fn slot(sequence: u64) -> (usize, u64) {
    let place = sequence % WINDOW;
    ((place / 64) as usize, 1 << (place % 64))
}

#[cfg(test)]
mod tests;
