//! The page word: one silo's complete knowledge of who may write a page, in 64 bits.
//!
//! Owns the layout only: words are values here. Bounds: 64 silos, 2²⁷ changes of owner, deadlines
//! up to [`LIVE_US_MAX`] ahead.
//!
//! ```text
//!   63        40 39              13 12     7   6   5  4      3     2   0
//!  | deadline µs |      epoch      | owner | busy | hint | exch | state |
//!       24              27             6      1      2      1      3
//! ```
//!
//! | state | owner | epoch | hint | deadline |
//! |---|---|---|---|---|
//! | IDLE, LOCAL_HOT | this silo | of its ownership | MIGRATE: draining | LOCAL_HOT: end of the heat |
//! | LEASED | this silo | of its ownership | kind of lease; MIGRATE: draining | end of the lease |
//! | TRANSFERRING, IN_DOUBT | the receiver | of the grant | asked for | end of waiting; next CANCEL |
//! | NOT_OWNER | last known owner | newest known | DEFAULT | 0 |
//!
//! The exchanging mark is set while a grant is awaited. In NOT_OWNER it means that the grant of
//! this epoch was cancelled here and is refused for ever.
//!
//! # Why
//!
//! *Deadlines wrap, epochs do not.* A deadline is compared within its range of 16.7 s: it is in the
//! future while it lies at most [`LIVE_US_MAX`] ahead. So a deadline that has passed counts as
//! passed for 12.5 s, and every page is swept within half a wrap. A silo that has not seen a page
//! for half the epochs could take a wrapped grant for an old grant and acknowledge a page that it
//! never installed. Epochs have no sweep, so a page whose epochs are exhausted stays where it is.

use crate::page::hint::Hint;

/// State of a page at one silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Owned, free to move.
    Idle,
    /// Owned, written less than the heat's duration ago.
    LocalHot,
    /// Owned under a lease.
    Leased,
    /// Granted to another silo; the acknowledgement is awaited.
    Transferring,
    /// Another silo owns it.
    NotOwner,
    /// Granted, and not acknowledged in time: no thread may write here until the receiver has
    /// answered or is dead.
    InDoubt,
}

crate::names! { State:
    Idle "IDLE", LocalHot "LOCAL_HOT", Leased "LEASED", Transferring "TRANSFERRING", NotOwner "NOT_OWNER",
    InDoubt "IN_DOUBT",
}

impl State {
    /// Codes 6 and 7 are never written; they read as the state that permits nothing.
    const fn of(code: u64) -> State {
        match code {
            0 => State::Idle,
            1 => State::LocalHot,
            2 => State::Leased,
            3 => State::Transferring,
            4 => State::NotOwner,
            _ => State::InDoubt,
        }
    }

    /// Whether the silo owns the page and may write it.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        matches!(self, State::Idle | State::LocalHot | State::Leased)
    }

    /// Whether a grant is awaited.
    #[must_use]
    pub const fn is_exchanging(self) -> bool {
        matches!(self, State::Transferring | State::InDoubt)
    }
}

/// Number of a silo: 0 to [`SILOS_MAX`] − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Silo(u8);

/// Most silos that a word can identify.
pub const SILOS_MAX: u8 = 64;

impl Silo {
    /// Silo `number`.
    ///
    /// # Panics
    /// If `number` is [`SILOS_MAX`] or more.
    #[must_use]
    pub const fn new(number: u8) -> Silo {
        assert!(number < SILOS_MAX, "a page word names 64 silos");
        Silo(number)
    }

    /// Its number, below [`SILOS_MAX`].
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The number of times a page has changed its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(u32);

impl Epoch {
    /// The last epoch: a page in it never moves again.
    pub const MAX: Epoch = Epoch(EPOCH_MASK as u32);

    /// Epoch `number`.
    ///
    /// # Panics
    /// If `number` lies beyond [`Epoch::MAX`].
    #[must_use]
    pub const fn new(number: u32) -> Epoch {
        assert!(number <= Epoch::MAX.0, "a page word counts 2^27 epochs");
        Epoch(number)
    }

