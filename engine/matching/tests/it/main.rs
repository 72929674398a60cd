//! Tests of the crate as its callers see it.
#![allow(clippy::unwrap_used, reason = "harness")]

mod answers;
mod any_bytes;
mod blocks;
mod confidence;
mod correlated;
mod golden;
#[path = "../../../code/testing/golden.rs"]
mod golden_sets;
mod heralds;
mod lookup;
mod oracle;
mod stream;
mod union_find;

use pinwheel_code::code;
