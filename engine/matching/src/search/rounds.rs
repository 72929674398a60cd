//! A search whose nodes come and go by rounds.
//!
//! Called by [`stream`](crate::stream) between the rounds of a shot, when no region grows. A node is
//! in the future, open, or in the past. A growing region that reaches the future is matched with it
//! and stands still; [`Search::resume`] makes it a tree again, of the radius it has: radii that
//! overlap nowhere stay so when a round is added, and from such radii every search ends in the
//! lightest matching. [`Search::take_pair`] takes regions out, which only makes room for others.

use super::{BOUNDARY, EMPTY, FIRST, FUTURE, Failure, LONE, NOBODY, NONE, PAST, Pair, ROOT, Region, STILL, Search};
use crate::graph::Adjacency;
use std::ops::Range;

/// Whether a node takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Its round has not come.
    Future,
    /// Its round has come and is not forgotten.
    Open,
    /// Its round is forgotten.
    Past,
}

impl Search {
    /// As [`Search::new`], for nodes that come and go.
    pub(crate) fn by_rounds(nodes: usize) -> Self {
        let mut search = Self::new(nodes);
        search.waiting = Vec::with_capacity(search.regions.len());
        search
    }

    /// Forgets the last shot; all nodes but the last of each `stride`, which are the boundary, are in
    /// the past.
    pub(crate) fn restart(&mut self, stride: usize) {
        self.reset();
        self.waiting.clear();
        for (tops, nodes) in self.tops.chunks_exact_mut(stride).zip(self.nodes.chunks_exact_mut(stride)) {
            tops[..stride - 1].fill(PAST);
            nodes.fill(EMPTY);
            nodes[stride - 1].own = BOUNDARY;
        }
    }

    /// Says whether `nodes`, which no region has reached, take part. What else is known of them is as
    /// in [`EMPTY`] but for the source that a region left, which says nothing in a stream.
    pub(crate) fn set_presence(&mut self, nodes: Range<u32>, presence: Presence) {
        let top = match presence {
            Presence::Future => FUTURE,
            Presence::Open => NOBODY,
            Presence::Past => PAST,
        };
        self.tops[nodes.start as usize..nodes.end as usize].fill(top);
    }

    /// Matches the new defects, and those that waited for a round, anew. The caller has opened the
    /// rounds that came.
    ///
    /// # Errors
    ///
    /// [`Failure`]; the search must then be restarted.
    pub(crate) fn resume(&mut self, over: Adjacency<'_>) -> Result<(), Failure> {
        let mut kept = 0;
        for index in 0..self.waiting.len() {
            let region = self.waiting[index];
            let Region { partner, parent, tree, .. } = self.regions[region as usize];
            if partner != FUTURE || parent != NONE || tree != NONE {
                continue;
            }
            self.regions[region as usize].tree = region;
            self.trees[region as usize] = ROOT;
            self.tree_count += 1;
            self.set_slope(region, 1);
            self.waiting[kept] = region;
            kept += 1;
        }
        for index in 0..kept {
            self.look_all(over, self.waiting[index]);
        }
        self.waiting.clear();
        self.start(over);
        let grown = self.grow(over);
        // What is still queued is of regions that stand still.
        self.queue.discard();
        self.touched.clear();
        grown
    }

    /// The first of `nodes`, all of them open, that a region has reached, and the outermost such
    /// region.
    pub(crate) fn first_reached(&self, nodes: Range<u32>) -> Option<(u32, u32)> {
        let tops = &self.tops[nodes.start as usize..nodes.end as usize];
        // Hardly ever is there one: this looks at several nodes at a time.
        if tops.iter().fold(0, |all, top| all | top) == NOBODY {
            return None;
        }
        (nodes.start..).zip(tops.iter().copied()).find(|&(_, top)| top >= FIRST)
    }

    /// The outermost region around the defect at `node`, if it is still there.
    pub(crate) fn region_of_defect(&self, node: u32) -> Option<u32> {
        (self.nodes[node as usize].own != NONE).then_some(self.tops[node as usize])
    }

    /// Whether `is_in` says yes to the nodes of all defects of outermost region `region` and of its
    /// partner, which is not the future.
    pub(crate) fn all_defects(&mut self, region: u32, is_in: impl Fn(u32) -> bool) -> bool {
        let Region { partner, partner_link, child, .. } = self.regions[region as usize];
        if partner == FUTURE || !is_in(partner_link.a) || partner != BOUNDARY && !is_in(partner_link.b) {
            return false;
        }
        if child == NONE && (partner == BOUNDARY || self.regions[partner as usize].child == NONE) {
            return true;
        }
        self.stack.clear();
        self.stack.push(region);
        if partner != BOUNDARY {
            self.stack.push(partner);
        }
        while let Some(region) = self.stack.pop() {
            let Region { child, parent, next_link, partner_link, .. } = self.regions[region as usize];
            // The links of a region of one defect begin at that defect.
            let link = if parent == NONE { partner_link } else { next_link };
            if child == NONE && !is_in(link.a) {
                return false;
            }
            self.push_children(region);
        }
        true
    }

    /// Takes the pair of outermost region `region` out, hands its matching to `take` and returns the
    /// weight. `None` if its partner is the future.
    pub(crate) fn take_pair(&mut self, region: u32, take: &mut impl FnMut(Pair)) -> Option<i64> {
        let partner = self.regions[region as usize].partner;
        if partner == FUTURE {
            return None;
        }
        self.pairs_of(region, take);
        let other = if partner < self.region_count { self.take_region(partner) } else { 0 };
        Some(self.take_region(region) + other)
    }

    /// Takes outermost region `region`, whose partner is the future, out: hands the matching inside
    /// of it to `take`, and begins anew at the defect that has none then. Returns the weight; `None`
    /// if that defect's node is one of `last`.
    pub(crate) fn take_waiting(&mut self, region: u32, last: &Range<u32>, take: &mut impl FnMut(Pair)) -> Option<i64> {
        let now = self.queue.now();
        let contact = self.regions[region as usize].partner_link.a;
        if last.contains(&contact) {
            return None;
        }
        // No edge of the matching leaves a region around the defect without partner.
        let mut around = self.nodes[contact as usize].own;
        let mut unused = self.radii[around as usize].at(now);
        while around != region {
            around = self.regions[around as usize].parent;
            unused += self.radii[around as usize].at(now);
        }
        self.open_pairs(region, contact, take);
        let weight = self.take_region(region) - unused;
        self.add_defect(contact);
        Some(weight)
    }

    /// Empties an outermost region; returns the sum of the radii in it.
    fn take_region(&mut self, region: u32) -> i64 {
        if self.regions[region as usize].child == NONE {
            return self.free_region(region);
        }
        let mut weight = 0;
        self.stack.clear();
        self.stack.push(region);
        while let Some(region) = self.stack.pop() {
            self.push_children(region);
            weight += self.free_region(region);
        }
        weight
    }

    /// Empties a region and makes room for another; returns its radius.
    fn free_region(&mut self, region: u32) -> i64 {
        let radius = std::mem::replace(&mut self.radii[region as usize], STILL).at(self.queue.now());
        let mut node = self.regions[region as usize].shell;
        while node != NONE {
            self.tops[node as usize] = NOBODY;
            node = std::mem::replace(&mut self.nodes[node as usize], EMPTY).below;
        }
        let next = std::mem::replace(&mut self.free, region);
        self.regions[region as usize] = Region { next, ..LONE };
        radius
    }
}
