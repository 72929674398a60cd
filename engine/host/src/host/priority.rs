//! A thread's scheduling priority: sets the profile's, and reads it back.
//!
//! A hot thread sets its own at its start, never in a frame. The cold side changes it later by
//! thread id. A few system calls each, no retry. Changes threads of this process only.
//!
//! # Why system calls and not the C library
//! One C library (musl) returns *not implemented* from `sched_setscheduler`. The system calls are
//! the same everywhere.

use crate::profile::Priority;

/// Why a priority is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PriorityError {
    #[error("found priority {asked} refused ({reason}), expected it; {}", remedy(*.asked))]
    Refused { asked: Priority, reason: String },
    #[error("found a system without thread priorities that can be set here, expected Linux; run with priority Normal")]
    Unsupported,
}

fn remedy(asked: Priority) -> &'static str {
    match asked {
        Priority::Fifo(_) => "raise the limit (ulimit -r), give CAP_SYS_NICE, or run with priority Normal",
        Priority::Nice(_) | Priority::Normal => {
            "raise the limit (ulimit -e), give CAP_SYS_NICE, or run with priority Normal"
        }
    }
}

/// Sets the priority of thread `tid` of this process; `None` means the calling thread. `Normal` is
/// the process's own.
///
/// # Errors
/// If the system refuses, mostly for want of permission, or has no such priorities.
pub fn set(tid: Option<u32>, priority: Priority) -> Result<(), PriorityError> {
    imp::set(tid, priority)
}

/// The priority of thread `tid` of this process; `None` if it is not visible, or of another kind.
pub fn found(tid: Option<u32>) -> Option<Priority> {
    imp::found(tid)
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::process::{Pid, getpid, getpriority_process, setpriority_process};
    use std::io;

    use super::PriorityError;
    use crate::profile::Priority;

    pub(super) fn set(tid: Option<u32>, priority: Priority) -> Result<(), PriorityError> {
        let refused = |reason: String| PriorityError::Refused { asked: priority, reason };
        let (policy, level) = match priority {
            Priority::Fifo(level) => (libc::SCHED_FIFO, libc::c_int::try_from(level).unwrap_or(libc::c_int::MAX)),
            Priority::Normal | Priority::Nice(_) => (libc::SCHED_OTHER, 0),
        };
        set_policy(tid, policy, level).map_err(|error| refused(error.to_string()))?;
        let nice = match priority {
            Priority::Nice(nice) => nice,
            Priority::Normal => getpriority_process(Some(getpid())).map_err(|error| refused(error.to_string()))?,
            Priority::Fifo(_) => return Ok(()),
        };
        setpriority_process(of(tid), nice).map_err(|error| refused(error.to_string()))
    }

    pub(super) fn found(tid: Option<u32>) -> Option<Priority> {
        match policy(tid)? {
            (libc::SCHED_FIFO, level) => Some(Priority::Fifo(u32::try_from(level).ok()?)),
            (libc::SCHED_OTHER | libc::SCHED_BATCH, _) => match getpriority_process(of(tid)).ok()? {
                0 => Some(Priority::Normal),
                nice => Some(Priority::Nice(nice)),
            },
            _ => None,
        }
    }

    fn of(tid: Option<u32>) -> Option<Pid> {
        tid.and_then(|tid| Pid::from_raw(i32::try_from(tid).ok()?))
    }

    fn number(tid: Option<u32>) -> libc::c_long {
        tid.map_or(0, libc::c_long::from)
    }

    fn set_policy(tid: Option<u32>, policy: libc::c_int, level: libc::c_int) -> io::Result<()> {
        // SAFETY: the kernel reads one `int`, its `struct sched_param`, through the pointer, which
        // outlives the call.
        let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, number(tid), policy, &raw const level) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Policy and real-time priority.
    fn policy(tid: Option<u32>) -> Option<(libc::c_int, libc::c_int)> {
        let mut level: libc::c_int = 0;
        // SAFETY: the first call takes no pointer; the second has the kernel write one `int`, its
        // `struct sched_param`, through a pointer that outlives the call and is not aliased.
        let (policy, done) = unsafe {
            let policy = libc::syscall(libc::SYS_sched_getscheduler, number(tid));
            (policy, libc::syscall(libc::SYS_sched_getparam, number(tid), &raw mut level))
        };
        // The kernel may add a flag for child threads: remove it.
        (policy >= 0 && done == 0).then_some(((policy as libc::c_int) & !libc::SCHED_RESET_ON_FORK, level))
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::PriorityError;
    use crate::profile::Priority;

    pub(super) fn set(_tid: Option<u32>, priority: Priority) -> Result<(), PriorityError> {
        if priority == Priority::Normal { Ok(()) } else { Err(PriorityError::Unsupported) }
    }

    pub(super) fn found(_tid: Option<u32>) -> Option<Priority> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{PriorityError, found, set};
    use crate::profile::Priority;

    fn on_own_thread<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(body).join().unwrap()
    }

    #[test]
    fn what_is_set_is_found_and_what_is_refused_leaves_the_thread_as_it_was() {
        for asked in [Priority::Fifo(1), Priority::Nice(-1), Priority::Nice(19)] {
            let (before, done, after) = on_own_thread(move || {
                let before = found(None);
                (before, set(None, asked), found(None))
            });
            match done {
                Ok(()) => assert_eq!(after, Some(asked)),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains(&asked.to_string()) && said.contains("ulimit"), "{said}");
                    assert_eq!(after, before);
                }
            }
        }
    }

    #[test]
    fn a_thread_goes_back_to_what_its_process_has() {
        let (own, after) = on_own_thread(|| {
            let own = found(None);
            let _permitted = set(None, Priority::Fifo(1));
            set(None, Priority::Normal).unwrap();
            (own, found(None))
        });
        assert_eq!(own, after);
    }

    #[test]
    fn a_thread_that_is_not_there_is_refused() {
        assert!(matches!(set(Some(u32::MAX >> 1), Priority::Fifo(1)), Err(PriorityError::Refused { .. })));
        assert_eq!(found(Some(u32::MAX >> 1)), None);
    }
}
