//! Switching what applies live: spin policy, budgets, limits, rate.
//!
//! Owns the profile in force; what it means for each thread are the orders ([`super::orders`]). Called by whoever holds
//! the engine, on a cold thread. Never restarts a thread, never touches a shot.

use super::header;
use super::orders::SharedOrders;
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::hot::Settings;
use crate::profile::{Profile, Rate};
use pinwheel_edge::spin::Phase;

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

/// The steering of one engine.
pub(super) struct Steering {
    profile: Profile,
    orders: SharedOrders,
}

impl Steering {
    pub(super) fn new(profile: Profile, orders: SharedOrders) -> Steering {
        Steering { profile, orders }
    }

    pub(super) fn profile(&self) -> &Profile {
        &self.profile
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
        self.profile.alarms.clone_from(&next.alarms);
        self.profile.on_alarm.clone_from(&next.on_alarm);
        self.profile.courtesy.clone_from(&next.courtesy);
        self.profile.input.rate = next.input.rate;
        self.profile.placement.overflow = next.placement.overflow;
        settings.set_limits(&self.profile.limits);
        settings.set_overflow(&self.profile.placement.overflow);
        header::write_limits(board, &self.profile.limits);
        if rate_changes {
            self.apply_rate(board, settings);
        }
        self.orders.lock().give(name, &self.profile, board, clock);
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
}
