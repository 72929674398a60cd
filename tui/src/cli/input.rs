//! Loads the model and the shots, and checks that they match.
//!
//! Runs before anything is started or created, so that a bad file leaves nothing behind. Bounded by
//! the limits of [`mod@model_file`] and of the engine's `code` module. The engine reads standard input
//! later; this module only wraps it.

use super::measurements;
use super::refusal::Refusal;
use super::request::{ModelSource, RunRequest, ShotSource};
use super::shots::{BUFFER_BYTES, read_set, read_truth, require_shots};
use super::soft;
use pinwheel_engine::code::{Format, Layout, Model, ShotReader};
use pinwheel_engine::engine::Input;
use pinwheel_report::model_file::{self, Precedence, file_name};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// A run's input, and the number of observables of its model.
pub struct Loaded {
    pub input: Input,
    pub observables: u32,
}

/// Loads the input that the request names.
///
/// # Errors
/// One sentence about a file that is missing, malformed, or does not match another.
pub fn load(request: &RunRequest) -> Result<Loaded, Refusal> {
    let (model, model_name) = match &request.decoders {
        Some(decoders) => (decoders.model.clone(), request.profile.input.source.model().to_owned()),
        None => load_model(&request.model)?,
    };
    let observables = model.observables;
    let model = match &request.soft_map {
        Some(path) => soft::with_map(model, path)?,
        None => model,
    };
    let model = Arc::new(model);
    let map = match &request.decoders {
        Some(decoders) => Some(decoders.map.clone()),
        None => request.m2d.as_deref().map(|path| measurements::load(path, &model)).transpose()?,
    };
    let mut input = match (&request.shots, map) {
        (ShotSource::Sampler { seed }, _) => Input::Sampler { model, name: model_name, seed: *seed },
        (ShotSource::File { shots, observables }, None) => {
            replay(model, shots, observables.as_deref(), request.format)?
        }
        (ShotSource::File { shots, observables }, Some(map)) => {
            measurements::replay(model, &map, shots, observables.as_deref(), request.format)?
        }
        (ShotSource::Stdin, None) => stdin(model, request.format),
        (ShotSource::Stdin, Some(map)) => measurements::stdin(model, map, request.format),
        (ShotSource::Live(place), map) => Input::Live { model, place: place.clone(), measurements: map.map(Arc::new) },
    };
    if let Input::Replay { model, shots, .. } = &mut input
        && model.soft.is_some()
    {
        *shots = Arc::new(soft::with_bytes(shots, model, request.soft.as_deref(), request.format)?);
    }
    Ok(Loaded { input, observables })
}

/// The model of `--dem F`, which is a file or a bundled name; returns the model and its name.
pub fn model_file(path: &Path) -> Result<(Model, String), Refusal> {
    load_model(&ModelSource::Option(path.to_owned()))
}

fn load_model(source: &ModelSource) -> Result<(Model, String), Refusal> {
    Ok(match source {
        ModelSource::Option(path) => model_file::read(&format!("--dem {}", path.display()), path, Precedence::File)?,
        ModelSource::Profile(name) => {
            model_file::read(&format!("model {name} of the profile"), Path::new(name), Precedence::Bundled)?
        }
    })
}

fn replay(model: Arc<Model>, shots: &Path, observables: Option<&Path>, format: Format) -> Result<Input, Refusal> {
    let about = format!("--shots {}", shots.display());
    let set = read_set(&about, shots, format, Layout::detectors(model.detectors))?;
    require_shots(&about, &set)?;
    let truth = observables.map(|path| read_truth(path, &model, set.len(), format)).transpose()?;
    Ok(Input::Replay { model, name: file_name(shots), shots: Arc::new(set), observables: truth })
}

