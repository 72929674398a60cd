//! The two deadlines of a silo, on a timer wheel: selects the launches and tickets to check now.
//!
//! Owns poll's timers and the record of gaps between poll's frames. Runs in poll's frames. Bounds:
//! one timer for each worker and one for the oldest open ticket, all reserved; two polls of the
//! wheel a frame. Never answers a shot: an expiry only makes poll check the launch or ticket.
//!
//! ```text
//!   seen running ─▶ armed ─ expiry ─▶ overdue? ─ yes ─▶ quarantine
//!                     ▲                  │ no: ended long ago and a newer one runs, or poll was suspended
//!                     └──────────────────┘
//! ```
//!
//! # Why
//!
//! *A timer is never cancelled.* A launch ends within microseconds; its deadline lies milliseconds
//! ahead. Arming and cancelling for each launch would dominate the wheel's work. Instead a timer
//! runs until it expires and is then armed for the remaining time of the launch that runs by then,
//! so it is touched once per deadline, however many launches pass. It is never late: a newer launch
//! has a later deadline.
//!
//! *A changed limit makes every timer due now.* Limits apply live: a shortened limit does not wait
//! for the old one to expire.

use crate::board::histogram::HistogramBlock;
use crate::hot::{CallGaps, Settings};
use crate::timer::{Handle, Wheel};
use crate::units::{Nanos, Slots, TickRate, Ticks};
use pinwheel_edge::slot::WORKERS_MAX;

/// Timers of a wheel: one per worker, and one for the tickets.
const TIMERS: usize = WORKERS_MAX + 1;
/// Index of the tickets' timer; lower indices are the workers'.
const SHOTS: usize = WORKERS_MAX;
/// When to check tickets again if none was open: shots may have waited for a worker and be due at
/// once.
const LOOK_EVERY: Nanos = Nanos(20_000);

/// A limit from the settings, in nanoseconds and in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    ns: u64,
    ticks: Ticks,
}

impl Limit {
    /// Adopts `ns`; returns whether the limit changed.
    fn follow(&mut self, ns: u64, rate: TickRate) -> bool {
        let changed = self.ns != ns;
        if changed {
            *self = Limit { ns, ticks: rate.ticks(Nanos(ns)) };
        }
        changed
    }
}

/// The launches and tickets to check in this frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// Bit mask of workers whose launch is to be checked.
    pub(super) launches: u64,
    /// Whether to check the oldest open ticket.
    pub(super) shots: bool,
}

/// The timers of one silo.
#[derive(Debug)]
pub(super) struct Deadlines {
    wheel: Wheel,
    call_gaps: CallGaps,
    rate: TickRate,
    launch: Limit,
    shot: Limit,
    handles: [Option<Handle>; TIMERS],
    /// Bit mask of workers whose timer is armed.
    watched: u64,
    look_every: Ticks,
}

impl Deadlines {
    pub(super) fn new(rate: TickRate) -> Deadlines {
        let never = Limit { ns: u64::MAX, ticks: Ticks(u64::MAX) };
        Deadlines {
            wheel: Wheel::new(rate, Ticks(0), Slots(TIMERS as u32)),
            call_gaps: CallGaps::new(rate),
            rate,
            launch: never,
            shot: never,
            handles: [None; TIMERS],
            watched: 0,
            look_every: rate.ticks(LOOK_EVERY),
        }
    }

    /// Begins the frame at `now`, before anything else: records how long poll was suspended, reads
    /// the limits, and returns the due checks. Records the lateness of each expiry in `lateness`.
    #[inline]
    pub(super) fn begin(&mut self, now: Ticks, settings: &Settings, lateness: &HistogramBlock) -> Due {
        self.call_gaps.note(now);
        let launch = self.launch.follow(settings.launch_deadline_ns(), self.rate);
        if self.shot.follow(settings.shot_deadline_ns(), self.rate) || launch {
            self.pull_all(now);
        }
        let mut due = Due::default();
        // A second pass takes the rest: two polls return more expiries than there are timers.
        while self.poll(now, &mut due, lateness) {}
        self.watched &= !due.launches;
        due
    }

