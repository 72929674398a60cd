//! How many silos `Auto` is on a machine, and why so many.
//!
//! Cold and pure. Bounded by nodes and GPUs. Settled once for a run: a silo is memory and threads, so another number is
//! another start.
//!
//! # The rule
//!
//! 1. Listed threads name their silos: so many.
//! 2. Else one for each GPU, where the silos have one each (`Cuda(index: None)`); one, where they share one.
//! 3. Without a GPU one for each NUMA node with two seats of [the automatic plan](super::auto): a ring thread's and a decode
//!    worker's.
//! 4. Fewer, where there is not enough for so many: two seats each, of `max_cores` and of the CPU quota likewise, a stream each,
//!    two where streams are read jointly in pairs. One, where a live source's rounds are decoded as they come, which only one
//!    silo does.
//!
//! # Why a silo too many is worse than one too few
//! Silos that share a thread share its time: all of it for the rings and slots of each, and nothing is decoded any sooner.

use super::auto::Seat;
use super::nodes;
use crate::host::{self, HostFacts};
use crate::profile::{Device, Profile, SILOS_MAX, Silos, ThreadSpec};
use serde::Serialize;

/// How many silos there are, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedSilos {
    /// So many.
    pub count: u32,
    /// Whether the profile leaves it to the machine.
    pub auto: bool,
    /// Why, in words without a verb.
    pub why: String,
}

impl PlannedSilos {
    /// What an operator is told; nothing where the number was asked for.
    pub(super) fn note(&self) -> Option<String> {
        self.auto.then(|| format!("silos auto: {}, {}", self.count, self.why))
    }
}

/// Settles the number of silos of an automatic plan.
pub(super) fn settle(profile: &Profile, host: &HostFacts, seats: &[Seat]) -> PlannedSilos {
    if let Silos::Count(count) = profile.silos {
        return asked(count.max(1));
    }
    let (count, why) = wanted(profile, host, seats);
    let tightest = limits(profile, host, seats).into_iter().flatten().min_by_key(|(count, _)| *count);
    match tightest.filter(|(most, _)| *most < count) {
        Some((most, limit)) => PlannedSilos { count: most, auto: true, why: format!("{why}, but {limit}") },
        None => PlannedSilos { count, auto: true, why },
    }
}

/// Settles that of a plan that lists its threads.
pub(super) fn listed(profile: &Profile, specs: &[ThreadSpec]) -> PlannedSilos {
    match profile.silos {
        Silos::Count(count) => asked(count),
        Silos::Auto => {
            let count = specs.iter().map(|spec| spec.silo).max().unwrap_or(0).saturating_add(1);
            PlannedSilos { count, auto: true, why: "as the listed threads name them".to_owned() }
        }
    }
}

fn asked(count: u32) -> PlannedSilos {
    PlannedSilos { count, auto: false, why: "as asked for".to_owned() }
}

/// Steps 2 and 3 of the rule.
fn wanted(profile: &Profile, host: &HostFacts, seats: &[Seat]) -> (u32, String) {
    match profile.device {
        Device::Cuda { index: Some(index), .. } => (1, format!("for GPU {index}")),
        Device::Cuda { index: None, .. } => {
            let count = host.gpus.max(1);
            (count, if count == 1 { "for the one GPU".to_owned() } else { format!("one for each of {count} GPUs") })
        }
        Device::Sim { .. } | Device::Auto => {
            let wide = nodes::wide(seats);
            match &wide[..] {
                [] => (1, "no NUMA node has two hot cores".to_owned()),
                [_] => (1, "one NUMA node has two hot cores".to_owned()),
                all => (count(all.len()), format!("one for each NUMA node with two hot cores: {}", host::list(all))),
            }
        }
    }
}

/// Step 4: how many there may be at most, and for want of what.
fn limits(profile: &Profile, host: &HostFacts, seats: &[Seat]) -> [Option<(u32, String)>; 5] {
    let pairs = |cores: usize| count(cores / 2).max(1);
    let seated = (pairs(seats.len()), format!("{} hot core(s), of which each takes two", seats.len()));
    let cores = profile.max_cores.map(|max| (pairs(max as usize), format!("max_cores {max}, of which each takes two")));
    let quota = host.cpu_quota.cores().map(|worth| {
        // A quota is a few cores; one that is not is no limit here.
        (
            pairs(worth.min(f64::from(u32::MAX)) as usize),
            format!("a CPU quota of {worth:.1} cores, of which each takes two"),
        )
    });
    let streams = profile.input.streams;
    let fed = match profile.input.joint_every {
        None => (streams, format!("{streams} stream(s), of which each takes one")),
        Some(_) => ((streams / 2).max(1), format!("{streams} streams, read jointly by two")),
    };
    let by_rounds = profile.input.source.is_live() && profile.window.is_some() && profile.input.m2d.is_none();
    let live = by_rounds.then(|| (1, "the rounds of a live source are decoded as they come by one alone".to_owned()));
    let fed = (fed.0.min(SILOS_MAX), fed.1);
    [Some(seated), cores, quota, Some(fed), live]
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(SILOS_MAX).min(SILOS_MAX)
}
