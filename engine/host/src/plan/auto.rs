//! The automatic plan.
//!
//! Cold and pure. Bounded by cores, silos and decode workers. Puts several roles on a thread if
//! cores are few; [`Plan::make`] refuses a plan with too many roles on one thread.
//!
//! # The rule
//!
//! 1. *Hot cores.* The SMT threads of a physical core count as one core, by their lowest allowed
//!    number. Of `n` such cores, in order of node and number, hot threads get:
//!
//!    | n | hot cores | cold work |
//!    |---|---|---|
//!    | 1 | that core, not exclusive | the same core |
//!    | 2 | the higher core; then the lower, not exclusive | the lower core |
//!    | 2, `Auto`, calls of CUDA-Q | the higher core | the lower core |
//!    | 3..=5 | all but the lowest | the lowest |
//!    | 6.. | all but cores 0 and 1, which are the system's; all but the lowest where neither is allowed | what is left |
//!
//! 2. *Nodes.* Each silo is placed on one NUMA node: the node that then gives its silos most hot
//!    cores, as far as they can use them; if equal, the one with a GPU, then the lower. `max_cores`
//!    is divided in proportion to silos. If no node has two hot cores, all hot cores count as one
//!    node's.
//! 3. *Shares.* With at least two hot cores a silo, the silos of a node share its hot cores
//!    equally; the first ones get one more. With fewer, half of the hot cores run the ring roles
//!    and the others decode, for all silos in turn. A single hot core runs everything.
//! 4. *Split.* Of a share of `h` hot cores, `min(5, h / 2)` run ring roles and the others decode,
//!    up to the number of decode workers (`Auto`: 8). Ring roles get the hot cores that decode
//!    leaves. They split by [`RING_SPLITS`]. With `threads: Balanced`, graph and harvest share the
//!    thread of the first decode worker, and the roles before them split by [`FRONT_SPLITS`].
//!
//! # Why half and half
//!
//! A decode takes microseconds; all ring roles together should take a tenth of that for each shot.
//! With more ring threads than decode threads, ring threads would idle.
//!
//! # Why decode workers are apart
//!
//! On two cores they answer 1.04 M shots/s at d = 5, and 0.89 M in a balanced plan; 75,000 and 68,000
//! at d = 9. Only where a decode takes less time than the roles beside it is a balanced plan level
//! (d = 3, p = 0.001), so it is a choice of the profile.
//!
//! # Why calls of CUDA-Q have one of two cores
//!
//! A client waits for each reply, so the path and the decode of a shot follow each other. On a thread
//! of its own, the decode worker has the client's core: it spins for 50 µs before it yields, and only
//! then does the client see the reply (70 µs instead of 16 for the call that fills a volume).
//!
//! # Why a silo never spans nodes
//!
//! All threads of a silo access all its rings and slots. Across nodes each access costs two to
//! three times as much. One core fewer costs less than that.

use std::ops::Range;

use crate::host::HostFacts;
use crate::plan::hot_core::{AUTO_DECODERS_MAX, BACK, FRONT_SPLITS, HotCore, RING_SPLITS};
use crate::plan::nodes::{self, Group};
use crate::plan::silos;
use crate::plan::{Plan, PlannedRole, PlannedThread, RoleKind};
use crate::profile::{Decoders, Profile, Source, Threads};

/// From this many cores up, cores 0 and 1 are left to the system.
const SYSTEM_CORES_FROM: usize = 6;

impl Plan {
    /// Makes a plan for the machine's cores, by the rule in this file's header.
    pub fn auto(profile: &Profile, host: &HostFacts) -> Self {
        let mut notes = Vec::new();
        let hot_cores = hot_cores(profile, host, &mut notes);
        let silos = silos::settle(profile, host, &hot_cores);
        notes.extend(silos.note());
        let groups = nodes::groups(profile, silos.count, host, hot_cores, &mut notes);
        let mut drafts = Vec::new();
        let mut first = 0;
        for Group { node, hot_cores, silos: count } in &groups {
            let range = first..first + count;
            first = range.end;
            if hot_cores.len() >= 2 * *count as usize {
                drafts.extend(divided(profile, hot_cores, range));
                continue;
            }
            let place = if groups.len() > 1 { format!(" on node {node}") } else { String::new() };
            let instead = if profile.threads == Threads::Balanced { ", not balanced" } else { "" };
            notes.push(format!(
                "hot cores{place}: {}, silos: {count}; a silo needs two hot cores, so roles share a thread{instead}",
                hot_cores.len()
            ));
            drafts.extend(folded(profile, hot_cores, range));
        }
        debug_assert_eq!(first, silos.count, "every silo has a node");
        let threads = named(drafts);
        if let Some(cores) = host.cpu_quota.cores().filter(|&cores| cores < threads.len() as f64) {
            notes.push(format!("the CPU quota is worth {cores:.1} cores, fewer than the hot threads: expect stalls"));
        }
        Self::settle(threads, silos, profile, host, notes)
    }
}

