//! Clusters that grow until each can be explained by itself.
//!
//! Owned by one decoder. Each defect has a ball, with a radius. A node that a ball has reached belongs
//! to it, as does the edge through which it was reached. A *cluster* is a set of defects whose balls
//! have met. One with an odd number of defects that has not reached the boundary grows: the radii of
//! its balls go up by 1 in each unit of time. All others stand still.
//!
//! # Events
//!
//! A node that is reached looks at its neighbours once. For each that is in the ball of another cluster
//! there is a [`Meeting`] from then on, due at the earliest time at which the two can meet. For those
//! that no ball has there is one item, the [`Reached`] node itself, due when the nearest of them is
//! reached. What comes due in a cluster that stands still is kept in the cluster's list, and queued
//! again if it grows on. So each edge is looked at a few times, however often its cluster stops.
//!
//! Meetings and reached nodes are numbered in the order of the shot: all that events read lies close
//! together. Memory is bounded by one meeting for each edge, one entry for each node.

use super::calendar::Calendar;
use super::lattice::{Half, Lattice};
use crate::graph::NONE;

/// A node that a ball has reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reached {
    pub(super) node: u32,
    /// The defect whose ball it is in.
    source: u32,
    /// Its distance from there along the edges through which the ball came.
    distance: i32,
    /// The first of its half-edges whose other end the ball may still reach from here.
    next: u32,
    /// The reached node before it on the way from the defect; [`NONE`] at the defect.
    pub(super) before: u32,
    /// The half-edge of that node that leads here.
    pub(super) half: u32,
}

/// An edge between two balls.
#[derive(Debug, Clone, Copy)]
struct Meeting {
    /// The reached nodes at its ends, the one whose half-edge it is first.
    ends: [u32; 2],
    /// Their defects.
    sources: [u32; 2],
    /// From defect to defect: the balls have met when their radii sum to that.
    length: i32,
    half: u32,
}

/// A defect and its ball.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defect {
    cluster: u32,
    /// Its radius less that of its cluster.
    more: i32,
    /// The next defect of the cluster.
    next: u32,
    /// Links of its ball that are left to peel.
    pub(super) links: u32,
    /// The exclusive or of their numbers: the number if one is left.
    pub(super) which: u32,
    /// Whether an odd number of defects is left to be explained here.
    pub(super) is_odd: bool,
}

/// Balls that have met.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    /// Its radius is `at_zero + slope * time`.
    at_zero: i32,
    /// 1 while it grows, or 0.
    slope: i32,
    /// Whether it has reached the boundary: it never grows again.
    is_grounded: bool,
    /// A list of its defects, and their number.
    first: u32,
    size: u32,
    /// A list of what came due while it stood still.
    parked: u32,
}

const LONE: Cluster = Cluster { at_zero: 0, slope: 1, is_grounded: false, first: NONE, size: 1, parked: NONE };

impl Cluster {
    #[inline]
    const fn radius(&self, now: i32) -> i32 {
        self.at_zero + self.slope * now
    }
}

/// An edge at which two balls met, or a ball the boundary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// The defects of the balls; the second is [`NONE`] at the boundary.
    pub(super) sources: [u32; 2],
    /// The reached nodes at its ends; the second is [`NONE`] at the boundary.
    pub(super) ends: [u32; 2],
    /// The half-edge of the first.
    pub(super) half: u32,
}

/// One decoder's clusters.
#[derive(Debug)]
pub(super) struct Growth {
    /// For each node its number among the reached, or [`NONE`].
    number: Vec<u32>,
    pub(super) reached: Vec<Reached>,
    meetings: Vec<Meeting>,
    /// Defects and their half-edges to earlier ones; scratch. One more than there are edges.
    neighbours: Vec<[u32; 2]>,
    pub(super) defects: Vec<Defect>,
    clusters: Vec<Cluster>,
    /// Items `2 * meeting + side` and, from `reached_items` on, reached nodes.
    calendar: Calendar,
    /// Where clusters met each other or the boundary: a forest of balls.
    pub(super) links: Vec<Link>,
    /// Clusters that grow.
    growing: u32,
    reached_items: u32,
    /// Whether the time has come at which balls reach nodes.
    is_reaching: bool,
}

