//! Device workers: state words, mailboxes, doorbells, ready flags and the idle mask of one silo.
//!
//! Owns the words; dispatch, device and poll each have an end of their own. Bounds: 1..=64 workers, one bit each.
//! Edges: see [`super`]'s table.
//!
//! ```text
//!          start (dispatch)         settle (poll)            release (poll or decoder)
//!   FREE ──────────────────▶ RUNNING ───────────▶ CLAIMED ───────────────────────────▶ FREE
//!                              │ deadline (poll), unknown launch (dispatch)
//!                              ▼
//!                         QUARANTINED ── late completion (poll) or recovery (dispatch) ──▶ FREE
//! ```
//! Every arrow is one CAS on the word `generation << 2 | state`, so that of two parties one wins.

use super::{Ticket, WORKERS_MAX};
use crate::slot::jobs::Job;
use crate::sync::{AtomicU32, AtomicU64, DataWord, Ordering, edge};
use crate::units::Ticks;
use std::sync::Arc;

/// State of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Takes the next launch.
    Free,
    /// On the device.
    Running,
    /// Its output is being taken.
    Claimed,
    /// Not used until it returns.
    Quarantined,
}

const fn pack(generation: u64, state: State) -> u64 {
    generation << 2 | state as u64
}

const fn unpack(word: u64) -> (u64, State) {
    let state = match word & 3 {
        0 => State::Free,
        1 => State::Running,
        2 => State::Claimed,
        _ => State::Quarantined,
    };
    (word >> 2, state)
}

const READY: u32 = 1;
const TAKEN: u32 = 2;

/// Two lines that host and device write in turn.
#[derive(Debug)]
#[repr(align(128))]
struct Worker {
    word: AtomicU64,
    /// Host-only tags of the launch in progress; atomics because poll may read them while it races for the word.
    job: AtomicU64,
    slot: AtomicU64,
    slot_generation: AtomicU64,
    started: AtomicU64,
    /// Mailbox: what the device reads.
    address: DataWord,
    mailbox_job: DataWord,
    doorbell: AtomicU64,
    /// Generation that the device finished, written before `ready`.
    echo: AtomicU64,
    ready: AtomicU32,
}

/// The words of all workers.
#[derive(Debug)]
pub struct WorkerBank {
    idle: AtomicU64,
    all: u64,
    workers: Box<[Worker]>,
}

/// `workers` free workers and their ends.
///
/// # Panics
/// If `workers` is outside 1..=64: profiles are checked before.
#[must_use]
pub fn bank(workers: usize) -> (DispatchWorkers, DeviceWorkers, PollWorkers, Arc<WorkerBank>) {
    assert!((1..=WORKERS_MAX).contains(&workers), "{workers} workers outside 1..={WORKERS_MAX}");
    let all = u64::MAX >> (WORKERS_MAX - workers);
    let worker = |_| Worker {
        word: AtomicU64::new(pack(0, State::Free)),
        job: AtomicU64::new(0),
        slot: AtomicU64::new(0),
        slot_generation: AtomicU64::new(0),
        started: AtomicU64::new(0),
        address: DataWord::new(0),
        mailbox_job: DataWord::new(0),
        doorbell: AtomicU64::new(0),
        echo: AtomicU64::new(0),
        ready: AtomicU32::new(0),
    };
    let bank = Arc::new(WorkerBank { idle: AtomicU64::new(all), all, workers: (0..workers).map(worker).collect() });
    (
        DispatchWorkers { bank: Arc::clone(&bank) },
        DeviceWorkers { bank: Arc::clone(&bank), seen: vec![0; workers].into() },
        PollWorkers { bank: Arc::clone(&bank) },
        bank,
    )
}

/// What the device finds in a worker's mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Launch generation, to be echoed.
    pub generation: u64,
    /// Payload address, validated by dispatch.
    pub address: u64,
    /// Buffer for the outputs.
    pub job: u32,
}

impl WorkerBank {
    /// Number of workers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Never: a bank has at least one worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Bits of free workers.
    #[must_use]
    pub fn idle_mask(&self) -> u64 {
        self.idle.load(Ordering::Relaxed)
    }

    /// Generation and state of worker `w`, for display and conservation checks.
    #[must_use]
    pub fn state(&self, w: usize) -> (u64, State) {
        unpack(self.workers[w].word.load(Ordering::Relaxed))
    }

    /// Job of the launch last started on worker `w`, for conservation checks.
    #[must_use]
    pub fn job_of(&self, w: usize) -> u32 {
        self.workers[w].job.load(Ordering::Relaxed) as u32
    }

    /// Slot of the launch last started on worker `w`, for display.
    #[must_use]
    pub fn slot_of(&self, w: usize) -> u32 {
        self.workers[w].slot.load(Ordering::Relaxed) as u32
    }

    /// Rings the doorbell of worker `w`: the launch itself, for a device that polls.
    pub fn ring(&self, w: usize, generation: u64) {
        // ORDERING: release side of S3, publishing the mailbox. Relaxed could show the doorbell before the address.
        // Model: loom_slot::device_reads_its_own_mail.
        self.workers[w].doorbell.store(generation, edge("S3.release", Ordering::Release));
    }

