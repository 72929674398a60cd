//! Everything in Pinwheel with a memory ordering above `Relaxed`, except the board's readers.
//!
//! No input or output, no dependency but loom (and that only under `--cfg loom`). Read in this order:
#![warn(missing_docs, unreachable_pub)]

pub mod sync;
pub mod units;
pub mod spin;
