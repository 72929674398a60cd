//! A simulation of several hosts that share streams: virtual time, the rules of `pinwheel_hosts::placing`.
//!
//! Each stream has its senders at one host, with its share of a skewed load. Ten times a second each host looks at its
//! own load and at what the others said a look ago, and makes at most one change. Once a minute a host is lost for half
//! a minute: its senders are silent, and what it decoded for others comes back to them. Pure and deterministic for a
//! seed. Bounds: [`Setting`].
//!
//! # What it leaves out
//! Single shots, and the time that a change takes. A lost host is known to be lost at once. A host is one silo that
//! serves its capacity and queues the rest.

use pinwheel_engine::placement::depth::spread_points;
use pinwheel_hosts::description::Load;
use pinwheel_hosts::placing::{Candidacy, Change, Placing, StreamLoad};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Time between two looks, seconds.
const LOOK_S: f64 = 0.1;
const LOOKS_A_SECOND: usize = 10;
/// Capacity of a host's slots, in seconds of its work.
const RING_S: f64 = 0.05;
/// Round trips of links, nanoseconds: drawn evenly on a scale of logarithms.
const TRIP_NS: (f64, f64) = (20e3, 500e3);
/// Most of a host's capacity that one stream takes: a stream is decoded by one host.
const STREAM_MAX: f64 = 0.25;
/// Seconds between two losses of a host, and until it is back.
const LOSS_EVERY_S: usize = 60;
const AWAY_S: usize = 30;

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub hosts: usize,
    /// Number of streams of all hosts.
    pub streams: usize,
    /// Exponent of the Zipf distribution of loads.
    pub zipf: f64,
    /// Load of all streams, as a share of the capacity of all hosts.
    pub load: f64,
    pub seconds: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether streams may be decoded elsewhere.
    pub shares: bool,
}

impl Setting {
    /// Each stream's work a second: its share of the skewed load, at most [`STREAM_MAX`], all together the load.
    fn works(&self) -> Vec<f64> {
        let works = |scale: f64| (1..=self.streams).map(move |n| (scale * (n as f64).powf(-self.zipf)).min(STREAM_MAX));
        let wanted = self.load * self.hosts as f64;
        let (mut low, mut high) = (0.0, wanted * self.streams as f64);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if works(middle).sum::<f64>() < wanted { low = middle } else { high = middle }
        }
        works(high).collect()
    }
}

/// The result of a simulation; shares are of the second half of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    /// Share of the time of all hosts in which more arrived at one than it serves.
    pub overloaded: f64,
    /// Share of the shots that waited for longer than a ring holds.
    pub waited: f64,
    /// Mean over the looks of the standard deviation of the living hosts' busy share, points.
    pub spread_points: f64,
    /// Share of the shots that another host decodes.
    pub forwarded: f64,
    /// Changes a minute, of all hosts.
    pub changes_a_minute: f64,
    /// Streams that went back to where they were within ten seconds.
    pub bounces: u64,
}

struct World {
    /// Of each stream: host of its senders, host that decodes it, work a second.
    streams: Vec<(usize, usize, f64)>,
    /// Of each host: streams with senders there.
    own: Vec<Vec<usize>>,
    /// Of each host: work that waits, seconds.
    waiting_s: Vec<f64>,
    /// Of each host: work that arrives a second.
    offered: Vec<f64>,
    /// Of each host: streams of others that it decodes.
    taken: Vec<u32>,
    /// Of each host: the second at which it is back; 0: it is there.
    back_at: Vec<usize>,
}

impl World {
    fn new(setting: &Setting, random: &mut Xoshiro256PlusPlus) -> World {
        let place = |work: f64| {
            let home = (random.next_u64() % setting.hosts as u64) as usize;
            (home, home, work)
        };
        let streams: Vec<(usize, usize, f64)> = setting.works().into_iter().map(place).collect();
        let mut own = vec![Vec::new(); setting.hosts];
        streams.iter().enumerate().for_each(|(stream, (home, ..))| own[*home].push(stream));
        let (waiting_s, offered) = (vec![0.0; setting.hosts], vec![0.0; setting.hosts]);
        World { streams, own, waiting_s, offered, taken: vec![0; setting.hosts], back_at: vec![0; setting.hosts] }
    }

