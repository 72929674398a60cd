//! Windows of a shot as tasks: what one leaves for the next, and how one of them is decoded.
//!
//! Owns a carry for each job buffer: the shot's rounds with what is explained so far taken away, each round at whole words.
//! A window's task reads and writes the words of its own rounds and of those that its commits reach, which are its region;
//! so the graph finds that windows which share rounds follow each other, and that those of different shots do not. Each
//! decode worker has its own [`WindowBench`]. Bounds: the jobs, and the model's rounds. Never allocates after construction.
//!
//! # Why the device stays in the path
//! Whether the rounds come one by one or all at once, predecoding looks at a detector's neighbours, some of which are
//! rounds away; the device sees the whole shot and takes microseconds. What it leaves is cut into windows here.

use super::MatcherModel;
use super::window::{WindowModel, WindowWorker};
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::{DataWords, read_words, write_words};
use std::ops::Range;
use std::sync::Arc;

/// The carries of all jobs.
pub struct Carries {
    model: Arc<WindowModel>,
    words: DataWords,
}

impl Carries {
    /// For `jobs` job buffers; `None` if `matching` decodes whole shots, or has a single window.
    #[must_use]
    pub fn of(matching: &MatcherModel, jobs: u32) -> Option<Arc<Carries>> {
        let model = Arc::clone(matching.windows()?);
        let words = DataWords::new(jobs as usize, model.carry_words().max(1));
        (model.plan().count() > 1).then(|| Arc::new(Carries { model, words }))
    }

    /// Windows of a shot.
    #[must_use]
    pub fn windows(&self) -> u32 {
        self.model.plan().count()
    }

    /// Words of a carry.
    #[must_use]
    pub fn stride_words(&self) -> u32 {
        self.words.stride_words() as u32
    }

    /// The words that window `index` reads and writes; the first one begins the shot, and writes them all.
    #[must_use]
    pub fn region(&self, index: u32) -> Range<u32> {
        match index {
            0 => 0..self.stride_words(),
            _ => {
                let words = self.model.words(index);
                words.start as u32..words.end as u32
            }
        }
    }
}

/// What one decode worker decodes windows with.
pub(super) struct WindowBench {
    worker: WindowWorker,
    carries: Arc<Carries>,
    /// The carry, where the library wants it: the words of the window at hand are of the shot at hand.
    carry: Vec<u64>,
}

impl WindowBench {
    pub(super) fn new(carries: Arc<Carries>) -> WindowBench {
        let carry = vec![0; carries.words.stride_words()];
        WindowBench { worker: WindowWorker::new(Arc::clone(&carries.model)), carry, carries }
    }

    /// A worker anew, after a panic in this one.
    pub(super) fn renew(&mut self) {
        self.worker = WindowWorker::new(Arc::clone(&self.carries.model));
    }

    pub(super) fn is_last(&self, index: u32) -> bool {
        index + 1 == self.carries.windows()
    }

    /// Begins the shot of `job` with its `syndrome`, and adds what is always flipped to `observables`.
    pub(super) fn begin(&mut self, syndrome: &[u64], observables: &mut [u64], always: &mut [u64]) {
        self.worker.begin(syndrome, &mut self.carry, always);
        observables.iter_mut().zip(always).for_each(|(word, by)| *word ^= *by);
    }

    /// Decodes window `index` of the shot of `job`, and adds what it commits to `observables`.
    pub(super) fn decode(&mut self, job: &Job, index: u32, observables: &mut [u64]) -> Result<(), ErrorCode> {
        let region = self.carries.region(index);
        let (first, end) = (region.start as usize, region.end as usize);
        let record = self.carries.words.record(job.number() as usize);
        if index > 0 {
            read_words(&record[first..end], &mut self.carry[first..end]);
        }
        self.worker.window(index, &mut self.carry, observables).map_err(|_| ErrorCode::Unmatchable)?;
        write_words(&record[first..end], &self.carry[first..end]);
        Ok(())
    }
}
