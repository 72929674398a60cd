//! Switching what applies live: spin policy, budgets, limits, rate.
//!
//! Owns each thread's spin word and the profile in force. Called by whoever holds the engine, on a cold thread; the hot
//! threads acknowledge when they next look. Never restarts a thread, never touches a shot.

use super::header;
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::hot::Settings;
use crate::plan::Plan;
use crate::profile::{self, Profile, Rate};
use crate::units::Nanos;
use pinwheel_edge::spin::{Phase, SpinBudgets, SpinOrder, SpinPolicy, SpinWord};
use std::sync::Arc;

/// Why a profile could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Too late.
    #[error("found the engine in {found}, expected WARMUP or LIVE; start it again with the profile you want")]
    Phase {
        /// Its phase.
        found: &'static str,
    },
}

/// One thread's word, and why it refuses Prod, if it does.
struct Steered {
    word: Arc<SpinWord>,
    refuses_prod: Option<&'static str>,
}

/// The steering of one engine.
pub(super) struct Steering {
    name: String,
    profile: Profile,
    threads: Vec<Steered>,
    epoch: u64,
}

impl Steering {
    pub(super) fn new(name: String, profile: Profile, plan: &Plan, clock: &Clock) -> Steering {
        let threads = plan
            .threads
            .iter()
            .map(|planned| {
                let refuses_prod = planned.refuses(profile::SpinPolicy::Prod);
                let policy = allowed(profile.spin, refuses_prod);
                Steered { word: Arc::new(SpinWord::new(policy, budgets(&profile, clock))), refuses_prod }
            })
            .collect();
        Steering { name, profile, threads, epoch: 1 }
    }

    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn word(&self, thread: usize) -> Arc<SpinWord> {
        Arc::clone(&self.threads[thread].word)
    }

    pub(super) fn apply(
        &mut self,
        name: &str,
        next: &Profile,
        board: &Board,
        settings: &Settings,
        clock: &Clock,
    ) -> Result<(), ApplyError> {
        let phase = Phase::from_code(board::get(&board.header().phase));
        if phase >= Phase::Drain {
            return Err(ApplyError::Phase { found: phase.name() });
        }
        let rate_changes = next.input.rate != self.profile.input.rate;
        self.profile.summary.clone_from(&next.summary);
        self.profile.spin = next.spin;
        self.profile.spin_budgets.clone_from(&next.spin_budgets);
        self.profile.limits.clone_from(&next.limits);
        self.profile.on_hangup = next.on_hangup;
        self.profile.input.rate = next.input.rate;
        self.name = name.to_string();
        settings.set_limits(&self.profile.limits);
        header::write_limits(board, &self.profile.limits);
        if rate_changes {
            self.apply_rate(board, settings);
        }
        self.epoch += 1;
        let budgets = budgets(&self.profile, clock);
        for thread in &self.threads {
            let policy = allowed(self.profile.spin, thread.refuses_prod);
            thread.word.request(SpinOrder { policy, epoch: self.epoch }, budgets);
        }
        self.publish(board);
        Ok(())
    }

    /// A rate of its own replaces the old one; `Auto` keeps what was measured in Warmup, which cannot be repeated live.
    fn apply_rate(&self, board: &Board, settings: &Settings) {
        match self.profile.input.rate {
            Rate::Auto => {}
            Rate::Max => {
                settings.set_rate_hz(None);
                header::write_rate(board, None, "profile: as fast as slots come free");
            }
            Rate::Hz(hz) => {
                settings.set_rate_hz(Some(hz));
                header::write_rate(board, Some(hz), "profile");
            }
        }
    }

    /// Writes requests and refusals to the board.
    pub(super) fn publish(&self, board: &Board) {
        let wanted = SpinOrder { policy: edge_policy(self.profile.spin), epoch: self.epoch };
        board.header().profile.write(&self.name);
        board::set(&board.header().spin_requested, wanted.pack());
        for (index, thread) in self.threads.iter().enumerate() {
            let policy = allowed(self.profile.spin, thread.refuses_prod);
            let block = board.thread(index);
            board::set(&block.policy_requested, SpinOrder { policy, epoch: self.epoch }.pack());
            let refused = thread.refuses_prod.filter(|_| policy != wanted.policy);
            block.refusal.write(refused.unwrap_or(""));
        }
    }
}

const fn edge_policy(policy: profile::SpinPolicy) -> SpinPolicy {
    match policy {
        profile::SpinPolicy::Prod => SpinPolicy::Prod,
        profile::SpinPolicy::Lab => SpinPolicy::Lab,
        profile::SpinPolicy::Shared => SpinPolicy::Shared,
    }
}

/// A thread that refuses Prod runs Lab in its place.
const fn allowed(policy: profile::SpinPolicy, refuses_prod: Option<&'static str>) -> SpinPolicy {
    match (policy, refuses_prod) {
        (profile::SpinPolicy::Prod, Some(_)) => SpinPolicy::Lab,
        (policy, _) => edge_policy(policy),
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
