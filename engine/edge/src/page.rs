//! Pages: who may write a stream's state, one word per page and silo.
//!
//! Owns the words of one silo. Its decode workers begin and end writes, its arbiter decides and transfers; every
//! transition is one CAS on the page's word, so a commit cannot slip in between a check and a mark. No other silo
//! touches the table: silos talk by rings. Bounds: [`PAGES_MAX`] pages; an operation loses at most [`RACES_MAX`] races.
//! Never copies a page, never waits, never reads a clock, never allocates after construction.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | O1 | end of a write | [`PageTable::decide`] | the committed bytes, to the thread that sends them |
//! | O2 | [`PageTable::install`] | [`PageTable::begin_write`] | the received bytes |
//! | O3 | [`PageTable::reclaim`] | [`PageTable::begin_write`], as O2 | that the bytes sent have been read |
//! | O4 | [`PageTable::inherit`] | [`PageTable::begin_write`], as O2 | a dead silo's bytes |
//! | O5 | [`Routes::flip`] | [`Routes::route`] | see `route` |
//! | O6 | [`Marks::set`] | [`Marks::get`] | see `mark` |
//!
//! A worker also sees what the worker before it wrote: O1's release, O2's acquire. Every transition is a
//! read-modify-write, so those in between continue the release sequence and need no ordering of their own.
//!
//! # Why
//!
//! *A line per page.* Words side by side would make pages that have nothing to do with each other wait for one line; a
//! pair of lines would double the table (2²⁰ pages: 64 MiB) for a prefetcher that brings a neighbour nobody asked for.
//!
//! *No owner bit outside the word.* One shared word for all silos would make the protocol theatre: its messages would
//! carry nothing that the word does not say. Each table is one silo's knowledge, and may be old.

mod decide;
mod estate;
mod mark;
mod request;
mod route;
mod transfer;
mod word;

use decide::at_rest;
pub use decide::{WriteRefused, at_length, begin_write, commit, decide, release};
pub use estate::{Bequest, inherited};
pub use mark::Marks;
pub use request::{Authority, Hint, How, Limits, Request, Response, Signals, WriteBuffer};
pub use route::{Role, Route, Routes};
pub use transfer::{Due, Grant, Receipt, acknowledged, bereaved, cancel, due, install, learned, reclaimed};
pub use word::{Epoch, LEASE_US_MAX, LIVE_US_MAX, Moment, SILOS_MAX, Silo, State, Word};

use crate::sync::{AtomicU64, Ordering, edge};

/// Most pages of a table.
pub const PAGES_MAX: u32 = 1 << 20;
/// Races that an operation may lose before it gives up. Whoever won has moved on, so somebody always does.
pub const RACES_MAX: u32 = 16;

/// Keeps a word on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Line(AtomicU64);

/// The page words of one silo.
#[derive(Debug)]
pub struct PageTable {
    me: Silo,
    limits: Limits,
    words: Box<[Line]>,
}

/// Other transitions won each of an operation's attempts; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contended;

impl PageTable {
    /// The table of silo `me`, with `pages` pages that `owner` says the owners of.
    ///
    /// # Panics
    /// If there are more than [`PAGES_MAX`] pages, or a lease could outlast [`LEASE_US_MAX`].
    #[must_use]
    pub fn new(me: Silo, pages: u32, limits: Limits, owner: impl Fn(u32) -> Silo) -> PageTable {
        assert!(pages <= PAGES_MAX, "a table holds {PAGES_MAX} pages at most, not {pages}");
        let word = |owner| match owner {
            owner if owner == me => Word::owned(me, Epoch::default()),
            owner => Word::elsewhere(owner, Epoch::default()),
        };
        PageTable::restored(me, limits, (0..pages).map(|page| word(owner(page))))
    }

