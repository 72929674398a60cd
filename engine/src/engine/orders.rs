//! Orders to each hot thread: spin policy, budgets, priority.
//!
//! Owns the threads' spin words. Shared by cold threads of the engine, each of which holds the lock
//! for the few stores and system calls of one change; hot threads never take it, and acknowledge
//! when they next read their word. Never restarts a thread.
//!
//! # Why a live switch lowers Fifo itself
//! A thread under Fifo that yields or sleeps still precedes all other programs on its core when it
//! wakes, which contradicts `Shared`. Refusing the switch would deny the operator the one policy
//! that leaves room for others. So the priority is lowered before the policy is requested, and
//! restored with a policy that permits it. Cold code does this by thread id: a frame makes no
//! system call for it.

use crate::board::{self, Board};
use crate::clock::Clock;
use crate::host::priority;
use crate::plan::{Plan, PlannedThread};
use crate::profile::{Courtesy, Priority, Profile};
use crate::units::Nanos;
use pinwheel_edge::spin::{SpinBudgets, SpinOrder, SpinPolicy, SpinWord};
#[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Lowest state code of a thread that has ended.
const FINISHED: u64 = 2;

struct ThreadOrders {
    planned: PlannedThread,
    word: Arc<SpinWord>,
    /// The last requested priority, whether or not the system permitted it.
    priority: Priority,
}

/// The orders in force.
pub(super) struct Orders {
    name: String,
    spin: SpinPolicy,
    budgets: SpinBudgets,
    priority: Priority,
    courtesy: Option<Courtesy>,
    /// For whom the engine yields its cores, if it does.
    yields_for: Option<String>,
    epoch: u64,
    threads: Vec<ThreadOrders>,
}

/// The orders, shared by the engine's cold threads.
#[derive(Clone)]
pub(super) struct SharedOrders(
    #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
    Arc<Mutex<Orders>>,
);

impl SharedOrders {
    /// The orders at the start.
    pub(super) fn new(name: &str, profile: &Profile, plan: &Plan, clock: &Clock) -> SharedOrders {
        let budgets = budgets(profile, clock);
        let thread = |planned: &PlannedThread| {
            let spin = planned.spin(profile.spin);
            let refused = planned.refuses_priority(profile.priority, spin).is_some();
            let priority = if refused { Priority::Normal } else { profile.priority };
            ThreadOrders { planned: planned.clone(), word: Arc::new(SpinWord::new(spin, budgets)), priority }
        };
        let threads = plan.threads.iter().map(thread).collect();
        let (spin, priority, courtesy) = (profile.spin, profile.priority, profile.courtesy.clone());
        let orders =
            Orders { name: name.to_owned(), spin, budgets, priority, courtesy, yields_for: None, epoch: 1, threads };
        #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
        SharedOrders(Arc::new(Mutex::new(orders)))
    }

