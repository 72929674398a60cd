//! The last minute of derived numbers, for sparklines.
//!
//! Bounded: [`SAMPLES_MAX`] samples and [`STRIP_MAX`] silences per thread. On the console thread. A
//! silence is the time in which a thread shows no progress.

use super::derived::Derived;
use std::collections::VecDeque;

/// Most samples kept: a minute at 10 Hz.
pub const SAMPLES_MAX: usize = 600;
/// Most silences kept per thread.
pub const STRIP_MAX: usize = 120;

/// Derived numbers of one moment; `None` is unknown and drawn as a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Answers per second.
    pub answered_per_s: Option<f64>,
    /// Shots due and not submitted.
    pub backlog: u64,
    /// Shots submitted and not answered.
    pub open: u64,
    /// 99.9th percentile of latency, nanoseconds.
    pub p999_ns: Option<u64>,
}

/// The past samples and silences, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    samples: VecDeque<Sample>,
    strips: Vec<VecDeque<u64>>,
}

impl History {
    /// Adds the numbers of a moment and drops the oldest beyond the bounds.
    pub fn push(&mut self, derived: &Derived) {
        let sample = Sample {
            answered_per_s: derived.rates.map(|rates| rates.answered),
            backlog: derived.backlog,
            open: derived.open,
            p999_ns: derived.latency.map(|latency| latency.p999_ns),
        };
        push_bounded(&mut self.samples, sample, SAMPLES_MAX);
        self.strips.resize_with(derived.threads.len(), VecDeque::new);
        for (strip, thread) in self.strips.iter_mut().zip(&derived.threads) {
            push_bounded(strip, thread.silence_ns, STRIP_MAX);
        }
    }

    /// The last `n` samples, oldest first.
    pub fn last(&self, n: usize) -> impl Iterator<Item = &Sample> {
        self.samples.iter().skip(self.samples.len().saturating_sub(n))
    }

    /// The last `n` silences of `thread`, nanoseconds, oldest first.
    pub fn strip(&self, thread: usize, n: usize) -> impl Iterator<Item = u64> {
        let strip = self.strips.get(thread);
        let skip = strip.map_or(0, |strip| strip.len().saturating_sub(n));
        strip.into_iter().flatten().skip(skip).copied()
    }

    /// Number of samples kept.
    pub fn len(&self) -> usize {
        self.samples.len()
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
    if queue.len() == max {
        queue.pop_front();
    }
    queue.push_back(item);
}
