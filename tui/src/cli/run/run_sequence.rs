//! The current run, and the next one after a change of input. This process's console or another
//! process requests the change.
//!
//! The thread that polls the run calls [`RunSequence::step`] many times a second; `step` never
//! blocks. One thread reads the new input, another ends the old run and starts the new one. Bounds:
//! one current run and one next run.
//!
//! ```text
//!  RUNNING ─ new input ─▶ LOADING ─ usable ─▶ DRAINING ─ all answered ─▶ STARTING ─ started ─▶ RUNNING
//!                            └─ unusable: the run continues                 └─ failed: no run is left
//! ```
//!
//! # Why a new engine
//!
//! The model determines the decoders' tables, the size of a slot and the true observables. All of
//! these are built once, before the hot threads run. A new input therefore gets a new engine, with
//! its own run directory and report.

use super::args::RunArgs;
use super::aside::{Aside, spawn};
use super::next_request::{allows_next_run, is_same, request};
use super::{Reader, Run, WatchedRun, open_sink};
use crate::cli::input::{self, Loaded};
use crate::cli::places::UserPaths;
use crate::cli::refusal::Refusal;
use crate::cli::request::{OutputMode, RunRequest, ShotSource};
use crate::source::Reply;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{self, Phase};
use pinwheel_engine::engine::{Accepted, Actor, Command, Done, Engine, InputSpec, InputWanted, check_input};
use pinwheel_engine::profile::{OnHangup, Profile};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Everything besides the input that the next run needs to start.
#[derive(Clone)]
pub(super) struct StartOptions {
    pub(super) args: RunArgs,
    pub(super) logs: PathBuf,
    pub(super) profiles: Option<PathBuf>,
    pub(super) user_paths: UserPaths,
}

/// The next run's request with its loaded input.
type Prepared = Box<(RunRequest, Loaded)>;

/// Who changed the input and how, for the next run's log.
struct Change {
    by: Actor,
    text: String,
}

enum Next {
    None,
    Loading(InputWanted, Receiver<Result<Prepared, Refusal>>),
    Draining(Prepared, Change),
    Starting(Receiver<StartResult>, Change),
}

/// Exit status of the run that ended, and the run that was started after it.
type StartResult = (u8, Result<Box<Run>, Refusal>);

/// Whether somebody requested the end of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Requested,
}

/// The current run and the state of a change of input.
pub(super) struct RunSequence {
    /// `None` while the next run starts, or when it could not start.
    run: Option<Run>,
    next: Next,
    ending: Ending,
    /// The last snapshot and profile of the previous run.
    last: Option<(Snapshot, Arc<Profile>)>,
    /// Highest exit status of the runs that have ended.
    status: u8,
    /// Why the next run did not start.
    failed: Option<String>,
    replies: Vec<Reply>,
    /// Receives the answers to this console's requests to change the input.
    answers: Vec<Receiver<Result<Done, String>>>,
    /// This console's command that prepares decoders.
    aside: Aside,
    start_options: StartOptions,
}

/// Refusal while no engine runs.
const NO_RUN: &str = "one run has ended and the next has not started yet; try again in a moment";

impl RunSequence {
    pub(super) fn new(run: Run, start_options: StartOptions) -> RunSequence {
        RunSequence {
            run: Some(run),
            next: Next::None,
            ending: Ending::No,
            last: None,
            status: 0,
            failed: None,
            replies: Vec::new(),
            answers: Vec::new(),
            aside: Aside::default(),
            start_options,
        }
    }

    /// The last run and the highest exit status of the runs before it. Waits for a run that is
    /// starting; it is drained if a drain was requested.
    ///
    /// # Errors
    /// One sentence on why there is no run.
    pub(super) fn last(mut self) -> Result<(Run, u8), String> {
        if let Next::Starting(begun, change) = std::mem::replace(&mut self.next, Next::None) {
            match begun.recv() {
                Ok(begun) => self.begun(begun, &change),
                Err(_gone) => self.fail("the thread that started it ended without a result"),
            }
        }
        std::mem::take(&mut self.aside).end();
        let (failed, status) = (self.failed.take(), self.status);
        self.run.map(|run| (run, status)).ok_or_else(|| failed.unwrap_or_else(|| NO_RUN.to_owned()))
    }

