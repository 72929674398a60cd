//! The run that its own console operates, and the one that follows it on another input.
//!
//! On the console thread, which calls it ten times a second and waits for nothing here: a thread of its own reads the
//! input, and one ends the old run and begins the new one. Bounded: one run at a time, one that follows it.
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

use super::{Audience, Run};
use crate::cli::args::RunArgs;
use crate::cli::input::{self, Loaded};
use crate::cli::places::Surroundings;
use crate::cli::refusal::Refusal;
use crate::cli::request::RunRequest;
use crate::model::deeds::Deed;
use crate::source::live::Handle;
use crate::source::{Hold, News};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Actor, ApplyError, Engine, LivePlace};
use pinwheel_engine::profile::{Profile, Rate, Source};
use pinwheel_engine::record::LookBack;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

/// What a following run begins with, besides its input.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) args: RunArgs,
    pub(super) logs: PathBuf,
    pub(super) profiles: Option<PathBuf>,
    pub(super) around: Surroundings,
}

/// A run that is to follow.
type Prepared = Box<(RunRequest, Loaded)>;

enum Next {
    None,
    Reads(Receiver<Result<Prepared, Refusal>>),
    Drains(Prepared),
    Follows(Receiver<Result<Box<Run>, Refusal>>),
}

/// Whether the operator has asked for the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Asked,
}

/// The run under the console.
pub(super) struct Own {
    /// `None`: one follows, or could not.
    run: Option<Run>,
    next: Next,
    ending: Ending,
    /// The last picture and profile of a run that has ended.
    last: Option<(Snapshot, Arc<Profile>)>,
    /// Why the run that was to follow did not begin.
    failed: Option<String>,
    news: Vec<News>,
    places: Places,
}

/// What is said where no engine runs at this moment.
const BETWEEN: &str = "found one run ended and the next not begun, expected a running engine; wait a moment";

impl Own {
    pub(super) fn new(run: Run, places: Places) -> Own {
        Own { run: Some(run), next: Next::None, ending: Ending::No, last: None, failed: None, news: Vec::new(), places }
    }

    /// The run that is left when the console has gone; one that is beginning is waited for, and drained if that was asked.
    ///
    /// # Errors
    /// When there is none, in one sentence why.
    pub(super) fn last(mut self) -> Result<Run, String> {
        if let Next::Follows(begun) = std::mem::replace(&mut self.next, Next::None) {
            match begun.recv() {
                Ok(Ok(run)) => self.run = Some(*run),
                Ok(Err(refusal)) => self.fail(&refusal.to_string()),
                Err(_gone) => self.fail("its thread has gone"),
            }
            if let (Some(run), Ending::Asked) = (&self.run, self.ending) {
                run.engine.request_drain();
            }
        }
        let failed = self.failed.take();
        self.run.ok_or_else(|| failed.unwrap_or_else(|| BETWEEN.to_owned()))
    }

    /// The run that was to follow does not.
    fn fail(&mut self, why: &str) {
        let said =
            format!("the run on another input did not begin: {why}; the one before has ended, and kept its report");
        self.news.push(News::Refused(said.clone()));
        self.failed = Some(said);
    }

    fn engine(&self) -> Result<&Engine, String> {
        self.run.as_ref().map(|run| &run.engine).ok_or_else(|| BETWEEN.to_owned())
    }

    /// Begins to read another input.
    fn begin_input(&mut self, from: &str) -> Result<(), String> {
        let Some(run) = &self.run else { return Err(BETWEEN.to_owned()) };
        if !matches!(self.next, Next::None) || self.ending == Ending::Asked {
            return Err("found the engine draining, expected it to run; wait for its end".to_owned());
        }
        for (option, file) in [("--answers", &run.request.answers), ("--predictions", &run.request.predictions)] {
            if file.is_some() {
                return Err(format!(
                    "found {option}, whose file belongs to this run's input, expected a run without; end this one and start another"
                ));
            }
        }
        let name = run.engine.snapshot().engine.profile;
        let request = request(&self.places.args, &name, &run.engine.profile(), from);
        let request = request.map_err(|refusal| refusal.to_string())?;
        let (tell, told) = channel();
        let read = move || {
            let loaded = input::load(&request).map(|loaded| Box::new((request, loaded)));
            // A console that has gone needs no answer.
            let _ = tell.send(loaded);
        };
        spawn("input", read)?;
        self.next = Next::Reads(told);
        Ok(())
    }

