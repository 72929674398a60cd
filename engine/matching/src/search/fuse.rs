//! A search that goes on where others have ended, each of which had a part of the nodes.
//!
//! Called by [`blocks`](crate::stream::blocks) when no region grows. Work: one step for each region and
//! each node that a region has reached.

use super::{BOUNDARY, EMPTY, FIRST, FUTURE, Link, NOBODY, NONE, Radius, Region, Search};

impl Search {
    /// Moves all regions of `from` here, which has no defects then. Its node 0 is `nodes_on` here; the
    /// nodes of its regions have none here.
    pub(crate) fn take_over(&mut self, from: &mut Search, nodes_on: u32) {
        let regions_on = self.region_count - FIRST;
        let on = |region: u32| if (FIRST..BOUNDARY).contains(&region) { region + regions_on } else { region };
        let node_on = |node: u32| if node == NONE { NONE } else { node + nodes_on };
        let link_on = |link: Link| Link { a: node_on(link.a), b: node_on(link.b), ..link };
        let now = from.queue.now();
        for index in FIRST..from.region_count {
            let Region { parent, child, next, shell, tree, partner, next_link, partner_link } =
                from.regions[index as usize];
            let to = on(index);
            self.radii[to as usize] = Radius { at_zero: from.radii[index as usize].at(now), slope: 0 };
            self.regions[to as usize] = Region {
                parent: on(parent),
                child: on(child),
                next: on(next),
                shell: node_on(shell),
                tree: on(tree),
                partner: on(partner),
                next_link: link_on(next_link),
                partner_link: link_on(partner_link),
            };
            if partner == FUTURE && parent == NONE {
                self.waiting.push(to);
            }
            let mut at = shell;
            while at != NONE {
                let state = std::mem::replace(&mut from.nodes[at as usize], EMPTY);
                let top = std::mem::replace(&mut from.tops[at as usize], NOBODY);
                let (source, below, own) = (node_on(state.source), node_on(state.below), on(state.own));
                self.nodes[node_on(at) as usize] = super::Node { source, below, own, ..state };
                self.tops[node_on(at) as usize] = on(top);
                at = state.below;
            }
        }
        // Rooms of blossoms that came apart are free here, too.
        let mut last = from.free;
        while last != NONE {
            let next = from.regions[last as usize].next;
            if next == NONE {
                self.regions[on(last) as usize].next = self.free;
                self.free = on(from.free);
            }
            last = next;
        }
        self.region_count += from.region_count - FIRST;
        from.waiting.clear();
        from.reset();
    }

    /// Forgets all regions, in time proportional to what they have reached.
    pub(crate) fn forget_regions(&mut self) {
        for index in FIRST..self.region_count {
            let mut node = self.regions[index as usize].shell;
            while node != NONE {
                self.tops[node as usize] = NOBODY;
                node = std::mem::replace(&mut self.nodes[node as usize], EMPTY).below;
            }
        }
        self.waiting.clear();
        self.reset();
    }
}
