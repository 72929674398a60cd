//! Events of several silos: streams move between them, roles are suspended, silos stop and rejoin.
//!
//! Owns the requests and the silos' supervisor; the seed draws each event. Bounds: one suspended
//! role at a time.

use super::role_set::RoleSet;
use crate::arbiter::page::Authority;
use crate::feed::requests::{MoveRequest, MoveRequests};
use crate::roles::SiloState;
use crate::silo::{PathControl, SiloCommand, SiloCommands, SiloSupervisor, SupervisorParts};
use crate::units::{Nanos, TickRate, Ticks};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// Average number of steps between two requests for a move.
const MOVE_EVERY: u64 = 300;
/// How long a role is suspended: longer than the timeout of a move.
const SUSPENSION: Nanos = Nanos::from_millis(150);
/// Average number of steps between two suspended roles.
const SUSPENSION_EVERY: u64 = 30_000;
/// Average number of steps between two events of silos.
const EVENT_EVERY: u64 = 500;

pub(super) struct SiloEvents {
    pub(super) supervisor: SiloSupervisor,
    commands: Arc<SiloCommands>,
    moves: Arc<MoveRequests>,
    streams: u32,
    silos: u32,
    suspended: Option<(usize, Ticks)>,
    /// Number of refused moves.
    pub(super) refused: u64,
    /// Set when silos no longer stop or rejoin.
    pub(super) is_over: bool,
}

impl SiloEvents {
    pub(super) fn new(parts: SupervisorParts) -> SiloEvents {
        let (commands, moves) = (Arc::clone(&parts.commands), Arc::clone(&parts.common.moves));
        let (streams, silos) = (parts.profile.input.streams, parts.decoders.len() as u32);
        let supervisor = SiloSupervisor::new(parts);
        SiloEvents { supervisor, commands, moves, streams, silos, suspended: None, refused: 0, is_over: false }
    }

    /// Called before each step of a live run: draws a move of a stream or an event of a silo.
    pub(super) fn draw(&mut self, random: &mut Xoshiro256PlusPlus, role_set: &mut RoleSet) {
        if random.next_u64().is_multiple_of(MOVE_EVERY) {
            let draw = random.next_u64();
            let (stream, to) = ((draw % u64::from(self.streams)) as u32, (draw >> 8) as u32 % self.silos);
            let lease_ms = if (draw >> 40).is_multiple_of(4) { 1 } else { 0 };
            let by = if (draw >> 50).is_multiple_of(8) { Authority::Operator } else { Authority::Port };
            self.refused += u64::from(self.moves.ask(MoveRequest { stream, to, lease_ms, by }).is_err());
        }
        if !self.is_over && random.next_u64().is_multiple_of(EVENT_EVERY) {
            self.decide(random.next_u64(), role_set);
        }
    }

    /// Stops a silo, ends one of its roles, drains it or lets it rejoin, if that is possible now.
    fn decide(&mut self, draw: u64, role_set: &mut RoleSet) {
        let silo = draw as u32 % self.silos;
        if self.supervisor.state(silo as usize) == SiloState::Dead {
            let _ = self.commands.ask(silo, SiloCommand::Rejoin);
            return;
        }
        // A second failure before the first has been handled ends a run by design, so it is not
        // simulated.
        let is_quiet = self.supervisor.is_settled() && !self.has_ended_role(role_set);
        let can_die = is_quiet && self.commands.check(silo, SiloCommand::Kill).is_ok();
        let command = match draw >> 32 & 7 {
            0 if can_die => return role_set.end_one_role(silo as usize, draw >> 40),
            1 | 2 => SiloCommand::Kill,
            3 => SiloCommand::Drain,
            _ => SiloCommand::Rejoin,
        };
        // A command that is refused now is skipped.
        let _ = self.commands.ask(silo, command);
    }

    /// The suspended role, if it is one of `roles`.
    pub(super) fn suspended(
        &mut self,
        random: &mut Xoshiro256PlusPlus,
        roles: usize,
        (now, rate): (Ticks, TickRate),
    ) -> Option<usize> {
        if random.next_u64().is_multiple_of(SUSPENSION_EVERY) {
            let role = (random.next_u64() % roles as u64) as usize;
            self.suspended = Some((role, now.plus(rate.ticks(SUSPENSION))));
        }
        self.suspended = self.suspended.filter(|(_, until)| now < *until);
        self.suspended.map(|(role, _)| role)
    }

    /// Whether `silo` has a path: it is live, draining or drained.
    pub(super) fn has_path(&self, silo: usize) -> bool {
        matches!(self.supervisor.state(silo), SiloState::Live | SiloState::Draining | SiloState::Drained)
    }

    /// Whether a role has ended and no supervisor has noticed yet.
    fn has_ended_role(&self, role_set: &RoleSet) -> bool {
        (0..self.silos as usize).any(|silo| self.has_path(silo) && role_set.died(silo).is_some())
    }

    /// Whether no silo is stopping or rejoining.
    pub(super) fn is_settled(&self, role_set: &RoleSet) -> bool {
        self.supervisor.is_settled() && !self.has_ended_role(role_set)
    }
}