    fn is_there(&self, host: usize) -> bool {
        self.back_at[host] == 0
    }

    /// The work of a stream now: none while its senders' host is away.
    fn work(&self, stream: usize) -> f64 {
        let (home, _, work) = self.streams[stream];
        if self.is_there(home) { work } else { 0.0 }
    }

    /// Loses a host, or brings those back whose time has come.
    fn lose_and_bring_back(&mut self, second: usize, random: &mut Xoshiro256PlusPlus) {
        for back_at in self.back_at.iter_mut().filter(|at| **at > 0 && **at <= second) {
            *back_at = 0;
        }
        if second > 0 && second.is_multiple_of(LOSS_EVERY_S) && self.back_at.len() > 1 {
            let lost = (random.next_u64() % self.back_at.len() as u64) as usize;
            (self.back_at[lost], self.waiting_s[lost]) = (second + AWAY_S, 0.0);
            for (home, at, _) in self.streams.iter_mut().filter(|(home, at, _)| *home == lost || *at == lost) {
                *at = *home;
            }
        }
    }

    /// Serves the work of one look. Returns the load of each host.
    fn serve(&mut self) -> Vec<Load> {
        self.offered.fill(0.0);
        self.taken.fill(0);
        for stream in 0..self.streams.len() {
            let ((home, at, _), work) = (self.streams[stream], self.work(stream));
            self.offered[at] += work;
            self.taken[at] += u32::from(at != home);
        }
        let serve = |(waiting_s, offered): (&mut f64, &f64)| {
            let all = *waiting_s + offered * LOOK_S;
            *waiting_s = (all - LOOK_S).max(0.0);
            let busy = (all / LOOK_S).min(1.0);
            let max = busy.max((*waiting_s / RING_S).min(1.0));
            Load { average: busy / 2.0, max, backlog_ns: (*waiting_s * 1e9) as u64 }
        };
        self.waiting_s.iter_mut().zip(&self.offered).map(serve).collect()
    }
}

pub fn play(setting: &Setting) -> Course {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(setting.seed);
    let mut world = World::new(setting, &mut random);
    let hosts = setting.hosts;
    let (low, high) = (TRIP_NS.0.ln(), TRIP_NS.1.ln());
    let trips: Vec<u64> = (0..hosts * hosts)
        .map(|_| {
            let unit = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            (low + (high - low) * unit).exp() as u64
        })
        .collect();
    let mut placing: Vec<Placing> =
        (0..hosts).map(|host| Placing::new(setting.streams as u32, setting.seed ^ host as u64)).collect();
    let mut left: Vec<Option<(usize, usize)>> = vec![None; setting.streams];
    let (mut course, mut looks, mut work) = (Course::default(), 0u64, 0.0);
    let mut heard = world.serve();
    for look in 0..setting.seconds * LOOKS_A_SECOND {
        if look.is_multiple_of(LOOKS_A_SECOND) {
            world.lose_and_bring_back(look / LOOKS_A_SECOND, &mut random);
        }
        let loads = world.serve();
        if look >= setting.seconds * LOOKS_A_SECOND / 2 {
            looks += 1;
            measure(&world, &mut course, &mut work);
        }
        if setting.shares {
            let living: Vec<usize> = (0..hosts).filter(|host| world.is_there(*host)).collect();
            for host in living.iter().copied() {
                let others: Vec<usize> = living.iter().copied().filter(|other| *other != host).collect();
                let change = change(&world, &mut placing[host], (host, loads[host]), (&others, &heard, &trips), look);
                let Some((stream, to)) = change else { continue };
                let from = world.streams[stream].1;
                let is_back = left[stream].is_some_and(|(at, when)| at == to && look < when + 10 * LOOKS_A_SECOND);
                course.bounces += u64::from(is_back);
                course.changes_a_minute += 1.0;
                (left[stream], world.streams[stream].1) = (Some((from, look)), to);
            }
        }
        heard = loads;
    }
    let host_looks = looks as f64 * hosts as f64;
    course.overloaded /= host_looks;
    course.spread_points /= looks as f64;
    course.waited /= work;
    course.forwarded /= work;
    course.changes_a_minute /= setting.seconds as f64 / 60.0;
    course
}

