//! A run, and the one that follows it on another input: asked for at this process's console, or from another process.
//!
//! On the thread that watches the run, which calls [`Succession::step`] many times a second and waits for nothing here: a thread of
//! its own reads the input, and one ends the old run and begins the new one. Bounded: one run at a time, one that follows it.
//!
//! ```text
//!  RUNS ─ another input ─▶ READS ─ it can be used ─▶ DRAINS ─ all answered ─▶ FOLLOWS ─ begun ─▶ RUNS
//!                            └─ it cannot: said, the run goes on                 └─ refused: said, it has ended
//! ```
//!
//! # Why not the same engine
//!
//! A model decides what decoders hold, how wide a slot is and what a shot is judged by; all of that is built once, before
//! hot threads run. An engine that takes another input is another engine, with a run directory and a report of its own.

use super::sequel::{is_same, keeps_results_apart, request};
use super::{Audience, Run, open_sink};
use crate::cli::args::RunArgs;
use crate::cli::input::{self, Loaded};
use crate::cli::places::Surroundings;
use crate::cli::refusal::Refusal;
use crate::cli::request::{Face, RunRequest, ShotSource};
use crate::source::News;
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::wire::InputSpec;
use pinwheel_engine::engine::{Actor, Engine, InputWanted, check_input};
use pinwheel_engine::profile::Profile;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// What a following run begins with, besides its input.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) args: RunArgs,
    pub(super) logs: PathBuf,
    pub(super) profiles: Option<PathBuf>,
    pub(super) around: Surroundings,
}

/// Who wants another input, and who hears about it.
enum Asker {
    /// This process's console.
    Console { by: Actor },
    /// Another process.
    Other(InputWanted),
}

impl Asker {
    fn by(&self) -> &Actor {
        match self {
            Asker::Console { by } => by,
            Asker::Other(wanted) => &wanted.by,
        }
    }
}

/// A run that is to follow.
type Prepared = Box<(RunRequest, Loaded)>;

/// What it follows, for its own log.
struct Change {
    by: Actor,
    text: String,
}

enum Next {
    None,
    Reads(Asker, Receiver<Result<Prepared, Refusal>>),
    Drains(Prepared, Change),
    Follows(Receiver<Begun>, Change),
}

/// How the run before ended, and the one that follows it.
type Begun = (u8, Result<Box<Run>, Refusal>);

/// Whether the operator has asked for the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Asked,
}

/// The run, and what is to follow it.
pub(super) struct Succession {
    /// `None`: one follows, or could not.
    run: Option<Run>,
    next: Next,
    ending: Ending,
    /// The last picture and profile of a run that has ended.
    last: Option<(Snapshot, Arc<Profile>)>,
    /// The worst exit status of the runs that have ended.
    status: u8,
    /// Why the run that was to follow did not begin.
    failed: Option<String>,
    news: Vec<News>,
    places: Places,
}

/// What is said where no engine runs at this moment.
const BETWEEN: &str = "found one run ended and the next not begun, expected a running engine; wait a moment";

impl Succession {
    pub(super) fn new(run: Run, places: Places) -> Succession {
        Succession {
            run: Some(run),
            next: Next::None,
            ending: Ending::No,
            last: None,
            status: 0,
            failed: None,
            news: Vec::new(),
            places,
        }
    }

    /// The run that is left; one that is beginning is waited for, and drained if that was asked. And the worst exit status
    /// of those before it.
    ///
    /// # Errors
    /// When there is none, in one sentence why.
    pub(super) fn last(mut self) -> Result<(Run, u8), String> {
        if let Next::Follows(begun, change) = std::mem::replace(&mut self.next, Next::None) {
            match begun.recv() {
                Ok(begun) => self.begun(begun, &change),
                Err(_gone) => self.fail("its thread has gone"),
            }
        }
        let (failed, status) = (self.failed.take(), self.status);
        self.run.map(|run| (run, status)).ok_or_else(|| failed.unwrap_or_else(|| BETWEEN.to_owned()))
    }

    pub(super) fn engine(&self) -> Result<&Engine, String> {
        self.run.as_ref().map(|run| &run.engine).ok_or_else(|| BETWEEN.to_owned())
    }

