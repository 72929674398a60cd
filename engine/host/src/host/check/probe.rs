//! The gap probe: measures how long each hot core is taken from a thread that only reads the clock.
//!
//! Owns one thread for each hot core; they are joined before [`run`] returns. Each thread spins on
//! its core and records the time between two clock reads. Whatever takes the core away shows as a
//! gap. Needs no privilege. Never runs on a core that another engine has claimed: the caller claims
//! the cores first.

use std::time::Duration;

use crate::board::histogram::HistogramBlock;
use crate::clock::Clock;
use crate::host::pin;
use crate::units::Nanos;
use zerocopy::FromBytes;

/// How long `pinwheel check` measures each core.
pub const SPAN: Duration = Duration::from_secs(1);
/// How long each core is measured before a start. Gaps rarer than 20 a second may not show.
pub const START_SPAN: Duration = Duration::from_millis(50);
/// A gap is a longer time than this between two reads of the clock.
pub const GAP_NS: u64 = 5_000;
/// Clock reads between two checks for the end of the measurement.
const READS_PER_LOOK: u32 = 64;

/// The gaps of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// How long it was measured, nanoseconds.
    pub span_ns: u64,
    /// Number of gaps: times between two reads above [`GAP_NS`].
    pub count: u64,
    /// Sum of the gaps, nanoseconds.
    pub lost_ns: u64,
    /// The longest gap, nanoseconds.
    pub max_ns: u64,
    /// The 99.99 % quantile of the times between two reads, nanoseconds.
    pub p9999_ns: u64,
}

/// Measures all of `cores` at once for `span`.
pub fn run(cores: &[u32], span: Duration, clock: &Clock) -> Vec<(u32, Result<Gaps, String>)> {
    let started: Vec<_> = cores
        .iter()
        .map(|&core| {
            let clock = clock.clone();
            let builder = std::thread::Builder::new().name(format!("probe-{core}"));
            #[expect(clippy::disallowed_methods, reason = "cold: the engine is not running yet")]
            (core, builder.spawn(move || watch(core, span, &clock)))
        })
        .collect();
    let joined = started.into_iter().map(|(core, started)| {
        let gaps = match started.map(std::thread::JoinHandle::join) {
            Ok(Ok(gaps)) => gaps,
            Ok(Err(_)) => Err("the probe panicked".to_owned()),
            Err(error) => Err(format!("no thread for the probe: {error}")),
        };
        (core, gaps)
    });
    joined.collect()
}

fn watch(core: u32, span: Duration, clock: &Clock) -> Result<Gaps, String> {
    pin::pin_current_thread(core).map_err(|error| error.to_string())?;
    let times = HistogramBlock::read_from_bytes(&vec![0; size_of::<HistogramBlock>()])
        .map_err(|_| "no memory for the probe".to_owned())?;
    let rate = clock.rate();
    let end = rate.ticks(Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)));
    let start = clock.ticks();
    let (mut last, mut count, mut lost_ns) = (start, 0, 0);
    while last.since(start) < end {
        for _ in 0..READS_PER_LOOK {
            let now = clock.ticks();
            let ns = rate.nanos(now.since(last)).0;
            times.record(ns);
            if ns > GAP_NS {
                count += 1;
                lost_ns += ns;
            }
            last = now;
        }
    }
    let seen = times.snapshot();
    let span_ns = rate.nanos(last.since(start)).0;
    Ok(Gaps { span_ns, count, lost_ns, max_ns: seen.max_ns(), p9999_ns: seen.quantile_ns(0.9999) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{SPAN, run};
    use crate::clock::Clock;
    use std::time::Duration;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_core_is_watched_for_the_span_and_one_that_is_not_there_is_not_visible() {
        let core = crate::host::pin::allowed_cores().unwrap()[0];
        let span = Duration::from_millis(20);
        assert!(span < SPAN);
        let seen = run(&[core, 1023], span, &Clock::machine());
        let gaps = seen[0].1.as_ref().unwrap();
        assert!(gaps.span_ns >= 20_000_000 && gaps.max_ns >= gaps.p9999_ns && gaps.lost_ns <= gaps.span_ns, "{gaps:?}");
        assert!(gaps.count == 0 || gaps.lost_ns > gaps.count * super::GAP_NS, "{gaps:?}");
        assert!(seen[1].1.is_err());
    }
}
