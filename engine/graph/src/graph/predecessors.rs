//! The predecessors of the task that is being submitted, each once.
//!
//! Owned by the submitter and refilled for each task. Bounded by the task records: a predecessor is
//! a task under way.

/// A predecessor.
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
    list: Vec<Predecessor>,
    /// For each record, where its task is in the list. Checked against the list before it is used.
    places: Box<[u32]>,
    mask: u32,
    /// Outcome of a predecessor that failed before; 0 if none did.
    pub(super) failed_outcome: u32,
}

/// Lists up to this length are searched one by one.
const SHORT: usize = 6;

impl Predecessors {
    /// An empty set for this many records, a power of two.
    pub(super) fn new(records: u32) -> Predecessors {
        let places = vec![0; records as usize].into_boxed_slice();
        Predecessors { list: Vec::with_capacity(records as usize), places, mask: records - 1, failed_outcome: 0 }
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.failed_outcome = 0;
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

    /// Adds the task that last accessed something, if it is under way; else notes whether it
    /// failed.
    #[inline(always)]
    pub(super) fn add_last_access(&mut self, window: &WindowState, task: u32, is_data: bool) {
        if task == window.now {
            return;
        }
        if window.holds(task) {
            self.add(task, is_data);
        } else if is_data {
            let outcome = window.outcome(task);
            if outcome != 0 {
                self.failed_outcome = outcome;
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
    fn open_retired_and_failed_tasks_are_distinguished_across_the_wrap() {
        let window = WindowState { now: 5, under_way: 8, failed: vec![(u32::MAX - 20, 7), (u32::MAX - 10, 9)] };
        assert!(window.holds(4) && window.holds(u32::MAX - 1) && !window.holds(u32::MAX - 10));
        assert_eq!([u32::MAX - 20, u32::MAX - 10, u32::MAX - 15].map(|task| window.outcome(task)), [7, 9, 0]);
    }
}
