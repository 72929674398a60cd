//! The call of a driver: may this silo write the page at this address?
//!
//! Runs on the arbiter's thread of the requesting silo. Owns no state. Bounds: no loop, no wait:
//! the call returns a decision, or a message for the silo that has the page according to the local
//! table. [`super::retry`] gives the advice for a refusal and schedules the next attempt with
//! [`BackOff`], which a hot thread checks once a frame. Source: seed 001 §5.

use crate::arbiter::page::{Authority, Hint, Moment, PageTable, Request, Response, Signals, Silo, State};
use crate::arbiter::protocol::Message;
use crate::arbiter::retry::BackOff;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4_096;

/// A global virtual address: any byte address within a page identifies the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gva(pub u64);

/// Parameters of a request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Purpose of the request.
    pub hint: Hint,
    /// Requested lease, in microseconds.
    pub ttl_us: u32,
    /// On whose behalf the request is made.
    pub authority: Authority,
}

impl From<(Hint, u32)> for Want {
    /// On behalf of a port.
    fn from((hint, ttl_us): (Hint, u32)) -> Want {
        Want { hint, ttl_us, authority: Authority::Port }
    }
}

/// Result of a request so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Asked {
    /// Decided by this silo.
    Here(Response),
    /// Send this message; the reply arrives as a message.
    Send {
        /// Receiver.
        to: Silo,
        /// The page.
        page: u32,
        /// The message to send.
        message: Message,
    },
}

/// Why a request was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum AskError {
    #[error("address {:#x} lies beyond the {pages} pages of this table; use an address below {:#x}", .gva.0, *pages as u64 * PAGE_BYTES)]
    NoPage { gva: Gva, pages: usize },
}

/// Requests the page at `gva`. `back_off` counts earlier refusals.
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

/// Result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Released {
    /// The lease has ended; a waiting silo may have the page.
    Given,
    /// There was no lease: it has expired, or another silo has the page.
    NotHeld,
    /// Other transitions won every attempt: try again, or let the lease expire.
    Contended,
}

/// Releases the lease of the page at `gva`: the explicit end of a LOCK.
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

/// The number of the page at `gva`.
///
/// # Errors
/// If there is no such page.
pub fn page_of(table: &PageTable, gva: Gva) -> Result<u32, AskError> {
    let pages = table.len();
    let page = u32::try_from(gva.0 / PAGE_BYTES).ok().filter(|page| (*page as usize) < pages);
    page.ok_or(AskError::NoPage { gva, pages })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{AskError, Asked, Gva, PAGE_BYTES, Released, Want, release_ownership, request_ownership};
    use crate::arbiter::page::WriteBuffer;
    use crate::arbiter::page::{Authority, Hint, How, Limits, Moment, PageTable, Request, Response, Signals, Silo};
    use crate::arbiter::protocol::{Change, Message, receive};
    use crate::arbiter::retry::BackOff;

    const NOW: Moment = Moment::from_micros(50);
    const DRAINED: Signals = Signals { write_buffer: WriteBuffer::Drained };

    #[test]
    fn a_requested_page_arrives_and_stays_here() {
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
        assert_eq!(release_ownership(&asks, gva), Ok(Released::NotHeld), "released once");
        assert_eq!(release_ownership(&has, gva), Ok(Released::NotHeld), "another silo has the page");
        let again = receive(&asks, page, (to, &granted.reply.unwrap()), DRAINED, NOW, || bytes = 0);
        assert_eq!((again.reply, bytes), (arrived.reply, 7), "a repeated grant changes nothing");
        assert!(matches!(arrived.reply, Some(Message::Ack(_))));
    }

    #[test]
    fn a_request_says_who_asks_for_what_and_how_often_it_was_refused() {
        let table = PageTable::new(Silo::new(0), 2, Limits::SEED, |_| Silo::new(1));
        let mut back_off = BackOff::new(1);
        let _ = (back_off.next(Response::Busy, NOW), back_off.next(Response::Busy, NOW));
        let want = Want { hint: Hint::Lease, ttl_us: 40, authority: Authority::Operator };
        let asked = request_ownership(&table, Gva(2 * PAGE_BYTES - 1), want, &back_off, DRAINED, NOW).unwrap();
        let epoch = table.word(1).epoch();
        let request = Request {
            from: Silo::new(0),
            epoch,
            hint: Hint::Lease,
            ttl_us: 40,
            refusals: 2,
            authority: want.authority,
        };
        assert_eq!(asked, Asked::Send { to: Silo::new(1), page: 1, message: Message::Request(request) });
        assert_eq!(Want::from((Hint::Lock, 7)), Want { hint: Hint::Lock, ttl_us: 7, authority: Authority::Port });
    }

    #[test]
    fn an_address_beyond_the_table_is_refused_with_its_bound() {
        let table = PageTable::new(Silo::new(0), 2, Limits::SEED, |_| Silo::new(0));
        let gva = Gva(2 * PAGE_BYTES);
        let asked = request_ownership(&table, gva, (Hint::Default, 0), &BackOff::new(1), DRAINED, NOW);
        assert_eq!(asked, Err(AskError::NoPage { gva, pages: 2 }));
        assert!(asked.unwrap_err().to_string().contains("0x2000"));
    }
}
