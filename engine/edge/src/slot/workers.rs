//! Device workers: launch words, mailboxes, doorbells, ready words and the idle mask of one silo.
//!
//! Owns the words; dispatch, device, poll and the graph role each have an end of their own. Bounds:
//! 1..=64 workers, one bit each. Edges: see [`super`]'s table.
//!
//! ```text
//!          start (dispatch)       settle (poll)         release (poll or graph role)
//!   FREE ──────────────────▶ RUNNING ──────────▶ CLAIMED ──────────────────────────▶ FREE
//!                             │    │ launch that did not start (poll)
//!                             │    └───────────────────────────────────────────────▶ FREE
//!                             │ deadline, or launch of unknown result (poll)
//!                             ▼
//!                        QUARANTINED ── late completion or recovery (poll) ────────▶ FREE
//! ```
//!
//! # Why no exchange
//! Each word has one writer, so loads and stores suffice:
//!
//! | word | writer | holds |
//! |---|---|---|
//! | launch word | dispatch | generation of the last launch, and what dispatch reports of it |
//! | judged word | poll | generation that poll judged last, and its state |
//! | ready | device | generation of the last completion |
//! | toggles, one for each party | dispatch, poll, graph role | which workers it took or freed |
//!
//! A worker runs while its launch word is newer than its judged word, and is idle where the bits of
//! all toggles together are even. Dispatch takes a worker only when it is idle, and from then on
//! until poll has judged the launch nobody but poll can end it. A deadline, a completion, a launch
//! of unknown result and a recovery may meet: they all are decided on poll's thread, one after the
//! other. Dispatch, which alone knows of a failed launch or a recovery, reports it in the launch
//! word and increments the number of reports, which poll reads in each frame.
//!
//! # Why the ready word carries the generation
//! With a bare flag and the generation beside it, poll could claim the flag of a launch that a
//! recovery then retires, and read the generation of the next one without an edge to its outputs.

use super::word::ErrorCode;
use super::{Ticket, WORKERS_MAX};
use crate::aligned::{Aligned, LINE_BYTES, PAGE_BYTES};
use crate::slot::jobs::Job;
use crate::sync::{AtomicU64, DataWord, Ordering, Padded, Span, edge};
use crate::units::Ticks;
use std::sync::Arc;

/// A worker's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum WorkerState {
    /// Takes the next launch.
    Free,
    /// On the device.
    Running,
    /// Finished; its output is being copied (or, with `AfterDecode`, decoded).
    Claimed,
    /// Overdue, or launched with an unknown result; unused until the launch completes.
    Quarantined,
}

/// A judged word: `generation << 2 | state`.
const fn pack(generation: u64, state: WorkerState) -> u64 {
    generation << 2 | state as u64
}

/// The generation and the state of a judged word.
#[must_use]
pub const fn unpack(word: u64) -> (u64, WorkerState) {
    let state = match word & 3 {
        0 => WorkerState::Free,
        1 => WorkerState::Running,
        2 => WorkerState::Claimed,
        _ => WorkerState::Quarantined,
    };
    (word >> 2, state)
}

/// Why a launch failed, as its call showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It certainly does not run.
    NotStarted,
    /// It may run.
    Unknown,
    /// It may run; the device is lost.
    Lost,
}

/// What dispatch reports of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    /// Nothing: it started.
    None,
    /// As [`Failure::NotStarted`].
    NotStarted,
    /// As [`Failure::Unknown`].
    Unknown,
    /// As [`Failure::Lost`].
    Lost,
    /// The device was reset since.
    Reset,
}

/// A launch word: `generation << 3 | report`.
const fn launch_word(generation: u64, report: Report) -> u64 {
    generation << 3 | report as u64
}

const fn launch_of(word: u64) -> (u64, Report) {
    let report = match word & 7 {
        0 => Report::None,
        1 => Report::NotStarted,
        2 => Report::Unknown,
        3 => Report::Lost,
        _ => Report::Reset,
    };
    (word >> 3, report)
}

/// Low bits of the ready word `generation << 2 | flag`; 0 when nothing was ever there.
const READY: u64 = 1;
const FLAG_BITS: u64 = 3;

