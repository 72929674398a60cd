//! Waiting by spin policy.
//!
//! Owns how long one thread has been idle and which spin setting it applies. Runs at the end of each frame of its
//! thread. Bounds: `Lab` yields once per idle frame after its budget, `Shared` sleeps at most `shared_sleep_ns`. Counts
//! idle time, not idle frames, so that a policy means the same on a slow machine and a fast one.
//!
//! # Why Lab stops yielding on a contended core
//! A thread that yields goes to the end of its core's queue. Under Linux 6.18 a thread that yields
//! beside one busy competitor stood still for up to 3 s, one that slept 200 µs instead for at most
//! 30 ms: a sleeper is owed the time it did not take. So a yield that lasted longer than
//! [`CONTENDED_NANOS`] turns the next [`CONTENDED_FOR_NANOS`] of yields into short sleeps. On a
//! core without competitors that never happens.

use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::spin::{SpinBudgets, SpinOrder, SpinPolicy, SpinWord};
use std::time::Duration;

/// A busy thread reads its spin setting once in so many frames, so that one that never idles still acknowledges it.
const LOOK_EVERY_BUSY_FRAMES: u32 = 1024;
/// A yield that takes longer than this met a competitor.
const CONTENDED_NANOS: u64 = 1_000_000;
/// For how long yields are then replaced by sleeps.
const CONTENDED_FOR_NANOS: u64 = 100_000_000;
/// Such a sleep.
const CONTENDED_SLEEP: Duration = Duration::from_micros(100);

/// What the end of a frame did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Went on, or paused for an instant.
    Spun,
    /// Gave the core to the scheduler, by a yield or a sleep.
    Yielded,
}

/// One thread's waiting.
#[derive(Debug)]
pub struct Idle {
    seen_raw: u64,
    order: SpinOrder,
    budgets: SpinBudgets,
    idle_since: Option<Ticks>,
    busy_frames: u32,
    /// Start of the frame that ended in a yield, until the next frame.
    yielded: Option<Ticks>,
    contended_until: Ticks,
    contended: Ticks,
    contended_for: Ticks,
}

impl Idle {
    /// Runs the word's present order; acknowledges it.
    pub fn new(word: &SpinWord, rate: TickRate) -> Idle {
        let (order, budgets) = word.requested();
        word.acknowledge(order);
        Idle {
            seen_raw: order.pack(),
            order,
            budgets,
            idle_since: None,
            busy_frames: 0,
            yielded: None,
            contended_until: Ticks(0),
            contended: rate.ticks(Nanos(CONTENDED_NANOS)),
            contended_for: rate.ticks(Nanos(CONTENDED_FOR_NANOS)),
        }
    }

    /// The order in force.
    pub fn order(&self) -> SpinOrder {
        self.order
    }

    /// The frame had work.
    #[inline]
    pub fn note_work(&mut self, now: Ticks, word: &SpinWord) {
        self.note_return(now);
        self.idle_since = None;
        self.busy_frames += 1;
        if self.busy_frames >= LOOK_EVERY_BUSY_FRAMES {
            self.busy_frames = 0;
            self.look(word);
        }
    }

    /// The frame that began at `now` had no work: waits as the policy says.
    #[inline]
    pub fn idle(&mut self, now: Ticks, word: &SpinWord) -> Waited {
        self.note_return(now);
        self.look(word);
        let idle_ticks = now.since(*self.idle_since.get_or_insert(now)).0;
        match self.order.policy {
            SpinPolicy::Prod => std::hint::spin_loop(),
            SpinPolicy::Lab if idle_ticks < self.budgets.lab_spin_ticks => std::hint::spin_loop(),
            SpinPolicy::Shared if idle_ticks < self.budgets.shared_spin_ticks => std::hint::spin_loop(),
            SpinPolicy::Lab if now < self.contended_until => {
                sleep(CONTENDED_SLEEP);
                return Waited::Yielded;
            }
            SpinPolicy::Lab => {
                self.yielded = Some(now);
                std::thread::yield_now();
                return Waited::Yielded;
            }
            SpinPolicy::Shared => {
                sleep(Duration::from_nanos(self.budgets.shared_sleep_ns));
                return Waited::Yielded;
            }
        }
        Waited::Spun
    }

