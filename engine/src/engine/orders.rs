//! What each hot thread is to run now: spin policy, budgets, priority.
//!
//! Owns the threads' spin words. Shared by whoever holds the engine and by cold threads of the engine, each of which
//! holds the lock for the few stores and system calls of one change; a hot thread never takes it. The hot threads
//! acknowledge when they next look. Never restarts a thread.
//!
//! # Why a live switch takes Fifo away itself
//! A thread under Fifo that yields or sleeps still goes before everybody on its core when it wakes, and `Shared` promises
//! the opposite. To refuse the switch would leave the operator without the one policy that is gentle. So the priority
//! goes before the policy is asked for, and comes back with a policy that allows it. Cold code does it by thread id: a
//! frame makes no system call for it.

use crate::board::{self, Board};
use crate::clock::Clock;
use crate::host::priority;
use crate::plan::{Plan, PlannedThread};
use crate::profile::{self, Courtesy, Priority, Profile};
use crate::units::Nanos;
use pinwheel_edge::spin::{SpinBudgets, SpinOrder, SpinPolicy, SpinWord};
#[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

/// The board's state word of a thread that has left, from here on.
const FINISHED: u64 = 2;

/// One thread and what it was told.
struct Steered {
    planned: PlannedThread,
    word: Arc<SpinWord>,
    /// What it was last told to run at, whether or not the system allowed it.
    priority: Priority,
}

/// The orders in force.
pub(super) struct Orders {
    name: String,
    spin: profile::SpinPolicy,
    budgets: SpinBudgets,
    priority: Priority,
    courtesy: Option<Courtesy>,
    /// For whom it makes way, if it does.
    courteous: Option<String>,
    epoch: u64,
    threads: Vec<Steered>,
}

/// The orders, as the engine's cold side shares them.
#[derive(Clone)]
pub(super) struct SharedOrders(
    #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
    Arc<Mutex<Orders>>,
);

impl SharedOrders {
    /// The orders that the threads start with.
    pub(super) fn new(name: &str, profile: &Profile, plan: &Plan, clock: &Clock) -> SharedOrders {
        let budgets = budgets(profile, clock);
        let steered = |planned: &PlannedThread| {
            let spin = planned.spin(profile.spin);
            let refused = planned.refuses_priority(profile.priority, spin).is_some();
            let priority = if refused { Priority::Normal } else { profile.priority };
            Steered { planned: planned.clone(), word: Arc::new(SpinWord::new(edge_policy(spin), budgets)), priority }
        };
        let threads = plan.threads.iter().map(steered).collect();
        let (spin, priority, courtesy) = (profile.spin, profile.priority, profile.courtesy.clone());
        let orders =
            Orders { name: name.to_owned(), spin, budgets, priority, courtesy, courteous: None, epoch: 1, threads };
        #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
        SharedOrders(Arc::new(Mutex::new(orders)))
    }

