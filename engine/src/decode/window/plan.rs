//! Assigns rounds to windows.
//!
//! Pure arithmetic, callable from anywhere; allocates nothing.

use std::ops::Range;

use super::WindowError;
use crate::profile::WindowRounds;

/// The windows of an experiment, in decoding order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowPlan {
    rounds: u32,
    size: WindowRounds,
}

/// One window: its rounds, and those it commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The rounds it reads.
    pub rounds: Range<u32>,
    /// The leading rounds, whose edges it commits; the last window commits all.
    pub commits: Range<u32>,
}

impl Window {
    /// Whether it commits every round that it reads.
    pub fn is_last(&self) -> bool {
        self.commits == self.rounds
    }
}

impl WindowPlan {
    /// Windows of `size` over `rounds` rounds of detectors.
    ///
    /// # Errors
    ///
    /// If one of the sizes is 0 or larger than `rounds`.
    pub fn new(rounds: u32, size: WindowRounds) -> Result<Self, WindowError> {
        for (what, found) in [("commit", size.commit_rounds), ("buffer", size.buffer_rounds)] {
            if !(1..=rounds).contains(&found) {
                return Err(WindowError::Size { what, found, rounds });
            }
        }
        Ok(Self { rounds, size })
    }

    /// Number of windows; the last is the first that reaches the end.
    pub const fn count(&self) -> u32 {
        let full = self.size.commit_rounds.saturating_add(self.size.buffer_rounds);
        self.rounds.saturating_sub(full).div_ceil(self.size.commit_rounds) + 1
    }

    /// Window `index`, below [`Self::count`].
    pub fn window(&self, index: u32) -> Window {
        let WindowRounds { commit_rounds, buffer_rounds } = self.size;
        let start = index * commit_rounds;
        if index + 1 == self.count() {
            return Window { rounds: start..self.rounds, commits: start..self.rounds };
        }
        let commits = start..start + commit_rounds;
        Window { rounds: start..commits.end + buffer_rounds, commits }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::*;

    fn plan(rounds: u32, commit_rounds: u32, buffer_rounds: u32) -> Result<WindowPlan, WindowError> {
        WindowPlan::new(rounds, WindowRounds { commit_rounds, buffer_rounds })
    }

    #[test]
    fn each_round_is_committed_once_and_seen_with_its_buffer() {
        for rounds in 1..40 {
            for (commit, buffer) in (1..=rounds).flat_map(|commit| (1..=rounds).map(move |buffer| (commit, buffer))) {
                let plan = plan(rounds, commit, buffer).unwrap();
                let mut committed = 0;
                for index in 0..plan.count() {
                    let window = plan.window(index);
                    assert_eq!((window.rounds.start, window.commits.start), (committed, committed));
                    assert_eq!(window.is_last(), index + 1 == plan.count());
                    let len = |range: &Range<u32>| range.end - range.start;
                    if window.is_last() {
                        assert!((1..=commit + buffer).contains(&len(&window.rounds)));
                        assert!(index == 0 || len(&window.rounds) > buffer);
                    } else {
                        assert_eq!((len(&window.commits), len(&window.rounds)), (commit, commit + buffer));
                        assert!(window.rounds.end < rounds);
                    }
                    committed = window.commits.end;
                }
                assert_eq!(committed, rounds);
            }
        }
    }

    #[test]
    fn sizes_of_zero_or_past_the_model_are_refused() {
        for (commit, buffer, part) in [
            (0, 5, "0 commit rounds do not fit the model's 6"),
            (5, 0, "0 buffer rounds do not fit the model's 6"),
            (7, 1, "7 commit rounds do not fit the model's 6"),
            (1, u32::MAX, "buffer rounds do not fit the model's 6"),
        ] {
            let said = plan(6, commit, buffer).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(plan(6, 6, 6).unwrap().count(), 1);
        assert!(plan(0, 1, 1).is_err());
    }
}
