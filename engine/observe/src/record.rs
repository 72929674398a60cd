//! The files of a run: its directory, recording, predictions, answers and events.
//!
//! Runs on cold threads only. The command line makes and completes the run directory; the engine's
//! cold side feeds the [`AnswerSink`] and the [`EventSink`]. Bounded by [`RUNS_OF_ONE_NAME_MAX`]
//! names for a directory and by the sink's reorder window. Never blocks a hot thread (records
//! arrive through a ring). A full disk never fails a run: the first error is kept as one sentence,
//! and the run goes on.
//!
//! # Why files appear only when they are complete
//!
//! Scripts read predictions and reports. A truncated file looks like a complete shorter one. So
//! each file is written under a hidden name beside its final one and renamed at the end. Standard
//! output and devices cannot be renamed and are written directly.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod disagreements;
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

pub use disagreements::{
    DISAGREEMENT_ANSWERS, DISAGREEMENTS, DISAGREEMENTS_MAX, Disagreement, Disagreements, KeptAnswer,
};
pub use events::{EVENTS_BYTES_MAX, Event, EventSink};
pub use output::{Output, OutputError};
pub use recorder::{MEMORY_MAX, MEMORY_SPAN, RecentRecording, Recorder, SAMPLE_PERIOD, SNAPSHOT_PERIOD};
pub use run_dir::{REPORT, RUNS_OF_ONE_NAME_MAX, RunDir, RunDirError, write_file};
pub use sink::{AnswerRecord, AnswerSink, REORDER_SLACK, SinkConfig};
