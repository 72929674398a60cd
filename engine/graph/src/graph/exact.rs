//! Who last wrote exactly this region: the seed's tensor map (seed 002 §2.2), read after write only.
//!
//! Owns a ring of entries in the order in which their tasks were submitted, chained by hash, newest first. Only the
//! submitter touches it. Bounds: [`Config::map_entries`](super::Config::map_entries); a submission that finds the ring
//! full of tasks under way is refused before it has changed anything.
//!
//! # Why
//! Entries retire with their tasks, in the ring's order; a chain's first retired entry ends it, for all behind are older.
//! Nothing is ever taken out of the middle, so no clean-up can erase the entry of a newer writer.

use super::found::{Found, Live};
use super::region::{Access, Mode, Region};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Entry {
    region: Region,
    task: u32,
    /// Position of the next older entry of the chain.
    older: u32,
}

/// The map.
pub(super) struct Exact {
    heads: Box<[u32]>,
    ring: Box<[Entry]>,
    /// Positions given out and given back; they wrap, their difference does not exceed the ring.
    newest: u32,
    oldest: u32,
    /// Regions last written by a task that failed and retired.
    spoilt: Vec<(Region, u32)>,
    spoilt_max: usize,
}

impl Exact {
    pub(super) fn new(entries: u32, failures: u32) -> Exact {
        let size = entries.next_power_of_two() as usize;
        let entry = Entry { region: Region::default(), task: 0, older: NONE };
        Exact {
            heads: vec![NONE; size].into_boxed_slice(),
            ring: vec![entry; size].into_boxed_slice(),
            newest: 1,
            oldest: 1,
            spoilt: Vec::with_capacity(failures as usize),
            spoilt_max: failures as usize,
        }
    }

    pub(super) fn in_use(&self) -> u32 {
        self.newest.wrapping_sub(self.oldest)
    }

    pub(super) fn entries(&self) -> u32 {
        self.ring.len() as u32
    }

    #[inline(always)]
    fn bucket(&self, region: &Region) -> usize {
        let word = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let mut hash = word(region.tensor, region.row).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = (hash.rotate_left(29) ^ word(region.column, region.rows)).wrapping_mul(0xD1B5_4A32_D192_ED03);
        hash = (hash.rotate_left(29) ^ u64::from(region.columns)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 32) as usize & (self.heads.len() - 1)
    }

    /// Entries of a chain that are in use, newest first.
    fn chain(&self, bucket: usize) -> impl Iterator<Item = (u32, &Entry)> {
        let in_use = self.in_use();
        let age = move |position: u32| self.newest.wrapping_sub(position);
        let is_used = move |position: u32| position != NONE && age(position) >= 1 && age(position) <= in_use;
        let mut at = self.heads[bucket];
        std::iter::from_fn(move || {
            let position = Some(at).filter(|at| is_used(*at))?;
            let entry = &self.ring[position as usize & (self.ring.len() - 1)];
            at = if entry.older != NONE && age(entry.older) > age(position) { entry.older } else { NONE };
            Some((position, entry))
        })
    }

    /// Gives back the entries of retired tasks. Of one that failed and whose region nobody wrote since, the region is
    /// remembered; false if there are too many of these.
    pub(super) fn retire(&mut self, live: &Live) -> bool {
        while self.oldest != self.newest {
            let entry = self.ring[self.oldest as usize & (self.ring.len() - 1)];
            if live.holds(entry.task) {
                break;
            }
            let outcome = live.outcome(entry.task);
            if outcome != 0 {
                let newest = self.find(&entry.region).map(|(position, _)| position);
                if newest == Some(self.oldest) {
                    self.forgive(&entry.region);
                    if self.spoilt.len() == self.spoilt_max {
                        return false;
                    }
                    self.spoilt.push((entry.region, outcome));
                }
            }
            self.oldest = self.oldest.wrapping_add(1);
        }
        true
    }

    fn find(&self, region: &Region) -> Option<(u32, u32)> {
        let mut chain = self.chain(self.bucket(region));
        chain.find(|(_, entry)| entry.region == *region).map(|(position, entry)| (position, entry.task))
    }

    fn forgive(&mut self, region: &Region) {
        self.spoilt.retain(|(spoilt, _)| spoilt != region);
    }

    /// Whether there is an entry for each of the regions written.
    #[inline(always)]
    pub(super) fn has_room(&self, accesses: &[Access]) -> bool {
        self.in_use() as usize + accesses.len() <= self.ring.len()
    }

    /// Finds the last writers of what task `live.now` reads, and enters what it writes.
    #[inline(always)]
    pub(super) fn infer(&mut self, accesses: &[Access], live: &Live, found: &mut Found) {
        for access in accesses.iter().filter(|access| access.mode != Mode::Out) {
            match self.find(&access.region) {
                Some((_, task)) => found.meet(live, task, true),
                None if self.spoilt.is_empty() => {}
                None => {
                    if let Some((_, outcome)) = self.spoilt.iter().find(|(region, _)| *region == access.region) {
                        found.spoilt = *outcome;
                    }
                }
            }
        }
        for access in accesses.iter().filter(|access| access.mode != Mode::In) {
            let bucket = self.bucket(&access.region);
            if !self.spoilt.is_empty() {
                self.forgive(&access.region);
            }
            let older = self.heads[bucket];
            let index = self.newest as usize & (self.ring.len() - 1);
            self.ring[index] = Entry { region: access.region, task: live.now, older };
            self.heads[bucket] = self.newest;
            self.newest = self.newest.wrapping_add(1);
            if self.newest == NONE {
                // The one number that means nobody; its slot of the ring stays empty once in 2³² entries.
                self.skip();
            }
        }
    }

    #[cold]
    fn skip(&mut self) {
        let index = self.newest as usize & (self.ring.len() - 1);
        let task = self.ring[self.newest.wrapping_sub(1) as usize & (self.ring.len() - 1)].task;
        self.ring[index] = Entry { region: Region::default(), task, older: NONE };
        self.newest = self.newest.wrapping_add(1);
    }
}