/// Two lines: what dispatch writes; what the device writes.
#[derive(Debug)]
#[repr(align(128))]
struct Worker {
    /// Written by dispatch alone.
    launch: AtomicU64,
    /// Host-only tags of the launch in progress: written while FREE, read by poll until it has
    /// judged the launch.
    job: DataWord,
    slot: DataWord,
    slot_generation: DataWord,
    started: DataWord,
    /// Mailbox: what the device reads.
    address: DataWord,
    mailbox_job: DataWord,
    doorbell: AtomicU64,
    ready: AtomicU64,
}

/// Who takes or frees workers: an index of the toggles.
#[derive(Clone, Copy, Debug)]
enum Party {
    Dispatch,
    Poll,
    Graph,
}

/// The words of all workers.
#[derive(Debug)]
pub struct WorkerBank {
    /// One word for each [`Party`], written by that party alone: it flips a worker's bit when it
    /// takes or frees the worker.
    toggles: [Padded<AtomicU64>; 3],
    /// How often dispatch has reported anything; written by dispatch alone.
    reports: Padded<AtomicU64>,
    all: u64,
    /// By worker; written by poll alone.
    judged: Aligned<AtomicU64>,
    /// On pages of their own: a device sees them.
    workers: Aligned<Worker>,
}

/// The words of a silo's workers, and the end of each role.
#[derive(Debug)]
pub struct WorkerEnds {
    /// Takes workers and launches.
    pub dispatch: DispatchWorkers,
    /// Reads the mailboxes and completes.
    pub device: DeviceWorkers,
    /// Judges how each launch ended.
    pub poll: PollWorkers,
    /// The graph role's: frees workers after the decode.
    pub release: ReleaseEnd,
    /// The words.
    pub words: Arc<WorkerBank>,
}

/// A bit for each of `workers` workers, at most 64.
#[must_use]
pub fn mask(workers: u32) -> u64 {
    u64::MAX.checked_shr(64 - workers.min(64)).unwrap_or(0)
}

