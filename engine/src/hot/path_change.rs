//! Requests to a hot thread in Live: stop its roles of one silo, or restart them.
//!
//! A cold thread sends a request through a mailbox. The hot thread checks the mailbox in each frame
//! and acts between two frames. Bounds: one silo stops or restarts at a time, so [`PENDING_MAX`]
//! requests are enough. Never waits.
//!
//! # Why roles are built between two frames, on the thread that runs them
//! Roles are not `Send`: a captured graph cannot move. The threads of a stopped silo keep running,
//! with its feed and harvest and, on few cores, with roles of other silos. Cold code has built
//! everything large before (slots, rings, job buffers, the pool). The hot thread only builds a box
//! for each role and a decoder's matcher, as it does after a decode that panicked. This memory
//! comes from the thread's arena, where the blocks of the stopped roles are free again, and does
//! not count as a hot allocation: it delays the thread's other roles no longer than one long
//! decode.
//!
//! # Why a stopped role is dropped, and one that panicked is not
//! A role is stopped between two calls of `work`, so its state is consistent.

use super::RoleSpec;
use super::mailbox::{MailboxReceiver, MailboxSender, mailbox};

/// A request to a hot thread.
pub enum PathChange {
    /// Stop the silo's path: its roles on this thread, except feed and harvest, are published as stopped and dropped.
    Stop {
        /// The silo.
        silo: u32,
    },
    /// Build these roles in place of the stopped ones.
    Restart(Vec<RoleSpec>),
}

/// The cold thread's end.
pub type PathChangeSender = MailboxSender<PathChange>;
/// The hot thread's end.
pub type PathChangeReceiver = MailboxReceiver<PathChange>;

/// Most requests that wait for one thread.
const PENDING_MAX: usize = 4;

/// Both ends of the requests to one thread.
pub fn path_changes() -> (PathChangeSender, PathChangeReceiver) {
    mailbox(PENDING_MAX)
}