    /// How many times the page has changed its owner.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The next epoch; the last epoch has none and stays.
    #[must_use]
    pub const fn next(self) -> Epoch {
        if self.0 == Epoch::MAX.0 { self } else { Epoch(self.0 + 1) }
    }
}

/// A moment in microseconds, modulo 2²⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Moment(u32);

/// Furthest that a deadline lies in the future: the longest lease, plus the difference between two
/// threads' clocks.
pub const LIVE_US_MAX: u32 = 1 << 22;
/// The longest lease that a request can get: 4 s.
pub const LEASE_US_MAX: u32 = 4_000_000;
const _: () = assert!(LEASE_US_MAX < LIVE_US_MAX && LIVE_US_MAX < 1 << 23);

impl Moment {
    /// `us` microseconds after any fixed origin.
    #[must_use]
    pub const fn from_micros(us: u64) -> Moment {
        Moment((us & DEADLINE_MASK) as u32)
    }

    /// The moment `us` later.
    #[must_use]
    pub const fn plus(self, us: u32) -> Moment {
        Moment(self.0.wrapping_add(us) & DEADLINE_MASK as u32)
    }

    /// Microseconds from `now` to this deadline; 0 if it has passed.
    #[must_use]
    pub const fn left_us(self, now: Moment) -> u32 {
        let ahead = self.0.wrapping_sub(now.0) & DEADLINE_MASK as u32;
        if ahead <= LIVE_US_MAX { ahead } else { 0 }
    }

    /// Whether this deadline has passed.
    #[must_use]
    pub const fn has_passed(self, now: Moment) -> bool {
        self.left_us(now) == 0
    }
}

const STATE_MASK: u64 = 7;
const EXCHANGING: u64 = 1 << 3;
const HINT_AT: u32 = 4;
const HINT_MASK: u64 = 3;
const BUSY: u64 = 1 << 6;
const OWNER_AT: u32 = 7;
const OWNER_MASK: u64 = 0x3f;
const EPOCH_AT: u32 = 13;
const EPOCH_MASK: u64 = (1 << 27) - 1;
const DEADLINE_AT: u32 = 40;
const DEADLINE_MASK: u64 = (1 << 24) - 1;
const _: () = assert!(
    STATE_MASK | EXCHANGING | HINT_MASK << HINT_AT | BUSY | OWNER_MASK << OWNER_AT | EPOCH_MASK << EPOCH_AT
        == (1 << DEADLINE_AT) - 1
        && DEADLINE_AT + 24 == u64::BITS
);

/// A page word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(u64);

impl Word {
    /// IDLE, owned by `silo`.
    #[must_use]
    pub const fn owned(silo: Silo, epoch: Epoch) -> Word {
        Word(0).with_state(State::Idle).with_owner(silo).with_epoch(epoch)
    }

    /// NOT_OWNER, with `owner` as the last known owner.
    #[must_use]
    pub const fn elsewhere(owner: Silo, epoch: Epoch) -> Word {
        Word(0).with_state(State::NotOwner).with_owner(owner).with_epoch(epoch)
    }

    /// The word with these bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Word {
        Word(bits)
    }

    /// The word as it is stored, by the layout above.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// State, as stored: see [`Word::settled`].
    #[must_use]
    pub const fn state(self) -> State {
        State::of(self.0 & STATE_MASK)
    }

    /// Whether the exchanging mark is set.
    #[must_use]
    pub const fn is_exchanging(self) -> bool {
        self.0 & EXCHANGING != 0
    }

    /// Whether the grant of this word's epoch was cancelled here.
    #[must_use]
    pub const fn is_fenced(self) -> bool {
        matches!(self.state(), State::NotOwner) && self.is_exchanging()
    }

    /// The hint in the word; the table above gives its meaning in each state.
    #[must_use]
    pub const fn hint(self) -> Hint {
        Hint::of((self.0 >> HINT_AT) & HINT_MASK)
    }

    /// Whether another silo waits for heat or a lease to end: heat is not renewed and no lease
    /// begins.
    #[must_use]
    pub const fn is_draining(self) -> bool {
        self.state().is_writable() && matches!(self.hint(), Hint::Migrate)
    }

