//! The slots of a picture: those that matter at that moment.
//!
//! Pure but for reading the board. Bounds: [`OPEN_MAX`] rows of open slots and [`DONE_MAX`] of finished ones a picture, over all
//! silos. What a picture does not hold of a slot reads as *never written*, not as it was some pictures ago.
//!
//! # Why not all
//! At 20,000 shots a second every one of 1,024 slots holds another shot in each picture: ten times what all else in it
//! takes. Whoever looks back asks which shot waited longest, and what the last ones went through; both are here, exactly.

use super::{fold, put, take, unfold};
use crate::board::image::Image;
use crate::board::{Board, SlotStamps, get};
use crate::units::Ticks;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Open slots of a picture: the oldest.
const OPEN_MAX: usize = 96;
/// Finished slots of a picture: the newest.
const DONE_MAX: usize = 24;
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
pub(super) fn encode(board: &Board, shadow: &mut Image, from: usize, at: Ticks, out: &mut Vec<u8>) {
    let slots = (0..board.shape().silos as usize).flat_map(|silo| board.slots(silo));
    let rows: Vec<(usize, [u64; USED])> = slots.map(row).enumerate().filter(|(_, row)| row[SUBMITTED] != 0).collect();
    let (mut open, mut done): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, row)| is_open(row));
    open.sort_unstable_by_key(|(_, row)| row[SUBMITTED]);
    open.truncate(OPEN_MAX);
    done.sort_unstable_by_key(|(_, row)| Reverse(row[HARVESTED]));
    done.truncate(DONE_MAX);
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
    let mut before = Before { sequence: 0, scheduled: at.0 };
    for (slot, row) in open {
        put(out, (slot - last) as u64);
        last = slot;
        before.put(&row, out);
        shadow.words_mut()[from + slot * WORDS..][..USED].copy_from_slice(&row);
    }
}

/// Inverse of [`encode`]'s writing.
pub(super) fn decode(image: &mut Image, from: usize, at: Ticks, bytes: &mut &[u8]) -> Option<()> {
    let mut slot = 0usize;
    for _ in 0..take(bytes)? {
        slot = slot.checked_add(usize::try_from(take(bytes)?).ok()?)?;
        place(image, from, slot)?.fill(0);
    }
    slot = 0;
    let mut before = Before { sequence: 0, scheduled: at.0 };
    for _ in 0..take(bytes)? {
        slot = slot.checked_add(usize::try_from(take(bytes)?).ok()?)?;
        let row = before.take(bytes)?;
        place(image, from, slot)?.copy_from_slice(&row);
    }
    Some(())
}

fn place(image: &mut Image, from: usize, slot: usize) -> Option<&mut [u64]> {
    let shape = image.shape();
    let count = shape.silos as usize * shape.slots as usize;
    let first = from + (slot < count).then_some(slot)? * WORDS;
    image.words_mut().get_mut(first..first + USED)
}

/// The row before: neighbours in the ring hold shots that came one after the other.
struct Before {
    sequence: u64,
    scheduled: u64,
}

/// Steps that follow the scheduled time, each told as the time since the last known one.
const STEPS: [usize; 6] = [3, 4, 6, 7, 8, 9];

impl Before {
    fn put(&mut self, row: &[u64; USED], out: &mut Vec<u8>) {
        put(out, row[0]);
        put(out, fold(row[1].wrapping_sub(self.sequence)));
        put(out, fold(row[2].wrapping_sub(self.scheduled)));
        put(out, row[5]);
        (self.sequence, self.scheduled) = (row[1], row[2]);
        let mut base = row[2];
        for step in STEPS {
            match row[step] {
                0 => put(out, 0),
                tick => {
                    // Zero is taken, and a difference of all ones does not occur between ticks of one run.
                    put(out, fold(tick.wrapping_sub(base)).saturating_add(1));
                    base = tick;
                }
            }
        }
    }

    fn take(&mut self, bytes: &mut &[u8]) -> Option<[u64; USED]> {
        let mut row = [0; USED];
        row[0] = take(bytes)?;
        row[1] = self.sequence.wrapping_add(unfold(take(bytes)?));
        row[2] = self.scheduled.wrapping_add(unfold(take(bytes)?));
        row[5] = take(bytes)?;
        (self.sequence, self.scheduled) = (row[1], row[2]);
        let mut base = row[2];
        for step in STEPS {
            let told = take(bytes)?;
            if told != 0 {
                row[step] = base.wrapping_add(unfold(told - 1));
                base = row[step];
            }
        }
        Some(row)
    }
}