    /// Goes on to the run that is to follow, if one is.
    fn step(&mut self) {
        match std::mem::replace(&mut self.next, Next::None) {
            Next::None => {}
            Next::Reads(told) => match told.try_recv() {
                Ok(Ok(prepared)) => self.drain_for(prepared),
                Ok(Err(refusal)) => self.news.push(News::Refused(refusal.to_string())),
                Err(TryRecvError::Empty) => self.next = Next::Reads(told),
                Err(TryRecvError::Disconnected) => self.news.push(News::Refused("the input was not read".to_owned())),
            },
            Next::Drains(prepared) => match self.run.take() {
                Some(run) if run.engine.is_finished() => self.follow(run, prepared),
                run => {
                    self.run = run;
                    self.next = Next::Drains(prepared);
                }
            },
            Next::Follows(begun) => match begun.try_recv() {
                Ok(Ok(run)) => {
                    if self.ending == Ending::Asked {
                        run.engine.request_drain();
                    }
                    self.news.push(News::Done(format!("shots come from {}", run.engine.snapshot().engine.input)));
                    self.run = Some(*run);
                }
                Ok(Err(refusal)) => self.fail(&refusal.to_string()),
                Err(TryRecvError::Empty) => self.next = Next::Follows(begun),
                Err(TryRecvError::Disconnected) => self.fail("its thread has gone"),
            },
        }
    }

    fn drain_for(&mut self, prepared: Prepared) {
        if let Some(run) = &self.run {
            run.engine.request_drain();
            self.news.push(News::Done("the input can be used; the engine drains before it takes it".to_owned()));
            self.next = Next::Drains(prepared);
        }
    }

    /// Ends `run`, whose engine has drained, and begins the one that follows.
    fn follow(&mut self, run: Run, prepared: Prepared) {
        self.last = Some((run.engine.snapshot(), run.engine.profile()));
        let places = self.places.clone();
        let (tell, told) = channel();
        let change = move || {
            // Its report is in its directory; the screen is the console's.
            run.end(None, None, Audience::Gone);
            let (request, loaded) = *prepared;
            let begun = Run::begin_on(request, loaded, &places.logs, places.profiles.as_deref(), &places.around);
            let _ = tell.send(begun.map(Box::new));
        };
        match spawn("succession", change) {
            Ok(()) => self.next = Next::Follows(told),
            Err(said) => self.fail(&said),
        }
    }
}

/// The run that follows: as this one was asked for, on its profile in force, with shots from elsewhere.
fn request(args: &RunArgs, name: &str, profile: &Profile, from: &str) -> Result<RunRequest, Refusal> {
    let (mut args, mut profile) = (args.clone(), profile.clone());
    let model = profile.input.source.model().to_owned();
    (args.shots, args.observables, args.input, args.rate) = (None, None, None, None);
    if !matches!(profile.input.source, Source::Sampler { .. }) {
        profile.input.source = Source::Sampler { model: model.clone(), seed: 1 };
    }
    match LivePlace::parse(from) {
        _ if from == "sampler" => {}
        Ok(place) => args.input = Some(place),
        Err(said) if ["udp:", "unix:", "shm:"].iter().any(|kind| from.starts_with(kind)) => {
            return Err(Refusal::Content { about: format!("input {from}"), said });
        }
        Err(_) if from == "-" => {
            let about = "input -";
            return Err(Refusal::unusable(about, "standard input, which is the keyboard", "a file", "name one"));
        }
        Err(_) => {
            args.shots = Some(Path::new(from).to_owned());
            args.dem = args.dem.or(Some(PathBuf::from(model)));
        }
    }
    RunRequest::settle(&args, name.to_owned(), profile, true)
}

#[expect(clippy::disallowed_methods, reason = "a cold thread; it inherits the console thread's cores")]
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let refused = |error| format!("found no room for a thread ({error}), expected one more; raise ulimit -u");
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop).map_err(refused)
}

impl Handle for Own {
    type Refusal = String;

    fn snapshot(&self) -> Option<Snapshot> {
        let ended = || self.last.as_ref().map(|(snapshot, _)| snapshot.clone());
        self.run.as_ref().map(|run| run.engine.snapshot()).or_else(ended)
    }

    fn apply(&mut self, name: &str, next: &Profile, lent: Option<Duration>, why: &str) -> Result<(), String> {
        let switched = self.engine()?.switch(name, next, lent, &Actor::this_process_for(why));
        switched.map(drop).map_err(|error| error.to_string())
    }

