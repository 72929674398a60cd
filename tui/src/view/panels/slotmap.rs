//! The slot map in braille: eight dots per cell. A dot is a slot that is not idle; the cell has the
//! worst tone of its eight slots.
//!
//! Written directly into the buffer. A ring too large for the space has several slots per dot.
//! Without UTF-8 a cell shows the number of its slots that are not idle.

use crate::theme::{Glyphs, Tone};
use crate::widgets::pen::Pen;
use crate::widgets::strip::braille;
use pinwheel_engine::board::snapshot::{SlotState, SlotView};

const DOTS: usize = 8;

/// Rows of a map of `slots` slots in `width` columns, at most `rows_max`.
pub fn rows(slots: usize, width: u16, rows_max: u16) -> u16 {
    let cells = slots.div_ceil(DOTS).max(1);
    let per_row = per_row(slots, width);
    u16::try_from(cells.div_ceil(per_row)).unwrap_or(u16::MAX).clamp(1, rows_max.max(1))
}

/// Cells per row: a power of two, so that rows begin at round slot numbers.
fn per_row(slots: usize, width: u16) -> usize {
    let cells = slots.div_ceil(DOTS).max(1);
    let fit = usize::from(width.max(1)).min(cells);
    if fit == cells { fit } else { 1 << fit.ilog2() }
}

/// Draws the map in the pen's area. `late_ns` is the age from which a waiting slot is late.
pub fn draw(slots: &[SlotView], late_ns: u64, pen: &mut Pen<'_>) {
    let per_row = per_row(slots.len(), pen.width());
    let cells_max = per_row * usize::from(pen.height());
    if cells_max == 0 {
        return;
    }
    let per_dot = slots.len().div_ceil(cells_max * DOTS).max(1);
    for (cell, group) in slots.chunks(per_dot * DOTS).enumerate() {
        let dots = group
            .chunks(per_dot)
            .enumerate()
            .filter(|(_, slots)| slots.iter().any(|slot| slot.state != SlotState::Idle))
            .fold(0u8, |dots, (i, _)| dots | 1 << i);
        let (x, y) = (cell % per_row, cell / per_row);
        let (Ok(x), Ok(y)) = (u16::try_from(x), u16::try_from(y)) else { return };
        pen.dot(x, y, glyph(dots, pen.theme().glyphs), tone(group, late_ns));
    }
}

fn glyph(dots: u8, glyphs: Glyphs) -> char {
    match glyphs {
        Glyphs::Utf8 => braille(dots),
        Glyphs::Ascii if dots == 0 => '.',
        Glyphs::Ascii => char::from_digit(dots.count_ones(), 10).unwrap_or('?'),
    }
}

fn tone(group: &[SlotView], late_ns: u64) -> Tone {
    let worst = group.iter().map(|slot| slot_tone(slot, late_ns));
    worst.max_by_key(|tone| rank(*tone)).unwrap_or(Tone::Dim)
}

fn rank(tone: Tone) -> u8 {
    match tone {
        Tone::Bad => 3,
        Tone::Warn => 2,
        Tone::Good => 1,
        _ => 0,
    }
}

/// The tone of a slot: in error when late, a warning from half that age on.
pub fn slot_tone(slot: &SlotView, late_ns: u64) -> Tone {
    match slot.state {
        SlotState::Idle => Tone::Dim,
        _ if slot.since_ns > late_ns => Tone::Bad,
        _ if slot.since_ns > late_ns / 2 => Tone::Warn,
        _ => Tone::Good,
    }
}
