//! The data path of one silo, from station to station: names with arrows, then depth or rate,
//! median and 99th percentile.
//!
//! Four rows. Roles show their rate and their stage's times, queues their depth, capacity and a gauge.

use crate::model::derived::{Quantiles, SiloDerived};
use crate::theme::Tone;
use crate::widgets::format::{number, rate, time_or_dash};
use crate::widgets::pen::Pen;
use crate::widgets::strip::{depth_tone, gauge};
use pinwheel_engine::board::snapshot::{DeviceState, SiloView};

/// Rows of the path.
pub const ROWS: u16 = 4;
/// Columns of the row labels.
const LABEL: u16 = 5;

struct Station {
    name: &'static str,
    /// Fewest columns, arrow included.
    width: u16,
    now: (String, Tone),
    middle: (String, Tone),
    tail: (String, Tone),
}

pub fn draw(silo: &SiloView, derived: &SiloDerived, pen: &mut Pen<'_>) {
    for (y, label) in [(1, "now"), (2, "p50"), (3, "p99")] {
        pen.put(1, y, label, Tone::Dim);
    }
    let stations = stations(silo, derived);
    let least: u16 = stations.iter().map(|station| station.width).sum();
    let spare = pen.width().saturating_sub(LABEL + least + 1);
    let count = stations.len();
    let each = (spare / u16::try_from(count).unwrap_or(1)).min(8);
    let mut x = LABEL;
    for (i, station) in stations.iter().enumerate() {
        let width = station.width + each;
        let end = pen.put(x, 0, station.name, Tone::Title);
        if i + 1 < count {
            arrow(pen, end + 1, x + width);
        }
        let mut cell = pen.part(x, 1, width.saturating_sub(1), 3);
        cell.put(0, 0, &station.now.0, station.now.1);
        cell.put(0, 1, &station.middle.0, station.middle.1);
        cell.put(0, 2, &station.tail.0, station.tail.1);
        x += width;
    }
}

/// An arrow from column `from` to the one before `to`'s blank.
fn arrow(pen: &mut Pen<'_>, from: u16, to: u16) {
    for x in from..to.saturating_sub(2) {
        pen.dot(x, 0, '─', Tone::Dim);
    }
    pen.dot(to.saturating_sub(2), 0, '▶', Tone::Dim);
}

fn stations(silo: &SiloView, derived: &SiloDerived) -> [Station; 9] {
    let rates = derived.rates;
    let has_device = silo.has_device();
    let role = |name, width, per_s: Option<f64>, stage: &str| {
        let times = stage_times(silo, derived, stage);
        Station {
            name,
            width,
            now: (rate(per_s), Tone::Accent),
            middle: (time_or_dash(times.map(|t| t.p50_ns)), Tone::Plain),
            tail: (time_or_dash(times.map(|t| t.p99_ns)), Tone::Plain),
        }
    };
    [
        role("feed", 8, rates.map(|r| r.submitted), "feed"),
        queue(silo, "rx", 6),
        role("dispatch", 11, rates.map(|r| r.dispatched), "dispatch"),
        if has_device { device(silo, derived, role("device", 9, None, "device")) } else { role("device", 9, None, "") },
        role("poll", 8, rates.filter(|_| has_device).map(|r| r.completed), ""),
        ready(silo, role("ready", 8, None, "queue")),
        role("decode", 9, rates.map(|r| r.decoding), "decode"),
        queue(silo, "tx", 6),
        role("harvest", 8, rates.map(|r| r.answered), "harvest"),
    ]
}

fn stage_times(silo: &SiloView, derived: &SiloDerived, stage: &str) -> Option<Quantiles> {
    let index = silo.stages.iter().position(|s| s.name == stage)?;
    derived.stages.get(index).copied().flatten()
}

fn device(silo: &SiloView, derived: &SiloDerived, station: Station) -> Station {
    let [free, _, _, quarantined] = derived.workers;
    let busy = silo.workers.len() - free;
    let tone = match silo.device {
        DeviceState::Online if quarantined == 0 => Tone::Accent,
        DeviceState::Online => Tone::Warn,
        DeviceState::Lost | DeviceState::Recovering => Tone::Bad,
    };
    Station { now: (format!("{busy}/{}", silo.workers.len()), tone), ..station }
}

fn ready(silo: &SiloView, station: Station) -> Station {
    match silo.rings.iter().find(|ring| ring.name == "ready") {
        Some(ring) => Station {
            now: (
                format!("{}/{}", number(ring.depth as f64), number(ring.capacity as f64)),
                depth_tone(ring.depth, ring.capacity),
            ),
            ..station
        },
        None => station,
    }
}

fn queue(silo: &SiloView, name: &'static str, width: u16) -> Station {
    let absent = || ("–".to_owned(), Tone::Dim);
    match silo.rings.iter().find(|ring| ring.name == name) {
        Some(ring) => Station {
            name,
            width,
            now: (number(ring.depth as f64), depth_tone(ring.depth, ring.capacity)),
            middle: (format!("/{}", number(ring.capacity as f64)), Tone::Dim),
            tail: (gauge(ring.depth, ring.capacity, 4), depth_tone(ring.depth, ring.capacity)),
        },
        None => Station { name, width, now: absent(), middle: absent(), tail: absent() },
    }
}
