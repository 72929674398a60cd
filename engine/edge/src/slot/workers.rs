//! Device workers: state words, mailboxes, doorbells, ready flags and the idle mask of one silo.
//!
//! Owns the words; dispatch, device and poll each have an end of their own. Bounds: 1..=64 workers, one bit each.
//! Edges: see [`super`]'s table.
//!
//! ```text
//!          start (dispatch)         settle (poll)            release (poll or decoder)
//!   FREE ──────────────────▶ RUNNING ───────────▶ CLAIMED ───────────────────────────▶ FREE
//!                              │ deadline (poll, by way of CLAIMED), unknown launch (dispatch)
//!                              ▼
//!                         QUARANTINED ── late completion (poll, by way of CLAIMED) or recovery (dispatch) ──▶ FREE
//! ```
//! An arrow that two parties may want is a CAS on the word `generation << 2 | state`: one of them wins.
//!
//! # Why poll claims before it reads tags
//! Between a deadline and its quarantine, dispatch may abort or recover the worker and start the next launch. Tags read
//! before the word is won could then be the next launch's; tags read after it was quarantined could be too. CLAIMED
//! belongs to its winner alone, so tags are plain data, read only there.
//!
//! # Why the ready word carries the generation
//! With a bare flag and the generation beside it, poll could claim the flag of a launch that a recovery then retires,
//! and read the generation of the next one without an edge to its outputs. One word is claimed, or is not.

use super::{Ticket, WORKERS_MAX};
use crate::slot::jobs::Job;
use crate::sync::{AtomicU64, DataWord, Ordering, Span, edge};
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

/// Low bits of the ready word `generation << 2 | flag`; 0 when nothing is there.
const READY: u64 = 1;
const TAKEN: u64 = 2;
const FLAG_BITS: u64 = 3;

/// Two lines that host and device write in turn.
#[derive(Debug)]
#[repr(align(128))]
struct Worker {
    word: AtomicU64,
    /// Host-only tags of the launch in progress: written while FREE, read while CLAIMED.
    job: DataWord,
    slot: DataWord,
    slot_generation: DataWord,
    /// An atomic, because poll reads it before it owns the word.
    started: AtomicU64,
    /// Mailbox: what the device reads.
    address: DataWord,
    mailbox_job: DataWord,
    doorbell: AtomicU64,
    ready: AtomicU64,
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
        job: DataWord::new(0),
        slot: DataWord::new(0),
        slot_generation: DataWord::new(0),
        started: AtomicU64::new(0),
        address: DataWord::new(0),
        mailbox_job: DataWord::new(0),
        doorbell: AtomicU64::new(0),
        ready: AtomicU64::new(0),
    };
    let bank = Arc::new(WorkerBank { idle: AtomicU64::new(all), all, workers: (0..workers).map(worker).collect() });
    (
        DispatchWorkers { bank: Arc::clone(&bank) },
        DeviceWorkers { bank: Arc::clone(&bank), seen: vec![0; workers].into() },
        PollWorkers { bank: Arc::clone(&bank), claimed: vec![0; workers].into() },
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

/// Addresses of what a device reads and writes of one worker: 64-bit words of this process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceWords {
    /// Mailbox: payload address.
    pub address: u64,
    /// Mailbox: job number.
    pub job: u64,
    /// Acquire side of S3: the generation, stored last.
    pub doorbell: u64,
    /// Release side of S4, at system scope: `generation << 2 | 1`, stored last.
    pub ready: u64,
}

impl WorkerBank {
    /// Where all workers' words lie.
    #[must_use]
    pub fn span(&self) -> Span {
        Span::of(&self.workers)
    }

    /// What a device that is no thread needs of worker `w`. Its side of S3 and S4 is its own program's.
    #[must_use]
    pub fn device_words(&self, w: usize) -> DeviceWords {
        let worker = &self.workers[w];
        DeviceWords {
            address: std::ptr::from_ref(&worker.address).addr() as u64,
            job: std::ptr::from_ref(&worker.mailbox_job).addr() as u64,
            doorbell: std::ptr::from_ref(&worker.doorbell).addr() as u64,
            ready: std::ptr::from_ref(&worker.ready).addr() as u64,
        }
    }

