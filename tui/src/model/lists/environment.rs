//! The list of the machine's properties found at the start of the run.

use super::{Cell, Line, REST, Rank, Spec, by_place, column, plain};
use crate::model::Model;
use crate::theme::Tone;
use pinwheel_engine::host::check::{Row, Verdict};

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("verdict", [13, 13, 13], |m, row| on(m, row, verdict)),
        column("what", [22, 22, 22], |m, row| on(m, row, |row| Cell::words(&row.id))),
        column("found", [REST, 40, 50], |m, row| on(m, row, |row| Cell::words(&row.found))),
        column("expected", [0, REST, 50], |m, row| on(m, row, |row| Cell::words(&row.expected).toned(Tone::Dim))),
        column("why", [0, 0, REST], |m, row| on(m, row, |row| Cell::words(&row.why).toned(Tone::Dim))),
    ],
    len: |model| model.lookups.environment.rows().len(),
    key: by_place,
    details,
};

fn on(model: &Model, row: usize, cell: impl Fn(&Row) -> Cell) -> Cell {
    model.lookups.environment.rows().get(row).map_or_else(Cell::absent, cell)
}

fn verdict(row: &Row) -> Cell {
    let (glyph, tone, rank) = match row.verdict {
        Verdict::Pass => ('●', Tone::Good, 0.0),
        Verdict::NotVisible => ('○', Tone::Dim, 1.0),
        Verdict::Warn => ('▲', Tone::Warn, 2.0),
        Verdict::Fail => ('✖', Tone::Bad, 3.0),
    };
    Cell { rank: Rank::Number(rank), ..Cell::words(format!("{glyph} {}", row.verdict.name())).toned(tone) }
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some(row) = model.lookups.environment.rows().get(row) else { return Vec::new() };
    let mut lines = vec![
        plain(format!("{}: found {}", row.id, row.found)),
        plain(format!("expected {}", row.expected)),
        (row.why.clone(), Tone::Dim),
    ];
    if !row.fix.is_empty() {
        lines.push((format!("do: {}", row.fix), Tone::Accent));
    }
    lines
}