    /// Whether a write is in progress.
    #[must_use]
    pub const fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    /// Whether the silo owns the page and may write it.
    #[inline]
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 & STATE_MASK <= State::Leased as u64
    }

    /// Whether a grant's end is awaited.
    #[inline]
    #[must_use]
    pub const fn awaits(self) -> bool {
        self.0 & EXCHANGING != 0 && self.0 & STATE_MASK != State::NotOwner as u64
    }

    /// Whether the silo owns the page and it is free to move: no heat, no lease, no write in
    /// progress. A drain may be set.
    #[inline]
    #[must_use]
    pub const fn is_at_rest(self) -> bool {
        self.0 & (STATE_MASK | EXCHANGING | BUSY) == State::Idle as u64
    }

    /// Owner, receiver or last known owner: see the table above.
    #[must_use]
    pub const fn owner(self) -> Silo {
        Silo(((self.0 >> OWNER_AT) & OWNER_MASK) as u8)
    }

    /// Epoch of the silo's ownership, of the awaited grant, or the newest known: by state, see the
    /// table above.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        Epoch(((self.0 >> EPOCH_AT) & EPOCH_MASK) as u32)
    }

    /// When the state ends or is checked again: see the table above.
    #[must_use]
    pub const fn deadline(self) -> Moment {
        Moment((self.0 >> DEADLINE_AT) as u32)
    }

    /// The word with another state.
    #[must_use]
    pub const fn with_state(self, state: State) -> Word {
        Word(self.0 & !STATE_MASK | state as u64)
    }

    /// The word with the exchanging mark.
    #[must_use]
    pub const fn exchanging(self) -> Word {
        Word(self.0 | EXCHANGING)
    }

    /// The word with another hint.
    #[must_use]
    pub const fn with_hint(self, hint: Hint) -> Word {
        Word(self.0 & !(HINT_MASK << HINT_AT) | (hint as u64) << HINT_AT)
    }

    /// The word with a write in progress.
    #[must_use]
    pub const fn busy(self) -> Word {
        Word(self.0 | BUSY)
    }

    /// The word without a write in progress.
    #[must_use]
    pub const fn quiet(self) -> Word {
        Word(self.0 & !BUSY)
    }

    /// The word with another owner.
    #[must_use]
    pub const fn with_owner(self, owner: Silo) -> Word {
        Word(self.0 & !(OWNER_MASK << OWNER_AT) | (owner.0 as u64) << OWNER_AT)
    }

    /// The word with another epoch.
    #[must_use]
    pub const fn with_epoch(self, epoch: Epoch) -> Word {
        Word(self.0 & !(EPOCH_MASK << EPOCH_AT) | (epoch.0 as u64) << EPOCH_AT)
    }

    /// The word with another deadline.
    #[must_use]
    pub const fn with_deadline(self, deadline: Moment) -> Word {
        Word(self.0 & !(DEADLINE_MASK << DEADLINE_AT) | (deadline.0 as u64) << DEADLINE_AT)
    }

    /// TRANSFERRING to `to` in the next epoch. The last epoch has no next one.
    #[inline(always)]
    #[must_use]
    pub const fn granted(self, to: Silo, hint: Hint, deadline: Moment) -> Word {
        let fixed = Word(EXCHANGING).with_state(State::Transferring).with_hint(hint);
        let fixed = fixed.with_owner(to).with_deadline(deadline);
        // The epoch is incremented in place: shifting it out and in would lengthen the path between
        // the load and the exchange.
        Word(((self.0 & EPOCH_MASK << EPOCH_AT) + (1 << EPOCH_AT)) & EPOCH_MASK << EPOCH_AT | fixed.0)
    }

    /// The word at `now`, with expired heat and leases removed.
    #[inline]
    #[must_use]
    pub const fn settled(self, now: Moment) -> Word {
        match self.state() {
            State::LocalHot | State::Leased if self.deadline().has_passed(now) => self.cooled(),
            _ => self,
        }
    }

    /// The word without heat or lease; a drain stays.
    #[must_use]
    pub const fn cooled(self) -> Word {
        let hint = if self.is_draining() { Hint::Migrate } else { Hint::Default };
        self.with_state(State::Idle).with_hint(hint).with_deadline(Moment(0))
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (state, owner, epoch) = (self.state(), self.owner().0, self.epoch().0);
        write!(f, "{state:?}(owner {owner}, epoch {epoch}, {:?}", self.hint())?;
        write!(f, "{}", if self.is_busy() { ", busy" } else { "" })?;
        write!(f, "{}, deadline {})", if self.is_exchanging() { ", exchanging" } else { "" }, self.deadline().0)
    }
}
