//! Memory of hot threads: arenas, the allocator that counts, and the reserve that libraries are lent.
//!
//! Owns the process's allocator type ([`Allocator`], declared by the program and by the tests that need it), the
//! [`Arena`]s, and each thread's account of its calls. Any thread may allocate at any time; what changes is what that
//! means:
//!
//! ```text
//!   Init, Warmup   inside Arena::within or lend: from the arena: touched, locked where the limit allows, on the node of
//!                  the thread that makes it; elsewhere: from the system
//!   Live           on a hot thread: an offence, counted, its first place kept; with `Abort` the end of the process.
//!                  Inside lend: from the thread's own reserve, counted apart, no offence while the reserve lasts
//! ```
//!
//! Bounds: [`ARENAS_MAX`] arenas of at most [`ARENA_BYTES_MAX`]; a sealed arena never grows. What finds no room goes to
//! the system and is counted. Never locks on the way of an allocation, never formats on a hot thread but to abort.
//!
//! # Why
//!
//! *The allocator instead of an allocator parameter.* Rings, slot words, job buffers and a
//! matcher's scratch are ordinary boxes and vectors, made by code (some of it a library's) that
//! knows nothing of arenas. Inside a scope the allocator gives them memory of the arena, and takes
//! it back wherever and whenever they are dropped: each block holds its arena alive by a count.
//!
//! *A reserve for libraries.* The matcher makes short-lived vectors for some shots and cannot be asked not to. From a
//! reserve that is touched, locked and the thread's own, such a call costs some nanoseconds and never meets a lock, a
//! fault or the kernel, which is what the ban on allocation is for. It is counted all the same.

mod arena;
mod guard;
mod pages;
mod region;
mod site;

pub use arena::{Arena, ArenaUse};
pub use guard::{Allocator, calls_of, excused, lend, set_before_abort};
pub use region::{ARENA_BYTES_MAX, ARENAS_MAX};
pub use site::described;

pub(super) use arena::Attached;
pub(super) use guard::{account, arm, disarm, first_callers, is_seen};

#[cfg(test)]
mod tests;