/// Step 1 of the rule.
fn hot_cores(profile: &Profile, host: &HostFacts, notes: &mut Vec<String>) -> Vec<HotCore> {
    let cores = physical_cores(host);
    let node = |core: u32| host.core(core).map_or(0, |facts| facts.node);
    let hot_core = |core: u32, exclusive| HotCore { core: Some(core), node: node(core), exclusive };
    let exclusive = |cores: &[u32]| cores.iter().map(|&core| hot_core(core, true)).collect::<Vec<HotCore>>();
    match cores[..] {
        [] => {
            notes.push("no core is known or left: the thread is not pinned".to_owned());
            vec![HotCore { core: None, node: 0, exclusive: false }]
        }
        [only] => vec![hot_core(only, false)],
        [low, high] if profile.threads == Threads::Auto && is_called(profile) => {
            notes.push(format!("core {low} left to the client, which waits for each reply"));
            vec![hot_core(high, true)]
        }
        [low, high] => vec![hot_core(high, true), hot_core(low, false)],
        [_, ref rest @ ..] if cores.len() < SYSTEM_CORES_FROM => exclusive(rest),
        [_, ref rest @ ..] => {
            let system: Vec<u32> = cores.iter().copied().filter(|&core| is_system(host, core)).collect();
            let free: Vec<u32> = cores.iter().copied().filter(|core| !system.contains(core)).collect();
            if system.is_empty() {
                exclusive(rest)
            } else {
                notes.push(format!("core {} left to the system", listed(&system)));
                exclusive(&free)
            }
        }
    }
}

/// Whether each sender waits for the reply to its last call.
fn is_called(profile: &Profile) -> bool {
    matches!(profile.input.source, Source::Cudaq { .. })
}

/// One core of each physical core, sorted by node and number.
fn physical_cores(host: &HostFacts) -> Vec<u32> {
    let first = |core: u32, siblings: &[u32]| !siblings.iter().any(|&s| s < core && host.core(s).is_some());
    let mut cores: Vec<(u32, u32)> =
        host.cores.iter().filter(|c| first(c.core, &c.siblings)).map(|c| (c.node, c.core)).collect();
    cores.sort_unstable();
    cores.into_iter().map(|(_, core)| core).collect()
}

/// Whether a core is core 0 or 1, or shares its physical core with one of them.
fn is_system(host: &HostFacts, core: u32) -> bool {
    core <= 1 || host.core(core).is_some_and(|facts| facts.siblings.iter().any(|&sibling| sibling <= 1))
}

fn listed(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ")
}

/// A share of at least two hot cores for each of these silos.
fn divided(profile: &Profile, hot_cores: &[HotCore], silos: Range<u32>) -> Vec<UnnamedThread> {
    let is_balanced = profile.threads == Threads::Balanced;
    let splits = splits_of(profile, if is_balanced { &FRONT_SPLITS } else { &RING_SPLITS });
    let mut threads: Vec<UnnamedThread> = Vec::new();
    let mut rest = hot_cores;
    for silo in silos.clone() {
        let length = rest.len().div_ceil((silos.end - silo) as usize);
        let (share, others) = rest.split_at(length);
        rest = others;
        let count = decoders(profile, share.len());
        let decode_cores = count.min(share.len() - (share.len() / 2).min(splits.len()));
        let ring_cores = (share.len() - decode_cores).min(splits.len());
        for (kinds, hot_core) in splits[ring_cores - 1].iter().zip(share) {
            threads.push(UnnamedThread::new(*hot_core, ring_roles(kinds, silo)));
        }
        let first = threads.len();
        threads.extend(
            share[ring_cores..][..decode_cores].iter().map(|hot_core| UnnamedThread::new(*hot_core, Vec::new())),
        );
        assign_decoders(&mut threads[first..], silo, count, 0);
        if is_balanced {
            threads[first].roles.extend(ring_roles(BACK, silo));
            threads[first].roles.sort_unstable();
        }
    }
    threads
}

