//! The slots of a picture: those that matter at that moment.
//!
//! Pure but for reading the board. Bounds: so many rows of open slots and of finished ones a picture, over all silos, as its
//! [`Detail`] says. What a picture does not hold of a slot reads as *never written*, not as it was some pictures ago.
//!
//! # Why not all
//! At 20,000 shots a second every one of 1,024 slots holds another shot in each picture: ten times what all else in it
//! takes. Whoever looks back asks which shot waited longest, and what the last ones went through; both are here, exactly.
//!
//! # Why column by column
//! The packer sees alike beside alike: a third smaller than row by row.

use super::delta::Detail;
use super::{fold, put, take, unfold};
use crate::board::image::Image;
use crate::board::{Board, SlotStamps, get};
use crate::units::Ticks;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Open slots of a picture, the oldest, and finished ones, the newest: around an alarm and in key pictures.
const FULL: (usize, usize) = (96, 24);
/// In all others.
const THIN: (usize, usize) = (48, 8);
/// Words of a slot.
const WORDS: usize = size_of::<SlotStamps>() / 8;
/// Of these, in use.
const USED: usize = 10;
/// Places in [`row`].
const SUBMITTED: usize = 3;
const HARVESTED: usize = 9;

/// Where the slots lie among the board's words.
pub(super) fn range(board: &Board) -> Range<usize> {
    let count = board.shape().silos as usize * board.shape().slots as usize;
    match board.slots(0).first() {
        Some(first) => {
            let from = board.place_of(&first.stream);
            from..from + count * WORDS
        }
        None => 0..0,
    }
}

fn words(stamps: &SlotStamps) -> [&AtomicU64; USED] {
    [
        &stamps.stream,
        &stamps.sequence,
        &stamps.scheduled,
        &stamps.submitted,
        &stamps.dispatched,
        &stamps.worker,
        &stamps.completed,
        &stamps.decoding,
        &stamps.answered,
        &stamps.harvested,
    ]
}

/// The last step first, as every reader of the stamps must.
fn row(stamps: &SlotStamps) -> [u64; USED] {
    let mut row = [0; USED];
    for (value, word) in row.iter_mut().zip(words(stamps)).rev() {
        *value = get(word);
    }
    row
}

fn is_open(row: &[u64; USED]) -> bool {
    row[SUBMITTED] != 0 && row[HARVESTED] < row[SUBMITTED]
}

/// Chooses rows, writes them and what is no longer shown, and brings the shadow up to date.
pub(super) fn encode(board: &Board, shadow: &mut Image, from: usize, (at, detail): (Ticks, Detail), out: &mut Vec<u8>) {
    let (open_max, done_max) = if detail == Detail::Full { FULL } else { THIN };
    let slots = (0..board.shape().silos as usize).flat_map(|silo| board.slots(silo));
    let rows: Vec<(usize, [u64; USED])> = slots.map(row).enumerate().filter(|(_, row)| row[SUBMITTED] != 0).collect();
    let (mut open, mut done): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, row)| is_open(row));
    open.sort_unstable_by_key(|(_, row)| row[SUBMITTED]);
    open.truncate(open_max);
    done.sort_unstable_by_key(|(_, row)| Reverse(row[HARVESTED]));
    done.truncate(done_max);
    open.append(&mut done);
    open.sort_unstable_by_key(|(slot, _)| *slot);
    let count = board.shape().silos as usize * board.shape().slots as usize;
    let shown = |slot: usize, shadow: &Image| shadow.words()[from + slot * WORDS + SUBMITTED] != 0;
    let gone: Vec<usize> = (0..count)
        .filter(|slot| shown(*slot, shadow) && open.binary_search_by_key(slot, |(chosen, _)| *chosen).is_err())
        .collect();
    put(out, gone.len() as u64);
    let mut last = 0;
    for slot in gone {
        put(out, (slot - last) as u64);
        last = slot;
        shadow.words_mut()[from + slot * WORDS..][..USED].fill(0);
    }
    put(out, open.len() as u64);
    last = 0;
    for (slot, row) in &open {
        put(out, (slot - last) as u64);
        last = *slot;
        shadow.words_mut()[from + slot * WORDS..][..USED].copy_from_slice(row);
    }
    let rows: Vec<[u64; USED]> = open.into_iter().map(|(_, row)| row).collect();
    columns(&rows, at, out);
}

/// Inverse of [`encode`]'s writing.
pub(super) fn decode(image: &mut Image, from: usize, at: Ticks, bytes: &mut &[u8]) -> Option<()> {
    let mut slot = 0usize;
    for _ in 0..take(bytes)? {
        slot = slot.checked_add(usize::try_from(take(bytes)?).ok()?)?;
        place(image, from, slot)?.fill(0);
    }
    slot = 0;
    let mut slots = Vec::new();
    for _ in 0..take(bytes)? {
        slot = slot.checked_add(usize::try_from(take(bytes)?).ok()?)?;
        place(image, from, slot)?;
        slots.push(slot);
    }
    for (slot, row) in slots.iter().zip(rows(slots.len(), at, bytes)?) {
        place(image, from, *slot)?.copy_from_slice(&row);
    }
    Some(())
}

fn place(image: &mut Image, from: usize, slot: usize) -> Option<&mut [u64]> {
    let shape = image.shape();
    let count = shape.silos as usize * shape.slots as usize;
    let first = from + (slot < count).then_some(slot)? * WORDS;
    image.words_mut().get_mut(first..first + USED)
}

/// Steps that follow the scheduled time, each told as the time since the last known one.
const STEPS: [usize; 6] = [3, 4, 6, 7, 8, 9];
/// Told against the row before: neighbours in the ring hold shots that came one after the other.
const SEQUENCE: usize = 1;
const SCHEDULED: usize = 2;

fn columns(rows: &[[u64; USED]], at: Ticks, out: &mut Vec<u8>) {
    rows.iter().for_each(|row| put(out, row[0]));
    rows.iter().for_each(|row| put(out, row[5]));
    for (column, mut before) in [(SEQUENCE, 0), (SCHEDULED, at.0)] {
        for row in rows {
            put(out, fold(row[column].wrapping_sub(before)));
            before = row[column];
        }
    }
    let mut bases: Vec<u64> = rows.iter().map(|row| row[SCHEDULED]).collect();
    for step in STEPS {
        for (row, base) in rows.iter().zip(&mut bases) {
            match row[step] {
                0 => put(out, 0),
                tick => {
                    // Zero is taken, and a difference of all ones does not occur between ticks of one run.
                    put(out, fold(tick.wrapping_sub(*base)).saturating_add(1));
                    *base = tick;
                }
            }
        }
    }
}

/// Inverse of [`columns`].
fn rows(count: usize, at: Ticks, bytes: &mut &[u8]) -> Option<Vec<[u64; USED]>> {
    let mut rows = vec![[0; USED]; count];
    for column in [0, 5] {
        for row in &mut rows {
            row[column] = take(bytes)?;
        }
    }
    for (column, mut before) in [(SEQUENCE, 0), (SCHEDULED, at.0)] {
        for row in &mut rows {
            row[column] = u64::wrapping_add(before, unfold(take(bytes)?));
            before = row[column];
        }
    }
    let mut bases: Vec<u64> = rows.iter().map(|row| row[SCHEDULED]).collect();
    for step in STEPS {
        for (row, base) in rows.iter_mut().zip(&mut bases) {
            let told = take(bytes)?;
            if told != 0 {
                row[step] = base.wrapping_add(unfold(told - 1));
                *base = row[step];
            }
        }
    }
    Some(rows)
}