fn measure(world: &World, course: &mut Course, work: &mut f64) {
    let living = || (0..world.offered.len()).filter(|host| world.is_there(*host));
    course.overloaded += living().filter(|host| world.offered[*host] > 1.0).count() as f64;
    course.spread_points += spread_points(living().map(|host| world.offered[host].min(1.0))).unwrap_or(0.0);
    course.waited +=
        living().filter(|host| world.waiting_s[*host] > RING_S).map(|host| world.offered[host]).sum::<f64>();
    *work += world.offered.iter().sum::<f64>();
    let away = (0..world.streams.len()).filter(|stream| world.streams[*stream].0 != world.streams[*stream].1);
    course.forwarded += away.map(|stream| world.work(stream)).sum::<f64>();
}

/// The change of one host: a stream, and the host that decodes it from now on.
fn change(
    world: &World,
    placing: &mut Placing,
    (host, load): (usize, Load),
    (others, heard, trips): (&[usize], &[Load], &[u64]),
    look: usize,
) -> Option<(usize, usize)> {
    let all = world.offered[host].max(f64::MIN_POSITIVE);
    let of = |stream: &usize| {
        let at = world.streams[*stream].1;
        StreamLoad {
            stream: *stream as u32,
            share: world.work(*stream) / all,
            is_away: at != host,
            at: others.iter().position(|other| *other == at),
            is_placed: false,
        }
    };
    let streams: Vec<StreamLoad> = world.own[host].iter().map(of).collect();
    let candidate = |other: &usize| Candidacy {
        load: heard[*other],
        trip_ns: trips[host * heard.len() + other],
        taken: world.taken[*other],
    };
    let candidates: Vec<Candidacy> = others.iter().map(candidate).collect();
    let now_ns = (look as u64 + 1) * (LOOK_S * 1e9) as u64;
    match placing.change(load, &candidates, &streams, now_ns)? {
        Change::Give { stream, to } => Some((stream as usize, others[to])),
        Change::TakeBack { stream } => Some((stream as usize, host)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Course, Setting, play};

    const MANY: Setting =
        Setting { hosts: 16, streams: 2_000, zipf: 1.1, load: 0.7, seconds: 150, seed: 0, shares: true };

    #[test]
    fn hosts_that_share_streams_are_hardly_overloaded_and_their_streams_come_to_rest() {
        for seed in 0..2 {
            let setting = Setting { seed, ..MANY };
            let (ours, alone) = (play(&setting), play(&Setting { shares: false, ..setting }));
            assert_eq!((alone.forwarded, alone.changes_a_minute), (0.0, 0.0));
            assert!(alone.overloaded > 0.05 && ours.overloaded < 0.01 && ours.waited < 0.01, "{ours:?} {alone:?}");
            assert!(ours.spread_points < alone.spread_points / 4.0 && ours.bounces < 20, "{ours:?} {alone:?}");
        }
    }

    #[test]
    fn owners_that_find_one_host_full_do_not_all_leave_it_at_once() {
        let course = play(&Setting { load: 0.9, seed: 1, ..MANY });
        assert!(course.overloaded < 0.02 && course.changes_a_minute < 2_000.0, "{course:?}");
    }

    #[test]
    fn equal_seeds_take_equal_courses_and_one_host_has_nobody_to_share_with() {
        let few = Setting { hosts: 4, streams: 100, ..MANY };
        assert_eq!(play(&few), play(&few));
        assert_ne!(play(&few), Course::default());
        let one = play(&Setting { hosts: 1, ..few });
        assert_eq!((one.forwarded, one.bounces), (0.0, 0));
    }
}
