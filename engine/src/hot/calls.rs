//! What a hot thread is called for in Live: a silo's path dies, or is built anew.
//!
//! Owns what may be called for. A cold thread calls by post; the hot one looks in each frame and takes a call between two
//! frames. Bounds: one death or one return at a time, so [`CALLS_MAX`] wait. Never waits.
//!
//! # Why roles are built between two frames, on the thread that runs them
//! Roles are not `Send`: a captured graph cannot move. A silo's threads stay, with the doors of the dead silo and, where cores are
//! few, with the roles of others; so what is built anew comes to them. All that is large (slots, rings, job buffers, the pool) was made by
//! cold code before; what is left is a box for each role and a decoder's matcher, which a decode that panics makes anew on
//! its hot thread, too. It is lent from the thread's arena, where the dead roles' blocks came free, and no offence: the
//! thread's other roles stand still as long as for one long decode.
//!
//! # Why a condemned role is dropped, and one that panicked is not
//! It is never in the middle of its work when it is condemned, so its remains are whole.

use super::RoleSpec;
use super::post::{Sends, Takes, post};

/// What a thread is called for.
pub enum Call {
    /// The path of this silo dies: its roles here, but for its doors, are published as died and never called again.
    Condemn {
        /// Which.
        silo: u32,
    },
    /// These roles take the places of those that died.
    Revive(Vec<RoleSpec>),
}

/// The caller's end.
pub type Caller = Sends<Call>;
/// The thread's end.
pub type Calls = Takes<Call>;

/// Calls of one thread that wait.
const CALLS_MAX: usize = 4;

/// Both ends.
#[must_use]
pub fn calls() -> (Caller, Calls) {
    post(CALLS_MAX)
}
