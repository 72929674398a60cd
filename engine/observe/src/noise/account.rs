//! Attributes the rest of the gaps, which no thread's switch explains, to what interrupted the core.
//!
//! Pure. Bounded by the windows of a measurement, which are kept until its end.
//!
//! # The rule
//! In each window the counters say what happened there, and the gaps how long it took together. What each source takes
//! on average is fitted to all windows: the least squares of time against counts, no cost below zero. A part that is
//! the same in every window, whatever was counted, is fitted beside them: it is below the kernel, such as the ticks of
//! a hypervisor. A window's time then belongs to all of these, in proportion to counts times costs. Time beyond
//! [`EXCESS`] times what they would take on average is not theirs. A window without any source is below the kernel.

use super::Kind;
use serde::Serialize;

/// By how much a window may exceed the fitted time.
const EXCESS: f64 = 10.0;
/// Rounds of the fit; it ends sooner when no cost moves by a nanosecond.
const ROUNDS_MAX: usize = 200;
/// Shares below this part of a core's noise are summed up.
const SMALL: f64 = 0.001;

/// A part of the noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// What it is.
    pub what: Kind,
    /// Who or which, in words.
    pub who: String,
    /// Its time in all gaps, nanoseconds.
    pub ns: u64,
    /// The same as a part of all gaps of the core, 0..=1.
    pub share: f64,
    /// How many there were, if that was counted.
    pub count: Option<u64>,
}

impl Share {
    /// Time of other threads.
    pub(super) fn task(who: String, ns: u64) -> Share {
        Share { what: Kind::Task, who, ns, share: 0.0, count: None }
    }
}

/// What was counted between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Window {
    /// Time in gaps that no recorded switch explains, nanoseconds.
    pub(super) rest_ns: u64,
    /// Time in which the thread stood in the scheduler's queue, nanoseconds; 0 if switches are recorded.
    pub(super) queued_ns: u64,
    /// Interrupts and softirqs by name.
    pub(super) counts: Vec<(Kind, String, u64)>,
}

/// The windows of one core.
#[derive(Default)]
pub(super) struct Account {
    /// Sources by first appearance, with all their counts.
    sources: Vec<(Kind, String, u64)>,
    /// Of each window with gaps: its time, and its counts by source.
    windows: Vec<(f64, Vec<(usize, f64)>)>,
    queued_ns: u64,
    /// Time stolen by the hypervisor in all windows, nanoseconds.
    pub(super) steal_ns: u64,
    /// Time in gaps of which records were lost, nanoseconds.
    pub(super) unknown_ns: u64,
}

impl Account {
    pub(super) fn add(&mut self, window: Window) {
        let queued_ns = window.queued_ns.min(window.rest_ns);
        self.queued_ns += queued_ns;
        let mut counts = Vec::new();
        for (kind, name, count) in window.counts {
            let at = self.sources.iter().position(|(of, known, _)| (*of, known) == (kind, &name));
            let at = at.unwrap_or_else(|| {
                self.sources.push((kind, name, 0));
                self.sources.len() - 1
            });
            self.sources[at].2 += count;
            counts.push((at, count as f64));
        }
        // Windows without a gap count, too: what happens in them takes less than a gap.
        self.windows.push(((window.rest_ns - queued_ns) as f64, counts));
    }

    /// All shares but those of recorded tasks.
    pub(super) fn shares(&self) -> Vec<Share> {
        let (costs, each_window) = self.costs();
        let (mut by_source, mut below, mut unknown) = (vec![0.0; costs.len()], 0.0, self.unknown_ns as f64);
        for (time, counts) in &self.windows {
            let fitted = each_window + counts.iter().map(|(at, count)| costs[*at] * count).sum::<f64>();
            if counts.is_empty() {
                below += time;
            } else if fitted <= 0.0 {
                unknown += time;
            } else {
                let theirs = time.min(fitted * EXCESS);
                unknown += time - theirs;
                below += theirs * each_window / fitted;
                counts.iter().for_each(|(at, count)| by_source[*at] += theirs * costs[*at] * count / fitted);
            }
        }
        let steal = (self.steal_ns as f64).min(below + unknown);
        let of_below = steal.min(below);
        (below, unknown) = (below - of_below, unknown - (steal - of_below));
        let total: f64 = by_source.iter().sum::<f64>() + below + unknown + steal;
        let mut shares = Vec::new();
        for ((kind, name, count), time) in self.sources.iter().zip(by_source) {
            if time > total * SMALL {
                shares.push(Share { what: *kind, who: name.clone(), ns: time as u64, share: 0.0, count: Some(*count) });
            } else {
                unknown += time;
            }
        }
        let mut add = |what: Kind, who: &str, ns: u64| {
            if ns > 0 {
                shares.push(Share { what, who: who.to_owned(), ns, share: 0.0, count: None });
            }
        };
        add(Kind::Task, "other threads; who is not visible", self.queued_ns);
        add(Kind::Steal, "the hypervisor, by the kernel's account", steal as u64);
        add(Kind::BelowKernel, "nothing that the kernel counts: hypervisor, firmware, hardware", below as u64);
        add(Kind::Unattributed, "no source explains it", unknown as u64);
        shares
    }

