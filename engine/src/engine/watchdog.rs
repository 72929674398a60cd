//! The watchdog's thread: runs its ticks, passes it the operator's requests, executes its alarm
//! actions.
//!
//! Owns the watchdog's channel. Runs on a cold thread of its own, from before the first hot thread
//! until Shutdown. Bounds: one tick at a time; a shutdown waits [`LEAVE_LIMIT`] for it and then
//! does not join it. Not started if the profile has `diagnostics: Off`. Actions that read files and
//! prepare decoders run in order on a second thread, which the first of them starts: they may take
//! as long as a start of the engine, and the watchdog must not stop meanwhile.
//!
//! # Why it makes a final check
//! The death of a role ends the run, and a drain without shots under way takes less than a
//! millisecond, so both may fall between two ticks. The watchdog therefore has a stop flag of its
//! own, raised after the hot threads have ended and before log and recorder end, and then checks
//! the board once more.

pub(super) mod message;

use super::actor::Actor;
use super::cold::{self, ColdThreads, Stop};
use super::command::{Command, Executor};
use super::core_claims::CoreClaims;
use super::model_file;
use super::slow_commands::SlowCommands;
use crate::board::Board;
use crate::board::alarms::Site;
use crate::clock::Clock;
use crate::host::{pin, priority};
use crate::hot::Shared;
use crate::profile::{AlarmAction, AlarmRule, Diagnostics, Priority, Profile};
use crate::stall::{TICK, Watchdog, WatchdogActions, WatchdogConfig};
use message::WatchdogMessage;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for it at a shutdown. Its final check takes a millisecond, but the machine may not
/// schedule it at once, and a missed alarm about a death is worse than a late end.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// Its own priority, if the system permits it.
const WATCHDOG_NICE: i32 = -10;

/// The running watchdog.
pub(super) struct Running {
    thread: JoinHandle<()>,
    stop: Stop,
}

impl Running {
    /// Raised, it requests its final check and end.
    pub(super) fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Requests its final check and end, and waits at most [`LEAVE_LIMIT`].
    pub(super) fn end(self) {
        self.stop.stop();
        cold::join(self.thread, LEAVE_LIMIT);
    }
}

/// Executes the actions of alarms.
pub(super) struct AlarmActions {
    executor: Executor,
    board: Arc<Board>,
    clock: Clock,
    claims: Option<Arc<CoreClaims>>,
    threads: ColdThreads,
    slow: SlowCommands,
}

impl AlarmActions {
    /// Those on the engine that `executor` controls; `claims` are those of its cores.
    pub(super) fn new(
        executor: Executor,
        shared: &Shared,
        claims: Option<Arc<CoreClaims>>,
        threads: ColdThreads,
    ) -> AlarmActions {
        let (board, clock) = (Arc::clone(&shared.board), shared.clock.clone());
        let slow = SlowCommands::new("alarm-actions", executor.clone(), threads.clone());
        AlarmActions { executor, board, clock, claims, threads, slow }
    }

    /// Executes `command` after those before it, on their own thread.
    fn execute_later(&mut self, command: Command, by: Actor) {
        self.slow.run(move |executor| execute(executor, command, &by));
    }
}

/// Executes an alarm's `command`; a refusal is recorded in the actions log.
fn execute(executor: &Executor, command: Command, by: &Actor) {
    let what = command.to_string();
    if let Err(refused) = executor.execute(command, by) {
        executor.steering.lock().note_action(by, &format!("{what}, action of an alarm, refused: {refused}"));
    }
}

impl WatchdogActions for AlarmActions {
    fn act(&mut self, action: &AlarmAction, site: Site, why: &str) {
        let by = Actor::alarm(why);
        match action {
            AlarmAction::None => {}
            AlarmAction::Drain => execute(&self.executor, Command::Drain, &by),
            AlarmAction::StopFeed => execute(&self.executor, Command::Pause, &by),
            AlarmAction::SwitchProfile(name) => {
                self.execute_later(Command::Profile { name: name.clone(), text: None, for_s: None }, by);
            }
            AlarmAction::SwitchModel(file) => {
                let stream = if let Site::Stream(stream) = site { Some(stream) } else { None };
                self.execute_later(Command::Model { file: Some(file.clone()), stream }, by);
            }
        }
    }