    /// Polls the wheel once; returns whether more timers are due.
    #[inline]
    fn poll(&mut self, now: Ticks, due: &mut Due, lateness: &HistogramBlock) -> bool {
        let rate = self.rate;
        let polled = self.wheel.poll(now, |expired| {
            lateness.record(rate.nanos(expired.lateness).0);
            match expired.payload as usize {
                SHOTS => due.shots = true,
                w => due.launches |= 1 << w,
            }
        });
        polled.is_behind
    }

    /// Makes every armed timer due.
    fn pull_all(&mut self, now: Ticks) {
        for handle in self.handles.iter().flatten() {
            // An expired timer is being checked, or will be armed with the current limits.
            let _ = self.wheel.rearm(*handle, now);
        }
        // Before the first arm there is no timer to move; the tickets are checked now.
        if self.handles[SHOTS].is_none() {
            let _ = self.wheel.poll(now, |_| ());
            self.watch(SHOTS, now);
        }
    }

    /// The running workers of `running` whose timer is not armed.
    #[inline]
    pub(super) fn unwatched(&self, running: u64) -> u64 {
        running & !self.watched
    }

    /// Whether the launch that runs on worker `w` since `started` is overdue at `now`. Arms its
    /// timer if it is not.
    pub(super) fn launch_is_overdue(&mut self, w: usize, started: Ticks, now: Ticks) -> bool {
        let due = self.call_gaps.due(started, self.launch.ticks);
        if now > due {
            return true;
        }
        self.watch(w, due.plus(Ticks(1)));
        self.watched |= 1 << w;
        false
    }

    /// `Ok` if a shot submitted at `submitted` is overdue at `now`; `Err` with the time at which it
    /// will be.
    pub(super) fn shot_is_overdue(&self, submitted: Ticks, now: Ticks) -> Result<(), Ticks> {
        let due = self.call_gaps.due(submitted, self.shot.ticks);
        if now > due { Ok(()) } else { Err(due.plus(Ticks(1))) }
    }

    /// Schedules the next check of the tickets for `at`; with `None`, for the time when one may
    /// have opened.
    pub(super) fn watch_shots(&mut self, at: Option<Ticks>, now: Ticks) {
        self.watch(SHOTS, at.unwrap_or_else(|| now.plus(self.look_every)));
    }