    /// The table of silo `me`, with the words that a table of this silo held before.
    ///
    /// # Panics
    /// As [`PageTable::new`].
    #[must_use]
    pub fn restored(me: Silo, limits: Limits, words: impl IntoIterator<Item = Word>) -> PageTable {
        let longest_us = [limits.hot_us, limits.lease_us_max, limits.lock_us_max, limits.ack_us, limits.resend_us];
        assert!(longest_us.iter().all(|us| *us <= LEASE_US_MAX), "a deadline lies {LEASE_US_MAX} us ahead at most");
        let words: Box<[Line]> = words.into_iter().map(|word| Line(AtomicU64::new(word.bits()))).collect();
        assert!(words.len() <= PAGES_MAX as usize, "a table holds {PAGES_MAX} pages at most, not {}", words.len());
        PageTable { me, limits, words }
    }

    /// Whose table it is.
    #[must_use]
    pub fn silo(&self) -> Silo {
        self.me
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The word of `page`: a copy, old as soon as it is read. Publishes nothing.
    ///
    /// # Panics
    /// As every operation here, if there is no such page.
    #[inline]
    #[must_use]
    pub fn word(&self, page: u32) -> Word {
        Word::from_bits(self.words[page as usize].0.load(Ordering::Relaxed))
    }

    /// Applies `step` to the word of `page` in one CAS, or not at all if it leaves the word as it is.
    #[inline(always)]
    fn step<R>(&self, page: u32, won: Ordering, step: impl Fn(Word) -> (R, Word) + Copy) -> Result<R, Contended> {
        let word = &self.words[page as usize].0;
        // ORDERING: Relaxed here and on a lost race: a step only computes from the word; what it may touch depends on
        // the exchange that succeeds, which carries `won`.
        let seen = word.load(Ordering::Relaxed);
        let (result, next) = step(Word::from_bits(seen));
        if next.bits() == seen {
            return Ok(result);
        }
        match word.compare_exchange(seen, next.bits(), won, Ordering::Relaxed) {
            Ok(_) => Ok(result),
            Err(other) => after_a_lost_race(word, other, won, step),
        }
    }

    /// Decides `request` on `page`. After `Granted` with [`How::Moves`] or [`How::Forced`] the caller alone may read the
    /// bytes, and sends them. A lost race is answered COLLISION.
    #[inline]
    pub fn decide(&self, page: u32, request: &Request, signals: Signals, now: Moment) -> Response {
        // ORDERING: acquire side of O1: the sender copies what writers committed. Relaxed could copy a page half
        // written; Release adds nothing, the decision writes no bytes. Model: loom_page::a_commit_is_sent_or_refused.
        let won = edge("O1.acquire", Ordering::Acquire);
        let word = &self.words[page as usize].0;
        let seen = Word::from_bits(word.load(Ordering::Relaxed));
        if let Some(next) = at_rest(seen, request, signals, &self.limits, now)
            && word.compare_exchange(seen.bits(), next.bits(), won, Ordering::Relaxed).is_ok()
        {
            return Response::Granted { epoch: next.epoch(), how: How::Moves };
        }
        // A copy, so that the request of a page at rest never has to lie in memory: its stores would stand before the
        // exchange, which waits for them.
        self.decide_at_length(page, *request, signals, now, won)
    }

    #[inline(never)]
    fn decide_at_length(&self, page: u32, request: Request, signals: Signals, now: Moment, won: Ordering) -> Response {
        let limits = &self.limits;
        self.step(page, won, |word| decide(word, &request, signals, limits, now)).unwrap_or(Response::Collision)
    }

    /// Begins a write of `page`: until it is committed or dropped, no transfer starts.
    ///
    /// # Errors
    /// If this silo may not write the page now.
    #[inline]
    pub fn begin_write(&self, page: u32) -> Result<Writing<'_>, WriteRefused> {
        // ORDERING: acquire side of O2 and O3: the writer reads what was installed or written before, and overwrites
        // what a sender has read. Relaxed lets the write overtake either. Release adds nothing: nothing was written yet.
        // Model: loom_page::installed_bytes_are_read_by_the_next_writer.
        let won = edge("O2.acquire", Ordering::Acquire);
        let begun = self.step(page, won, |word| match begin_write(word) {
            Ok(next) => (Ok(()), next),
            Err(refused) => (Err(refused), word),
        });
        begun.unwrap_or(Err(WriteRefused::Contended)).map(|()| Writing { table: self, page })
    }

