//! What a run tells others: its report, its page, its board as JSON, and the way to a running engine.
//!
//! For programs that operate an engine or read a run: the command line, and the Python package. Nothing
//! here prints, installs a signal handler or runs on a hot thread.
//!
//! ```text
//!  configuration ─▶ recorded run ─▶ engine ─▶ outcome ─▶ report ─▶ JSON, text
//!                        └─▶ run directory ─▶ evidence ─▶ page (HTML)
//!  running engine ─▶ its board ─▶ moment (JSON)
//!                 ◀─ command over its control socket
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`unusable`] | the sentence that refuses what cannot be used |
//! | [`mod@format`] | numbers and texts as people read them |
//! | [`model_file`] | an error model from a file, or bundled |
//! | [`report`] | the report of a run: one structure, JSON and text |
//! | [`moment`] | the board at one moment as JSON |
//! | [`recorded`] | a run with its directory, from start to report |
//! | [`runs`] | what a run left: recording, notes, the board of a killed engine |
//! | [`evidence`] | all of that, read once |
//! | [`page`] | the page of a run, for people who were not there |
//! | [`control`] | commands to a running engine |
//! | [`running`] | running engines, and their boards |
#![warn(missing_docs)]

#[cfg(test)]
#[allow(clippy::unwrap_used, dead_code, reason = "harness; each crate that has it uses its part")]
#[path = "../testing/sound.rs"]
pub mod sound;
#[cfg(test)]
#[allow(dead_code, unused_imports, reason = "each crate that has it uses its part")]
#[path = "../testing/synthetic.rs"]
pub mod synthetic;
pub mod unusable;
pub mod format;
pub mod model_file;
pub mod report;
pub mod moment;
pub mod recorded;
pub mod runs;
pub mod evidence;
pub mod page;
pub mod control;
pub mod running;
