//! The state of one search: nodes, regions, alternating trees.
//!
//! Owned by one matcher. [`nearest`] begins, [`grow`] moves time on, [`trees`] handles what meets,
//! [`pairs`] reads the matching off. All memory is allocated by [`Search::new`] for a number of nodes
//! `n`: a shot has at most `n` regions of one defect, and at most `n / 2` blossoms at once, since each
//! joins three regions or more; the rooms of blossoms that come apart are used again. A region is a
//! child of at most one blossom, a node is in the shell of at most one region, so those lists are
//! links.
//!
//! # Words
//!
//! A *region* is a ball around a defect, or a *blossom*: an odd cycle of regions that grows as one.
//! Its radius changes by 1, 0 or -1 for each unit of time. The nodes that it reached itself are its
//! *shell*. The *local radius* of a node is how far the regions around it reach beyond it. An
//! *alternating tree* has growing (*outer*) and shrinking (*inner*) regions in turn; its root is an
//! outer region. A region outside of trees stands still and has a partner.

use crate::graph::{Adjacency, NONE};
use crate::queue::EventQueue;

mod grow;
mod trees;
mod nearest;
mod pairs;
mod rounds;
mod fuse;

pub(crate) use pairs::Pair;
pub(crate) use rounds::Presence;

/// The region of nodes that no region has reached: it never grows.
const NOBODY: u32 = 0;
/// In a stream: the region of nodes whose round has not come yet. It never grows; growing regions
/// are matched with it until the round comes.
const FUTURE: u32 = 1;
/// In a stream: the region of nodes whose round has been forgotten. It never takes part: it counts as
/// shrinking.
const PAST: u32 = 2;
/// The first region of defects.
const FIRST: u32 = 3;
/// As a partner: the boundary.
const BOUNDARY: u32 = u32::MAX - 1;

/// A path between two defects, or a defect and the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The defect's node on this side.
    a: u32,
    /// The defect's node on the other side; [`NONE`] at the boundary.
    b: u32,
    /// Observables that the path flips.
    observables: u64,
}

const NO_LINK: Link = Link { a: NONE, b: NONE, observables: 0 };

impl Link {
    const fn reversed(self) -> Self {
        Self { a: self.b, b: self.a, observables: self.observables }
    }
}

/// What is known of a node beside the outermost region around it.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The defect from which it was reached.
    source: u32,
    /// Local radius less the radius of the outermost region.
    wrapped: i64,
    /// Observables on the way from `source`.
    observables: u64,
    /// The node reached before it by the same region.
    below: u32,
    /// A defect's own region; [`BOUNDARY`] at a node that stands for it.
    own: u32,
}

const EMPTY: Node = Node { source: NONE, wrapped: 0, observables: 0, below: NONE, own: NONE };
const _: () = assert!(size_of::<Node>() == 32, "two nodes in a cache line");

/// A radius over time: `at_zero + slope * time`.
#[derive(Debug, Clone, Copy)]
struct Radius {
    at_zero: i64,
    slope: i64,
}

const STILL: Radius = Radius { at_zero: 0, slope: 0 };

impl Radius {
    #[inline]
    const fn at(self, time: i64) -> i64 {
        self.at_zero + self.slope * time
    }
}

/// What a region is part of; its radius lies apart.
#[derive(Debug, Clone, Copy)]
struct Region {
    /// The blossom around it.
    parent: u32,
    /// A blossom's first region; [`NONE`] for a defect.
    child: u32,
    /// The next region in the cycle of the blossom around it.
    next: u32,
    /// The node it reached last.
    shell: u32,
    /// The outer region of its tree node; [`NONE`] outside of trees.
    tree: u32,
    /// Outside of trees: the region matched with it, [`FUTURE`], or [`BOUNDARY`].
    partner: u32,
    /// To the next region in the cycle.
    next_link: Link,
    partner_link: Link,
}

const LONE: Region = Region {
    parent: NONE,
    child: NONE,
    next: NONE,
    shell: NONE,
    tree: NONE,
    partner: NONE,
    next_link: NO_LINK,
    partner_link: NO_LINK,
};

/// A tree node: an outer region, which gives it its index, and the inner region above it.
#[derive(Debug, Clone, Copy)]
struct TreeNode {
    /// [`NONE`] at the root.
    inner: u32,
    parent: u32,
    child: u32,
    /// Among the children of `parent`.
    before: u32,
    after: u32,
    /// Marks the path to the root while the lowest common node of two paths is found.
    mark: u32,
    /// From the inner to the outer region.
    inner_link: Link,
    /// From the parent's outer region to the inner one.
    parent_link: Link,
}

const ROOT: TreeNode = TreeNode {
    inner: NONE,
    parent: NONE,
    child: NONE,
    before: NONE,
    after: NONE,
    mark: 0,
    inner_link: NO_LINK,
    parent_link: NO_LINK,
};

/// Why a search ended without a matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// This defect's node has no partner.
    Unmatched(u32),
    /// More events than any search needs.
    Declined,
}

