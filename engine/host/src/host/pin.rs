//! Pins the calling thread to cores, and verifies it.
//!
//! Each thread calls this for itself at its start, never in a frame. One system call sets the
//! cores, two verify them. No retry.
//!
//! # Why verify
//!
//! A control group may grant fewer cores than asked for without an error, and some containers
//! report success for wrong cores. So the allowed cores and the current core are read back.

use super::check::ranges;
use super::{HostError, list};

/// Why a thread is not pinned as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PinError {
    #[error(
        "found core {} refused, expected this thread on it; take it out of the plan or add it to the process's cpuset",
        list(.cores)
    )]
    Refused { cores: Vec<u32> },
    #[error(
        "found this thread allowed on core {}, expected core {} only; look for a control group or a program that \
         changes affinities",
        ranges(.found), ranges(.expected)
    )]
    Mask { found: Vec<u32>, expected: Vec<u32> },
    #[error("found this thread running on core {found}, expected core {expected}; check that the core is online")]
    Elsewhere { found: usize, expected: u32 },
    #[error("found an empty list of cores, expected at least one; name the cores that the thread may use")]
    NoCores,
    #[error("found a system without verifiable thread affinity, expected Linux; run with threads that are not pinned")]
    Unsupported,
}

/// Binds the calling thread to one core and verifies it.
///
/// # Errors
/// If the system refuses, grants other cores, or cannot verify it.
pub fn pin_current_thread(core: u32) -> Result<(), PinError> {
    imp::pin_current_thread(core)
}

/// Pins the calling thread to a set of cores and verifies it. For cold threads.
///
/// # Errors
/// If the list is empty, or the system refuses, grants other cores, or cannot verify it.
pub fn confine_current_thread(cores: &[u32]) -> Result<(), PinError> {
    if cores.is_empty() {
        return Err(PinError::NoCores);
    }
    imp::confine_current_thread(cores)
}

/// Pins thread (or single-threaded process) `tid` to a set of cores. For drills and deliberate
/// competitors.
///
/// # Errors
/// If the list is empty, or the system refuses or cannot pin threads.
pub fn confine_thread(tid: u32, cores: &[u32]) -> Result<(), PinError> {
    if cores.is_empty() {
        return Err(PinError::NoCores);
    }
    imp::confine_thread(tid, cores)
}

/// Makes the calling thread's sleeps end on time: the kernel lets them last up to 50 µs longer
/// otherwise. No effect where the system has no such setting.
pub fn end_sleeps_on_time() {
    imp::end_sleeps_on_time();
}

/// The system's number of the calling thread; 0 if the system has none.
pub fn thread_id() -> u32 {
    imp::thread_id()
}

/// The cores that this process's main thread may use, ascending.
///
/// # Errors
/// If the system does not tell.
pub fn allowed_cores() -> Result<Vec<u32>, HostError> {
    imp::allowed_cores()
}

