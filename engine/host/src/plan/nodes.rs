//! Which NUMA node each silo runs on, and with how many of its cores.
//!
//! Cold and pure. Bounded by silos times nodes. A silo never spans nodes while any node has two
//! cores for it.

use crate::host::HostFacts;
use crate::plan::hot_core::{AUTO_DECODERS_MAX, HotCore, RING_SPLITS};
use crate::profile::{Decoders, Profile};

/// A node's hot cores and the number of silos that share them. Silos are numbered from group to
/// group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) node: u32,
    pub(super) hot_cores: Vec<HotCore>,
    pub(super) silos: u32,
}

/// Step 2 of the automatic rule: groups with at least one silo each, sorted by node.
pub(super) fn groups(
    profile: &Profile,
    silos: u32,
    host: &HostFacts,
    hot_cores: Vec<HotCore>,
    notes: &mut Vec<String>,
) -> Vec<Group> {
    let all = hot_cores.len();
    let mut groups = by_node(hot_cores);
    let max = profile.max_cores.map_or(usize::MAX, |max| max.max(1) as usize);
    // Each node needs a ring thread and a decode thread, so a small limit leaves nodes out.
    let nodes_max = (max / 2).max(1);
    for _ in 0..silos {
        let opened = groups.iter().filter(|group| group.silos > 0).count();
        let open = |group: &&mut Group| group.silos > 0 || opened < nodes_max;
        let best = groups.iter_mut().filter(open).max_by_key(|group| {
            let each = group.hot_cores.len() / (group.silos as usize + 1);
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

/// The nodes with at least two hot cores: one for a ring thread, one for a decode worker.
pub(super) fn with_two_hot_cores(hot_cores: &[HotCore]) -> Vec<u32> {
    // The hot cores are sorted by node.
    let nodes = hot_cores.chunk_by(|one, next| one.node == next.node);
    nodes.filter(|node| node.len() >= 2).map(|node| node[0].node).collect()
}

/// Most hot cores that one silo can use.
fn usable(profile: &Profile) -> usize {
    let decoders = match profile.decoders {
        Decoders::Auto => AUTO_DECODERS_MAX,
        Decoders::Count(count) => count.max(1) as usize,
    };
    RING_SPLITS.len() + decoders
}

/// Groups hot cores by node; in one group if no node has two.
fn by_node(hot_cores: Vec<HotCore>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for hot_core in &hot_cores {
        match groups.iter_mut().find(|group| group.node == hot_core.node) {
            Some(group) => group.hot_cores.push(*hot_core),
            None => groups.push(Group { node: hot_core.node, hot_cores: vec![*hot_core], silos: 0 }),
        }
    }
    if groups.len() > 1 && groups.iter().all(|group| group.hot_cores.len() < 2) {
        return vec![Group { node: groups[0].node, hot_cores, silos: 0 }];
    }
    groups
}

/// Divides `max` hot cores among the groups, by their silos; each group keeps at least one.
fn limit(groups: &mut [Group], max: usize, silos: u32) {
    let (mut left, mut silos, mut after) = (max.min(u32::MAX as usize), silos as usize, groups.len());
    for group in groups {
        let mine = group.silos as usize;
        after -= 1;
        let share = (left * mine).div_ceil(silos.max(1)).min(left.saturating_sub(after));
        group.hot_cores.truncate(share.max(1));
        left = left.saturating_sub(group.hot_cores.len());
        silos -= mine;
    }
}