/// One search's memory.
#[derive(Debug)]
pub(crate) struct Search {
    /// The outermost region around each node. Apart from the rest, because most of what a look reads
    /// is nodes that no region has reached: those of a few rounds fit the nearest cache.
    tops: Vec<u32>,
    nodes: Vec<Node>,
    radii: Vec<Radius>,
    regions: Vec<Region>,
    trees: Vec<TreeNode>,
    queue: EventQueue,
    /// For each node the half-edge of its queued event.
    due: Vec<u32>,
    /// Nodes to reset, each once.
    touched: Vec<u32>,
    /// Regions to visit; scratch.
    stack: Vec<u32>,
    /// The defect at which each region of `stack` is matched; scratch.
    contacts: Vec<u32>,
    /// In a stream: regions that were matched with [`FUTURE`]; some have other partners since.
    waiting: Vec<u32>,
    /// Regions in use: the first so many.
    region_count: u32,
    /// The first free region below `region_count`, linked by `next`.
    free: u32,
    /// Trees whose root has no partner.
    tree_count: u32,
    mark: u32,
    /// Index of the first region's queue item.
    region_items: u32,
}

impl Search {
    /// A search over up to `nodes` nodes.
    pub(crate) fn new(nodes: usize) -> Self {
        let regions = nodes + nodes / 2 + 1 + FIRST as usize;
        let mut search = Self {
            tops: vec![NOBODY; nodes + 1],
            nodes: vec![EMPTY; nodes + 1],
            radii: vec![STILL; regions],
            regions: vec![LONE; regions],
            trees: vec![ROOT; regions],
            queue: EventQueue::new(nodes + 1 + regions),
            due: vec![NONE; nodes + 1],
            touched: Vec::with_capacity(nodes + 1),
            stack: Vec::with_capacity(regions),
            contacts: Vec::with_capacity(regions),
            waiting: Vec::new(),
            region_count: FIRST,
            free: NONE,
            tree_count: 0,
            mark: 0,
            region_items: nodes as u32 + 1,
        };
        search.radii[PAST as usize].slope = -1;
        search.nodes[nodes].own = BOUNDARY;
        search
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.radii.capacity() * size_of::<Radius>()
            + self.regions.capacity() * size_of::<Region>()
            + self.trees.capacity() * size_of::<TreeNode>()
            + self.queue.bytes()
            + 4 * (self.tops.capacity() + self.due.capacity() + self.touched.capacity() + self.stack.capacity())
            + 4 * (self.contacts.capacity() + self.waiting.capacity())
    }

    /// Forgets the last shot, in time proportional to what it touched.
    pub(crate) fn reset(&mut self) {
        for &node in &self.touched {
            self.tops[node as usize] = NOBODY;
            self.nodes[node as usize] = EMPTY;
        }
        self.touched.clear();
        self.queue.clear();
        self.region_count = FIRST;
        self.free = NONE;
        self.tree_count = 0;
        self.mark = 0;
    }

    /// Adds a defect at `node`, which has none yet.
    pub(crate) fn add_defect(&mut self, node: u32) {
        let region = self.new_region();
        self.regions[region as usize] = Region { shell: node, tree: region, ..LONE };
        self.radii[region as usize] = Radius { at_zero: -self.queue.now(), slope: 1 };
        self.trees[region as usize] = ROOT;
        self.tops[node as usize] = region;
        self.nodes[node as usize] = Node { source: node, own: region, ..EMPTY };
        self.touched.push(node);
        self.tree_count += 1;
    }

    /// Whether it has no defects.
    pub(crate) const fn is_empty(&self) -> bool {
        self.tree_count == 0
    }

    fn new_region(&mut self) -> u32 {
        if self.free != NONE {
            let region = self.free;
            self.free = self.regions[region as usize].next;
            return region;
        }
        self.region_count += 1;
        self.region_count - 1
    }

    /// Matches all defects.
    ///
    /// # Errors
    ///
    /// [`Failure`]; the search must then be reset.
    pub(crate) fn run(&mut self, over: Adjacency<'_>) -> Result<(), Failure> {
        self.start(over);
        self.grow(over)
    }

    /// Grows until all trees have ended.
    fn grow(&mut self, over: Adjacency<'_>) -> Result<(), Failure> {
        let size = over.starts.len() + over.halves.len();
        let mut events_left = (size as u64 + 64).saturating_mul(64 * (1 + self.touched.len() as u64));
        while self.tree_count > 0 {
            if events_left == 0 {
                return Err(Failure::Declined);
            }
            events_left -= 1;
            let Some(item) = self.queue.pop() else {
                return Err(Failure::Unmatched(self.unmatched()));
            };
            if item < self.region_items {
                self.node_event(over, item);
            } else {
                self.region_event(over, item - self.region_items);
            }
        }
        Ok(())
    }

    /// A defect whose tree was not matched: one of a root's.
    fn unmatched(&self) -> u32 {
        let is_root = |(&top, state): (&u32, &Node)| {
            let tree = self.regions[top as usize].tree;
            state.own != NONE && tree == top && self.trees[tree as usize].inner == NONE
        };
        self.tops.iter().zip(&self.nodes).position(is_root).map_or(NONE, |node| node as u32)
    }
}

#[cfg(test)]
mod tests;
