//! What takes a core away from a thread that only reads the clock, and for how long: the noise of the system.
//!
//! Owns one measuring thread for each core, which is joined before [`measure`] returns; the caller's thread reads the
//! kernel's counters beside them, on a core that is not measured at that time. Never runs on a core that another engine
//! has claimed: the caller claims the cores first. Linux only. Bounds: [`GAPS_MAX`] gaps and [`SOURCES_MAX`] sources in
//! a window.
//!
//! ```text
//! gap above 5 µs ─┬─ overlaps a switch of the core             task: who, by record of each switch
//!                 ├─ time that the thread stood in the queue   task: by the scheduler's account, who is not visible
//!                 ├─ overlaps an interrupt or a softirq        which, by the kernel's tracepoints
//!                 └─ the rest, in windows of a millisecond     what interrupted that core in the window, see `account`
//! ```
//!
//! # Why there are counters beside tracepoints
//! Tracepoints split each gap exactly. They need tracefs and a privilege, which containers and many lab machines do not
//! give to users. Counters are there for everybody; what they cannot attribute is said.

mod account;
mod probe;
mod tracepoints;

use crate::clock::{Clock, Correlation, utc_now_s};
use crate::files::read_lossy;
use crate::host::check::Interrupts;
pub use crate::host::check::probe::GAP_NS;
use crate::stall::account::OtherThread;
use crate::stall::procfs::{core_times, schedstat};
use crate::stall::switches::Switches;
use crate::units::Ticks;
pub use account::Share;
use account::{Account, Window};
use probe::{Gap, Probe};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::time::Duration;
use tracepoints::Tracepoints;

/// Time between two readings of the kernel's counters.
const WINDOW: Duration = Duration::from_millis(1);
/// Most gaps of a core that wait to be read.
const GAPS_MAX: usize = 1 << 14;
/// Most interrupts and softirqs of a core in one window.
const SOURCES_MAX: usize = 64;
/// Programs named for a core.
const NAMED_MAX: usize = 3;
/// A unit of the kernel's CPU times, nanoseconds: USER_HZ is 100 on every system that this runs on.
const TICK_NS: u64 = 10_000_000;

/// What took the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Another thread.
    Task,
    /// An interrupt of a device or of the timer.
    Interrupt,
    /// An interrupt from another core.
    InterProcessor,
    /// Work that the kernel does after an interrupt.
    Softirq,
    /// The hypervisor, by the kernel's account of stolen time.
    Steal,
    /// Nothing that the kernel counts: hypervisor, firmware or hardware.
    BelowKernel,
    /// Not known.
    Unattributed,
}

pinwheel_edge::names! { Kind:
    Task "task", Interrupt "interrupt", InterProcessor "inter-processor interrupt", Softirq "softirq",
    Steal "steal", BelowKernel "below the kernel", Unattributed "not attributed",
}

/// The noise of one core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreNoise {
    /// The core.
    pub core: u32,
    /// How long it was measured, nanoseconds.
    pub span_ns: u64,
    /// Number of gaps above [`GAP_NS`].
    pub gaps: u64,
    /// Sum of the gaps, nanoseconds.
    pub gap_ns: u64,
    /// The longest gap, nanoseconds.
    pub longest_ns: u64,
    /// The part of `gap_ns` that something explains, 0..=1; 1 without a gap.
    pub attributed_share: f64,
    /// Whether interrupts and softirqs were timed by the kernel's tracepoints. Otherwise their times
    /// are fitted to their counts.
    pub by_tracepoints: bool,
    /// What had the core, the largest share first; together they are `gap_ns`.
    pub by: Vec<Share>,
    /// What is not visible here and how to make it so; empty if all is.
    pub hidden: Vec<String>,
}

/// What was measured, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// UTC at the start, seconds since 1970.
    pub utc_s: i64,
    /// Each core, in ascending order.
    pub cores: Vec<CoreNoise>,
}

