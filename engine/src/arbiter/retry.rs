//! Retry of refused requests: typed advice, and a bounded back-off that never sleeps.
//!
//! Owned by the requester; runs on its thread. Bounds: [`BackOff::TRIES_MAX`] tries,
//! [`BackOff::WAIT_US_MAX`] between two. Computes times, never waits. Source: seed 001 §5.

use crate::arbiter::page::{Epoch, Moment, Response, Silo};

/// What a requester should do after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Advice {
    /// Nothing: the page is the requester's, or in transfer to it.
    Done,
    /// Ask again, at the earliest after `after_us`.
    Again {
        /// Wait that the refusal itself requires, in microseconds.
        after_us: u32,
    },
    /// Ask again after the back-off's wait.
    Later,
    /// Ask silo `owner` at once.
    Elsewhere {
        /// Last known owner of the page.
        owner: Silo,
        /// Newest epoch known.
        epoch: Epoch,
    },
    /// Ask the same silo at once, with this epoch.
    Refresh {
        /// Epoch according to the owner.
        epoch: Epoch,
    },
    /// Do not ask again.
    Never,
}

/// The advice for `response`.
pub const fn advice(response: Response) -> Advice {
    match response {
        Response::Granted { .. } | Response::LeaseYours { .. } => Advice::Done,
        Response::LeaseActive { left_us } => Advice::Again { after_us: left_us },
        Response::TryAgainSoon => Advice::Again { after_us: 0 },
        Response::Busy | Response::TryLater | Response::Collision | Response::InDoubt => Advice::Later,
        Response::NotOwner { owner, epoch } => Advice::Elsewhere { owner, epoch },
        Response::Stale { epoch } => Advice::Refresh { epoch },
        Response::EpochsSpent => Advice::Never,
    }
}

/// The retry schedule of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    tries: u8,
    random: u32,
}

/// The next step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// The request is settled.
    Done,
    /// Send it again when this moment has passed; check once a frame.
    At(Moment),
    /// Give up: the request was refused [`BackOff::TRIES_MAX`] times, or for good.
    GiveUp,
}

impl BackOff {
    /// Most attempts of a request.
    pub const TRIES_MAX: u8 = 64;
    /// Longest wait of the back-off itself, in microseconds.
    pub const WAIT_US_MAX: u32 = 256;

    /// The schedule of a new request. Requesters with different seeds do not collide repeatedly.
    pub const fn new(seed: u32) -> BackOff {
        BackOff { tries: 0, random: seed.wrapping_mul(0x9E37_79B9) | 1 }
    }

    /// Number of refusals so far, which is the request's age.
    pub const fn refusals(&self) -> u8 {
        self.tries
    }

    /// The next step after a response.
    pub const fn next(&mut self, response: Response, now: Moment) -> Next {
        let after_us = match advice(response) {
            Advice::Done => return Next::Done,
            Advice::Never => return Next::GiveUp,
            Advice::Again { after_us } => after_us,
            Advice::Elsewhere { .. } | Advice::Refresh { .. } => 0,
            Advice::Later => self.later_us(),
        };
        self.tries += 1;
        if self.tries >= BackOff::TRIES_MAX { Next::GiveUp } else { Next::At(now.plus(after_us)) }
    }

    /// A wait between half and all of a span that doubles with each refusal.
    const fn later_us(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let most_us = if self.tries < 8 { 2 << self.tries } else { BackOff::WAIT_US_MAX };
        most_us / 2 + self.random % (most_us / 2 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{BackOff, Next};
    use crate::arbiter::page::{Epoch, How, Moment, Response};

    const NOW: Moment = Moment::from_micros(50);

    #[test]
    fn a_request_is_made_a_bounded_number_of_times_with_bounded_waits() {
        let mut back_off = BackOff::new(3);
        let mut made = 1;
        while let Next::At(when) = back_off.next(Response::Busy, NOW) {
            assert!((1..=BackOff::WAIT_US_MAX).contains(&when.left_us(NOW)), "{when:?}");
            made += 1;
        }
        assert_eq!(made, BackOff::TRIES_MAX);
    }

    #[test]
    fn a_wait_is_between_half_and_all_of_a_span_that_doubles_up_to_its_limit() {
        for seed in 0..100 {
            let mut back_off = BackOff::new(seed);
            for span_us in [2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256] {
                let Next::At(when) = back_off.next(Response::Busy, NOW) else { panic!("not at once") };
                assert!((span_us / 2..=span_us).contains(&when.left_us(NOW)), "{when:?}, span {span_us} us");
            }
        }
    }

    #[test]
    fn requesters_with_different_seeds_wait_differently() {
        let waits = |seed: u32| {
            let mut back_off = BackOff::new(seed);
            [0; 20].map(|_| match back_off.next(Response::Busy, NOW) {
                Next::At(when) => when.left_us(NOW),
                Next::Done | Next::GiveUp => 0,
            })
        };
        let mut each: Vec<_> = (0..64).map(waits).collect();
        each.sort_unstable();
        each.dedup();
        assert_eq!(each.len(), 64);
        assert!(each.iter().all(|waits| waits[8..].iter().any(|wait| *wait != waits[8])), "nor always as long");
    }

    #[test]
    fn a_lease_is_waited_for_and_a_lock_asks_again_at_once() {
        let mut back_off = BackOff::new(1);
        assert_eq!(back_off.next(Response::LeaseActive { left_us: 77 }, NOW), Next::At(NOW.plus(77)));
        assert_eq!(back_off.next(Response::TryAgainSoon, NOW), Next::At(NOW));
        assert_eq!(back_off.refusals(), 2);
        assert_eq!(back_off.next(Response::EpochsSpent, NOW), Next::GiveUp);
        let granted = Response::Granted { epoch: Epoch::default(), how: How::Moves };
        assert_eq!(back_off.next(granted, NOW), Next::Done);
    }
}
