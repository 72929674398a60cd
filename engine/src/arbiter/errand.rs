//! Errands: what a feed that moves a stream asks of the arbiters of two silos, and what they report.
//!
//! Owns the rings between the feeds and the arbiters of an engine, one each way for each pair, a silo's own among them. A
//! feed has a [`FeedDesk`], an arbiter an [`ArbiterDesk`]. Bounds: [`MOVES_MAX`] moves of one feed, each with one errand at a
//! time out to a silo; each errand is answered once, so that no ring is ever full. Never waits.

use crate::arbiter::page::{Authority, Epoch, Response};
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};

/// Moves that one feed has under way.
pub const MOVES_MAX: usize = 4;
/// Streams of a dead silo that one feed has its heir adopt at a time.
pub const ADOPTIONS_MAX: usize = MOVES_MAX * 2;
/// A move has at most two errands out at one silo.
const SLOTS: usize = MOVES_MAX * 2 + ADOPTIONS_MAX;

/// What is asked. `number` is that of the move, which the report names again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// No number of the stream from `below` on comes here any more: say when those before it are committed and answered.
    Quiesce {
        /// Of which move.
        number: u32,
        /// The stream.
        page: u32,
        /// The first number that does not come here.
        below: u64,
    },
    /// Have the page here, and keep it so long.
    Fetch {
        /// Of which move.
        number: u32,
        /// The stream.
        page: u32,
        /// Lease to hold from then on; 0: none.
        lease_us: u32,
        /// In whose name: an operator's breaks a lease.
        authority: Authority,
    },
    /// The silo that had the stream is dead, and this one its heir: have the page here. Every number before `below` that is not
    /// committed was answered with an error.
    Adopt {
        /// Of which adoption.
        number: u32,
        /// The stream.
        page: u32,
        /// The first number that comes here.
        below: u64,
    },
    /// Leave off.
    Desist {
        /// Of which move.
        number: u32,
        /// The stream.
        page: u32,
    },
}

/// What is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// All is committed and answered; nothing is taken here any more.
    Quiet {
        /// Of which move.
        number: u32,
    },
    /// The page is here, and shots may come.
    Here {
        /// Of which move.
        number: u32,
        /// Since which epoch.
        epoch: Epoch,
    },
    /// Left off.
    Desisted {
        /// Of which move.
        number: u32,
        /// What the page's owner had said last.
        refusal: Option<Response>,
    },
}

/// A feed's ends.
pub struct FeedDesk {
    asks: Vec<Producer<Errand>>,
    hears: Vec<Consumer<Report>>,
}

/// An arbiter's ends.
pub struct ArbiterDesk {
    takes: Vec<Consumer<Errand>>,
    tells: Vec<Producer<Report>>,
}

/// The desks of `silos` silos.
#[must_use]
pub fn desks(silos: usize) -> Vec<(FeedDesk, ArbiterDesk)> {
    let feed = |_| FeedDesk { asks: Vec::new(), hears: Vec::new() };
    let arbiter = |_| ArbiterDesk { takes: Vec::new(), tells: Vec::new() };
    let mut feeds: Vec<FeedDesk> = (0..silos).map(feed).collect();
    let mut arbiters: Vec<ArbiterDesk> = (0..silos).map(arbiter).collect();
    for feed in &mut feeds {
        for arbiter in &mut arbiters {
            let ((asks, takes), (tells, hears)) = (channel(SLOTS), channel(SLOTS));
            feed.asks.push(asks);
            arbiter.takes.push(takes);
            arbiter.tells.push(tells);
            feed.hears.push(hears);
        }
    }
    feeds.into_iter().zip(arbiters).collect()
}

/// What the desk of one feed has of one arbiter.
pub type DeskEnds = (Producer<Errand>, Consumer<Report>);

/// The desk of an arbiter that is built anew, and each feed's ends of it.
#[must_use]
pub fn desk(silos: usize) -> (ArbiterDesk, Vec<DeskEnds>) {
    let mut arbiter = ArbiterDesk { takes: Vec::new(), tells: Vec::new() };
    let feed = |_| {
        let ((asks, takes), (tells, hears)) = (channel(SLOTS), channel(SLOTS));
        arbiter.takes.push(takes);
        arbiter.tells.push(tells);
        (asks, hears)
    };
    let feeds = (0..silos).map(feed).collect();
    (arbiter, feeds)
}

impl FeedDesk {
    /// Takes these ends for the arbiter of `silo`, which was built anew; the ends before.
    pub fn renew(&mut self, silo: usize, (asks, hears): DeskEnds) -> DeskEnds {
        (std::mem::replace(&mut self.asks[silo], asks), std::mem::replace(&mut self.hears[silo], hears))
    }

    /// Asks `silo`; `false` if its arbiter has left earlier errands unanswered.
    #[must_use]
    pub fn ask(&mut self, silo: usize, errand: Errand) -> bool {
        self.asks[silo].push(errand).is_ok()
    }

    /// The next report of `silo`.
    pub fn hear(&mut self, silo: usize) -> Option<Report> {
        self.hears[silo].pop()
    }

    /// Silos there are.
    #[must_use]
    pub fn silos(&self) -> usize {
        self.asks.len()
    }
}

impl ArbiterDesk {
    /// The next errand of the feed of `silo`, if there is room for its report.
    pub fn take(&mut self, silo: usize) -> Option<Errand> {
        self.takes[silo].pop()
    }

    /// Reports to the feed of `silo`.
    ///
    /// # Panics
    /// If an errand was reported twice: there is room for one report each.
    pub fn tell(&mut self, silo: usize, report: Report) {
        assert!(self.tells[silo].push(report).is_ok(), "an errand is reported once");
    }

    /// Silos there are.
    #[must_use]
    pub fn silos(&self) -> usize {
        self.takes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Errand, Report, desks};

    #[test]
    fn a_desk_reaches_each_silo_and_its_own() {
        let mut desks = desks(3);
        for from in 0..3 {
            for to in 0..3 {
                let number = (from * 3 + to) as u32;
                assert!(desks[from].0.ask(to, Errand::Desist { number, page: 7 }));
                assert_eq!(desks[to].1.take(from), Some(Errand::Desist { number, page: 7 }));
                desks[to].1.tell(from, Report::Quiet { number });
                assert_eq!(desks[from].0.hear(to), Some(Report::Quiet { number }));
            }
        }
    }
}
