//! Growth: when the regions around a node meet something, and what a shrinking region gives up.
//!
//! Called by one search. Each growing node has at most one queued event, no later than the first
//! time at which it meets a neighbour as things are. A node that starts to grow looks at its
//! neighbours, and moves their events forward where it meets them earlier; one that stops shrinking
//! or is given up does the latter only. An event may come too early, because a region changed its
//! slope since; the node then looks again, or forgets it if it grows no more. Work of a look: the
//! node's edges.

use super::{BOUNDARY, Link, NOBODY, NONE, Radius, Search};
use crate::graph::{Adjacency, Half};

/// No event.
pub(super) const NEVER: i64 = i64::MAX;
/// Bits for the index of a half-edge, behind a time: the lesser of two is found without a branch.
const INDEX_BITS: u32 = 32;

/// The lightest of those `halves` that `of` has a bit for, by its index; without branches.
fn lightest(halves: &[Half], of: u64) -> u32 {
    let key = |(index, half): (u32, &Half)| {
        // All bits are set for the others.
        let is_left_out = (of >> index & 1).wrapping_sub(1);
        u64::from(half.weight) << INDEX_BITS | u64::from(index) | is_left_out
    };
    (0..).zip(halves).map(key).fold(u64::MAX, u64::min) as u32
}

impl Search {
    /// Looks at the neighbours of `node`, which grows, and queues its next event.
    #[inline]
    pub(super) fn look(&mut self, over: Adjacency<'_>, node: u32) {
        let Self { tops, nodes, radii, queue, due, .. } = self;
        let now = queue.now();
        let own = tops[node as usize];
        let reach = radii[own as usize].at(now) + nodes[node as usize].wrapped;
        let all = over.of(node);
        let mut soonest = NEVER;
        for (from, halves) in all.clone().step_by(64).zip(over.halves[all].chunks(64)) {
            // What a neighbour is in is as good as drawn, so this is without branches.
            let (mut empty, mut others) = (0u64, 0u64);
            for &half in halves.iter().rev() {
                let top = tops[over.other(node, half) as usize];
                empty = empty << 1 | u64::from(top == NOBODY);
                others = others << 1 | u64::from(top != own);
            }
            others &= !empty;
            if empty != 0 {
                let index = if over.is_by_weight { empty.trailing_zeros() } else { lightest(halves, empty) };
                let wait = i64::from(halves[index as usize].weight) - reach;
                soonest = soonest.min(wait << INDEX_BITS | (from as i64 + i64::from(index)));
            }
            while others != 0 {
                let index = others.trailing_zeros();
                others &= others - 1;
                let half = halves[index as usize];
                let to = over.other(node, half);
                let theirs = radii[tops[to as usize] as usize];
                if theirs.slope < 0 {
                    continue;
                }
                let apart = i64::from(half.weight) - reach - theirs.at(now) - nodes[to as usize].wrapped;
                let wait = apart >> theirs.slope;
                let half = from + index as usize;
                if theirs.slope > 0 && now + wait < queue.time(to) {
                    due[to as usize] = over.twin(half, to);
                    queue.set(to, now + wait.max(0));
                }
                soonest = soonest.min(wait << INDEX_BITS | half as i64);
            }
        }
        if soonest == NEVER {
            queue.remove(node);
        } else {
            due[node as usize] = soonest as u32;
            queue.set(node, now + (soonest >> INDEX_BITS).max(0));
        }
    }

    /// Moves the events of growing neighbours forward to when they meet `node`, which stands still
    /// or is empty.
    fn show(&mut self, over: Adjacency<'_>, node: u32) {
        let Self { tops, nodes, radii, queue, due, .. } = self;
        let now = queue.now();
        let own = tops[node as usize];
        let reach = radii[own as usize].at(now) + nodes[node as usize].wrapped;
        for half in over.of(node) {
            let to = over.other(node, over.halves[half]);
            let other = tops[to as usize];
            if other == NOBODY {
                continue;
            }
            let theirs = radii[other as usize];
            if theirs.slope > 0 && other != own {
                let weight = i64::from(over.halves[half].weight);
                let time = (now + weight - reach - theirs.at(now) - nodes[to as usize].wrapped).max(now);
                if time < queue.time(to) {
                    due[to as usize] = over.twin(half, to);
                    queue.set(to, time);
                }
            }
        }
    }

    /// The node's event is due: handles it if it still holds, and looks again while it grows.
    pub(super) fn node_event(&mut self, over: Adjacency<'_>, node: u32) {
        let now = self.queue.now();
        let top = self.tops[node as usize];
        let radius = self.radii[top as usize];
        if radius.slope <= 0 {
            return;
        }
        let half = self.due[node as usize] as usize;
        let to = over.other(node, over.halves[half]);
        let other_top = self.tops[to as usize];
        let theirs = self.radii[other_top as usize];
        let (state, other) = (self.nodes[node as usize], self.nodes[to as usize]);
        let reach = radius.at(now) + state.wrapped + theirs.at(now) + other.wrapped;
        if theirs.slope >= 0 && top != other_top && reach >= i64::from(over.halves[half].weight) {
            let across = over.observables.get(half).copied().unwrap_or(0);
            if other.own == BOUNDARY {
                let link = Link { a: state.source, b: NONE, observables: state.observables ^ across };
                self.meet_boundary(over, top, link);
            } else if other_top == NOBODY {
                self.arrive(node, to, across);
                self.look(over, to);
            } else {
                let observables = state.observables ^ other.observables ^ across;
                let link = Link { a: state.source, b: other.source, observables };
                self.meet(over, top, other_top, link);
            }
        }
        if self.radii[self.tops[node as usize] as usize].slope > 0 {
            self.look(over, node);
        }
    }