    /// A panic under the lock leaves the given orders in force.
    pub(super) fn lock(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    pub(super) fn word(&self, thread: usize) -> Arc<SpinWord> {
        Arc::clone(&self.threads[thread].word)
    }

    /// The requested priority of thread `thread`.
    pub(super) fn priority(&self, thread: usize) -> Priority {
        self.threads[thread].priority
    }

    /// Orders the policies of `profile`, named `name`; returns the epoch of the order.
    pub(super) fn give(&mut self, name: &str, profile: &Profile, board: &Board, clock: &Clock) -> u64 {
        name.clone_into(&mut self.name);
        self.spin = profile.spin;
        self.budgets = budgets(profile, clock);
        self.courtesy.clone_from(&profile.courtesy);
        self.issue(board);
        self.epoch
    }

    /// These threads could not be pinned. They are ordered what a thread without a core is.
    pub(super) fn unpin(&mut self, threads: &[usize], board: &Board) {
        for thread in threads {
            let planned = &mut self.threads[*thread].planned;
            (planned.core, planned.exclusive) = (None, false);
        }
        if !threads.is_empty() {
            self.issue(board);
        }
    }

    /// The rule for yielding cores.
    pub(super) fn courtesy(&self) -> Option<&Courtesy> {
        self.courtesy.as_ref()
    }

    /// Whether some thread never yields, or has a raised priority.
    pub(super) fn holds_cores(&self) -> bool {
        let holds =
            |thread: &ThreadOrders| is_raised(thread.priority) || thread.planned.spin(self.spin) == SpinPolicy::Prod;
        self.threads.iter().any(holds)
    }

    /// Yields the cores until [`Orders::resume`], for the reason `why`.
    pub(super) fn give_way(&mut self, why: &str, board: &Board) {
        self.yields_for = Some(why.to_owned());
        self.issue(board);
    }

    /// Restores the profile's policies.
    pub(super) fn resume(&mut self, board: &Board) {
        self.yields_for = None;
        self.issue(board);
    }

    /// Requests the current policy of every thread under a new epoch.
    fn issue(&mut self, board: &Board) {
        self.epoch += 1;
        for index in 0..self.threads.len() {
            self.prioritize(index, board);
            let policy = self.policy(index).0;
            self.threads[index].word.request(SpinOrder { policy, epoch: self.epoch }, self.budgets);
        }
        self.publish(board);
    }

    /// The policy of a thread, and why it differs from the profile's.
    fn policy(&self, thread: usize) -> (SpinPolicy, Option<String>) {
        let planned = &self.threads[thread].planned;
        if let (Some(why), SpinPolicy::Prod) = (&self.yields_for, planned.spin(self.spin)) {
            return (SpinPolicy::Lab, Some(why.clone()));
        }
        (planned.spin(self.spin), planned.refuses(self.spin).map(str::to_owned))
    }

    /// The priority of a thread, and why it differs from the profile's.
    fn wanted_priority(&self, thread: usize) -> (Priority, Option<String>) {
        match self.threads[thread].planned.refuses_priority(self.priority, self.policy(thread).0) {
            Some(why) => (Priority::Normal, Some(why.to_owned())),
            None if is_raised(self.priority) && self.yields_for.is_some() => {
                (Priority::Normal, self.yields_for.clone())
            }
            None => (self.priority, None),
        }
    }

    /// Sets the priority of a running thread, and publishes the priority that it got.
    fn prioritize(&mut self, index: usize, board: &Board) {
        let (wanted, why) = self.wanted_priority(index);
        let block = board.thread(index);
        let tid = u32::try_from(board::get(&block.tid)).ok().filter(|tid| *tid != 0);
        if wanted == self.threads[index].priority || tid.is_none() || board::get(&block.state) >= FINISHED {
            return;
        }
        self.threads[index].priority = wanted;
        let refused = priority::set(tid, wanted).err().map(|error| error.to_string());
        block.priority_refusal.write(refused.or(why).as_deref().unwrap_or(""));
        board::set(&block.priority_found, priority::found(tid).map_or(0, Priority::pack));
    }

    /// Publishes requests and refusals.
    pub(super) fn publish(&self, board: &Board) {
        let wanted = SpinOrder { policy: self.spin, epoch: self.epoch };
        board.header().profile.write(&self.name);
        board::set(&board.header().spin_requested, wanted.pack());
        for index in 0..self.threads.len() {
            let (policy, why) = self.policy(index);
            let block = board.thread(index);
            board::set(&block.policy_requested, SpinOrder { policy, epoch: self.epoch }.pack());
            block.refusal.write(why.as_deref().unwrap_or(""));
        }
    }

    /// Publishes the plan's refusals of the priority, before the threads start.
    pub(super) fn publish_priorities(&self, board: &Board) {
        for index in 0..self.threads.len() {
            let block = board.thread(index);
            board::set(&block.priority_asked, self.priority.pack());
            block.priority_refusal.write(self.wanted_priority(index).1.as_deref().unwrap_or(""));
        }
    }
}

/// Whether it precedes other programs.
fn is_raised(priority: Priority) -> bool {
    matches!(priority, Priority::Fifo(_) | Priority::Nice(i32::MIN..0))
}

/// Under `Shared`: idle time spent spinning before a sleep, µs.
const SHARED_SPIN_US: u32 = 10;

fn budgets(profile: &Profile, clock: &Clock) -> SpinBudgets {
    let ticks = |us: u32| clock.rate().ticks(Nanos::from_micros(u64::from(us))).0;
    SpinBudgets {
        lab_spin_ticks: ticks(profile.spin_budgets.lab_spin_us),
        shared_spin_ticks: ticks(SHARED_SPIN_US),
        shared_sleep_ns: u64::from(profile.spin_budgets.shared_sleep_us) * 1_000,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::SharedOrders;
    use crate::board::{Board, Place, Shape};
    use crate::clock::Clock;
    use crate::host::{CoreFacts, HostFacts};
    use crate::plan::Plan;
    use crate::profile::Profile;
    use pinwheel_edge::spin::SpinPolicy;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_thread_that_could_not_be_pinned_runs_lab_instead_of_prod_and_says_why() {
        let (profile, _) = Profile::load("prod", None).unwrap();
        let mut host = HostFacts::read_at(Path::new("/no/such"), &[]);
        host.cores = (0..4).map(|core| CoreFacts { core, node: 0, siblings: Vec::new() }).collect();
        let plan = Plan::make(&profile, &host).unwrap();
        let threads = plan.threads.len() as u32;
        let shape = Shape { threads, silos: 1, slots: 8, workers: 1, decoders: 2, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let clock = Clock::virtual_time(Arc::new(AtomicU64::new(1)));
        let orders = SharedOrders::new("prod", &profile, &plan, &clock);
        let policy = |thread: usize| orders.lock().word(thread).requested().0.policy;
        assert_eq!([policy(0), policy(1)], [SpinPolicy::Prod; 2]);
        orders.lock().unpin(&[1], &board);
        assert_eq!([policy(0), policy(1)], [SpinPolicy::Prod, SpinPolicy::Lab]);
        let refusal = |thread: usize| board.thread(thread).refusal.read();
        assert_eq!((refusal(0).as_str(), refusal(1).starts_with("it is not pinned")), ("", true));
        // Another profile orders it no more than that.
        orders.lock().give("prod", &profile, &board, &clock);
        assert_eq!(policy(1), SpinPolicy::Lab);
    }
}
