//! The list of hot threads.

use super::{Cell, Line, REST, Spec, by_place, column, drawn_by_the_view};
use crate::model::Model;
use crate::model::derived::ThreadDerived;
use crate::theme::Tone;
use crate::widgets::format::{count, number, time};
use crate::widgets::strip::{bar_log, heat};
use pinwheel_engine::board::snapshot::{EngineView, NoiseShares, ThreadView};
use pinwheel_engine::roles::ThreadState;
use std::collections::BTreeSet;

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("thread", [9, 9, 9], |m, row| on(m, row, |thread, _, _| Cell::words(&thread.name))),
        column("core", [4, 4, 4], |m, row| on(m, row, |thread, _, _| core(thread))),
        column("policy", [8, 8, 8], |m, row| on(m, row, |thread, _, engine| Cell::line(policy(engine, thread)))),
        column("silence", [8, 8, 8], |m, row| on(m, row, |thread, _, engine| silence(engine, thread))),
        column("past", [10, 30, 60], past),
        column("gap p99", [7, 7, 7], |m, row| {
            on(m, row, |_, derived, _| Cell::time(derived.gap.map(|gap| gap.p99_ns)))
        }),
        column("gap max", [0, 0, 7], |m, row| {
            on(m, row, |_, derived, _| Cell::time(derived.gap.map(|gap| gap.max_ns)))
        }),
        column("busy", [5, 5, 5], |m, row| {
            on(m, row, |_, derived, _| Cell::maybe(derived.busy, |busy| format!("{:.0}%", busy * 100.0)))
        }),
        column("noise", [0, 6, 6], |m, row| on(m, row, |_, derived, _| noise(derived))),
        column("items/s", [0, 0, 8], |m, row| on(m, row, |_, derived, _| Cell::maybe(derived.items_per_s, number))),
        column("frames/s", [0, 0, 8], |m, row| on(m, row, |_, derived, _| Cell::maybe(derived.frames_per_s, number))),
        column("yields", [0, 0, 0], |m, row| on(m, row, |thread, _, _| Cell::count(thread.yields))),
        column("allocator calls", [0, 0, 0], |m, row| on(m, row, |thread, _, _| allocations(thread))),
        column("elsewhere", [0, 0, 0], |m, row| on(m, row, |thread, _, _| Cell::count(thread.frames_elsewhere))),
        column("tid", [0, 0, 0], |m, row| {
            on(m, row, |thread, _, _| Cell::number(thread.tid.to_string(), thread.tid.into()))
        }),
        column("roles", [REST, REST, REST], roles),
    ],
    len: |model| model.picture().map_or(0, |picture| picture.snapshot.threads.len()),
    key: by_place,
    details: drawn_by_the_view,
};

fn on(model: &Model, row: usize, cell: impl Fn(&ThreadView, &ThreadDerived, &EngineView) -> Cell) -> Cell {
    let found = model.picture().and_then(|picture| {
        let thread = picture.snapshot.threads.get(row)?;
        Some(cell(thread, picture.derived.threads.get(row)?, &picture.snapshot.engine))
    });
    found.unwrap_or_else(Cell::absent)
}

fn core(thread: &ThreadView) -> Cell {
    let tone = if thread.pinned { Tone::Plain } else { Tone::Dim };
    thread.core.map_or_else(
        || Cell { text: "c–".to_owned(), ..Cell::absent() },
        |core| Cell::number(format!("c{core:02}"), core.into()).toned(tone),
    )
}

/// The policy acknowledged. `→shared` is a switch not yet acknowledged, `lab!` a refused one.
pub fn policy(engine: &EngineView, thread: &ThreadView) -> Line {
    let runs = thread.policy_acknowledged.name();
    if thread.policy_refusal.is_some() {
        return (format!("{runs}!"), Tone::Warn);
    }
    if thread.epoch_acknowledged < engine.spin_epoch_requested {
        return (format!("→{}", thread.policy_requested.name()), Tone::Warn);
    }
    (runs.to_owned(), Tone::Good)
}

fn silence(engine: &EngineView, thread: &ThreadView) -> Cell {
    match thread.state {
        ThreadState::Starting => Cell::words("○ starting").toned(Tone::Dim),
        ThreadState::Finished => Cell::words("✔ finished").toned(Tone::Dim),
        ThreadState::Panicked => Cell::words("✖ panicked").toned(Tone::Bad),
        ThreadState::Running => {
            let (glyph, tone) = heat(thread.heartbeat_age_ns, engine.heartbeat_limit_ns);
            let age_ns = thread.heartbeat_age_ns;
            Cell::number(format!("{glyph} {}", time(age_ns)), age_ns as f64).toned(tone)
        }
    }
}

/// The longest silences of the last minute, against the limit.
fn past(model: &Model, row: usize) -> Cell {
    const CELLS: usize = 60;
    let Some(picture) = model.picture() else { return Cell::absent() };
    let limit_ns = picture.snapshot.engine.heartbeat_limit_ns;
    let silences: Vec<u64> = model.scene().history.strip(row, CELLS).collect();
    let worst = silences.iter().copied().max();
    let marks = silences.into_iter().map(|silence_ns| bar_log(silence_ns, limit_ns)).collect();
    Cell { marks, ..Cell::time(worst) }
}

/// Share of the last second that its core was away.
pub fn noise(derived: &ThreadDerived) -> Cell {
    Cell::maybe(derived.noise.map(NoiseShares::lost), |lost| format!("{:.1}%", lost * 100.0))
}

fn allocations(thread: &ThreadView) -> Cell {
    Cell::maybe(thread.memory.allocations.map(|calls| calls as f64), |_| count(thread.memory.allocations.unwrap_or(0)))
}

/// Roles in call order, the running one and the panicked ones marked. A thread that runs the same
/// roles for several silos names each once.
fn roles(model: &Model, row: usize) -> Cell {
    let Some(thread) = model.picture().and_then(|picture| picture.snapshot.threads.get(row)) else {
        return Cell::absent();
    };
    let mut text = String::new();
    let mut marks = Vec::new();
    let mut seen = Vec::new();
    let mut say = |words: &str, tone: Tone| {
        marks.extend(words.chars().map(|letter| (letter, tone)));
        text += words;
    };
    let silos: BTreeSet<u32> = thread.roles.iter().map(|role| role.silo).collect();
    if silos.len() > 1 {
        say(&format!("{} silos: ", silos.len()), Tone::Dim);
    }
    for role in &thread.roles {
        let dead = role.died_frame.is_some();
        if silos.len() > 1 && seen.contains(&(role.kind, dead)) {
            continue;
        }
        seen.push((role.kind, dead));
        let tone = match (dead, thread.stage == Some(role.kind)) {
            (true, _) => Tone::Bad,
            (false, true) => Tone::Accent,
            (false, false) => Tone::Plain,
        };
        say(&format!("{}{} ", if dead { "✖" } else { "" }, role.kind.name()), tone);
    }
    Cell { marks, ..Cell::words(text.trim_end()) }
}
