//! The slots of a snapshot: the oldest open ones and the newest finished ones.
//!
//! Bounded by a number of open and finished slots over all silos, set by [`Detail`]. A slot that a
//! snapshot leaves out reads as *never written*, not with an older snapshot's content.
//!
//! # Why not all slots
//! At 20,000 shots a second each of 1,024 slots has another shot in every snapshot. All of them
//! would take ten times as much as the rest of a snapshot. A reader asks which shots waited
//! longest, and when the last ones passed each stage. Both are recorded exactly.
//!
//! # Why columns
//! Compression benefits from similar neighbours: columns are a third smaller than rows.

use super::{put_varint, take_varint, unzigzag, zigzag};
use crate::board::image::Image;
use crate::board::{Board, SlotStamps, get};
use crate::units::Ticks;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// How many slots a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// As many as there is room for; used around an alarm.
    Full,
    /// Fewer.
    Thin,
}

/// Most open slots and most finished slots of a snapshot, around an alarm and in key snapshots.
const FULL: (usize, usize) = (96, 24);
/// The same in other snapshots.
const THIN: (usize, usize) = (48, 8);
const WORDS: usize = size_of::<SlotStamps>() / 8;
/// Words of a slot that are used.
const USED: usize = 10;
/// Indices of words in [`row`].
const SUBMITTED: usize = 3;
const HARVESTED: usize = 9;

/// The slots' range in the board's words.
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

/// Reads the last stage's stamp first, as every reader of the stamps must.
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

/// Selects slots, writes them and the slots that are no longer included, and updates the shadow.
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
    put_varint(out, gone.len() as u64);
    let mut last = 0;
    for slot in gone {
        put_varint(out, (slot - last) as u64);
        last = slot;
        shadow.words_mut()[from + slot * WORDS..][..USED].fill(0);
    }
    put_varint(out, open.len() as u64);
    last = 0;
    for (slot, row) in &open {
        put_varint(out, (slot - last) as u64);
        last = *slot;
        shadow.words_mut()[from + slot * WORDS..][..USED].copy_from_slice(row);
    }
    let rows: Vec<[u64; USED]> = open.into_iter().map(|(_, row)| row).collect();
    columns(&rows, at, out);
}

/// Applies what [`encode`] wrote.
pub(super) fn decode(image: &mut Image, from: usize, at: Ticks, bytes: &mut &[u8]) -> Option<()> {
    let mut last = None;
    for _ in 0..take_varint(bytes)? {
        let slot = next_slot(last, bytes)?;
        place(image, from, slot)?.fill(0);
        last = Some(slot);
    }
    let mut slots: Vec<usize> = Vec::new();
    for _ in 0..take_varint(bytes)? {
        let slot = next_slot(slots.last().copied(), bytes)?;
        place(image, from, slot)?;
        slots.push(slot);
    }
    for (slot, row) in slots.iter().zip(rows(slots.len(), at, bytes)?) {
        place(image, from, *slot)?.copy_from_slice(&row);
    }
    Some(())
}

/// The slot after `last`. Refuses one that does not grow: so there are never more of them than the
/// board has slots, whoever wrote the recording.
fn next_slot(last: Option<usize>, bytes: &mut &[u8]) -> Option<usize> {
    let gap = usize::try_from(take_varint(bytes)?).ok()?;
    match last {
        None => Some(gap),
        Some(last) => last.checked_add(gap).filter(|slot| *slot > last),
    }
}

fn place(image: &mut Image, from: usize, slot: usize) -> Option<&mut [u64]> {
    let shape = image.shape();
    let count = shape.silos as usize * shape.slots as usize;
    let first = from + (slot < count).then_some(slot)? * WORDS;
    image.words_mut().get_mut(first..first + USED)
}

/// Stages after the scheduled time; each stamp is stored as the time since the previous known one.
const STEPS: [usize; 6] = [3, 4, 6, 7, 8, 9];
/// Stored as the difference from the previous row: neighbouring slots hold successive shots.
const SEQUENCE: usize = 1;
const SCHEDULED: usize = 2;

fn columns(rows: &[[u64; USED]], at: Ticks, out: &mut Vec<u8>) {
    rows.iter().for_each(|row| put_varint(out, row[0]));
    rows.iter().for_each(|row| put_varint(out, row[5]));
    for (column, mut before) in [(SEQUENCE, 0), (SCHEDULED, at.0)] {
        for row in rows {
            put_varint(out, zigzag(row[column].wrapping_sub(before)));
            before = row[column];
        }
    }
    let mut bases: Vec<u64> = rows.iter().map(|row| row[SCHEDULED]).collect();
    for step in STEPS {
        for (row, base) in rows.iter().zip(&mut bases) {
            match row[step] {
                0 => put_varint(out, 0),
                tick => {
                    // Zero means "no stamp". A difference of all ones does not occur within a run.
                    put_varint(out, zigzag(tick.wrapping_sub(*base)).saturating_add(1));
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
            row[column] = take_varint(bytes)?;
        }
    }
    for (column, mut before) in [(SEQUENCE, 0), (SCHEDULED, at.0)] {
        for row in &mut rows {
            row[column] = u64::wrapping_add(before, unzigzag(take_varint(bytes)?));
            before = row[column];
        }
    }
    let mut bases: Vec<u64> = rows.iter().map(|row| row[SCHEDULED]).collect();
    for step in STEPS {
        for (row, base) in rows.iter_mut().zip(&mut bases) {
            let told = take_varint(bytes)?;
            if told != 0 {
                row[step] = base.wrapping_add(unzigzag(told - 1));
                *base = row[step];
            }
        }
    }
    Some(rows)
}
