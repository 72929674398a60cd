//! The limits of this process (`ulimit`), in bytes, and how many threads it may start.
//!
//! Cold, before a start. A limit is `None` if there is none or it is not visible. Bounded by the
//! number of threads asked for.
//!
//! # Why threads are tried
//! The user, the control group and the machine limit threads, and count those of other processes
//! too. Only the system knows how many are left.
//!
//! # Why address space is reckoned
//! A thread that starts without room for the stack of its signals ends the process, in the standard
//! library. So the room for all of them is required before the first.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// Address space of a thread's stacks, bytes.
const STACK_BYTES: u64 = 2 << 20;
/// Address space that glibc's allocator reserves at once, bytes: it makes such an arena for each
/// thread that allocates, up to [`ARENAS_PER_CORE`] for each core, and reserves two of them while it
/// makes one.
const ARENA_BYTES: u64 = 64 << 20;
const ARENAS_PER_CORE: usize = 8;

/// Size of the address space that this process needs to start this many more threads, bytes.
pub fn address_bytes_needed(threads: usize) -> u64 {
    let cores = super::topology::online(Path::new("/")).len().max(1);
    let arenas = threads.min(cores * ARENAS_PER_CORE) as u64 + 1;
    address_bytes_used() + arenas * ARENA_BYTES + threads as u64 * STACK_BYTES
}

/// Starts this many threads at once, and ends them.
///
/// # Errors
/// The number of threads that the system started, and its error on the next one.
pub fn try_threads(threads: usize) -> Result<(), (usize, io::Error)> {
    let mut started: Vec<(Sender<()>, JoinHandle<()>)> = Vec::with_capacity(threads);
    let mut refused = None;
    while started.len() < threads && refused.is_none() {
        let (end, until): (Sender<()>, Receiver<()>) = channel();
        // It ends when the other end is dropped.
        let body = move || until.recv().unwrap_or_default();
        #[expect(clippy::disallowed_methods, reason = "cold: before anything runs")]
        match Builder::new().spawn(body) {
            Ok(thread) => started.push((end, thread)),
            Err(error) => refused = Some(error),
        }
    }
    let (ends, handles): (Vec<_>, Vec<_>) = started.into_iter().unzip();
    drop(ends);
    let given = handles.len();
    // These threads do nothing that could panic.
    handles.into_iter().for_each(|thread| thread.join().unwrap_or_default());
    refused.map_or(Ok(()), |error| Err((given, error)))
}

#[cfg(unix)]
mod imp {
    use rustix::process::{Resource, getrlimit};

    /// Limit of the main thread's stack.
    pub fn stack_bytes() -> Option<u64> {
        getrlimit(Resource::Stack).current
    }

    /// Limit of a file that this process writes.
    pub fn file_bytes() -> Option<u64> {
        getrlimit(Resource::Fsize).current
    }

    /// Limit of the address space.
    pub fn address_bytes() -> Option<u64> {
        getrlimit(Resource::As).current
    }

    /// Size of the address space now; 0 if it is not visible.
    pub fn address_bytes_used() -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = text.split_whitespace().next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
        pages * rustix::param::page_size() as u64
    }
}

#[cfg(not(unix))]
mod imp {
    /// Limit of the main thread's stack.
    pub fn stack_bytes() -> Option<u64> {
        None
    }

    /// Limit of a file that this process writes.
    pub fn file_bytes() -> Option<u64> {
        None
    }

    /// Limit of the address space.
    pub fn address_bytes() -> Option<u64> {
        None
    }

    /// Size of the address space now; 0 if it is not visible.
    pub fn address_bytes_used() -> u64 {
        0
    }
}

pub use imp::{address_bytes, address_bytes_used, file_bytes, stack_bytes};

#[cfg(test)]
mod tests {
    use super::{ARENA_BYTES, address_bytes_needed, try_threads};

    #[test]
    fn threads_that_the_system_gives_are_given_back() {
        assert!(try_threads(8).is_ok());
    }

    #[test]
    fn more_threads_need_more_address_space() {
        let (one, two) = (address_bytes_needed(1), address_bytes_needed(2));
        assert!(one > 2 * ARENA_BYTES && two > one + ARENA_BYTES / 2, "{one} {two}");
    }
}