    pub(super) fn engine(&self) -> Result<&Engine, String> {
        self.run.as_ref().map(|run| run.engine()).ok_or_else(|| NO_RUN.to_owned())
    }

    pub(super) fn profile(&self) -> Option<Arc<Profile>> {
        let ended = || self.last.as_ref().map(|(_, profile)| Arc::clone(profile));
        self.run.as_ref().map(|run| run.engine().profile()).or_else(ended)
    }

    /// Executes a command of this process's console. A drain cancels the next run.
    ///
    /// # Errors
    /// One sentence on why the command was refused.
    pub(super) fn execute(&mut self, command: &Command, by: &Actor) -> Result<(), String> {
        if *command == Command::Drain {
            self.cancel_next();
            // The next run is drained as soon as it has started.
            if self.run.is_none() {
                return Ok(());
            }
        }
        if prepares_decoders(command, &self.engine()?.profile()) {
            let (execute, command, by) = (self.engine()?.commands(), command.clone(), by.clone());
            return self.aside.begin(move || {
                execute(command.clone(), &by).map(drop).map_err(|why| match command {
                    Command::Profile { name, .. } => Reply::SwitchRefused { name, why: why.to_string() },
                    command => Reply::Refused(format!("{command} refused: {why}")),
                })
            });
        }
        let accepted = self.engine()?.execute(command.clone(), by).map_err(|refused| refused.to_string())?;
        if let Accepted::Input(answer) = accepted {
            self.answers.push(answer);
        }
        Ok(())
    }

    /// Cancels the next run, if its input is still loading or its predecessor still drains.
    fn cancel_next(&mut self) {
        self.ending = Ending::Requested;
        self.answers.clear();
        match std::mem::replace(&mut self.next, Next::None) {
            Next::Loading(wanted, _) => wanted.refuse(DRAINING),
            // A run that is starting is drained once it has started.
            next @ Next::Starting(..) => self.next = next,
            Next::None | Next::Draining(..) => {}
        }
    }

    /// Starts a thread that loads and checks the new input, unless this run allows no next run.
    fn begin(&self, spec: &InputSpec) -> Result<Receiver<Result<Prepared, Refusal>>, String> {
        let request = self.next_request(spec)?;
        // A live source that this run has open becomes free when the run has ended.
        let held = match (self.run.as_ref().map(|run| &run.request.shots), &request.shots) {
            (Some(ShotSource::Live(had)), ShotSource::Live(wanted)) if is_same(had, wanted) => Some(wanted.clone()),
            _ => None,
        };
        let (sender, loaded) = channel();
        let read = move || {
            let loaded = input::load(&request).and_then(|loaded| {
                check_input(&request.profile, &loaded.input, held.as_ref(), &board::directory())?;
                Ok(Box::new((request, loaded)))
            });
            // The receiver is gone only if the process is ending.
            let _ = sender.send(loaded);
        };
        spawn("input", read)?;
        Ok(loaded)
    }

    /// The request of the next run, or why this run allows none.
    fn next_request(&self, spec: &InputSpec) -> Result<RunRequest, String> {
        let Some(run) = &self.run else { return Err(NO_RUN.to_owned()) };
        if self.ending == Ending::Requested || run.engine().is_finished() {
            return Err(DRAINING.to_owned());
        }
        if !matches!(self.next, Next::None) {
            return Err("an input change is already in progress; wait for it to finish".to_owned());
        }
        allows_next_run(&run.request)?;
        if spec.dem.is_none()
            && let Some(model) = run.engine().other_model()
        {
            return Err(format!(
                "shots are decoded by {} instead of the model of the start; name the model of the next input with \
                 --dem",
                model.name
            ));
        }
        // A profile that was taken for a limited time ends with its run: it must not become permanent.
        let (name, profile) = run.engine().lasting_profile();
        let is_limited = run.engine().snapshot().control.revert.is_some();
        let request = request(&self.start_options.args, &name, &profile, spec, run.request.output_mode);
        let mut request = request.map_err(|refusal| refusal.to_string())?;
        request.profile_file = run.request.profile_file.clone().filter(|_| name == run.request.profile_name);
        request.notes.push(format!("follows run {} with another input", run.name()));
        if is_limited {
            request.notes.push(format!("profile {name} again: the limited switch ended with that run"));
        }
        Ok(request)
    }

