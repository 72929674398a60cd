//! Golden sets for tests: models, shots, and the predictions of `PyMatching` 2.4.0.
//!
//! Included by the tests of three crates. Two sets are in `src/code/data`. If the directory
//! `../shared/data` exists beside the checkout, its sets are read too. Files of a set: `.dem`,
//! `.dets.b8`, `.obs.b8` (true flips), `.pm.b8` (predictions), `.pm_weight.f32le`.

use std::path::{Path, PathBuf};

use crate::code::{Format, Layout, Model, ShotSet};

/// One golden set.
pub(crate) struct Golden {
    /// The name of its files.
    pub(crate) name: String,
    /// The error model.
    pub(crate) model: Model,
    /// Detection events of each shot.
    pub(crate) detections: ShotSet,
    /// True observable flips.
    pub(crate) observables: ShotSet,
    /// `PyMatching`'s predictions.
    pub(crate) predictions: ShotSet,
    /// Weight of `PyMatching`'s solution of each shot.
    pub(crate) weights: Vec<f32>,
}

/// The directory of the sets that every checkout has.
pub(crate) fn committed_directory() -> PathBuf {
    // Of this crate, of the one that lies around it, or of one beside it.
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["src/code/data", "code/src/code/data", "../code/src/code/data"].map(|place| crates.join(place));
    places.into_iter().find(|place| place.is_dir()).unwrap()
}

/// A committed set by its name in the directory.
pub(crate) fn committed(name: &str) -> Golden {
    load(&committed_directory().join(format!("{name}.dem")))
}

/// The committed sets, then the shared ones if there are any.
pub(crate) fn all() -> Vec<Golden> {
    let shared = committed_directory().join("../../../../../../shared/data");
    let mut sets: Vec<Golden> = Vec::new();
    for directory in [committed_directory(), shared] {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        let mut models: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        models.retain(|path| path.extension().is_some_and(|extension| extension == "dem"));
        models.sort();
        let known: Vec<String> = sets.iter().map(|set| set.name.clone()).collect();
        let fresh = models.iter().map(|path| load(path)).filter(|set| !known.contains(&set.name));
        sets.extend(fresh);
    }
    assert!(sets.len() >= 2, "the committed sets are here");
    sets
}

/// `PyMatching`'s predictions with `enable_correlations`, of a committed set.
pub(crate) fn correlated(set: &Golden) -> ShotSet {
    let file = committed_directory().join(format!("{}.pm_correlated.b8", set.name));
    let predictions =
        ShotSet::read(&std::fs::read(file).unwrap()[..], Format::B8, Layout::observables(set.model.observables));
    let predictions = predictions.unwrap();
    predictions.check_len(set.detections.len()).unwrap();
    predictions
}

fn load(dem: &Path) -> Golden {
    let read = |extension: &str| std::fs::read(dem.with_extension(extension)).unwrap();
    let shots = |extension, layout| ShotSet::read(&read(extension)[..], Format::B8, layout).unwrap();
    let model = Model::parse(&read("dem")).unwrap();
    let observables = Layout::observables(model.observables);
    let weights = read("pm_weight.f32le");
    let set = Golden {
        name: dem.file_stem().unwrap().to_string_lossy().into_owned(),
        detections: shots("dets.b8", Layout::detectors(model.detectors)),
        observables: shots("obs.b8", observables),
        predictions: shots("pm.b8", observables),
        weights: weights.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect(),
        model,
    };
    let shots = set.detections.len();
    assert!(shots > 0 && set.weights.len() == shots, "{}", set.name);
    set.observables.check_len(shots).unwrap();
    set.predictions.check_len(shots).unwrap();
    set
}
