//! Routes: the silo that receives a stream's shots, as one silo knows it.
//!
//! Owns one word per stream. Only the silo's arbiter writes it. Direction, roles and epoch change
//! in one store, so no reader sees the direction of one transfer with the epoch of another. Bounds:
//! [`super::PAGES_MAX`] words. Never waits, never allocates after construction.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | O5 | [`Routes::flip`] | [`Routes::route`] | the work before the flip: the last staged shots |
//!
//! # Why
//!
//! *A word beside the page's.* The page's word has owner and epoch too, but each commit writes it:
//! a router would fetch the line from the writer's core for each shot. The route's word changes
//! only when a page has moved; eight share a line.
//!
//! *After the page word, never before.* A route that still shows the old owner costs a refusal,
//! which carries the new owner. A route that shows the new owner before it has installed the page
//! would send shots to a silo that cannot commit them.

use crate::page::word::{Epoch, Silo};
use crate::sync::{AtomicU64, Ordering, edge};

/// The route of a stream's shots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The silo that receives them.
    pub to: Silo,
    /// The silo that received them before.
    pub from: Silo,
    /// Epoch of the current owner.
    pub epoch: Epoch,
}

/// Role of a silo for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It receives the stream's shots.
    Owner,
    /// It received them before.
    Former,
    /// It neither receives the stream's shots nor received them before.
    Other,
}

impl Route {
    /// The role of `silo` for the stream.
    #[must_use]
    pub fn role(&self, silo: Silo) -> Role {
        match silo {
            silo if silo == self.to => Role::Owner,
            silo if silo == self.from => Role::Former,
            _ => Role::Other,
        }
    }

    const fn pack(self) -> u64 {
        self.to.number() as u64 | (self.from.number() as u64) << 6 | (self.epoch.number() as u64) << 12
    }

    const fn unpack(word: u64) -> Route {
        Route {
            to: Silo::new((word & 0x3f) as u8),
            from: Silo::new((word >> 6 & 0x3f) as u8),
            epoch: Epoch::new((word >> 12) as u32 & Epoch::MAX.number()),
        }
    }
}

/// The routes of one silo.
#[derive(Debug)]
pub struct Routes {
    words: Box<[AtomicU64]>,
}

impl Routes {
    /// Routes of `pages` streams; `owner` gives the first owner of each.
    #[must_use]
    pub fn new(pages: u32, owner: impl Fn(u32) -> Silo) -> Routes {
        let route = |page| Route { to: owner(page), from: owner(page), epoch: Epoch::default() };
        Routes { words: (0..pages).map(|page| AtomicU64::new(route(page).pack())).collect() }
    }

    /// The route of `page`.
    ///
    /// # Panics
    /// If there is no such page.
    #[inline]
    #[must_use]
    pub fn route(&self, page: u32) -> Route {
        // ORDERING: acquire side of O5. Relaxed could show the new route before the shots staged
        // under the old route were passed on. Model:
        // loom_page::a_flipped_route_shows_what_was_staged_before.
        Route::unpack(self.words[page as usize].load(edge("O5.acquire", Ordering::Acquire)))
    }

    /// Routes `page` to its new owner `to` in `epoch`; the old owner becomes the former one.
    /// Returns whether the route changed. Called by the silo's arbiter only.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn flip(&self, page: u32, to: Silo, epoch: Epoch) -> bool {
        let word = &self.words[page as usize];
        // Relaxed: the only writer reads its own write.
        let before = Route::unpack(word.load(Ordering::Relaxed));
        if epoch <= before.epoch {
            return false;
        }
        let next = Route { to, from: before.to, epoch };
        // ORDERING: release side of O5: the shots staged under the old route have been passed on.
        // Relaxed lets a shot on the new route overtake them; SeqCst adds nothing, there is one
        // writer. Model: as above.
        word.store(next.pack(), edge("O5.release", Ordering::Release));
        true
    }
}
