//! Brings the model and the shots into memory, and checks that they belong together.
//!
//! Runs before anything is started or made, so that a bad file leaves nothing behind. Bounded by [`DEM_BYTES_MAX`] and
//! the limits of the engine's `code` module. Standard input is not read here: it is wrapped for the engine.

use super::measured;
use super::refusal::Refusal;
use super::request::{ModelSource, RunRequest, ShotSource};
use pinwheel_engine::code::{
    Format, Layout, Model, NameError, SET_WORDS_MAX, ShotReader, ShotSet, bundled_named, bundled_names,
};
use pinwheel_engine::engine::Input;
use pinwheel_engine::files;
use pinwheel_engine::record::OBSERVABLE_WORDS_MAX;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Largest model read.
const DEM_BYTES_MAX: u64 = 1 << 28;
/// Most bytes of a text that a bit takes: " D1048575".
const TEXT_BYTES_PER_BIT: u64 = 9;
/// Bytes read from a file of shots at a time.
pub const BUFFER_BYTES: usize = 1 << 16;

/// A run's input, and the observables of its model.
pub struct Loaded {
    pub input: Input,
    pub observables: u32,
}

/// Loads what the request names.
///
/// # Errors
/// One sentence about a file that is missing, not what it should be, or does not go with another.
pub fn load(request: &RunRequest) -> Result<Loaded, Refusal> {
    let (model, model_name) = load_model(&request.model)?;
    let observables = model.observables;
    let model = Arc::new(model);
    let map = request.m2d.as_deref().map(|path| measured::load(path, &model)).transpose()?;
    let input = match (&request.shots, map) {
        (ShotSource::Sampler { seed }, _) => Input::Sampler { model, name: model_name, seed: *seed },
        (ShotSource::File { shots, observables }, None) => {
            replay(model, shots, observables.as_deref(), request.format)?
        }
        (ShotSource::File { shots, observables }, Some(map)) => {
            measured::replay(model, &map, shots, observables.as_deref(), request.format)?
        }
        (ShotSource::Stdin, None) => stdin(model, request.format),
        (ShotSource::Stdin, Some(map)) => measured::stdin(model, map, request.format),
        (ShotSource::Live(place), map) => Input::Live { model, place: place.clone(), measurements: map.map(Arc::new) },
    };
    Ok(Loaded { input, observables })
}

/// A model by `--dem F`: a file, or a bundled one by name; and its name.
pub fn model_file(path: &Path) -> Result<(Model, String), Refusal> {
    load_model(&ModelSource::Option(path.to_owned()))
}

fn load_model(source: &ModelSource) -> Result<(Model, String), Refusal> {
    let (about, path) = match source {
        ModelSource::Option(path) => (format!("--dem {}", path.display()), path.as_path()),
        ModelSource::Profile(name) => (format!("model {name} of the profile"), Path::new(name)),
    };
    // A file that is named like a bundled model is meant where a file is asked for.
    let is_file = matches!(source, ModelSource::Option(_)) && path.exists();
    if let Some(name) = path.to_str().filter(|_| !is_file) {
        match bundled_named(name) {
            Ok(model) => return Ok((model, name.to_owned())),
            Err(NameError::Unknown(_)) => {}
            Err(error) => return Err(Refusal::Content { about, said: error.to_string() }),
        }
    }
    let text = files::read_named(path, DEM_BYTES_MAX).map_err(|error| {
        let bundled: Vec<&str> = bundled_names().collect();
        let names = format!("{}, or one of these with its rounds: {}@r50", bundled.join(", "), bundled[0]);
        let expected = format!("a readable detector error model, one of {names}");
        Refusal::unusable(&about, error.to_string(), expected, "check the path and its permissions")
    })?;
    let model =
        Model::parse(&text).map_err(|error| Refusal::Content { about: about.clone(), said: error.to_string() })?;
    let widest = u32::try_from(OBSERVABLE_WORDS_MAX * 64).unwrap_or(u32::MAX);
    if model.detectors == 0 {
        return Err(Refusal::unusable(
            about,
            "no detectors",
            "a model with at least one",
            "check that the file is whole",
        ));
    }
    if model.observables > widest {
        let found = format!("{} observables", model.observables);
        return Err(Refusal::unusable(about, found, format!("at most {widest}"), "split the model"));
    }
    Ok((model, file_name(path)))
}

fn replay(model: Arc<Model>, shots: &Path, observables: Option<&Path>, format: Format) -> Result<Input, Refusal> {
    let about = format!("--shots {}", shots.display());
    let set = read_set(&about, shots, format, Layout::detectors(model.detectors))?;
    if set.is_empty() {
        return Err(Refusal::unusable(about, "no shots", "at least one", "check that the file is whole"));
    }
    let truth = observables.map(|path| read_truth(path, &model, set.len(), format)).transpose()?;
    Ok(Input::Replay { model, name: file_name(shots), shots: Arc::new(set), observables: truth })
}

