//! Alternating trees: what follows when regions meet, the boundary is reached, or a region shrinks
//! to nothing.
//!
//! Called by [`grow`](super::grow). Each event ends a tree, or adds to one, or joins three regions
//! or more to a blossom, or takes a blossom apart; its work is bounded by the regions and nodes
//! that change their slope.
//!
//! ```text
//!   tree + tree                   both end: partners in turn along the paths to the two roots
//!   tree + itself                 the cycle over the lowest common node becomes a blossom
//!   tree + matched pair           the pair joins the tree: it shrinks, its partner grows
//!   tree + matched to boundary    the tree ends
//!   tree + a round to come        the tree ends until that round comes (rounds)
//!   tree + boundary               the tree ends
//!   inner blossom at radius 0     comes apart: half of the cycle joins the tree, the rest pairs up
//!   inner defect at radius 0      the regions above and below it in the tree meet in it
//! ```

use super::{BOUNDARY, FUTURE, LONE, Link, NONE, ROOT, Radius, Region, Search, TreeNode};
use crate::graph::Adjacency;

impl Search {
    /// Regions `one` and `other`, at least one of them growing, meet; `link` leads from the first.
    pub(super) fn meet(&mut self, over: Adjacency<'_>, one: u32, other: u32, link: Link) {
        let trees = (self.regions[one as usize].tree, self.regions[other as usize].tree);
        match trees {
            (NONE, NONE) => {}
            (_, NONE) => self.meet_matched(over, one, other, link),
            (NONE, _) => self.meet_matched(over, other, one, link.reversed()),
            (mine, theirs) => match self.common(mine, theirs) {
                Some(common) => self.blossom(over, common, (mine, theirs), link),
                None => {
                    self.end_tree(over, mine, other, link);
                    self.end_tree(over, theirs, one, link.reversed());
                }
            },
        }
    }

    /// The growing region `outer` reaches the boundary.
    pub(super) fn meet_boundary(&mut self, over: Adjacency<'_>, outer: u32, link: Link) {
        self.end_tree(over, outer, BOUNDARY, link);
    }

    /// The growing region `outer` meets `other`, which is matched or [`FUTURE`].
    fn meet_matched(&mut self, over: Adjacency<'_>, outer: u32, other: u32, link: Link) {
        let Region { partner, partner_link, .. } = self.regions[other as usize];
        if other == FUTURE {
            self.waiting.push(outer);
            self.end_tree(over, outer, FUTURE, link);
            return;
        }
        if partner == BOUNDARY || partner == FUTURE {
            self.regions[other as usize].partner = outer;
            self.regions[other as usize].partner_link = link.reversed();
            self.end_tree(over, outer, other, link);
            return;
        }
        self.regions[other as usize].tree = partner;
        self.regions[partner as usize].tree = partner;
        self.trees[partner as usize] = TreeNode { inner: other, inner_link: partner_link, parent_link: link, ..ROOT };
        self.adopt(outer, partner);
        self.set_slope(other, -1);
        self.set_slope(partner, 1);
        self.look_all(over, partner);
    }

    /// Makes tree node `child` a child of `parent`.
    fn adopt(&mut self, parent: u32, child: u32) {
        let after = std::mem::replace(&mut self.trees[parent as usize].child, child);
        if after != NONE {
            self.trees[after as usize].before = child;
        }
        let node = &mut self.trees[child as usize];
        (node.parent, node.before, node.after) = (parent, NONE, after);
    }

    /// Takes tree node `child` from its parent.
    fn disown(&mut self, child: u32) {
        let TreeNode { parent, before, after, .. } = self.trees[child as usize];
        if after != NONE {
            self.trees[after as usize].before = before;
        }
        if before != NONE {
            self.trees[before as usize].after = after;
        } else if parent != NONE {
            self.trees[parent as usize].child = after;
        }
    }