    fn watch(&mut self, timer: usize, at: Ticks) {
        if self.handles[timer].is_some_and(|armed| self.wheel.rearm(armed, at).is_ok()) {
            return;
        }
        let armed = self.wheel.arm(at, timer as u64);
        self.handles[timer] = Some(armed.expect("each has a timer, and limits of a minute fit a wheel of an hour"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Deadlines, Due, LOOK_EVERY};
    use crate::board::{Board, Place, Shape};
    use crate::hot::Settings;
    use crate::profile::{Limits, Profile};
    use crate::units::{TickRate, Ticks};

    const MS: u64 = 1_000_000;

    /// A silo's deadlines under a clock that advances in steps of 100 µs, like frames.
    struct Bench {
        deadlines: Deadlines,
        settings: Settings,
        limits: Limits,
        board: Board,
        now: u64,
    }

    impl Bench {
        fn new() -> Bench {
            let mut limits = Profile::load("lab", None).unwrap().0.limits;
            (limits.launch_deadline_us, limits.shot_deadline_us) = (2_000, 50_000);
            let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 64, decoders: 1, streams: 1 };
            let board = Board::create(shape, Place::Private).unwrap();
            let settings = Settings::new(&limits);
            Bench { deadlines: Deadlines::new(TickRate::NANOS), settings, limits, board, now: 1_000 * MS }
        }

        fn frame(&mut self) -> Due {
            self.deadlines.begin(Ticks(self.now), &self.settings, &self.board.poll(0).timer_lateness)
        }

        /// Runs frames until workers are due or `until` is past; returns which, and when.
        fn launches_due(&mut self, until: u64) -> Option<(u64, u64)> {
            while self.now < until {
                self.now += 100_000;
                let due = self.frame();
                if due.launches != 0 {
                    return Some((due.launches, self.now));
                }
            }
            None
        }
    }

    #[test]
    fn a_launch_is_due_at_its_deadline_and_a_newer_one_for_what_is_left_to_it() {
        let mut bench = Bench::new();
        bench.frame();
        let started = bench.now;
        assert_eq!(bench.deadlines.unwatched(0b1001), 0b1001);
        assert!(!bench.deadlines.launch_is_overdue(3, Ticks(started), Ticks(started)));
        assert_eq!(bench.deadlines.unwatched(0b1001), 0b0001);
        let (launches, at) = bench.launches_due(started + 10 * MS).unwrap();
        assert_eq!((launches, at), (0b1000, started + 2 * MS + 100_000));
        assert!(bench.deadlines.launch_is_overdue(3, Ticks(started), Ticks(at)));
        let newer = started + MS;
        assert!(!bench.deadlines.launch_is_overdue(3, Ticks(newer), Ticks(at)), "a newer launch runs by then");
        assert_eq!(bench.launches_due(started + 10 * MS), Some((0b1000, newer + 2 * MS + 100_000)));
        assert_eq!(bench.launches_due(started + 20 * MS), None);
    }

    #[test]
    fn a_machine_that_stood_still_makes_launches_due_and_not_overdue() {
        let mut bench = Bench::new();
        bench.frame();
        let started = bench.now;
        bench.deadlines.launch_is_overdue(0, Ticks(started), Ticks(started));
        bench.now += 40 * MS;
        let due = bench.frame();
        assert_eq!(due.launches, 1);
        assert!(!bench.deadlines.launch_is_overdue(0, Ticks(started), Ticks(bench.now)));
        let (launches, at) = bench.launches_due(bench.now + 10 * MS).unwrap();
        assert!(bench.deadlines.launch_is_overdue(0, Ticks(started), Ticks(at)));
        assert_eq!((launches, at), (1, started + 42 * MS + 100_000));
        let lateness = bench.board.poll(0).timer_lateness.snapshot();
        assert!(lateness.max_ns() >= 38 * MS - 1 && lateness.count() >= 2, "{lateness:?}");
    }

    #[test]
    fn a_deadline_that_is_shortened_is_judged_in_the_next_frame() {
        let mut bench = Bench::new();
        bench.limits.launch_deadline_us = 60_000_000;
        bench.settings.set_limits(&bench.limits);
        bench.frame();
        let started = bench.now;
        (0..64).for_each(|w| assert!(!bench.deadlines.launch_is_overdue(w, Ticks(started), Ticks(started))));
        assert_eq!(bench.launches_due(started + 5 * MS), None);
        bench.limits.launch_deadline_us = 1_000;
        bench.settings.set_limits(&bench.limits);
        let mut launches = 0;
        for _ in 0..2 {
            bench.now += 100_000;
            launches |= bench.frame().launches;
        }
        assert_eq!(launches, u64::MAX);
        assert!(bench.deadlines.launch_is_overdue(63, Ticks(started), Ticks(bench.now)));
    }

    #[test]
    fn tickets_are_looked_at_when_one_is_due_and_soon_when_none_was_open() {
        let mut bench = Bench::new();
        let mut first = bench.frame().shots;
        bench.now += 10_000;
        first |= bench.frame().shots;
        assert!(first, "the first check is immediate");
        bench.deadlines.watch_shots(None, Ticks(bench.now));
        bench.now += LOOK_EVERY.0 / 2;
        assert!(!bench.frame().shots);
        bench.now += LOOK_EVERY.0;
        assert!(bench.frame().shots);
        let submitted = bench.now - 10 * MS;
        let Err(at) = bench.deadlines.shot_is_overdue(Ticks(submitted), Ticks(bench.now)) else { panic!("in time") };
        assert_eq!(at, Ticks(submitted + 50 * MS + 1));
        bench.deadlines.watch_shots(Some(at), Ticks(bench.now));
        let looked = (0..1_000).find(|_| {
            bench.now += 100_000;
            bench.frame().shots
        });
        assert_eq!(looked, Some(400), "frames of 100 µs");
        assert_eq!(bench.deadlines.shot_is_overdue(Ticks(submitted), Ticks(bench.now)), Ok(()));
    }
}
