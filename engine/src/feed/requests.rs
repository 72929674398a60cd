//! Requests to move a stream: from whoever decides, on a cold thread, to the feed that the stream comes from.
//!
//! Owns a few words for each feed, and two counts for each stream. Any cold thread asks; the feed looks at one word in a frame.
//! Bounds: [`REQUESTS_MAX`] requests of one feed that it has not seen; one more is refused, and says so. Never waits. Relaxed: a
//! request is one word that stands alone, and the count beside it only says that there is one. The count of those that are over is
//! a mark (edge O6): who sees it sees where the stream's shots go since.

use crate::arbiter::page::{Authority, SILOS_MAX};
use pinwheel_edge::page::Marks;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests of one feed that it has not seen yet.
pub const REQUESTS_MAX: usize = 256;

/// A stream is to go to another silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveRequest {
    /// Which.
    pub stream: u32,
    /// Where to.
    pub to: u32,
    /// The lease that it gets there, so that it does not leave at once: milliseconds, 4,000 at most; 0: none.
    pub lease_ms: u32,
    /// In whose name: an operator's breaks a lease that holds the stream, and is counted as such. For the console alone.
    pub by: Authority,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefused {
    /// No such stream.
    #[error("found stream {stream}, expected one below {streams}; name one that runs")]
    NoStream {
        /// Which.
        stream: u32,
        /// How many there are.
        streams: u32,
    },
    /// No such silo.
    #[error("found silo {silo}, expected one below {silos}; name one that runs, or start with more silos")]
    NoSilo {
        /// Which.
        silo: u32,
        /// How many there are.
        silos: u32,
    },
    /// It takes none now.
    #[error(
        "found silo {silo} drained, dead or on its way back, expected a live one; name another, or rejoin it first"
    )]
    Shut {
        /// Which.
        silo: u32,
    },
    /// Too many wait.
    #[error("found {REQUESTS_MAX} moves that the feed has not begun, expected fewer; ask again when some are done")]
    Full,
}

/// The requests of an engine.
#[derive(Debug)]
pub struct MoveRequests {
    streams: u32,
    silos: u32,
    has_joints: bool,
    /// Silos that take no streams, a bit each.
    shut: AtomicU64,
    feeds: Box<[Slots]>,
    /// By stream: requests taken from whoever asks.
    asked: Box<[AtomicU64]>,
    /// By stream: those that its feed is through with, whatever became of them. Set by that feed only.
    ended: Marks,
}

#[derive(Debug)]
struct Slots {
    /// Requests put in so far.
    rung: AtomicU64,
    words: [AtomicU64; REQUESTS_MAX],
}

