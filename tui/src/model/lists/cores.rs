//! The list of the machine's cores and who uses each.

use super::{Cell, Line, REST, Spec, by_place, column, plain};
use crate::model::Model;
use crate::theme::Tone;
use pinwheel_engine::host::usage::CoreUse;

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("core", [5, 5, 5], |m, row| on(m, row, |core| Cell::number(core.core.to_string(), core.core.into()))),
        column("node", [5, 5, 5], |m, row| on(m, row, |core| Cell::number(core.node.to_string(), core.node.into()))),
        column("sibling", [8, 8, 8], |m, row| {
            on(m, row, |core| Cell::maybe(core.sibling.map(f64::from), |sibling| sibling.to_string()))
        }),
        column("busy", [6, 6, 6], |m, row| on(m, row, busy)),
        column("noise", [6, 6, 6], |m, row| on(m, row, |core| noise(m, core))),
        column("threads of this engine", [24, 30, 40], |m, row| on(m, row, |core| Cell::words(own(m, core).join(" ")))),
        column("others", [REST, REST, REST], |m, row| on(m, row, |core| Cell::words(others(m, core).join("; ")))),
    ],
    len: |model| model.lookups.cores.rows().len(),
    key: by_place,
    details,
};

fn on(model: &Model, row: usize, cell: impl Fn(&CoreUse) -> Cell) -> Cell {
    model.lookups.cores.rows().get(row).map_or_else(Cell::absent, cell)
}

fn busy(core: &CoreUse) -> Cell {
    Cell::maybe(core.busy, |busy| format!("{:.0}%", busy * 100.0))
}

/// What takes it away from the hot thread that is pinned to it.
fn noise(model: &Model, core: &CoreUse) -> Cell {
    let threads = model.picture().map(|picture| picture.snapshot.threads.iter().zip(&picture.derived.threads));
    let mut here = threads.into_iter().flatten().filter(|(thread, _)| thread.pinned && thread.core == Some(core.core));
    here.next().map_or_else(Cell::absent, |(_, derived)| super::threads::noise(derived))
}

/// Hot threads of the engine shown that are planned on this core.
fn own(model: &Model, core: &CoreUse) -> Vec<String> {
    let threads = model.picture().map(|picture| picture.snapshot.threads.iter()).into_iter().flatten();
    threads.filter(|thread| thread.core == Some(core.core)).map(|thread| thread.name.clone()).collect()
}

/// Other users of the core, as far as visible.
fn others(model: &Model, core: &CoreUse) -> Vec<String> {
    let engine = model.picture().map(|picture| picture.snapshot.engine.pid);
    let claimed = core.claimed_by.iter().filter(|holder| holder.pid.is_none() || holder.pid != engine);
    let mut users: Vec<String> = claimed.map(|holder| format!("claimed by {holder}")).collect();
    for pin in core.pinned_by.iter().filter(|pin| Some(pin.pid) != engine) {
        let state = if pin.running { "runs" } else { "waits" };
        let user = pin.user.as_deref().unwrap_or("user not visible");
        users.push(format!("{} ({}, {user}) pinned here, {state}", pin.name, pin.pid));
    }
    if !core.allowed {
        users.push("not allowed to this process".to_owned());
    }
    users
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some(core) = model.lookups.cores.rows().get(row) else { return Vec::new() };
    let sibling =
        core.sibling.map_or_else(|| "no SMT sibling".to_owned(), |core| format!("SMT sibling of core {core}"));
    let busy = core.busy.map_or_else(|| "load not visible".to_owned(), |busy| format!("{:.0} % busy", busy * 100.0));
    let mut lines = vec![plain(format!("core {}: node {}, {sibling}, {busy}", core.core, core.node))];
    let own = own(model, core);
    lines.push(match own.is_empty() {
        true => ("No hot thread of this engine is planned on it.".to_owned(), Tone::Dim),
        false => plain(format!("hot threads of this engine: {}", own.join(", "))),
    });
    let others = others(model, core);
    if others.is_empty() {
        lines.push(("Nobody else has claimed it or is pinned to it.".to_owned(), Tone::Good));
    }
    lines.extend(others.into_iter().map(|user| (user, Tone::Warn)));
    lines
}
