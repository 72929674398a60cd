//! Job buffers: one shot's device outputs and origin, from launch to the end of its decode.
//!
//! Owns the buffers and the queue of free ones. A buffer belongs to whoever holds its [`Job`]; it passes from dispatch
//! through the mailbox to the device, from poll through the ready queue to a decoder, and back. Bounds: slots + spares
//! buffers, spares = workers + decoders, so that quarantined launches and expired decodes can each hold one beyond
//! their slot's reuse. Never allocates after construction. Edges: S3, S4 and the queues' F1, F2 order every access; the
//! marks of held buffers are relaxed, because each is changed by atomic swaps alone.

use super::Ticket;
use super::word::ErrorCode;
use crate::queue::fifo::Fifo;
use crate::sync::{AtomicU64, DataWord, DataWords, Ordering, Span};
use crate::units::Ticks;

const META_WORDS: usize = 10;

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
    free: Fifo<u32>,
    /// 1 while a buffer is held. The queue alone would not notice a second return: its capacity is rounded up.
    held: Box<[AtomicU64]>,
    meta: DataWords,
    detectors: DataWords,
    observables: DataWords,
}

impl JobBank {
    /// `jobs` free buffers.
    ///
    /// # Panics
    /// If `jobs` is 0 or above 2²⁴.
    #[must_use]
    pub fn new(jobs: usize, detector_words: usize, observable_words: usize) -> JobBank {
        let free = Fifo::new(jobs);
        for number in 0..jobs as u32 {
            assert!(free.push(number).is_ok(), "the free queue holds every job");
        }
        JobBank {
            free,
            held: (0..jobs).map(|_| AtomicU64::new(0)).collect(),
            meta: DataWords::new(jobs, META_WORDS),
            detectors: DataWords::new(jobs, detector_words),
            observables: DataWords::new(jobs, observable_words),
        }
    }

    /// A free buffer, or `None` while all are held.
    pub fn take(&self) -> Option<Job> {
        let number = self.free.pop()?;
        assert_eq!(self.held[number as usize].swap(1, Ordering::Relaxed), 0, "job {number} is free but held");
        Some(Job(number))
    }

    /// Returns a buffer.
    ///
    /// # Panics
    /// If the buffer is not held: it was returned twice.
    pub fn give(&self, job: Job) {
        assert_eq!(self.held[job.0 as usize].swap(0, Ordering::Relaxed), 1, "job {} returned twice", job.0);
        assert!(self.free.push(job.0).is_ok(), "the free queue holds every job");
    }

    /// Residual detector words, as the predecoder left them.
    #[must_use]
    pub fn detectors(&self, job: &Job) -> &[DataWord] {
        self.detectors.record(job.0 as usize)
    }

    /// Observable words that the predecoder already flipped.
    #[must_use]
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
        self.held.len()
    }

    /// Never: there is at least one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Writes the job's origin; called by poll (or dispatch on the CPU path) before it enters the ready queue.
    pub fn set_origin(&self, job: &Job, origin: &Origin) {
        let meta = self.meta.record(job.0 as usize);
        meta[0].store(u64::from(origin.ticket.slot));
        meta[1].store(origin.ticket.generation);
        meta[2].store(origin.completed.0);
        meta[3].store(origin.worker.map_or(0, |(worker, _)| u64::from(worker) + 1));
        meta[4].store(origin.worker.map_or(0, |(_, generation)| generation));
        meta[5].store(u64::from(origin.raw) | u64::from(origin.by_rounds) << 1);
    }

    /// Whose shot it is; written by dispatch, which alone still knows it without the slot, before the launch.
    pub fn set_shot(&self, job: &Job, stream: u32, sequence: u64) {
        let meta = self.meta.record(job.0 as usize);
        meta[6].store(u64::from(stream));
        meta[7].store(sequence);
    }

    /// Stream and sequence number of the job's shot.
    #[must_use]
    pub fn shot(&self, job: &Job) -> (u32, u64) {
        let meta = self.meta.record(job.0 as usize);
        (meta[6].load() as u32, meta[7].load())
    }

    /// What a decode came to, and when it began; its observables are the job's. For whoever commits it later.
    pub fn set_decoded(&self, job: &Job, result: Result<(), ErrorCode>, began: Ticks) {
        let meta = self.meta.record(job.0 as usize);
        meta[8].store(result.err().map_or(0, |code| code as u64));
        meta[9].store(began.0);
    }

    /// As [`JobBank::set_decoded`] left it.
    pub fn decoded(&self, job: &Job) -> (Result<(), ErrorCode>, Ticks) {
        let meta = self.meta.record(job.0 as usize);
        let code = ErrorCode::from_number(meta[8].load() as u16);
        (code.map_or(Ok(()), Err), Ticks(meta[9].load()))
    }

    /// The job's origin.
    #[must_use]
    pub fn origin(&self, job: &Job) -> Origin {
        let meta = self.meta.record(job.0 as usize);
        let worker = meta[3].load();
        Origin {
            ticket: Ticket { slot: meta[0].load() as u32, generation: meta[1].load() },
            completed: Ticks(meta[2].load()),
            worker: (worker > 0).then(|| ((worker - 1) as u8, meta[4].load())),
            raw: meta[5].load() & 1 != 0,
            by_rounds: meta[5].load() & 2 != 0,
        }
    }

    /// Free buffers now.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.free.depth()
    }
}
