//! What took a hot thread's core away since the start, for the thread's block of the board.
//!
//! Owns the sums of one thread. On the watchdog's thread, from the baselines that it takes anyway. Bounds:
//! [`KNOWN_MAX`] names; the least of them makes room for another. Names are looked up once a second, and only of
//! threads that had the core for [`NAMED_NS_MIN`] in it.
//!
//! # Why a name needs records of the core
//! Only these say who ran. Without them the block of the board has the competitor that the scan of neighbours saw.

use super::Baseline;
use crate::board::{self, ThreadBlock};
use crate::stall::account::OtherThread;
use crate::stall::observe::Observations;
use crate::stall::switches::{Switched, Switches};

/// Time between two looks at names.
const NAMES_NS: u64 = 1_000_000_000;
/// Less in such a time is not worth the files that a name takes.
const NAMED_NS_MIN: u64 = 1_000_000;
/// Programs looked up each time.
const LOOKED_UP: usize = 3;
/// Programs kept.
const KNOWN_MAX: usize = 32;
/// Threads kept until they are looked up.
const THREADS_MAX: usize = 256;

/// The account of one thread.
#[derive(Debug, Default)]
pub(super) struct NoiseAccount {
    span_ns: u64,
    ready_ns: u64,
    stolen_ns: u64,
    interrupts: u64,
    /// Process, thread and time of those that ran there since the last look at names.
    ran: Vec<(u32, u32, u64)>,
    since_names_ns: u64,
    known: Vec<OtherThread>,
}

impl NoiseAccount {
    /// Adds the time between two baselines, and who ran there in it if that is recorded.
    pub(super) fn add(&mut self, before: &Baseline, after: &Baseline, switched: Option<Switched>) {
        let mut seen = Observations::default();
        seen.between(&before.0, &after.0);
        seen.on_core(&before.1, &after.1);
        self.span_ns += seen.span_ns;
        self.since_names_ns += seen.span_ns;
        self.ready_ns += seen.waited_ns.unwrap_or(0);
        self.stolen_ns += seen.steal_ns.unwrap_or(0);
        let count = |base: &Baseline| base.1.interrupts.map(|seen| seen.sum());
        self.interrupts += count(after).zip(count(before)).map_or(0, |(after, before)| after.saturating_sub(before));
        for (pid, tid, ns) in switched.into_iter().flat_map(|switched| switched.by) {
            if let Some((_, _, sum)) = self.ran.iter_mut().find(|(_, known, _)| *known == tid) {
                *sum += ns;
            } else if self.ran.len() < THREADS_MAX {
                self.ran.push((pid, tid, ns));
            }
        }
    }

    /// Publishes the sums, and once a second who had the core for longest.
    pub(super) fn publish(&mut self, switches: &Switches, block: &ThreadBlock) {
        board::set(&block.noise_ready_ns, self.ready_ns);
        board::set(&block.noise_stolen_ns, self.stolen_ns);
        board::set(&block.noise_interrupts, self.interrupts);
        board::set(&block.noise_span_ns, self.span_ns);
        if self.since_names_ns < NAMES_NS {
            return;
        }
        self.since_names_ns = 0;
        let mut by = std::mem::take(&mut self.ran);
        if by.iter().map(|(_, _, ns)| ns).sum::<u64>() < NAMED_NS_MIN {
            return;
        }
        by.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
        for other in switches.named(&by, &self.known, LOOKED_UP) {
            self.learn(other);
        }
        if let Some(most) = self.known.iter().max_by_key(|other| other.ran_ns) {
            board::set(&block.noise_taken_ns, most.ran_ns);
            block.noise_taken_by.write(&most.who());
        }
    }

    /// Adds the time of a program to that of the same one.
    fn learn(&mut self, other: OtherThread) {
        let alike = |known: &&mut OtherThread| known.command == other.command && known.whose == other.whose;
        if let Some(known) = self.known.iter_mut().find(alike) {
            known.ran_ns += other.ran_ns;
            // Their number at once: which of them ran before is not known any more.
            (known.pid, known.processes) = (other.pid, known.processes.max(other.processes));
            return;
        }
        if self.known.len() == KNOWN_MAX
            && let Some(least) = (0..KNOWN_MAX).min_by_key(|at| self.known[*at].ran_ns)
        {
            self.known.swap_remove(least);
        }
        self.known.push(other);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Baseline, KNOWN_MAX, NoiseAccount, THREADS_MAX};
    use crate::board::{Board, Place, Shape, get};
    use crate::stall::account::{CoreAccount, OtherThread, ThreadAccount};
    use crate::stall::procfs::{CoreTimes, Interrupts};
    use crate::stall::switches::{Switched, Switches};