    /// Ends the tree of `outer`, which is matched with `partner`: regions along the path to the root
    /// change partners, all others keep theirs, all stand still.
    fn end_tree(&mut self, over: Adjacency<'_>, outer: u32, partner: u32, link: Link) {
        self.tree_count -= 1;
        let mut root = outer;
        while self.trees[root as usize].parent != NONE {
            root = self.trees[root as usize].parent;
        }
        self.pair_up(root);
        let (mut outer, mut partner, mut link) = (outer, partner, link);
        loop {
            let TreeNode { inner, parent, parent_link, .. } = self.trees[outer as usize];
            self.set_partner(outer, partner, link);
            if parent == NONE {
                break;
            }
            self.set_partner(inner, parent, parent_link.reversed());
            (outer, partner, link) = (parent, inner, parent_link);
        }
        self.release(over, root);
    }

    pub(super) fn set_partner(&mut self, region: u32, partner: u32, link: Link) {
        let region = &mut self.regions[region as usize];
        (region.partner, region.partner_link) = (partner, link);
    }

    /// Matches inner and outer region of each node below `root`; all regions stand still.
    fn pair_up(&mut self, root: u32) {
        let mut at = root;
        loop {
            let TreeNode { inner, inner_link, child, .. } = self.trees[at as usize];
            self.regions[at as usize].tree = NONE;
            self.set_slope(at, 0);
            if inner != NONE {
                self.set_partner(at, inner, inner_link.reversed());
                self.set_partner(inner, at, inner_link);
                self.regions[inner as usize].tree = NONE;
                self.set_slope(inner, 0);
            }
            if child != NONE {
                at = child;
                continue;
            }
            let Some(next) = self.next_branch(at, root) else { return };
            at = next;
        }
    }

    /// The next tree node after `at` and all below it, within `root`.
    fn next_branch(&self, mut at: u32, root: u32) -> Option<u32> {
        while at != root {
            let TreeNode { after, parent, .. } = self.trees[at as usize];
            if after != NONE {
                return Some(after);
            }
            at = parent;
        }
        None
    }

    /// Has the nodes of inner regions show: they stopped shrinking, so others may meet them sooner.
    fn release(&mut self, over: Adjacency<'_>, root: u32) {
        let mut at = root;
        loop {
            let TreeNode { inner, child, .. } = self.trees[at as usize];
            if inner != NONE {
                self.show_all(over, inner);
            }
            if child != NONE {
                at = child;
                continue;
            }
            let Some(next) = self.next_branch(at, root) else { return };
            at = next;
        }
    }

    /// The lowest tree node above both, if they are of one tree.
    fn common(&mut self, one: u32, other: u32) -> Option<u32> {
        self.mark += 1;
        let (mut one, mut other) = (one, other);
        while one != NONE || other != NONE {
            for at in [&mut one, &mut other] {
                if *at == NONE {
                    continue;
                }
                let node = &mut self.trees[*at as usize];
                if node.mark == self.mark {
                    return Some(*at);
                }
                node.mark = self.mark;
                *at = node.parent;
            }
        }
        None
    }

    /// Outer regions `ends` of one tree meet: the paths up to `common` become a blossom that grows.
    fn blossom(&mut self, over: Adjacency<'_>, common: u32, ends: (u32, u32), link: Link) {
        let blossom = self.new_region();
        let above = self.trees[common as usize];
        self.disown(common);
        self.regions[blossom as usize] = Region { child: common, tree: blossom, ..LONE };
        self.radii[blossom as usize] = Radius { at_zero: -self.queue.now(), slope: 1 };
        self.trees[blossom as usize] = TreeNode { child: NONE, ..above };
        if above.parent != NONE {
            self.adopt(above.parent, blossom);
        }
        if above.inner != NONE {
            self.regions[above.inner as usize].tree = blossom;
        }
        self.link_up(ends.0, common);
        self.link_down(ends.1, common);
        self.set_next(ends.1, ends.0, link.reversed());
        self.gather(common, blossom);
        self.gather_path(ends.0, common, blossom);
        self.gather_path(ends.1, common, blossom);
        self.enclose(over, blossom);
    }

    fn set_next(&mut self, region: u32, next: u32, link: Link) {
        let region = &mut self.regions[region as usize];
        (region.next, region.next_link) = (next, link);
    }

