//! The begin of a search: new defects that are each other's nearest are matched before time moves.
//!
//! Called once by each search. Radii that overlap nowhere are as good a begin as none, whatever the
//! order in which they grew: the search ends in a lightest matching all the same. So a new defect is
//! grown alone up to its first event, and a pair up to the one that both have first. No neighbour can
//! be met before: it would have been the first event. What such a region would meet later is told by
//! the other side's events, which come no later than with both growing. At d = 5 and p = 0.005 this
//! matches 84 % of the defects of whole shots, and 75 % where five rounds are added at a time.

use super::grow::NEVER;
use super::{BOUNDARY, FUTURE, Link, NONE, Radius, Search};
use crate::graph::Adjacency;

impl Search {
    /// Looks from all new defects, then matches what can be matched at once.
    pub(super) fn start(&mut self, over: Adjacency<'_>) {
        for index in 0..self.touched.len() {
            self.look(over, self.touched[index]);
        }
        for index in 0..self.touched.len() {
            self.match_nearest(over, self.touched[index]);
        }
    }

    /// Matches the new defect at `node` if its first event is with the boundary, the future, or
    /// another defect whose region has reached no other node and has its first event then, too.
    fn match_nearest(&mut self, over: Adjacency<'_>, node: u32) {
        let (region, time) = (self.tops[node as usize], self.queue.time(node));
        if self.regions[region as usize].tree == NONE || time == NEVER {
            return;
        }
        let half = self.due[node as usize] as usize;
        let to = over.other(node, over.halves[half]);
        let other = self.tops[to as usize];
        let link = Link { a: node, b: NONE, observables: over.observables.get(half).copied().unwrap_or(0) };
        if self.nodes[to as usize].own == BOUNDARY {
            self.stand(node, time, BOUNDARY, link);
        } else if other == FUTURE {
            self.waiting.push(region);
            self.stand(node, time, FUTURE, link);
        } else if self.is_alone(to) && self.queue.time(to) == time {
            let link = Link { b: to, ..link };
            self.stand(node, time, other, link);
            self.stand(to, time, region, link.reversed());
        }
    }

    /// Whether the region at `node` is one that grows and has reached no other node.
    fn is_alone(&self, node: u32) -> bool {
        let region = self.tops[node as usize] as usize;
        self.nodes[node as usize].own == region as u32
            && self.regions[region].shell == node
            && self.radii[region].slope > 0
    }

    /// Has the region at `node`, which has reached no other, grow until `time` and stand still,
    /// matched with `partner`.
    fn stand(&mut self, node: u32, time: i64, partner: u32, link: Link) {
        let region = self.tops[node as usize];
        let radius = &mut self.radii[region as usize];
        *radius = Radius { at_zero: radius.at(time), slope: 0 };
        self.regions[region as usize].tree = NONE;
        self.set_partner(region, partner, link);
        self.queue.remove(node);
        self.tree_count -= 1;
    }
}
