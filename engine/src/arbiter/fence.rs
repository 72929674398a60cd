//! Fenced silos: the evidence that a silo will never touch its pages again.
//!
//! Made on cold threads; a value, without state. Who has no evidence cannot make a [`Fenced`], and without one nobody
//! inherits. Never guesses from silence.
//!
//! # Why
//! A silo that is late looks like one that is dead, until it goes on: whoever took its pages meanwhile makes two owners. Only
//! two things cannot be taken back: a thread that was joined, and a role that has published its death, which its loop
//! never calls again.

use crate::arbiter::page::Silo;
use crate::board::{RoleBlock, get_first};
use std::thread::{JoinHandle, Result as Joined, ScopedJoinHandle};

/// A silo none of whose threads will touch its pages again.
#[derive(Debug, PartialEq, Eq)]
pub struct Fenced {
    silo: Silo,
}

/// A silo is not fenced: what it has must be left to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFenced {
    /// A role that touches the pages has not died.
    #[error(
        "silo {}: found {alive} of its {roles} page-touching roles alive, expected each to have published its death; late \
         is not dead: wait for it, or end its threads and join them",
        .silo.number()
    )]
    Alive {
        /// Whose.
        silo: Silo,
        /// Roles looked at.
        roles: usize,
        /// Of these, without a death.
        alive: usize,
    },
}

impl Fenced {
    /// Silo `silo` is fenced: `threads` are all that touch its pages, and are joined here.
    pub fn joined<T>(silo: Silo, threads: impl IntoIterator<Item = JoinHandle<T>>) -> (Fenced, Vec<Joined<T>>) {
        let ends = threads.into_iter().map(JoinHandle::join).collect();
        (Fenced { silo }, ends)
    }

    /// As [`Fenced::joined`], of scoped threads.
    pub fn joined_in_scope<'a, T: 'a>(
        silo: Silo,
        threads: impl IntoIterator<Item = ScopedJoinHandle<'a, T>>,
    ) -> (Fenced, Vec<Joined<T>>) {
        let ends = threads.into_iter().map(ScopedJoinHandle::join).collect();
        (Fenced { silo }, ends)
    }

    /// Silo `silo` is fenced if `roles`, which are all of its roles that touch its pages, have died.
    ///
    /// # Errors
    /// If one has not, or none was named.
    pub fn died<'a>(silo: Silo, roles: impl IntoIterator<Item = &'a RoleBlock>) -> Result<Fenced, NotFenced> {
        let (mut count, mut alive) = (0, 0);
        for role in roles {
            count += 1;
            // First of all, so that what the role wrote before it died is seen.
            alive += usize::from(get_first(&role.died) == 0);
        }
        if count == 0 || alive > 0 {
            return Err(NotFenced::Alive { silo, roles: count, alive });
        }
        Ok(Fenced { silo })
    }

    /// Who.
    #[must_use]
    pub fn silo(&self) -> Silo {
        self.silo
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{Fenced, NotFenced};
    use crate::arbiter::page::Silo;
    use crate::board::{Board, Place, Shape, set};

    const SILO: Silo = Silo::new(2);

    #[test]
    fn a_silent_role_fences_nobody_and_one_that_died_does() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let roles = &board.thread(0).roles[..2];
        assert_eq!(Fenced::died(SILO, roles), Err(NotFenced::Alive { silo: SILO, roles: 2, alive: 2 }));
        set(&roles[0].died, 17);
        let refused = Fenced::died(SILO, roles).unwrap_err();
        assert!(refused.to_string().contains("silo 2: found 1 of its 2 page-touching roles alive"), "{refused}");
        set(&roles[1].died, 1);
        assert_eq!(Fenced::died(SILO, roles).unwrap().silo(), SILO);
        assert!(Fenced::died(SILO, []).is_err(), "nobody's death proves nothing");
    }

    #[test]
    fn joined_threads_fence_their_silo_however_they_ended() {
        let threads = [std::thread::spawn(|| 7), std::thread::spawn(|| std::panic::resume_unwind(Box::new(())))];
        let (fenced, ends) = Fenced::joined(SILO, threads);
        assert_eq!((fenced.silo(), ends[0].as_ref().ok(), ends[1].is_err()), (SILO, Some(&7), true));
    }
}