    /// The generation that worker `w`'s doorbell shows: what a device that begins anew has to pass over.
    #[must_use]
    pub fn rung(&self, w: usize) -> u64 {
        self.workers[w].doorbell.load(Ordering::Relaxed)
    }

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
        self.workers[w].job.load() as u32
    }

    /// Slot of the launch last started on worker `w`, for display.
    #[must_use]
    pub fn slot_of(&self, w: usize) -> u32 {
        self.workers[w].slot.load() as u32
    }

    /// Rings the doorbell of worker `w`: the launch itself, for a device that polls.
    pub fn ring(&self, w: usize, generation: u64) {
        // ORDERING: release side of S3, publishing the mailbox. Relaxed could show the doorbell before the address.
        // Model: loom_worker::device_reads_its_own_mail.
        self.workers[w].doorbell.store(generation, edge("S3.release", Ordering::Release));
    }

    /// Publishes that generation `generation` of worker `w` is done; all outputs are written.
    pub fn complete(&self, w: usize, generation: u64) {
        // ORDERING: release side of S4, publishing the outputs (on a real device: system scope). Relaxed could show
        // ready before the outputs. Model: loom_worker::poll_reads_whole_outputs.
        self.workers[w].ready.store(generation << 2 | READY, edge("S4.release", Ordering::Release));
    }

    /// Frees worker `w` whose output of `generation` was taken (`Claimed`), by poll or, with `AfterDecode`, by the
    /// decoder. A worker that is not in that state is left alone.
    pub fn release(&self, w: usize, generation: u64) {
        if self.shift(w, generation, State::Claimed, State::Free, Ordering::Relaxed) {
            self.offer(w, generation);
        }
    }

    /// Sets the idle bit of a worker that this thread has just freed.
    fn offer(&self, w: usize, generation: u64) {
        // Not a plain store: after a recovery the device may have stored the ready word of a newer launch.
        let (taken, empty) = (generation << 2 | TAKEN, generation << 2);
        let _ = self.workers[w].ready.compare_exchange(taken, empty, Ordering::Relaxed, Ordering::Relaxed);
        // ORDERING: release side of S6: FREE, and our reads of outputs and tags, come before the next launch. Relaxed
        // could let dispatch refill mailbox and tags under us. Model:
        // loom_worker::a_worker_is_reused_after_it_was_read.
        self.idle.fetch_or(1 << w, edge("S6.release", Ordering::Release));
    }

    /// Moves worker `w`'s word if generation and state are `from`'s. `won` is the ordering of the success: Relaxed
    /// where another edge already orders what the winner reads and writes (S4 a completion, S6 a release).
    fn shift(&self, w: usize, generation: u64, from: State, to: State, won: Ordering) -> bool {
        let (from, to) = (pack(generation, from), pack(generation, to));
        self.workers[w].word.compare_exchange(from, to, won, Ordering::Relaxed).is_ok()
    }

    /// Job and ticket of the launch whose worker the caller has claimed.
    fn tags(&self, w: usize) -> (Job, Ticket) {
        let worker = &self.workers[w];
        let ticket = Ticket { slot: worker.slot.load() as u32, generation: worker.slot_generation.load() };
        (Job::from_number(worker.job.load() as u32), ticket)
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
        worker.job.store(u64::from(job.number()));
        worker.slot.store(u64::from(ticket.slot));
        worker.slot_generation.store(ticket.generation);
        worker.started.store(now.0, Ordering::Relaxed);
        worker.address.store(address);
        worker.mailbox_job.store(u64::from(job.number()));
        // ORDERING: release side of W1, publishing tags and start to the deadline. Relaxed could let it answer the
        // shot of the launch before, or expire a fresh one. Models: loom_worker::a_deadline_expires_its_own_launch,
        // loom_worker::a_running_worker_shows_its_own_start.
        worker.word.store(pack(generation + 1, State::Running), edge("W1.release", Ordering::Release));
        generation + 1
    }

    /// The launch did not start: the worker is free again, and its job comes back. `None` while the deadline is about
    /// to quarantine it; then it comes back with the next recovery.
    pub fn abort(&mut self, w: usize, generation: u64) -> Option<Job> {
        // ORDERING: Relaxed for RUNNING, our own word. From QUARANTINED it is the second acquire side of W2: the
        // deadline has read the tags that the next launch overwrites. Model: loom_worker::an_abort_meets_the_deadline.
        let expired = edge("W2.abort", Ordering::Acquire);
        let freed = self.bank.shift(w, generation, State::Running, State::Free, Ordering::Relaxed)
            || self.bank.shift(w, generation, State::Quarantined, State::Free, expired);
        freed.then(|| {
            self.untake(w);
            self.bank.tags(w).0
        })
    }

    /// The launch may have started: quarantines the worker unless it has completed or expired already.
    pub fn quarantine(&mut self, w: usize, generation: u64) -> bool {
        self.bank.shift(w, generation, State::Running, State::Quarantined, Ordering::Relaxed)
    }

    /// Whether every worker is quarantined: the device is lost.
    #[must_use]
    pub fn all_quarantined(&self) -> bool {
        (0..self.bank.len()).all(|w| self.bank.state(w).1 == State::Quarantined)
    }

    /// After the device was reset (nothing of the past can write any more): frees the quarantined workers and calls
    /// `returned` with the job of each. A completion of the past that poll has not yet settled is `Stale` then, or
    /// `Late` if poll was first.
    pub fn recover(&mut self, mut returned: impl FnMut(Job)) {
        for w in 0..self.bank.len() {
            let (generation, _) = self.bank.state(w);
            // ORDERING: acquire side of W2: the deadline has read the tags that the next launch overwrites. Relaxed
            // would let our writes race with its reads. Model: loom_worker::recovery_and_late_completion_free_once.
            let won = edge("W2.acquire", Ordering::Acquire);
            if self.bank.shift(w, generation, State::Quarantined, State::Free, won) {
                returned(self.bank.tags(w).0);
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
    /// Generation of the completion last claimed, for each worker.
    claimed: Box<[u64]>,
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
        let ready = &self.bank.workers[w].ready;
        // A load first: a CAS that fails would take the line from the device each time.
        let found = ready.load(Ordering::Relaxed);
        if found & FLAG_BITS != READY {
            return false;
        }
        let generation = found >> 2;
        // ORDERING: acquire side of S4, see `WorkerBank::complete`; Relaxed on failure: a newer completion came in
        // between and is found next time.
        let won = edge("S4.acquire", Ordering::Acquire);
        let claimed = ready.compare_exchange(found, generation << 2 | TAKEN, won, Ordering::Relaxed).is_ok();
        if claimed {
            self.claimed[w] = generation;
        }
        claimed
    }

    /// Generation of the completion last claimed on worker `w`.
    #[must_use]
    pub fn claimed(&self, w: usize) -> u64 {
        self.claimed[w]
    }

    /// Judges a claimed completion. Tags are read after the worker is won.
    pub fn settle(&mut self, w: usize) -> Settled {
        let generation = self.claimed[w];
        let bank = &self.bank;
        // Relaxed wins: S4 and the mailbox's S3 before it order all that belongs to this generation. Model:
        // loom_worker::deadline_and_completion_settle_once.
        if bank.shift(w, generation, State::Running, State::Claimed, Ordering::Relaxed) {
            let (job, ticket) = bank.tags(w);
            return Settled::Job { job, ticket, generation };
        }
        if bank.shift(w, generation, State::Quarantined, State::Claimed, Ordering::Relaxed) {
            let (job, _) = bank.tags(w);
            bank.release(w, generation);
            return Settled::Late { job };
        }
        let (taken, empty) = (generation << 2 | TAKEN, generation << 2);
        let _ = bank.workers[w].ready.compare_exchange(taken, empty, Ordering::Relaxed, Ordering::Relaxed);
        Settled::Stale
    }

    /// Generation and start of the launch that runs on worker `w`, if one does.
    #[must_use]
    pub fn running(&self, w: usize) -> Option<(u64, Ticks)> {
        // ORDERING: second acquire side of W1: the start below is this launch's or a later one's. Relaxed could pair
        // a fresh launch with the start of the one before, and expire it. Model:
        // loom_worker::a_running_worker_shows_its_own_start.
        let word = self.bank.workers[w].word.load(edge("W1.view", Ordering::Acquire));
        match unpack(word) {
            (generation, State::Running) => {
                Some((generation, Ticks(self.bank.workers[w].started.load(Ordering::Relaxed))))
            }
            _ => None,
        }
    }

    /// Quarantines an overdue launch. Returns whose shot it was, unless the launch completed in between.
    pub fn quarantine(&mut self, w: usize, generation: u64) -> Option<Ticket> {
        // ORDERING: acquire side of W1, see `DispatchWorkers::start`. Model:
        // loom_worker::a_deadline_expires_its_own_launch.
        let won = edge("W1.acquire", Ordering::Acquire);
        if !self.bank.shift(w, generation, State::Running, State::Claimed, won) {
            return None;
        }
        let (_, ticket) = self.bank.tags(w);
        // A plain store, because CLAIMED is ours.
        // ORDERING: release side of W2: the tags are read before a recovery lets the next launch overwrite them.
        // Model: loom_worker::recovery_and_late_completion_free_once.
        let quarantined = pack(generation, State::Quarantined);
        self.bank.workers[w].word.store(quarantined, edge("W2.release", Ordering::Release));
        Some(ticket)
    }
}
