//! Pages: which silo may write a stream's state, one word per page and silo.
//!
//! Owns the words of one silo. Writers begin and end writes; the silo's arbiter decides and
//! transfers. Every transition is one CAS on the page's word, so no commit can happen between a
//! check and a mark. A thread that writes and also runs the arbiter needs no mark between check and
//! write ([`PageTable::may_write`], [`PageTable::written`]): so does the engine's graph role. No other silo accesses the table: silos communicate by rings. Bounds:
//! [`PAGES_MAX`] pages; an operation loses at most [`RACES_MAX`] races. Never copies a page, never
//! waits, never reads a clock, never allocates after construction.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | O1 | end of a write | [`PageTable::decide`] | the committed bytes, to the thread that sends them |
//! | O2 | [`PageTable::install`] | [`PageTable::begin_write`] | the received bytes |
//! | O3 | [`PageTable::reclaim`] | [`PageTable::begin_write`], as O2 | that the bytes sent have been read |
//! | O4 | [`PageTable::take_over`] | [`PageTable::begin_write`], as O2 | a dead silo's bytes |
//! | O5 | [`Routes::flip`] | [`Routes::route`] | see `route` |
//! | O6 | [`Marks::set`] | [`Marks::get`] | see `mark` |
//!
//! A worker also sees the writes of the worker before it: O1's release, O2's acquire. Every
//! transition is a read-modify-write, so those in between continue the release sequence and need no
//! ordering of their own.
//!
//! # Why
//!
//! *One cache line per page.* With words side by side, unrelated pages would contend for one line.
//! A pair of lines would double the table (2²⁰ pages: 64 MiB) only to avoid the adjacent-line
//! prefetcher.
//!
//! *No owner bit outside the word.* With one word shared by all silos the protocol would be
//! redundant: its messages would carry no more than the word. Each table is the knowledge of one
//! silo, and may be outdated.

mod cause;
mod decide;
mod takeover;
mod hint;
mod mark;
mod request;
mod route;
mod transfer;
mod word;

pub use cause::Cause;
use decide::at_rest;
pub use decide::{WriteRefused, at_length, begin_write, commit, decide, release};
pub use hint::Hint;
pub use mark::Marks;
pub use request::{Authority, How, Limits, Request, Response, Signals, WriteBuffer};
pub use route::{Role, Route, Routes};
pub use takeover::{Takeover, taken_over};
pub use transfer::{Due, Grant, Receipt, acknowledged, cancel, due, install, learned, receiver_died, reclaimed};
pub use word::{Epoch, LEASE_US_MAX, LIVE_US_MAX, Moment, SILOS_MAX, Silo, State, Word};

use crate::sync::{AtomicU64, Ordering, edge};

/// Most pages of a table.
pub const PAGES_MAX: u32 = 1 << 20;
/// Most races that an operation loses before it gives up. Each lost race is another operation's
/// progress.
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

/// Other transitions won each of an operation's attempts; the word is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contended;

impl PageTable {
    /// The table of silo `me`, with `pages` pages; `owner` gives the first owner of each.
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

    /// The table of silo `me`, with the words of an earlier table of this silo.
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

