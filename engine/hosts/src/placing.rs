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
//!
//! # Why a stream leaves a host that it went to
//! Several owners may choose the same host, and that one cannot give away what is not its own. So the
//! owner of a stream places it anew when the host that decodes it says that it is [`FULL`] or behind. All
//! owners hear that at once: each acts by chance, so that about one stream leaves that host at a look.

use crate::description::Load;
use pinwheel_engine::placement::decision::Decision;
use pinwheel_engine::placement::depth::{Reading, SiloDepth, Snapshot};
use pinwheel_engine::placement::director::{Director, PREFERRED_MAX, Rules};
use pinwheel_engine::units::{Nanos, Ticks};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A host with a queue this full gives streams away.
pub const PRESSED: f64 = 0.7;
/// Streams of others leave a host with a queue this full.
pub const FULL: f64 = 0.95;
/// A host whose fullest queue is below this takes its streams back.
pub const RELAXED: f64 = 0.35;
/// Shots that wait this long press their host, too.
pub const BEHIND_NS: u64 = 5_000_000;
/// A stream that moved stays for this long.
pub const STAYS_NS: u64 = 5_000_000_000;

/// Streams that are tried, the busiest first: one that no other host has room for may be followed by one that fits.
const TRIES: usize = 16;

/// A host that takes streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidacy {
    /// Its load.
    pub load: Load,
    /// Round trip of a question to it; 0 for this host.
    pub trip_ns: u64,
    /// Streams of others that it decodes.
    pub taken: u32,
}

/// A stream with senders at this host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamLoad {
    /// Stream.
    pub stream: u32,
    /// Its shots, as a share of those that this host decodes.
    pub share: f64,
    /// Whether another host decodes it.
    pub is_away: bool,
    /// The place of that host among the others; `None`: it takes no streams now.
    pub at: Option<usize>,
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
    random: Xoshiro256PlusPlus,
}

impl Placing {
    /// For `streams` streams; draws from `seed`.
    pub fn new(streams: u32, seed: u64) -> Placing {
        let director = Director::new(Rules::SEED, seed);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Placing { director, moved_ns: vec![0; streams as usize], snapshots: 0, random }
    }

    /// At most one change for the streams with senders here.
    pub fn change(&mut self, own: Load, others: &[Candidacy], streams: &[StreamLoad], now_ns: u64) -> Option<Change> {
        let moved_ns = &self.moved_ns;
        let may_move = |one: &&StreamLoad| {
            let last = moved_ns[one.stream as usize];
            !one.is_placed && (last == 0 || now_ns.saturating_sub(last) > STAYS_NS)
        };
        let is_pressed = |load: Load, limit: f64| load.max >= limit || load.backlog_ns > BEHIND_NS;
        let is_relaxed = own.max < RELAXED && own.backlog_ns <= BEHIND_NS;
        let by_share = |one: &&StreamLoad, other: &&StreamLoad| one.share.total_cmp(&other.share);
        let mut movable: Vec<&StreamLoad> = streams.iter().filter(may_move).collect();
        movable.sort_by(|one, other| by_share(other, one));
        let here = movable.iter().filter(|one| !one.is_away && is_pressed(own, PRESSED));
        let random = &mut self.random;
        let mut leaves = |one: &&&StreamLoad| {
            let full = one.at.map(|at| &others[at]).filter(|host| is_pressed(host.load, FULL));
            full.is_some_and(|host| random.next_u64().is_multiple_of(u64::from(host.taken.max(1))))
        };
        let to_place: Vec<&StreamLoad> =
            here.take(TRIES).chain(movable.iter().filter(&mut leaves).take(TRIES)).copied().collect();
        if !to_place.is_empty() {
            self.refresh(own, others);
        }
        let least_away = movable.iter().rfind(|one| is_relaxed && one.is_away).map(|one| one.stream);
        let change = to_place.into_iter().find_map(|one| self.place(one, own));
        let change = change.or(least_away.map(|stream| Change::TakeBack { stream }))?;
        let (Change::Give { stream, .. } | Change::TakeBack { stream }) = change;
        self.moved_ns[stream as usize] = now_ns.max(1);
        Some(change)
    }