    fn pin(&mut self, tid: u32, core: u32) -> Result<(), String> {
        self.claims.as_ref().map_or(Ok(()), |claims| claims.claim(core))?;
        pin::confine_thread(tid, &[core]).map_err(|error| error.to_string())
    }

    fn cores_of(&self, tid: u32) -> Option<Vec<u32>> {
        pin::cores_of_thread(tid)
    }

    fn release(&mut self, core: u32) {
        if let Some(claims) = &self.claims {
            claims.release(core);
        }
    }

    fn confine_cold_threads(&mut self) {
        self.threads.confine_again();
    }

    fn note(&mut self, text: &str) {
        self.executor.steering.lock().note_action(&Actor::watchdog(), text);
    }
}

/// Starts the watchdog that `profile` requires; `None` with diagnostics off. Notes the profiles and
/// models that its rules name and that cannot be read.
pub(super) fn spawn(
    profile: &Profile,
    actions: AlarmActions,
    disk: Option<PathBuf>,
    notes: &mut Vec<String>,
) -> io::Result<Option<(Running, Sender<WatchdogMessage>)>> {
    if profile.diagnostics == Diagnostics::Off {
        return Ok(None);
    }
    let profiles = actions.executor.steering.lock().profiles();
    notes.extend(unreadable(&profile.alarms, profiles.as_deref()));
    let (sender, messages) = channel();
    let stop = Stop::new();
    let thread_stop = stop.clone();
    let (board, clock) = (Arc::clone(&actions.board), actions.clock.clone());
    let threads = actions.threads.clone();
    let (rules, on_alarm) = (profile.alarms.clone(), profile.on_alarm.clone());
    let thread = threads.spawn("watchdog", move || {
        // It needs a hundredth of a core, and most urgently on a busy machine.
        let _ = priority::set(None, Priority::Nice(WATCHDOG_NICE));
        let root = PathBuf::from("/");
        run(
            Watchdog::new(WatchdogConfig { board, clock, rules, on_alarm, disk, root }),
            actions,
            &messages,
            &thread_stop,
        );
    })?;
    Ok(Some((Running { thread, stop }, sender)))
}

fn run(mut watchdog: Watchdog, mut actions: AlarmActions, messages: &Receiver<WatchdogMessage>, stop: &Stop) {
    loop {
        // The flag is read first: events before it was raised are then checked below.
        let is_last = stop.is_stopped();
        while let Ok(message) = messages.try_recv() {
            match message {
                WatchdogMessage::Request(request) => {
                    watchdog.answer(request);
                }
                WatchdogMessage::Rules(rules, on_alarm) => watchdog.set_rules(rules, on_alarm),
            }
        }
        if is_last {
            return watchdog.final_check(&mut actions);
        }
        watchdog.tick(&mut actions);
        cold::sleep(TICK);
    }
}

/// A sentence for each unreadable profile or model that a rule would switch to.
fn unreadable(rules: &[AlarmRule], profiles: Option<&Path>) -> Vec<String> {
    let said = |rule: &AlarmRule| match &rule.action {
        AlarmAction::SwitchProfile(name) => {
            let error = Profile::load_unwaited(name, profiles).err()?;
            Some(format!("alarm {} would switch to profile {name}, which is unusable: {error}", rule.id))
        }
        AlarmAction::SwitchModel(file) => {
            let error = model_file::read(file).err()?;
            Some(format!("alarm {} would switch to another model, which is unusable: {error}", rule.id))
        }
        _ => None,
    };
    rules.iter().filter_map(said).collect()
}
