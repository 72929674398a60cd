//! Detector error models, shot files, a sampler, and the predecoder.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::{quote, streams};

pub mod code;
pub mod predecode;