    fn refuse(&mut self, wanted: InputWanted, said: &str) {
        // This console receives the refusal as the answer to its command.
        if !wanted.by.is_own_console() {
            self.replies
                .push(Reply::Refused(format!("an input change requested by another process was refused: {said}")));
        }
        wanted.refuse(said);
    }

    /// Drains the engine for an input that can be used. The requester is answered first; if the
    /// requester is gone, nothing is drained.
    fn drain_for(&mut self, wanted: InputWanted, prepared: Prepared) {
        let Some(run) = &self.run else { return self.refuse(wanted, NO_RUN) };
        let now = run.engine().snapshot().engine;
        if now.phase >= Phase::Drain || run.engine().is_finished() {
            return self.refuse(wanted, DRAINING);
        }
        let (from, to, by) = (now.input, prepared.1.input.words(), wanted.by.clone());
        if !wanted.accept(&from, &to) {
            let said = "the process that requested an input change is gone; the run continues on its input";
            return self.replies.push(Reply::Refused(said.to_owned()));
        }
        if !run.engine().drain_for_input(&by, &from, &to) {
            return self.replies.push(Reply::Refused(DRAINING.to_owned()));
        }
        let said = format!("the input can be used; the engine drains and then takes {to}");
        self.replies.push(Reply::Done(said));
        let text = format!("input {from} to {to}, after run {}, asked for by {}", run.name(), by.words());
        self.next = Next::Draining(prepared, Change { by, text });
    }

    /// Ends `run`, whose engine has drained, and starts the next run.
    fn follow(&mut self, run: Run, prepared: Prepared, change: Change) {
        self.last = Some((run.engine().snapshot(), run.engine().profile()));
        let start_options = self.start_options.clone();
        let (sender, started) = channel();
        // Under a console no report is printed; each run directory has its report.
        let reader = if run.request.output_mode == OutputMode::Console { Reader::Gone } else { Reader::Present };
        let succeed = move || {
            let status = run.end(None, None, reader);
            let (request, loaded) = *prepared;
            let begun = open_sink(&request, loaded.observables)
                .and_then(|sink| Run::begin_on(request, loaded, sink, &start_options));
            let _ = sender.send((status, begun.map(Box::new)));
        };
        match spawn("next-run", succeed) {
            Ok(()) => self.next = Next::Starting(started, change),
            Err(said) => self.fail(&said),
        }
    }

    fn begun(&mut self, (status, run): StartResult, change: &Change) {
        self.status = self.status.max(status);
        match run {
            Ok(run) => {
                run.engine().note_action(&change.by, &change.text);
                if self.ending == Ending::Requested {
                    run.engine().request_drain();
                }
                let (input, name) = (run.engine().snapshot().engine.input, run.name());
                self.replies.push(Reply::Done(format!("shots come from {input}, run {name}")));
                self.run = Some(*run);
            }
            Err(refusal) => self.fail(&refusal.to_string()),
        }
    }

    /// Records that the next run did not start.
    fn fail(&mut self, why: &str) {
        let said = format!(
            "the run on the new input did not start: {why}; the previous run has ended, and its report is written"
        );
        self.replies.push(Reply::Refused(said.clone()));
        self.failed = Some(said);
    }
}

impl WatchedRun for RunSequence {
    /// The current snapshot, or the last one of the run that ended.
    fn snapshot(&self) -> Option<Snapshot> {
        let ended = || self.last.as_ref().map(|(snapshot, _)| snapshot.clone());
        self.run.as_ref().map(|run| run.engine().snapshot()).or_else(ended)
    }

    fn on_hangup(&self) -> OnHangup {
        self.profile().map_or(OnHangup::Detach, |profile| profile.on_hangup)
    }