/// Fewer than two hot cores for each of these silos: half of them run ring roles, the others
/// decode; a single one does both.
fn folded(profile: &Profile, hot_cores: &[HotCore], silos: Range<u32>) -> Vec<UnnamedThread> {
    let ring_cores = (hot_cores.len() / 2).max(1);
    let mut threads: Vec<UnnamedThread> =
        hot_cores.iter().map(|hot_core| UnnamedThread::new(*hot_core, Vec::new())).collect();
    for (turn, silo) in silos.enumerate() {
        let count = decoders(profile, 1);
        threads[turn % ring_cores].roles.extend(ring_roles(&splits_of(profile, &RING_SPLITS)[0][0], silo));
        let decode = if hot_cores.len() == 1 { 0 } else { ring_cores };
        assign_decoders(&mut threads[decode..], silo, count, turn * count);
    }
    for thread in &mut threads {
        thread.roles.sort_unstable_by_key(|role| (role.silo, role.kind, role.index));
    }
    threads
}

/// The decode workers of a silo that has `hot_cores` hot cores in all.
fn decoders(profile: &Profile, hot_cores: usize) -> usize {
    match profile.decoders {
        Decoders::Count(count) => count.max(1) as usize,
        Decoders::Auto => (hot_cores - (hot_cores / 2).min(RING_SPLITS.len())).clamp(1, AUTO_DECODERS_MAX),
    }
}

/// `splits` without the roles that the profile's device does itself, by the number of threads, from
/// 1 on.
fn splits_of(profile: &Profile, splits: &[&[&[RoleKind]]]) -> Vec<Vec<Vec<RoleKind>>> {
    let of_threads = |kinds: &&[RoleKind]| -> Vec<RoleKind> {
        kinds.iter().copied().filter(|&kind| profile.device.has_role(kind)).collect()
    };
    let split = |split: &&[&[RoleKind]]| -> Vec<Vec<RoleKind>> {
        split.iter().map(of_threads).filter(|kinds| !kinds.is_empty()).collect()
    };
    let mut splits: Vec<_> = splits.iter().map(split).collect();
    splits.dedup_by_key(|split| split.len());
    splits
}

fn ring_roles(kinds: &[RoleKind], silo: u32) -> Vec<PlannedRole> {
    kinds.iter().map(|&kind| PlannedRole { kind, silo, index: 0 }).collect()
}

/// Distributes a silo's decode workers over threads in turn, beginning with thread `start`.
fn assign_decoders(threads: &mut [UnnamedThread], silo: u32, count: usize, start: usize) {
    let length = threads.len();
    for (index, turn) in (0..).zip(start..start + count) {
        threads[turn % length].roles.push(PlannedRole { kind: RoleKind::Decode, silo, index });
    }
}

/// A planned thread before it has a name.
struct UnnamedThread {
    hot_core: HotCore,
    roles: Vec<PlannedRole>,
}

impl UnnamedThread {
    fn new(hot_core: HotCore, roles: Vec<PlannedRole>) -> Self {
        Self { hot_core, roles }
    }
}

/// Names threads: `decode-N` if it only decodes, `ROLE-SILO` if it has one ring role, else `hot-N`.
/// Drops threads without a role.
fn named(drafts: Vec<UnnamedThread>) -> Vec<PlannedThread> {
    let mut hot = 0..;
    let mut decode = 0..;
    let next = |numbers: &mut std::ops::RangeFrom<u32>| numbers.next().unwrap_or_default();
    let mut threads = Vec::new();
    for UnnamedThread { hot_core, roles } in drafts {
        let Some(&first) = roles.first() else { continue };
        let name = if roles.iter().all(|role| role.kind == RoleKind::Decode) {
            format!("decode-{}", next(&mut decode))
        } else if roles.len() == 1 {
            format!("{}-{}", first.kind, first.silo)
        } else {
            format!("hot-{}", next(&mut hot))
        };
        let HotCore { core, exclusive, .. } = hot_core;
        threads.push(PlannedThread { name, silo: first.silo, roles, core, node: None, exclusive, contested: false });
    }
    threads
}