    /// The silo that the table belongs to.
    #[must_use]
    pub fn silo(&self) -> Silo {
        self.me
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no pages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// A copy of the word of `page`, which may be outdated at once. Publishes nothing.
    ///
    /// # Panics
    /// If there is no such page, as in every operation here.
    #[inline]
    #[must_use]
    pub fn word(&self, page: u32) -> Word {
        Word::from_bits(self.words[page as usize].0.load(Ordering::Relaxed))
    }

    /// Applies `step` to the word of `page` in one CAS; makes no store if `step` leaves the word
    /// unchanged.
    #[inline(always)]
    fn step<R>(&self, page: u32, won: Ordering, step: impl Fn(Word) -> (R, Word) + Copy) -> Result<R, Contended> {
        let word = &self.words[page as usize].0;
        // ORDERING: Relaxed here and on a lost race: a step only computes from the word; the
        // accesses that it permits depend on the exchange that succeeds, which carries `won`.
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

    /// Decides `request` for `page`. After `Granted` with [`How::Moves`] or [`How::Forced`] only
    /// the caller may read the bytes, and sends them. A lost race is answered COLLISION.
    #[inline]
    pub fn decide(&self, page: u32, request: &Request, signals: Signals, now: Moment) -> Response {
        // ORDERING: acquire side of O1: the sender copies what writers committed. Relaxed could
        // copy a page half written; Release adds nothing, the decision writes no bytes. Model:
        // loom_page::a_commit_is_sent_or_refused.
        let won = edge("O1.acquire", Ordering::Acquire);
        let word = &self.words[page as usize].0;
        let seen = Word::from_bits(word.load(Ordering::Relaxed));
        if let Some(next) = at_rest(seen, request, signals, &self.limits, now)
            && word.compare_exchange(seen.bits(), next.bits(), won, Ordering::Relaxed).is_ok()
        {
            return Response::Granted { epoch: next.epoch(), how: How::Moves };
        }
        // Passed by copy, so that the request of a page at rest is never stored to memory: the
        // stores would precede the exchange, which waits for them.
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
        // ORDERING: acquire side of O2 and O3: the writer reads what was installed or written
        // before, and overwrites what a sender has read. Relaxed lets the write overtake either.
        // Release adds nothing: nothing was written yet. Model:
        // loom_page::installed_bytes_are_read_by_the_next_writer.
        let won = edge("O2.acquire", Ordering::Acquire);
        let begun = self.step(page, won, |word| match begin_write(word) {
            Ok(next) => (Ok(()), next),
            Err(refused) => (Err(refused), word),
        });
        begun.unwrap_or(Err(WriteRefused::Contended)).map(|()| Writing { table: self, page })
    }

    /// Whether the thread that runs every transition of this table may write `page` now. Nothing is
    /// marked: no transition can come before that thread's [`PageTable::written`].
    ///
    /// # Errors
    /// If this silo may not write the page now.
    #[inline]
    pub fn may_write(&self, page: u32) -> Result<(), WriteRefused> {
        begin_write(self.word(page)).map(|_| ())
    }

    /// Commits a write that [`PageTable::may_write`] allowed: the page becomes hot, unless a lease
    /// dominates or the page drains. A plain store: call it only from the thread that runs every
    /// transition of this table, or a transition of another thread is lost.
    #[inline]
    pub fn written(&self, page: u32, now: Moment) {
        // ORDERING: Relaxed: whoever sends or overwrites the bytes is this thread. Other threads
        // read a copy of the word, which publishes nothing.
        let next = commit(self.word(page), &self.limits, now);
        self.words[page as usize].0.store(next.bits(), Ordering::Relaxed);
    }

    /// Ends a write. It retries without limit, because a page that stayed busy could never move.
    /// While the page is busy only deadlines and drains change the word, each of them once.
    #[inline]
    fn end_write(&self, page: u32, next: impl Fn(Word) -> Word) {
        // ORDERING: release side of O1, publishing the write. Relaxed could send, or let the next
        // writer read, a page half written. Model: loom_page::a_commit_is_sent_or_refused.
        let won = edge("O1.release", Ordering::Release);
        while self.step(page, won, |word| ((), next(word))).is_err() {}
    }

    /// Installs the page of a GRANT. `put` installs its bytes; it is called only if no other thread
    /// can access them.
    ///
    /// # Errors
    /// If every race was lost; the granter will ask again.
    pub fn install(&self, page: u32, grant: &Grant, now: Moment, put: impl FnOnce()) -> Result<Receipt, Contended> {
        let step = |word| install(word, self.me, grant, &self.limits, now);
        // Only this thread could change this verdict, because it is the one that installs and
        // writers are refused meanwhile.
        if step(self.word(page)).0 == Receipt::Installed {
            put();
        }
        // ORDERING: release side of O2, publishing the installed bytes. Relaxed could let a writer
        // begin on the bytes before. Model: loom_page::installed_bytes_are_read_by_the_next_writer.
        self.step(page, edge("O2.release", Ordering::Release), step)
    }

    /// Handles a CANCEL of `epoch` from `from`.
    ///
    /// # Errors
    /// If every race was lost; the granter will ask again.
    pub fn cancel(&self, page: u32, from: Silo, epoch: Epoch) -> Result<Receipt, Contended> {
        self.step(page, Ordering::Relaxed, |word| cancel(word, from, epoch))
    }

    /// Handles an ACK of `epoch` from `from`. Returns whether it ended a transfer: then the route
    /// flips.
    ///
    /// # Errors
    /// If every race was lost; a CANCEL causes another ACK.
    pub fn acknowledged(&self, page: u32, from: Silo, epoch: Epoch) -> Result<bool, Contended> {
        self.step(page, Ordering::Relaxed, |word| changed(word, acknowledged(word, from, epoch)))
    }

    /// A transfer has failed for the reason `why`. Returns whether that ended it;
    /// [`PageTable::word`] then shows where the page is.
    ///
    /// # Errors
    /// If every race was lost; a CANCEL causes another answer, and a death is permanent.
    #[inline]
    pub fn reclaim(&self, page: u32, why: Failed) -> Result<bool, Contended> {
        // ORDERING: release side of O3: the sender has read the bytes that writers may now change.
        // Relaxed lets a write overtake the reading. Model:
        // loom_page::a_reclaimed_page_is_written_after_it_was_sent.
        let won = edge("O3.release", Ordering::Release);
        let me = self.me;
        match why {
            Failed::Cancelled { from, epoch } => {
                self.step(page, won, move |word| changed(word, reclaimed(word, me, from, epoch)))
            }
            Failed::Dead { receiver, last } => {
                self.step(page, won, move |word| changed(word, receiver_died(word, me, receiver, last)))
            }
        }
    }

    /// Takes a page over: silo `dead` is fenced, `last` is its own word of `page`, and this silo is
    /// its only successor. `put` installs the dead silo's bytes; it is called only if no other
    /// thread here can access them.
    ///
    /// # Errors
    /// If every race was lost; the next check finds the same state.
    pub fn take_over(
        &self,
        page: u32,
        (dead, last): (Silo, Word),
        now: Moment,
        put: impl FnOnce(),
    ) -> Result<Takeover, Contended> {
        let step = |word| taken_over(word, self.me, dead, last, &self.limits, now);
        // As in `install`: only this thread could change this verdict, because it is the one that
        // takes over.
        if step(self.word(page)).0.has_bytes() {
            put();
        }
        // ORDERING: release side of O4, publishing the installed bytes. Relaxed could let a writer
        // begin on the bytes before. Model: loom_page::inherited_bytes_are_read_by_the_next_writer.
        self.step(page, edge("O4.release", Ordering::Release), step)
    }

    /// Records another silo's report that `owner` has `page` in `epoch`.
    ///
    /// # Errors
    /// If every race was lost; the next refusal repeats the report.
    pub fn learn(&self, page: u32, owner: Silo, epoch: Epoch) -> Result<(), Contended> {
        self.step(page, Ordering::Relaxed, |word| ((), learned(word, owner, epoch)))
    }

    /// Resets `page` for a silo that restarts after it was fenced and its pages were taken over:
    /// `owner` has it in `epoch`, according to another silo's table. The caller must have exclusive
    /// access to the table. Outdated information costs one refusal, as anywhere.
    pub fn restart(&self, page: u32, owner: Silo, epoch: Epoch) {
        // Relaxed: the table's next users receive it by an edge of their own.
        self.words[page as usize].0.store(Word::elsewhere(owner, epoch).bits(), Ordering::Relaxed);
    }

    /// Releases a lease of this silo.
    ///
    /// # Errors
    /// If every race was lost; the lease ends by itself.
    pub fn release(&self, page: u32) -> Result<(), Contended> {
        self.step(page, Ordering::Relaxed, |word| ((), release(word)))
    }

    /// Checks the deadline of `page`.
    ///
    /// # Errors
    /// If every race was lost; the next check finds the same state.
    pub fn due(&self, page: u32, now: Moment) -> Result<Due, Contended> {
        self.step(page, Ordering::Relaxed, |word| due(word, &self.limits, now))
    }
}

/// Why a transfer ends without an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// A CANCEL_ACK has arrived.
    Cancelled {
        /// The silo that sent it.
        from: Silo,
        /// Epoch of the CANCEL_ACK.
        epoch: Epoch,
    },
    /// The receiver is dead: its thread is joined, or has published that its root handler died. A
    /// late receiver is not dead.
    Dead {
        /// The silo that the page was granted to.
        receiver: Silo,
        /// The receiver's own word of the page, read after the join.
        last: Word,
    },
}

/// The attempts after the first, in a function of their own: the uncontended path stays small.
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
    /// Commits: the page becomes hot, unless a lease dominates or the page drains.
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