impl Growth {
    pub(super) fn new(lattice: &Lattice) -> Self {
        let (nodes, edges) = (lattice.boundary as usize, lattice.edges as usize);
        Self {
            number: vec![NONE; nodes + 1],
            reached: Vec::with_capacity(nodes),
            meetings: Vec::with_capacity(edges),
            neighbours: vec![[0; 2]; edges + 1],
            defects: Vec::with_capacity(nodes),
            clusters: Vec::with_capacity(nodes),
            calendar: Calendar::new(2 * edges + nodes),
            links: Vec::with_capacity(nodes),
            growing: 0,
            reached_items: 2 * edges as u32,
            is_reaching: false,
        }
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        4 * self.number.capacity()
            + self.reached.capacity() * size_of::<Reached>()
            + self.meetings.capacity() * size_of::<Meeting>()
            + self.neighbours.capacity() * size_of::<[u32; 2]>()
            + self.defects.capacity() * size_of::<Defect>()
            + self.clusters.capacity() * size_of::<Cluster>()
            + self.calendar.bytes()
            + self.links.capacity() * size_of::<Link>()
    }

    /// Grows clusters around `defects`, different nodes, until none is left that must grow.
    ///
    /// # Errors
    ///
    /// A node of a cluster that has an odd number of defects and reached all nodes it can.
    pub(super) fn run(&mut self, lattice: &Lattice, defects: &[u32]) -> Result<(), u32> {
        self.begin(lattice, defects);
        // No ball reaches a node before this time. Most clusters have stopped by then.
        while self.growing > 0
            && let Some(item) = self.calendar.pop_before(lattice.shortest)
        {
            self.meeting_event(lattice, item);
        }
        self.is_reaching = true;
        for defect in 0..defects.len() as u32 {
            if self.clusters[self.defects[defect as usize].cluster as usize].slope > 0 {
                self.queue_reached(lattice, defect);
            }
        }
        while self.growing > 0 {
            let Some(item) = self.calendar.pop_before(i32::MAX) else { return Err(self.unmatched()) };
            if item < self.reached_items {
                self.meeting_event(lattice, item);
            } else {
                self.reached_event(lattice, item - self.reached_items);
            }
        }
        Ok(())
    }

    fn begin(&mut self, lattice: &Lattice, defects: &[u32]) {
        for reached in &self.reached {
            self.number[reached.node as usize] = NONE;
        }
        self.reached.clear();
        self.meetings.clear();
        self.defects.clear();
        self.clusters.clear();
        self.links.clear();
        self.calendar.clear();
        self.growing = defects.len() as u32;
        self.is_reaching = false;
        let all = 0..defects.len() as u32;
        let defect = |index| Defect { cluster: index, more: 0, next: NONE, links: 0, which: 0, is_odd: true };
        self.defects.extend(all.clone().map(defect));
        self.clusters.extend(all.clone().map(|index| Cluster { first: index, ..LONE }));
        let reached = |(source, &node): (u32, &u32)| {
            let next = lattice.starts[node as usize];
            Reached { node, source, distance: 0, next, before: NONE, half: NONE }
        };
        self.reached.extend(all.clone().zip(defects).map(reached));
        for (index, &node) in all.clone().zip(defects) {
            self.number[node as usize] = index;
        }
        self.calendar.admit_all(self.reached_items..self.reached_items + all.end);
        self.meet_neighbours(lattice);
    }

    /// Queues the meetings of defects that are neighbours. As [`Self::look`] for each of them, in two
    /// steps: whether a neighbour has fired is a draw that no branch predicts, so the first has none.
    /// Those of a part ascend, so of two neighbours the one of the higher number is the later.
    fn meet_neighbours(&mut self, lattice: &Lattice) {
        let mut count = 0;
        for (index, reached) in (0..).zip(&self.reached) {
            let (from, to) =
                (lattice.lower_starts[reached.node as usize], lattice.lower_starts[reached.node as usize + 1]);
            for &[to, half] in &lattice.lower[from as usize..to as usize] {
                self.neighbours[count] = [index, half];
                count += usize::from(self.number[to as usize] != NONE);
            }
        }
        for at in 0..count {
            let [index, half] = self.neighbours[at];
            let Half { to, length } = lattice.halves[half as usize];
            let ends = [index, self.number[to as usize]];
            // All radii are 0.
            self.queue_meeting(Meeting { ends, sources: ends, length, half }, length);
        }
    }

