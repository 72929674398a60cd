//! The views' parts, one file each: `draw(model, …, pen)` draws in the pen's area and nowhere else.

pub mod alarmlist;
pub mod alarms;
pub mod arbiter;
pub mod footer;
pub mod graph;
pub mod header;
pub mod help;
pub mod latency;
pub mod lost;
pub mod more;
pub mod overview;
pub mod path;
pub mod placement;
pub mod profiles;
pub mod reduced;
pub mod slotmap;
pub mod slots;
pub mod sources;
pub mod streams;
pub mod table;
pub mod tabs;
pub mod threads;
pub mod timeline;
pub mod trends;
pub mod workers;

use crate::keymap::{Action, Scope};
use crate::model::Model;
use crate::widgets::pen::Pen;

/// Which silo of how many a view shows, and the key of the next one.
pub fn which_silo(model: &Model, silo: u32) -> String {
    let silos = model.picture().map_or(0, |picture| picture.snapshot.silos.len());
    match silos {
        0 | 1 => format!("silo {silo}"),
        _ => format!("silo {silo} of {silos}, {}: next", model.keymap.first_key(Scope::Views, Action::NextSilo)),
    }
}

/// First row shown so that `cursor` is in sight of `visible` rows.
pub fn scrolled(cursor: usize, visible: usize, length: usize) -> usize {
    let first = cursor.saturating_sub(visible.saturating_sub(1));
    first.min(length.saturating_sub(visible))
}

/// The rows of a pen as a count.
pub fn rows_of(pen: &Pen<'_>, from: u16) -> usize {
    usize::from(pen.height().saturating_sub(from))
}