    /// Places a stream by the last snapshot; `None`: it stays.
    fn place(&mut self, one: &StreamLoad, own: Load) -> Option<Change> {
        let at = one.at.map_or(0, |at| at as u32 + 1);
        let work = one.share * own.max.max(RELAXED);
        let made = self.director.place_known(one.stream, PREFERRED_MAX, (at, work));
        match made.decision {
            Decision::Place { silo, .. } if silo == at => None,
            Decision::Place { silo: 0, .. } => Some(Change::TakeBack { stream: one.stream }),
            Decision::Place { silo, .. } => Some(Change::Give { stream: one.stream, to: silo as usize - 1 }),
            Decision::Refuse { .. } | Decision::Move { .. } => None,
        }
    }

    fn refresh(&mut self, own: Load, others: &[Candidacy]) {
        let own = std::iter::once(Candidacy { load: own, trip_ns: 0, taken: 0 });
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Candidacy, Change, Placing, STAYS_NS, StreamLoad};
    use crate::description::Load;

    fn load(max: f64) -> Load {
        Load { average: max / 2.0, max, backlog_ns: 0 }
    }

    fn host(max: f64, trip_ns: u64) -> Candidacy {
        Candidacy { load: load(max), trip_ns, taken: 1 }
    }

    fn streams() -> Vec<StreamLoad> {
        let share = [0.2, 0.5, 0.3];
        (0..3)
            .map(|n| StreamLoad { stream: n, share: share[n as usize], is_away: false, at: None, is_placed: false })
            .collect()
    }

    #[test]
    fn the_busiest_stream_of_a_pressed_host_goes_to_the_idle_one_and_comes_back_when_it_is_relaxed() {
        let mut placing = Placing::new(3, 1);
        let others = [host(0.9, 200_000), host(0.1, 200_000)];
        assert_eq!(placing.change(load(0.5), &others, &streams(), 1), None, "it keeps up");
        let change = placing.change(load(0.9), &others, &streams(), 1);
        assert_eq!(change, Some(Change::Give { stream: 1, to: 1 }));
        let mut after = streams();
        (after[1].is_away, after[1].at) = (true, Some(1));
        assert_eq!(placing.change(load(0.2), &others, &after, 2), None, "it stays for a while");
        let later = 2 + STAYS_NS;
        assert_eq!(placing.change(load(0.5), &others, &after, later), None, "neither pressed nor relaxed");
        assert_eq!(placing.change(load(0.2), &others, &after, later), Some(Change::TakeBack { stream: 1 }));
    }

    #[test]
    fn a_stream_leaves_a_host_that_others_have_filled() {
        let mut placing = Placing::new(3, 1);
        let mut streams = streams();
        (streams[2].is_away, streams[2].at) = (true, Some(0));
        let change = placing.change(load(0.5), &[host(0.94, 0), host(0.1, 0)], &streams, 1);
        assert_eq!(change, None, "it keeps up");
        let change = placing.change(load(0.5), &[host(1.0, 0), host(0.1, 0)], &streams, 1);
        assert_eq!(change, Some(Change::Give { stream: 2, to: 1 }));
        streams[2].at = None;
        assert_eq!(placing.change(load(0.5), &[host(1.0, 0)], &streams, 1), None, "its host takes none now");
        streams[2].at = Some(0);
        let mut placing = Placing::new(3, 1);
        let change = placing.change(load(0.5), &[host(1.0, 0)], &streams, 1);
        assert_eq!(change, Some(Change::TakeBack { stream: 2 }));
    }

    #[test]
    fn a_stream_that_fits_nowhere_stays_and_a_smaller_one_goes() {
        let mut placing = Placing::new(3, 1);
        let mut streams = streams();
        (streams[0].share, streams[1].share, streams[2].share) = (0.1, 0.8, 0.1);
        let change = placing.change(load(1.0), &[host(0.75, 0)], &streams, 1);
        assert!(matches!(change, Some(Change::Give { stream: 0 | 2, to: 0 })), "{change:?}");
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