    /// Links the cycle from tree node `at` up to `common`.
    fn link_up(&mut self, mut at: u32, common: u32) {
        while at != common {
            let TreeNode { inner, parent, inner_link, parent_link, .. } = self.trees[at as usize];
            self.set_next(at, inner, inner_link.reversed());
            self.set_next(inner, parent, parent_link.reversed());
            at = parent;
        }
    }

    /// Links the cycle from `common` down to tree node `at`.
    fn link_down(&mut self, mut at: u32, common: u32) {
        while at != common {
            let TreeNode { inner, parent, inner_link, parent_link, .. } = self.trees[at as usize];
            self.set_next(parent, inner, parent_link);
            self.set_next(inner, at, inner_link);
            at = parent;
        }
    }

    /// Hands the children of the tree nodes from `at` up to `common` to the blossom's, except for
    /// those on the path.
    fn gather_path(&mut self, mut at: u32, common: u32, blossom: u32) {
        while at != common {
            let parent = self.trees[at as usize].parent;
            self.gather(at, blossom);
            at = parent;
        }
    }

    /// Hands the children of one tree node to the blossom's, except for those that it contains.
    fn gather(&mut self, at: u32, blossom: u32) {
        let mut child = self.trees[at as usize].child;
        while child != NONE {
            let TreeNode { after, .. } = self.trees[child as usize];
            if self.trees[child as usize].mark != self.mark {
                self.adopt(blossom, child);
            }
            child = after;
        }
        self.trees[at as usize].child = NONE;
    }

    /// Puts the regions of the blossom's cycle into it. Those that shrank grow from now on: their
    /// nodes look.
    fn enclose(&mut self, over: Adjacency<'_>, blossom: u32) {
        let now = self.queue.now();
        let first = self.regions[blossom as usize].child;
        let mut child = first;
        loop {
            let radius = self.radii[child as usize];
            self.set_slope(child, 0);
            let state = &mut self.regions[child as usize];
            (state.parent, state.tree) = (blossom, NONE);
            self.move_nodes(child, blossom, radius.at(now));
            // Inside a blossom the partner means nothing: until the second round it says who looks.
            self.regions[child as usize].partner = if radius.slope < 0 { BOUNDARY } else { NONE };
            child = self.regions[child as usize].next;
            if child == first {
                break;
            }
        }
        loop {
            if self.regions[child as usize].partner == BOUNDARY {
                self.look_all(over, child);
            }
            child = self.regions[child as usize].next;
            if child == first {
                break;
            }
        }
    }

    /// The child of `blossom` around the defect at `node`.
    pub(super) fn child_around(&self, blossom: u32, node: u32) -> u32 {
        let mut region = self.nodes[node as usize].own;
        while self.regions[region as usize].parent != blossom {
            region = self.regions[region as usize].parent;
        }
        region
    }

    /// An inner defect's region has shrunk to nothing: the outer regions above and below it meet.
    pub(super) fn vanish(&mut self, over: Adjacency<'_>, region: u32) {
        let below = self.regions[region as usize].tree;
        let TreeNode { parent, parent_link, inner_link, .. } = self.trees[below as usize];
        let observables = parent_link.observables ^ inner_link.observables;
        let link = Link { a: parent_link.a, b: inner_link.b, observables };
        if let Some(common) = self.common(parent, below) {
            self.blossom(over, common, (parent, below), link);
        }
    }

    /// An inner blossom has shrunk to nothing: the even way round its cycle joins the tree in its
    /// place, the regions on the odd way become partners.
    pub(super) fn come_apart(&mut self, over: Adjacency<'_>, blossom: u32) {
        let below = self.regions[blossom as usize].tree;
        let TreeNode { parent_link, inner_link, .. } = self.trees[below as usize];
        let upper = self.child_around(blossom, parent_link.b);
        let lower = self.child_around(blossom, inner_link.a);
        self.set_free(blossom);
        let mut steps = 0;
        let mut at = upper;
        while at != lower {
            at = self.regions[at as usize].next;
            steps += 1;
        }
        if steps % 2 == 0 {
            self.path_down(below, upper, lower);
            self.pair_off(lower, upper);
        } else {
            self.path_up(below, upper, lower);
            self.pair_off(upper, lower);
        }
        self.start_children(over, upper);
        self.set_slope(blossom, 0);
        let next = std::mem::replace(&mut self.free, blossom);
        self.regions[blossom as usize] = Region { next, ..LONE };
    }

