//! Job buffers: one shot's device outputs and origin, from launch to the end of its decode.
//!
//! Owns the buffers ([`JobBank`]), the free ones ([`FreeJobs`], dispatch alone takes) and the ways
//! back ([`JobReturn`], one for each other role that returns jobs). A buffer belongs to whoever
//! holds its [`Job`]; it passes from dispatch through the mailbox to the device, from poll to the
//! graph role and a decoder, and back. Bounds: slots + spares buffers, spares = workers + decoders,
//! so that quarantined launches and expired decodes can each hold one beyond their slot's reuse.
//! Never allocates after construction. Edges: S3, S4 and the rings' R1, R2 order every access.
//!
//! # Why the newest free buffer is taken first
//! Its lines are still in a cache. A queue would go round all buffers. So dispatch collects what was
//! returned before each batch, not only when it has no other.

use super::Ticket;
use super::word::ErrorCode;
use crate::ring::spsc::{Consumer, Producer, channel};
use crate::sync::{DataWord, DataWords, Span};
use crate::units::Ticks;

/// A line: stream and sequence number (dispatch); slot, worker and flags, ticket, completion and
/// the worker's generation (poll); error and begin of a decode (the graph role).
const META_WORDS: usize = 8;
const RAW: u64 = 1 << 62;
const BY_ROUNDS: u64 = 1 << 63;

/// The right to one buffer. Not `Clone`: it is in one place at a time.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a job that is dropped is a buffer lost"]
pub struct Job(u32);

impl Job {
    /// Number, for the mailbox.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0
    }

    /// The job with `number`, handed over by whoever held it (mailbox, queue).
    pub fn from_number(number: u32) -> Job {
        Job(number)
    }
}

/// Where a job's shot came from and how far it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whose answer it becomes.
    pub ticket: Ticket,
    /// Output claimed by poll (or copied by dispatch on the CPU path).
    pub completed: Ticks,
    /// Worker to release after the decode (`AfterDecode`), with its generation.
    pub worker: Option<(u8, u64)>,
    /// The detectors are the raw syndrome: the decoder predecodes first (CPU path).
    pub raw: bool,
    /// The detectors are not here: they come by rounds, into the slot's payload.
    pub by_rounds: bool,
}

/// All job buffers of a silo.
pub struct JobBank {
    meta: DataWords,
    detectors: DataWords,
    observables: DataWords,
}

/// The free buffers, in dispatch's hands.
pub struct FreeJobs {
    free: Vec<u32>,
    /// By number: whether the buffer is held. A second return would otherwise go unnoticed.
    held: Box<[bool]>,
    returns: Box<[Consumer<u32>]>,
    taken: u64,
}

/// A role's way to return buffers.
pub struct JobReturn(Producer<u32>);

impl FreeJobs {
    /// `jobs` free buffers, and the ways back of `RETURNERS` roles.
    ///
    /// # Panics
    /// If `jobs` is 0 or above 2²⁴.
    #[must_use]
    pub fn new<const RETURNERS: usize>(jobs: usize) -> (FreeJobs, [JobReturn; RETURNERS]) {
        let mut returns = Vec::with_capacity(RETURNERS);
        let ends = std::array::from_fn(|_| {
            let (gives, takes) = channel(jobs);
            returns.push(takes);
            JobReturn(gives)
        });
        let free = (0..jobs as u32).rev().collect();
        (FreeJobs { free, held: vec![false; jobs].into(), returns: returns.into(), taken: 0 }, ends)
    }

    /// A free buffer, or `None` while all are held.
    #[inline]
    pub fn take(&mut self) -> Option<Job> {
        if self.free.is_empty() {
            self.collect();
        }
        let number = self.free.pop()?;
        self.held[number as usize] = true;
        self.taken += 1;
        Some(Job(number))
    }

    /// Returns a buffer.
    ///
    /// # Panics
    /// If the buffer is not held: it was returned twice.
    pub fn give(&mut self, job: Job) {
        free(&mut self.held, job.0);
        self.free.push(job.0);
        self.taken -= 1;
    }

    /// Buffers ever taken, without those that came back by [`FreeJobs::give`].
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes back what other roles have returned. Call it before a batch of shots.
    #[inline]
    pub fn collect(&mut self) {
        let FreeJobs { free: stack, held, returns, .. } = self;
        for ring in returns {
            while let Some(number) = ring.pop() {
                free(held, number);
                stack.push(number);
            }
        }
    }

    /// Free buffers now, with those that were returned.
    #[must_use]
    pub fn count(&mut self) -> usize {
        self.collect();
        self.free.len()
    }
}

