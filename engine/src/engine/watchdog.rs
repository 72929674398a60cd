//! The watchdog's thread: ticks it, hands it what the operator asks, does what its alarms say.
//!
//! Owns the channel to it. On a cold thread of its own, from before the first hot thread until Shutdown. Bounds: one tick at a
//! time; a shutdown waits [`LEAVE_LIMIT`] for it and then leaves it behind. Not started where the profile says
//! `diagnostics: Off`.
//!
//! # Why it looks once more when it is told to stop
//! A role that dies ends the run, and a drain with nothing under way is over within a millisecond: between two ticks. So its
//! stop is its own, raised when the hot threads have left and before log and recorder are told to end, and what was on the board
//! by then is judged.

use super::Requests;
use super::actor::Actor;
use super::cold::{self, Stop};
use super::steer::SharedSteering;
use crate::board::Board;
use crate::clock::Clock;
use crate::host::{pin, priority};
use crate::profile::{AlarmAction, AlarmRule, Diagnostics, OnAlarm, Priority, Profile};
use crate::stall::{Deeds, Request, TICK, Watchdog, Watched};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for it at a shutdown. Its last look takes a millisecond; on a machine that does not run it, it may take longer, and
/// a death without an alarm is worse than a late end.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// Its own priority, where that is permitted.
const WATCHDOG_NICE: i32 = -10;
const LEAVE_LOOK: Duration = Duration::from_millis(1);

/// What the watchdog is told.
pub(super) enum Told {
    /// By the operator, about an alarm.
    Asked(Request),
    /// Rules and program of the profile that is in force now.
    Rules(Vec<AlarmRule>, OnAlarm),
}

/// The running watchdog.
pub(super) struct Running {
    thread: JoinHandle<()>,
    stop: Stop,
}

impl Running {
    /// Tells it to take its last look and leave.
    pub(super) fn dismiss(&self) {
        self.stop.stop();
    }

    /// The same, and waits a little for it.
    pub(super) fn end(self) {
        self.dismiss();
        for _ in 0..LEAVE_LIMIT.as_millis() {
            if self.thread.is_finished() {
                let _ = self.thread.join();
                return;
            }
            cold::sleep(LEAVE_LOOK);
        }
    }
}

/// What an alarm may do to the engine.
pub(super) struct Hands {
    pub(super) requests: Arc<Requests>,
    pub(super) steering: SharedSteering,
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    /// Where profiles are looked for by name.
    pub(super) profiles: Option<PathBuf>,
}

impl Deeds for Hands {
    fn act(&mut self, action: &AlarmAction, why: &str) {
        let by = Actor::alarm(why);
        // One that is refused comes too late: the engine drains already.
        let _ = match action {
            AlarmAction::None => Ok(()),
            AlarmAction::Drain => {
                self.steering.lock().note_action(&by, &format!("drain asked for by {}", by.words()));
                self.requests.ask(Requests::DRAINED);
                Ok(())
            }
            AlarmAction::StopFeed => self.steering.lock().pause(&by),
            // One that cannot be read was refused when the profile was taken over.
            AlarmAction::SwitchProfile(name) => match Profile::load(name, self.profiles.as_deref()) {
                Ok((profile, _)) => self.steering.lock().switch(name, &profile, None, &by).map(drop),
                Err(_) => Ok(()),
            },
        };
    }

    fn pin(&mut self, tid: u32, core: u32) -> Result<(), String> {
        pin::confine_thread(tid, &[core]).map_err(|error| error.to_string())
    }

    fn note(&mut self, text: &str) {
        self.steering.lock().note_action(&Actor::watchdog(), text);
    }
}

/// Starts the watchdog that `profile` asks for; `None` if it asks for none. What its
/// rules name and cannot be had is noted.
pub(super) fn spawn(
    profile: &Profile,
    hands: Hands,
    (disk, cold_cores): (Option<PathBuf>, Vec<u32>),
    notes: &mut Vec<String>,
) -> io::Result<Option<(Running, Sender<Told>)>> {
    if profile.diagnostics == Diagnostics::Off {
        return Ok(None);
    }
    notes.extend(unreadable(&profile.alarms, hands.profiles.as_deref()));
    let (sender, told) = channel();
    let stop = Stop::new();
    let told_to_stop = stop.clone();
    let (board, clock) = (Arc::clone(&hands.board), hands.clock.clone());
    let (rules, on_alarm) = (profile.alarms.clone(), profile.on_alarm.clone());
    let thread = cold::spawn("watchdog", move || {
        // A courtesy to the hot threads; where it is not permitted the scheduler decides.
        let _ = pin::confine_current_thread(&cold_cores);
        // It takes a hundredth of a core; on a busy machine that hundredth is when it is needed.
        let _ = priority::set(None, Priority::Nice(WATCHDOG_NICE));
        let root = PathBuf::from("/");
        run(Watchdog::new(Watched { board, clock, rules, on_alarm, disk, root }), hands, &told, &told_to_stop);
    })?;
    Ok(Some((Running { thread, stop }, sender)))
}

fn run(mut watchdog: Watchdog, mut hands: Hands, told: &Receiver<Told>, stop: &Stop) {
    loop {
        // The flag first: whatever happened before it was raised is then judged below.
        let is_last = stop.is_stopped();
        while let Ok(told) = told.try_recv() {
            match told {
                Told::Asked(request) => {
                    watchdog.answer(request);
                }
                Told::Rules(rules, on_alarm) => watchdog.steer(rules, on_alarm),
            }
        }
        if is_last {
            return watchdog.last_look(&mut hands);
        }
        watchdog.tick(&mut hands);
        cold::sleep(TICK);
    }
}

/// A sentence for each profile that a rule would switch to and that cannot be read.
fn unreadable(rules: &[AlarmRule], profiles: Option<&Path>) -> Vec<String> {
    let said = |rule: &AlarmRule| match &rule.action {
        AlarmAction::SwitchProfile(name) => {
            let error = Profile::load(name, profiles).err()?;
            Some(format!("alarm {} would switch to profile {name}, which cannot be used: {error}", rule.id))
        }
        _ => None,
    };
    rules.iter().filter_map(said).collect()
}
