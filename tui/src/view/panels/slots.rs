//! Slots: which waits longest, and on whom? One glyph per slot, and the timestamps of the shot in
//! the selected slot.

use super::table::{self, Empty};
use super::{rows_of, scrolled, shown_silo, slotmap, waits_on, which_silo, worker_of};
use crate::model::derived::SiloDerived;
use crate::model::lists::{List, are_slots_listed, slot_word};
use crate::model::target::Target;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::update::slots_per_row;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use crate::widgets::wrap;
use pinwheel_engine::board::snapshot::{SiloView, SlotState, SlotTimes, SlotView, Snapshot};
use std::fmt::Write;

/// Columns of the row's first slot number.
const LABEL: u16 = 7;
/// Rows beside the map: the silo, and the number of slots in each state.
const SIDE_ROWS: u16 = 8;
/// Fewest columns there for full names of the states.
const SIDE_ROOMY: u16 = 18;
/// Rows of the timestamps side by side, title included.
const LIFE_ACROSS: u16 = 4;
/// Rows of the timestamps one per row, title included.
const LIFE_DOWN: u16 = 8;

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let Some((silo, derived)) = shown_silo(model, picture, "Slots appear when the ring is made.", pen) else { return };
    if are_slots_listed(model) {
        let empty = Empty { why: "This ring has no slots.", fill: "slots: in the profile says how many there are." };
        return table::with_details(model, List::Slots, View::Slots.heading(), empty, pen, |row, pen| {
            if let Some(slot) = silo.slots.get(row) {
                shot_steps(row, slot, &picture.snapshot, pen);
            }
        });
    }
    let per_row = slots_per_row(model.size.0);
    let map_rows = u16::try_from(silo.slots.len().div_ceil(per_row)).unwrap_or(u16::MAX);
    let height = pen.height();
    let life_rows = if height >= LIFE_DOWN + 1 + map_rows.min(16) { LIFE_DOWN } else { LIFE_ACROSS };
    let map_end = height.saturating_sub(life_rows).min(map_rows.max(SIDE_ROWS).saturating_add(1));
    // The slots come first: the rings get a row only if one is left.
    let ring_rows = u16::from(map_end + life_rows < height);
    map(model, &picture.snapshot, silo, derived, &mut pen.rows(0, map_end));
    rings(silo, &mut pen.rows(map_end, map_end + ring_rows));
    let map_end = map_end + ring_rows;
    let mut life_pen = pen.rows(map_end, map_end + life_rows);
    match silo.slots.get(model.cursor.slot) {
        Some(slot) => shot_steps(model.cursor.slot, slot, &picture.snapshot, &mut life_pen),
        None => {
            life_pen.put(1, 0, "This ring has no slots.", Tone::Warn);
        }
    }
}

fn map(model: &Model, snapshot: &Snapshot, silo: &SiloView, derived: &SiloDerived, pen: &mut Pen<'_>) {
    let end = pen.rule(0, View::Slots.heading());
    let right = pen.width().saturating_sub(1);
    match derived.oldest {
        None => pen.put_right(end, right, 0, " none waits ", Tone::Good),
        Some((slot, age)) => {
            let text = format!(" slot {slot} for {}, {} ", time(age), waits_on(&silo.slots[slot]));
            pen.put_right(end, right, 0, &text, Tone::Accent)
        }
    };
    let per_row = slots_per_row(model.size.0);
    let visible = rows_of(pen, 1);
    let rows = silo.slots.len().div_ceil(per_row);
    let first = scrolled(model.cursor.slot / per_row, visible, rows);
    for (y, row) in (1..).zip(first..rows).take(visible) {
        pen.put(1, y, &format!("{:>5}", row * per_row), Tone::Dim);
        let slots = silo.slots.iter().enumerate().skip(row * per_row).take(per_row);
        for (x, (i, slot)) in (LABEL..).zip(slots) {
            let tone =
                if i == model.cursor.slot { Tone::Badge } else { slotmap::slot_tone(slot, snapshot.engine.late_ns) };
            pen.target(x, y, 1, Target::Slot(model.cursor.silo, i));
            pen.dot(x, y, letter(slot.state), tone);
        }
    }
    let side_at = LABEL + u16::try_from(per_row).unwrap_or(u16::MAX) + 1;
    let (width, height) = (pen.width(), pen.height());
    side(model, silo, derived, &mut pen.part(side_at, 1, width.saturating_sub(side_at), height.saturating_sub(1)));
}

/// Beside the map: the silo, and each state's glyph with its number of slots.
fn side(model: &Model, silo: &SiloView, derived: &SiloDerived, pen: &mut Pen<'_>) {
    let which = which_silo(model, silo.id);
    let mut y = 0;
    for row in wrap::rows(&which, usize::from(pen.width()), usize::from(pen.width())) {
        pen.put(0, y, row, Tone::Accent);
        y += 1;
    }
    let states = [SlotState::Idle, SlotState::Written, SlotState::InFlight, SlotState::Completed];
    for ((y, state), slots) in (y + 1..).zip(states).zip(derived.slots) {
        let x = pen.put(0, y, &format!("{} {}", letter(state), count(slots as u64)), Tone::Plain) + 1;
        if pen.width() >= SIDE_ROOMY {
            pen.put(x, y, slot_word(state), Tone::Dim);
        }
    }
}