/// `workers` free workers and their ends; 0 without a device.
///
/// # Panics
/// If `workers` is outside 0..=64: profiles are checked before.
#[must_use]
pub fn bank(workers: usize) -> WorkerEnds {
    assert!(workers <= WORKERS_MAX, "{workers} workers outside 0..={WORKERS_MAX}");
    let all = mask(workers as u32);
    let worker = |_| Worker {
        launch: AtomicU64::new(launch_word(0, Report::None)),
        job: DataWord::new(0),
        slot: DataWord::new(0),
        slot_generation: DataWord::new(0),
        started: DataWord::new(0),
        address: DataWord::new(0),
        mailbox_job: DataWord::new(0),
        doorbell: AtomicU64::new(0),
        ready: AtomicU64::new(0),
    };
    let bank = Arc::new(WorkerBank {
        toggles: std::array::from_fn(|_| Padded(AtomicU64::new(0))),
        reports: Padded(AtomicU64::new(0)),
        all,
        judged: Aligned::new(LINE_BYTES, (0..workers).map(|_| AtomicU64::new(pack(0, WorkerState::Free)))),
        workers: Aligned::new(PAGE_BYTES, (0..workers).map(worker)),
    });
    let release_end = |party| ReleaseEnd { bank: Arc::clone(&bank), party, toggles: 0, freed: vec![0; workers].into() };
    WorkerEnds {
        dispatch: DispatchWorkers { bank: Arc::clone(&bank), toggles: 0, taken: 0, reports: 0 },
        device: DeviceWorkers { bank: Arc::clone(&bank), seen: vec![0; workers].into() },
        poll: PollWorkers {
            bank: Arc::clone(&bank),
            release: release_end(Party::Poll),
            claimed: vec![0; workers].into(),
            reports: 0,
            reported: 0,
        },
        release: release_end(Party::Graph),
        words: bank,
    }
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

/// Addresses of what a device reads and writes of one worker: 64-bit words of this process's
/// memory.
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

    /// What a device that is no thread needs of worker `w`. Its side of S3 and S4 is its own
    /// program's.
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

    /// The generation that worker `w`'s doorbell shows: what a device that begins anew has to pass
    /// over.
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
        let toggles = self.toggles.iter().map(|word| word.0.load(Ordering::Relaxed));
        !toggles.fold(0, |one, other| one ^ other) & self.all
    }

    /// Generation and state of worker `w`, for display and conservation checks. Between its taking
    /// and its start, a worker shows the state that it was freed from.
    #[must_use]
    pub fn state(&self, w: usize) -> (u64, WorkerState) {
        let (launched, _) = self.launched(w, Ordering::Relaxed);
        let (judged, state) = self.judged(w);
        match state {
            _ if self.idle_mask() >> w & 1 == 1 => (launched, WorkerState::Free),
            _ if judged < launched => (launched, WorkerState::Running),
            state => (judged, state),
        }
    }

    /// Slot of the launch last started on worker `w`, for display.
    #[must_use]
    pub fn slot_of(&self, w: usize) -> u32 {
        self.workers[w].slot.load() as u32
    }

    /// Rings the doorbell of worker `w`: the launch itself, for a device that polls.
    pub fn ring(&self, w: usize, generation: u64) {
        // ORDERING: release side of S3, publishing the mailbox. Relaxed could show the doorbell
        // before the address. Model: loom_worker::device_reads_its_own_mail.
        self.workers[w].doorbell.store(generation, edge("S3.release", Ordering::Release));
    }

    /// Publishes that generation `generation` of worker `w` is done; all outputs are written.
    pub fn complete(&self, w: usize, generation: u64) {
        // ORDERING: release side of S4, publishing the outputs (on a real device: system scope).
        // Relaxed could show ready before the outputs. Model:
        // loom_worker::poll_reads_whole_outputs.
        self.workers[w].ready.store(generation << 2 | READY, edge("S4.release", Ordering::Release));
    }

    /// Generation of the last launch on worker `w`, and what dispatch reports of it.
    fn launched(&self, w: usize, ordering: Ordering) -> (u64, Report) {
        launch_of(self.workers[w].launch.load(ordering))
    }

    /// The generation of worker `w` that poll judged last, and its state. Relaxed: nobody but poll
    /// reads anything by it.
    #[inline]
    fn judged(&self, w: usize) -> (u64, WorkerState) {
        unpack(self.judged[w].load(Ordering::Relaxed))
    }

    /// Job and ticket of the last launch on worker `w`, for poll alone, which judges it.
    #[inline]
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
    /// What its word of the toggles holds.
    toggles: u64,
    /// Workers taken and not started.
    taken: u64,
    /// What the number of reports is.
    reports: u64,
}

impl DispatchWorkers {
    /// The words of all workers, which the ends share.
    #[must_use]
    pub fn bank(&self) -> &Arc<WorkerBank> {
        &self.bank
    }

    /// Takes the first free worker, by bit scan.
    pub fn take_idle(&mut self) -> Option<usize> {
        // Poll and the graph role are read one after the other. That is enough: since dispatch took
        // a worker, one of them flips its bit, once.
        let freed = [Party::Poll, Party::Graph].map(|party| {
            // ORDERING: acquire side of S6, see `ReleaseEnd::release`.
            self.bank.toggles[party as usize].0.load(edge("S6.acquire", Ordering::Acquire))
        });
        let mask = !(self.toggles ^ freed[0] ^ freed[1]) & self.bank.all;
        if mask == 0 {
            return None;
        }
        let w = mask.trailing_zeros() as usize;
        self.taken |= 1 << w;
        self.toggle(w);
        Some(w)
    }

    /// Gives back a worker that was taken but not started.
    ///
    /// # Panics
    /// If it was not taken, or was started.
    pub fn untake(&mut self, w: usize) {
        assert!(self.taken >> w & 1 == 1, "worker {w} is given back only when it was taken and not started");
        self.taken &= !(1 << w);
        self.toggle(w);
    }

