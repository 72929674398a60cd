//! The automatic plan.
//!
//! Cold and pure. Bounded by cores, silos and decode workers. Folds roles onto fewer threads where cores are short;
//! [`Plan::make`] refuses a plan with too many roles on one thread.
//!
//! # The rule
//!
//! 1. *Seats.* SMT threads of one physical core count as one core, by its lowest allowed number. What hot threads may
//!    have of `n` such cores, in order of node and number:
//!
//!    | n | seats | cold work |
//!    |---|---|---|
//!    | 1 | that core, not exclusive | the same core |
//!    | 2 | the higher core; then the lower, not exclusive | the lower core |
//!    | 3..=5 | all but the lowest | the lowest |
//!    | 6.. | all but cores 0 and 1, which are the system's; all but the lowest where neither is allowed | what is left |
//!
//! 2. *Nodes.* Each silo goes to one NUMA node: in turn to the node that then gives its silos most seats, as far as they
//!    can use them; of equal ones to the one with a GPU, then the lower. `max_cores` is shared out by silos. Where no
//!    node has two seats, all seats count as one node's.
//! 3. *Shares.* With two seats a silo or more, each silo of a node gets an equal share of it, the first ones one more.
//!    With fewer, half of the seats run the ring roles and the others decode, for all silos in turn. One seat runs
//!    everything.
//! 4. *Split.* Of a share of `h` seats the ring roles take `min(5, h / 2)` and decode the others, up to its count
//!    (`Auto`: 8). What decode leaves goes to the ring roles. They split by [`RING_SPLITS`].
//!
//! # Why half and half
//!
//! A decode takes microseconds, all ring roles together are to take a tenth of one for each shot: a ring thread more
//! than there are decode threads would idle.
//!
//! # Why a silo never spans nodes
//!
//! All its rings and slots are touched by all its threads; across nodes each touch costs two to three times as much. A
//! core too few costs less than that.

use std::ops::Range;

use crate::host::HostFacts;
use crate::plan::nodes::{self, Group};
use crate::plan::silos;
use crate::plan::{Plan, PlannedRole, PlannedThread, RoleKind};
use crate::profile::{Decoders, Profile};

use RoleKind::{Device, Dispatch, Feed, Graph, Harvest, Poll};

/// Most decode workers that `Decoders::Auto` gives a silo.
pub(super) const AUTO_DECODERS_MAX: usize = crate::profile::DECODERS_AUTO_MAX as usize;
/// From this many cores up, cores 0 and 1 are left to the system.
const SYSTEM_CORES_FROM: usize = 6;

/// How the ring roles are divided among 1, 2, .. 5 threads. Feed and harvest, the slot's two ends, stay together
/// longest: they touch the same words of it. Graph stays with poll: what it takes up is what that one has just claimed,
/// and a task costs it a tenth of a microsecond.
pub(super) const RING_SPLITS: [&[&[RoleKind]]; 5] = [
    &[&[Feed, Dispatch, Device, Poll, Graph, Harvest]],
    &[&[Feed, Harvest], &[Dispatch, Device, Poll, Graph]],
    &[&[Feed, Harvest], &[Dispatch, Poll, Graph], &[Device]],
    &[&[Feed, Harvest], &[Dispatch], &[Device], &[Poll, Graph]],
    &[&[Feed], &[Dispatch], &[Device], &[Poll, Graph], &[Harvest]],
];

/// A core that a hot thread may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    pub(super) core: Option<u32>,
    pub(super) node: u32,
    pub(super) exclusive: bool,
}

