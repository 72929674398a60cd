//! How silos lived, in a report.
//!
//! Plain data from the last board. Bounds: a row for each silo.

use super::Histogram;
use pinwheel_engine::board::snapshot::{LifeView, SiloState, SiloView};
use serde::Serialize;

/// One silo's life. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct LifeReport {
    /// Its number.
    pub id: u32,
    /// At the end.
    pub state: SiloState,
    /// Paths that were built.
    pub epoch: u64,
    /// Times that it failed.
    pub deaths: u64,
    /// Times that it came back.
    pub rejoins: u64,
    /// Times that it was drained.
    pub drains: u64,
    /// Shots answered with an error because it died.
    pub errored: u64,
    /// Streams that it left to heirs.
    pub left: u64,
    /// From a death to where all its streams were taken elsewhere.
    pub fenced_to_elsewhere_ns: Histogram,
    /// From a death to the first answer elsewhere.
    pub fenced_to_answered_elsewhere_ns: Histogram,
    /// From the wish to come back to where it took shots again.
    pub rejoin_ns: Histogram,
    /// Why it is not live.
    pub why: String,
}

/// A row for each of several silos; none where there is one.
pub fn of(silos: &[SiloView]) -> Option<Vec<LifeReport>> {
    let row = |silo: &SiloView| {
        let LifeView { state, epoch, deaths, rejoins, drains, errored, left, .. } = silo.life;
        LifeReport {
            id: silo.id,
            state,
            epoch,
            deaths,
            rejoins,
            drains,
            errored,
            left,
            fenced_to_elsewhere_ns: silo.life.elsewhere.clone(),
            fenced_to_answered_elsewhere_ns: silo.life.answered_elsewhere.clone(),
            rejoin_ns: silo.life.rejoin.clone(),
            why: silo.life.why.clone(),
        }
    };
    (silos.len() > 1).then(|| silos.iter().map(row).collect())
}
