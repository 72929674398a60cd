//! Stops one thread of another process by ptrace, as a debugger does, and releases it.
//!
//! Owns the tracing of that thread as long as the value lives, on the thread that made it, because
//! only that thread can end it. One system call each. Other threads of that process run on.

/// A thread that is stopped until this is dropped.
#[derive(Debug)]
pub struct PtraceStop {
    tid: u32,
}

impl PtraceStop {
    /// Stops thread `tid`.
    ///
    /// # Errors
    /// If the system refuses to trace it (another user's thread, `kernel.yama.ptrace_scope`, a
    /// debugger).
    pub fn of(tid: u32) -> std::io::Result<PtraceStop> {
        imp::seize(tid)?;
        let stop = PtraceStop { tid };
        imp::interrupt(tid)?;
        Ok(stop)
    }
}

impl Drop for PtraceStop {
    fn drop(&mut self) {
        imp::release(self.tid);
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io::{Error, Result};
    use std::ptr::null_mut;

    fn request(what: libc::c_uint, tid: u32) -> Result<()> {
        // SAFETY: these requests take no memory of ours: address and data are null.
        let answer = unsafe { libc::ptrace(what, tid.cast_signed(), null_mut::<u8>(), null_mut::<u8>()) };
        if answer == -1 { Err(Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn seize(tid: u32) -> Result<()> {
        request(libc::PTRACE_SEIZE, tid)
    }

    pub(super) fn interrupt(tid: u32) -> Result<()> {
        request(libc::PTRACE_INTERRUPT, tid)?;
        let mut status = 0;
        // SAFETY: `status` is a valid place; the thread is traced by the calling one and was just
        // told to stop.
        let waited = unsafe { libc::waitpid(tid.cast_signed(), &raw mut status, libc::__WALL) };
        if waited == -1 { Err(Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn release(tid: u32) {
        // If the thread has ended meanwhile, nothing is left to release.
        let _ = request(libc::PTRACE_DETACH, tid);
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io::{ErrorKind, Result};

    pub(super) fn seize(_: u32) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn interrupt(_: u32) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn release(_: u32) {}
}
