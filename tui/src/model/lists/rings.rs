//! The list of all silos' rings: fill level, throughput and consumer.

use super::{Cell, Line, REST, Spec, by_place, column, plain};
use crate::model::Model;
use crate::theme::Tone;
use crate::widgets::format::{count, number};
use crate::widgets::strip::{depth_tone, gauge};
use pinwheel_engine::board::snapshot::{RingView, SiloView};
use pinwheel_engine::roles::RoleKind;

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("silo", [5, 5, 5], |m, row| on(m, row, |silo, _| Cell::number(silo.id.to_string(), silo.id.into()))),
        column("ring", [9, 9, 9], |m, row| on(m, row, |_, ring| Cell::words(&ring.name))),
        column("depth", [8, 8, 8], |m, row| on(m, row, |_, ring| Cell::count(ring.depth))),
        column("of", [8, 8, 8], |m, row| on(m, row, |_, ring| Cell::count(ring.capacity))),
        column("fill", [12, 12, 22], |m, row| on(m, row, |_, ring| fill(ring))),
        column("in/s", [8, 8, 8], |m, row| Cell::maybe(rate(m, row).map(|rate| rate.0), number)),
        column("full/s", [7, 7, 7], refusals),
        column("full in all", [0, 12, 12], |m, row| on(m, row, |_, ring| Cell::count(ring.refusals))),
        column("behind", [0, 12, 12], |m, row| on(m, row, |_, ring| behind(ring))),
        column("emptied by", [REST, REST, REST], |m, row| {
            on(m, row, |_, ring| Cell::words(reader(&ring.name).map_or("its readers", RoleKind::name)))
        }),
    ],
    len: |model| model.picture().map_or(0, |picture| picture.snapshot.silos.iter().map(|silo| silo.rings.len()).sum()),
    key: by_place,
    details,
};

/// Indexes of the row's silo and of the ring in that silo.
pub fn at(model: &Model, row: usize) -> Option<(usize, usize)> {
    let mut left = row;
    for (place, silo) in model.picture()?.snapshot.silos.iter().enumerate() {
        if left < silo.rings.len() {
            return Some((place, left));
        }
        left -= silo.rings.len();
    }
    None
}

fn ring(model: &Model, row: usize) -> Option<(&SiloView, &RingView)> {
    let (silo, ring) = at(model, row)?;
    let silo = model.picture()?.snapshot.silos.get(silo)?;
    Some((silo, silo.rings.get(ring)?))
}

fn on(model: &Model, row: usize, cell: impl Fn(&SiloView, &RingView) -> Cell) -> Cell {
    ring(model, row).map_or_else(Cell::absent, |(silo, ring)| cell(silo, ring))
}

/// Entries and refusals per second.
fn rate(model: &Model, row: usize) -> Option<(f64, f64)> {
    let (silo, ring) = at(model, row)?;
    model.picture()?.derived.silos.get(silo)?.rings_per_s.get(ring).copied()
}

fn fill(ring: &RingView) -> Cell {
    let share = ring.depth as f64 / ring.capacity.max(1) as f64;
    Cell::number(gauge(ring.depth, ring.capacity, 10), share).toned(depth_tone(ring.depth, ring.capacity))
}

fn refusals(model: &Model, row: usize) -> Cell {
    let per_s = rate(model, row).map(|rate| rate.1);
    let tone = if per_s.is_some_and(|per_s| per_s > 0.0) { Tone::Warn } else { Tone::Plain };
    Cell::maybe(per_s, number).toned(tone)
}

/// Entries that the slowest reader has still to read.
fn behind(ring: &RingView) -> Cell {
    if ring.lags.iter().any(Option::is_none) {
        return Cell::words("reader gone").toned(Tone::Bad);
    }
    Cell::maybe(ring.lags.iter().flatten().max().map(|lag| *lag as f64), number)
}

/// The role that empties the ring of that name; `None` for that of answers, whose readers are no hot threads.
pub fn reader(name: &str) -> Option<RoleKind> {
    Some(match name {
        "rx" => RoleKind::Dispatch,
        "ready" => RoleKind::Graph,
        "lanes" => RoleKind::Decode,
        "tx" => RoleKind::Harvest,
        _ => return None,
    })
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some((silo, ring)) = ring(model, row) else { return Vec::new() };
    let share = 100.0 * ring.depth as f64 / ring.capacity.max(1) as f64;
    let mut lines = vec![
        plain(format!(
            "ring {} of silo {}: {} of {} entries, {share:.1} %; {} passed since the start",
            ring.name,
            silo.id,
            ring.depth,
            count(ring.capacity),
            count(ring.pushed)
        )),
        match ring.refusals {
            0 => ("Nobody has found it full.".to_owned(), Tone::Good),
            times => (
                format!("Found full {} times: who writes to it had to come back in a later frame.", count(times)),
                Tone::Warn,
            ),
        },
    ];
    if let Some((pushed, _)) = rate(model, row).filter(|(pushed, _)| *pushed > 0.0) {
        let ms = ring.depth as f64 / pushed * 1e3;
        lines.push(match ring.depth {
            0 => plain(format!("Empty, at {} entries a second: who empties it keeps up.", number(pushed))),
            _ => plain(format!("At {} entries a second what is in it is {ms:.2} ms of work.", number(pushed))),
        });
    }
    for (reader, lag) in ring.lags.iter().enumerate() {
        lines.push(match lag {
            Some(lag) => plain(format!("reader {reader} is {lag} entries behind")),
            None => (format!("reader {reader} is gone"), Tone::Bad),
        });
    }
    lines
}
