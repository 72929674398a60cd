//! The only source of time.
//!
//! Owns the tick counter (invariant TSC on x86-64, `cntvct_el0` on AArch64, the monotonic clock
//! where neither is reliable), its rate, and the virtual clock of the simulation. Any thread may
//! read it; reading never blocks and never allocates. Bounds: one calibration of [`CALIBRATION`] at
//! start. Never corrects itself afterwards: a [`WallClock`] on the cold side follows rate and UTC
//! from [`Correlation`]s, without effect on hot threads.

mod correlation;
mod counter;
mod system;
mod utc;
mod wall;

pub use correlation::{CORRELATE_EVERY, Correlation, READS};
pub use counter::CounterError;
pub use utc::{utc_text, utc_text_ns};
pub use wall::{PAIRS, Step, WallClock};

use crate::units::{Nanos, TickRate, Ticks};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Duration of the comparison of the counter with the monotonic clock at start.
pub const CALIBRATION: Duration = Duration::from_millis(20);

/// A tick counter with its rate and its zero.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    rate: TickRate,
    start: Ticks,
    started_utc: Duration,
}

#[derive(Clone, Debug)]
enum Source {
    Counter,
    Monotonic(CounterError),
    Virtual(Arc<AtomicU64>),
}

/// The system's clocks at one moment.
#[derive(Clone, Copy)]
struct System {
    monotonic: Nanos,
    utc: Nanos,
}

impl Clock {
    /// The machine's clock, calibrated: the counter, or monotonic time where the counter is not
    /// reliable. Takes [`CALIBRATION`].
    pub fn machine() -> Clock {
        Clock::machine_at(Path::new("/"))
    }

    /// As [`Clock::machine`], with the kernel's file tree below `root`.
    pub fn machine_at(root: &Path) -> Clock {
        Clock::strict_at(root).unwrap_or_else(|error| Clock::started(Source::Monotonic(error), TickRate::NANOS))
    }

    /// As [`Clock::machine_at`], but without the fallback to monotonic time.
    ///
    /// # Errors
    /// If the processor or the kernel does not guarantee the counter, or its rate is implausible.
    pub fn strict_at(root: &Path) -> Result<Clock, CounterError> {
        counter::verify(root)?;
        Ok(Clock::started(Source::Counter, counter_rate()?))
    }

    /// A clock that shows `nanos`, which its owner advances.
    pub fn virtual_time(nanos: Arc<AtomicU64>) -> Clock {
        let start = Ticks(nanos.load(Ordering::Relaxed));
        Clock { source: Source::Virtual(nanos), rate: TickRate::NANOS, start, started_utc: Duration::ZERO }
    }

    /// A stopped clock that shows `at`, for reading records of another clock with that start and
    /// rate.
    pub fn standing(at: Ticks, start: Ticks, rate: TickRate) -> Clock {
        let source = Source::Virtual(Arc::new(AtomicU64::new(at.0)));
        Clock { source, rate, start, started_utc: Duration::ZERO }
    }

    fn started(source: Source, rate: TickRate) -> Clock {
        let mut clock = Clock { source, rate, start: Ticks(0), started_utc: Duration::ZERO };
        let now = Correlation::take(&clock);
        (clock.start, clock.started_utc) = (now.ticks, Duration::from_nanos(now.utc.0));
        clock
    }

    /// Now.
    #[inline]
    pub fn ticks(&self) -> Ticks {
        match &self.source {
            Source::Counter => Ticks(counter::read()),
            Source::Monotonic(_) => Ticks(system::monotonic().0),
            Source::Virtual(nanos) => Ticks(nanos.load(Ordering::Relaxed)),
        }
    }

    /// The system's clocks for comparison with the ticks. Virtual time is its own monotonic time
    /// and its own UTC.
    fn system(&self) -> System {
        match &self.source {
            Source::Counter | Source::Monotonic(_) => system_now(),
            Source::Virtual(nanos) => {
                let now = Nanos(nanos.load(Ordering::Relaxed));
                System { monotonic: now, utc: now }
            }
        }
    }

    /// CPU time that thread `tid` of this process has used; `None` where the system does not report
    /// it.
    pub fn ran(tid: u32) -> Option<Nanos> {
        system::ran(tid)
    }

    /// Ticks per nanosecond and back.
    #[inline]
    pub fn rate(&self) -> TickRate {
        self.rate
    }

    /// The moment this clock was made.
    #[inline]
    pub fn start(&self) -> Ticks {
        self.start
    }

    /// Nanoseconds from this clock's start to `at`; zero before it.
    #[inline]
    pub fn since_start(&self, at: Ticks) -> Nanos {
        self.rate.nanos(at.since(self.start))
    }

    /// Wall time at this clock's start, since 1970.
    pub fn started_utc(&self) -> Duration {
        self.started_utc
    }

