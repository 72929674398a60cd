//! Ports: orders the requests of one frame; at most one decision for each page.
//!
//! Owned by the silo's arbiter and run on its thread. Each requester is a port with a static
//! priority. Of the requests for one page in one frame, the best is decided and the others are
//! answered COLLISION at once. Bounds: [`OFFERS_MAX`] requests a frame; as many ports as silos;
//! only each port's age is kept from one frame to the next. Source: seed 001 §4.3.
//!
//! # Why
//! *Refused ports age.* With a static order alone, a busy port of high priority starves all others.
//! Each refusal adds one to a port's rank until it is granted a page. So a port is passed over at
//! most as often as the priorities differ, plus once for each other port.

use crate::arbiter::page::{Request, Response, SILOS_MAX, Silo};

/// Most requests in one frame.
pub const OFFERS_MAX: usize = 64;

/// A request that found the frame full: offer it again in the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFull(pub Request);

/// The ports of one silo.
#[derive(Debug)]
pub struct Ports {
    priorities: [u8; SILOS_MAX as usize],
    ages: [u8; SILOS_MAX as usize],
    offers: Vec<(u32, Request)>,
}

impl Ports {
    /// Ports with static priorities; a higher number comes first.
    pub fn new(priority: impl Fn(Silo) -> u8) -> Ports {
        let priorities = std::array::from_fn(|number| priority(Silo::new(number as u8)));
        Ports { priorities, ages: [0; SILOS_MAX as usize], offers: Vec::with_capacity(OFFERS_MAX) }
    }

    /// Refusals of `port` since it was last granted a page.
    pub fn age(&self, port: Silo) -> u8 {
        self.ages[port.number() as usize]
    }

    /// Adds a request to this frame.
    ///
    /// # Errors
    /// If the frame is full.
    pub fn offer(&mut self, page: u32, request: Request) -> Result<(), FrameFull> {
        if self.offers.len() == OFFERS_MAX {
            return Err(FrameFull(request));
        }
        self.offers.push((page, request));
        Ok(())
    }

    /// Number of requests in this frame so far.
    pub fn offers(&self) -> usize {
        self.offers.len()
    }