/// The cores that thread `tid` may use, ascending; `None` if the system does not tell.
pub fn cores_of_thread(tid: u32) -> Option<Vec<u32>> {
    imp::cores_of_thread(tid)
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::process::{Pid, getpid};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    use super::PinError;
    use crate::host::{CORES_MAX, HostError};

    const _: () = assert!(CORES_MAX as usize <= CpuSet::MAX_CPU);

    pub(super) fn pin_current_thread(core: u32) -> Result<(), PinError> {
        let refused = || PinError::Refused { cores: vec![core] };
        if core >= CORES_MAX || !core_affinity::set_for_current(core_affinity::CoreId { id: core as usize }) {
            return Err(refused());
        }
        verify(&[core])?;
        let found = sched_getcpu();
        if found == core as usize { Ok(()) } else { Err(PinError::Elsewhere { found, expected: core }) }
    }

    pub(super) fn confine_current_thread(cores: &[u32]) -> Result<(), PinError> {
        confine(None, cores)?;
        verify(cores)
    }

    pub(super) fn confine_thread(tid: u32, cores: &[u32]) -> Result<(), PinError> {
        let tid = Pid::from_raw(tid.cast_signed());
        confine(Some(tid.ok_or_else(|| PinError::Refused { cores: cores.to_vec() })?), cores)
    }

    fn confine(thread: Option<Pid>, cores: &[u32]) -> Result<(), PinError> {
        let refused = || PinError::Refused { cores: cores.to_vec() };
        let mut set = CpuSet::new();
        for &core in cores {
            if core >= CORES_MAX {
                return Err(refused());
            }
            set.set(core as usize);
        }
        sched_setaffinity(thread, &set).map_err(|_| refused())
    }

    pub(super) fn cores_of_thread(tid: u32) -> Option<Vec<u32>> {
        let tid = Pid::from_raw(tid.cast_signed())?;
        sched_getaffinity(Some(tid)).ok().map(|set| members(&set))
    }

    pub(super) fn end_sleeps_on_time() {
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
    }

    pub(super) fn thread_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
    }

    fn verify(cores: &[u32]) -> Result<(), PinError> {
        let mut expected = cores.to_vec();
        expected.sort_unstable();
        expected.dedup();
        let found = sched_getaffinity(None).map(|set| members(&set)).unwrap_or_default();
        if found == expected { Ok(()) } else { Err(PinError::Mask { found, expected }) }
    }

    pub(super) fn allowed_cores() -> Result<Vec<u32>, HostError> {
        match sched_getaffinity(Some(getpid())) {
            Ok(set) => Ok(members(&set)),
            Err(error) => Err(HostError::NoMask { reason: error.to_string() }),
        }
    }

    fn members(set: &CpuSet) -> Vec<u32> {
        (0..CORES_MAX).filter(|&core| set.is_set(core as usize)).collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::PinError;
    use crate::host::HostError;

    pub(super) fn pin_current_thread(_core: u32) -> Result<(), PinError> {
        Err(PinError::Unsupported)
    }

    pub(super) fn confine_current_thread(_cores: &[u32]) -> Result<(), PinError> {
        Err(PinError::Unsupported)
    }

    pub(super) fn confine_thread(_: u32, _: &[u32]) -> Result<(), PinError> {
        Err(PinError::Unsupported)
    }

    pub(super) fn cores_of_thread(_: u32) -> Option<Vec<u32>> {
        None
    }

    pub(super) fn end_sleeps_on_time() {}

    pub(super) fn thread_id() -> u32 {
        0
    }

    pub(super) fn allowed_cores() -> Result<Vec<u32>, HostError> {
        let found = core_affinity::get_core_ids().unwrap_or_default();
        let cores: Vec<u32> = found.into_iter().filter_map(|core| u32::try_from(core.id).ok()).collect();
        if cores.is_empty() { Err(HostError::NoMask { reason: "not told".to_owned() }) } else { Ok(cores) }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

    use super::{PinError, allowed_cores, confine_current_thread, cores_of_thread, pin_current_thread, thread_id};

    /// Pins on a thread of its own, so that no other test inherits the mask.
    fn on_own_thread<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(body).join().unwrap()
    }

    #[test]
    fn a_pinned_thread_runs_on_its_core_and_no_other() {
        for core in allowed_cores().unwrap().into_iter().take(4) {
            on_own_thread(move || {
                pin_current_thread(core).unwrap();
                for _ in 0..1000 {
                    assert_eq!(rustix::thread::sched_getcpu(), core as usize);
                }
                assert_eq!(rustix::thread::sched_getaffinity(None).unwrap().count(), 1);
            });
        }
    }

    #[test]
    fn pinning_a_thread_leaves_the_allowed_cores_as_they_were() {
        let before = allowed_cores().unwrap();
        let core = before[0];
        let after = on_own_thread(move || {
            pin_current_thread(core).unwrap();
            allowed_cores().unwrap()
        });
        assert_eq!(before, after);
    }

    #[test]
    fn a_confined_thread_may_use_exactly_the_cores_named() {
        let cores = allowed_cores().unwrap();
        on_own_thread(move || {
            pin_current_thread(cores[0]).unwrap();
            confine_current_thread(&cores).unwrap();
            assert_eq!(cores_of_thread(thread_id()), Some(cores));
        });
    }

    #[test]
    fn a_core_that_does_not_exist_is_refused_in_one_sentence() {
        for core in [1023, 1024, u32::MAX] {
            let error = on_own_thread(move || pin_current_thread(core)).unwrap_err();
            assert_eq!(error, PinError::Refused { cores: vec![core] });
            assert!(error.to_string().starts_with(&format!("found core {core} refused, expected ")), "{error}");
            assert_eq!(on_own_thread(move || confine_current_thread(&[core])).unwrap_err(), error);
        }
        assert_eq!(confine_current_thread(&[]).unwrap_err(), PinError::NoCores);
    }

    #[test]
    fn a_set_that_is_only_partly_granted_is_an_error() {
        let mut cores = allowed_cores().unwrap();
        cores.truncate(1);
        cores.push(1023);
        let error = on_own_thread(move || confine_current_thread(&cores)).unwrap_err();
        assert!(matches!(error, PinError::Mask { .. }), "{error}");
    }
}
