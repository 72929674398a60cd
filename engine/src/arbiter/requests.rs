//! Requests of a feed that moves a stream to the arbiters of two silos, and the arbiters' reports.
//!
//! Owns the rings between the feeds and the arbiters of an engine: one each way for each pair,
//! including a silo's own feed and arbiter. A feed has a [`FeedEndpoint`], an arbiter an
//! [`ArbiterEndpoint`]. Bounds: [`MOVES_MAX`] moves of one feed, each with one request at a time to
//! a silo; each request is answered once, so no ring is ever full. Never waits.

use crate::arbiter::page::{Authority, Epoch, Response};
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};

/// Most moves that one feed has in progress.
pub const MOVES_MAX: usize = 4;
/// Most streams of a dead silo that one feed hands to the successor at a time.
pub const TAKEOVERS_MAX: usize = MOVES_MAX * 2;
/// A move has at most two open requests at one silo.
const SLOTS: usize = MOVES_MAX * 2 + TAKEOVERS_MAX;

/// A request to an arbiter. `number` identifies the move; the report repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArbiterRequest {
    /// No number of the stream from `below` on arrives here any more: report when all numbers
    /// before it are committed and answered.
    Quiesce {
        /// Number of the move.
        number: u32,
        /// The stream.
        page: u32,
        /// The first sequence number that does not arrive here.
        below: u64,
    },
    /// Obtain the page and keep it for the lease.
    Fetch {
        /// Number of the move.
        number: u32,
        /// The stream.
        page: u32,
        /// Lease to hold from then on, in microseconds; 0: none.
        lease_us: u32,
        /// On whose behalf; an operator's request breaks a lease.
        authority: Authority,
    },
    /// The silo that had the stream is dead, and this silo is its successor: obtain the page. Every
    /// number before `below` that is not committed was answered with an error.
    TakeOver {
        /// Number of the takeover.
        number: u32,
        /// The stream.
        page: u32,
        /// The first sequence number that arrives here.
        below: u64,
    },
    /// Abandon the request.
    Cancel {
        /// Number of the move.
        number: u32,
        /// The stream.
        page: u32,
    },
}

/// A report to a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArbiterReport {
    /// All is committed and answered; the stream is no longer served here.
    Quiet {
        /// Number of the move.
        number: u32,
    },
    /// The page is here; shots may be sent.
    Here {
        /// Number of the move.
        number: u32,
        /// Epoch of the ownership.
        epoch: Epoch,
    },
    /// The request is abandoned.
    Cancelled {
        /// Number of the move.
        number: u32,
        /// The last refusal of the page's owner.
        refusal: Option<Response>,
    },
}

/// A feed's ends of the rings.
pub struct FeedEndpoint {
    requests: Vec<Producer<ArbiterRequest>>,
    reports: Vec<Consumer<ArbiterReport>>,
}

/// An arbiter's ends of the rings.
pub struct ArbiterEndpoint {
    requests: Vec<Consumer<ArbiterRequest>>,
    reports: Vec<Producer<ArbiterReport>>,
}

/// Both endpoints of each of `silos` silos.
pub fn endpoints(silos: usize) -> Vec<(FeedEndpoint, ArbiterEndpoint)> {
    let feed = |_| FeedEndpoint { requests: Vec::new(), reports: Vec::new() };
    let arbiter = |_| ArbiterEndpoint { requests: Vec::new(), reports: Vec::new() };
    let mut feeds: Vec<FeedEndpoint> = (0..silos).map(feed).collect();
    let mut arbiters: Vec<ArbiterEndpoint> = (0..silos).map(arbiter).collect();
    for feed in &mut feeds {
        for arbiter in &mut arbiters {
            let (ask, asked) = channel(SLOTS);
            feed.requests.push(ask);
            arbiter.requests.push(asked);
            let (report, reported) = channel(SLOTS);
            arbiter.reports.push(report);
            feed.reports.push(reported);
        }
    }
    feeds.into_iter().zip(arbiters).collect()
}

