//! The system's own clocks, monotonic and UTC: reference and fallback of the counter.
//!
//! Any thread; reading never blocks and never allocates. Nothing to bound. Never steps in the monotonic clock.

use crate::units::Nanos;

/// Nanoseconds since some moment in the past; never goes back.
pub(super) fn monotonic() -> Nanos {
    imp::monotonic()
}

/// Nanoseconds since 1970.
pub(super) fn utc() -> Nanos {
    imp::utc()
}

/// CPU time that thread `tid` of this process has used; `None` where the system does not report it.
pub(super) fn ran(tid: u32) -> Option<Nanos> {
    imp::ran(tid)
}

#[cfg(unix)]
mod imp {
    use crate::units::Nanos;
    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn monotonic() -> Nanos {
        nanos(ClockId::Monotonic)
    }

    pub(super) fn utc() -> Nanos {
        nanos(ClockId::Realtime)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn ran(tid: u32) -> Option<Nanos> {
        // The kernel's number of a thread's own clock: !tid << 3, per thread (4), as the scheduler counts (2).
        let clock = (!tid).cast_signed() << 3 | 6;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place for the answer; a number that is no clock is refused with an error.
        let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
        let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
        (failed == 0).then_some(Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos)))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn ran(_: u32) -> Option<Nanos> {
        None
    }

    fn nanos(id: ClockId) -> Nanos {
        let time = clock_gettime(id);
        // Both clocks count from a zero in the past: a negative reading means that the machine's
        // date lies before 1970.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)))
    }
}

/// The standard library's clocks; the monotonic one counts from its first reading.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "this is the one source of time")]
mod imp {
    use crate::units::Nanos;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant, SystemTime};

    pub(super) fn monotonic() -> Nanos {
        static ZERO: OnceLock<Instant> = OnceLock::new();
        nanos(ZERO.get_or_init(Instant::now).elapsed())
    }

    pub(super) fn utc() -> Nanos {
        nanos(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }

    pub(super) fn ran(_: u32) -> Option<Nanos> {
        None
    }

    fn nanos(span: Duration) -> Nanos {
        Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}
