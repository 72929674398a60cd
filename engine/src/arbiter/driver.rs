//! The call that a driver makes: may this silo write the page at this address?
//!
//! Runs on the arbiter's thread of the silo that asks. Owns no state. Bounds: no loop, no wait: the answer is there, or
//! there is a message to send to the silo that has the page as far as this one knows. What a refusal advises is in
//! [`super::retry`]; when to ask again says its [`BackOff`], at which a hot thread looks once a frame. Source: seed 001 §5.

use crate::arbiter::page::{Authority, Hint, Moment, PageTable, Request, Response, Signals, Silo, State};
use crate::arbiter::protocol::Message;
use crate::arbiter::retry::BackOff;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4_096;

/// A global virtual address: any byte of a page names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gva(pub u64);

/// What a page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// What for.
    pub hint: Hint,
    /// Lease asked for.
    pub ttl_us: u32,
    /// In whose name.
    pub authority: Authority,
}

impl From<(Hint, u32)> for Want {
    /// In the name of a port.
    fn from((hint, ttl_us): (Hint, u32)) -> Want {
        Want { hint, ttl_us, authority: Authority::Port }
    }
}

/// What a request came to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Asked {
    /// Decided here.
    Here(Response),
    /// Send this; the answer comes as a message.
    Send {
        /// To whom.
        to: Silo,
        /// Of which page.
        page: u32,
        /// What.
        message: Message,
    },
}

/// A request was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No such page.
    #[error("address {:#x} lies beyond the {pages} pages of this table; expected one below {:#x}", .gva.0, *pages as u64 * PAGE_BYTES)]
    NoPage {
        /// What was asked for.
        gva: Gva,
        /// Pages there are.
        pages: usize,
    },
}

/// Asks for the page at `gva`. `back_off` says how often it was refused before.
///
/// # Errors
/// If there is no such page.
pub fn request_ownership(
    table: &PageTable,
    gva: Gva,
    want: impl Into<Want>,
    back_off: &BackOff,
    signals: Signals,
    now: Moment,
) -> Result<Asked, AskError> {
    let page = page_of(table, gva)?;
    let word = table.word(page);
    let (from, epoch, refusals) = (table.silo(), word.epoch(), back_off.refusals());
    let Want { hint, ttl_us, authority } = want.into();
    let request = Request { from, epoch, hint, ttl_us, refusals, authority };
    Ok(match word.state() {
        State::NotOwner if word.owner() != from => {
            Asked::Send { to: word.owner(), page, message: Message::Request(request) }
        }
        _ => Asked::Here(table.decide(page, &request, signals, now)),
    })
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Released {
    /// The lease is over, and whoever waits may have the page.
    Given,
    /// There was none: it has ended by its time, or the page is another silo's.
    NotHeld,
    /// Other transitions came first, each time: ask again, or let it end by its time.
    Contended,
}

/// Gives the lease of the page at `gva` back: the explicit end of a LOCK.
///
/// # Errors
/// If there is no such page.
pub fn release_ownership(table: &PageTable, gva: Gva) -> Result<Released, AskError> {
    let page = page_of(table, gva)?;
    if table.word(page).state() != State::Leased {
        return Ok(Released::NotHeld);
    }
    Ok(if table.release(page).is_ok() { Released::Given } else { Released::Contended })
}

/// The page at `gva`.
///
/// # Errors
/// If there is none.
pub fn page_of(table: &PageTable, gva: Gva) -> Result<u32, AskError> {
    let pages = table.len();
    let page = u32::try_from(gva.0 / PAGE_BYTES).ok().filter(|page| (*page as usize) < pages);
    page.ok_or(AskError::NoPage { gva, pages })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{AskError, Asked, Gva, PAGE_BYTES, Released, release_ownership, request_ownership};
    use crate::arbiter::page::{Hint, How, Limits, Moment, PageTable, Response, Signals, Silo, WriteBuffer};
    use crate::arbiter::protocol::{Change, Message, receive};
    use crate::arbiter::retry::BackOff;

    const NOW: Moment = Moment::from_micros(50);
    const DRAINED: Signals = Signals { write_buffer: WriteBuffer::Drained };

    #[test]
    fn a_page_is_asked_of_its_owner_arrives_and_is_here_from_then_on() {
        let [asks, has] = [0, 1].map(|silo| PageTable::new(Silo::new(silo), 2, Limits::SEED, |_| Silo::new(1)));
        let back_off = BackOff::new(1);
        let gva = Gva(PAGE_BYTES + 8);
        let ask = || request_ownership(&asks, gva, (Hint::Lock, 40), &back_off, DRAINED, NOW).unwrap();
        let Asked::Send { to, page, message } = ask() else { panic!("the page is not here") };
        assert_eq!((to, page), (Silo::new(1), 1));
        let granted = receive(&has, page, (Silo::new(0), &message), DRAINED, NOW, || ());
        assert_eq!(granted.change, Change::Departs(How::Moves));
        let mut bytes = 0;
        let arrived = receive(&asks, page, (to, &granted.reply.unwrap()), DRAINED, NOW, || bytes = 7);
        assert!(matches!(arrived.change, Change::Arrived(_)) && bytes == 7);
        let left = receive(&has, page, (Silo::new(0), &arrived.reply.unwrap()), DRAINED, NOW, || ());
        assert!(matches!(left.change, Change::Left(to, _) if to == Silo::new(0)));
        assert_eq!(has.word(1).owner(), Silo::new(0), "the route flips with the word");
        assert_eq!(ask(), Asked::Here(Response::LeaseYours { left_us: 40 }));
        assert_eq!(release_ownership(&asks, gva), Ok(Released::Given));
        assert_eq!(release_ownership(&asks, gva), Ok(Released::NotHeld), "given back once");
        assert_eq!(release_ownership(&has, gva), Ok(Released::NotHeld), "another silo's");
        let again = receive(&asks, page, (to, &granted.reply.unwrap()), DRAINED, NOW, || bytes = 0);
        assert_eq!((again.reply, bytes), (arrived.reply, 7), "a repeated grant touches nothing");
        assert!(matches!(arrived.reply, Some(Message::Ack(_))));
    }

    #[test]
    fn an_address_beyond_the_table_is_refused_and_the_refusal_says_what_there_is() {
        let table = PageTable::new(Silo::new(0), 2, Limits::SEED, |_| Silo::new(0));
        let gva = Gva(2 * PAGE_BYTES);
        let asked = request_ownership(&table, gva, (Hint::Default, 0), &BackOff::new(1), DRAINED, NOW);
        assert_eq!(asked, Err(AskError::NoPage { gva, pages: 2 }));
        assert!(asked.unwrap_err().to_string().contains("0x2000"));
    }
}
