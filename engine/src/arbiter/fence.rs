//! Fenced silos: the proof that a silo will never access its pages again.
//!
//! Made on cold threads; a value, without state. A [`Fenced`] can be made only from evidence, and a
//! takeover requires one. Never infers a death from silence.
//!
//! # Why
//! A late silo looks like a dead one until it continues: a silo that took its pages over meanwhile
//! would be a second owner. Only two kinds of evidence are final: a joined thread, and a role that
//! has published its death, because its loop never calls it again.

use crate::arbiter::page::Silo;
use crate::board::{RoleBlock, get_first};
use std::thread::{JoinHandle, Result as Joined};

/// A silo none of whose threads will access its pages again.
#[derive(Debug, PartialEq, Eq)]
pub struct Fenced {
    silo: Silo,
}

/// Why a silo is not fenced; its pages stay its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NotFenced {
    #[error(
        "silo {}: {alive} of the {roles} roles that access its pages have not published their death; a late role may \
         continue: wait for it, or end its threads and join them",
        .silo.number()
    )]
    Alive { silo: Silo, roles: usize, alive: usize },
}

impl Fenced {
    /// Joins `threads`, which must be all threads that access the pages of `silo`: the silo is
    /// fenced.
    pub fn joined<T>(silo: Silo, threads: impl IntoIterator<Item = JoinHandle<T>>) -> (Fenced, Vec<Joined<T>>) {
        let ends = threads.into_iter().map(JoinHandle::join).collect();
        (Fenced { silo }, ends)
    }

    /// Silo `silo` is fenced if `roles`, which must be all of its roles that access its pages, have
    /// died.
    ///
    /// # Errors
    /// If a role has not died, or `roles` is empty.
    pub fn died<'a>(silo: Silo, roles: impl IntoIterator<Item = &'a RoleBlock>) -> Result<Fenced, NotFenced> {
        let (mut count, mut alive) = (0, 0);
        for role in roles {
            count += 1;
            // Read first, so that all writes of the role before its death are visible.
            alive += usize::from(get_first(&role.died) == 0);
        }
        if count == 0 || alive > 0 {
            return Err(NotFenced::Alive { silo, roles: count, alive });
        }
        Ok(Fenced { silo })
    }

    /// Number of the silo.
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
    fn only_dead_roles_fence_their_silo() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let roles = &board.thread(0).roles[..2];
        assert_eq!(Fenced::died(SILO, roles), Err(NotFenced::Alive { silo: SILO, roles: 2, alive: 2 }));
        set(&roles[0].died, 17);
        let refused = Fenced::died(SILO, roles).unwrap_err();
        assert!(refused.to_string().contains("silo 2: 1 of the 2 roles that access its pages"), "{refused}");
        set(&roles[1].died, 1);
        assert_eq!(Fenced::died(SILO, roles).unwrap().silo(), SILO);
        assert!(Fenced::died(SILO, []).is_err(), "an empty list proves nothing");
    }

    #[test]
    fn joined_threads_fence_their_silo_however_they_ended() {
        let threads = [std::thread::spawn(|| 7), std::thread::spawn(|| std::panic::resume_unwind(Box::new(())))];
        let (fenced, ends) = Fenced::joined(SILO, threads);
        assert_eq!((fenced.silo(), ends[0].as_ref().ok(), ends[1].is_err()), (SILO, Some(&7), true));
    }
}