/// Fill level and refusals of each ring, and the lag of its readers.
fn rings(silo: &SiloView, pen: &mut Pen<'_>) {
    if pen.height() == 0 {
        return;
    }
    let mut x = pen.put(1, 0, "rings", Tone::Dim) + 2;
    for ring in &silo.rings {
        let mut text = format!("{} {}/{}", ring.name, ring.depth, ring.capacity);
        if ring.refusals > 0 {
            let _ = write!(text, " found full {} times", count(ring.refusals));
        }
        for lag in &ring.lags {
            let _ = match lag {
                Some(lag) => write!(text, " lag {lag}"),
                None => write!(text, " reader gone"),
            };
        }
        let tone = if ring.depth * 10 >= ring.capacity * 9 { Tone::Warn } else { Tone::Plain };
        x = pen.put(x, 0, &text, tone) + 3;
    }
}

/// A slot's glyph.
pub fn letter(state: SlotState) -> char {
    match state {
        SlotState::Idle => '.',
        SlotState::Written => 'w',
        SlotState::InFlight => 'I',
        SlotState::Completed => 'c',
    }
}

/// A timestamp of a shot; 0 = not reached yet.
struct LifeStep {
    name: &'static str,
    at_ns: u64,
    before_ns: u64,
}

/// The seven timestamps, each with the last known one before it.
fn steps(times: &SlotTimes) -> [LifeStep; 7] {
    let known = [
        ("scheduled", times.scheduled_ns),
        ("written", times.submitted_ns),
        ("dispatch", times.dispatched_ns),
        ("claimed", times.completed_ns),
        ("decoding", times.decoding_ns),
        ("answered", times.answered_ns),
        ("harvested", times.harvested_ns),
    ];
    let mut before_ns = 0;
    known.map(|(name, at_ns)| {
        let step = LifeStep { name, at_ns, before_ns };
        before_ns = if at_ns == 0 { before_ns } else { at_ns };
        step
    })
}

impl LifeStep {
    fn took_ns(&self) -> Option<u64> {
        (self.at_ns != 0 && self.before_ns != 0).then(|| self.at_ns.saturating_sub(self.before_ns))
    }
}

fn shot_steps(index: usize, slot: &SlotView, snapshot: &Snapshot, pen: &mut Pen<'_>) {
    let worker = worker_of(slot);
    pen.rule(
        0,
        &format!(
            "slot {index}: {} for {}; stream {} shot {}, {worker}",
            slot_word(slot.state),
            time(slot.since_ns),
            slot.stream,
            slot.sequence
        ),
    );
    let steps = steps(&slot.times);
    if steps.iter().all(|step| step.at_ns == 0) {
        pen.put(1, 1, "No shot has used this slot yet. The feed fills the slots in ring order.", Tone::Dim);
        return;
    }
    if pen.height() >= LIFE_DOWN {
        down(&steps, snapshot, pen);
    } else {
        across(&steps, pen);
    }
}

/// Seven columns: name, time since the scheduled arrival, time the step took.
fn across(steps: &[LifeStep; 7], pen: &mut Pen<'_>) {
    let start_ns = steps[0].at_ns;
    pen.put(1, 2, "at", Tone::Dim);
    pen.put(1, 3, "took", Tone::Dim);
    let width = (pen.width().saturating_sub(6) / 7).max(10);
    for (i, step) in (0u16..).zip(steps) {
        let mut cell = pen.part(6 + i * width, 1, width, 3);
        cell.put(0, 0, step.name, Tone::Title);
        if step.at_ns == 0 {
            cell.put(0, 1, "not yet", Tone::Dim);
            continue;
        }
        cell.put(0, 1, &format!("+{}", time(step.at_ns.saturating_sub(start_ns))), Tone::Plain);
        cell.put(0, 2, &step.took_ns().map_or_else(String::new, time), Tone::Accent);
    }
}

/// Seven rows with a bar of the time that each step took.
fn down(steps: &[LifeStep; 7], snapshot: &Snapshot, pen: &mut Pen<'_>) {
    let start_ns = steps[0].at_ns;
    let total_ns = steps.iter().map(|step| step.at_ns).max().unwrap_or(0).saturating_sub(start_ns).max(1);
    let cells = f64::from(pen.width().saturating_sub(56).clamp(1, 80));
    for (y, step) in (1u16..).zip(steps) {
        pen.put(1, y, step.name, Tone::Title);
        if step.at_ns == 0 {
            pen.put(14, y, "not yet", Tone::Dim);
            continue;
        }
        let since_ns = step.at_ns.saturating_sub(start_ns);
        pen.put(14, y, &format!("+{}", time(since_ns)), Tone::Plain);
        let ago = snapshot.at_ns.saturating_sub(step.at_ns);
        pen.put(24, y, &format!("{} ago", time(ago)), Tone::Dim);
        let Some(took_ns) = step.took_ns() else { continue };
        pen.put(38, y, &format!("took {}", time(took_ns)), Tone::Accent);
        let column = |ns: u64| (ns as f64 / total_ns as f64 * cells) as u16;
        let from = column(since_ns.saturating_sub(took_ns));
        for x in from..=column(since_ns).max(from) {
            pen.dot(54 + x, y, '▮', Tone::Good);
        }
    }
}
