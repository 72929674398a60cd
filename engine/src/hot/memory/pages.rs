//! Address space and pages, as the system gives them; where it has no such calls, none: arenas are then the system's
//! allocator.
//!
//! Cold; each call is one system call. Bounded by the caller's sizes.

/// Address space without memory; 0: refused.
pub(super) fn reserve(bytes: usize) -> usize {
    imp::reserve(bytes)
}

/// Makes a range readable and writable; whether it now is.
///
/// # Safety
/// The range lies in a reservation, and nobody has a reference into it.
pub(super) unsafe fn open(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { imp::open(address, bytes) }
}

/// Gives a range's pages, locks and advice back, and keeps its addresses; whether that was done.
///
/// # Safety
/// The range lies in a reservation, and nobody has a reference into it.
pub(super) unsafe fn empty(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { imp::empty(address, bytes) }
}

/// Asks for huge pages; a system without them goes on with small ones.
///
/// # Safety
/// The range lies in a reservation.
pub(super) unsafe fn prefer_huge(address: usize, bytes: usize) {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { imp::prefer_huge(address, bytes) }
}

/// Keeps a range in memory; whether it is kept.
///
/// # Safety
/// The range lies in a reservation and is open.
pub(super) unsafe fn lock(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { imp::lock(address, bytes) }
}

#[cfg(unix)]
mod imp {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mlock, mmap_anonymous, mprotect};
    use std::ptr::null_mut;

    pub(super) fn reserve(bytes: usize) -> usize {
        // SAFETY: a fresh mapping at an address of the system's choice replaces nothing.
        let mapped =
            unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE) };
        mapped.map_or(0, |address| address as usize)
    }

    pub(super) unsafe fn open(address: usize, bytes: usize) -> bool {
        // SAFETY: in a reservation of ours, without references, by the caller's promise.
        unsafe { mprotect(address as *mut _, bytes, MprotectFlags::READ | MprotectFlags::WRITE) }.is_ok()
    }

    pub(super) unsafe fn empty(address: usize, bytes: usize) -> bool {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: replaces a range of our own reservation, without references, by the caller's promise.
        unsafe { mmap_anonymous(address as *mut _, bytes, ProtFlags::empty(), flags) }.is_ok()
    }

    #[cfg(target_os = "linux")]
    pub(super) unsafe fn prefer_huge(address: usize, bytes: usize) {
        // SAFETY: advice on a range of our own; changes no contents.
        let _ = unsafe { rustix::mm::madvise(address as *mut _, bytes, rustix::mm::Advice::LinuxHugepage) };
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) unsafe fn prefer_huge(_address: usize, _bytes: usize) {}

    pub(super) unsafe fn lock(address: usize, bytes: usize) -> bool {
        // SAFETY: a range of our own; locking changes no contents.
        unsafe { mlock(address as *mut _, bytes) }.is_ok()
    }
}

#[cfg(not(unix))]
mod imp {
    pub(super) fn reserve(_bytes: usize) -> usize {
        0
    }

    pub(super) unsafe fn open(_address: usize, _bytes: usize) -> bool {
        false
    }

    pub(super) unsafe fn empty(_address: usize, _bytes: usize) -> bool {
        false
    }

    pub(super) unsafe fn prefer_huge(_address: usize, _bytes: usize) {}

    pub(super) unsafe fn lock(_address: usize, _bytes: usize) -> bool {
        false
    }
}
