//! How many silos `Auto` means on a machine, and why.
//!
//! Cold and pure. Bounded by nodes and GPUs. Decided once for a run: another number of silos needs
//! another start.
//!
//! # The rule
//!
//! 1. If the profile lists its threads: the silos that they name.
//! 2. Else with GPUs: one silo for each GPU if each has its own (`Cuda(index: None)`), one silo if
//!    they share a GPU.
//! 3. Without a GPU: one silo for each NUMA node with two hot cores of [the automatic
//!    plan](super::auto), for a ring thread and a decode worker.
//! 4. Limits: two hot cores a silo, likewise of `max_cores` and of the CPU quota; one stream a
//!    silo, two if streams are read jointly in pairs; one silo in all if the rounds of a live
//!    source are decoded as they come, which only one silo can do.
//!
//! # Why too many silos are worse than too few
//! Silos on one thread share its time. The rings and slots of each cost time, and nothing is
//! decoded sooner.

use super::hot_core::HotCore;
use super::nodes;
use crate::host::{self, HostFacts};
use crate::profile::{Device, Profile, SILOS_MAX, Silos, ThreadSpec, Window};
use serde::Serialize;

/// How many silos there are, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedSilos {
    /// Number of silos.
    pub count: u32,
    /// Whether the profile leaves the number to the machine.
    pub auto: bool,
    /// The reason, without a verb.
    pub why: String,
}

impl PlannedSilos {
    /// A note for the operator; none if the profile sets the number.
    pub(super) fn note(&self) -> Option<String> {
        self.auto.then(|| format!("silos auto: {}, {}", self.count, self.why))
    }
}

/// Decides the number of silos of an automatic plan.
pub(super) fn settle(profile: &Profile, host: &HostFacts, hot_cores: &[HotCore]) -> PlannedSilos {
    if let Silos::Count(count) = profile.silos {
        return asked(count.max(1));
    }
    let (count, why) = wanted(profile, host, hot_cores);
    let tightest = limits(profile, host, hot_cores).into_iter().flatten().min_by_key(|(count, _)| *count);
    match tightest.filter(|(most, _)| *most < count) {
        Some((most, limit)) => PlannedSilos { count: most, auto: true, why: format!("{why}, but {limit}") },
        None => PlannedSilos { count, auto: true, why },
    }
}

/// Decides the number of silos of a plan that lists its threads.
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
fn wanted(profile: &Profile, host: &HostFacts, hot_cores: &[HotCore]) -> (u32, String) {
    match profile.device {
        Device::Cuda { index: Some(index), .. } => (1, format!("for GPU {index}")),
        Device::Cuda { index: None, .. } => {
            let count = host.gpus.max(1);
            (count, if count == 1 { "for the one GPU".to_owned() } else { format!("one for each of {count} GPUs") })
        }
        Device::None | Device::Sim { .. } | Device::Auto => {
            let wide = nodes::with_two_hot_cores(hot_cores);
            match &wide[..] {
                [] => (1, "no NUMA node has two hot cores".to_owned()),
                [_] => (1, "one NUMA node has two hot cores".to_owned()),
                all => (count(all.len()), format!("one for each NUMA node with two hot cores: {}", host::list(all))),
            }
        }
    }
}

/// Step 4 of the rule: upper limits, each with its reason.
fn limits(profile: &Profile, host: &HostFacts, hot_cores: &[HotCore]) -> [Option<(u32, String)>; 5] {
    let pairs = |cores: usize| count(cores / 2).max(1);
    let by_hot_cores = (pairs(hot_cores.len()), format!("each takes two hot cores of {}", hot_cores.len()));
    let cores = profile.max_cores.map(|max| (pairs(max as usize), format!("max_cores {max}, of which each takes two")));
    let quota = host.cpu_quota.cores().map(|worth| {
        // A quota is a few cores; an unusually large one is no limit.
        (
            pairs(worth.min(f64::from(u32::MAX)) as usize),
            format!("a CPU quota of {worth:.1} cores, of which each takes two"),
        )
    });
    let streams = profile.input.streams;
    let fed = match profile.input.joint_every {
        None => (streams, format!("each takes one stream of {streams}")),
        Some(_) => ((streams / 2).max(1), format!("{streams} streams, read jointly by two")),
    };
    let by_rounds = profile.input.source.is_live() && profile.window != Window::None && profile.input.m2d.is_none();
    let live = by_rounds.then(|| (1, "the rounds of a live source are decoded as they come by one alone".to_owned()));
    let fed = (fed.0.min(SILOS_MAX), fed.1);
    [Some(by_hot_cores), cores, quota, Some(fed), live]
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(SILOS_MAX).min(SILOS_MAX)
}