impl Slots {
    fn put(&self, word: u64) -> Result<(), MoveRefused> {
        let put = |slot: &AtomicU64| slot.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        // From behind the last one on, so that none waits for ever behind those that come later.
        let from = self.rung.load(Ordering::Relaxed) as usize % REQUESTS_MAX;
        if !self.words[from..].iter().chain(&self.words[..from]).any(put) {
            return Err(MoveRefused::Full);
        }
        self.rung.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

const ASKED: u64 = 1 << 63;
const FORCED: u64 = 1 << 62;
const LEASE_MS_MAX: u32 = 4_000;

impl MoveRequests {
    /// None yet, for streams whose feeds are as [`home`] says. With `has_joints`, streams of a pair move together.
    #[must_use]
    pub fn new(streams: u32, silos: u32, has_joints: bool) -> MoveRequests {
        let slots = |_| Slots { rung: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; REQUESTS_MAX] };
        let (feeds, shut) = ((0..silos).map(slots).collect(), AtomicU64::new(0));
        let asked = (0..streams).map(|_| AtomicU64::new(0)).collect();
        MoveRequests { streams, silos, has_joints, shut, feeds, asked, ended: Marks::new(streams, |_| 0) }
    }

    /// Asks for a move. That it was made, or why not, is on the board.
    ///
    /// # Errors
    /// If it cannot be made, or too many wait.
    pub fn ask(&self, request: MoveRequest) -> Result<(), MoveRefused> {
        let MoveRequest { stream, to, lease_ms, by } = request;
        let (streams, silos) = (self.streams, self.silos);
        if stream >= streams {
            return Err(MoveRefused::NoStream { stream, streams });
        }
        if to >= silos.min(u32::from(SILOS_MAX)) {
            return Err(MoveRefused::NoSilo { silo: to, silos });
        }
        if self.shut.load(Ordering::Relaxed) & 1 << to != 0 {
            return Err(MoveRefused::Shut { silo: to });
        }
        let lease_ms = lease_ms.min(LEASE_MS_MAX);
        let word = ASKED | u64::from(stream) | u64::from(to) << 20 | u64::from(lease_ms) << 26;
        let word = if by == Authority::Operator { word | FORCED } else { word };
        let partner = partner(stream, streams, silos).filter(|_| self.has_joints);
        self.put(stream, word)?;
        // A pair that was parted for want of room here is brought together again by the control thread.
        partner.map_or(Ok(()), |partner| self.put(partner, word - u64::from(stream) + u64::from(partner)))
    }

    fn put(&self, stream: u32, word: u64) -> Result<(), MoveRefused> {
        let asked = &self.asked[stream as usize];
        // Before it can be seen: a request must not end before it was asked for.
        asked.fetch_add(1, Ordering::Relaxed);
        let put = self.feeds[home(stream, self.silos)].put(word);
        if put.is_err() {
            asked.fetch_sub(1, Ordering::Relaxed);
        }
        put
    }

    /// Whether a request for `stream` waits, or its move is not at its end. One that was asked for and is not under way any
    /// more has been made if the stream is there, and has failed if not.
    #[must_use]
    pub fn is_under_way(&self, stream: u32) -> bool {
        let asked = self.asked.get(stream as usize);
        asked.is_some_and(|asked| asked.load(Ordering::Relaxed) > self.ended.get(stream))
    }

    /// A request for `stream` is at its end. By its feed only.
    pub(super) fn end(&self, stream: u32) {
        self.ended.set(stream, self.ended.get(stream) + 1);
    }

    /// Whether `silo` takes streams. By the control thread only.
    pub fn say_open(&self, silo: u32, is_open: bool) {
        let bit = 1 << silo;
        let shut = self.shut.load(Ordering::Relaxed);
        self.shut.store(if is_open { shut & !bit } else { shut | bit }, Ordering::Relaxed);
    }

    /// The next request to the feed of `silo`, which has taken `taken` so far.
    pub(super) fn take(&self, silo: usize, taken: u64) -> Option<MoveRequest> {
        let slots = &self.feeds[silo];
        if slots.rung.load(Ordering::Relaxed) == taken {
            return None;
        }
        let from = taken as usize % REQUESTS_MAX;
        let mut in_turn = slots.words[from..].iter().chain(&slots.words[..from]);
        // A look first: an exchange of each empty word would cost a hot thread more than the move.
        let slot = in_turn.find(|slot| slot.load(Ordering::Relaxed) != 0)?;
        let word = slot.swap(0, Ordering::Relaxed);
        let (stream, to) = ((word & 0xf_ffff) as u32, (word >> 20 & 0x3f) as u32);
        let by = if word & FORCED == 0 { Authority::Port } else { Authority::Operator };
        let lease_ms = (word >> 26 & 0xffff) as u32;
        Some(MoveRequest { stream, to, lease_ms, by })
    }
}

/// The silo whose feed has the source of `stream`, wherever its shots are decoded.
#[must_use]
pub const fn home(stream: u32, silos: u32) -> usize {
    (stream % silos) as usize
}

/// The stream that `stream` is read with, where streams are read jointly: those of a feed two and two, in order. The last of
/// an odd number stands alone.
#[must_use]
pub const fn partner(stream: u32, streams: u32, silos: u32) -> Option<u32> {
    let other = ((stream / silos) ^ 1) * silos + stream % silos;
    if other < streams { Some(other) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{Authority, MoveRefused, MoveRequest, MoveRequests, REQUESTS_MAX};

    fn to(stream: u32, to: u32) -> MoveRequest {
        MoveRequest { stream, to, lease_ms: 0, by: Authority::Port }
    }

    #[test]
    fn a_request_reaches_the_feed_of_its_stream_once_and_one_too_many_is_refused() {
        let requests = MoveRequests::new(8, 2, false);
        let asked = MoveRequest { stream: 5, to: 0, lease_ms: 9_999, by: Authority::Operator };
        requests.ask(asked).unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!(requests.take(0, 0), None);
        assert_eq!(requests.take(1, 0), Some(MoveRequest { lease_ms: 4_000, ..asked }));
        assert_eq!(requests.take(1, 1), None);
        for _ in 0..REQUESTS_MAX {
            assert_eq!(requests.ask(to(3, 0)), Ok(()));
        }
        assert_eq!(requests.ask(to(3, 0)), Err(MoveRefused::Full));
        assert_eq!(requests.ask(to(2, 1)), Ok(()), "another feed has room");
    }

    #[test]
    fn what_cannot_move_is_refused_in_one_sentence() {
        let requests = MoveRequests::new(6, 2, false);
        for (asked, what) in [(to(6, 0), "stream 6"), (to(1, 2), "silo 2")] {
            let refused = requests.ask(asked).map_err(|refused| refused.to_string());
            assert!(refused.as_ref().is_err_and(|text| text.contains(what)), "{refused:?}");
        }
    }

    #[test]
    fn a_stream_takes_the_one_that_it_is_read_with_along() {
        let requests = MoveRequests::new(6, 2, true);
        let asked = MoveRequest { lease_ms: 7, ..to(3, 0) };
        assert_eq!(requests.ask(asked), Ok(()));
        assert_eq!([requests.take(1, 0), requests.take(1, 1)], [Some(asked), Some(MoveRequest { stream: 1, ..asked })]);
        // Of streams 1, 3 and 5 the last has nobody to be read with.
        assert_eq!(requests.ask(to(5, 0)), Ok(()));
        assert_eq!([requests.take(1, 2), requests.take(1, 3)], [Some(to(5, 0)), None]);
    }
}
