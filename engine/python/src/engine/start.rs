//! The start of an engine in this process, from a profile and what the caller wants otherwise.
//!
//! The engine starts on a thread of its own, because a start binds its thread to the cold cores. Bounded by the limits
//! of a start.

use super::{Whole, runtime_error, value_error};
use pinwheel_engine::board;
use pinwheel_engine::code::Model;
use pinwheel_engine::engine::{Config, Input, LivePlace, prepared_for_drills};
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::profile::{Decoder, Profile, Silos, Source};
use pinwheel_engine::stall::stack::Sampler;
use pinwheel_report::model_file::{self, Precedence};
use pinwheel_report::recorded::{About, RecordedRun, host_key, state_directory};
use pinwheel_report::unusable::Unusable;
use pyo3::PyResult;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of engines that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// What the caller wants. `None`: as the profile has it.
pub(super) struct Settings {
    pub(super) profile: String,
    pub(super) profiles: Option<PathBuf>,
    pub(super) model_text: Option<Vec<u8>>,
    pub(super) model_path: Option<PathBuf>,
    pub(super) logs: Option<PathBuf>,
    pub(super) label: String,
    pub(super) streams: Option<Whole>,
    pub(super) decoder: Option<String>,
    pub(super) silos: Option<Whole>,
}

impl Settings {
    /// Starts the engine with a region of its own as its input.
    pub(super) fn start(self) -> PyResult<RecordedRun> {
        // Signal handlers belong to Python and to the caller's program.
        Sampler::forbid();
        for (name, directory) in [("logs", &self.logs), ("profiles", &self.profiles)] {
            if directory.as_ref().is_some_and(|directory| directory.as_os_str().is_empty()) {
                let remedy = "name one (\".\" is the working directory), or leave it out";
                return Err(value_error(Unusable::new(name, "an empty name", "a directory", remedy)));
            }
        }
        let (mut profile, name) = self.profile()?;
        let (model, model_name) = self.model(profile.input.source.model())?;
        let state = state();
        let logs = self.logs.or_else(|| state.clone()).ok_or_else(|| {
            let found = "neither $XDG_STATE_HOME nor $HOME set";
            value_error(Unusable::new("logs directory", found, "one of them", "name a directory with logs=DIR"))
        })?;
        // Relaxed: a counter that stands alone.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let region = format!("python-{}-{number}", std::process::id());
        profile.input.source = Source::Shm { name: region.clone(), group: None, model: model_name };
        let place = LivePlace::Shm { name: region, group: None };
        let config = Config {
            profile_name: name,
            drill_command: prepared_for_drills(&profile),
            bridge: None,
            boards: board::directory(),
            takes_inputs: false,
            profile,
            label: self.label,
            input: Input::Live { model: Arc::new(model), place, measurements: None },
            count: None,
            duration: None,
            sink: None,
            events: None,
            run_dir: None,
            profiles: self.profiles,
            environment: None,
            notes: Vec::new(),
        };
        let about = About { seed: None, keep: false };
        let begin = move || {
            let host = HostFacts::read().map_err(runtime_error)?;
            RecordedRun::begin(host, &logs, state.as_deref().map(host_key), about, config).map_err(runtime_error)
        };
        #[expect(clippy::disallowed_methods, reason = "a start binds its thread to cores; the caller's keeps its own")]
        let started = std::thread::Builder::new().name("pinwheel-start".to_owned()).spawn(begin);
        let started = started.map_err(|error| {
            let found = format!("no thread could be started ({error})");
            runtime_error(Unusable::new("engine", found, "one more thread", "raise the process limit (ulimit -u)"))
        })?;
        started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The profile with the caller's changes, and its name.
    fn profile(&self) -> PyResult<(Profile, String)> {
        let (mut profile, origin) = Profile::load(&self.profile, self.profiles.as_deref()).map_err(value_error)?;
        if let Some(streams) = &self.streams {
            profile.input.streams = in_profile(streams.number);
        }
        if let Some(silos) = &self.silos {
            profile.silos = Silos::Count(in_profile(silos.number));
        }
        if let Some(text) = &self.decoder {
            profile.decoder = Decoder::from_text(text).ok_or_else(|| {
                let expected = "matching, correlated, union-find, lookup or plugin:PATH";
                value_error(format!("found decoder {text:?}, expected {expected}"))
            })?;
        }
        if let Some(error) = profile.validate().into_iter().next() {
            let (about, found) = match (error.field.as_str(), &self.streams, &self.silos) {
                ("input.streams", Some(streams), _) => ("streams".to_owned(), streams.text.clone()),
                ("silos", _, Some(silos)) => ("silos".to_owned(), silos.text.clone()),
                ("decoder", ..) if self.decoder.is_some() => ("decoder".to_owned(), error.found),
                (field, ..) => (format!("profile {} with these settings, {field}", self.profile), error.found),
            };
            return Err(value_error(Unusable::new(about, found, error.expected, error.remedy)));
        }
        Ok((profile, origin.name()))
    }

    /// The model, and its name for people. `of_profile`: the model of the profile.
    fn model(&self, of_profile: &str) -> PyResult<(Model, String)> {
        let model = match (&self.model_text, &self.model_path) {
            (Some(text), _) => model_file::parse("model", text).map(|model| (model, "a text of Python".to_owned())),
            (None, Some(path)) => model_file::read(&format!("model {}", path.display()), path, Precedence::File),
            (None, None) => {
                let about = format!("model {of_profile} of the profile");
                model_file::read(&about, Path::new(of_profile), Precedence::Bundled)
            }
        };
        model.map_err(value_error)
    }
}

/// A number as a profile has it, which has its bounds: one that it cannot have is outside them there, too.
fn in_profile(wanted: i64) -> u32 {
    u32::try_from(wanted.max(0)).unwrap_or(u32::MAX)
}

/// The user's state directory.
pub(crate) fn state() -> Option<PathBuf> {
    let [state, home] = ["XDG_STATE_HOME", "HOME"].map(|name| std::env::var_os(name).map(PathBuf::from));
    state_directory(state.as_deref(), home.as_deref())
}