    /// A panic under the lock leaves orders that were given: they stand.
    pub(super) fn lock(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    pub(super) fn word(&self, thread: usize) -> Arc<SpinWord> {
        Arc::clone(&self.threads[thread].word)
    }

    /// What thread `thread` is told to run at.
    pub(super) fn priority(&self, thread: usize) -> Priority {
        self.threads[thread].priority
    }

    /// Orders what `profile` says, in the name `name`; the epoch of the order.
    pub(super) fn give(&mut self, name: &str, profile: &Profile, board: &Board, clock: &Clock) -> u64 {
        name.clone_into(&mut self.name);
        self.spin = profile.spin;
        self.budgets = budgets(profile, clock);
        self.courtesy.clone_from(&profile.courtesy);
        self.issue(board);
        self.epoch
    }

    /// The rule for making way.
    pub(super) fn courtesy(&self) -> Option<&Courtesy> {
        self.courtesy.as_ref()
    }

    /// Whether some thread never yields, or goes before others.
    pub(super) fn holds_cores(&self) -> bool {
        let holds = |steered: &Steered| {
            is_raised(steered.priority) || steered.planned.spin(self.spin) == profile::SpinPolicy::Prod
        };
        self.threads.iter().any(holds)
    }

    /// Makes way until [`Orders::resume`], and says why.
    pub(super) fn give_way(&mut self, why: &str, board: &Board) {
        self.courteous = Some(why.to_owned());
        self.issue(board);
    }

    /// Back to what the profile says.
    pub(super) fn resume(&mut self, board: &Board) {
        self.courteous = None;
        self.issue(board);
    }

    /// Asks every thread for what is in force now, under a new epoch.
    fn issue(&mut self, board: &Board) {
        self.epoch += 1;
        for index in 0..self.threads.len() {
            self.prioritize(index, board);
            let policy = edge_policy(self.policy(index).0);
            self.threads[index].word.request(SpinOrder { policy, epoch: self.epoch }, self.budgets);
        }
        self.publish(board);
    }

    /// The policy that a thread is to run, and why it is not the profile's.
    fn policy(&self, thread: usize) -> (profile::SpinPolicy, Option<String>) {
        let planned = &self.threads[thread].planned;
        if let (Some(why), profile::SpinPolicy::Prod) = (&self.courteous, planned.spin(self.spin)) {
            return (profile::SpinPolicy::Lab, Some(why.clone()));
        }
        (planned.spin(self.spin), planned.refuses(self.spin).map(str::to_owned))
    }

    /// The priority that a thread is to have, and why it is not the profile's.
    fn wanted_priority(&self, thread: usize) -> (Priority, Option<String>) {
        match self.threads[thread].planned.refuses_priority(self.priority, self.policy(thread).0) {
            Some(why) => (Priority::Normal, Some(why.to_owned())),
            None if is_raised(self.priority) && self.courteous.is_some() => (Priority::Normal, self.courteous.clone()),
            None => (self.priority, None),
        }
    }

    /// Gives a thread that runs the priority it is to have now, and publishes what it then has.
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

    /// Writes requests and refusals to the board.
    pub(super) fn publish(&self, board: &Board) {
        let wanted = SpinOrder { policy: edge_policy(self.spin), epoch: self.epoch };
        board.header().profile.write(&self.name);
        board::set(&board.header().spin_requested, wanted.pack());
        for index in 0..self.threads.len() {
            let (policy, why) = self.policy(index);
            let block = board.thread(index);
            board::set(&block.policy_requested, SpinOrder { policy: edge_policy(policy), epoch: self.epoch }.pack());
            block.refusal.write(why.as_deref().unwrap_or(""));
        }
    }

    /// Writes what the plan refuses of the priority, before the threads start.
    pub(super) fn publish_priorities(&self, board: &Board) {
        for index in 0..self.threads.len() {
            let block = board.thread(index);
            board::set(&block.priority_asked, self.priority.pack());
            block.priority_refusal.write(self.wanted_priority(index).1.as_deref().unwrap_or(""));
        }
    }
}

/// Whether it goes before other programs.
fn is_raised(priority: Priority) -> bool {
    matches!(priority, Priority::Fifo(_) | Priority::Nice(i32::MIN..0))
}

const fn edge_policy(policy: profile::SpinPolicy) -> SpinPolicy {
    match policy {
        profile::SpinPolicy::Prod => SpinPolicy::Prod,
        profile::SpinPolicy::Lab => SpinPolicy::Lab,
        profile::SpinPolicy::Shared => SpinPolicy::Shared,
    }
}

fn budgets(profile: &Profile, clock: &Clock) -> SpinBudgets {
    let ticks = |us: u32| clock.rate().ticks(Nanos::from_micros(u64::from(us))).0;
    SpinBudgets {
        lab_spin_ticks: ticks(profile.spin_budgets.lab_spin_us),
        shared_spin_ticks: ticks(profile.spin_budgets.shared_spin_us),
        shared_sleep_ns: u64::from(profile.spin_budgets.shared_sleep_us) * 1_000,
    }
}
