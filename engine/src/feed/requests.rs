//! Requests to move a stream, from any cold thread to the feed of the stream.
//!
//! Owns a few words for each feed, and two counts for each stream. Any cold thread makes requests;
//! the feed reads one word in a frame. Bounds: [`REQUESTS_MAX`] pending requests of one feed; one
//! more is refused with an error. Never waits. Relaxed: a request is one word that stands alone,
//! and the count beside it only says that a request is pending. The count of ended requests is a
//! mark (edge O6): a reader that sees it also sees the present route of the stream's shots.

use crate::arbiter::page::{Authority, SILOS_MAX};
use crate::pipe::{home, partner};
use pinwheel_edge::page::Marks;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most requests to one feed that it has not taken yet.
pub const REQUESTS_MAX: usize = 256;

/// A request to move a stream to another silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveRequest {
    /// The stream to move.
    pub stream: u32,
    /// The destination silo.
    pub to: u32,
    /// Lease at the destination, so that the stream does not leave at once, in milliseconds: at
    /// most 4,000; 0: no lease.
    pub lease_ms: u32,
    /// Who requests the move. An operator's request breaks a lease that holds the stream, and is
    /// counted as such; only the console makes it.
    pub by: Authority,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum MoveRefused {
    #[error("there is no stream {stream}; name one below {streams}")]
    NoStream { stream: u32, streams: u32 },
    #[error("there is no silo {silo}; name one below {silos}, or start with more silos")]
    NoSilo { silo: u32, silos: u32 },
    #[error("silo {silo} is drained, dead or restarting; name another silo, or rejoin it first")]
    Shut { silo: u32 },
    #[error("{REQUESTS_MAX} moves already wait to begin; ask again when some are done")]
    Full,
}

/// The move requests of an engine.
#[derive(Debug)]
pub struct MoveRequests {
    streams: u32,
    silos: u32,
    has_joints: bool,
    /// Silos that take no streams, one bit each.
    shut: AtomicU64,
    feeds: Box<[Slots]>,
    /// For each stream: requests accepted.
    asked: Box<[AtomicU64]>,
    /// For each stream: requests that its feed has finished, whatever their outcome. Written by
    /// that feed only.
    ended: Marks,
}

#[derive(Debug)]
struct Slots {
    /// Requests put in so far.
    requested: AtomicU64,
    words: [AtomicU64; REQUESTS_MAX],
}

impl Slots {
    fn put(&self, word: u64) -> Result<(), MoveRefused> {
        let put = |slot: &AtomicU64| slot.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        // Starts behind the last request, so that none waits for ever behind later ones.
        let from = self.requested.load(Ordering::Relaxed) as usize % REQUESTS_MAX;
        if !self.words[from..].iter().chain(&self.words[..from]).any(put) {
            return Err(MoveRefused::Full);
        }
        self.requested.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

const ASKED: u64 = 1 << 63;
const FORCED: u64 = 1 << 62;
const LEASE_MS_MAX: u32 = 4_000;

impl MoveRequests {
    /// No requests yet; [`home`] gives the feed of each stream. With `has_joints`, both streams of
    /// a pair move together.
    pub fn new(streams: u32, silos: u32, has_joints: bool) -> MoveRequests {
        let slots = |_| Slots { requested: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; REQUESTS_MAX] };
        let (feeds, shut) = ((0..silos).map(slots).collect(), AtomicU64::new(0));
        let asked = (0..streams).map(|_| AtomicU64::new(0)).collect();
        MoveRequests { streams, silos, has_joints, shut, feeds, asked, ended: Marks::new(streams, |_| 0) }
    }

    /// Requests a move. The board shows its outcome.
    ///
    /// # Errors
    /// If the move is impossible, or too many requests are pending.
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
        // If only one stream of a pair is accepted here, the control thread reunites the pair.
        partner.map_or(Ok(()), |partner| self.put(partner, word - u64::from(stream) + u64::from(partner)))
    }

    fn put(&self, stream: u32, word: u64) -> Result<(), MoveRefused> {
        let asked = &self.asked[stream as usize];
        // Counts the request before the feed can see it: a request must not end before it is
        // counted.
        asked.fetch_add(1, Ordering::Relaxed);
        let put = self.feeds[home(stream, self.silos)].put(word);
        if put.is_err() {
            asked.fetch_sub(1, Ordering::Relaxed);
        }
        put
    }

    /// Whether a request for `stream` is pending or its move is under way. After that the move has
    /// succeeded if the stream is at its destination, and has failed otherwise.
    pub fn is_under_way(&self, stream: u32) -> bool {
        let asked = self.asked.get(stream as usize);
        asked.is_some_and(|asked| asked.load(Ordering::Relaxed) > self.ended.get(stream))
    }

    /// Counts a finished request for `stream`. Called by its feed only.
    pub(crate) fn end(&self, stream: u32) {
        self.ended.set(stream, self.ended.get(stream) + 1);
    }

    /// Sets whether `silo` takes streams. Called by the control thread only.
    pub fn say_open(&self, silo: u32, is_open: bool) {
        let bit = 1 << silo;
        let shut = self.shut.load(Ordering::Relaxed);
        self.shut.store(if is_open { shut & !bit } else { shut | bit }, Ordering::Relaxed);
    }

    /// The next request to the feed of `silo`, which has taken `taken` so far.
    pub(crate) fn take(&self, silo: usize, taken: u64) -> Option<MoveRequest> {
        let slots = &self.feeds[silo];
        if slots.requested.load(Ordering::Relaxed) == taken {
            return None;
        }
        let from = taken as usize % REQUESTS_MAX;
        let mut in_turn = slots.words[from..].iter().chain(&slots.words[..from]);
        // Loads first: an exchange of each empty word would cost a hot thread more than the move.
        let slot = in_turn.find(|slot| slot.load(Ordering::Relaxed) != 0)?;
        let word = slot.swap(0, Ordering::Relaxed);
        let (stream, to) = ((word & 0xf_ffff) as u32, (word >> 20 & 0x3f) as u32);
        let by = if word & FORCED == 0 { Authority::Port } else { Authority::Operator };
        let lease_ms = (word >> 26 & 0xffff) as u32;
        Some(MoveRequest { stream, to, lease_ms, by })
    }
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
    fn impossible_moves_are_refused_in_one_sentence() {
        let requests = MoveRequests::new(6, 2, false);
        for (asked, what) in [(to(6, 0), "stream 6"), (to(1, 2), "silo 2")] {
            let refused = requests.ask(asked).map_err(|refused| refused.to_string());
            assert!(refused.as_ref().is_err_and(|text| text.contains(what)), "{refused:?}");
        }
    }

    #[test]
    fn a_stream_moves_together_with_its_partner() {
        let requests = MoveRequests::new(6, 2, true);
        let asked = MoveRequest { lease_ms: 7, ..to(3, 0) };
        assert_eq!(requests.ask(asked), Ok(()));
        assert_eq!([requests.take(1, 0), requests.take(1, 1)], [Some(asked), Some(MoveRequest { stream: 1, ..asked })]);
        // Of streams 1, 3 and 5 the last has no partner.
        assert_eq!(requests.ask(to(5, 0)), Ok(()));
        assert_eq!([requests.take(1, 2), requests.take(1, 3)], [Some(to(5, 0)), None]);
    }
}