impl Noise {
    /// The largest share of all cores, with its core; `None` without any noise.
    pub fn worst(&self) -> Option<(&CoreNoise, &Share)> {
        let all = self.cores.iter().flat_map(|core| core.by.iter().map(move |share| (core, share)));
        let of_span =
            |(core, share): &(&CoreNoise, &Share)| (u128::from(share.ns) << 32) / u128::from(core.span_ns.max(1));
        all.max_by_key(of_span)
    }
}

/// Measures `cores` for `span`, each while the caller's thread reads from another of `allowed`, on which it then stays.
///
/// # Errors
/// If the system refuses a thread or a core.
pub fn measure(cores: &[u32], allowed: &[u32], span: Duration) -> io::Result<Noise> {
    let (utc_s, clock) = (utc_now_s(), Clock::machine());
    let mut found = Vec::new();
    // The core of the reading thread is measured in a second pass, from another one.
    let reader = allowed.iter().copied().find(|core| !cores.contains(core)).or_else(|| allowed.first().copied());
    let (last, first): (Vec<u32>, Vec<u32>) = cores.iter().partition(|core| Some(**core) == reader);
    for (measured, reader) in [(first, reader), (last, allowed.iter().copied().find(|core| Some(*core) != reader))] {
        if !measured.is_empty() {
            found.extend(pass(&measured, reader, span, &clock)?);
        }
    }
    found.sort_by_key(|core| core.core);
    Ok(Noise { utc_s, cores: found })
}

/// One core while it is measured.
struct Measured {
    probe: Probe,
    account: Account,
    /// The last window, which may still get a gap.
    before: Window,
    /// When the counters were read.
    read_at: Ticks,
    counters: Counters,
    /// Gaps that ended in this window.
    gaps: Vec<Gap>,
    found: CoreNoise,
    /// Time by thread that ran there: process, thread, nanoseconds.
    by: Vec<(u32, u32, u64)>,
    is_recorded: bool,
    tracepoints: Option<Tracepoints>,
}

/// What the kernel has counted on a core so far.
#[derive(Default)]
struct Counters {
    interrupts: Vec<(Kind, String, u64)>,
    queued_ns: u64,
    steal: u64,
}

fn pass(cores: &[u32], reader: Option<u32>, span: Duration, clock: &Clock) -> io::Result<Vec<CoreNoise>> {
    let probes: Vec<Probe> = cores.iter().map(|core| Probe::start(*core, span, clock)).collect::<io::Result<_>>()?;
    // Without another core the reader shares the measured one, and is named among its noise.
    if let Some(reader) = reader {
        crate::host::pin::confine_current_thread(&[reader]).map_err(io::Error::other)?;
    }
    let threads: Vec<(u32, Option<u32>)> = probes.iter().map(|probe| (probe.tid, Some(probe.core))).collect();
    let mut switches = Switches::open(&threads, clock);
    let root = tracepoints::root();
    let mut all: Vec<Measured> = probes
        .into_iter()
        .map(|probe| (root.as_ref().and_then(|root| Tracepoints::open(root, probe.core)), probe))
        .map(|(tracepoints, probe)| Measured {
            counters: Counters::read(probe.core, probe.tid),
            found: CoreNoise {
                core: probe.core,
                span_ns: 0,
                gaps: 0,
                gap_ns: 0,
                longest_ns: 0,
                attributed_share: 1.0,
                by_tracepoints: tracepoints.is_some(),
                by: Vec::new(),
                hidden: hidden(&switches, tracepoints.is_some()),
            },
            probe,
            account: Account::default(),
            before: Window::default(),
            read_at: clock.ticks(),
            gaps: Vec::new(),
            by: Vec::new(),
            is_recorded: false,
            tracepoints,
        })
        .collect();
    all.iter().for_each(|measured| measured.probe.go());
    loop {
        let is_over = all.iter().all(|measured| measured.probe.has_ended());
        pause();
        switches.learn_names();
        for (index, measured) in all.iter_mut().enumerate() {
            switches.drain(index);
            measured.step(&switches, index, clock);
        }
        if is_over {
            break;
        }
    }
    all.into_iter().map(|measured| measured.end(&switches)).collect()
}

