//! Routes: where a stream's shots go, as one silo knows it.
//!
//! Owns one word per stream. The silo's arbiter flips, whoever routes reads: direction, roles and epoch change in one
//! store, so no reader sees the direction of one transfer with the epoch of another. Bounds: [`super::PAGES_MAX`] words.
//! Never waits, never allocates after construction.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | O5 | [`Routes::flip`] | [`Routes::route`] | what was done before the flip: the end of what was staged |
//!
//! # Why
//!
//! *A word beside the page's.* The page's word has owner and epoch too, but each commit writes it: whoever routes by it
//! would fetch the line from the writer's core for each shot. This word changes when a page has moved, eight stand in a line.
//!
//! *After the word, never before.* A route that still shows the old owner costs a refusal, which names the new one. One
//! that shows the new owner before it has installed the page would send shots to a silo that cannot commit them.

use crate::page::word::{Epoch, Silo};
use crate::sync::{AtomicU64, Ordering, edge};

/// Where a stream's shots go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Who takes them.
    pub to: Silo,
    /// Who took them before: the end that the direction points away from.
    pub from: Silo,
    /// Since which epoch.
    pub epoch: Epoch,
}

/// What a silo is to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes the stream's shots.
    Owner,
    /// It took them before.
    Former,
    /// Neither.
    Other,
}

impl Route {
    /// What `silo` is to the stream.
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
    /// Routes of `pages` streams that `owner` says the owners of.
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
        // ORDERING: acquire side of O5. Relaxed could show the new route before what was staged under the old one was
        // handed on. Model: loom_page::a_flipped_route_shows_what_was_staged_before.
        Route::unpack(self.words[page as usize].load(edge("O5.acquire", Ordering::Acquire)))
    }

    /// The page has come to be `to`'s in `epoch`: the direction turns round, the roles change. Returns whether it was news. Called
    /// by the silo's arbiter only.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn flip(&self, page: u32, to: Silo, epoch: Epoch) -> bool {
        let word = &self.words[page as usize];
        // Relaxed: the only writer reads what it wrote itself.
        let before = Route::unpack(word.load(Ordering::Relaxed));
        if epoch <= before.epoch {
            return false;
        }
        let next = Route { to, from: before.to, epoch };
        // ORDERING: release side of O5: what was staged under the old route has been handed on. Relaxed lets a shot by
        // the new route overtake it; SeqCst adds nothing, there is one writer. Model: as above.
        word.store(next.pack(), edge("O5.release", Ordering::Release));
        true
    }
}
