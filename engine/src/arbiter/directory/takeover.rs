//! Takeover of dead silos: their last page words settle open transfers, and one successor takes
//! their pages.
//!
//! Runs on the successor's arbiter thread. Bounds: [`TAKEOVER_PAGES_MAX`] pages in each check; a
//! requested page is taken over before the request is decided. Requires a [`Fenced`].

use super::{Context, OwnershipDirectory};
use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Cause;
use crate::arbiter::page::{Failed, PageTable, Silo, State, Takeover};
use crate::units::Ticks;
use std::sync::Arc;

/// Most pages taken over in one check.
pub const TAKEOVER_PAGES_MAX: u32 = 256;

/// A dead silo's table, and the next page to take over.
#[derive(Debug)]
pub(super) struct PendingTakeover {
    dead: Silo,
    dead_pages: Arc<PageTable>,
    next: u32,
}

impl OwnershipDirectory {
    /// A silo is fenced: its last messages settle the transfers to it, and `successor` takes its
    /// pages. Every living silo calls this, always with the same successor; `dead_pages` is the
    /// dead silo's table.
    pub fn take_over_pages(
        &mut self,
        context: &mut impl Context,
        fenced: &Fenced,
        dead_pages: &Arc<PageTable>,
        successor: Silo,
    ) {
        let (dead, now) = (fenced.silo(), context.ticks());
        self.appoint(dead, successor);
        // From the end, because `swap_remove` fills a closed place with the last entry.
        for at in (0..self.open.len()).rev() {
            self.settle_transfer(self.open[at].page, dead, dead_pages, now);
        }
        if successor == self.table.silo() {
            self.takeovers.push(PendingTakeover { dead, dead_pages: Arc::clone(dead_pages), next: 0 });
        }
    }

    /// Whether this silo has taken over all pages of `dead`.
    pub fn is_settled(&self, dead: Silo) -> bool {
        self.takeovers.iter().all(|takeover| takeover.dead != dead)
    }

    /// From now on `successor` handles messages to `silo`; after a restart that is the silo itself.
    pub fn appoint(&mut self, silo: Silo, successor: Silo) {
        self.successors[silo.number() as usize] = successor;
    }

    fn settle_transfer(&mut self, page: u32, dead: Silo, dead_pages: &PageTable, now: Ticks) {
        if self.table.word(page).owner() != dead {
            return;
        }
        let failed = Failed::Dead { receiver: dead, last: dead_pages.word(page) };
        if self.table.reclaim(page, failed) != Ok(true) {
            return;
        }
        let word = self.table.word(page);
        self.note(page, now, Cause::ReceiverDied);
        self.routes.flip(page, word.owner(), word.epoch());
        self.closes(page, now);
        let counted = if word.is_writable() { &mut self.counts.kept } else { &mut self.counts.left };
        *counted += 1;
    }

    pub(super) fn take_over_some(&mut self, context: &mut impl Context, now: Ticks) {
        let Some(takeover) = self.takeovers.last_mut() else { return };
        let (dead, dead_pages, from) = (takeover.dead, Arc::clone(&takeover.dead_pages), takeover.next);
        let to = (from + TAKEOVER_PAGES_MAX).min(dead_pages.len() as u32);
        takeover.next = to;
        for page in from..to {
            self.take_over(context, page, dead, &dead_pages, now);
        }
        if to == dead_pages.len() as u32 {
            self.takeovers.retain(|takeover| takeover.dead != dead);
        }
    }

    /// Takes a requested page of a dead silo over at once.
    pub(super) fn take_over_if_dead(&mut self, context: &mut impl Context, page: u32, now: Ticks) {
        let owner = self.table.word(page).owner();
        let Some(takeover) = self.takeovers.iter().find(|takeover| takeover.dead == owner) else { return };
        let dead_pages = Arc::clone(&takeover.dead_pages);
        self.take_over(context, page, owner, &dead_pages, now);
    }

    fn take_over(&mut self, context: &mut impl Context, page: u32, dead: Silo, dead_pages: &PageTable, now: Ticks) {
        let (last, moment) = (dead_pages.word(page), self.base.moment(now));
        let was_open = self.table.word(page).awaits();
        // Losing a race to a writer means that this silo already has the page.
        let Ok(takeover) = self.table.take_over(page, (dead, last), moment, || context.take_over(page, dead)) else {
            return;
        };
        match takeover {
            Takeover::Nothing if last.state() == State::NotOwner && last.owner() != self.table.silo() => {
                let _ = self.table.learn(page, last.owner(), last.epoch());
                return;
            }
            Takeover::Nothing => return,
            Takeover::Owned { is_torn } => {
                self.counts.taken_over += 1;
                self.counts.torn += u64::from(is_torn);
                self.routes.flip(page, self.table.silo(), self.table.word(page).epoch());
            }
            Takeover::Returned => self.counts.kept += 1,
            Takeover::Doubt { .. } => {
                self.counts.doubted += 1;
                self.opens(page, now);
            }
        }
        self.note(page, now, Cause::Inherited);
        if was_open && !self.table.word(page).awaits() {
            self.closes(page, now);
        }
    }
}
