//! Which host decodes a stream: the rules of placement over silos, with hosts in the place of silos.
//!
//! Pure: loads in, at most one change out. Used by the bridge's thread. Bounds: one change a call; a
//! stream stays where it went for [`STAYS_NS`]; a stream that an operator placed is left alone.
//!
//! # Why a stream stays where it arrives unless that host is pressed
//! Decoding elsewhere costs the link, twice, and gains nothing while the own host keeps up. So a stream
//! leaves only when a queue of its host is above [`PRESSED`] or shots wait longer than [`BEHIND_NS`], by
//! the director's comparison, in which the link's round trip counts as backlog of the other host. It
//! comes back when its host is below [`RELAXED`]. What lies between keeps it from going to and fro.

use crate::description::Load;
use pinwheel_engine::placement::decision::Decision;
use pinwheel_engine::placement::depth::{Reading, SiloDepth, Snapshot};
use pinwheel_engine::placement::director::{Director, PREFERRED_MAX, Rules};
use pinwheel_engine::units::{Nanos, Ticks};

/// A host with a queue this full gives streams away.
pub const PRESSED: f64 = 0.7;
/// A host whose fullest queue is below this takes its streams back.
pub const RELAXED: f64 = 0.35;
/// Shots that wait this long press their host, too.
pub const BEHIND_NS: u64 = 5_000_000;
/// A stream that moved stays for this long.
pub const STAYS_NS: u64 = 5_000_000_000;

/// A host that takes streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidacy {
    /// Its load.
    pub load: Load,
    /// Round trip of a question to it; 0 for this host.
    pub trip_ns: u64,
}

/// A stream with senders at this host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamLoad {
    /// Stream.
    pub stream: u32,
    /// Its share of the shots that arrive at this host.
    pub share: f64,
    /// Whether another host decodes it.
    pub is_away: bool,
    /// Whether an operator placed it.
    pub is_placed: bool,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The stream goes to the other host at this place of the list.
    Give {
        /// Stream.
        stream: u32,
        /// The host's place.
        to: usize,
    },
    /// The stream is decoded here again.
    TakeBack {
        /// Stream.
        stream: u32,
    },
}

/// The director of one host's streams.
#[derive(Debug)]
pub struct Placing {
    director: Director,
    /// For each stream: when it last moved.
    moved_ns: Vec<u64>,
    snapshots: u64,
}

impl Placing {
    /// For `streams` streams; draws from `seed`.
    #[must_use]
    pub fn new(streams: u32, seed: u64) -> Placing {
        let director = Director::new(Rules::SEED, seed);
        Placing { director, moved_ns: vec![0; streams as usize], snapshots: 0 }
    }

    /// At most one change for the streams with senders here.
    pub fn change(&mut self, own: Load, others: &[Candidacy], streams: &[StreamLoad], now_ns: u64) -> Option<Change> {
        let moved_ns = &self.moved_ns;
        let may_move = |one: &&StreamLoad| {
            let last = moved_ns[one.stream as usize];
            !one.is_placed && (last == 0 || now_ns.saturating_sub(last) > STAYS_NS)
        };
        let is_pressed = own.max >= PRESSED || own.backlog_ns > BEHIND_NS;
        let is_relaxed = own.max < RELAXED && own.backlog_ns <= BEHIND_NS;
        let by_share = |one: &&StreamLoad, other: &&StreamLoad| one.share.total_cmp(&other.share);
        let change = if is_pressed {
            let busiest = streams.iter().filter(may_move).filter(|one| !one.is_away).max_by(by_share)?;
            self.refresh(own, others);
            let share = busiest.share * own.max.max(RELAXED);
            let made = self.director.place_known(busiest.stream, PREFERRED_MAX, (0, share));
            let stream = busiest.stream;
            Change::Give { stream, to: chosen(made.decision)? }
        } else if is_relaxed {
            let least = streams.iter().filter(may_move).filter(|one| one.is_away).min_by(by_share)?;
            Change::TakeBack { stream: least.stream }
        } else {
            return None;
        };
        let (Change::Give { stream, .. } | Change::TakeBack { stream }) = change;
        self.moved_ns[stream as usize] = now_ns.max(1);
        Some(change)
    }

    fn refresh(&mut self, own: Load, others: &[Candidacy]) {
        let own = std::iter::once(Candidacy { load: own, trip_ns: 0 });
        let reading = |one: Candidacy| {
            let mut depth = SiloDepth::even(one.load.max);
            (depth.average, depth.backlog) = (one.load.average, Nanos(one.load.backlog_ns.saturating_add(one.trip_ns)));
            Reading::Known(depth)
        };
        self.snapshots += 1;
        let silos = own.chain(others.iter().copied()).map(reading).collect();
        self.director.refresh(&Snapshot { number: self.snapshots, taken: Ticks(0), silos }, self.moved_ns.len());
    }
}

/// The other host's place that a decision names; `None`: this host, or none.
fn chosen(decision: Decision) -> Option<usize> {
    match decision {
        Decision::Place { silo, .. } => (silo as usize).checked_sub(1),
        Decision::Refuse { .. } | Decision::Move { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Candidacy, Change, Placing, STAYS_NS, StreamLoad};
    use crate::description::Load;

    fn load(max: f64) -> Load {
        Load { average: max / 2.0, max, backlog_ns: 0 }
    }

    fn host(max: f64, trip_ns: u64) -> Candidacy {
        Candidacy { load: load(max), trip_ns }
    }

    fn streams() -> Vec<StreamLoad> {
        let share = [0.2, 0.5, 0.3];
        (0..3).map(|n| StreamLoad { stream: n, share: share[n as usize], is_away: false, is_placed: false }).collect()
    }

    #[test]
    fn the_busiest_stream_of_a_pressed_host_goes_to_the_idle_one_and_comes_back_when_it_is_relaxed() {
        let mut placing = Placing::new(3, 1);
        let others = [host(0.9, 200_000), host(0.1, 200_000)];
        assert_eq!(placing.change(load(0.5), &others, &streams(), 1), None, "it keeps up");
        let change = placing.change(load(0.9), &others, &streams(), 1);
        assert_eq!(change, Some(Change::Give { stream: 1, to: 1 }));
        let mut after = streams();
        after[1].is_away = true;
        assert_eq!(placing.change(load(0.2), &others, &after, 2), None, "it stays for a while");
        let later = 2 + STAYS_NS;
        assert_eq!(placing.change(load(0.5), &others, &after, later), None, "neither pressed nor relaxed");
        assert_eq!(placing.change(load(0.2), &others, &after, later), Some(Change::TakeBack { stream: 1 }));
    }

    #[test]
    fn nothing_goes_to_hosts_that_are_as_full_or_far_and_an_operators_stream_stays() {
        let mut placing = Placing::new(3, 1);
        assert_eq!(placing.change(load(0.8), &[host(0.9, 0)], &streams(), 1), None);
        assert_eq!(placing.change(load(0.8), &[], &streams(), 1), None);
        assert_eq!(placing.change(load(0.8), &[host(0.1, 2_000_000_000)], &streams(), 1), None, "two seconds away");
        let mut placed = streams();
        placed.iter_mut().for_each(|one| one.is_placed = true);
        assert_eq!(placing.change(load(0.8), &[host(0.1, 0)], &placed, 1), None);
    }
}
