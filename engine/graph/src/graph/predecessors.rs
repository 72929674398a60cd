//! The predecessors of the task that is being submitted, each once.
//!
//! Owned by the submitter and refilled for each task. Bounded by the task records: a predecessor is
//! a task under way.

/// Age at which a failure is forgotten, so that wrapped task numbers do not find it.
pub(super) const FAILURE_AGE_MAX: u32 = 1 << 29;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Predecessor {
    /// Low bits of the task's number.
    pub(super) task: u32,
    /// Whether the successor reads what this task wrote.
    pub(super) is_data: bool,
}

/// Which tasks are under way, and which of the retired ones failed.
#[derive(Debug)]
pub(super) struct WindowState {
    /// Low bits of the number of the task that is being submitted.
    pub(super) now: u32,
    /// Number of tasks under way: those numbered just below `now`.
    pub(super) under_way: u32,
    /// Low bits and outcome of the tasks that failed and retired, oldest first.
    pub(super) failed: Vec<(u32, u32)>,
}

impl WindowState {
    /// Whether the task is under way.
    #[inline(always)]
    pub(super) fn holds(&self, task: u32) -> bool {
        self.now.wrapping_sub(task) <= self.under_way
    }

    /// Whether the task is under way and not the one that is being submitted.
    #[inline(always)]
    pub(super) fn holds_earlier(&self, task: u32) -> bool {
        self.now.wrapping_sub(task).wrapping_sub(1) < self.under_way
    }

    /// Forgets the failures that are too old.
    pub(super) fn forget_old_failures(&mut self) {
        let now = self.now;
        let is_old = |(task, _): &(u32, u32)| now.wrapping_sub(*task) > FAILURE_AGE_MAX;
        let old = self.failed.iter().take_while(|one| is_old(one)).count();
        self.failed.drain(..old);
    }

    /// Outcome of a retired task: 0 unless it failed.
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

/// The predecessors of one task.
pub(super) struct Predecessors {
    count: usize,
    /// Outcome of a predecessor that failed before; 0 if none did.
    pub(super) failed_outcome: u32,
    /// The list while it is short.
    short: [Predecessor; SHORT],
    /// The whole list once it is longer.
    long: Vec<Predecessor>,
    /// For each record, where its task is in a long list. Checked against the list before it is used.
    places: Box<[u32]>,
    mask: u32,
}

/// Lists up to this length are searched one by one.
const SHORT: usize = 6;

impl Predecessors {
    /// An empty set for this many records, a power of two.
    pub(super) fn new(records: u32) -> Predecessors {
        Predecessors {
            count: 0,
            failed_outcome: 0,
            short: [Predecessor { task: 0, is_data: false }; SHORT],
            long: Vec::with_capacity(records.max(SHORT as u32) as usize),
            places: vec![0; records as usize].into_boxed_slice(),
            mask: records - 1,
        }
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.failed_outcome = 0;
    }

    /// Adds a task under way.
    #[inline(always)]
    pub(super) fn add(&mut self, task: u32, is_data: bool) {
        if self.count >= SHORT {
            return self.add_to_long(task, is_data);
        }
        for one in &mut self.short[..self.count] {
            if one.task == task {
                one.is_data |= is_data;
                return;
            }
        }
        self.short[self.count] = Predecessor { task, is_data };
        self.count += 1;
    }

    #[cold]
    #[inline(never)]
    fn add_to_long(&mut self, task: u32, is_data: bool) {
        if self.count == SHORT {
            self.long.clear();
            self.long.extend_from_slice(&self.short);
            for (place, one) in (0..).zip(&self.short) {
                self.places[(one.task & self.mask) as usize] = place;
            }
        }
        let place = &mut self.places[(task & self.mask) as usize];
        let at = match self.long.get(*place as usize) {
            Some(one) if one.task == task => Some(*place as usize),
            // A recording finds tasks that had the same record one after the other.
            Some(one) if (one.task ^ task) & self.mask == 0 => self.long.iter().position(|one| one.task == task),
            _ => None,
        };
        if let Some(at) = at {
            self.long[at].is_data |= is_data;
        } else {
            *place = self.count as u32;
            self.long.push(Predecessor { task, is_data });
            self.count += 1;
        }
        if self.count == SHORT {
            self.short.copy_from_slice(&self.long);
        }
    }

    /// Adds the task that last accessed something, if it is under way; else notes whether it
    /// failed.
    #[inline(always)]
    pub(super) fn add_last_access(&mut self, window: &WindowState, task: u32, is_data: bool) {
        if window.holds_earlier(task) {
            self.add(task, is_data);
        } else if is_data && task != window.now && !window.failed.is_empty() {
            self.note_failed(window, task);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_failed(&mut self, window: &WindowState, task: u32) {
        let outcome = window.outcome(task);
        if outcome != 0 {
            self.failed_outcome = outcome;
        }
    }

    #[inline(always)]
    pub(super) fn list(&self) -> &[Predecessor] {
        if self.count <= SHORT { &self.short[..self.count] } else { &self.long }
    }
}

#[cfg(test)]
mod tests {
    use super::{Predecessors, WindowState};

    #[test]
    fn a_predecessor_is_kept_once_however_many_there_are() {
        let mut predecessors = Predecessors::new(1_024);
        for round in 0..3 {
            (0..1_000).for_each(|task| predecessors.add(task, round == 1));
        }
        assert_eq!(predecessors.list().len(), 1_000);
        assert!(predecessors.list().iter().all(|one| one.is_data));
    }

    #[test]
    fn a_predecessor_is_kept_once_although_another_had_its_record() {
        let mut predecessors = Predecessors::new(8);
        (0..8).for_each(|task| predecessors.add(task, false));
        for _ in 0..3 {
            [100, 108, 116].into_iter().for_each(|task| predecessors.add(task, false));
        }
        assert_eq!(predecessors.list().len(), 11);
    }

    #[test]
    fn open_retired_and_failed_tasks_are_distinguished_across_the_wrap() {
        let window = WindowState { now: 5, under_way: 8, failed: vec![(u32::MAX - 20, 7), (u32::MAX - 10, 9)] };
        assert!(window.holds(4) && window.holds(u32::MAX - 1) && !window.holds(u32::MAX - 10));
        assert_eq!([u32::MAX - 20, u32::MAX - 10, u32::MAX - 15].map(|task| window.outcome(task)), [7, 9, 0]);
    }
}
