//! Tests of the crate as its callers see it.
#![allow(clippy::unwrap_used, reason = "harness")]

mod answers;
mod confidence;
mod golden;
#[expect(dead_code, reason = "shared with other crates' tests")]
#[path = "../../../code/testing/golden.rs"]
mod golden_sets;
mod oracle;
mod stream;

use pinwheel_code::code;
