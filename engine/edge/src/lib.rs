//! Everything in Pinwheel with a memory ordering above `Relaxed`, except the board's readers.
//!
//! No input or output, no dependency but loom (and that only under `--cfg loom`). Read in this order: [`sync`] is the
//! seam to loom, [`units`] what signatures carry, [`spin`] the words by which cold code steers hot threads, [`ring`]
//! and [`queue`] what carries items, [`slot`] the protocol by which a shot is written, launched, answered and
//! harvested, [`page`] who may write a stream's state. Every named edge stands in `edges.txt`; `tests/loom.rs` holds the model that fails without it.
#![warn(missing_docs, unreachable_pub)]

pub mod sync;
pub mod units;
pub mod spin;
#[expect(unsafe_code, reason = "slots of a ring are written before they are published")]
pub mod ring;
#[expect(unsafe_code, reason = "cells of a queue are written before they are published")]
pub mod queue;
pub mod slot;
pub mod page;
