//! What a shot is made of, and what is decoded of it before the matcher: models, shot files, a sampler, the predecoder.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
#![warn(missing_docs, unreachable_pub)]

use pinwheel_board::quote;

pub mod code;
pub mod predecode;