    /// The end of a write. Not given up: a page that stayed busy could never move. While it is busy only deadlines and
    /// drains change the word, and each changes it once.
    #[inline]
    fn end_write(&self, page: u32, next: impl Fn(Word) -> Word) {
        // ORDERING: release side of O1, publishing the write. Relaxed could send, or let the next writer read, a page
        // half written. Model: loom_page::a_commit_is_sent_or_refused.
        let won = edge("O1.release", Ordering::Release);
        while self.step(page, won, |word| ((), next(word))).is_err() {}
    }

    /// A GRANT has arrived. `put` puts its bytes in place, and is called only if nobody else can touch them.
    ///
    /// # Errors
    /// If every race was lost; the granter will ask again.
    pub fn install(&self, page: u32, grant: &Grant, now: Moment, put: impl FnOnce()) -> Result<Receipt, Contended> {
        let step = |word| install(word, self.me, grant, &self.limits, now);
        // The one thread that installs is the one that could change this verdict: writers are refused meanwhile.
        if step(self.word(page)).0 == Receipt::Installed {
            put();
        }
        // ORDERING: release side of O2, publishing the bytes put in place. Relaxed could let a writer begin on the bytes
        // before. Model: loom_page::installed_bytes_are_read_by_the_next_writer.
        self.step(page, edge("O2.release", Ordering::Release), step)
    }

    /// A CANCEL of `epoch` has arrived from `from`.
    ///
    /// # Errors
    /// If every race was lost; the granter will ask again.
    pub fn cancel(&self, page: u32, from: Silo, epoch: Epoch) -> Result<Receipt, Contended> {
        self.step(page, Ordering::Relaxed, |word| cancel(word, from, epoch))
    }

    /// An ACK of `epoch` has arrived from `from`. Returns whether it ended a transfer: then the route flips.
    ///
    /// # Errors
    /// If every race was lost; a CANCEL will bring the ACK again.
    pub fn acknowledged(&self, page: u32, from: Silo, epoch: Epoch) -> Result<bool, Contended> {
        self.step(page, Ordering::Relaxed, |word| changed(word, acknowledged(word, from, epoch)))
    }

    /// A transfer has failed for the reason `why`. Returns whether that ended it; [`PageTable::word`] says where the page is.
    ///
    /// # Errors
    /// If every race was lost; a CANCEL will bring the answer again, and death stays.
    #[inline]
    pub fn reclaim(&self, page: u32, why: Failed) -> Result<bool, Contended> {
        // ORDERING: release side of O3: the sender has read the bytes that writers may now change. Relaxed lets a write
        // overtake the reading. Model: loom_page::a_reclaimed_page_is_written_after_it_was_sent.
        let won = edge("O3.release", Ordering::Release);
        let me = self.me;
        match why {
            Failed::Cancelled { from, epoch } => {
                self.step(page, won, move |word| changed(word, reclaimed(word, me, from, epoch)))
            }
            Failed::Dead { receiver, last } => {
                self.step(page, won, move |word| changed(word, bereaved(word, me, receiver, last)))
            }
        }
    }