    /// A new frame began at `now`: judges the yield before it, if there was one.
    #[inline]
    fn note_return(&mut self, now: Ticks) {
        if let Some(yielded) = self.yielded.take()
            && now.since(yielded) > self.contended
        {
            self.contended_until = now.plus(self.contended_for);
        }
    }

    #[inline]
    fn look(&mut self, word: &SpinWord) {
        if word.requested_raw() != self.seen_raw {
            let (order, budgets) = word.requested();
            self.seen_raw = order.pack();
            self.order = order;
            self.budgets = budgets;
            self.idle_since = None;
            word.acknowledge(order);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where a hot thread may sleep: by policy, bounded")]
fn sleep(span: Duration) {
    std::thread::sleep(span);
}

#[cfg(test)]
mod tests {
    use super::{Idle, LOOK_EVERY_BUSY_FRAMES, Waited};
    use crate::units::{TickRate, Ticks};
    use pinwheel_edge::spin::{SpinBudgets, SpinOrder, SpinPolicy, SpinWord};

    const BUDGETS: SpinBudgets = SpinBudgets { lab_spin_ticks: 100, shared_spin_ticks: 10, shared_sleep_ns: 1 };

    #[test]
    fn lab_spins_for_its_budget_then_yields_in_each_idle_frame_until_work_comes() {
        let word = SpinWord::new(SpinPolicy::Lab, BUDGETS);
        let mut idle = Idle::new(&word, TickRate::NANOS);
        assert_eq!(idle.idle(Ticks(1_000), &word), Waited::Spun);
        assert_eq!(idle.idle(Ticks(1_099), &word), Waited::Spun);
        assert_eq!(idle.idle(Ticks(1_100), &word), Waited::Yielded);
        assert_eq!(idle.idle(Ticks(1_101), &word), Waited::Yielded);
        idle.note_work(Ticks(1_102), &word);
        assert_eq!(idle.idle(Ticks(1_200), &word), Waited::Spun);
    }

    #[test]
    fn prod_never_yields_and_shared_sleeps_after_its_budget() {
        let word = SpinWord::new(SpinPolicy::Prod, BUDGETS);
        let mut idle = Idle::new(&word, TickRate::NANOS);
        for now in 0..10_000 {
            assert_eq!(idle.idle(Ticks(now * 1_000), &word), Waited::Spun);
        }
        word.request(SpinOrder { policy: SpinPolicy::Shared, epoch: 2 }, BUDGETS);
        assert_eq!(idle.idle(Ticks(50), &word), Waited::Spun);
        assert_eq!(idle.idle(Ticks(60), &word), Waited::Yielded);
        assert_eq!(word.acknowledged(), SpinOrder { policy: SpinPolicy::Shared, epoch: 2 });
    }

    #[test]
    fn a_thread_that_never_idles_still_acknowledges() {
        let word = SpinWord::new(SpinPolicy::Lab, BUDGETS);
        let mut idle = Idle::new(&word, TickRate::NANOS);
        word.request(SpinOrder { policy: SpinPolicy::Prod, epoch: 2 }, BUDGETS);
        for _ in 0..LOOK_EVERY_BUSY_FRAMES {
            idle.note_work(Ticks(0), &word);
        }
        assert_eq!(word.acknowledged().epoch, 2);
    }

    #[test]
    fn a_yield_that_took_long_turns_the_next_ones_into_sleeps_for_a_while() {
        let word = SpinWord::new(SpinPolicy::Lab, SpinBudgets { lab_spin_ticks: 0, ..BUDGETS });
        let mut idle = Idle::new(&word, TickRate::NANOS);
        assert_eq!(idle.idle(Ticks(1_000), &word), Waited::Yielded);
        assert!(idle.yielded.is_some());
        assert_eq!(idle.idle(Ticks(5_000_000), &word), Waited::Yielded);
        assert!(idle.yielded.is_none(), "it slept");
        assert_eq!(idle.idle(Ticks(200_000_000), &word), Waited::Yielded);
        assert!(idle.yielded.is_some(), "the while is over");
    }
}
