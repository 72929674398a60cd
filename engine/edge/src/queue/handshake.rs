//! One job at a time into another domain and back, by sequence numbers.
//!
//! Owns a job's word and a result's word between two owned ends: the [`Caller`] posts, the
//! [`Domain`] takes, works and finishes, the caller collects. Bounds: one job under way. Never
//! waits. Nothing is ever reset: flags that somebody clears can be cleared after the next job has
//! set them; a number that only grows cannot be mistaken.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | X1 | [`Caller::post`] posted | [`Domain::take`] posted | the job |
//! | X2 | [`Domain::finish`] done | [`Caller::collect`] done | the result, and that the job's word was read |

use crate::ring::Full;
use crate::sync::{AtomicU64, DataWord, Ordering, Padded, edge};
use std::sync::Arc;

struct Words {
    posted: Padded<AtomicU64>,
    job: DataWord,
    done: Padded<AtomicU64>,
    result: DataWord,
}

/// The end that asks.
pub struct Caller {
    words: Arc<Words>,
    posted: u64,
    collected: u64,
}

/// The end that works.
pub struct Domain {
    words: Arc<Words>,
    taken: u64,
    finished: u64,
}

/// Two ends without a job.
#[must_use]
pub fn handshake() -> (Caller, Domain) {
    let words = Arc::new(Words {
        posted: Padded(AtomicU64::new(0)),
        job: DataWord::new(0),
        done: Padded(AtomicU64::new(0)),
        result: DataWord::new(0),
    });
    (Caller { words: Arc::clone(&words), posted: 0, collected: 0 }, Domain { words, taken: 0, finished: 0 })
}

impl Caller {
    /// Hands over `job`; says its number.
    ///
    /// # Errors
    /// [`Full`] with the job while the last one is not collected.
    pub fn post(&mut self, job: u64) -> Result<u64, Full<u64>> {
        if self.collected < self.posted {
            return Err(Full(job));
        }
        self.posted += 1;
        self.words.job.store(job);
        // ORDERING: release side of X1, publishing the job. Relaxed could show the number before
        // the job. Model: loom_handshake::jobs_and_results_cross_whole.
        self.words.posted.0.store(self.posted, edge("X1.release", Ordering::Release));
        Ok(self.posted)
    }

    /// The result of the job under way, once.
    pub fn collect(&mut self) -> Option<(u64, u64)> {
        // ORDERING: acquire side of X2: the result, and that the job's word may be rewritten. See
        // `Domain::finish`.
        let done = self.words.done.0.load(edge("X2.acquire", Ordering::Acquire));
        if done == self.collected {
            return None;
        }
        self.collected = done;
        Some((done, self.words.result.load()))
    }
}

impl Domain {
    /// The job that was posted, once.
    pub fn take(&mut self) -> Option<(u64, u64)> {
        // ORDERING: acquire side of X1, see `Caller::post`.
        let posted = self.words.posted.0.load(edge("X1.acquire", Ordering::Acquire));
        if posted == self.taken {
            return None;
        }
        self.taken = posted;
        Some((posted, self.words.job.load()))
    }

    /// Ends the job that was taken.
    ///
    /// # Panics
    /// If none was, or it was ended before.
    pub fn finish(&mut self, result: u64) {
        assert!(self.finished < self.taken, "job {} was ended before, or never taken", self.taken);
        self.finished = self.taken;
        self.words.result.store(result);
        // ORDERING: release side of X2. Relaxed could show the number before the result, or let the
        // next job overtake the reading of this one. Model:
        // loom_handshake::jobs_and_results_cross_whole.
        self.words.done.0.store(self.finished, edge("X2.release", Ordering::Release));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::handshake;
    use crate::ring::Full;

    #[test]
    fn each_job_is_handed_over_and_returned_once() {
        let (mut caller, mut domain) = handshake();
        assert_eq!((domain.take(), caller.collect()), (None, None));
        assert_eq!(caller.post(7), Ok(1));
        assert_eq!(caller.post(8), Err(Full(8)));
        assert_eq!((domain.take(), domain.take()), (Some((1, 7)), None));
        domain.finish(70);
        assert_eq!((caller.collect(), caller.collect()), (Some((1, 70)), None));
        assert_eq!(caller.post(8), Ok(2));
    }

    #[test]
    #[should_panic(expected = "ended before, or never taken")]
    fn a_job_is_not_ended_twice() {
        let (mut caller, mut domain) = handshake();
        assert_eq!(caller.post(7), Ok(1));
        assert!(domain.take().is_some());
        domain.finish(1);
        domain.finish(1);
    }
}
