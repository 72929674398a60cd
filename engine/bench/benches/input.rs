//! Models and shots of the cases, loaded before the measurement.

use pinwheel_engine::code::{Format, Layout, Model, Sampler, ShotSet, ShotWriter, bundled_named};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model with shots and, if known, their observables.
#[derive(Clone)]
pub struct Input {
    /// Short name: `d5`, `d9`.
    pub name: &'static str,
    pub model: Arc<Model>,
    /// Detection events.
    pub shots: Arc<ShotSet>,
    /// The expected answers; each case defines their meaning.
    pub truth: Option<Arc<ShotSet>>,
}

pub(super) fn set(shots: impl Iterator<Item = Vec<u64>>, layout: Layout) -> Arc<ShotSet> {
    let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
    for shot in shots {
        writer.write_shot(&shot).unwrap();
    }
    Arc::new(ShotSet::read(writer.finish().unwrap().as_slice(), Format::B8, layout).unwrap())
}

/// Detection events of `count` shots drawn from `model`.
pub fn drawn(model: &Model, seed: u64, count: u64) -> Vec<Vec<u64>> {
    let mut sampler = Sampler::new(model, seed);
    let mut flips = vec![0; model.observable_words()];
    let draw = |_| {
        let mut shot = vec![0; model.detector_words()];
        sampler.draw(&mut shot, &mut flips);
        shot
    };
    (0..count).map(draw).collect()
}

/// Shots drawn from the bundled d=5 model, with the parity of the detectors as the only observable:
/// it needs no decoder and still detects a wrong answer.
pub fn parity(count: u64) -> Input {
    let model = Arc::new(bundled_named("surface_d5").unwrap());
    let shots = set(drawn(&model, 7, count).into_iter(), Layout::detectors(model.detectors));
    let truth = set(shots.iter().map(|shot| vec![parity_of(shot)]), Layout::observables(model.observables));
    Input { name: "d5", model, shots, truth: Some(truth) }
}

/// Parity of a packed shot's set bits.
pub fn parity_of(shot: &[u64]) -> u64 {
    u64::from(shot.iter().fold(0, |word, next| word ^ next).count_ones() % 2)
}

/// Shots of the d=5 set that every checkout has and, if the larger sets lie beside it or in
/// `PINWHEEL_BENCH_DATA`, of the d=9 set; repeated to at least `counts` (of d=5, of d=9).
pub fn surfaces(counts: [u64; 2]) -> Vec<Input> {
    let wanted = [("d5", 5, counts[0]), ("d9", 9, counts[1])];
    wanted.into_iter().filter_map(|(name, distance, count)| surface(name, distance, "0.005", count)).collect()
}

/// All surface codes with shots: the two that every checkout has, and those beside it; repeated to
/// at least `count` shots.
pub fn all_surfaces(count: u64) -> Vec<Input> {
    let mut found = Vec::new();
    for distance in [3, 5, 7, 9, 13] {
        for p in ["0.001", "0.005"] {
            found.extend(surface(format!("d{distance}-p{p}").leak(), distance, p, count));
        }
    }
    found
}

/// A surface code whose shots every checkout has, or that lies beside it.
fn surface(name: &'static str, distance: u32, p: &str, count: u64) -> Option<Input> {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let beside = || engine.join("../../shared/data");
    let data = std::env::var_os("PINWHEEL_BENCH_DATA").map_or_else(beside, PathBuf::from);
    let file = format!("surf_z_d{distance}_r{distance}_p{p}.dem");
    let dem =
        [engine.join("code/src/code/data"), data].map(|place| place.join(&file)).into_iter().find(|dem| dem.exists());
    dem.map(|dem| load(name, &dem, count))
}

fn load(name: &'static str, dem: &Path, count: u64) -> Input {
    let model = Arc::new(Model::parse(&std::fs::read(dem).unwrap()).unwrap());
    let layout = Layout::detectors(model.detectors);
    let bytes = std::fs::read(dem.with_extension("dets.b8")).unwrap();
    let laps = (count as usize).div_ceil(bytes.len() / model.detectors.div_ceil(8) as usize).max(1);
    let shots = Arc::new(ShotSet::read(bytes.repeat(laps).as_slice(), Format::B8, layout).unwrap());
    Input { name, model, shots, truth: None }
}
