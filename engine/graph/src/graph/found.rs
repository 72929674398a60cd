//! Predecessors of the task that is being submitted, each once.
//!
//! Owned by the submitter; refilled for each task. Bounds: the task records, for a predecessor is a task under way.

/// A predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Predecessor {
    /// Low bits of its number.
    pub(super) task: u32,
    /// Whether the task reads what it wrote.
    pub(super) is_data: bool,
}

/// Which tasks are under way, and which of those that retired failed.
#[derive(Debug)]
pub(super) struct Live {
    /// Low bits of the number of the task that is being submitted.
    pub(super) now: u32,
    /// Tasks under way: those whose number is below `now` by at most so many.
    pub(super) under_way: u32,
    /// Low bits and outcome of those that failed and retired, oldest first.
    pub(super) failed: Vec<(u32, u32)>,
}

impl Live {
    /// Whether the task is under way.
    #[inline(always)]
    pub(super) fn holds(&self, task: u32) -> bool {
        self.now.wrapping_sub(task) <= self.under_way
    }

    /// Outcome of a task that retired: 0 unless it failed.
    #[inline(always)]
    pub(super) fn outcome(&self, task: u32) -> u32 {
        if self.failed.is_empty() {
            return 0;
        }
        let age = |(failed, _): &(u32, u32)| std::cmp::Reverse(self.now.wrapping_sub(*failed));
        let wanted = std::cmp::Reverse(self.now.wrapping_sub(task));
        self.failed.binary_search_by_key(&wanted, age).map_or(0, |at| self.failed[at].1)
    }
}

/// The set.
pub(super) struct Found {
    list: Vec<Predecessor>,
    /// Where in the list a task would stand, by its record: believed only if it stands there.
    places: Box<[u32]>,
    mask: u32,
    /// Outcome of a predecessor that failed before; 0 is none.
    pub(super) spoilt: u32,
}

/// So many are compared one by one.
const SHORT: usize = 6;

impl Found {
    /// An empty set over so many records, a power of two.
    pub(super) fn new(records: u32) -> Found {
        let places = vec![0; records as usize].into_boxed_slice();
        Found { list: Vec::with_capacity(records as usize), places, mask: records - 1, spoilt: 0 }
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.spoilt = 0;
    }

    /// Adds a task under way.
    #[inline(always)]
    pub(super) fn add(&mut self, task: u32, is_data: bool) {
        let place = if self.list.len() <= SHORT {
            self.list.iter().position(|one| one.task == task)
        } else {
            let place = self.places[(task & self.mask) as usize] as usize;
            self.list.get(place).is_some_and(|one| one.task == task).then_some(place)
        };
        match place {
            Some(place) => self.list[place].is_data |= is_data,
            None => {
                self.places[(task & self.mask) as usize] = self.list.len() as u32;
                self.list.push(Predecessor { task, is_data });
            }
        }
    }

    /// Adds whoever last touched something, if it is under way; notes that it failed, if that is to be known.
    #[inline(always)]
    pub(super) fn meet(&mut self, live: &Live, task: u32, is_data: bool) {
        if task == live.now {
            return;
        }
        if live.holds(task) {
            self.add(task, is_data);
        } else if is_data {
            let outcome = live.outcome(task);
            if outcome != 0 {
                self.spoilt = outcome;
            }
        }
    }

    #[inline(always)]
    pub(super) fn list(&self) -> &[Predecessor] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Live};

    #[test]
    fn a_predecessor_is_kept_once_however_many_there_are() {
        let mut found = Found::new(1_024);
        for round in 0..3 {
            (0..1_000).for_each(|task| found.add(task, round == 1));
        }
        assert_eq!(found.list().len(), 1_000);
        assert!(found.list().iter().all(|one| one.is_data));
    }

    #[test]
    fn tasks_under_way_are_told_from_retired_and_failed_ones_across_the_wrap() {
        let live = Live { now: 5, under_way: 8, failed: vec![(u32::MAX - 20, 7), (u32::MAX - 10, 9)] };
        assert!(live.holds(4) && live.holds(u32::MAX - 1) && !live.holds(u32::MAX - 10));
        assert_eq!([u32::MAX - 20, u32::MAX - 10, u32::MAX - 15].map(|task| live.outcome(task)), [7, 9, 0]);
    }
}
