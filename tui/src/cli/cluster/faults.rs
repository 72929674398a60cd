//! Faults of a cluster at their times: engines that are killed and started again, links that are cut, and streams that
//! move meanwhile.
//!
//! On the main thread, between two passes of the senders. One engine is away at a time, so that each sender finds
//! another one.

use super::load::{self, Load};
use super::processes::Processes;
use super::{START_LIMIT, UpArgs};
use crate::cli::pause;
use crate::cli::refusal::Refusal;
use crate::cli::say;
use std::time::Duration;

/// An engine that was killed is started again after this time.
const AWAY: Duration = Duration::from_millis(500);
/// Time between two looks whether it has joined again.
const LOOK: Duration = Duration::from_millis(100);
/// Longest cut; the shortest is [`CUT_SPREAD`] times shorter.
const CUT_MAX: Duration = Duration::from_secs(10);
const CUT_SPREAD: f64 = 10_000.0;
/// The fractional parts of its multiples fill the span from 0 to 1 evenly from the first on.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// An engine that is away.
struct Away {
    place: usize,
    since: Duration,
    is_started: bool,
    next_look: Duration,
}

/// When what happens next, and how often it happened.
pub(super) struct Faults {
    kill_one: Option<Duration>,
    next_kill: Option<Duration>,
    kill_every: Duration,
    next_cut: Option<Duration>,
    cut_every: Duration,
    next_move: Option<Duration>,
    move_every: Duration,
    away: Option<Away>,
    pub(super) kills: u64,
    pub(super) cuts: u64,
    pub(super) moves: u64,
}

impl Faults {
    pub(super) fn new(args: &UpArgs) -> Faults {
        Faults {
            kill_one: args.kill_one_after,
            next_kill: args.kill_every,
            kill_every: args.kill_every.unwrap_or_default(),
            next_cut: args.cut_every,
            cut_every: args.cut_every.unwrap_or_default(),
            next_move: args.move_every,
            move_every: args.move_every.unwrap_or_default(),
            away: None,
            kills: 0,
            cuts: 0,
            moves: 0,
        }
    }

    /// Does what is due.
    pub(super) fn step(&mut self, processes: &mut Processes, load: &mut Load) -> Result<(), Refusal> {
        let now = load.elapsed();
        if self.kill_one.take_if(|at| now >= *at).is_some() {
            self.kill(processes.count() - 1, processes, load);
            let after_s = now.as_secs_f64();
            say::people(&format!("pinwheel: host-{} killed after {after_s:.1} s", processes.count()));
        }
        if self.away.is_none() && self.next_kill.take_if(|at| now >= *at).is_some() {
            let place = self.kills as usize % processes.count();
            self.kill(place, processes, load);
            // Its end may have taken long: its senders must leave it before it starts again.
            let since = load.elapsed();
            self.away = Some(Away { place, since, is_started: false, next_look: since + AWAY });
        }
        self.bring_back(processes, load)?;
        if let Some(at) = self.next_cut.filter(|at| now >= *at) {
            self.next_cut = Some(at + self.cut_every);
            let share = (self.cuts as f64 * GOLDEN).fract();
            processes.cut(self.cuts as usize % processes.links(), CUT_MAX.div_f64(CUT_SPREAD.powf(share)));
            self.cuts += 1;
        }
        if let Some(at) = self.next_move.filter(|at| now >= *at) {
            self.next_move = Some(at + self.move_every);
            load.move_a_stream(processes);
        }
        self.moves += load.moves_made();
        Ok(())
    }

    fn kill(&mut self, place: usize, processes: &mut Processes, load: &mut Load) {
        processes.kill(place);
        load.note_kill(place);
        self.kills += 1;
    }

    /// Starts the engine that is away; once it has joined, its senders return to it.
    fn bring_back(&mut self, processes: &mut Processes, load: &mut Load) -> Result<(), Refusal> {
        let now = load.elapsed();
        let Some(away) = self.away.as_mut().filter(|away| now >= away.next_look) else { return Ok(()) };
        away.next_look = now + LOOK;
        if !away.is_started {
            let start = |error: std::io::Error| {
                let remedy = "see what the system allows this user";
                Refusal::unusable("cluster up", error.to_string(), "an engine that starts again", remedy)
            };
            processes.start_again(away.place).map_err(start)?;
            away.is_started = true;
        } else if processes.has_joined(away.place) {
            load.send_home(away.place);
            (self.away, self.next_kill) = (None, Some(now + self.kill_every));
        } else if now > away.since + START_LIMIT {
            return Err(processes.not_joined(away.place, false));
        }
        Ok(())
    }

    /// Waits for an engine that has been started, so that it can be ended like the others.
    pub(super) fn finish(&mut self, processes: &mut Processes, load: &mut Load) -> Result<(), Refusal> {
        while self.away.as_ref().is_some_and(|away| away.is_started) {
            self.bring_back(processes, load)?;
            load.pass(processes, None)?;
            pause(load::TURN);
        }
        Ok(())
    }
}
