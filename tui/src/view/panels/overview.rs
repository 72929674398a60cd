//! Overview: is every shot answered, and how fast?
//!
//! As many silos as fit (the others in a line each, and in full by the arrow keys), then trends,
//! threads, alarms. The palette's `layout` lines hide panels; those left have their rows.

use super::{alarms, latency, lifecycle_look, path, rows_of, slotmap, streams, threads, trends, waits_on};
use crate::model::choices::Panel;
use crate::model::derived::SiloDerived;
use crate::model::target::Target;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, rate, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{DeviceState, SiloView};

/// Rows kept for the alarms, title included.
const ALARM_ROWS: u16 = 4;
/// Rows that silos in full leave for trends, if the screen has them.
const TRENDS_MIN: u16 = 2;
/// Columns of the label before map and mask.
const LABEL: u16 = 7;

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let (width, height) = (pen.width(), pen.height());
    let shows = |panel| !model.chosen.hides(panel);
    let threads = u16::try_from(picture.snapshot.threads.len()).unwrap_or(u16::MAX);
    let thread_rows = if shows(Panel::Threads) { threads.clamp(1, height / 4) + 1 } else { 0 };
    let kept = ALARM_ROWS + thread_rows;
    title(picture, pen);
    let silos_end = height.saturating_sub(kept + 1);
    let (mut y, hidden) = if shows(Panel::Silos) || picture.snapshot.silos.is_empty() {
        silos(model, picture, &mut pen.rows(1, silos_end))
    } else {
        (0, (0..picture.snapshot.silos.len()).collect())
    };
    y += 1;
    let spare = height.saturating_sub(y + kept);
    let other_rows = u16::try_from(hidden.len()).unwrap_or(u16::MAX).min(spare.saturating_sub(TRENDS_MIN).max(1));
    let trends_max = if shows(Panel::Trends) { trends::ROWS_MAX } else { 0 };
    let trend_rows = (spare.saturating_sub(other_rows)).min(trends_max);
    y += others(picture, &hidden, &mut pen.rows(y, y + spare - trend_rows));
    trends::draw(model, &mut pen.part(0, y, width, trend_rows));
    y += trend_rows;
    if shows(Panel::Latency) {
        y += latency::draw(picture, &mut pen.rows(y, height.saturating_sub(kept)));
    }
    if shows(Panel::Streams) {
        y += streams::draw(picture, &mut pen.rows(y, height.saturating_sub(kept)));
    }
    if shows(Panel::Threads) {
        threads::list(model, picture, &mut pen.rows(y, y + thread_rows));
    }
    alarms::draw(model, picture, &mut pen.rows(y + thread_rows, height));
}

/// The question, and beside it the number of unanswered shots.
fn title(picture: &Picture, pen: &mut Pen<'_>) {
    let end = pen.rule(0, View::Overview.heading());
    let oldest = picture.derived.silos.iter().filter_map(|silo| silo.oldest).map(|(_, age_ns)| age_ns).max();
    let (text, tone) = match oldest {
        None => (" nothing in path ".to_owned(), Tone::Good),
        Some(age_ns) => (format!(" {} in path, oldest {} ", count(picture.derived.open), time(age_ns)), Tone::Accent),
    };
    pen.put_right(end, pen.width(), 0, &text, tone);
}

/// Draws silos from the cursor's on as long as they fit; returns the row after them, and the silos
/// left out, the next first.
fn silos(model: &Model, picture: &Picture, pen: &mut Pen<'_>) -> (u16, Vec<usize>) {
    let all = picture.snapshot.silos.len();
    if all == 0 {
        pen.rule(0, "data path");
        pen.put(1, 1, "No silo yet: the engine is starting. The path appears when the rings are created.", Tone::Warn);
        return (2, Vec::new());
    }
    let first = model.cursor.overview.min(all - 1);
    let (mut y, mut end) = (0, all);
    for (at, (silo, derived)) in picture.snapshot.silos.iter().zip(&picture.derived.silos).enumerate().skip(first) {
        let map_width = pen.width().saturating_sub(LABEL + 2);
        let map_rows = slotmap::rows(silo.slots.len(), map_width, 4);
        let rows = 1 + path::ROWS + map_rows + 2;
        if y > 0 && usize::from(rows) > rows_of(pen, y) {
            end = at;
            break;
        }
        let late_ns = picture.snapshot.engine.late_ns;
        one(silo, derived, (all, late_ns, map_rows), &mut pen.rows(y, y + rows));
        if let Some((slot, _)) = derived.oldest {
            pen.target_row(y + rows - 2, Target::Slot(at, slot));
        }
        y += rows;
    }
    (y.min(pen.height()), (end..all).chain(0..first).collect())
}

/// A line each for the silos left out; returns the rows used.
fn others(picture: &Picture, hidden: &[usize], pen: &mut Pen<'_>) -> u16 {
    let room = rows_of(pen, 0);
    let shown = if hidden.len() > room { room.saturating_sub(1) } else { hidden.len() };
    let mut y = 0;
    for at in &hidden[..shown] {
        other(&picture.snapshot.silos[*at], &picture.derived.silos[*at], picture.snapshot.engine.late_ns, pen, y);
        y += 1;
    }
    if shown < hidden.len() && room > 0 {
        pen.put(1, y, &format!("{} more silos: the arrow keys show them", hidden.len() - shown), Tone::Dim);
        y += 1;
    }
    y
}

