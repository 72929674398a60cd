//! The system's own clocks, monotonic and UTC: what the counter is compared with, and its stand-in.
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

    fn nanos(id: ClockId) -> Nanos {
        let time = clock_gettime(id);
        // Both count from a zero in the past: a negative reading is a machine whose date lies before 1970.
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

    fn nanos(span: Duration) -> Nanos {
        Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}
