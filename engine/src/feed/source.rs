//! Sources of shots: a sampler, a shot set in memory, a live stream.
//!
//! Owns the source's position. Called by the feed on its hot thread; no source allocates, blocks or
//! reads a file: files are in memory before Live, and a stream comes through a [`super::stage`]
//! that a cold thread fills.

use super::lane::LaneOut;
use super::link::Link;
use super::stage::{StageEnd, Staged};
use crate::code::sampler::Sampler;
use crate::code::shots::ShotSet;
use std::sync::Arc;

/// Source of one silo's shots.
pub enum Source {
    /// Sampled from the model; the truth is known, if the model has observables.
    Sampler(Box<Sampler>),
    /// A set in memory, with true observables if available. Ends with the set.
    Replay {
        /// Detection events.
        shots: Arc<ShotSet>,
        /// True observables of each shot.
        observables: Option<Arc<ShotSet>>,
    },
    /// From a cold reader.
    Stage(StageEnd),
    /// From a live source.
    Live(LiveEnd),
}

/// A silo's end of a live source.
pub struct LiveEnd {
    /// Lane that its shots come through.
    pub lane: LaneOut,
    /// The link itself, in the first silo.
    pub link: Option<Box<Link>>,
}

/// Result of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// A shot was written.
    Shot {
        /// Whether its true observables were written too.
        truth_known: bool,
    },
    /// No shot is available yet.
    NotYet,
    /// The input has ended.
    End,
    /// The input failed; the reader keeps the reason.
    Broken,
}

impl Source {
    /// Shots that it has now; all ones where it does not run out of them before its end. Only a reader has
    /// none at times; the end of its input counts as one.
    pub(super) fn available(&self) -> u64 {
        match self {
            Source::Stage(stage) => stage.available(),
            Source::Sampler(_) | Source::Replay { .. } | Source::Live(_) => u64::MAX,
        }
    }

    /// Writes the shot at index `index` of the input.
    pub fn draw(&mut self, index: u64, detectors: &mut [u64], observables: &mut [u64]) -> Drawn {
        match self {
            Source::Sampler(sampler) => {
                sampler.draw(detectors, observables);
                Drawn::Shot { truth_known: sampler.has_observables() }
            }
            Source::Replay { shots, observables: truths } => {
                if index >= shots.len() as u64 {
                    return Drawn::End;
                }
                let shot = shots.shot(index as usize);
                // A shot without detectors has no word in its file, and one here.
                detectors[..shot.len()].copy_from_slice(shot);
                let truth = truths.as_ref().map(|truths| truths.shot(index as usize));
                if let Some(truth) = truth {
                    observables[..truth.len()].copy_from_slice(truth);
                }
                Drawn::Shot { truth_known: truth.is_some_and(|truth| !truth.is_empty()) }
            }
            Source::Stage(stage) => match stage.take(detectors) {
                Staged::Shot => Drawn::Shot { truth_known: false },
                Staged::Empty => Drawn::NotYet,
                Staged::End => Drawn::End,
                Staged::Broken => Drawn::Broken,
            },
            // Live shots bring their own stream and number; the feed takes them from the lane.
            Source::Live(live) if live.lane.has_ended() => Drawn::End,
            Source::Live(_) => Drawn::NotYet,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Drawn, Sampler, Source};
    use crate::code::{Layout, Model, ShotSet};
    use std::sync::Arc;

    /// Else each of its answers would count as judged and right.
    #[test]
    fn no_answer_to_a_shot_without_observables_can_be_judged() {
        let of_model = |text: &str| {
            let model = Model::parse(text.as_bytes()).unwrap();
            Source::Sampler(Box::new(Sampler::new(&model, 7)))
        };
        let of_file = |observables| {
            let [shots, truths] = [Layout::detectors(1), Layout::observables(observables)]
                .map(|layout| Arc::new(ShotSet::zeros(layout, 1)));
            Source::Replay { shots, observables: Some(truths) }
        };
        for (mut source, truth_known) in [
            (of_model("error(0.1) D0"), false),
            (of_model("error(0.1) D0 L0"), true),
            (of_file(0), false),
            (of_file(1), true),
        ] {
            assert_eq!(source.draw(0, &mut [0], &mut [0]), Drawn::Shot { truth_known });
        }
    }

    #[test]
    fn shots_of_a_model_without_detectors_are_drawn_until_their_end() {
        let shots = Arc::new(ShotSet::zeros(Layout::detectors(0), 2));
        let mut source = Source::Replay { shots, observables: None };
        let drawn = [0, 1, 2].map(|index| source.draw(index, &mut [0], &mut [0]));
        assert_eq!(drawn, [Drawn::Shot { truth_known: false }, Drawn::Shot { truth_known: false }, Drawn::End]);
    }
}