    /// Takes the children of `blossom` out of it: each is outermost again and stands still.
    fn set_free(&mut self, blossom: u32) {
        let first = self.regions[blossom as usize].child;
        let mut child = first;
        loop {
            let state = &mut self.regions[child as usize];
            (state.parent, state.tree) = (NONE, NONE);
            let radius = self.radii[child as usize].at_zero;
            self.move_nodes(child, child, -radius);
            child = self.regions[child as usize].next;
            if child == first {
                return;
            }
        }
    }

    /// The cycle's way forward from `upper` to `lower` joins the tree above node `below`.
    fn path_down(&mut self, below: u32, upper: u32, lower: u32) {
        let TreeNode { parent, parent_link, .. } = self.trees[below as usize];
        self.disown(below);
        let (mut parent, mut parent_link, mut inner) = (parent, parent_link, upper);
        while inner != lower {
            let Region { next: outer, next_link: inner_link, .. } = self.regions[inner as usize];
            self.trees[outer as usize] = TreeNode { inner, inner_link, parent_link, ..ROOT };
            self.adopt(parent, outer);
            (self.regions[inner as usize].tree, self.regions[outer as usize].tree) = (outer, outer);
            (parent, parent_link) = (outer, self.regions[outer as usize].next_link);
            inner = self.regions[outer as usize].next;
        }
        self.hang(below, lower, parent, parent_link);
    }

    /// The cycle's way back from `upper` to `lower` joins the tree above node `below`.
    fn path_up(&mut self, below: u32, upper: u32, lower: u32) {
        let TreeNode { parent: above, parent_link: above_link, .. } = self.trees[below as usize];
        self.disown(below);
        let (mut node, mut inner) = (below, lower);
        while inner != upper {
            let Region { next: outer, next_link: up, .. } = self.regions[inner as usize];
            let Region { next, next_link, .. } = self.regions[outer as usize];
            self.trees[outer as usize] = TreeNode { inner_link: next_link.reversed(), ..ROOT };
            self.regions[outer as usize].tree = outer;
            self.hang(node, inner, outer, up.reversed());
            (node, inner) = (outer, next);
        }
        self.hang(node, upper, above, above_link);
    }

    /// Makes `inner` the inner region of tree node `node`, and the node a child of `parent`.
    fn hang(&mut self, node: u32, inner: u32, parent: u32, parent_link: Link) {
        self.regions[inner as usize].tree = node;
        let state = &mut self.trees[node as usize];
        (state.inner, state.parent_link) = (inner, parent_link);
        self.adopt(parent, node);
    }

    /// Matches the regions of the cycle strictly between `from` and `to`, in pairs.
    fn pair_off(&mut self, from: u32, to: u32) {
        let mut one = self.regions[from as usize].next;
        while one != to {
            let Region { next: other, next_link: link, .. } = self.regions[one as usize];
            self.set_partner(one, other, link);
            self.set_partner(other, one, link.reversed());
            one = self.regions[other as usize].next;
        }
    }

    /// Sets the slopes of a former cycle, then has the nodes look or show.
    fn start_children(&mut self, over: Adjacency<'_>, first: u32) {
        for looks in [false, true] {
            let mut child = first;
            loop {
                let tree = self.regions[child as usize].tree;
                let slope = i64::from(tree == child) - i64::from(tree != child && tree != NONE);
                if !looks {
                    self.set_slope(child, slope);
                } else if slope > 0 {
                    self.look_all(over, child);
                } else if slope == 0 {
                    self.show_all(over, child);
                }
                child = self.regions[child as usize].next;
                if child == first {
                    break;
                }
            }
        }
    }
}
