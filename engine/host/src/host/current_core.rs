//! The core that the calling thread runs on, read by one load.
//!
//! Reads the word that the kernel keeps for the thread's restartable sequences and updates when the
//! thread moves. Made and used by one thread. If the C library has not registered such a word, a
//! system call is made, which costs tens of nanoseconds; [`CurrentCore::is_cheap`] tells which.
//!
//! ```text
//!   thread pointer + __rseq_offset:   cpu_id_start u32 │ cpu_id u32 │ …     (linux/rseq.h; glibc 2.35)
//! ```

use std::marker::PhantomData;

/// Reads the calling thread's core.
#[derive(Debug)]
pub struct CurrentCore {
    word: Option<*const u32>,
    own_thread: PhantomData<*const ()>,
}

impl CurrentCore {
    /// For the calling thread.
    pub fn of_current_thread() -> CurrentCore {
        CurrentCore { word: imp::word().filter(|_| imp::core_by_call().is_some()), own_thread: PhantomData }
    }

    /// Whether reading costs no system call.
    pub fn is_cheap(&self) -> bool {
        self.word.is_some()
    }

    /// The core that the thread runs on; `None` if the system does not tell.
    #[inline]
    pub fn core(&self) -> Option<u32> {
        match self.word {
            // SAFETY: the area lives as long as the thread, which is the one that made this value;
            // the kernel writes the word between two instructions of this thread, hence volatile.
            Some(word) => Some(unsafe { word.read_volatile() }),
            None => imp::core_by_call(),
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod imp {
    use crate::host::CORES_MAX;
    use std::arch::asm;

    pub(super) fn core_by_call() -> Option<u32> {
        u32::try_from(rustix::thread::sched_getcpu()).ok()
    }

    /// Address of the word with the thread's core, if there is one.
    pub(super) fn word() -> Option<*const u32> {
        let size = symbol(c"__rseq_size").map(|at| {
            // SAFETY: the C library defines it as a constant `unsigned int`.
            unsafe { *at.cast::<u32>() }
        })?;
        let offset = symbol(c"__rseq_offset").map(|at| {
            // SAFETY: the C library defines it as a constant `ptrdiff_t`.
            unsafe { *at.cast::<isize>() }
        })?;
        if size == 0 {
            return None;
        }
        let word = thread_pointer().wrapping_offset(offset).wrapping_add(4).cast::<u32>();
        // SAFETY: a size above 0 means that the area is registered for every thread, at this
        // offset.
        let core = unsafe { word.read_volatile() };
        (core < CORES_MAX).then_some(word)
    }

    fn symbol(name: &std::ffi::CStr) -> Option<*const u8> {
        // SAFETY: a C string, looked up among what is loaded.
        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!at.is_null()).then_some(at.cast_const().cast())
    }

    #[cfg(target_arch = "x86_64")]
    fn thread_pointer() -> *const u8 {
        let pointer: *const u8;
        // SAFETY: the System V ABI keeps the thread pointer in the first word that it points to.
        unsafe { asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
        pointer
    }

    #[cfg(target_arch = "aarch64")]
    fn thread_pointer() -> *const u8 {
        let pointer: *const u8;
        // SAFETY: reads the register that holds the thread pointer.
        unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem)) };
        pointer
    }
}

#[cfg(all(target_os = "linux", not(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))))]
mod imp {
    pub(super) fn core_by_call() -> Option<u32> {
        u32::try_from(rustix::thread::sched_getcpu()).ok()
    }

    pub(super) fn word() -> Option<*const u32> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    pub(super) fn core_by_call() -> Option<u32> {
        None
    }

    pub(super) fn word() -> Option<*const u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::CurrentCore;
    use crate::host::pin::{allowed_cores, pin_current_thread};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread that may be pinned")]
    fn a_pinned_thread_senses_its_core() {
        let Ok(cores) = allowed_cores() else { return };
        std::thread::spawn(move || {
            for core in cores {
                if pin_current_thread(core).is_ok() {
                    assert_eq!(CurrentCore::of_current_thread().core(), Some(core));
                }
            }
        })
        .join()
        .expect("the thread's own assertion");
    }
}