    /// Drains the engine after a signal; no run follows.
    fn request_drain(&mut self) {
        self.cancel_next();
        if let Some(run) = &self.run {
            run.engine().request_drain();
        }
    }

    /// Whether no run is active and none is going to start.
    fn is_finished(&self) -> bool {
        match (&self.next, &self.run) {
            (Next::Draining(..) | Next::Starting(..), _) => false,
            (_, Some(run)) => run.engine().is_finished(),
            (_, None) => true,
        }
    }

    fn step(&mut self) -> Vec<Reply> {
        if let Some(wanted) = self.run.as_ref().and_then(|run| run.engine().input_wanted()) {
            match self.begin(&wanted.spec) {
                Ok(loaded) => self.next = Next::Loading(wanted, loaded),
                Err(said) => wanted.refuse(&said),
            }
        }
        match std::mem::replace(&mut self.next, Next::None) {
            Next::None => {}
            Next::Loading(wanted, loaded) => match loaded.try_recv() {
                Ok(Ok(prepared)) => self.drain_for(wanted, prepared),
                Ok(Err(refusal)) => self.refuse(wanted, &refusal.to_string()),
                Err(TryRecvError::Empty) => self.next = Next::Loading(wanted, loaded),
                Err(TryRecvError::Disconnected) => {
                    self.refuse(wanted, "the thread that loaded the input ended without a result")
                }
            },
            Next::Draining(prepared, change) => match self.run.take() {
                Some(run) if run.engine().is_finished() && run.engine().goes_on() => self.follow(run, prepared, change),
                Some(run) if run.engine().is_finished() => {
                    self.run = Some(run);
                    let said = "the input change was cancelled, because the end of the engine was requested";
                    self.replies.push(Reply::Refused(said.to_owned()));
                }
                run => {
                    self.run = run;
                    self.next = Next::Draining(prepared, change);
                }
            },
            Next::Starting(begun, change) => match begun.try_recv() {
                Ok(begun) => self.begun(begun, &change),
                Err(TryRecvError::Empty) => self.next = Next::Starting(begun, change),
                Err(TryRecvError::Disconnected) => self.fail("the thread that started it ended without a result"),
            },
        }
        self.replies.extend(self.aside.refusal());
        self.answers.retain(|answer| match answer.try_recv() {
            Ok(Err(said)) => {
                self.replies.push(Reply::Refused(said));
                false
            }
            Ok(Ok(_)) | Err(TryRecvError::Disconnected) => false,
            Err(TryRecvError::Empty) => true,
        });
        std::mem::take(&mut self.replies)
    }
}

/// Whether `command` may take as long as a start, on an engine with this profile in force: a plugin
/// loads. Other switches of the profile wait for nothing that is prepared.
fn prepares_decoders(command: &Command, in_force: &Profile) -> bool {
    match command {
        Command::Decoder { .. } | Command::Model { .. } | Command::Shadow { .. } => true,
        Command::Profile { name, text: Some(text), .. } => Profile::parse(text, name)
            .is_ok_and(|next| (&next.decoder, &next.streams) != (&in_force.decoder, &in_force.streams)),
        _ => false,
    }
}

/// Refusal of a new input while the engine drains.
const DRAINING: &str = "the engine is draining and takes no other input; start a new run after its end";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Command, Profile, prepares_decoders};
    use pinwheel_engine::profile::{Decoder, SpinPolicy};

    #[test]
    fn a_switch_to_other_decoders_is_not_waited_for_and_any_other_is_made_at_once() {
        let (lab, _) = Profile::load("lab", None).unwrap();
        let to = |profile: &Profile| prepares_decoders(&Command::profile("mine", profile, None).unwrap(), &lab);
        let slow = Decoder::from_text("plugin:slow.so").unwrap();
        assert!(to(&Profile { decoder: slow, ..lab.clone() }));
        assert!(!to(&Profile { spin: SpinPolicy::Shared, ..lab.clone() }));
        assert!(!prepares_decoders(&Command::Drain, &lab));
    }
}