    fn profile(&self) -> Option<Arc<Profile>> {
        let ended = || self.last.as_ref().map(|(_, profile)| Arc::clone(profile));
        self.run.as_ref().map(|run| run.engine.profile()).or_else(ended)
    }

    fn request_drain(&mut self, why: &str) {
        self.ending = Ending::Asked;
        if matches!(self.next, Next::Reads(_) | Next::Drains(_)) {
            self.next = Next::None;
        }
        if let Some(run) = &self.run {
            run.engine.drain_by(&Actor::this_process_for(why));
        }
    }

    fn acknowledge(&self, number: u64) -> Result<(), String> {
        self.engine()?.acknowledge(number).map_err(|error| error.to_string())
    }

    fn snooze(&self, number: u64, span: Duration) -> Result<(), String> {
        self.engine()?.snooze(number, span).map_err(|error| error.to_string())
    }

    fn hold(&self, hold: Hold, why: &str) -> Result<(), String> {
        let by = Actor::this_process_for(why);
        let engine = self.engine()?;
        let done = if hold == Hold::Hold { engine.pause(&by) } else { engine.resume(&by) };
        done.map_err(|error: ApplyError| error.to_string())
    }

    fn set_rate(&self, rate: Rate, why: &str) -> Result<(), String> {
        self.engine()?.set_rate(rate, &Actor::this_process_for(why)).map(drop).map_err(|error| error.to_string())
    }

    fn act(&mut self, deed: &Deed, why: &str) -> Result<(), String> {
        let by = Actor::this_process_for(why);
        match deed {
            Deed::Silo { silo, deed } => {
                self.engine()?.act_on_silo(*silo, *deed, &by).map_err(|refused| refused.to_string())
            }
            Deed::Move { stream, to } => {
                self.engine()?.move_stream_by(*stream, *to, &by).map_err(|refused| refused.to_string())
            }
            Deed::Drill(drill) => {
                self.engine()?.drill(*drill, None, &by).map(drop).map_err(|refused| refused.to_string())
            }
            Deed::Input(from) => {
                self.begin_input(from)?;
                // The run that ends for it keeps who wanted that, and why.
                self.engine()?.note_action(&by, &format!("input {from} asked for by {}", by.words()));
                Ok(())
            }
        }
    }

    fn news(&mut self) -> Vec<News> {
        self.step();
        std::mem::take(&mut self.news)
    }

    fn is_finished(&self) -> bool {
        match (&self.next, &self.run) {
            (Next::Drains(_) | Next::Follows(_), _) => false,
            (_, Some(run)) => run.engine.is_finished(),
            (_, None) => true,
        }
    }

    fn look_back(&self) -> Option<&LookBack> {
        self.run.as_ref()?.engine.look_back()
    }

    fn note(&self, text: &str) -> Result<(), String> {
        self.engine()?.note(text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::request;
    use crate::cli::args::RunArgs;
    use crate::cli::request::{ModelSource, ShotSource};
    use pinwheel_engine::profile::{Profile, Silos};
    use std::path::PathBuf;

    #[test]
    fn another_input_keeps_the_model_and_what_else_was_asked_for() {
        let (lab, _) = Profile::load("lab", None).unwrap();
        let args = RunArgs { silos: Some(Silos::Count(2)), shots: Some(PathBuf::from("old")), ..RunArgs::default() };
        let of = |from: &str| request(&args, "lab", &lab, from).unwrap();
        let file = of("new.b8");
        assert_eq!(file.shots, ShotSource::File { shots: PathBuf::from("new.b8"), observables: None });
        assert_eq!(
            (file.model, file.profile.silos),
            (ModelSource::Option(PathBuf::from("surface_d5")), Silos::Count(2))
        );
        assert!(matches!(of("sampler").shots, ShotSource::Sampler { .. }));
        let live = of("udp:127.0.0.1:7000");
        assert!(matches!(live.shots, ShotSource::Live(_)) && live.profile.input.source.model() == "surface_d5");
        // Back from there the sampler draws of the same model.
        let back = request(&args, "lab", &live.profile, "sampler").unwrap();
        assert!(matches!(back.shots, ShotSource::Sampler { .. }));
        for from in ["udp:nowhere", "-"] {
            let said = request(&args, "lab", &lab, from).unwrap_err().to_string();
            assert!(said.contains(&format!("input {from}")) && !said.contains('\n'), "{said}");
        }
    }
}