    /// The engine now, or as it was when it ended.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let ended = || self.last.as_ref().map(|(snapshot, _)| snapshot.clone());
        self.run.as_ref().map(|run| run.engine.snapshot()).or_else(ended)
    }

    /// Its profile.
    pub(super) fn profile(&self) -> Option<Arc<Profile>> {
        let ended = || self.last.as_ref().map(|(_, profile)| Arc::clone(profile));
        self.run.as_ref().map(|run| run.engine.profile()).or_else(ended)
    }

    /// Whether nothing runs any more, and nothing is going to.
    pub(super) fn is_finished(&self) -> bool {
        match (&self.next, &self.run) {
            (Next::Drains(..) | Next::Follows(..), _) => false,
            (_, Some(run)) => run.engine.is_finished(),
            (_, None) => true,
        }
    }

    /// Drains the engine, and no run follows.
    pub(super) fn request_drain(&mut self, by: Option<&Actor>) {
        self.ending = Ending::Asked;
        match std::mem::replace(&mut self.next, Next::None) {
            Next::Reads(Asker::Other(wanted), _) => wanted.refuse(ENDING),
            // It begins in a moment, and is drained then.
            next @ Next::Follows(..) => self.next = next,
            Next::None | Next::Reads(Asker::Console { .. }, _) | Next::Drains(..) => {}
        }
        match (&self.run, by) {
            (Some(run), Some(by)) => run.engine.drain_by(by),
            (Some(run), None) => run.engine.request_drain(),
            (None, _) => {}
        }
    }

    /// Goes on to the run that is to follow, if one is; what there is to tell.
    pub(super) fn step(&mut self) -> Vec<News> {
        if let Some(wanted) = self.run.as_ref().and_then(|run| run.engine.input_wanted()) {
            match self.begin(&wanted.spec) {
                Ok(told) => self.next = Next::Reads(Asker::Other(wanted), told),
                Err(said) => wanted.refuse(&said),
            }
        }
        match std::mem::replace(&mut self.next, Next::None) {
            Next::None => {}
            Next::Reads(asker, told) => match told.try_recv() {
                Ok(Ok(prepared)) => self.drain_for(asker, prepared),
                Ok(Err(refusal)) => self.refuse(asker, refusal.to_string()),
                Err(TryRecvError::Empty) => self.next = Next::Reads(asker, told),
                Err(TryRecvError::Disconnected) => self.refuse(asker, "the input was not read".to_owned()),
            },
            Next::Drains(prepared, change) => match self.run.take() {
                Some(run) if run.engine.is_finished() && run.engine.goes_on() => self.follow(run, prepared, change),
                Some(run) if run.engine.is_finished() => {
                    self.run = Some(run);
                    let said = "another input was given up: somebody asked for the end of the engine";
                    self.news.push(News::Refused(said.to_owned()));
                }
                run => {
                    self.run = run;
                    self.next = Next::Drains(prepared, change);
                }
            },
            Next::Follows(begun, change) => match begun.try_recv() {
                Ok(begun) => self.begun(begun, &change),
                Err(TryRecvError::Empty) => self.next = Next::Follows(begun, change),
                Err(TryRecvError::Disconnected) => self.fail("its thread has gone"),
            },
        }
        std::mem::take(&mut self.news)
    }

    /// Begins to read another input, which this process's console asks for.
    ///
    /// # Errors
    /// Why not, in one sentence.
    pub(super) fn ask(&mut self, spec: &InputSpec, by: Actor) -> Result<(), String> {
        let told = self.begin(spec)?;
        self.next = Next::Reads(Asker::Console { by }, told);
        Ok(())
    }

    /// Has the input read and checked, unless the run cannot have one after it.
    fn begin(&self, spec: &InputSpec) -> Result<Receiver<Result<Prepared, Refusal>>, String> {
        let request = self.may_begin(spec)?;
        // What the run has itself is free again when it has ended.
        let held = match (self.run.as_ref().map(|run| &run.request.shots), &request.shots) {
            (Some(ShotSource::Live(had)), ShotSource::Live(wanted)) if is_same(had, wanted) => Some(wanted.clone()),
            _ => None,
        };
        let (tell, told) = channel();
        let read = move || {
            let loaded = input::load(&request).and_then(|loaded| {
                check_input(&request.profile, &loaded.input, held.as_ref())?;
                Ok(Box::new((request, loaded)))
            });
            // A process that ends meanwhile needs no answer.
            let _ = tell.send(loaded);
        };
        spawn("input", read)?;
        Ok(told)
    }

    /// What the run that follows is to do.
    fn may_begin(&self, spec: &InputSpec) -> Result<RunRequest, String> {
        let Some(run) = &self.run else { return Err(BETWEEN.to_owned()) };
        if self.ending == Ending::Asked || run.engine.is_finished() {
            return Err(ENDING.to_owned());
        }
        if !matches!(self.next, Next::None) {
            return Err("found another input on its way already, expected none; wait for it".to_owned());
        }
        keeps_results_apart(&run.request)?;
        let name = run.engine.snapshot().engine.profile;
        let request = request(&self.places.args, &name, &run.engine.profile(), spec, run.request.face);
        let mut request = request.map_err(|refusal| refusal.to_string())?;
        request.profile_file = run.request.profile_file.clone().filter(|_| name == run.request.profile_name);
        request.notes.push(format!("follows run {} with another input", run.name()));
        Ok(request)
    }

    fn refuse(&mut self, asker: Asker, said: String) {
        if let Asker::Other(wanted) = asker {
            wanted.refuse(&said);
            self.news.push(News::Refused(format!("another input, asked for by another process: {said}")));
        } else {
            self.news.push(News::Refused(said));
        }
    }

    /// The input can be used. Whoever asked is told before anything is drained; if they have gone, nothing is.
    fn drain_for(&mut self, asker: Asker, prepared: Prepared) {
        let Some(run) = &self.run else { return self.refuse(asker, BETWEEN.to_owned()) };
        let now = run.engine.snapshot().engine;
        if now.phase >= Phase::Drain || run.engine.is_finished() {
            return self.refuse(asker, ENDING.to_owned());
        }
        let (from, to, by) = (now.input, prepared.1.input.words(), asker.by().clone());
        if let Asker::Other(wanted) = asker
            && !wanted.accept(&from, &to)
        {
            let said = "found nobody waiting any more for another input, expected who asked for it; the run goes on";
            return self.news.push(News::Refused(said.to_owned()));
        }
        if !run.engine.drain_for_input(&by, &from, &to) {
            return self.news.push(News::Refused(ENDING.to_owned()));
        }
        let said = format!("the input can be used; the engine drains before it takes {to}");
        self.news.push(News::Done(said));
        let text = format!("input {from} to {to}, after run {}, asked for by {}", run.name(), by.words());
        self.next = Next::Drains(prepared, Change { by, text });
    }

    /// Ends `run`, whose engine has drained, and begins the one that follows.
    fn follow(&mut self, run: Run, prepared: Prepared, change: Change) {
        self.last = Some((run.engine.snapshot(), run.engine.profile()));
        let places = self.places.clone();
        let (tell, told) = channel();
        // Under a console the screen is not for reports: each is in its run's directory.
        let audience = if run.request.face == Face::Console { Audience::Gone } else { Audience::Listens };
        let succeed = move || {
            let status = run.end(None, None, audience);
            let (request, loaded) = *prepared;
            let begun = open_sink(&request, loaded.observables).and_then(|sink| {
                Run::begin_on(request, loaded, sink, &places.logs, places.profiles.as_deref(), &places.around)
            });
            let _ = tell.send((status, begun.map(Box::new)));
        };
        match spawn("succession", succeed) {
            Ok(()) => self.next = Next::Follows(told, change),
            Err(said) => self.fail(&said),
        }
    }

    fn begun(&mut self, (status, run): Begun, change: &Change) {
        self.status = self.status.max(status);
        match run {
            Ok(run) => {
                run.engine.note_action(&change.by, &change.text);
                if self.ending == Ending::Asked {
                    run.engine.request_drain();
                }
                let (input, name) = (run.engine.snapshot().engine.input, run.name());
                self.news.push(News::Done(format!("shots come from {input}, run {name}")));
                self.run = Some(*run);
            }
            Err(refusal) => self.fail(&refusal.to_string()),
        }
    }

    /// The run that was to follow does not.
    fn fail(&mut self, why: &str) {
        let said =
            format!("the run on another input did not begin: {why}; the one before has ended, and kept its report");
        self.news.push(News::Refused(said.clone()));
        self.failed = Some(said);
    }
}

/// What is said to another input when the end was asked for.
const ENDING: &str = "found the engine draining, expected it to run; wait for its end";

#[expect(clippy::disallowed_methods, reason = "a cold thread; it inherits the cores of the thread that watches")]
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let refused = |error| format!("found no room for a thread ({error}), expected one more; raise ulimit -u");
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop).map_err(refused)
}
