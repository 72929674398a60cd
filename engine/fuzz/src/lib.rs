//! Checks for inputs that are any bytes, one for each fuzz target. Tests of the workspace compile the same files.

pub mod hosts;
pub mod mapped;
pub mod matching;
pub mod recordings;
pub mod texts;