    /// The growing region at `from` takes the empty node `to`.
    fn arrive(&mut self, from: u32, to: u32, across: u64) {
        let top = self.tops[from as usize];
        let from = self.nodes[from as usize];
        let radius = self.radii[top as usize].at(self.queue.now());
        self.tops[to as usize] = top;
        let node = &mut self.nodes[to as usize];
        if node.source == NONE {
            self.touched.push(to);
        }
        node.source = from.source;
        node.observables = from.observables ^ across;
        node.wrapped = -radius;
        node.below = std::mem::replace(&mut self.regions[top as usize].shell, to);
    }

    /// A shrinking region's event is due: it gives up a node, comes apart, or lets its neighbours in
    /// the tree meet.
    pub(super) fn region_event(&mut self, over: Adjacency<'_>, region: u32) {
        if self.radii[region as usize].slope >= 0 {
            return;
        }
        let node = self.outermost(region);
        if self.left(region, node) > 0 {
            self.queue_region(region);
        } else if node != NONE {
            self.tops[node as usize] = NOBODY;
            let state = &mut self.nodes[node as usize];
            self.regions[region as usize].shell = state.below;
            // The source stays: it says that the node is to be reset.
            (state.wrapped, state.observables, state.below) = (0, 0, NONE);
            self.queue_region(region);
            self.show(over, node);
        } else if self.regions[region as usize].child == NONE {
            self.vanish(over, region);
        } else {
            self.come_apart(over, region);
        }
    }

    /// The node that a shrinking region gives up next; a defect keeps its own.
    fn outermost(&self, region: u32) -> u32 {
        let node = self.regions[region as usize].shell;
        if node != NONE && self.nodes[node as usize].own == region { NONE } else { node }
    }

    /// Time until a shrinking region has given up `node`, or has radius 0 if there is none.
    fn left(&self, region: u32, node: u32) -> i64 {
        let wrapped = if node == NONE { 0 } else { self.nodes[node as usize].wrapped };
        self.radii[region as usize].at(self.queue.now()) + wrapped
    }

    /// Queues the next event of a shrinking region.
    fn queue_region(&mut self, region: u32) {
        let left = self.left(region, self.outermost(region)).max(0);
        self.queue.set(self.region_items + region, self.queue.now() + left);
    }

    /// Sets the slope of an outermost region, now. The caller has its nodes look.
    pub(super) fn set_slope(&mut self, region: u32, slope: i64) {
        let now = self.queue.now();
        let radius = &mut self.radii[region as usize];
        *radius = Radius { at_zero: radius.at(now) - slope * now, slope };
        if slope < 0 {
            self.queue_region(region);
        } else {
            self.queue.remove(self.region_items + region);
        }
    }

    /// Makes `top` the outermost region of all nodes in `inside`, whose local radius is then the
    /// radius of `top` and `by` more than before.
    pub(super) fn move_nodes(&mut self, inside: u32, top: u32, by: i64) {
        self.stack.clear();
        self.stack.push(inside);
        while let Some(region) = self.stack.pop() {
            let mut node = self.regions[region as usize].shell;
            while node != NONE {
                self.tops[node as usize] = top;
                let state = &mut self.nodes[node as usize];
                state.wrapped += by;
                node = state.below;
            }
            self.push_children(region);
        }
    }

    /// Has all nodes in `inside`, which stands still from now on, show.
    pub(super) fn show_all(&mut self, over: Adjacency<'_>, inside: u32) {
        self.stack.clear();
        self.stack.push(inside);
        while let Some(region) = self.stack.pop() {
            let mut node = self.regions[region as usize].shell;
            while node != NONE {
                self.show(over, node);
                node = self.nodes[node as usize].below;
            }
            self.push_children(region);
        }
    }

    /// Has all nodes in `inside`, which grows from now on, look.
    pub(super) fn look_all(&mut self, over: Adjacency<'_>, inside: u32) {
        self.stack.clear();
        self.stack.push(inside);
        while let Some(region) = self.stack.pop() {
            let mut node = self.regions[region as usize].shell;
            while node != NONE {
                self.look(over, node);
                node = self.nodes[node as usize].below;
            }
            self.push_children(region);
        }
    }

    pub(super) fn push_children(&mut self, region: u32) {
        let first = self.regions[region as usize].child;
        let mut child = first;
        while child != NONE {
            self.stack.push(child);
            child = self.regions[child as usize].next;
            if child == first {
                break;
            }
        }
    }
}
