//! Queue depth monitor: how full the named queues of each silo are, as a snapshot that is stamped and ages.
//!
//! Owns what a reading is. [`Monitor`] makes one from the board, [`Watch`] finds the queues that crossed a limit. Run by the
//! director, on a cold thread. Bounds: [`QUEUES`] queues a silo. Source: seed 003, `IQueueDepthMonitor`.
//!
//! # Why
//! *A mean over the interval, not its last moment.* A ring that is drained sixty-four at a time is empty or half full
//! depending on when one looks; the mean of many looks is what a decision that holds for a second may rest on.
//!
//! *Servers beside queues.* Queues are empty until what serves them is saturated, so that depth alone cannot tell a silo at
//! 10 % from one at 80 %. Workers in flight on the device and decode workers in a task are counted as places taken, too.
//!
//! *Unknown is not idle.* A reading that failed, or whose writers have not been heard of, scores nothing: it has no average
//! that anyone could take for a low one.

mod monitor;
mod watch;

pub use crate::board::layout::{QUEUES, Queue};
pub use monitor::{Monitor, MonitorLimits};
pub use watch::{Crossing, ENTER, LEAVE, Watch};

use crate::profile::RoleKind;
use crate::units::{Nanos, TickRate, Ticks};

/// How full one silo was between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiloDepth {
    /// Share of the places of each queue that were taken, 0..=1; `None`: the silo has no such queue.
    pub utilization: [Option<f64>; QUEUES],
    /// Mean over its queues.
    pub average: f64,
    /// Of the fullest one.
    pub max: f64,
    /// The same if it answered just what comes for the streams that it has now: above 1 for a silo that falls behind. As
    /// `max` until streams have been weighed.
    pub demand: f64,
    /// Which that is.
    pub fullest: Queue,
    /// Shots that have arrived and are not answered.
    pub waiting: u64,
    /// How long answering those takes at the pace of this interval.
    pub backlog: Nanos,
    /// Shots answered in the interval.
    pub processed: u64,
    /// Of these: with an error.
    pub errors: u64,
    /// When an answer was last seen to have come; zero: none yet.
    pub last_activity: Ticks,
}

impl SiloDepth {
    /// From the share of each queue, with everything else at rest.
    ///
    /// # Panics
    /// If no queue is there at all.
    #[must_use]
    pub fn of(utilization: [Option<f64>; QUEUES]) -> SiloDepth {
        let found = || Queue::ALL.iter().zip(&utilization).filter_map(|(queue, share)| Some((*queue, (*share)?)));
        let (fullest, max) = found().max_by(|one, other| one.1.total_cmp(&other.1)).expect("a silo has a queue");
        let average = found().map(|(_, share)| share).sum::<f64>() / found().count() as f64;
        let (waiting, backlog, processed, errors, last_activity) = (0, Nanos(0), 0, 0, Ticks(0));
        let demand = max;
        SiloDepth { utilization, average, max, demand, fullest, waiting, backlog, processed, errors, last_activity }
    }

    /// Every queue equally full: what the tests of a rule need.
    #[must_use]
    pub fn even(share: f64) -> SiloDepth {
        SiloDepth::of([Some(share); QUEUES])
    }
}

/// Why a silo's depth is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Not looked at often enough yet.
    New,
    /// No thread runs its roles.
    NotRunning,
    /// A thread of its has not been heard of for so long.
    Silent(Nanos),
    /// A role of its has died.
    Died(RoleKind),
    /// The snapshot is so old.
    Old(Nanos),
}

/// What is known of one silo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// How full it is.
    Known(SiloDepth),
    /// Nothing that a decision may rest on.
    Unknown(Unknown),
}

impl Reading {
    /// The depth, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<&SiloDepth> {
        match self {
            Reading::Known(depth) => Some(depth),
            Reading::Unknown(_) => None,
        }
    }
}

/// All silos at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// From 1.
    pub number: u64,
    /// When it was taken.
    pub taken: Ticks,
    /// By silo.
    pub silos: Vec<Reading>,
}

impl Snapshot {
    /// Its age at `now`.
    #[must_use]
    pub fn age(&self, now: Ticks, rate: TickRate) -> Nanos {
        rate.nanos(now.since(self.taken))
    }

    /// The same with every reading unknown if it is older than `limit` at `now`.
    #[must_use]
    pub fn as_of(mut self, now: Ticks, limit: Nanos, rate: TickRate) -> Snapshot {
        let age = self.age(now, rate);
        if age > limit {
            self.silos.fill(Reading::Unknown(Unknown::Old(age)));
        }
        self
    }

    /// Standard deviation over the silos of how full the fullest queue is, in percentage points; `None` with fewer than
    /// two known silos.
    #[must_use]
    pub fn spread_points(&self) -> Option<f64> {
        spread_points(self.silos.iter().filter_map(Reading::known).map(|depth| depth.max))
    }
}

/// Standard deviation of shares, in percentage points; `None` for fewer than two.
#[must_use]
pub fn spread_points(shares: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = shares.clone().count() as f64;
    let mean = shares.clone().sum::<f64>() / count;
    let variance = shares.map(|share| (share - mean) * (share - mean)).sum::<f64>() / count;
    (count >= 2.0).then(|| variance.sqrt() * 100.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{QUEUES, Queue, Reading, SiloDepth, Snapshot, Unknown};
    use crate::units::{Nanos, TickRate, Ticks};

    #[test]
    fn an_average_counts_the_queues_that_are_there_and_the_fullest_has_its_name() {
        let mut shares = [None; QUEUES];
        shares[Queue::Rx as usize] = Some(0.9);
        shares[Queue::Tx as usize] = Some(0.1);
        let depth = SiloDepth::of(shares);
        assert_eq!((depth.average, depth.max, depth.fullest), (0.5, 0.9, Queue::Rx));
    }

    #[test]
    fn an_old_snapshot_knows_nothing() {
        let silos = vec![Reading::Known(SiloDepth::even(0.1)); 2];
        let snapshot = Snapshot { number: 1, taken: Ticks(1_000), silos };
        let limit = Nanos(500);
        assert!(snapshot.clone().as_of(Ticks(1_500), limit, TickRate::NANOS).silos[1].known().is_some());
        let old = snapshot.as_of(Ticks(1_501), limit, TickRate::NANOS);
        assert_eq!(old.silos[1], Reading::Unknown(Unknown::Old(Nanos(501))));
    }

    #[test]
    fn spread_is_a_standard_deviation_in_points_of_what_is_known() {
        let known = |share| Reading::Known(SiloDepth::even(share));
        let silos = vec![known(0.2), Reading::Unknown(Unknown::New), known(0.6)];
        let spread = Snapshot { number: 1, taken: Ticks(0), silos }.spread_points().unwrap();
        assert!((spread - 20.0).abs() < 1e-9, "{spread}");
        assert_eq!(Snapshot { number: 1, taken: Ticks(0), silos: vec![known(0.5)] }.spread_points(), None);
    }
}