    /// A defect's node whose cluster grows on alone.
    fn unmatched(&self) -> u32 {
        let grows = |at: &usize| self.clusters[self.defects[*at].cluster as usize].slope > 0;
        // The first of the reached nodes are the defects.
        (0..self.defects.len()).find(grows).map_or(NONE, |at| self.reached[at].node)
    }

    /// The radius of a defect's ball.
    #[inline]
    fn radius(&self, defect: u32) -> i32 {
        let defect = &self.defects[defect as usize];
        self.clusters[defect.cluster as usize].radius(self.calendar.now()) + defect.more
    }

    /// Queues the meetings of a reached node's ball with those of nodes that were reached before it.
    #[inline]
    fn look(&mut self, lattice: &Lattice, index: u32) {
        let Reached { node, source, distance, .. } = self.reached[index as usize];
        self.calendar.admit(self.reached_items + index);
        let (from, to) = (lattice.starts[node as usize], lattice.starts[node as usize + 1]);
        for (first, halves) in (from..).step_by(64).zip(lattice.halves[from as usize..to as usize].chunks(64)) {
            let mut hits = 0u64;
            for half in halves.iter().rev() {
                // That of a node that was not reached is the largest number.
                hits = hits << 1 | u64::from(self.number[half.to as usize] < index);
            }
            while hits != 0 {
                let at = hits.trailing_zeros();
                hits &= hits - 1;
                let Half { to, length } = halves[at as usize];
                let end = self.number[to as usize];
                let Reached { source: other, distance: more, .. } = self.reached[end as usize];
                self.meet([index, end], [source, other], distance + length + more, first + at);
            }
        }
    }

    /// Queues the meeting of two balls, if they are of different clusters.
    #[inline]
    fn meet(&mut self, ends: [u32; 2], sources: [u32; 2], length: i32, half: u32) {
        let [a, b] = sources.map(|source| self.defects[source as usize].cluster);
        if a == b {
            return;
        }
        let left = length - self.radius(sources[0]) - self.radius(sources[1]);
        self.queue_meeting(Meeting { ends, sources, length, half }, left);
    }

    /// Queues a meeting at the earliest time, with `left` of its length between the balls.
    #[inline]
    fn queue_meeting(&mut self, meeting: Meeting, left: i32) {
        let item = 2 * self.meetings.len() as u32;
        self.meetings.push(meeting);
        self.calendar.admit(item + 1);
        self.calendar.push(item, (left + 1) >> 1);
    }

    /// Queues a reached node of a growing cluster for the nearest of its neighbours that no ball has.
    #[inline]
    fn queue_reached(&mut self, lattice: &Lattice, index: u32) {
        let Reached { node, source, distance, next, .. } = self.reached[index as usize];
        if next < lattice.starts[node as usize + 1] {
            let left = lattice.halves[next as usize].length + distance - self.radius(source);
            self.calendar.push(self.reached_items + index, left);
        }
    }

    /// The ball of a reached node may have come to the next neighbour.
    fn reached_event(&mut self, lattice: &Lattice, index: u32) {
        let state = self.reached[index as usize];
        let cluster = self.defects[state.source as usize].cluster;
        if self.clusters[cluster as usize].slope == 0 {
            self.park(cluster, self.reached_items + index);
            return;
        }
        let beyond = self.radius(state.source) - state.distance;
        let end = lattice.starts[state.node as usize + 1];
        for half in state.next..end {
            let Half { to: node, length } = lattice.halves[half as usize];
            if self.number[node as usize] != NONE {
                continue;
            }
            if beyond < length {
                self.reached[index as usize].next = half;
                self.calendar.push(self.reached_items + index, length - beyond);
                return;
            }
            if node == lattice.boundary {
                self.link(Link { sources: [state.source, NONE], ends: [index, NONE], half });
                self.ground(cluster);
                return;
            }
            let reached = self.reached.len() as u32;
            let (distance, next) = (state.distance + length, lattice.starts[node as usize]);
            self.number[node as usize] = reached;
            self.reached.push(Reached { node, source: state.source, distance, next, before: index, half });
            self.look(lattice, reached);
            self.queue_reached(lattice, reached);
        }
    }

