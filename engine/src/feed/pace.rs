//! Shots that come round by round: which rounds of which shot are there by now.
//!
//! Owns the shots that the feed has opened and not completed. For sources that have whole shots, and play the experiment's
//! cadence: a shot's first round is there when the shot is due, each further one a period later. Bounds: [`LOOKS`] shots
//! looked at in a frame, in turn; as many open as there are slots. Never waits.
//!
//! # Why the last round's time is the schedule's
//! What is late in being shown is late, and a decoder's latency counts from when the round was due: otherwise a feed that
//! is held up would hide what it causes.

use crate::units::Ticks;
use pinwheel_edge::slot::table::{FeedEnd, OpenShot};

/// Shots looked at in a frame.
const LOOKS: usize = 64;

/// How shots come by rounds.
#[derive(Clone, Debug)]
pub struct Cadence {
    /// Leading whole words of a shot that are there after each of its rounds.
    pub words_after: Vec<u32>,
    /// From one round to the next.
    pub period: Ticks,
}

struct Open {
    shot: OpenShot,
    /// When its first round came.
    first: Ticks,
    words: u32,
}

/// The open shots.
pub(super) struct Pace {
    cadence: Cadence,
    open: Vec<Open>,
    cursor: usize,
}

impl Pace {
    pub(super) fn new(cadence: Cadence, slots: usize) -> Pace {
        Pace { cadence, open: Vec::with_capacity(slots), cursor: 0 }
    }

    /// Whether no shot is open.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Leading words that are there once the first round is.
    pub(super) fn first_words(&self) -> u32 {
        // The last round completes a shot, and that is said otherwise.
        if self.cadence.words_after.len() == 1 { 0 } else { self.cadence.words_after[0] }
    }

    /// A shot was opened, whose first round was due at `first`.
    pub(super) fn begin(&mut self, shot: OpenShot, first: Ticks) {
        let words = self.first_words();
        self.open.push(Open { shot, first, words });
    }

    /// Shows what has come by `now`; returns how many shots got on.
    pub(super) fn show(&mut self, end: &mut FeedEnd, now: Ticks) -> u32 {
        let mut items = 0;
        for _ in 0..self.open.len().min(LOOKS) {
            if self.cursor >= self.open.len() {
                self.cursor = 0;
            }
            let Some(open) = self.open.get_mut(self.cursor) else { break };
            let rounds = self.cadence.words_after.len() as u64;
            let last = Ticks(self.cadence.period.0 * (rounds - 1));
            if now.since(open.first) >= last {
                // One that was answered meanwhile has nobody to tell.
                let _ = end.complete(open.shot, open.first.plus(last));
                self.open.swap_remove(self.cursor);
                items += 1;
                continue;
            }
            let come = now.since(open.first).0 / self.cadence.period.0.max(1);
            let words = self.cadence.words_after[come as usize];
            if words > open.words {
                open.words = words;
                items += 1;
                if !end.extend(open.shot, words, &[]) {
                    self.open.swap_remove(self.cursor);
                    continue;
                }
            }
            self.cursor += 1;
        }
        items
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Cadence, Pace};
    use crate::units::Ticks;
    use pinwheel_edge::slot::table::{Arrival, Geometry, ReplyTo, ShotHeader, table};

    #[test]
    fn rounds_come_at_their_cadence_and_the_last_one_says_when_it_was_due() {
        let geometry = Geometry { slots: 4, detector_words: 3, observable_words: 1 };
        let (mut end, mut dispatch, _harvest, table) = table(geometry);
        let cadence = Cadence { words_after: vec![0, 1, 1, 2, 3], period: Ticks(10) };
        let mut pace = Pace::new(cadence, 4);
        let reply_to = ReplyTo::default();
        let header = ShotHeader { stream: 0, sequence: 0, scheduled: Ticks(100), submitted: Ticks(105), reply_to };
        let shot = end.vacant().unwrap().open(&header, &[1, 2, 3], pace.first_words(), None);
        pace.begin(shot, Ticks(100));
        let arrived = dispatch.arrived().unwrap();
        assert!(arrived.by_rounds);
        let ticket = dispatch.hold(&arrived, Ticks(106));
        let mut seen = Vec::new();
        for now in [100, 109, 110, 129, 130, 139] {
            pace.show(&mut end, Ticks(now));
            seen.push(table.arrival(ticket));
        }
        assert_eq!(seen, [0, 0, 1, 1, 2, 2].map(Arrival::Words));
        assert!(!pace.is_idle());
        // Held up for long: the last round was due at 140 all the same.
        assert_eq!(pace.show(&mut end, Ticks(900)), 1);
        assert_eq!((table.arrival(ticket), table.last_round(arrived.slot)), (Arrival::Words(3), Ticks(140)));
        assert!(pace.is_idle());
    }
}