    const SECOND: u64 = 1_000_000_000;

    fn base(at_s: u64, waited_ns: u64, jiffies: u64, timer: u64) -> Baseline {
        let at_ns = at_s * SECOND;
        let account =
            ThreadAccount { at_ns, ran_ns: Some(at_ns - waited_ns), waited_ns: Some(waited_ns), ..Default::default() };
        let times = CoreTimes { steal: jiffies, ..CoreTimes::default() };
        let interrupts = Interrupts { timer: Some(timer), shootdowns: Some(2 * timer), others: 0 };
        (account, CoreAccount { at_ns, times: Some(times), interrupts: Some(interrupts), ..CoreAccount::default() })
    }

    #[test]
    fn the_times_between_baselines_add_up_and_whoever_had_the_core_for_longest_is_named() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let (block, switches, own) = (board.thread(0), Switches::default(), std::process::id());
        let mut account = NoiseAccount::default();
        let bases = [base(1, 0, 5, 100), base(2, 30_000_000, 6, 350), base(3, 30_000_000, 6, 600)];
        let ran = |by| Some(Switched { by, is_of_core: true, ..Switched::default() });
        account.add(&bases[0], &bases[1], ran(vec![(own, 7, 20_000_000), (1, 1, 5_000_000)]));
        account.publish(&switches, block);
        account.add(&bases[1], &bases[2], ran(vec![(1, 1, 900_000)]));
        account.publish(&switches, block);
        let words = [&block.noise_span_ns, &block.noise_ready_ns, &block.noise_stolen_ns, &block.noise_interrupts];
        assert_eq!(words.map(get), [2 * SECOND, 30_000_000, 10_000_000, 1_500]);
        assert_eq!(get(&block.noise_taken_ns), 20_000_000);
        assert!(block.noise_taken_by.read().starts_with("this process's own "), "{}", block.noise_taken_by.read());
    }

    #[test]
    fn a_name_is_looked_up_once_a_second_and_from_a_millisecond_on() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let named = |span_ns: u64, ran_ns: u64| {
            let board = Board::create(shape, Place::Private).unwrap();
            let mut account = NoiseAccount::default();
            let (first, mut second) = (base(1, 0, 0, 0), base(1, 0, 0, 0));
            second.0.at_ns += span_ns;
            let by = vec![(std::process::id(), 7, ran_ns / 2), (std::process::id(), 7, ran_ns - ran_ns / 2)];
            account.add(&first, &second, Some(Switched { by, is_of_core: true, ..Switched::default() }));
            account.publish(&Switches::default(), board.thread(0));
            get(&board.thread(0).noise_taken_ns)
        };
        assert_eq!(named(SECOND, 1_000_000), 1_000_000);
        assert_eq!(named(SECOND - 1, 1_000_000), 0, "not yet");
        assert_eq!(named(SECOND, 999_999), 0, "too little");
        let mut account = NoiseAccount::default();
        let by = (0..300).map(|tid| (1, tid, 1)).collect();
        account.add(&base(1, 0, 0, 0), &base(2, 0, 0, 0), Some(Switched { by, ..Switched::default() }));
        assert_eq!(account.ran.len(), THREADS_MAX);
    }

    #[test]
    fn a_program_that_comes_again_is_one_and_the_least_known_makes_room() {
        let mut account = NoiseAccount::default();
        let other = |pid: u32, name: &str, ran_ns| OtherThread::seen(pid, name.to_owned(), ran_ns, false);
        account.learn(other(1, "cc1", 5));
        account.learn(OtherThread { processes: 14, ..other(2, "cc1", 7) });
        account.learn(other(3, "cc1", 1));
        assert_eq!((account.known.len(), account.known[0].ran_ns, account.known[0].processes), (1, 13, 14));
        account.learn(OtherThread { whose: ", user 7".to_owned(), ..other(4, "cc1", 2) });
        assert_eq!(account.known.len(), 2, "somebody else's");
        (0..2 * KNOWN_MAX).for_each(|n| account.learn(other(9, &format!("p{n}"), 20 + n as u64)));
        assert_eq!(account.known.len(), KNOWN_MAX);
        assert!(account.known.iter().all(|known| known.command != "cc1"), "{:?}", account.known);
    }
}
