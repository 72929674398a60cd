//! What a run leaves on disk: its directory, its predictions, its answers.
//!
//! Owns the files and nothing else. Runs on cold threads only: the command line makes and seals the run directory, the
//! engine's cold side feeds the [`AnswerSink`] and the [`EventSink`]. Bounded by [`RUNS_OF_ONE_NAME_MAX`] tries for a directory's name and by
//! the sink's reorder window. Never blocks a hot thread (records arrive through a ring), never fails a run because a
//! disk is full: the first trouble is kept as one sentence and the run goes on.
//!
//! # Why files appear whole or not at all
//!
//! Predictions and reports are read by scripts. Half of one looks like all of a shorter one, so each is written under
//! a hidden name beside its place and renamed at the end. Standard output and devices cannot be renamed and are written
//! through.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod events;
pub mod hlog;
pub mod metrics;
mod output;
mod recorder;
mod reorder;
mod run_dir;
pub mod runs;
mod sink;
pub mod tape;
pub mod trace;

pub use events::{EVENTS_BYTES_MAX, Event, EventSink};
pub use output::{Output, OutputError};
pub use recorder::{LookBack, MEMORY_MAX, MEMORY_SPAN, PICTURE, Recorder, SAMPLE};
pub use run_dir::{REPORT, RUNS_OF_ONE_NAME_MAX, RunDir, RunDirError, keep};
pub use sink::{AnswerRecord, AnswerSink, OBSERVABLE_WORDS_MAX, REORDER_SLACK, SinkConfig};
