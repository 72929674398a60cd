//! A picture as the difference from the one before.
//!
//! Owns the writer's memory of what a reader has by now (the shadow). Cold. Bounds: one copy of the board's words. Reads
//! each word once, Relaxed, like any reader of the board.
//!
//! # What is thinned
//! Slots: see [`super::slots`]. Each stream's input health and latency histogram: once a second, in turn; the histogram of each
//! stage of the path: twice a second, in turn; of each thread's gaps: five times, in turn. A record under a number that was
//! caught half written: the last whole one stays. All else is in every picture, and the last one has it all.

use super::slots;
use super::{fold, put, take, unfold};
use crate::board::histogram::HistogramBlock;
use crate::board::image::Image;
use crate::board::{AlarmRow, Board, get};
use crate::units::Ticks;
use std::ops::Range;

/// Pictures in which each stream's input health and histogram come once.
const STREAMS_EVERY: usize = 10;
/// Pictures in which each stage's histogram comes once.
const STAGES_EVERY: usize = 5;
/// Pictures in which the histogram of each thread's gaps comes once.
const GAPS_EVERY: usize = 2;
/// Bytes of a word.
const WORD: usize = 8;

/// How many slots a picture holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// As many as there is room for: around an alarm.
    Full,
    /// Some.
    Thin,
}

/// Words that come in some pictures only.
struct Turn {
    range: Range<usize>,
    /// Every so many, at this one of them.
    every: usize,
    at: usize,
}

/// Makes pictures of one board.
pub struct Encoder {
    shadow: Image,
    slots: Range<usize>,
    turns: Vec<Turn>,
    pictures: usize,
}

impl Encoder {
    /// For `board`.
    #[must_use]
    pub fn new(board: &Board) -> Encoder {
        let shape = board.shape();
        let turn = |(from, bytes): (usize, usize), every: usize, number: usize| Turn {
            range: from..from + bytes / WORD,
            every,
            at: number % every,
        };
        let histogram = |block: &HistogramBlock| (board.place_of_block(block), size_of_val(block));
        let mut turns = Vec::new();
        for stream in 0..shape.streams as usize {
            let health = board.stream_feed(stream);
            turns.push(turn((board.place_of_block(health), size_of_val(health)), STREAMS_EVERY, stream));
            turns.push(turn(histogram(&board.stream_harvest(stream).latency), STREAMS_EVERY, stream));
        }
        let stages = (0..shape.silos as usize).flat_map(|silo| &board.latency(silo).stages);
        turns.extend(stages.enumerate().map(|(number, block)| turn(histogram(block), STAGES_EVERY, number)));
        let gaps = (0..shape.threads as usize).map(|thread| &board.thread(thread).frame_gap);
        turns.extend(gaps.enumerate().map(|(number, block)| turn(histogram(block), GAPS_EVERY, number)));
        Encoder { shadow: Image::blank(shape), slots: slots::range(board), turns, pictures: 0 }
    }

    /// What a reader has who took in every picture so far.
    #[must_use]
    pub fn shadow(&self) -> &Image {
        &self.shadow
    }

    /// The next picture's payload, against zeros.
    pub fn key(&mut self, board: &Board, at: Ticks) -> Vec<u8> {
        self.shadow = Image::blank(board.shape());
        self.picture(board, at, Detail::Full, true)
    }

    /// The next picture's payload, against the one before.
    pub fn delta(&mut self, board: &Board, at: Ticks, detail: Detail) -> Vec<u8> {
        self.picture(board, at, detail, false)
    }

    /// The last picture's payload, against the one before: all of it, whoever's turn it is.
    pub fn last(&mut self, board: &Board, at: Ticks) -> Vec<u8> {
        self.picture(board, at, Detail::Full, true)
    }

    fn picture(&mut self, board: &Board, at: Ticks, detail: Detail, whole: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(4096);
        slots::encode(board, &mut self.shadow, self.slots.start, (at, detail), &mut out);
        let mut kept: Vec<Range<usize>> = vec![self.slots.clone()];
        if !whole {
            let others = self.turns.iter().filter(|turn| self.pictures % turn.every != turn.at);
            kept.extend(others.map(|turn| turn.range.clone()));
        }
        kept.extend(board.alarms().iter().filter(|row| is_torn(row)).map(|row| {
            let from = board.place_of(&row.begun);
            from..from + size_of_val(row) / WORD
        }));
        kept.sort_by_key(|range| range.start);
        self.pictures += 1;
        differences(board, self.shadow.words_mut(), &kept, &mut out);
        out
    }
}

fn is_torn(row: &AlarmRow) -> bool {
    get(&row.begun) != get(&row.versions)
}

/// Runs of words that differ, outside the ranges that are `kept` as they are; brings `shadow` up to date.
fn differences(board: &Board, shadow: &mut [u64], kept: &[Range<usize>], out: &mut Vec<u8>) {
    let words = board.words();
    let mut run: Vec<u64> = Vec::new();
    // Where the last run ended, and where the open one began.
    let (mut ended, mut began) = (0, 0);
    let mut flush = |run: &mut Vec<u64>, began: usize| {
        if !run.is_empty() {
            put(out, (began - ended) as u64);
            put(out, run.len() as u64);
            run.iter().for_each(|difference| put(out, fold(*difference)));
            ended = began + run.len();
            run.clear();
        }
    };
    let mut at = 0;
    for skip in kept.iter().cloned().chain(std::iter::once(words.len()..words.len())) {
        while at < skip.start {
            let now = get(&words[at]);
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

/// Applies a picture's payload to what was there before; `None` if it is not one of this board's.
pub(super) fn apply(image: &mut Image, slots_from: usize, at: Ticks, mut payload: &[u8]) -> Option<()> {
    let bytes = &mut payload;
    slots::decode(image, slots_from, at, bytes)?;
    let words = image.words_mut();
    let mut place = 0usize;
    while !bytes.is_empty() {
        place = place.checked_add(usize::try_from(take(bytes)?).ok()?)?;
        let length = usize::try_from(take(bytes)?).ok()?;
        let end = place.checked_add(length)?;
        for word in words.get_mut(place..end)? {
            *word = word.wrapping_add(unfold(take(bytes)?));
        }
        place = end;
    }
    Some(())
}