/// True observables of so many shots.
pub fn read_truth(path: &Path, model: &Model, shots: usize, format: Format) -> Result<Arc<ShotSet>, Refusal> {
    let about = format!("--observables {}", path.display());
    let truth = read_set(&about, path, format, Layout::observables(model.observables))?;
    truth.check_len(shots).map_err(|error| Refusal::Content { about, said: error.to_string() })?;
    Ok(Arc::new(truth))
}

/// A file of shots.
pub fn read_set(about: &str, path: &Path, format: Format, layout: Layout) -> Result<ShotSet, Refusal> {
    let (shots_max, bits) = ((SET_WORDS_MAX / layout.words().max(1)) as u64, u64::from(layout.bits()));
    let bytes_max = match format {
        Format::B8 => shots_max * bits.div_ceil(8),
        // A shot with all its bits set is a line of "shot" and the longest names.
        Format::Text01 | Format::Dets => shots_max * (bits + 1) * TEXT_BYTES_PER_BIT,
    };
    let file = open_shots(about, path, "a readable file of shots", bytes_max)?;
    ShotSet::read(BufReader::with_capacity(BUFFER_BYTES, file), format, layout)
        .map_err(|error| Refusal::Content { about: about.to_owned(), said: error.to_string() })
}

/// Opens a file of shots. One whose length alone says that it holds more than memory takes is not read first.
pub fn open_shots(about: &str, path: &Path, expected: &str, bytes_max: u64) -> Result<File, Refusal> {
    let refused = |found: String, remedy: &str| Refusal::unusable(about, found, expected, remedy);
    let unreadable = |error: std::io::Error| refused(error.to_string(), "check the path and its permissions");
    let file = files::open_named(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() > bytes_max {
        let found = format!("more than {bytes_max} bytes");
        return Err(refused(found, "send it to standard input, which is read shot by shot: --shots -"));
    }
    Ok(file)
}

fn stdin(model: Arc<Model>, format: Format) -> Input {
    let input = BufReader::with_capacity(BUFFER_BYTES, std::io::stdin());
    let mut reader = ShotReader::new(input, format, Layout::detectors(model.detectors));
    let read = move |shot: &mut [u64]| reader.read_shot(shot).map_err(|error| format!("--shots -: {error}"));
    Input::Stream { model, name: "standard input".to_owned(), reader: Box::new(read) }
}

pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Loaded, load};
    use crate::cli::args::RunArgs;
    use crate::cli::request::{ModelSource, RunRequest};
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
        RunRequest::settle(&args, "lab".to_owned(), profile, false).unwrap()
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
        let settled = request(dir.path(), Some(&[3, 0]), Some(&[1]), MODEL);
        for (file, option) in [("o", "--observables "), ("s", "--shots "), ("m.dem", "--dem ")] {
            fs::remove_file(dir.path().join(file)).unwrap();
            let Err(refusal) = load(&settled) else { panic!("taken") };
            assert!(refusal.to_string().starts_with(option), "{refusal}");
        }
    }

    #[test]
    fn dem_takes_a_bundled_name_or_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let mut settled = request(dir.path(), None, None, MODEL);
        let detectors = |settled: &RunRequest| load(settled).unwrap().input.model().detectors;
        settled.model = ModelSource::Option("surface_d3@r30".into());
        assert_eq!(detectors(&settled), 240);
        let file = dir.path().join("surface_d3");
        fs::write(&file, MODEL).unwrap();
        settled.model = ModelSource::Option(file);
        assert_eq!(detectors(&settled), 10);
    }

    #[test]
    fn the_profiles_own_model_is_found_or_named() {
        let (mut profile, _) = Profile::load("lab", None).unwrap();
        let settle = |profile: &Profile| {
            RunRequest::settle(&RunArgs::default(), "lab".to_owned(), profile.clone(), false).unwrap()
        };
        assert!(matches!(load(&settle(&profile)).unwrap().input, Input::Sampler { .. }));
        let mut with = |name: &str| {
            *profile.input.source.model_mut() = name.to_owned();
            load(&settle(&profile)).map_err(|refusal| refusal.to_string())
        };
        let Ok(Loaded { input: Input::Sampler { model, name, .. }, .. }) = with("surface_d3@r30") else {
            panic!("refused")
        };
        assert_eq!((model.detectors, name.as_str()), (240, "surface_d3@r30"));
        for (name, part) in [("no-such", "surface_d5@r50"), ("surface_d5@r4", "found 4 rounds, expected 5..=1000")] {
            let Err(said) = with(name) else { panic!("taken") };
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
    }
}
