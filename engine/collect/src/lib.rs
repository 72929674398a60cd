//! Logical error rates in bulk: many models, decoders and shots, without an engine.
//!
//! For people with a sweep. Draws shots of each task's model, or takes them from files. Decodes them by
//! the engine's decoders on ordinary threads, and appends the counts to a file of rows that sinter
//! reads.
//!
//! ```text
//!  task ─▶ blocks of shots ─▶ threads: draw, decode, compare ─▶ counts, in order ─▶ rows
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`intervals`] | intervals of rates and counts |
//! | [`rows`] | a row of results, as sinter writes it |
//! | [`results`] | the file of rows: read, locked, appended, merged |
//! | `tallies` | two counts for each of some numbers, as a row names them |
//! | [`faults`] | counts by the number of faults, and error rates at other noise |
//! | [`gaps`] | counts by the gap of an answer, and what is left without small gaps |
//! | [`task`] | a model, its decoder, its shots, and what identifies them |
//! | [`run`] | the collection: blocks, threads, stop rules |
//!
//! Nothing here runs on a hot thread.
#![warn(missing_docs, unreachable_pub)]

pub mod intervals;
pub mod rows;
pub mod results;
mod tallies;
pub mod faults;
pub mod gaps;
pub mod task;
pub mod run;