    /// Publishes that generation `generation` of worker `w` is done; all outputs are written.
    pub fn complete(&self, w: usize, generation: u64) {
        self.workers[w].echo.store(generation, Ordering::Relaxed);
        // ORDERING: release side of S4, publishing outputs and echo (on a real device: system scope). Relaxed could
        // show ready before the outputs. Model: loom_slot::poll_reads_whole_outputs.
        self.workers[w].ready.store(READY, edge("S4.release", Ordering::Release));
    }

    /// Frees worker `w` whose output of `generation` was taken (`Claimed`), by poll or, with `AfterDecode`, by the
    /// decoder. A worker that is not in that state is left alone.
    pub fn release(&self, w: usize, generation: u64) {
        if self.shift(w, generation, State::Claimed, State::Free) {
            self.offer(w);
        }
    }

    fn offer(&self, w: usize) {
        let worker = &self.workers[w];
        // Not a plain store: after a recovery the device may have stored 1 for a newer launch.
        let _ = worker.ready.compare_exchange(TAKEN, 0, Ordering::Relaxed, Ordering::Relaxed);
        // ORDERING: release side of S6: our reads of outputs and tags come before the next launch writes them.
        // Relaxed could let dispatch refill the mailbox under us. Model: loom_slot::a_worker_is_reused_after_it_was_read.
        self.idle.fetch_or(1 << w, edge("S6.release", Ordering::Release));
    }

    fn shift(&self, w: usize, generation: u64, from: State, to: State) -> bool {
        // ORDERING: W1 both ways: whoever quarantines or frees a worker has read its tags before, and sees what the
        // mover before it published. Model: loom_slot::deadline_and_completion_settle_once.
        self.workers[w]
            .word
            .compare_exchange(
                pack(generation, from),
                pack(generation, to),
                edge("W1.both", Ordering::AcqRel),
                Ordering::Relaxed,
            )
            .is_ok()
    }

    fn tags(&self, w: usize) -> (Job, Ticket) {
        let worker = &self.workers[w];
        let ticket = Ticket {
            slot: worker.slot.load(Ordering::Relaxed) as u32,
            generation: worker.slot_generation.load(Ordering::Relaxed),
        };
        (Job::from_number(worker.job.load(Ordering::Relaxed) as u32), ticket)
    }
}

/// The dispatcher's end.
#[derive(Debug)]
pub struct DispatchWorkers {
    bank: Arc<WorkerBank>,
}

impl DispatchWorkers {
    /// The words.
    #[must_use]
    pub fn bank(&self) -> &Arc<WorkerBank> {
        &self.bank
    }

    /// Takes the first free worker, by bit scan.
    pub fn take_idle(&mut self) -> Option<usize> {
        // ORDERING: acquire side of S6, see `WorkerBank::offer`.
        let mask = self.bank.idle.load(edge("S6.acquire", Ordering::Acquire));
        if mask == 0 {
            return None;
        }
        let w = mask.trailing_zeros() as usize;
        // Only dispatch clears bits, so the bit is still ours to clear.
        self.bank.idle.fetch_and(!(1 << w), Ordering::Relaxed);
        Some(w)
    }

    /// Gives back a worker that was taken but not started.
    pub fn untake(&mut self, w: usize) {
        self.bank.idle.fetch_or(1 << w, Ordering::Relaxed);
    }

    /// Fills mailbox and tags of a taken worker and marks it running, before the launch. Returns the generation.
    pub fn start(&mut self, w: usize, address: u64, job: Job, ticket: Ticket, now: Ticks) -> u64 {
        let worker = &self.bank.workers[w];
        let (generation, state) = unpack(worker.word.load(Ordering::Relaxed));
        assert_eq!(state, State::Free, "worker {w} is launched only when free");
        worker.job.store(u64::from(job.number()), Ordering::Relaxed);
        worker.slot.store(u64::from(ticket.slot), Ordering::Relaxed);
        worker.slot_generation.store(ticket.generation, Ordering::Relaxed);
        worker.started.store(now.0, Ordering::Relaxed);
        worker.address.store(address);
        worker.mailbox_job.store(u64::from(job.number()));
        // ORDERING: release side of W1, publishing the tags to the deadline. Relaxed could let it read the tags of
        // the launch before and answer another shot. Model: loom_slot::deadline_and_completion_settle_once.
        worker.word.store(pack(generation + 1, State::Running), edge("W1.release", Ordering::Release));
        generation + 1
    }

    /// The launch did not start: the worker is free again. Returns its job.
    pub fn abort(&mut self, w: usize, generation: u64) -> Option<Job> {
        let (job, _) = self.bank.tags(w);
        self.bank.shift(w, generation, State::Running, State::Free).then(|| {
            self.untake(w);
            job
        })
    }

