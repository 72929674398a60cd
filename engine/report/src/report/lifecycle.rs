//! Failures, restarts and drains of silos, in a report.
//!
//! Copied from the last snapshot; one row for each silo.

use super::Histogram;
use pinwheel_engine::board::snapshot::{LifecycleView, SiloView};
use pinwheel_engine::roles::SiloState;
use serde::Serialize;

/// Failures, restarts and drains of one silo. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct LifecycleReport {
    /// Number of the silo.
    pub id: u32,
    /// State at the end of the run.
    pub state: SiloState,
    /// Number of times the silo's pipeline was built.
    pub epoch: u64,
    /// Failures of the silo.
    pub deaths: u64,
    /// Restarts after a failure or drain.
    pub rejoins: u64,
    /// Drains of the silo.
    pub drains: u64,
    /// Shots answered with an error because of a failure.
    pub errored: u64,
    /// Streams taken over by other silos.
    pub left: u64,
    /// From a failure until other silos have taken over all streams.
    pub fenced_to_elsewhere_ns: Histogram,
    /// From a failure to the first answer in another silo.
    pub fenced_to_answered_elsewhere_ns: Histogram,
    /// From the restart request until the silo accepts shots again.
    pub rejoin_ns: Histogram,
    /// Why the silo is not live.
    pub why: String,
}

/// One row for each silo; `None` with one silo.
pub fn of(silos: &[SiloView]) -> Option<Vec<LifecycleReport>> {
    let row = |silo: &SiloView| {
        let LifecycleView { state, epoch, deaths, rejoins, drains, errored, left, .. } = silo.lifecycle;
        LifecycleReport {
            id: silo.id,
            state,
            epoch,
            deaths,
            rejoins,
            drains,
            errored,
            left,
            fenced_to_elsewhere_ns: silo.lifecycle.elsewhere.clone(),
            fenced_to_answered_elsewhere_ns: silo.lifecycle.answered_elsewhere.clone(),
            rejoin_ns: silo.lifecycle.rejoin.clone(),
            why: silo.lifecycle.why.clone(),
        }
    };
    (silos.len() > 1).then(|| silos.iter().map(row).collect())
}