    /// Answers the frame's requests page by page: `decide` decides the best port's request, the
    /// others are answered COLLISION.
    pub fn decide(
        &mut self,
        mut decide: impl FnMut(u32, &Request) -> Response,
        mut answer: impl FnMut(u32, &Request, Response),
    ) {
        let (priorities, ages) = (&self.priorities, &self.ages);
        let rank = |port: Silo| u16::from(priorities[port.number() as usize]) + u16::from(ages[port.number() as usize]);
        self.offers.sort_unstable_by_key(|(page, request)| {
            (*page, u16::MAX - rank(request.from), request.from, u8::MAX - request.refusals)
        });
        let mut decided = None;
        for (page, request) in self.offers.drain(..) {
            let age = &mut self.ages[request.from.number() as usize];
            let response = if decided == Some(page) {
                Response::Collision
            } else {
                decided = Some(page);
                decide(page, &Request { refusals: request.refusals.max(*age), ..request })
            };
            *age = if response.is_granted() { 0 } else { age.saturating_add(1) };
            answer(page, &request, response);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{FrameFull, OFFERS_MAX, Ports};
    use crate::arbiter::page::{
        Authority, Epoch, Failed, Hint, Limits, Moment, PageTable, Request, Response, Signals, Silo, Word, WriteBuffer,
    };

    const NOW: Moment = Moment::from_micros(50);
    const DRAINED: Signals = Signals { write_buffer: WriteBuffer::Drained };

    fn request(from: u8, epoch: Epoch) -> Request {
        let (from, hint, authority) = (Silo::new(from), Hint::Default, Authority::Port);
        Request { from, epoch, hint, ttl_us: 0, refusals: 0, authority }
    }

    fn table() -> PageTable {
        PageTable::new(Silo::new(0), 2, Limits::SEED, |_| Silo::new(0))
    }

    #[test]
    fn the_best_port_is_decided_and_the_rest_collide_page_by_page() {
        let (table, mut ports) = (table(), Ports::new(Silo::number));
        for (page, port) in [(0, 1), (1, 2), (0, 3), (0, 2)] {
            ports.offer(page, request(port, Epoch::default())).unwrap();
        }
        let mut answers = Vec::new();
        ports.decide(
            |page, request| table.decide(page, request, DRAINED, NOW),
            |page, request, response| {
                answers.push((page, request.from.number(), response.is_granted(), response == Response::Collision));
            },
        );
        assert_eq!(answers, [(0, 3, true, false), (0, 2, false, true), (0, 1, false, true), (1, 2, true, false)]);
        assert_eq!((ports.age(Silo::new(1)), ports.age(Silo::new(3))), (1, 0));
    }

    /// Frames until port 2 is granted a page that port 1, of priority 9, also requests in each
    /// frame; at most `most`.
    fn frames_until_the_low_port_wins(most: u32, between: impl Fn(&mut Ports)) -> Option<u32> {
        let (table, mut ports) = (table(), Ports::new(|port| if port.number() == 1 { 9 } else { 0 }));
        (1..=most).find(|_| {
            let epoch = table.word(0).epoch();
            for port in [1, 2] {
                ports.offer(0, request(port, epoch)).unwrap();
            }
            let mut winner = None;
            ports.decide(
                |page, request| table.decide(page, request, DRAINED, NOW),
                |_, request, response| winner = winner.or(response.is_granted().then_some(request.from)),
            );
            between(&mut ports);
            let receiver = winner.unwrap();
            let last = Word::elsewhere(Silo::new(0), Epoch::default());
            assert_eq!(table.reclaim(0, Failed::Dead { receiver, last }), Ok(true));
            receiver == Silo::new(2)
        })
    }

    #[test]
    fn a_low_port_is_passed_over_a_bounded_number_of_times() {
        assert!(frames_until_the_low_port_wins(9 + 2, |_| ()).is_some());
    }

    /// The seed's rule (§4.3), without aging: a static priority starves the low port.
    #[test]
    fn static_priorities_alone_keep_a_port_out_for_ever() {
        assert_eq!(frames_until_the_low_port_wins(10_000, |ports| ports.ages.fill(0)), None);
    }

    #[test]
    fn of_equal_ports_the_lower_comes_first_and_of_one_ports_requests_the_one_refused_most() {
        let mut ports = Ports::new(|_| 3);
        let mut frame = |offers: &[(u8, u8)]| {
            for (port, refusals) in offers {
                ports.offer(0, Request { refusals: *refusals, ..request(*port, Epoch::default()) }).unwrap();
            }
            assert_eq!(ports.offers(), offers.len());
            let mut decided = None;
            ports.decide(
                |_, request| {
                    decided = Some((request.from.number(), request.refusals));
                    Response::Busy
                },
                |_, _, _| (),
            );
            assert_eq!(ports.offers(), 0);
            decided.unwrap()
        };
        assert_eq!(frame(&[(2, 9), (1, 0)]), (1, 0));
        // Both have been refused once. What is decided carries the greater of its own refusals and its port's.
        assert_eq!(frame(&[(1, 0), (1, 5)]), (1, 5));
        assert_eq!(frame(&[(1, 0)]), (1, 3));
        assert_eq!(ports.age(Silo::new(1)), 4);
        for _ in 0..300 {
            ports.offer(0, request(7, Epoch::default())).unwrap();
            ports.decide(|_, _| Response::Busy, |_, _, _| ());
        }
        assert_eq!(ports.age(Silo::new(7)), u8::MAX);
    }

    #[test]
    fn a_full_frame_gives_the_request_back() {
        let mut ports = Ports::new(|_| 0);
        let request = request(1, Epoch::default());
        for page in 0..OFFERS_MAX as u32 {
            ports.offer(page, request).unwrap();
        }
        assert_eq!(ports.offer(0, request), Err(FrameFull(request)));
    }
}
