//! Queues between many threads, and the words by which tasks of a graph find each other.
//!
//! | module | what |
//! |---|---|
//! | [`fifo`] | many to many, strict order |
//! | [`deque`] | one owner at one end, thieves at the other |
//! | [`fanout`] | records of tasks under way, each with the list of those that wait for it |
//! | [`countdown`] | the same for a recorded graph, whose lists never change |
//! | [`gate`] | permits |
//! | [`window`] | how many tasks are under way |
//! | [`handshake`] | one job at a time into another domain and back |
//!
//! Bounded, lock-free, allocation-free after construction; a refused item comes back to its caller.
//! Nothing here waits.

pub mod countdown;
pub mod deque;
pub mod fanout;
pub mod fifo;
pub mod gate;
pub mod handshake;
pub mod window;