fn other(silo: &SiloView, derived: &SiloDerived, late_ns: u64, pen: &mut Pen<'_>, y: u16) {
    let (glyph, word, tone) = look(silo);
    let mut x = pen.put(1, y, &format!("silo {} {glyph} ", silo.id), tone);
    if tone != Tone::Good {
        x = pen.put(x, y, &format!("{word} "), tone);
    }
    let [_, written, in_flight, completed] = derived.slots;
    let answered = rate(derived.rates.map(|rates| rates.answered));
    let text = format!("{answered}  {written} written  {in_flight} in flight  {completed} completed  ");
    let x = pen.put(x, y, &text, Tone::Plain);
    match derived.oldest {
        None => pen.put(x, y, "none waits", Tone::Good),
        Some((slot, age)) => {
            pen.put(x, y, &format!("oldest {}", time(age)), slotmap::slot_tone(&silo.slots[slot], late_ns))
        }
    };
}

/// Glyph, words and tone of a silo: its state if it is not live, else that of its device.
fn look(silo: &SiloView) -> (char, String, Tone) {
    let device = || match silo.device {
        DeviceState::Online if !silo.has_device() => ('●', "no device".to_owned(), Tone::Good),
        DeviceState::Online => ('●', "device online".to_owned(), Tone::Good),
        DeviceState::Lost => ('✖', "device lost".to_owned(), Tone::Bad),
        DeviceState::Recovering => ('▲', "device recovering".to_owned(), Tone::Warn),
    };
    lifecycle_look(silo).unwrap_or_else(device)
}

fn one(silo: &SiloView, derived: &SiloDerived, (all, late_ns, map_rows): (usize, u64, u16), pen: &mut Pen<'_>) {
    silo_title(silo, all, pen);
    let width = pen.width();
    path::draw(silo, derived, &mut pen.rows(1, 1 + path::ROWS));
    let y = 1 + path::ROWS;
    pen.put(1, y, "slots", Tone::Dim);
    slotmap::draw(&silo.slots, late_ns, &mut pen.part(LABEL, y, width.saturating_sub(LABEL + 2), map_rows));
    let y = y + map_rows;
    oldest(silo, derived, late_ns, pen, y);
    mask(silo, derived, pen, y + 1);
}

fn silo_title(silo: &SiloView, all: usize, pen: &mut Pen<'_>) {
    let x = pen.rule(0, &format!("silo {} of {all}", silo.id));
    let (glyph, word, tone) = look(silo);
    let x = pen.put(x, 0, &format!(" {glyph} {word} "), tone);
    let counters = &silo.counters;
    let for_worker = match silo.has_device() {
        true => format!("{} for a worker, ", count(counters.worker_waits)),
        false => String::new(),
    };
    let waits = format!(" frames waited: {for_worker}{} for a slot ", count(counters.slot_waits));
    pen.put(x + 1, 0, &waits, Tone::Dim);
}

fn oldest(silo: &SiloView, derived: &SiloDerived, late_ns: u64, pen: &mut Pen<'_>, y: u16) {
    let [_, written, in_flight, completed] = derived.slots;
    let text = format!("{written} written  {in_flight} in flight  {completed} completed");
    let x = pen.put(LABEL, y, &text, Tone::Plain) + 2;
    let Some((index, age)) = derived.oldest else {
        pen.put(x, y, "none waits", Tone::Good);
        return;
    };
    let on = waits_on(&silo.slots[index]);
    let tone = slotmap::slot_tone(&silo.slots[index], late_ns);
    pen.put(x, y, &format!("oldest {}: slot {index}, {on}", time(age)), tone);
}

fn mask(silo: &SiloView, derived: &SiloDerived, pen: &mut Pen<'_>, y: u16) {
    let dispatch = derived.dispatch_ns_per_shot.map(|ns| format!("dispatch {ns:.0}ns/shot")).unwrap_or_default();
    if !silo.has_device() {
        pen.put(LABEL, y, &dispatch, Tone::Plain);
        return;
    }
    pen.put(1, y, "idle", Tone::Dim);
    let mut x = LABEL;
    for worker in 0..silo.workers.len().min(64) {
        if worker > 0 && worker % 16 == 0 {
            x += 1;
        }
        let free = silo.idle_mask >> worker & 1 == 1;
        pen.dot(x, y, if free { '▮' } else { '▯' }, if free { Tone::Good } else { Tone::Accent });
        x += 1;
    }
    let counters = &silo.counters;
    let x = pen.put(x + 1, y, &format!("0x{:x}", silo.idle_mask), Tone::Plain) + 2;
    let quarantined = format!("quarantines {}", count(counters.quarantined));
    let launches = format!("launches {}", count(counters.launched));
    let x = pen.put(x, y, &quarantined, if counters.quarantined == 0 { Tone::Good } else { Tone::Warn }) + 2;
    let x = pen.put(x, y, &launches, Tone::Plain) + 2;
    pen.put(x, y, &dispatch, Tone::Plain);
}
