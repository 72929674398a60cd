//! A snapshot as the difference from the previous one.
//!
//! Owns a copy of the words that a reader has reconstructed so far (the shadow). Cold. Reads each
//! word once, Relaxed, like any reader of the board, and an alarm as a whole.
//!
//! # What is left out of some snapshots
//! Slots: see [`super::slots`]. Histograms and input health come in turn: of each stream once a
//! second, with its wrong answers by deadline, of each stage twice a second, of each thread's gaps
//! five times a second. An alarm that
//! is just being written keeps its previous words. Everything else is in every snapshot, and the
//! last snapshot contains everything.

use super::slots;
use super::slots::Detail;
use super::{put_varint, take_varint, unzigzag, zigzag};
use crate::board::histogram::HistogramBlock;
use crate::board::image::Image;
use crate::board::{AlarmRow, Board, get};
use crate::units::Ticks;
use std::ops::Range;

/// Snapshots from one with a stream's input health and histogram to the next.
const STREAMS_EVERY: usize = 10;
/// Snapshots from one with a stage's histogram to the next.
const STAGES_EVERY: usize = 5;
/// Snapshots from one with the histogram of a thread's gaps to the next.
const GAPS_EVERY: usize = 2;
/// Bytes of a word.
const WORD: usize = 8;

/// Words that only some snapshots contain.
struct PeriodicWords {
    range: Range<usize>,
    /// Every `every`-th snapshot contains them, at this offset.
    every: usize,
    at: usize,
}

/// Encodes snapshots of one board.
pub struct Encoder {
    shadow: Image,
    slots: Range<usize>,
    turns: Vec<PeriodicWords>,
    snapshots: usize,
}

impl Encoder {
    /// An encoder for `board`.
    pub fn new(board: &Board) -> Encoder {
        let shape = board.shape();
        let turn = |(from, bytes): (usize, usize), every: usize, number: usize| PeriodicWords {
            range: from..from + bytes / WORD,
            every,
            at: number % every,
        };
        let histogram = |block: &HistogramBlock| (board.place_of_block(block), size_of_val(block));
        let mut turns = Vec::new();
        for stream in 0..shape.streams as usize {
            let health = board.stream_feed(stream);
            turns.push(turn((board.place_of_block(health), size_of_val(health)), STREAMS_EVERY, stream));
            let harvest = board.stream_harvest(stream);
            turns.push(turn(histogram(&harvest.latency), STREAMS_EVERY, stream));
            // Rates at deadlines are made of these and of the latencies: both are of one moment.
            let wrong_in = (board.place_of(&harvest.wrong_in[0]), size_of_val(&harvest.wrong_in));
            turns.push(turn(wrong_in, STREAMS_EVERY, stream));
        }
        let stages = (0..shape.silos as usize).flat_map(|silo| &board.latency(silo).stages);
        turns.extend(stages.enumerate().map(|(number, block)| turn(histogram(block), STAGES_EVERY, number)));
        let gaps = (0..shape.threads as usize).map(|thread| &board.thread(thread).frame_gap);
        turns.extend(gaps.enumerate().map(|(number, block)| turn(histogram(block), GAPS_EVERY, number)));
        Encoder { shadow: Image::blank(shape), slots: slots::range(board), turns, snapshots: 0 }
    }

    /// The words that a reader of all snapshots so far has.
    pub fn shadow(&self) -> &Image {
        &self.shadow
    }

    /// The next snapshot, as the difference from zeros.
    pub fn key(&mut self, board: &Board, at: Ticks) -> Vec<u8> {
        self.shadow = Image::blank(board.shape());
        self.encode(board, at, Detail::Full, true)
    }

    /// The next snapshot, as the difference from the previous one.
    pub fn delta(&mut self, board: &Board, at: Ticks, detail: Detail) -> Vec<u8> {
        self.encode(board, at, detail, false)
    }