    /// The two balls of a meeting may have met.
    #[inline]
    fn meeting_event(&mut self, lattice: &Lattice, item: u32) {
        let Meeting { ends, sources, length, half } = self.meetings[item as usize / 2];
        let side = item as usize % 2;
        // Its own side is that in whose cluster's list it may be.
        let (own, other) = (sources[side], sources[1 - side]);
        let (a, b) = (self.defects[own as usize].cluster, self.defects[other as usize].cluster);
        if a == b {
            return;
        }
        let left = length - self.radius(own) - self.radius(other);
        match (self.clusters[a as usize].slope > 0, self.clusters[b as usize].slope > 0) {
            (true, _) | (_, true) if left <= 0 => {
                self.link(Link { sources, ends, half });
                self.unite(lattice, a, b);
            }
            (true, true) => self.calendar.push(item, (left + 1) >> 1),
            (true, false) => {
                self.calendar.push(item, left);
                self.park(b, item ^ 1);
            }
            (false, true) => {
                if self.calendar.is_unlisted(item ^ 1) {
                    self.calendar.push(item ^ 1, left);
                }
                self.park(a, item);
            }
            (false, false) => {
                self.park(a, item);
                self.park(b, item ^ 1);
            }
        }
    }

    #[inline]
    fn link(&mut self, link: Link) {
        for end in link.sources {
            if let Some(defect) = self.defects.get_mut(end as usize) {
                defect.links += 1;
                defect.which ^= self.links.len() as u32;
            }
        }
        self.links.push(link);
    }

    /// Keeps `item` until `cluster`, which stands still, grows again; not if it never will.
    #[inline]
    fn park(&mut self, cluster: u32, item: u32) {
        let cluster = &mut self.clusters[cluster as usize];
        if !cluster.is_grounded && self.calendar.is_unlisted(item) {
            self.calendar.prepend(&mut cluster.parked, item);
        }
    }

    /// A growing cluster has come to the boundary.
    fn ground(&mut self, cluster: u32) {
        let now = self.calendar.now();
        let cluster = &mut self.clusters[cluster as usize];
        cluster.at_zero = cluster.radius(now);
        cluster.slope = 0;
        cluster.is_grounded = true;
        self.growing -= 1;
    }

    /// Makes one cluster of two, at least one of which grows.
    #[inline]
    fn unite(&mut self, lattice: &Lattice, a: u32, b: u32) {
        let now = self.calendar.now();
        let (into, from) =
            if self.clusters[a as usize].size < self.clusters[b as usize].size { (b, a) } else { (a, b) };
        let (large, small) = (self.clusters[into as usize], self.clusters[from as usize]);
        let difference = small.radius(now) - large.radius(now);
        let (mut at, mut last) = (small.first, small.first);
        while at != NONE {
            let defect = &mut self.defects[at as usize];
            defect.cluster = into;
            defect.more += difference;
            (last, at) = (at, defect.next);
        }
        self.defects[last as usize].next = large.first;
        let is_grounded = large.is_grounded || small.is_grounded;
        let slope = if is_grounded { 0 } else { large.slope ^ small.slope };
        self.growing = self.growing + slope as u32 - (large.slope + small.slope) as u32;
        self.clusters[into as usize] = Cluster {
            at_zero: large.radius(now) - slope * now,
            slope,
            is_grounded,
            first: small.first,
            size: large.size + small.size,
            parked: NONE,
        };
        if slope > 0 {
            // One of the two stood still until now; the other kept nothing.
            let (defects, parked) =
                if large.slope == 0 { (large.first, large.parked) } else { (small.first, small.parked) };
            self.resume(lattice, defects, parked);
        }
    }

    /// Queues what came due while a cluster stood still: `parked`, and its defects' own nodes, if it
    /// stood still before they were queued for the first time.
    fn resume(&mut self, lattice: &Lattice, defects: u32, mut parked: u32) {
        while let Some(item) = self.calendar.take_first(&mut parked) {
            self.calendar.push(item, 0);
        }
        let mut at = if self.is_reaching { defects } else { NONE };
        while at != NONE {
            if self.calendar.is_unlisted(self.reached_items + at) {
                self.queue_reached(lattice, at);
            }
            at = self.defects[at as usize].next;
        }
    }
}
