//! The cold thread that watches for other programs on the hot cores, reports them, and yields the
//! cores if the profile says so.
//!
//! Owns the scan of `/proc` while the engine runs, the competitor words of each thread's block, and
//! one note. Runs on a cold thread, confined to cold cores, which it offers to other threads after
//! each process that it reads: a decode worker may share the core. Bounds: at most one scan per
//! [`LOOK`], and at most a fiftieth of a core's time; [`TASKS_MAX`](crate::host::pins::TASKS_MAX) threads
//! a scan. Never changes another program's thread.

use super::cold::{ColdThreads, UntilEnded};
use super::header;
use super::orders::SharedOrders;
use super::yield_policy::{Holds, Move, YieldPolicy, waits_too_long};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::host::neighbours::{Competitor, Scan, competitors, own_uid, scan, user};
use crate::profile::Courtesy;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Period of the scans.
const LOOK: Duration = Duration::from_secs(1);
/// Pause after a scan, in multiples of its work: many threads make scans rarer.
const REST_PER_LOOK: u32 = 50;
/// Shorter use or wait within a scan is not reported: it is normal on any machine.
const SHOWN_NS_MIN: u64 = 1_000_000;

/// Parts of the engine that the thread needs.
pub(super) struct Watch {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) orders: SharedOrders,
    /// The core of each hot thread.
    pub(super) cores: Vec<Option<u32>>,
    pub(super) threads: ColdThreads,
}

impl Watch {
    /// Starts the thread; `None` if no thread is pinned to a core.
    pub(super) fn spawn(self) -> io::Result<Option<UntilEnded>> {
        if self.cores.iter().flatten().next().is_none() {
            return Ok(None);
        }
        let threads = self.threads.clone();
        threads.spawn_until_ended("neighbours", move |stopped| self.run(stopped)).map(Some)
    }

    fn run(self, stopped: &Receiver<()>) {
        let (mut policy, mut note) = (YieldPolicy::default(), header::Note::default());
        let (mut before, mut worked) = self.look();
        while stopped.recv_timeout(LOOK.max(worked * REST_PER_LOOK)) == Err(RecvTimeoutError::Timeout) {
            let after;
            (after, worked) = self.look();
            let competitors = competitors(&before, &after);
            self.show(&competitors);
            self.behave(&mut policy, &mut note, after.at_ns, &competitors);
            before = after;
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock.since_start(self.clock.ticks()).0
    }

    /// A scan, and how long it worked: without the time for which other threads had the core.
    fn look(&self) -> (Scan, Duration) {
        let cores: Vec<u32> = self.cores.iter().copied().flatten().collect();
        let (start_ns, mut others_ns) = (self.now_ns(), 0);
        let mut yield_core = || {
            let before_ns = self.now_ns();
            std::thread::yield_now();
            others_ns += self.now_ns() - before_ns;
        };
        let scan = scan(Path::new("/"), std::process::id(), &cores, start_ns, &mut yield_core);
        let worked_ns = (self.now_ns() - start_ns).saturating_sub(others_ns);
        (scan, Duration::from_nanos(worked_ns))
    }

    /// Publishes the worst competitor on each thread's core.
    fn show(&self, competitors: &[Competitor]) {
        for (index, core) in self.cores.iter().enumerate() {
            let here = competitors.iter().filter(|competitor| Some(competitor.core) == *core);
            let worst = here.max_by_key(|competitor| competitor.waited_ns + competitor.ran_ns);
            let Some(worst) = worst.filter(|competitor| competitor.waited_ns + competitor.ran_ns >= SHOWN_NS_MIN)
            else {
                continue;
            };
            let block = self.board.thread(index);
            // A reader during the update sees no competitor rather than a mixture of two.
            board::set(&block.competitor_pid, 0);
            block.competitor_user.write(&user(Path::new("/"), worst.pid).unwrap_or_default());
            block.competitor_command.write(&worst.command);
            board::set(&block.competitor_waited_ns, worst.waited_ns);
            board::set(&block.competitor_ran_ns, worst.ran_ns);
            board::set(&block.competitor_span_ns, worst.span_ns);
            board::set(&block.competitor_seen, self.clock.ticks().0);
            board::add(&block.competitor_samples, 1);
            board::set(&block.competitor_pid, u64::from(worst.pid));
        }
    }

    fn behave(&self, policy: &mut YieldPolicy, note: &mut header::Note, now_ns: u64, competitors: &[Competitor]) {
        let mut orders = self.orders.lock();
        let rule = orders.courtesy().cloned();
        let waits = rule.as_ref().and_then(|rule| waits_too_long(competitors, own_uid(), rule));
        let holds = if orders.holds_cores() { Holds::Cores } else { Holds::Nothing };
        match (policy.step(now_ns, rule.as_ref(), waits, holds), waits) {
            (Some(Move::GiveWay), Some(competitor)) => {
                let quiet_s = rule.map_or(0, |rule| rule.quiet_s);
                let who = named(competitor);
                note.write(&self.board, &format!("courtesy: spin Lab for {who}, until {quiet_s} s are quiet"));
                orders.give_way(&format!("courtesy: {who}"), &self.board);
            }
            (Some(_), _) => {
                orders.resume(&self.board);
                note.write(&self.board, &returned(rule.as_ref()));
            }
            (None, _) => {}
        }
    }
}

/// Why the profile's policies are in force again.
fn returned(rule: Option<&Courtesy>) -> String {
    match rule {
        Some(Courtesy { quiet_s, .. }) => format!(
            "courtesy: for {quiet_s} s no other user's thread has waited too long; the profile's spin policy is back"
        ),
        None => "courtesy: the profile in force has none; its spin policy is back".to_owned(),
    }
}

/// `make (process 4711, user ada), who waited 312 ms of 1000 ms for core 3`.
fn named(competitor: &Competitor) -> String {
    let user = user(Path::new("/"), competitor.pid).unwrap_or_else(|| "not visible".to_owned());
    let (waited_ms, span_ms) = (competitor.waited_ns / 1_000_000, competitor.span_ns / 1_000_000);
    let Competitor { command, pid, core, .. } = competitor;
    format!("{command} (process {pid}, user {user}), who waited {waited_ms} ms of {span_ms} ms for core {core}")
}

#[cfg(test)]
mod tests {
    use super::{Courtesy, returned};

    #[test]
    fn a_courtesy_that_the_profile_no_longer_has_does_not_say_that_nobody_waits() {
        assert!(returned(Some(&Courtesy { wait_ms: 100, quiet_s: 30 })).contains("for 30 s no other user's thread"));
        let without = returned(None);
        assert!(without.contains("has none") && !without.contains("wait"), "{without}");
    }
}