    /// The last snapshot, as the difference from the previous one, with all words.
    pub fn last(&mut self, board: &Board, at: Ticks) -> Vec<u8> {
        self.encode(board, at, Detail::Full, true)
    }

    fn encode(&mut self, board: &Board, at: Ticks, detail: Detail, whole: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(4096);
        slots::encode(board, &mut self.shadow, self.slots.start, (at, detail), &mut out);
        let mut kept: Vec<Range<usize>> = vec![self.slots.clone()];
        if !whole {
            let others = self.turns.iter().filter(|turn| self.snapshots % turn.every != turn.at);
            kept.extend(others.map(|turn| turn.range.clone()));
        }
        let mut alarms = Vec::new();
        for row in board.alarms() {
            let from = board.place_of_block(row);
            let range = from..from + size_of_val(row) / WORD;
            let is_new = get(&row.versions) != self.shadow.words()[board.place_of(&row.versions)];
            match is_new.then(|| whole_row(board, row, &range)).flatten() {
                Some(words) => alarms.push((range, words)),
                None => kept.push(range),
            }
        }
        kept.sort_by_key(|range| range.start);
        self.snapshots += 1;
        differences(board, self.shadow.words_mut(), &kept, &alarms, &mut out);
        out
    }
}

/// The words of an alarm, which lie in `range`; `None` if it was being written each time.
fn whole_row(board: &Board, row: &AlarmRow, range: &Range<usize>) -> Option<Vec<u64>> {
    row.lock().read(|_| board.words()[range.clone()].iter().map(get).collect())
}

/// Encodes runs of words that differ, outside the ranges in `kept`, and updates `shadow`. The words
/// of `alarms` were read before.
fn differences(
    board: &Board,
    shadow: &mut [u64],
    kept: &[Range<usize>],
    alarms: &[(Range<usize>, Vec<u64>)],
    out: &mut Vec<u8>,
) {
    let words = board.words();
    let word = |at: usize| match alarms.iter().find(|(range, _)| range.contains(&at)) {
        Some((range, alarm)) => alarm[at - range.start],
        None => get(&words[at]),
    };
    let mut run: Vec<u64> = Vec::new();
    // End of the last run, and start of the current one.
    let (mut ended, mut began) = (0, 0);
    let mut flush = |run: &mut Vec<u64>, began: usize| {
        if !run.is_empty() {
            put_varint(out, (began - ended) as u64);
            put_varint(out, run.len() as u64);
            run.iter().for_each(|difference| put_varint(out, zigzag(*difference)));
            ended = began + run.len();
            run.clear();
        }
    };
    let mut at = 0;
    for skip in kept.iter().cloned().chain(std::iter::once(words.len()..words.len())) {
        while at < skip.start {
            let now = word(at);
            let difference = now.wrapping_sub(shadow[at]);
            if difference == 0 {
                flush(&mut run, began);
            } else {
                if run.is_empty() {
                    began = at;
                }
                run.push(difference);
                shadow[at] = now;
            }
            at += 1;
        }
        flush(&mut run, began);
        at = at.max(skip.end);
    }
}

/// Applies a snapshot's payload to the previous snapshot; `None` if it does not belong to this
/// board.
pub(super) fn apply(image: &mut Image, slots_from: usize, at: Ticks, mut payload: &[u8]) -> Option<()> {
    let bytes = &mut payload;
    slots::decode(image, slots_from, at, bytes)?;
    let words = image.words_mut();
    let mut place = 0usize;
    while !bytes.is_empty() {
        place = place.checked_add(usize::try_from(take_varint(bytes)?).ok()?)?;
        let length = usize::try_from(take_varint(bytes)?).ok()?;
        let end = place.checked_add(length)?;
        for word in words.get_mut(place..end)? {
            *word = word.wrapping_add(unzigzag(take_varint(bytes)?));
        }
        place = end;
    }
    Some(())
}
