//! The matching of a finished search: pairs of defects, weight, observables.
//!
//! Called once after [`Search::run`]. Bounded by the regions.

use super::{BOUNDARY, FIRST, Link, NONE, Region, Search};

/// Two matched defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) a: u32,
    /// [`NONE`]: the boundary.
    pub(crate) b: u32,
    /// Observables on the way, if the search adds them up.
    pub(crate) observables: u64,
}

impl Search {
    /// The matching's weight: the sum of all radii.
    pub(crate) fn weight(&self) -> i64 {
        // A free region has radius 0.
        let now = self.queue.now();
        self.radii[FIRST as usize..self.region_count as usize].iter().map(|radius| radius.at(now)).sum()
    }

    /// Hands each pair to `take`.
    pub(crate) fn pairs(&mut self, mut take: impl FnMut(Pair)) {
        for region in FIRST..self.region_count {
            let state = &self.regions[region as usize];
            let partner = state.partner;
            if state.parent != NONE || state.partner == NONE {
                continue;
            }
            // Each pair once.
            if partner == BOUNDARY || region < partner {
                self.pairs_of(region, &mut take);
            }
        }
    }

    /// Hands `region`'s pair, and those inside of it and of its partner, to `take`.
    pub(super) fn pairs_of(&mut self, region: u32, take: &mut impl FnMut(Pair)) {
        let Region { partner, partner_link, .. } = self.regions[region as usize];
        self.stack.clear();
        self.pair(region, partner, partner_link, take);
        self.open_all(take);
    }

    /// Hands the pairs inside of `region`, whose defect at `contact` has no partner in it, to `take`.
    pub(super) fn open_pairs(&mut self, region: u32, contact: u32, take: &mut impl FnMut(Pair)) {
        self.stack.clear();
        if self.regions[region as usize].child != NONE {
            self.stack.push(region);
            self.contacts.push(contact);
        }
        self.open_all(take);
    }

    fn open_all(&mut self, take: &mut impl FnMut(Pair)) {
        while let (Some(region), Some(contact)) = (self.stack.pop(), self.contacts.pop()) {
            self.open(region, contact, take);
        }
    }

    /// A matched pair; what lies inside its regions is put on the stack.
    fn pair(&mut self, one: u32, other: u32, link: Link, take: &mut impl FnMut(Pair)) {
        take(Pair { a: link.a, b: link.b, observables: link.observables });
        for (region, contact) in [(one, link.a), (other, link.b)] {
            if region != BOUNDARY && self.regions[region as usize].child != NONE {
                self.stack.push(region);
                self.contacts.push(contact);
            }
        }
    }

    /// Matches the regions of a blossom whose defect at `contact` is matched outside of it.
    fn open(&mut self, blossom: u32, contact: u32, take: &mut impl FnMut(Pair)) {
        let matched = self.child_around(blossom, contact);
        if self.regions[matched as usize].child != NONE {
            self.stack.push(matched);
            self.contacts.push(contact);
        }
        let mut one = self.regions[matched as usize].next;
        while one != matched {
            let state = &self.regions[one as usize];
            let (other, link) = (state.next, state.next_link);
            self.pair(one, other, link, take);
            one = self.regions[other as usize].next;
        }
    }
}
