//! Delivers shots round by round: which rounds of each open shot have arrived.
//!
//! Owns the shots that the feed has opened and not completed. For sources that hold complete shots
//! and replay the experiment's timing: a shot's first round arrives when the shot is due, each
//! further round one period later. Bounds: [`CHECKS`] shots checked in a frame, in turn; as many
//! open shots as slots. Never waits.
//!
//! # Why the last round has its scheduled time
//! A decoder's latency counts from the time at which the round was due, even if it is delivered
//! late. Otherwise a delayed feed would hide the latency that it causes.

use crate::units::Ticks;
use pinwheel_edge::slot::table::{FeedEnd, OpenShot};

/// Shots checked in a frame.
const CHECKS: usize = 64;

/// Timing of rounds.
#[derive(Clone, Debug)]
pub struct Cadence {
    /// Leading whole words of a shot that have arrived after each of its rounds.
    pub words_after: Vec<u32>,
    /// Time from one round to the next.
    pub period: Ticks,
}

struct Open {
    shot: OpenShot,
    /// When its first round arrived.
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

    /// Leading words that have arrived with the first round.
    pub(super) fn first_words(&self) -> u32 {
        // The last round completes a shot, which is reported separately.
        if self.cadence.words_after.len() == 1 { 0 } else { self.cadence.words_after[0] }
    }

    /// Adds an opened shot, whose first round was due at `first`.
    pub(super) fn begin(&mut self, shot: OpenShot, first: Ticks) {
        let words = self.first_words();
        self.open.push(Open { shot, first, words });
    }

    /// Delivers the rounds due by `now`; returns how many shots advanced.
    pub(super) fn show(&mut self, end: &mut FeedEnd, now: Ticks) -> u32 {
        let mut items = 0;
        for _ in 0..self.open.len().min(CHECKS) {
            if self.cursor >= self.open.len() {
                self.cursor = 0;
            }
            let Some(open) = self.open.get_mut(self.cursor) else { break };
            let rounds = self.cadence.words_after.len() as u64;
            let last = Ticks(self.cadence.period.0 * (rounds - 1));
            if now.since(open.first) >= last {
                // A shot that was answered meanwhile needs no completion.
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
    fn rounds_arrive_at_their_cadence_and_the_last_has_its_due_time() {
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
        // After a long delay: the last round was due at 140 all the same.
        assert_eq!(pace.show(&mut end, Ticks(900)), 1);
        assert_eq!((table.arrival(ticket), table.last_round(arrived.slot)), (Arrival::Words(3), Ticks(140)));
        assert!(pace.is_idle());
    }
}
