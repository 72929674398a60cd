//! Which silo runs on which NUMA node, and with how many of its cores.
//!
//! Cold and pure. Bounded by silos times nodes. A silo is never spread over nodes while any node has two cores for it.

use crate::host::HostFacts;
use crate::plan::auto::{AUTO_DECODERS_MAX, RING_SPLITS, Seat};
use crate::profile::{Decoders, Profile};

/// A node's seats and how many silos share them. Silos are numbered on, group by group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) node: u32,
    pub(super) seats: Vec<Seat>,
    pub(super) silos: u32,
}

/// Step 2 of the automatic rule: groups with at least one silo each, by node.
pub(super) fn groups(
    profile: &Profile,
    silos: u32,
    host: &HostFacts,
    seats: Vec<Seat>,
    notes: &mut Vec<String>,
) -> Vec<Group> {
    let all = seats.len();
    let mut groups = by_node(seats);
    let max = profile.max_cores.map_or(usize::MAX, |max| max.max(1) as usize);
    // Each node needs a ring thread and a decode thread; a limit that has no room for them keeps to fewer nodes.
    let nodes_max = (max / 2).max(1);
    for _ in 0..silos {
        let opened = groups.iter().filter(|group| group.silos > 0).count();
        let open = |group: &&mut Group| group.silos > 0 || opened < nodes_max;
        let best = groups.iter_mut().filter(open).max_by_key(|group| {
            let each = group.seats.len() / (group.silos as usize + 1);
            let lower_first = std::cmp::Reverse(group.node);
            (each.min(usable(profile)), host.gpu_nodes.contains(&group.node), lower_first)
        });
        if let Some(group) = best {
            group.silos += 1;
        }
    }
    groups.retain(|group| group.silos > 0);
    limit(&mut groups, max, silos);
    if all > max {
        notes.push(format!("max_cores leaves {} of {all} hot cores to others", all - max));
    }
    groups
}

/// The nodes with seats for a silo: a ring thread's and a decode worker's.
pub(super) fn wide(seats: &[Seat]) -> Vec<u32> {
    // In order of their nodes.
    let nodes = seats.chunk_by(|one, next| one.node == next.node);
    nodes.filter(|node| node.len() >= 2).map(|node| node[0].node).collect()
}

/// Most seats that one silo can use.
fn usable(profile: &Profile) -> usize {
    let decoders = match profile.decoders {
        Decoders::Auto => AUTO_DECODERS_MAX,
        Decoders::Count(count) => count.max(1) as usize,
    };
    RING_SPLITS.len() + decoders
}

/// Seats by node, as they come; in one group where no node has two.
fn by_node(seats: Vec<Seat>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for seat in &seats {
        match groups.iter_mut().find(|group| group.node == seat.node) {
            Some(group) => group.seats.push(*seat),
            None => groups.push(Group { node: seat.node, seats: vec![*seat], silos: 0 }),
        }
    }
    if groups.len() > 1 && groups.iter().all(|group| group.seats.len() < 2) {
        return vec![Group { node: groups[0].node, seats, silos: 0 }];
    }
    groups
}

/// Shares `max` seats out to the groups, by their silos; each group keeps one at least.
fn limit(groups: &mut [Group], max: usize, silos: u32) {
    let (mut left, mut silos, mut after) = (max.min(u32::MAX as usize), silos as usize, groups.len());
    for group in groups {
        let mine = group.silos as usize;
        after -= 1;
        let share = (left * mine).div_ceil(silos.max(1)).min(left.saturating_sub(after));
        group.seats.truncate(share.max(1));
        left = left.saturating_sub(group.seats.len());
        silos -= mine;
    }
}