fn free(held: &mut [bool], number: u32) {
    assert!(std::mem::take(&mut held[number as usize]), "job {number} returned twice");
}

impl JobReturn {
    /// Returns a buffer.
    ///
    /// # Panics
    /// If the ring is full: it has room for every buffer, so one was returned twice.
    #[inline]
    pub fn give(&mut self, job: Job) {
        assert!(self.0.push(job.0).is_ok(), "job {} returned twice", job.0);
    }
}

impl JobBank {
    /// `jobs` buffers.
    #[must_use]
    pub fn new(jobs: usize, detector_words: usize, observable_words: usize) -> JobBank {
        JobBank {
            meta: DataWords::new(jobs, META_WORDS),
            detectors: DataWords::in_pages(jobs, detector_words),
            observables: DataWords::in_pages(jobs, observable_words),
        }
    }

    /// Residual detector words, as the predecoder left them.
    #[must_use]
    #[inline]
    pub fn detectors(&self, job: &Job) -> &[DataWord] {
        self.detectors.record(job.0 as usize)
    }

    /// Observable words that the predecoder already flipped.
    #[must_use]
    #[inline]
    pub fn observables(&self, job: &Job) -> &[DataWord] {
        self.observables.record(job.0 as usize)
    }

    /// Where the residual detectors of all buffers lie, one after the other.
    #[must_use]
    pub fn detectors_span(&self) -> Span {
        self.detectors.span()
    }

    /// Where the observables of all buffers lie, one after the other.
    #[must_use]
    pub fn observables_span(&self) -> Span {
        self.observables.span()
    }

    /// How many buffers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.meta.all().len() / META_WORDS
    }

    /// Never: there is at least one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the job's origin; called by poll (or dispatch on the CPU path) before it enters the
    /// ready queue.
    #[inline(always)]
    pub fn set_origin(&self, job: &Job, origin: &Origin) {
        let meta = self.meta.record(job.0 as usize);
        let worker = origin.worker.map_or(0, |(worker, _)| u64::from(worker) + 1);
        let flags = if origin.raw { RAW } else { 0 } | if origin.by_rounds { BY_ROUNDS } else { 0 };
        meta[2].store(u64::from(origin.ticket.slot) | worker << 32 | flags);
        meta[3].store(origin.ticket.generation);
        meta[4].store(origin.completed.0);
        meta[5].store(origin.worker.map_or(0, |(_, generation)| generation));
    }

    /// Whose shot it is; written by dispatch, which alone still knows it without the slot, before
    /// the launch.
    #[inline(always)]
    pub fn set_shot(&self, job: &Job, stream: u32, sequence: u64) {
        let meta = self.meta.record(job.0 as usize);
        meta[0].store(u64::from(stream));
        meta[1].store(sequence);
    }

    /// Stream and sequence number of the job's shot.
    #[must_use]
    #[inline(always)]
    pub fn shot(&self, job: &Job) -> (u32, u64) {
        let meta = self.meta.record(job.0 as usize);
        (meta[0].load() as u32, meta[1].load())
    }

    /// What a decode came to (what decoded it, or an error), and when it began; its observables are
    /// the job's. For whoever commits it later.
    pub fn set_decoded(&self, job: &Job, result: Result<u32, ErrorCode>, began: Ticks) {
        let meta = self.meta.record(job.0 as usize);
        meta[6].store(result.map_or_else(|code| code as u64, |by| u64::from(by) << 16));
        meta[7].store(began.0);
    }

    /// As [`JobBank::set_decoded`] left it.
    pub fn decoded(&self, job: &Job) -> (Result<u32, ErrorCode>, Ticks) {
        let meta = self.meta.record(job.0 as usize);
        let packed = meta[6].load();
        let code = ErrorCode::from_number(packed as u16);
        (code.map_or(Ok((packed >> 16) as u32), Err), Ticks(meta[7].load()))
    }

    /// The job's origin.
    #[must_use]
    #[inline(always)]
    pub fn origin(&self, job: &Job) -> Origin {
        let meta = self.meta.record(job.0 as usize);
        let packed = meta[2].load();
        let worker = packed >> 32 & 0xff;
        Origin {
            ticket: Ticket { slot: packed as u32, generation: meta[3].load() },
            completed: Ticks(meta[4].load()),
            worker: (worker > 0).then(|| ((worker - 1) as u8, meta[5].load())),
            raw: packed & RAW != 0,
            by_rounds: packed & BY_ROUNDS != 0,
        }
    }
}
