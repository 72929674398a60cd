//! Windows of a shot as tasks: what one leaves for the next, and how one of them is decoded.
//!
//! Owns a carry for each job buffer: the shot's rounds with what is explained so far taken away, each round at whole words.
//! A window's task reads and writes the words of its own rounds and of those that its commits reach, which are its region;
//! so the graph finds that windows which share rounds follow each other, and that those of different shots do not. Each
//! decode worker has its own [`WindowBench`]. Bounds: the jobs, and the model's rounds. Never allocates after construction.
//!
//! # Why the device sees whole shots only
//! Predecoding looks at a detector's neighbours, some of which are rounds away. A shot that comes whole passes the device,
//! which sees all of it and takes microseconds; what it leaves is cut into windows here. Of a shot that comes by rounds
//! the neighbours are still to come, and a launch for each window would take longer than its match: such a shot goes
//! straight to the graph, and each of its windows is predecoded by the worker that matches it.

use super::MatcherModel;
use super::window::{WindowModel, WindowWorker};
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::{DataWord, DataWords, read_words, write_words};
use std::ops::Range;
use std::sync::Arc;

/// The carries of all jobs.
pub struct Carries {
    model: Arc<WindowModel>,
    words: DataWords,
}

impl Carries {
    /// For `jobs` job buffers; `None` if `matching` decodes whole shots, or has a single window whose rounds are not waited
    /// for.
    #[must_use]
    pub fn of(matching: &MatcherModel, jobs: u32, by_rounds: bool) -> Option<Arc<Carries>> {
        let model = Arc::clone(matching.windows()?);
        let words = DataWords::new(jobs as usize, model.carry_words().max(1));
        (model.plan().count() > 1 || by_rounds).then(|| Arc::new(Carries { model, words }))
    }

    /// Windows of a shot.
    #[must_use]
    pub fn windows(&self) -> u32 {
        self.model.plan().count()
    }

    /// Leading words of a shot that comes by rounds which window `index` needs.
    #[must_use]
    pub fn needed_words(&self, index: u32) -> u32 {
        self.model.needed_words(index)
    }

    /// Leading whole words of a shot that are there after each of its rounds.
    #[must_use]
    pub fn words_after_rounds(&self) -> Vec<u32> {
        self.model.words_after_rounds()
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

    /// Begins a shot that comes by rounds, and adds what is always flipped to `observables`.
    pub(super) fn begin_by_rounds(&mut self, observables: &mut [u64], always: &mut [u64]) {
        self.worker.begin_by_rounds(&mut self.carry, always);
        observables.iter_mut().zip(always).for_each(|(word, by)| *word ^= *by);
    }

    /// Decodes window `index` of the shot of `job`, and adds what it commits to `observables`. `payload`: the shot's own
    /// words, if it comes by rounds; those that the window needs are there. Returns the detection events that
    /// predecoding has explained.
    pub(super) fn decode(
        &mut self,
        job: &Job,
        index: u32,
        payload: Option<&[DataWord]>,
        observables: &mut [u64],
    ) -> Result<u32, ErrorCode> {
        let region = self.carries.region(index);
        let (first, end) = (region.start as usize, region.end as usize);
        let record = self.carries.words.record(job.number() as usize);
        if index > 0 {
            read_words(&record[first..end], &mut self.carry[first..end]);
        }
        let decoded = match payload {
            Some(payload) => {
                self.worker.take_rounds(index, |word| payload[word as usize].load(), &mut self.carry);
                self.worker.window_predecoded(index, &mut self.carry, observables)
            }
            None => self.worker.window(index, &mut self.carry, observables).map(|_| 0),
        };
        let explained = decoded.map_err(|_| ErrorCode::Unmatchable)?;
        write_words(&record[first..end], &self.carry[first..end]);
        Ok(explained)
    }
}
