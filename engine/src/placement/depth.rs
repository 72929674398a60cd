//! Queue depth monitor: how full the named queues of each silo are, as snapshots with a time.
//!
//! [`Monitor`] makes a snapshot from the board; [`Watch`] finds the queues that crossed a limit.
//! Run by the controller on a cold thread. Bounds: [`QUEUES`] queues a silo. Source: seed 003,
//! `IQueueDepthMonitor`.
//!
//! # Why
//! *A mean over the interval, not its last moment.* A ring that is drained sixty-four entries at a
//! time is empty or half full depending on the moment. A decision that holds for a second needs the
//! mean of many samples.
//!
//! *Servers beside queues.* A queue stays empty until its servers are saturated, so queue depth
//! alone cannot tell a silo at 10 % load from one at 80 %. Busy device workers and busy decode
//! workers therefore count as used places, too.
//!
//! *Unknown is not idle.* A failed reading, or one whose writers are silent, has no average, so it
//! cannot pass for a low one.

mod monitor;
mod watch;

pub use crate::board::layout::{QUEUES, Queue};
pub use monitor::{Monitor, MonitorLimits};
pub use watch::{Crossing, ENTER, LEAVE, Watch};

use crate::roles::RoleKind;
use crate::units::{Nanos, TickRate, Ticks};

/// How full one silo was between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiloDepth {
    /// Mean share of each queue's places that were used, 0..=1; `None`: the silo has no such queue.
    pub utilization: [Option<f64>; QUEUES],
    /// Mean of its queues.
    pub average: f64,
    /// Utilization of the fullest queue.
    pub max: f64,
    /// Load that arrives for the silo's present streams, as a share of its capacity: above 1 if it
    /// falls behind. Equal to `max` until the streams' loads are known.
    pub demand: f64,
    /// The fullest queue.
    pub fullest: Queue,
    /// Shots that have arrived and are not answered.
    pub waiting: u64,
    /// Time to answer those at the rate of this interval.
    pub backlog: Nanos,
    /// Shots answered in the interval.
    pub processed: u64,
    /// Of these: with an error.
    pub errors: u64,
    /// Time of the last answer seen; zero: none yet.
    pub last_activity: Ticks,
}

impl SiloDepth {
    /// From the utilization of each queue; nothing waits and nothing was answered.
    ///
    /// # Panics
    /// If there is no queue at all.
    pub fn of(utilization: [Option<f64>; QUEUES]) -> SiloDepth {
        let found = || Queue::ALL.iter().zip(&utilization).filter_map(|(queue, share)| Some((*queue, (*share)?)));
        let (fullest, max) = found().max_by(|one, other| one.1.total_cmp(&other.1)).expect("a silo has a queue");
        let average = found().map(|(_, share)| share).sum::<f64>() / found().count() as f64;
        let (waiting, backlog, processed, errors, last_activity) = (0, Nanos(0), 0, 0, Ticks(0));
        let demand = max;
        SiloDepth { utilization, average, max, demand, fullest, waiting, backlog, processed, errors, last_activity }
    }

    /// Every queue equally full: what the tests of a rule need.
    pub fn even(share: f64) -> SiloDepth {
        SiloDepth::of([Some(share); QUEUES])
    }
}

/// Why a silo's depth is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Too few samples so far.
    New,
    /// No thread runs its roles.
    NotRunning,
    /// One of its threads has had no heartbeat for this long.
    Silent(Nanos),
    /// One of its roles has died.
    Died(RoleKind),
}

/// What is known of one silo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// Its depth.
    Known(SiloDepth),
    /// No reading that a decision may use.
    Unknown(Unknown),
}

impl Reading {
    /// The depth, if it is known.
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
    /// Age of the snapshot at `now`.
    pub fn age(&self, now: Ticks, rate: TickRate) -> Nanos {
        rate.nanos(now.since(self.taken))
    }

    /// Standard deviation of the silos' fullest queues, in percentage points; `None` with fewer than two known silos.
    pub fn spread_points(&self) -> Option<f64> {
        spread_points(self.silos.iter().filter_map(Reading::known).map(|depth| depth.max))
    }
}

/// Standard deviation of shares, in percentage points; `None` for fewer than two.
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
    use crate::units::Ticks;

    #[test]
    fn an_average_counts_the_queues_that_are_there_and_the_fullest_has_its_name() {
        let mut shares = [None; QUEUES];
        shares[Queue::Rx as usize] = Some(0.9);
        shares[Queue::Tx as usize] = Some(0.1);
        let depth = SiloDepth::of(shares);
        assert_eq!((depth.average, depth.max, depth.fullest), (0.5, 0.9, Queue::Rx));
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
