//! Finds the running engine that an option names, and says what a person should know of it.
//!
//! Only reads the directory of boards.

use super::refusal::Refusal;
use super::{runs, say};
use pinwheel_engine::board;
use pinwheel_engine::board::image;
use pinwheel_report::running;
use std::path::Path;

pub use pinwheel_report::running::{RunningEngine, after, is_there};

/// The engine that `wanted` names by process number, run name or run directory; `None`: the only
/// running engine.
pub fn find(wanted: Option<&str>) -> Result<RunningEngine, Refusal> {
    report_invalid_boards(&board::directory());
    let found = running::find(wanted)?;
    runs::report_owner(&format!("the engine of process {}", found.pid), found.uid);
    Ok(found)
}

/// The refusal of a board that has no moment yet.
pub fn without_clock() -> Refusal {
    Refusal::unusable("board", "no clock on it", "an engine past its Init", "try again when it has started")
}

/// Reports files that are named like boards but are not valid.
pub fn report_invalid_boards(directory: &Path) {
    for said in image::strangers(directory) {
        say::people(&format!("pinwheel: {said}"));
    }
}
