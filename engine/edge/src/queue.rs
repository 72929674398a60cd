//! Queues between many threads.
//!
//! Bounded, lock-free, allocation-free after construction; a refused item comes back to its caller.

pub mod fifo;