    /// Flips the bit of worker `w`. Relaxed: it publishes nothing; for poll it is a hint where to
    /// look.
    fn toggle(&mut self, w: usize) {
        self.toggles ^= 1 << w;
        self.bank.toggles[Party::Dispatch as usize].0.store(self.toggles, Ordering::Relaxed);
    }

    /// Fills mailbox and tags of a taken worker and marks it running, before the launch. Returns
    /// the generation.
    ///
    /// # Panics
    /// If the worker was not taken, or was started since.
    #[inline]
    pub fn start(&mut self, w: usize, address: u64, job: Job, ticket: Ticket, now: Ticks) -> u64 {
        assert!(self.taken >> w & 1 == 1, "worker {w} is launched only when it was taken");
        self.taken &= !(1 << w);
        let worker = &self.bank.workers[w];
        let (generation, _) = self.bank.launched(w, Ordering::Relaxed);
        worker.job.store(u64::from(job.number()));
        worker.slot.store(u64::from(ticket.slot));
        worker.slot_generation.store(ticket.generation);
        worker.started.store(now.0);
        worker.address.store(address);
        worker.mailbox_job.store(u64::from(job.number()));
        self.publish(w, launch_word(generation + 1, Report::None));
        generation + 1
    }

    fn publish(&self, w: usize, launch: u64) {
        // ORDERING: release side of W1, publishing tags and start to the deadline and to whoever
        // resolves a report. Relaxed could let poll answer the shot of the launch before, or expire
        // a fresh one. Models: loom_worker::a_deadline_expires_its_own_launch,
        // loom_worker::a_running_worker_shows_its_own_start.
        self.bank.workers[w].launch.store(launch, edge("W1.release", Ordering::Release));
    }

    /// Reports that the last launch on worker `w` failed. Poll then frees the worker, if the launch
    /// did not start, or quarantines it, unless it has completed or expired: see
    /// [`PollWorkers::resolve`].
    pub fn fail(&mut self, w: usize, failure: Failure) {
        let report = match failure {
            Failure::NotStarted => Report::NotStarted,
            Failure::Unknown => Report::Unknown,
            Failure::Lost => Report::Lost,
        };
        self.report(w, report);
        self.publish_reports();
    }

    /// `publish_reports` follows.
    fn report(&self, w: usize, report: Report) {
        let (generation, _) = self.bank.launched(w, Ordering::Relaxed);
        self.publish(w, launch_word(generation, report));
    }

    fn publish_reports(&mut self) {
        self.reports += 1;
        // ORDERING: release side of W2, publishing the launch words before it. Relaxed could show
        // poll a launch word from before its report, and the worker would never come back. Model:
        // loom_worker::a_report_is_not_lost.
        self.bank.reports.0.store(self.reports, edge("W2.release", Ordering::Release));
    }

    /// Whether worker `w` is quarantined and no report of this end frees it.
    fn is_quarantined(&self, w: usize) -> bool {
        let (generation, report) = self.bank.launched(w, Ordering::Relaxed);
        let stays = !matches!(report, Report::NotStarted | Report::Reset);
        stays && self.bank.judged(w) == (generation, WorkerState::Quarantined)
    }

    /// Whether every worker is quarantined: the device is lost.
    #[must_use]
    pub fn all_quarantined(&self) -> bool {
        (0..self.bank.len()).all(|w| self.is_quarantined(w))
    }