fn stdin(model: Arc<Model>, format: Format) -> Input {
    let input = BufReader::with_capacity(BUFFER_BYTES, std::io::stdin());
    let mut reader = ShotReader::new(input, format, Layout::detectors(model.detectors));
    let read = move |shot: &mut [u64]| reader.read_shot(shot).map_err(|error| format!("--shots -: {error}"));
    Input::Stream { model, name: "standard input".to_owned(), reader: Box::new(read) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Loaded, load};
    use crate::cli::request::{ModelSource, RunRequest};
    use crate::cli::run::args::RunArgs;
    use pinwheel_engine::code::Format;
    use pinwheel_engine::engine::Input;
    use pinwheel_engine::profile::Profile;
    use std::fs;
    use std::path::Path;

    const MODEL: &str = "error(0.1) D0 D1 L0\nerror(0.1) D1 D9\n";

    fn request(dir: &Path, shots: Option<&[u8]>, observables: Option<&[u8]>, model: &str) -> RunRequest {
        let put = |name: &str, content: &[u8]| {
            fs::write(dir.join(name), content).unwrap();
            dir.join(name)
        };
        let args = RunArgs {
            dem: Some(put("m.dem", model.as_bytes())),
            shots: shots.map(|content| put("s", content)),
            observables: observables.map(|content| put("o", content)),
            ..RunArgs::default()
        };
        let (profile, _) = Profile::load("lab", None).unwrap();
        RunRequest::resolve(&args, "lab".to_owned(), profile, false).unwrap()
    }

    fn refused(shots: &[u8], observables: Option<&[u8]>, model: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let Err(refusal) = load(&request(dir.path(), Some(shots), observables, model)) else { panic!("taken") };
        refusal.to_string()
    }

    #[test]
    fn files_that_belong_together_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = load(&request(dir.path(), Some(&[3, 0, 2, 2]), Some(&[1, 0]), MODEL)).unwrap();
        let Input::Replay { shots, observables, name, .. } = loaded.input else { panic!("no replay") };
        assert_eq!((shots.len(), observables.unwrap().len(), name.as_str(), loaded.observables), (2, 2, "s", 1));
    }

    #[test]
    fn files_that_do_not_are_refused_in_one_sentence() {
        for (shots, observables, model, part) in [
            (&[3u8, 0, 2][..], None, MODEL, "--shots"),
            (&[3, 0xf0], None, MODEL, "padding"),
            (&[], None, MODEL, "no shots"),
            (&[3, 0, 2, 2], Some(&[1u8][..]), MODEL, "--observables"),
            (&[3, 0, 2, 2], Some(&[1, 0, 1]), MODEL, "found 3 shots, expected 2"),
            (&[3, 0], Some(&[2]), MODEL, "--observables"),
            (&[3, 0], None, "error(2) D0", "--dem"),
            (&[3, 0], None, "", "no detectors"),
            (&[3, 0], None, "error(0.1) D0 L2000", "2001 observables"),
        ] {
            let said = refused(shots, observables, model);
            assert!(said.contains(part) && said.contains("expected") && !said.contains('\n'), "{part}: {said}");
        }
    }

    #[test]
    fn the_wrong_format_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for format in [Format::Text01, Format::Dets] {
            let request = RunRequest { format, ..request(dir.path(), Some(&[3, 0, 2, 2]), None, MODEL) };
            assert!(load(&request).is_err(), "{format:?}");
        }
    }

    #[test]
    fn a_missing_file_is_refused_by_its_option() {
        let dir = tempfile::tempdir().unwrap();
        let resolved = request(dir.path(), Some(&[3, 0]), Some(&[1]), MODEL);
        for (file, option) in [("o", "--observables "), ("s", "--shots "), ("m.dem", "--dem ")] {
            fs::remove_file(dir.path().join(file)).unwrap();
            let Err(refusal) = load(&resolved) else { panic!("taken") };
            assert!(refusal.to_string().starts_with(option), "{refusal}");
        }
    }

    #[test]
    fn dem_takes_a_bundled_name_or_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let mut resolved = request(dir.path(), None, None, MODEL);
        let detectors = |resolved: &RunRequest| load(resolved).unwrap().input.model().detectors;
        resolved.model = ModelSource::Option("surface_d3@r30".into());
        assert_eq!(detectors(&resolved), 240);
        let file = dir.path().join("surface_d3");
        fs::write(&file, MODEL).unwrap();
        resolved.model = ModelSource::Option(file);
        assert_eq!(detectors(&resolved), 10);
    }

    #[test]
    fn the_profiles_own_model_is_found_or_named() {
        let (mut profile, _) = Profile::load("lab", None).unwrap();
        let resolve = |profile: &Profile| {
            RunRequest::resolve(&RunArgs::default(), "lab".to_owned(), profile.clone(), false).unwrap()
        };
        assert!(matches!(load(&resolve(&profile)).unwrap().input, Input::Sampler { .. }));
        let mut with = |name: &str| {
            *profile.input.source.model_mut() = name.to_owned();
            load(&resolve(&profile)).map_err(|refusal| refusal.to_string())
        };
        let Ok(Loaded { input: Input::Sampler { model, name, .. }, .. }) = with("surface_d3@r30") else {
            panic!("refused")
        };
        assert_eq!((model.detectors, name.as_str()), (240, "surface_d3@r30"));
        for (name, part) in [("no-such", "surface_d5@r50"), ("surface_d5@r4", "found 4 rounds, expected 5..=10000")] {
            let Err(said) = with(name) else { panic!("taken") };
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
    }
}
