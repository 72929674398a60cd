//! A picture as the difference from the one before.
//!
//! Owns the writer's memory of what a reader has by now (the shadow). Cold. Bounds: one copy of the board's words. Reads
//! each word once, Relaxed, like any reader of the board.
//!
//! # What is thinned
//! Slots: see [`super::slots`]. Each stream's latency histogram: once a second, in turn. A record under a number that was
//! caught half written: the last whole one stays. All else is in every picture.

use super::slots;
use super::{fold, put, take, unfold};
use crate::board::image::Image;
use crate::board::{AlarmRow, Board, get};
use crate::units::Ticks;
use std::ops::Range;

/// Pictures in which each stream's histogram comes once.
const STREAMS_EVERY: usize = 10;
/// Bytes of a word.
const WORD: usize = 8;

/// Makes pictures of one board.
pub struct Encoder {
    shadow: Image,
    slots: Range<usize>,
    /// Of each stream's histogram.
    streams: Vec<Range<usize>>,
    pictures: usize,
}

impl Encoder {
    /// For `board`.
    #[must_use]
    pub fn new(board: &Board) -> Encoder {
        let shape = board.shape();
        let histogram = |stream: usize| {
            let block = &board.stream_harvest(stream).latency;
            let from = board.place_of(&block.max_ns);
            from..from + size_of_val(block) / WORD
        };
        Encoder {
            shadow: Image::blank(shape),
            slots: slots::range(board),
            streams: (0..shape.streams as usize).map(histogram).collect(),
            pictures: 0,
        }
    }

    /// What a reader has who took in every picture so far.
    #[must_use]
    pub fn shadow(&self) -> &Image {
        &self.shadow
    }

    /// The next picture's payload, against zeros.
    pub fn key(&mut self, board: &Board, at: Ticks) -> Vec<u8> {
        self.shadow = Image::blank(board.shape());
        self.picture(board, at, true)
    }

    /// The next picture's payload, against the one before.
    pub fn delta(&mut self, board: &Board, at: Ticks) -> Vec<u8> {
        self.picture(board, at, false)
    }

    fn picture(&mut self, board: &Board, at: Ticks, whole: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(4096);
        slots::encode(board, &mut self.shadow, self.slots.start, at, &mut out);
        let mut kept: Vec<Range<usize>> = vec![self.slots.clone()];
        if !whole {
            let turn = self.pictures % STREAMS_EVERY;
            let others = self.streams.iter().enumerate().filter(|(stream, _)| stream % STREAMS_EVERY != turn);
            kept.extend(others.map(|(_, range)| range.clone()));
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
