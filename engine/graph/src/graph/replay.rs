//! A recorded graph: submitted once, run many times.
//!
//! Owns the tasks of one recording, their successors in one array, and the counters that each round
//! uses and resets. The submitter writes it when a recording ends. After that only counters and
//! outcomes change, by the thread that runs a task. Bounded by
//! [`Config::recorded_tasks`](super::Config::recorded_tasks). A round submits nothing: it starts
//! the tasks without predecessors, and the others follow.

use super::predecessors::Predecessor;
use super::task::Task;
use pinwheel_edge::queue::countdown::Countdown;
use pinwheel_edge::queue::fanout::PAYLOAD;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Tasks without predecessors that are started at once.
const CHUNK: u32 = 64;

/// Identifies a finished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingId(pub(super) u16);

#[derive(Clone, Copy)]
struct Node {
    words: [u64; PAYLOAD],
    first_successor: u32,
    successors: u32,
    predecessors: u32,
}

/// The recorded graph.
pub(super) struct Recording {
    nodes: Box<[Node]>,
    /// Successors: index, shifted by one, and whether it reads what the predecessor wrote.
    successors: Box<[u32]>,
    roots: Box<[u32]>,
    waits: Countdown,
    /// Tasks of the round that are not yet counted as ended.
    left: Countdown,
    /// Roots started so far. Only the holder of the item that grants it changes it.
    handed_out: AtomicU32,
    outcomes: Box<[AtomicU32]>,
    /// The number of the task that stands for the round.
    round: AtomicU64,
}

impl Recording {
    #[inline]
    pub(super) fn task(&self, index: usize) -> Task {
        Task::of_words(self.nodes[index].words)
    }

    pub(super) fn tasks(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub(super) fn edges(&self) -> u32 {
        self.successors.len() as u32
    }

    /// Begins a round. Pushing the item that grants the roots publishes it.
    pub(super) fn begin(&self, round: u64) {
        self.handed_out.store(0, Ordering::Relaxed);
        self.left.arm(0, self.tasks());
        self.round.store(round, Ordering::Relaxed);
    }

    /// The number of the task that stands for the round.
    #[inline]
    pub(super) fn round(&self) -> u64 {
        self.round.load(Ordering::Relaxed)
    }

    /// The next roots, and whether more remain.
    #[inline]
    pub(super) fn hand_out(&self) -> (&[u32], bool) {
        let from = self.handed_out.load(Ordering::Relaxed) as usize;
        let to = (from + CHUNK as usize).min(self.roots.len());
        self.handed_out.store(to as u32, Ordering::Relaxed);
        (&self.roots[from..to], to < self.roots.len())
    }

    /// Takes a task's outcome and resets its counter for the next round.
    #[inline(always)]
    pub(super) fn take_up(&self, index: usize) -> u32 {
        let node = &self.nodes[index];
        if node.predecessors > 0 {
            self.waits.arm(index, node.predecessors);
        }
        let outcome = &self.outcomes[index];
        let found = outcome.load(Ordering::Relaxed);
        if found != 0 {
            outcome.store(0, Ordering::Relaxed);
        }
        found
    }

    /// Ends a task; calls `ready` for each successor that waited for nothing else.
    #[inline(always)]
    pub(super) fn resolve(&self, index: usize, outcome: u32, mut ready: impl FnMut(u32)) {
        let node = &self.nodes[index];
        let first = node.first_successor as usize;
        for word in &self.successors[first..first + node.successors as usize] {
            let successor = word >> 1;
            if outcome != 0 && word & 1 != 0 {
                self.outcomes[successor as usize].store(outcome, Ordering::Relaxed);
            }
            if self.waits.release(successor as usize) {
                ready(successor);
            }
        }
    }

    /// Counts `ended` more tasks of the round; returns whether they were the last.
    #[inline]
    pub(super) fn count_down(&self, ended: u32) -> bool {
        self.left.release_many(0, ended)
    }
}

/// A recording that is being made.
pub(super) struct Recorder {
    /// Number of its first task.
    pub(super) first: u64,
    words: Vec<[u64; PAYLOAD]>,
    /// Predecessor's index, shifted by one with whether its result is read, and the successor's
    /// index.
    edges: Vec<(u32, u32)>,
}

impl Recorder {
    pub(super) fn new(first: u64) -> Recorder {
        Recorder { first, words: Vec::new(), edges: Vec::new() }
    }

    pub(super) fn tasks(&self) -> usize {
        self.words.len()
    }

    pub(super) fn add(&mut self, words: [u64; PAYLOAD], predecessors: &[Predecessor]) {
        let index = self.words.len() as u32;
        self.words.push(words);
        for one in predecessors {
            let predecessor = one.task.wrapping_sub(self.first as u32);
            self.edges.push((predecessor << 1 | u32::from(one.is_data), index));
        }
    }

    pub(super) fn finish(self) -> Recording {
        let count = self.words.len();
        let (mut first, mut waits) = (vec![0u32; count + 1], vec![0u32; count]);
        for (predecessor, task) in &self.edges {
            first[(predecessor >> 1) as usize + 1] += 1;
            waits[*task as usize] += 1;
        }
        for index in 0..count {
            first[index + 1] += first[index];
        }
        let (mut free, mut successors) = (first.clone(), vec![0u32; self.edges.len()]);
        for (predecessor, task) in &self.edges {
            let place = &mut free[(predecessor >> 1) as usize];
            successors[*place as usize] = task << 1 | predecessor & 1;
            *place += 1;
        }
        let node = |(index, words): (usize, [u64; PAYLOAD])| Node {
            words,
            first_successor: first[index],
            successors: first[index + 1] - first[index],
            predecessors: waits[index],
        };
        Recording {
            nodes: self.words.into_iter().enumerate().map(node).collect(),
            successors: successors.into_boxed_slice(),
            roots: (0..count as u32).filter(|index| waits[*index as usize] == 0).collect(),
            waits: Countdown::new(&waits),
            left: Countdown::new(&[0]),
            handed_out: AtomicU32::new(0),
            outcomes: (0..count).map(|_| AtomicU32::new(0)).collect(),
            round: AtomicU64::new(0),
        }
    }
}