/// One feed's ends of the rings to one arbiter.
pub type EndpointEnds = (Producer<ArbiterRequest>, Consumer<ArbiterReport>);

/// The endpoint of a rebuilt arbiter, and each feed's ends of its rings.
pub fn endpoint(silos: usize) -> (ArbiterEndpoint, Vec<EndpointEnds>) {
    let mut arbiter = ArbiterEndpoint { requests: Vec::new(), reports: Vec::new() };
    let feed = |_| {
        let ((ask, asked), (report, reported)) = (channel(SLOTS), channel(SLOTS));
        arbiter.requests.push(asked);
        arbiter.reports.push(report);
        (ask, reported)
    };
    let feeds = (0..silos).map(feed).collect();
    (arbiter, feeds)
}

impl FeedEndpoint {
    /// Replaces the ends for the rebuilt arbiter of `silo`; returns the old ends.
    pub fn replace(&mut self, silo: usize, (requests, reports): EndpointEnds) -> EndpointEnds {
        (std::mem::replace(&mut self.requests[silo], requests), std::mem::replace(&mut self.reports[silo], reports))
    }

    /// Sends a request to `silo`; `false` if its arbiter has not answered earlier requests.
    #[must_use]
    pub fn ask(&mut self, silo: usize, request: ArbiterRequest) -> bool {
        self.requests[silo].push(request).is_ok()
    }

    /// The next report of `silo`.
    pub fn receive(&mut self, silo: usize) -> Option<ArbiterReport> {
        self.reports[silo].pop()
    }

    /// Number of silos.
    pub fn silos(&self) -> usize {
        self.requests.len()
    }
}

impl ArbiterEndpoint {
    /// The next request of the feed of `silo`, if there is room for its report.
    pub fn take(&mut self, silo: usize) -> Option<ArbiterRequest> {
        self.requests[silo].pop()
    }

    /// Reports to the feed of `silo`.
    ///
    /// # Panics
    /// If a request was reported twice: there is room for one report each.
    pub fn send(&mut self, silo: usize, report: ArbiterReport) {
        assert!(self.reports[silo].push(report).is_ok(), "each request is reported once");
    }

    /// Number of silos.
    pub fn silos(&self) -> usize {
        self.requests.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{ArbiterReport, ArbiterRequest, SLOTS, endpoint, endpoints};

    #[test]
    fn an_endpoint_reaches_each_silo_and_its_own() {
        let mut endpoints = endpoints(3);
        assert!(endpoints.iter().all(|(feed, arbiter)| (feed.silos(), arbiter.silos()) == (3, 3)));
        for from in 0..3 {
            for to in 0..3 {
                let number = (from * 3 + to) as u32;
                assert!(endpoints[from].0.ask(to, ArbiterRequest::Cancel { number, page: 7 }));
                assert_eq!(endpoints[to].1.take(from), Some(ArbiterRequest::Cancel { number, page: 7 }));
                endpoints[to].1.send(from, ArbiterReport::Quiet { number });
                assert_eq!(endpoints[from].0.receive(to), Some(ArbiterReport::Quiet { number }));
            }
        }
    }

    #[test]
    fn a_feed_reaches_a_rebuilt_arbiter_by_its_new_ends_alone() {
        let mut endpoints = endpoints(2);
        let (mut rebuilt, feeds) = endpoint(2);
        for (feed, ends) in feeds.into_iter().enumerate() {
            let _former = endpoints[feed].0.replace(1, ends);
        }
        assert_eq!(rebuilt.silos(), 2);
        for from in 0..2 {
            let request = |number| ArbiterRequest::Cancel { number, page: from as u32 };
            assert!((0..SLOTS).all(|number| endpoints[from].0.ask(1, request(number as u32))));
            assert!(!endpoints[from].0.ask(1, request(0)), "it has not answered");
            assert_eq!((endpoints[1].1.take(from), rebuilt.take(from)), (None, Some(request(0))));
            rebuilt.send(from, ArbiterReport::Quiet { number: 9 });
            assert_eq!(endpoints[from].0.receive(1), Some(ArbiterReport::Quiet { number: 9 }));
        }
    }
}