    /// After the device was reset (nothing of the past can write any more): has poll free the
    /// quarantined workers. A completion of the past that poll claims later is `Stale`, or `Late`
    /// if it was first.
    pub fn recover(&mut self) {
        for w in 0..self.bank.len() {
            if self.is_quarantined(w) {
                self.report(w, Report::Reset);
            }
        }
        self.publish_reports();
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

    /// Says that launch `generation` of worker `w` has ended: see [`WorkerBank::complete`].
    pub fn complete(&self, w: usize, generation: u64) {
        self.bank.complete(w, generation);
    }
}

/// Frees workers whose output was taken. Poll and the graph role have one each, so that each of
/// their words of the toggles has one writer.
#[derive(Debug)]
pub struct ReleaseEnd {
    bank: Arc<WorkerBank>,
    party: Party,
    /// What the party's word of the toggles holds.
    toggles: u64,
    /// By worker: the generation freed last.
    freed: Box<[u64]>,
}

impl ReleaseEnd {
    /// Frees worker `w`, whose output of `generation` was taken. Does nothing if this end has
    /// freed that generation or a later one. The generation must come from [`Settled::Job`], and
    /// one end alone frees it.
    pub fn release(&mut self, w: usize, generation: u64) {
        if generation <= self.freed[w] {
            return;
        }
        self.freed[w] = generation;
        self.toggles ^= 1 << w;
        // ORDERING: release side of S6: our reads of outputs and tags come before the next launch.
        // Relaxed could let dispatch refill mailbox and tags under us. Models:
        // loom_worker::a_worker_is_reused_after_it_was_read,
        // loom_worker::the_graph_role_frees_a_worker_after_it_read_its_job.
        self.bank.toggles[self.party as usize].0.store(self.toggles, edge("S6.release", Ordering::Release));
    }
}

/// The poller's end.
#[derive(Debug)]
pub struct PollWorkers {
    bank: Arc<WorkerBank>,
    release: ReleaseEnd,
    /// Generation of the completion last claimed, for each worker.
    claimed: Box<[u64]>,
    /// How many reports of dispatch it has seen.
    reports: u64,
    /// Workers with a report still to be resolved.
    reported: u64,
}

/// What a completion turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Settled {
    /// The output of the launch in progress. The worker is `Claimed` until it is released, by
    /// [`PollWorkers::release`] or the graph role's [`ReleaseEnd`].
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
        /// Buffer that the worker held all the while.
        job: Job,
    },
    /// Not of a launch that anybody waits for (the device was reset since).
    Stale,
}

/// What followed from a report of dispatch.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The launch may have run: the worker is quarantined, its shot is to be answered.
    Quarantined {
        /// Whose shot it is.
        ticket: Ticket,
        /// What the answer says.
        code: ErrorCode,
    },
    /// The launch did not start, or the device was reset: the worker is free.
    Freed {
        /// Buffer that the worker held.
        job: Job,
    },
    /// Nothing: the launch has ended since.
    Nothing,
}

impl PollWorkers {
    /// The words of all workers, which the ends share.
    #[must_use]
    pub fn bank(&self) -> &Arc<WorkerBank> {
        &self.bank
    }

    /// Bits of workers that are not free. The toggles are read one after the other, so a bit may
    /// show what was true shortly before.
    #[must_use]
    pub fn busy_mask(&self) -> u64 {
        !self.bank.idle_mask() & self.bank.all
    }

    /// Claims worker `w`'s completion, once. The caller has checked that it has room for the job.
    #[inline]
    pub fn claim_ready(&mut self, w: usize) -> bool {
        // ORDERING: acquire side of S4, see `WorkerBank::complete`. No exchange: poll alone claims,
        // and as generations only grow, one that was not claimed last is new.
        let found = self.bank.workers[w].ready.load(edge("S4.acquire", Ordering::Acquire));
        let is_new = found & FLAG_BITS == READY && found >> 2 != self.claimed[w];
        if is_new {
            self.claimed[w] = found >> 2;
        }
        is_new
    }

    /// Generation of the completion last claimed on worker `w`.
    #[must_use]
    pub fn claimed(&self, w: usize) -> u64 {
        self.claimed[w]
    }

    /// Judges a claimed completion.
    #[inline]
    pub fn settle(&mut self, w: usize) -> Settled {
        let generation = self.claimed[w];
        // Relaxed: S4, and the mailbox's S3 before it, order all that belongs to this generation.
        let (launched, _) = self.bank.launched(w, Ordering::Relaxed);
        match self.bank.judged(w) {
            _ if launched != generation => Settled::Stale,
            (judged, _) if judged < generation => {
                self.judge(w, generation, WorkerState::Claimed);
                let (job, ticket) = self.bank.tags(w);
                Settled::Job { job, ticket, generation }
            }
            (_, WorkerState::Quarantined) => Settled::Late { job: self.free(w, generation) },
            _ => Settled::Stale,
        }
    }