/// What is not visible, and what would show it.
fn hidden(switches: &Switches, has_tracepoints: bool) -> Vec<String> {
    let of_switches = switches.hidden();
    let of_tracepoints = (!has_tracepoints).then(tracepoints::hidden);
    of_switches.into_iter().chain(of_tracepoints).map(|hidden| format!("{}: {}", hidden.what, hidden.how)).collect()
}

#[expect(clippy::disallowed_methods, reason = "the time between two readings, on a cold thread")]
fn pause() {
    std::thread::sleep(WINDOW);
}

impl Measured {
    /// Takes the gaps of the window that ends now, and what the kernel has counted in it.
    fn step(&mut self, switches: &Switches, index: usize, clock: &Clock) {
        let now = Counters::read(self.probe.core, self.probe.tid);
        let here = Correlation::take(clock);
        // Switches are recorded by the monotonic clock.
        let at_ns = |at: Ticks| here.monotonic.0.saturating_sub(clock.rate().nanos(here.ticks.since(at)).0);
        self.gaps.clear();
        self.probe.take(&mut self.gaps);
        let is_complete = self.tracepoints.as_mut().is_none_or(Tracepoints::drain);
        let mut window = Window::default();
        for gap in &self.gaps {
            let lost_ns = clock.rate().nanos(gap.end.since(gap.start)).0;
            self.found.gaps += 1;
            self.found.gap_ns += lost_ns;
            self.found.longest_ns = self.found.longest_ns.max(lost_ns);
            let mut task_ns = 0;
            if let Some(switched) = switches.between(index, at_ns(gap.start), at_ns(gap.end)) {
                self.is_recorded |= switched.is_of_core;
                for (pid, tid, ns) in switched.by {
                    task_ns += ns;
                    match self.by.iter_mut().find(|(_, known, _)| *known == tid) {
                        Some((_, _, sum)) => *sum += ns,
                        None => self.by.push((pid, tid, ns)),
                    }
                }
            }
            let mut rest_ns = lost_ns - task_ns.min(lost_ns);
            if let Some(tracepoints) = &mut self.tracepoints {
                rest_ns -= tracepoints.between(at_ns(gap.start), at_ns(gap.end), rest_ns);
            }
            // An interrupt is counted when it begins, and the gap is known when it ends.
            let own = if gap.start < self.read_at { &mut self.before } else { &mut window };
            match is_complete {
                true => own.rest_ns += rest_ns,
                false => self.account.unknown_ns += rest_ns,
            }
        }
        if !self.is_recorded {
            window.queued_ns = now.queued_ns.saturating_sub(self.counters.queued_ns);
        }
        for (kind, name, count) in &now.interrupts {
            let before = self.counters.interrupts.iter().find(|(of, known, _)| (of, known) == (kind, name));
            let count = count.saturating_sub(before.map_or(0, |(_, _, count)| *count));
            let is_traced = self.tracepoints.as_ref().is_some_and(|traced| traced.covers(*kind, name));
            if count > 0 && !is_traced && window.counts.len() < SOURCES_MAX {
                window.counts.push((*kind, name.clone(), count));
            }
        }
        self.account.steal_ns += now.steal.saturating_sub(self.counters.steal) * TICK_NS;
        self.account.add(std::mem::replace(&mut self.before, window));
        (self.counters, self.read_at) = (now, here.ticks);
    }