    /// The launch may have started: quarantines the worker unless it has completed already.
    pub fn quarantine(&mut self, w: usize, generation: u64) -> bool {
        self.bank.shift(w, generation, State::Running, State::Quarantined)
    }

    /// Whether every worker is quarantined: the device is lost.
    #[must_use]
    pub fn all_quarantined(&self) -> bool {
        (0..self.bank.len()).all(|w| self.bank.state(w).1 == State::Quarantined)
    }

    /// After the device was reset (nothing of the past can write any more): frees the quarantined workers and calls
    /// `returned` with the job of each.
    pub fn recover(&mut self, mut returned: impl FnMut(Job)) {
        for w in 0..self.bank.len() {
            let (generation, state) = self.bank.state(w);
            let (job, _) = self.bank.tags(w);
            if state == State::Quarantined && self.bank.shift(w, generation, State::Quarantined, State::Free) {
                returned(job);
                self.untake(w);
            }
        }
    }
}

/// The end of a device that polls its doorbells.
#[derive(Debug)]
pub struct DeviceWorkers {
    bank: Arc<WorkerBank>,
    seen: Box<[u64]>,
}

impl DeviceWorkers {
    /// Number of workers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Never: a bank has at least one worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// New mail of worker `w`, once per launch.
    pub fn rung(&mut self, w: usize) -> Option<Mail> {
        let worker = &self.bank.workers[w];
        // ORDERING: acquire side of S3, see `WorkerBank::ring`.
        let generation = worker.doorbell.load(edge("S3.acquire", Ordering::Acquire));
        if generation == self.seen[w] {
            return None;
        }
        self.seen[w] = generation;
        Some(Mail { generation, address: worker.address.load(), job: worker.mailbox_job.load() as u32 })
    }

    /// See [`WorkerBank::complete`].
    pub fn complete(&self, w: usize, generation: u64) {
        self.bank.complete(w, generation);
    }
}

/// The poller's end.
#[derive(Debug)]
pub struct PollWorkers {
    bank: Arc<WorkerBank>,
}

/// What a completion turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Settled {
    /// The output of the launch in progress. The worker is `Claimed` until [`WorkerBank::release`].
    Job {
        /// Buffer with the outputs.
        job: Job,
        /// Whose shot it is.
        ticket: Ticket,
        /// Launch generation, for the release.
        generation: u64,
    },
    /// A quarantined worker came back: it is free again, its shot was answered long ago.
    Late {
        /// Its buffer.
        job: Job,
    },
    /// Not of a launch that anybody waits for (the device was reset since).
    Stale,
}

impl PollWorkers {
    /// The words.
    #[must_use]
    pub fn bank(&self) -> &Arc<WorkerBank> {
        &self.bank
    }

    /// Bits of workers that are not free.
    #[must_use]
    pub fn busy_mask(&self) -> u64 {
        !self.bank.idle.load(Ordering::Relaxed) & self.bank.all
    }

    /// Claims worker `w`'s completion, once. The caller has checked that it has room for the job.
    pub fn claim_ready(&mut self, w: usize) -> bool {
        self.bank.workers[w]
            .ready
            // ORDERING: acquire side of S4, see `WorkerBank::complete`; Relaxed on failure, so that polling adds no
            // barrier that delays seeing the store.
            .compare_exchange(READY, TAKEN, edge("S4.acquire", Ordering::Acquire), Ordering::Relaxed)
            .is_ok()
    }

    /// Judges a claimed completion: tags and echo are read after the claim.
    pub fn settle(&mut self, w: usize) -> Settled {
        let echo = self.bank.workers[w].echo.load(Ordering::Relaxed);
        let (job, ticket) = self.bank.tags(w);
        if self.bank.shift(w, echo, State::Running, State::Claimed) {
            return Settled::Job { job, ticket, generation: echo };
        }
        if self.bank.shift(w, echo, State::Quarantined, State::Free) {
            self.bank.offer(w);
            return Settled::Late { job };
        }
        let ready = &self.bank.workers[w].ready;
        let _ = ready.compare_exchange(TAKEN, 0, Ordering::Relaxed, Ordering::Relaxed);
        Settled::Stale
    }

    /// Generation and start of the launch that runs on worker `w`, if one does.
    #[must_use]
    pub fn running(&self, w: usize) -> Option<(u64, Ticks)> {
        // ORDERING: acquire side of W1, see `DispatchWorkers::start`.
        let word = self.bank.workers[w].word.load(edge("W1.acquire", Ordering::Acquire));
        match unpack(word) {
            (generation, State::Running) => {
                Some((generation, Ticks(self.bank.workers[w].started.load(Ordering::Relaxed))))
            }
            _ => None,
        }
    }

    /// Quarantines an overdue launch. Returns whose shot it was, unless the launch completed in between.
    pub fn quarantine(&mut self, w: usize, generation: u64) -> Option<Ticket> {
        let (_, ticket) = self.bank.tags(w);
        self.bank.shift(w, generation, State::Running, State::Quarantined).then_some(ticket)
    }
}