    /// Frees worker `w`, whose output of `generation` was taken (`AfterCopy`). A worker that is not
    /// `Claimed` with that generation is left alone.
    pub fn release(&mut self, w: usize, generation: u64) {
        if self.bank.judged(w) == (generation, WorkerState::Claimed) {
            self.release.release(w, generation);
        }
    }

    /// Generation and start of the launch that runs on worker `w`, if one does.
    #[must_use]
    pub fn running(&self, w: usize) -> Option<(u64, Ticks)> {
        let generation = self.in_progress(w)?;
        Some((generation, Ticks(self.bank.workers[w].started.load())))
    }

    /// Quarantines an overdue launch. Returns whose shot it was, unless the launch has ended.
    pub fn quarantine(&mut self, w: usize, generation: u64) -> Option<Ticket> {
        if self.in_progress(w) != Some(generation) {
            return None;
        }
        self.judge(w, generation, WorkerState::Quarantined);
        Some(self.bank.tags(w).1)
    }

    /// Bits of workers with a report of dispatch from which something follows: each is to be
    /// resolved.
    pub fn reported(&mut self) -> u64 {
        // ORDERING: acquire side of W2, see `DispatchWorkers::publish_reports`.
        let reports = self.bank.reports.0.load(edge("W2.acquire", Ordering::Acquire));
        if reports != self.reports {
            self.reports = reports;
            let due = (0..self.bank.len()).filter(|w| self.due(*w).is_some());
            self.reported |= due.map(|w| 1 << w).sum::<u64>();
        }
        self.reported
    }

    /// Does what follows from the report on worker `w`. The caller has checked that it has room for
    /// an answer.
    pub fn resolve(&mut self, w: usize) -> Resolved {
        self.reported &= !(1 << w);
        match self.due(w) {
            Some((generation, report @ (Report::Unknown | Report::Lost))) => {
                self.judge(w, generation, WorkerState::Quarantined);
                let is_lost = report == Report::Lost;
                let code = if is_lost { ErrorCode::DeviceLost } else { ErrorCode::LaunchUnknown };
                Resolved::Quarantined { ticket: self.bank.tags(w).1, code }
            }
            Some((generation, _)) => Resolved::Freed { job: self.free(w, generation) },
            None => Resolved::Nothing,
        }
    }

    /// The report on the last launch of worker `w`, while something is to follow from it.
    fn due(&self, w: usize) -> Option<(u64, Report)> {
        let (generation, report) = self.launched(w);
        let (judged, state) = self.bank.judged(w);
        let (runs, is_quarantined) = (judged < generation, judged == generation && state == WorkerState::Quarantined);
        let is_due = match report {
            Report::None => false,
            Report::NotStarted => runs || is_quarantined,
            Report::Unknown | Report::Lost => runs,
            Report::Reset => is_quarantined,
        };
        is_due.then_some((generation, report))
    }

    /// Generation of the launch on worker `w` that is not judged yet.
    fn in_progress(&self, w: usize) -> Option<u64> {
        let (generation, _) = self.launched(w);
        (self.bank.judged(w).0 < generation).then_some(generation)
    }

    /// Generation of the last launch on worker `w`, and what dispatch reports of it.
    fn launched(&self, w: usize) -> (u64, Report) {
        // ORDERING: acquire side of W1, see `DispatchWorkers::publish`: tags and start are this
        // launch's. They stay so until poll has judged it, because only then is the worker free.
        self.bank.launched(w, edge("W1.acquire", Ordering::Acquire))
    }

    /// Relaxed: nobody but poll reads anything by it.
    fn judge(&mut self, w: usize, generation: u64, state: WorkerState) {
        self.bank.judged[w].store(pack(generation, state), Ordering::Relaxed);
    }

    /// Frees a worker whose launch leaves no output, and returns its job.
    fn free(&mut self, w: usize, generation: u64) -> Job {
        let (job, _) = self.bank.tags(w);
        self.judge(w, generation, WorkerState::Free);
        self.release.release(w, generation);
        job
    }
}