    /// Source of the ticks, as text.
    pub fn source_name(&self) -> &'static str {
        match &self.source {
            Source::Counter => "invariant counter",
            Source::Monotonic(CounterError::NotInvariant) => "monotonic clock (no invariant counter found)",
            Source::Monotonic(CounterError::Distrusted { .. }) => "monotonic clock (the kernel distrusts the counter)",
            Source::Monotonic(CounterError::Implausible { .. }) => {
                "monotonic clock (the counter has no plausible rate)"
            }
            Source::Virtual(_) => "virtual",
        }
    }

    /// Why the ticks do not come from the counter; `None` if they do, or the clock is not the
    /// machine's.
    pub fn degraded(&self) -> Option<&CounterError> {
        match &self.source {
            Source::Monotonic(error) => Some(error),
            Source::Counter | Source::Virtual(_) => None,
        }
    }
}

/// UTC in whole seconds since 1970, for names made before the engine has a clock.
pub fn utc_now_s() -> i64 {
    i64::try_from(system::utc().0 / 1_000_000_000).unwrap_or(i64::MAX)
}

fn system_now() -> System {
    System { monotonic: system::monotonic(), utc: system::utc() }
}

/// Compares the counter with the monotonic clock.
fn counter_rate() -> Result<TickRate, CounterError> {
    let take = || correlation::narrowest(|| Ticks(counter::read()), system_now);
    let from = take();
    let until = Nanos(from.monotonic.0 + CALIBRATION.as_nanos() as u64);
    while system::monotonic() < until {
        std::hint::spin_loop();
    }
    let to = take();
    let passed_s = (to.monotonic.0 - from.monotonic.0) as f64 / 1e9;
    let hz = to.ticks.since(from.ticks).0 as f64 / passed_s;
    if !(1e6..=2e10).contains(&hz) {
        return Err(CounterError::Implausible { hz: hz as u64 });
    }
    Ok(TickRate::from_hz(hz))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "harness")]
    use super::{Clock, Correlation, CounterError, WallClock};
    use crate::units::{Nanos, TickRate, Ticks};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_machine_clock_agrees_with_the_monotonic_clock_within_a_percent() {
        let clock = Clock::machine();
        let agrees = || {
            let (wall, from) = (std::time::Instant::now(), clock.ticks());
            while wall.elapsed().as_millis() < 20 {
                std::hint::spin_loop();
            }
            let (elapsed, span) = (wall.elapsed().as_nanos() as f64, clock.rate().nanos(clock.ticks().since(from)));
            (span.0 as f64 / elapsed - 1.0).abs() < 0.01
        };
        // A descheduling between two reads also causes a difference: one undisturbed pair suffices,
        // and a wrong rate has none.
        assert!((0..100).any(|_| agrees()));
    }

    #[test]
    fn the_virtual_clock_moves_only_when_moved() {
        let nanos = Arc::new(AtomicU64::new(5));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        assert_eq!(clock.ticks(), Ticks(5));
        nanos.store(25, Ordering::Relaxed);
        assert_eq!(clock.since_start(clock.ticks()), Nanos(20));
    }

    fn tree(clocksource: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("current_clocksource"), clocksource).unwrap();
        root
    }

    #[test]
    fn a_counter_that_the_kernel_distrusts_is_refused_when_strict_and_replaced_otherwise() {
        let root = tree("hpet\n");
        let error = Clock::strict_at(root.path()).unwrap_err();
        // A processor without the counter is refused before the kernel is asked.
        let distrusted = CounterError::Distrusted { clocksource: "hpet".to_string() };
        assert!(error == distrusted || error == CounterError::NotInvariant, "{error}");
        let clock = Clock::machine_at(root.path());
        assert_eq!(clock.degraded(), Some(&error));
        assert!(clock.source_name().starts_with("monotonic clock ("), "{}", clock.source_name());
        assert_eq!(clock.rate(), TickRate::NANOS);
        let (from, pair) = (clock.ticks(), Correlation::take(&clock));
        assert!(from <= pair.ticks && pair.ticks <= clock.ticks());
    }

    #[test]
    fn a_strict_clock_is_the_counter() {
        match Clock::strict_at(tree("tsc\n").path()) {
            Ok(clock) => assert_eq!((clock.source_name(), clock.degraded()), ("invariant counter", None)),
            Err(error) => assert_eq!(error, CounterError::NotInvariant),
        }
    }

    #[test]
    fn the_wall_clock_of_the_machine_says_what_the_system_says() {
        let clock = Clock::machine();
        let mut wall = WallClock::new(Correlation::take(&clock), clock.rate());
        wall.note(Correlation::take(&clock));
        let before = std::time::SystemTime::now();
        let found = std::time::Duration::from_nanos(wall.utc(clock.ticks()).0);
        let after = std::time::SystemTime::now();
        let slack = std::time::Duration::from_millis(1);
        assert!(std::time::UNIX_EPOCH + found + slack >= before, "{found:?} before {before:?}");
        assert!(std::time::UNIX_EPOCH + found <= after + slack, "{found:?} after {after:?}");
        assert!(clock.started_utc() <= found);
    }

    #[test]
    fn virtual_time_is_its_own_utc() {
        let clock = Clock::virtual_time(Arc::new(AtomicU64::new(42)));
        let pair = Correlation::take(&clock);
        assert_eq!((pair.ticks, pair.monotonic, pair.utc), (Ticks(42), Nanos(42), Nanos(42)));
    }
}
