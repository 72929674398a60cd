//! The list of all actions of the run from its event log, each with author, reason, and latency and
//! load before and after. The effect is the one this console observed, or else the one in the run's
//! recording.

use super::{Cell, Line, REST, Spec, column, plain};
use crate::keymap::{Action, Scope};
use crate::model::Model;
use crate::model::lookups::Event;
use crate::model::measured::{Facts, Measured, measured_at, parts};
use crate::theme::Tone;
use crate::widgets::format::{time, time_of_day};

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("when", [9, 9, 9], |m, r| with(m, r, |action| Cell::words(clock(action)))),
        column("what", [33, 34, 52], |m, r| with(m, r, |action| Cell::words(parts(&action.text).0))),
        column("p99.9 before", [0, 12, 12], |m, r| Cell::time(before(m, r).and_then(|facts| facts.p999_ns))),
        column("after", [0, 7, 9], |m, r| Cell::time(after(m, r).and_then(|facts| facts.p999_ns))),
        column("busy before", [0, 0, 11], |m, r| busy(before(m, r))),
        column("busy after", [0, 0, 10], |m, r| busy(after(m, r))),
        column("why", [12, 12, 30], |m, r| with(m, r, |action| why(&action.text))),
        column("who", [REST, REST, REST], |m, r| with(m, r, |action| Cell::words(parts(&action.text).1))),
    ],
    len: |model| model.lookups.actions.len(),
    key: |model, row| at(model, row).map_or(row as u64, |action| action.number),
    details,
};

/// The action of that row, oldest first.
pub fn at(model: &Model, row: usize) -> Option<&Event> {
    model.lookups.log.rows().get(*model.lookups.actions.get(row)?)
}

fn with(model: &Model, row: usize, cell: impl Fn(&Event) -> Cell) -> Cell {
    at(model, row).map_or_else(Cell::absent, cell)
}

fn clock(action: &Event) -> String {
    crate::source::lookup::unix_ns(&action.utc).map_or_else(|| action.utc.clone(), |ns| time_of_day(ns / 1_000_000_000))
}

fn why(text: &str) -> Cell {
    match parts(text).2 {
        "" => Cell::absent(),
        why => Cell::words(why),
    }
}

fn measured(model: &Model, row: usize) -> Option<&Measured> {
    let action = at(model, row)?;
    let seen = measured_at(&model.measured, action.at_ns?);
    let recorded =
        model.lookups.effects.iter().find(|(number, _)| *number == action.number).map(|(_, measured)| measured);
    seen.filter(|seen| seen.after.is_some()).or(recorded).or(seen)
}

fn before(model: &Model, row: usize) -> Option<Facts> {
    measured(model, row).map(|measured| measured.before)
}

fn after(model: &Model, row: usize) -> Option<Facts> {
    measured(model, row)?.after
}

fn busy(facts: Option<Facts>) -> Cell {
    Cell::maybe(facts.and_then(|facts| facts.busy), |busy| format!("{busy:.2}"))
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some(action) = at(model, row) else { return Vec::new() };
    let (what, who, why) = parts(&action.text);
    let who = if who.is_empty() { "the engine itself" } else { who };
    let mut lines = vec![plain(format!("{what}, at {}", action.utc)), plain(format!("by {who}"))];
    lines.push(match why {
        "" => {
            let key = model.keymap.first_key(Scope::Question, Action::Why);
            (format!("no reason was given; {key} at a question takes one, and ctl --why"), Tone::Dim)
        }
        why => plain(format!("why: {why}")),
    });
    lines.extend(effect(measured(model, row)));
    lines
}

/// A line on latency and load before and after.
pub fn effect(measured: Option<&Measured>) -> Vec<Line> {
    let Some(Measured { before, after, .. }) = measured else {
        return vec![(
            "its effect is not known: no moment just before it was seen here or recorded".to_owned(),
            Tone::Dim,
        )];
    };
    let Some(after) = after else {
        let said = "its effect is read 3 s after it, unless another action comes first".to_owned();
        return vec![(said, Tone::Dim)];
    };
    let ns = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), time);
    let cores = |busy: Option<f64>| busy.map_or_else(|| "–".to_owned(), |busy| format!("{busy:.2} cores"));
    vec![plain(format!(
        "effect, a second before it and 3 s after: p50 {} → {}, p99.9 {} → {}, busy {} → {}",
        ns(before.p50_ns),
        ns(after.p50_ns),
        ns(before.p999_ns),
        ns(after.p999_ns),
        cores(before.busy),
        cores(after.busy)
    ))]
}