    /// Silo `dead` is fenced with `last` as its own word of `page`, and this silo is its one heir. `put` puts the dead
    /// silo's bytes in place, and is called only if nobody else can touch them here.
    ///
    /// # Errors
    /// If every race was lost; the next look finds the same.
    pub fn inherit(
        &self,
        page: u32,
        (dead, last): (Silo, Word),
        now: Moment,
        put: impl FnOnce(),
    ) -> Result<Bequest, Contended> {
        let step = |word| inherited(word, self.me, dead, last, &self.limits, now);
        // As in `install`: the one thread that inherits is the one that could change this verdict.
        if step(self.word(page)).0.has_bytes() {
            put();
        }
        // ORDERING: release side of O4, publishing the bytes put in place. Relaxed could let a writer begin on the bytes
        // before. Model: loom_page::inherited_bytes_are_read_by_the_next_writer.
        self.step(page, edge("O4.release", Ordering::Release), step)
    }

    /// Another silo says that `owner` has `page` in `epoch`.
    ///
    /// # Errors
    /// If every race was lost; the next refusal says it again.
    pub fn learn(&self, page: u32, owner: Silo, epoch: Epoch) -> Result<(), Contended> {
        self.step(page, Ordering::Relaxed, |word| ((), learned(word, owner, epoch)))
    }

    /// This table begins anew, behind a silo that was fenced and whose pages were inherited: `page` is `owner`'s in `epoch`, as
    /// another silo's table has it. For whoever has the table alone; that it is old news costs a refusal, as anywhere.
    pub fn restart(&self, page: u32, owner: Silo, epoch: Epoch) {
        // Relaxed: who works with the table next is handed it by an edge of its own.
        self.words[page as usize].0.store(Word::elsewhere(owner, epoch).bits(), Ordering::Relaxed);
    }

    /// Gives a lease of this silo back.
    ///
    /// # Errors
    /// If every race was lost; the lease ends by itself.
    pub fn release(&self, page: u32) -> Result<(), Contended> {
        self.step(page, Ordering::Relaxed, |word| ((), release(word)))
    }

    /// Looks at the deadline of `page`.
    ///
    /// # Errors
    /// If every race was lost; the next look finds the same.
    pub fn due(&self, page: u32, now: Moment) -> Result<Due, Contended> {
        self.step(page, Ordering::Relaxed, |word| due(word, &self.limits, now))
    }
}

/// Why a transfer ends without an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// A CANCEL_ACK has arrived.
    Cancelled {
        /// From whom.
        from: Silo,
        /// Of which epoch.
        epoch: Epoch,
    },
    /// The receiver is dead: its thread is joined, or has published that its root handler died. Late is not dead.
    Dead {
        /// Who.
        receiver: Silo,
        /// Its own word of the page, read after it was joined.
        last: Word,
    },
}

/// The attempts after the first, apart from it: whoever meets nobody should not carry them.
#[cold]
#[inline(never)]
fn after_a_lost_race<R>(
    word: &AtomicU64,
    mut seen: u64,
    won: Ordering,
    step: impl Fn(Word) -> (R, Word),
) -> Result<R, Contended> {
    for _ in 1..RACES_MAX {
        let (result, next) = step(Word::from_bits(seen));
        if next.bits() == seen {
            return Ok(result);
        }
        match word.compare_exchange(seen, next.bits(), won, Ordering::Relaxed) {
            Ok(_) => return Ok(result),
            Err(other) => seen = other,
        }
    }
    Err(Contended)
}

#[inline(always)]
fn changed(word: Word, next: Option<Word>) -> (bool, Word) {
    (next.is_some(), next.unwrap_or(word))
}

/// A write in progress. Dropping it ends the write without a commit.
#[derive(Debug)]
#[must_use]
pub struct Writing<'a> {
    table: &'a PageTable,
    page: u32,
}

impl Writing<'_> {
    /// Commits: the page is hot, unless a lease dominates or it drains.
    #[inline]
    pub fn commit(self, now: Moment) {
        let (table, page) = (self.table, self.page);
        std::mem::forget(self);
        table.end_write(page, |word| commit(word, &table.limits, now));
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.table.end_write(self.page, Word::quiet);
    }
}
