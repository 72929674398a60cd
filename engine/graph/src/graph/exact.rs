//! The seed's tensor map (seed 002 §2.2): the last writer of exactly a region. Finds reads after
//! writes only.
//!
//! Owns a ring of entries in submission order, chained by hash, newest first. Only the submitter
//! uses it. Bounded by [`Config::map_entries`](super::Config::map_entries). A submission is refused
//! before it changes anything if the ring is full of tasks under way.
//!
//! # Why
//! Entries retire with their tasks, in ring order. The first retired entry of a chain ends it,
//! because all entries behind it are older. No entry is removed from the middle, so clean-up cannot
//! remove a newer writer's entry.

use super::predecessors::{Predecessors, WindowState};
use super::region::{Access, Mode, Tile};

#[derive(Clone, Copy)]
struct Entry {
    region: Tile,
    task: u32,
    /// Position of the next older entry of the chain, if that is in use.
    older: u32,
}

/// The map.
pub(super) struct Exact {
    heads: Box<[u32]>,
    ring: Box<[Entry]>,
    /// Positions of the newest and the oldest entry. They wrap; their difference never exceeds the
    /// ring.
    newest: u32,
    oldest: u32,
    /// Regions last written by a task that failed and retired.
    failed_regions: Vec<(Tile, u32)>,
    spoilt_max: usize,
}

impl Exact {
    pub(super) fn new(entries: u32, failures: u32) -> Exact {
        let size = entries.next_power_of_two() as usize;
        let entry = Entry { region: Tile::default(), task: 0, older: 0 };
        Exact {
            heads: vec![0; size].into_boxed_slice(),
            ring: vec![entry; size].into_boxed_slice(),
            newest: 1,
            oldest: 1,
            failed_regions: Vec::with_capacity(failures as usize),
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
    fn bucket(&self, region: &Tile) -> usize {
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
        let mut at = Some(self.heads[bucket]);
        std::iter::from_fn(move || {
            let position = at.filter(|at| (1..=in_use).contains(&age(*at)))?;
            let entry = &self.ring[position as usize & (self.ring.len() - 1)];
            at = Some(entry.older).filter(|older| age(*older) > age(position));
            Some((position, entry))
        })
    }

    /// Frees the entries of retired tasks. If a task failed and its region was not written since,
    /// the region is remembered. Returns false if one finds no room.
    pub(super) fn retire(&mut self, window: &WindowState) -> bool {
        let mut has_room = true;
        while self.oldest != self.newest {
            let entry = self.ring[self.oldest as usize & (self.ring.len() - 1)];
            if window.holds(entry.task) {
                break;
            }
            let outcome = window.outcome(entry.task);
            if outcome != 0 {
                let newest = self.find(&entry.region).map(|(position, _)| position);
                if newest == Some(self.oldest) {
                    self.forget_failure(&entry.region);
                    if self.failed_regions.len() < self.spoilt_max {
                        self.failed_regions.push((entry.region, outcome));
                    } else {
                        has_room = false;
                    }
                }
            }
            self.oldest = self.oldest.wrapping_add(1);
        }
        has_room
    }

    fn find(&self, region: &Tile) -> Option<(u32, u32)> {
        let mut chain = self.chain(self.bucket(region));
        chain.find(|(_, entry)| entry.region == *region).map(|(position, entry)| (position, entry.task))
    }

    fn forget_failure(&mut self, region: &Tile) {
        self.failed_regions.retain(|(failed_regions, _)| failed_regions != region);
    }

    /// Whether there is a free entry for each region that is written.
    #[inline(always)]
    pub(super) fn has_room(&self, accesses: &[Access]) -> bool {
        let free = self.ring.len() - self.in_use() as usize;
        accesses.len() <= free || accesses.iter().filter(|access| access.mode != Mode::In).count() <= free
    }

    /// Finds the last writers of the regions that task `window.now` reads, and enters the regions
    /// that it writes.
    #[inline(always)]
    pub(super) fn infer(&mut self, accesses: &[Access], window: &WindowState, predecessors: &mut Predecessors) {
        for access in accesses.iter().filter(|access| access.mode != Mode::Out) {
            match self.find(&access.region.tile) {
                Some((_, task)) => predecessors.add_last_access(window, task, true),
                None if self.failed_regions.is_empty() => {}
                None => {
                    if let Some((_, outcome)) =
                        self.failed_regions.iter().find(|(region, _)| *region == access.region.tile)
                    {
                        predecessors.failed_outcome = *outcome;
                    }
                }
            }
        }
        for access in accesses.iter().filter(|access| access.mode != Mode::In) {
            let bucket = self.bucket(&access.region.tile);
            if !self.failed_regions.is_empty() {
                self.forget_failure(&access.region.tile);
            }
            let older = self.heads[bucket];
            let index = self.newest as usize & (self.ring.len() - 1);
            self.ring[index] = Entry { region: access.region.tile, task: window.now, older };
            self.heads[bucket] = self.newest;
            self.newest = self.newest.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exact, Predecessors, WindowState};
    use crate::graph::region::{Region, Tile};

    #[test]
    fn a_full_ring_finds_all_its_entries_across_the_wrap_of_their_positions() {
        let mut map = Exact::new(16, 1);
        (map.newest, map.oldest) = (u32::MAX - 8, u32::MAX - 8);
        let mut window = WindowState { now: 1, under_way: 16, failed: Vec::new() };
        let mut predecessors = Predecessors::new(32);
        let region = |row| Region { tile: Tile { row, ..Tile::default() }, ..Region::default() };
        for row in 0..16 {
            assert!(map.has_room(&[region(row).write()]));
            map.infer(&[region(row).write()], &window, &mut predecessors);
            window.now += 1;
        }
        assert_eq!((map.in_use(), map.has_room(&[region(0).write()])), (16, false));
        for row in 0..16 {
            predecessors.clear();
            map.infer(&[region(row).read()], &window, &mut predecessors);
            assert_eq!(predecessors.list().iter().map(|one| one.task).collect::<Vec<_>>(), [row + 1], "row {row}");
        }
    }
}
