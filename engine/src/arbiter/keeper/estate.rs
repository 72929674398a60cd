//! Dead silos: their transfers are settled by their last words, their pages go to one heir.
//!
//! Runs on the heir's arbiter thread. Bounds: [`HEIRLOOMS_MAX`] pages in each look; a page that somebody asks for is
//! inherited before it is decided. Needs the evidence of [`Fenced`].

use super::{Ground, Keeper};
use crate::arbiter::fence::Fenced;
use crate::arbiter::history::Cause;
use crate::arbiter::page::{Bequest, Failed, PageTable, Silo, State};
use crate::units::Ticks;
use std::sync::Arc;

/// Pages looked at in one look.
pub const HEIRLOOMS_MAX: u32 = 256;

/// A dead silo's table, and how far the heir has come.
#[derive(Debug)]
pub(super) struct Estate {
    dead: Silo,
    remains: Arc<PageTable>,
    next: u32,
}

impl Keeper {
    /// A silo is fenced: what is on its way there ends by its last words, what it had goes to `heir`. Told to each silo that lives,
    /// each time with the same heir; `remains` is the dead silo's table.
    pub fn bury(&mut self, ground: &mut impl Ground, fenced: &Fenced, remains: &Arc<PageTable>, heir: Silo) {
        let (dead, now) = (fenced.silo(), ground.ticks());
        self.appoint(dead, heir);
        // From the end: what is closed makes room for the last one.
        for at in (0..self.open.len()).rev() {
            self.bereave(self.open[at].page, dead, remains, now);
        }
        if heir == self.table.silo() {
            self.estates.push(Estate { dead, remains: Arc::clone(remains), next: 0 });
        }
    }

    /// Whether all that `dead` left has been looked through here.
    #[must_use]
    pub fn is_settled(&self, dead: Silo) -> bool {
        self.estates.iter().all(|estate| estate.dead != dead)
    }

    /// `heir` answers for `silo` from now on: the silo itself, once it has come back.
    pub fn appoint(&mut self, silo: Silo, heir: Silo) {
        self.heirs[silo.number() as usize] = heir;
    }

    fn bereave(&mut self, page: u32, dead: Silo, remains: &PageTable, now: Ticks) {
        if self.table.word(page).owner() != dead {
            return;
        }
        let failed = Failed::Dead { receiver: dead, last: remains.word(page) };
        if self.table.reclaim(page, failed) != Ok(true) {
            return;
        }
        let word = self.table.word(page);
        self.note(page, now, Cause::Bereaved);
        self.routes.flip(page, word.owner(), word.epoch());
        self.closes(page, now);
        let counted = if word.is_writable() { &mut self.counts.kept } else { &mut self.counts.left };
        *counted += 1;
    }

    pub(super) fn inherit_some(&mut self, ground: &mut impl Ground, now: Ticks) {
        let Some(estate) = self.estates.last_mut() else { return };
        let (dead, remains, from) = (estate.dead, Arc::clone(&estate.remains), estate.next);
        let to = (from + HEIRLOOMS_MAX).min(remains.len() as u32);
        estate.next = to;
        for page in from..to {
            self.inherit(ground, page, dead, &remains, now);
        }
        if to == remains.len() as u32 {
            self.estates.retain(|estate| estate.dead != dead);
        }
    }

    /// A page of a dead silo that somebody asks for cannot wait for its turn.
    pub(super) fn inherit_if_dead(&mut self, ground: &mut impl Ground, page: u32, now: Ticks) {
        let owner = self.table.word(page).owner();
        let Some(estate) = self.estates.iter().find(|estate| estate.dead == owner) else { return };
        let remains = Arc::clone(&estate.remains);
        self.inherit(ground, page, owner, &remains, now);
    }

    fn inherit(&mut self, ground: &mut impl Ground, page: u32, dead: Silo, remains: &PageTable, now: Ticks) {
        let (last, moment) = (remains.word(page), self.base.moment(now));
        let was_open = self.table.word(page).awaits();
        // A race lost to a writer means that the page is this silo's already.
        let Ok(bequest) = self.table.inherit(page, (dead, last), moment, || ground.inherit(page, dead)) else { return };
        match bequest {
            Bequest::Nothing if last.state() == State::NotOwner && last.owner() != self.table.silo() => {
                let _ = self.table.learn(page, last.owner(), last.epoch());
                return;
            }
            Bequest::Nothing => return,
            Bequest::Owned { is_torn } => {
                self.counts.inherited += 1;
                self.counts.torn += u64::from(is_torn);
                self.routes.flip(page, self.table.silo(), self.table.word(page).epoch());
            }
            Bequest::Returned => self.counts.kept += 1,
            Bequest::Doubt { .. } => {
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