    /// The mean time of each source, and of what is the same in every window, nanoseconds: cyclic coordinate descent,
    /// each at least 0. The named sources come first: what they explain as well is theirs.
    fn costs(&self) -> (Vec<f64>, f64) {
        let each_window = self.sources.len();
        let mut costs = vec![0.0f64; each_window + 1];
        let mut squares = vec![0.0f64; costs.len()];
        let mut of_source: Vec<Vec<(usize, f64)>> = vec![Vec::new(); costs.len()];
        for (window, (_, counts)) in self.windows.iter().enumerate() {
            for (at, count) in counts.iter().copied().chain([(each_window, 1.0)]) {
                squares[at] += count * count;
                of_source[at].push((window, count));
            }
        }
        let mut left: Vec<f64> = self.windows.iter().map(|(time, _)| *time).collect();
        for _ in 0..ROUNDS_MAX {
            let mut moved = 0.0f64;
            for at in 0..costs.len() {
                let slope: f64 = of_source[at].iter().map(|(window, count)| count * left[*window]).sum();
                let cost = if squares[at] > 0.0 { (costs[at] + slope / squares[at]).max(0.0) } else { 0.0 };
                let change = cost - costs[at];
                if change != 0.0 {
                    of_source[at].iter().for_each(|(window, count)| left[*window] -= change * count);
                    (costs[at], moved) = (cost, moved.max(change.abs()));
                }
            }
            if moved < 1.0 {
                break;
            }
        }
        let each_window = costs.pop().unwrap_or_default();
        (costs, each_window)
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Kind, Share, Window};

    fn window(rest_ns: u64, counts: &[(Kind, &str, u64)]) -> Window {
        let counts = counts.iter().map(|(kind, name, count)| (*kind, (*name).to_owned(), *count)).collect();
        Window { rest_ns, queued_ns: 0, counts }
    }

    fn ns(shares: &[Share], kind: Kind, who: &str) -> u64 {
        shares.iter().filter(|share| share.what == kind && share.who.contains(who)).map(|share| share.ns).sum()
    }

    #[test]
    fn two_sources_in_the_same_windows_get_what_each_takes() {
        let mut account = Account::default();
        for at in 0..400u64 {
            let (ticks, net) = (u64::from(at % 4 == 0), at % 3);
            account.add(window(
                ticks * 8_000 + net * 20_000,
                &[(Kind::Interrupt, "LOC", ticks), (Kind::Softirq, "NET_RX", net)]
                    .map(|(kind, name, count)| (kind, name, count)),
            ));
        }
        let shares = account.shares();
        let (ticks, net) = (ns(&shares, Kind::Interrupt, "LOC"), ns(&shares, Kind::Softirq, "NET_RX"));
        assert!(ticks.abs_diff(100 * 8_000) < 8_000 && net.abs_diff(399 * 20_000) < 40_000, "{shares:?}");
    }

    #[test]
    fn what_comes_in_every_window_is_below_the_kernel_and_not_the_ticks() {
        let mut account = Account::default();
        for at in 0..1_000u64 {
            let ticks = u64::from(at % 4 == 0);
            let counts = [(Kind::Interrupt, "LOC", ticks)];
            account.add(window(11_000 + ticks * 8_000, &counts[..ticks as usize]));
        }
        let shares = account.shares();
        let (ticks, below) = (ns(&shares, Kind::Interrupt, "LOC"), ns(&shares, Kind::BelowKernel, ""));
        assert!(ticks.abs_diff(250 * 8_000) < 20_000 && below.abs_diff(1_000 * 11_000) < 20_000, "{shares:?}");
    }

    #[test]
    fn a_gap_without_any_source_is_below_the_kernel_and_stolen_time_comes_off_it() {
        let mut account = Account::default();
        account.add(window(300_000, &[]));
        assert_eq!(ns(&account.shares(), Kind::BelowKernel, ""), 300_000);
        account.steal_ns = 100_000;
        let shares = account.shares();
        assert_eq!((ns(&shares, Kind::BelowKernel, ""), ns(&shares, Kind::Steal, "")), (200_000, 100_000));
    }

    #[test]
    fn a_gap_much_longer_than_its_sources_take_is_not_theirs() {
        let mut account = Account::default();
        (0..1_000).for_each(|_| account.add(window(10_000, &[(Kind::Interrupt, "LOC", 1)])));
        account.add(window(2_000_000, &[(Kind::Interrupt, "LOC", 1)]));
        let shares = account.shares();
        let (theirs, unknown) = (ns(&shares, Kind::Interrupt, "LOC"), ns(&shares, Kind::Unattributed, ""));
        assert!(unknown > 1_800_000 && theirs < 10_200_000, "{shares:?}");
        assert_eq!(theirs.div_ceil(10) + unknown.div_ceil(10), 12_000_000 / 10);
    }

    #[test]
    fn time_in_the_queue_is_another_threads() {
        let mut account = Account::default();
        account.add(Window { queued_ns: 80_000, ..window(90_000, &[(Kind::Interrupt, "LOC", 1)]) });
        account.add(Window { queued_ns: 5_000, ..window(0, &[]) });
        let shares = account.shares();
        assert_eq!((ns(&shares, Kind::Task, ""), ns(&shares, Kind::Interrupt, "LOC")), (80_000, 10_000));
    }
}
