//! Everything in Pinwheel with a memory ordering above `Relaxed`.
//!
//! No input or output, no dependency but loom (and that only under `--cfg loom`). Read in this order:
//! [`mod@names`] spells the variants of enumerations, [`aligned`] is memory that a device reads and
//! writes, [`sync`] has the atomics of std or of loom, [`units`] types of numbers, [`seqlock`] how the
//! board's records are read whole, [`spin`] the words by which cold code controls hot threads, [`ring`]
//! and [`queue`] pass items between threads, [`slot`] is the protocol of a shot's slot, [`page`] that of
//! the right to write a stream's state. `edges.txt` names every edge; `tests/loom.rs` has the model that
//! fails without it.
#![warn(missing_docs, unreachable_pub)]

pub mod names;
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
