//! Everything in Pinwheel with a memory ordering above `Relaxed`.
//!
//! No input or output, no dependency but loom (and that only under `--cfg loom`). Read in this
//! order: [`aligned`] holds what a device sees, [`sync`] is the seam to loom, [`units`] what
//! signatures carry, [`seqlock`] what the board's readers rely on, [`spin`] the words by which cold
//! code steers hot threads, [`ring`] and [`queue`] what carries items, [`slot`] the protocol by
//! which a shot is written, launched, answered and harvested, [`page`] who may write a stream's
//! state. Every named edge stands in `edges.txt`; `tests/loom.rs` holds the model that fails
//! without it.
#![warn(missing_docs, unreachable_pub)]

#[expect(unsafe_code, reason = "memory from boundary to boundary comes from the allocator itself")]
pub mod aligned;
pub mod sync;
pub mod units;
pub mod seqlock;
pub mod spin;
#[expect(unsafe_code, reason = "slots of a ring are written before they are published")]
pub mod ring;
#[expect(unsafe_code, reason = "cells of a queue are written before they are published")]
pub mod queue;
pub mod slot;
pub mod page;
