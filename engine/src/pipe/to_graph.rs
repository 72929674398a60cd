//! What dispatch and poll send to the graph role: jobs whose output is available, and shots that
//! were answered with an error before decoding, so that their stream continues.
//!
//! Owns two rings, one of each kind; dispatch and poll have a pair each. Bounds: one entry for each
//! job, and a tombstone for each slot. Jobs always find room. A role checks for room for a tombstone
//! before it answers, and tries again later without it. Edges: the rings', R1 and R2.

use pinwheel_edge::ring::spsc::{self, Consumer, Producer};
use pinwheel_edge::slot::jobs::Job;

/// A sequence number that was answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Stream.
    pub stream: u32,
    /// Sequence number within the stream.
    pub sequence: u64,
}

/// The writing ends of a role.
pub struct ToGraph {
    jobs: Producer<u32>,
    tombstones: Producer<Tombstone>,
}

/// The graph role's reading ends.
pub struct FromPath {
    jobs: Consumer<u32>,
    tombstones: Consumer<Tombstone>,
    /// Tombstones that are to be read before any that came after them.
    due: u64,
}

impl ToGraph {
    /// Both ends of the rings, for `jobs` job buffers and `slots` slots.
    pub fn channel(jobs: usize, slots: u32) -> (ToGraph, FromPath) {
        let ((jobs, takes_jobs), (tombstones, takes)) = (spsc::channel(jobs), spsc::channel(slots as usize));
        (ToGraph { jobs, tombstones }, FromPath { jobs: takes_jobs, tombstones: takes, due: 0 })
    }

    /// Whether one more tombstone fits.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        self.tombstones.room() > 0
    }

    /// Sends a tombstone.
    ///
    /// # Panics
    /// If there is no room.
    pub(crate) fn skip(&mut self, tombstone: Tombstone) {
        assert!(self.tombstones.push(tombstone).is_ok(), "the caller checked for room before it answered");
    }

    /// Passes a job on.
    ///
    /// # Panics
    /// If the ring is full: it has room for every job, so one was passed on twice.
    pub(crate) fn pass(&mut self, job: Job) {
        assert!(self.jobs.push(job.number()).is_ok(), "the ring holds every job");
    }

    /// Jobs passed on and not taken, as the reader's cursor shows.
    pub(crate) fn depth(&self) -> u64 {
        self.jobs.depth()
    }

    /// Jobs that the ring holds.
    pub(crate) fn capacity(&self) -> u64 {
        self.jobs.capacity()
    }

    /// Jobs passed on since the start.
    pub(crate) fn passed(&self) -> u64 {
        self.jobs.pushed()
    }
}

impl FromPath {
    /// The oldest job.
    #[inline]
    pub(crate) fn job(&mut self) -> Option<Job> {
        self.jobs.pop().map(Job::from_number)
    }

    /// Makes the tombstones that wait now due.
    #[inline]
    pub(crate) fn take_stock(&mut self) {
        self.due = self.tombstones.depth();
    }

    /// Whether tombstones are due.
    #[inline]
    pub(crate) fn has_due(&self) -> bool {
        self.due > 0
    }

    /// The oldest tombstone that is due.
    #[inline]
    pub(crate) fn tombstone(&mut self) -> Option<Tombstone> {
        self.due = self.due.checked_sub(1)?;
        self.tombstones.pop()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.depth() == 0 && self.tombstones.depth() == 0
    }
}
