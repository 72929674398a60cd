//! Helpers shared by the tests of several modules.

#[allow(clippy::unwrap_used, dead_code, reason = "harness; each crate that has it uses its part")]
#[path = "../../engine/report/testing/sound.rs"]
pub mod sound;
pub mod synthetic;