impl Plan {
    /// Makes a plan from the cores that there are, by the rule in this file's header.
    #[must_use]
    pub fn auto(profile: &Profile, host: &HostFacts) -> Self {
        let mut notes = Vec::new();
        let seats = seats(host, &mut notes);
        let silos = silos::settle(profile, host, &seats);
        notes.extend(silos.note());
        let groups = nodes::groups(profile, silos.count, host, seats, &mut notes);
        let mut drafts = Vec::new();
        let mut first = 0;
        for Group { node, seats, silos: count } in &groups {
            let range = first..first + count;
            first = range.end;
            if seats.len() >= 2 * *count as usize {
                drafts.extend(divided(profile, seats, range));
                continue;
            }
            let place = if groups.len() > 1 { format!(" on node {node}") } else { String::new() };
            notes.push(format!(
                "{} hot core(s) for {count} silo(s){place}: roles are folded onto fewer threads",
                seats.len()
            ));
            drafts.extend(folded(profile, seats, range));
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
fn seats(host: &HostFacts, notes: &mut Vec<String>) -> Vec<Seat> {
    let cores = physical_cores(host);
    let node = |core: u32| host.core(core).map_or(0, |facts| facts.node);
    let seat = |core: u32, exclusive| Seat { core: Some(core), node: node(core), exclusive };
    let exclusive = |cores: &[u32]| cores.iter().map(|&core| seat(core, true)).collect::<Vec<Seat>>();
    match cores[..] {
        [] => {
            notes.push("no core is known or left: the thread is not pinned".to_owned());
            vec![Seat { core: None, node: 0, exclusive: false }]
        }
        [only] => vec![seat(only, false)],
        [low, high] => vec![seat(high, true), seat(low, false)],
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

/// One number for each physical core, by node, then by number.
fn physical_cores(host: &HostFacts) -> Vec<u32> {
    let first = |core: u32, siblings: &[u32]| !siblings.iter().any(|&s| s < core && host.core(s).is_some());
    let mut cores: Vec<(u32, u32)> =
        host.cores.iter().filter(|c| first(c.core, &c.siblings)).map(|c| (c.node, c.core)).collect();
    cores.sort_unstable();
    cores.into_iter().map(|(_, core)| core).collect()
}

/// Whether a core is, or shares its physical core with, core 0 or 1.
fn is_system(host: &HostFacts, core: u32) -> bool {
    core <= 1 || host.core(core).is_some_and(|facts| facts.siblings.iter().any(|&sibling| sibling <= 1))
}

fn listed(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ")
}

/// A share of at least two seats for each of these silos.
fn divided(profile: &Profile, seats: &[Seat], silos: Range<u32>) -> Vec<Draft> {
    let splits = ring_splits(profile);
    let mut threads: Vec<Draft> = Vec::new();
    let mut rest = seats;
    for silo in silos.clone() {
        let length = rest.len().div_ceil((silos.end - silo) as usize);
        let (share, others) = rest.split_at(length);
        rest = others;
        let count = decoders(profile, share.len());
        let decode_seats = count.min(share.len() - (share.len() / 2).min(splits.len()));
        let ring_seats = (share.len() - decode_seats).min(splits.len());
        for (kinds, seat) in splits[ring_seats - 1].iter().zip(share) {
            threads.push(Draft::new(*seat, ring_roles(kinds, silo)));
        }
        let first = threads.len();
        threads.extend(share[ring_seats..][..decode_seats].iter().map(|seat| Draft::new(*seat, Vec::new())));
        deal_decoders(&mut threads[first..], silo, count, 0);
    }
    threads
}

/// Fewer than two seats for each of these silos: half of them run rings, the others decode; one runs both.
fn folded(profile: &Profile, seats: &[Seat], silos: Range<u32>) -> Vec<Draft> {
    let ring_seats = (seats.len() / 2).max(1);
    let mut threads: Vec<Draft> = seats.iter().map(|seat| Draft::new(*seat, Vec::new())).collect();
    for (turn, silo) in silos.enumerate() {
        let count = decoders(profile, 1);
        threads[turn % ring_seats].roles.extend(ring_roles(&ring_splits(profile)[0][0], silo));
        let decode = if seats.len() == 1 { 0 } else { ring_seats };
        deal_decoders(&mut threads[decode..], silo, count, turn * count);
    }
    for thread in &mut threads {
        thread.roles.sort_unstable_by_key(|role| (role.silo, role.kind, role.index));
    }
    threads
}

/// The decode workers of a silo that has `seats` seats in all.
fn decoders(profile: &Profile, seats: usize) -> usize {
    match profile.decoders {
        Decoders::Count(count) => count.max(1) as usize,
        Decoders::Auto => (seats - (seats / 2).min(RING_SPLITS.len())).clamp(1, AUTO_DECODERS_MAX),
    }
}

/// [`RING_SPLITS`] of the roles that the profile's device leaves to threads: by the number of threads, from 1 on.
fn ring_splits(profile: &Profile) -> Vec<Vec<Vec<RoleKind>>> {
    let of_threads = |kinds: &&[RoleKind]| -> Vec<RoleKind> {
        kinds.iter().copied().filter(|&kind| profile.device.has_role(kind)).collect()
    };
    let split = |split: &&[&[RoleKind]]| -> Vec<Vec<RoleKind>> {
        split.iter().map(of_threads).filter(|kinds| !kinds.is_empty()).collect()
    };
    let mut splits: Vec<_> = RING_SPLITS.iter().map(split).collect();
    splits.dedup_by_key(|split| split.len());
    splits
}

fn ring_roles(kinds: &[RoleKind], silo: u32) -> Vec<PlannedRole> {
    kinds.iter().map(|&kind| PlannedRole { kind, silo, index: 0 }).collect()
}

/// Deals a silo's decode workers to threads in turn, beginning with thread `start`.
fn deal_decoders(threads: &mut [Draft], silo: u32, count: usize, start: usize) {
    let length = threads.len();
    for (index, turn) in (0..).zip(start..start + count) {
        threads[turn % length].roles.push(PlannedRole { kind: RoleKind::Decode, silo, index });
    }
}

/// A thread without a name.
struct Draft {
    seat: Seat,
    roles: Vec<PlannedRole>,
}

impl Draft {
    fn new(seat: Seat, roles: Vec<PlannedRole>) -> Self {
        Self { seat, roles }
    }
}

/// Names threads: `decode-N` counts decoders, a thread with one ring role is `ROLE-SILO`, all others are `hot-N`.
/// Threads that were given no role are dropped.
fn named(drafts: Vec<Draft>) -> Vec<PlannedThread> {
    let mut hot = 0..;
    let mut decode = 0..;
    let next = |numbers: &mut std::ops::RangeFrom<u32>| numbers.next().unwrap_or_default();
    let mut threads = Vec::new();
    for Draft { seat, roles } in drafts {
        let Some(&first) = roles.first() else { continue };
        let name = if roles.iter().all(|role| role.kind == RoleKind::Decode) {
            format!("decode-{}", next(&mut decode))
        } else if roles.len() == 1 {
            format!("{}-{}", first.kind, first.silo)
        } else {
            format!("hot-{}", next(&mut hot))
        };
        let Seat { core, exclusive, .. } = seat;
        threads.push(PlannedThread { name, silo: first.silo, roles, core, node: None, exclusive, contested: false });
    }
    threads
}
