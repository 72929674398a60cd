//! Carries: intermediate results between the windows of a shot.
//!
//! Owns a carry for each job buffer: the shot's rounds without the events explained so far, each
//! round at whole words. A window's task reads and writes the words of its own rounds and of the
//! rounds that its commits reach. These words are its region: the graph orders windows that share
//! rounds, and lets windows of different shots run in parallel. Written by the decode worker that
//! runs a window; the graph role uses only the regions. Bounds: the jobs, and the model's rounds.
//! Never allocates after construction.

use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::sync::{DataWord, DataWords};
use std::ops::Range;

/// One window of every shot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarryWindow {
    /// Words of the carry that it reads and writes.
    pub words: Range<u32>,
    /// Leading words that it needs of a shot that arrives round by round.
    pub needed_words: u32,
}

/// The carries of all jobs.
pub struct Carries {
    windows: Box<[CarryWindow]>,
    words: DataWords,
}

impl Carries {
    /// Carries of `words` words for `jobs` job buffers, whose shots have `windows`. The first
    /// window initialises the carry: it writes all words, regardless of its own range.
    #[must_use]
    pub fn new(jobs: u32, words: usize, mut windows: Box<[CarryWindow]>) -> Carries {
        let words = DataWords::new(jobs as usize, words.max(1));
        windows.iter_mut().take(1).for_each(|first| first.words = 0..words.stride_words() as u32);
        Carries { windows, words }
    }

    /// Number of windows of a shot.
    #[must_use]
    pub fn windows(&self) -> u32 {
        self.windows.len() as u32
    }

    /// Leading words that window `index` needs of a shot that arrives round by round.
    #[must_use]
    pub fn needed_words(&self, index: u32) -> u32 {
        self.windows[index as usize].needed_words
    }

    /// Words of a carry.
    #[must_use]
    pub fn stride_words(&self) -> u32 {
        self.words.stride_words() as u32
    }

    /// The words that window `index` reads and writes; the first window writes all words.
    #[must_use]
    pub fn region(&self, index: u32) -> Range<u32> {
        self.windows[index as usize].words.clone()
    }

    /// The carry of `job`.
    #[must_use]
    pub fn record(&self, job: &Job) -> &[DataWord] {
        self.words.record(job.number() as usize)
    }
}