    /// The shares of the core.
    fn end(mut self, switches: &Switches) -> io::Result<CoreNoise> {
        self.found.span_ns = self.probe.join()?;
        self.account.add(self.before);
        let by = std::mem::take(&mut self.by);
        let all_ns: u64 = by.iter().map(|(_, _, ns)| ns).sum();
        let mut sorted = by;
        sorted.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
        let named = switches.named(&sorted, &[], NAMED_MAX);
        let others_ns = all_ns - named.iter().map(|other| other.ran_ns).sum::<u64>().min(all_ns);
        let mut shares: Vec<Share> =
            named.iter().map(|other| Share::task(OtherThread::who(other), other.ran_ns)).collect();
        if others_ns > 0 {
            shares.push(Share::task("other threads".to_owned(), others_ns));
        }
        shares.extend(self.tracepoints.iter().flat_map(Tracepoints::shares));
        shares.extend(self.account.shares());
        shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
        let all_ns = self.found.gap_ns.max(1) as f64;
        shares.iter_mut().for_each(|share| share.share = share.ns as f64 / all_ns);
        let unknown: f64 =
            shares.iter().filter(|share| share.what == Kind::Unattributed).map(|share| share.share).sum();
        (self.found.by, self.found.attributed_share) = (shares, 1.0 - unknown);
        Ok(self.found)
    }
}

/// By the kernel's names of interrupts that one core sends to another: on x86 `RES` and others, on
/// Arm `IPI0` and on.
fn kind_of(id: &str) -> Kind {
    let is_sent = ["RES", "CAL", "TLB", "IWI"].contains(&id) || id.starts_with("IPI");
    if is_sent { Kind::InterProcessor } else { Kind::Interrupt }
}

impl Counters {
    fn read(core: u32, tid: u32) -> Counters {
        let root = Path::new("/");
        let mut counters = Counters::default();
        for (id, words, count) in Interrupts::read(root).iter().flat_map(|seen| seen.of_core(core)) {
            counters.interrupts.push((kind_of(id), format!("{id} {words}"), count));
        }
        for (id, _, count) in Interrupts::read_soft(root).iter().flat_map(|seen| seen.of_core(core)) {
            counters.interrupts.push((Kind::Softirq, id.to_owned(), count));
        }
        let own = read_lossy(root.join(format!("proc/self/task/{tid}/schedstat")));
        counters.queued_ns = own.ok().and_then(|text| schedstat(&text)).map_or(0, |(_, queued_ns, _)| queued_ns);
        let times = read_lossy(root.join("proc/stat")).ok().and_then(|text| core_times(&text, core));
        counters.steal = times.map_or(0, |times| times.steal);
        counters
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{Kind, kind_of, measure};
    use crate::host::pin::{allowed_cores, pin_current_thread};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn interrupts_that_cores_send_to_each_other_are_known_on_x86_and_on_arm() {
        assert_eq!(["RES", "TLB", "IPI0", "IPI7"].map(kind_of), [Kind::InterProcessor; 4]);
        assert_eq!(["LOC", "36", "NMI"].map(kind_of), [Kind::Interrupt; 3]);
    }

    #[test]
    fn a_thread_that_works_on_the_core_is_the_task_that_takes_it_and_all_shares_are_the_gaps() {
        let allowed = allowed_cores().unwrap();
        let core = *allowed.last().unwrap();
        let is_over = AtomicBool::new(false);
        let noise = std::thread::scope(|scope| {
            scope.spawn(|| {
                pin_current_thread(core).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            // The reader moves to a core of its own, which the test's thread is not to keep.
            let measured = scope.spawn(|| measure(&[core], &allowed, Duration::from_millis(300))).join().unwrap();
            is_over.store(true, Ordering::Relaxed);
            measured.unwrap()
        });
        let found = &noise.cores[0];
        assert!(found.span_ns >= 300_000_000 && found.gaps > 0 && found.longest_ns <= found.gap_ns, "{found:?}");
        let sum = |what: Option<Kind>| -> u64 {
            found.by.iter().filter(|share| what.is_none_or(|what| share.what == what)).map(|share| share.ns).sum()
        };
        assert!(sum(None).abs_diff(found.gap_ns) <= found.gap_ns / 100, "{found:?}");
        assert!(sum(Some(Kind::Task)) > found.span_ns / 10, "{found:?}");
        assert!((0.0..=1.0).contains(&found.attributed_share), "{found:?}");
        assert_eq!(noise.worst().unwrap().0.core, core);
    }
}
