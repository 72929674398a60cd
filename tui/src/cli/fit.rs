//! `pinwheel fit`: writes a model refitted to the shots of a run or of a file.
//!
//! Runs on the main thread. Reads what a run with `--watch-drift` counted, or a file of shots, of which it holds one
//! at a time. The output appears only when it is complete.

use super::distinct_files::require_distinct;
use super::input::model_file;
use super::places::UserPaths;
use super::refusal::Refusal;
use super::runs;
use super::say::{Print, counted};
use super::shots::{BUFFER_BYTES, open_shots};
use super::trace::whole;
use clap::Args as ClapArgs;
use pinwheel_engine::code::fit::{Fit, fitted};
use pinwheel_engine::code::pairs::{PairCounts, Pairs};
use pinwheel_engine::code::{Format, Layout, Model, ShotReader};
use pinwheel_engine::engine::{DEM_BYTES_MAX, DETECTIONS, StreamDetections};
use pinwheel_engine::files;
use pinwheel_engine::record::Output;
use serde::Serialize;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Largest file of counts.
const COUNTS_BYTES_MAX: u64 = 1 << 30;
/// Changes that are printed.
const SHOWN: usize = 10;

#[derive(Debug, ClapArgs)]
pub struct FitArgs {
    /// A run that was started with --watch-drift, also one that goes on: its directory, its name, or last;
    /// with --dem, a file of shots
    #[arg(value_name = "RUN|SHOTS")]
    pub from: String,
    /// Write the refitted model here
    #[arg(short, long, value_name = "F")]
    pub output: PathBuf,
    /// The model of the file of shots: Stim's .dem, or a bundled one by name
    #[arg(long, value_name = "F")]
    pub dem: Option<PathBuf>,
    /// Format of the file of shots: b8, 01 or dets [default: b8]
    #[arg(long, value_name = "b8|01|dets", requires = "dem")]
    pub format: Option<Format>,
    /// Only this stream of the run; otherwise all together
    #[arg(long, value_name = "N", conflicts_with = "dem")]
    pub stream: Option<u32>,
    /// Directory of runs [default: the checkout's logs, else $XDG_STATE_HOME/pinwheel]
    #[arg(long, value_name = "DIR", conflicts_with = "dem")]
    pub logs: Option<PathBuf>,
    #[command(flatten)]
    pub print: Print,
}

#[derive(Debug, Serialize)]
struct Fitted {
    shots: u64,
    mechanisms: usize,
    /// Mechanisms that are too rare for these shots to tell how rare.
    too_rare: usize,
    /// Mechanisms whose probability changed most, the largest change first.
    changes: Vec<Change>,
    written: String,
}

/// A mechanism that has changed.
#[derive(Debug, Serialize)]
struct Change {
    detectors: Vec<u32>,
    before: f64,
    after: f64,
}

pub fn fit(args: &FitArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let (about, model, counts) = match &args.dem {
        Some(dem) => of_shots(args, dem)?,
        None => of_run(args, user_paths)?,
    };
    let pairs = Pairs::new(&model);
    let Fit { model: fitted, too_rare } =
        fitted(&model, &pairs, &counts).map_err(|error| Refusal::Content { about, said: error.to_string() })?;
    let out = Output::file(&args.output, "-o")?;
    whole(out, &args.output, |out| out.write_all(fitted.to_string().as_bytes()).map_err(|error| error.to_string()))?;
    let told = Fitted {
        shots: counts.shots,
        mechanisms: model.errors.len(),
        too_rare,
        changes: changes(&model, &fitted),
        written: args.output.display().to_string(),
    };
    Ok(args.print.to_stdout(&told, || told.text(), 0))
}

fn of_shots(args: &FitArgs, dem: &Path) -> Result<(String, Model, PairCounts), Refusal> {
    let path = Path::new(&args.from);
    require_distinct(&[("--dem", dem), ("SHOTS", path)], &[("-o", &args.output)])?;
    let (model, _) = model_file(dem)?;
    let about = format!("shots {}", path.display());
    // Shot by shot: the file may be longer than memory.
    let file = BufReader::with_capacity(BUFFER_BYTES, open_shots(&about, path, "a readable file of shots", u64::MAX)?);
    let layout = Layout::detectors(model.detectors);
    let mut shots = ShotReader::new(file, args.format.unwrap_or(Format::B8), layout);
    let mut read = |shot: &mut [u64]| {
        shots.read_shot(shot).map_err(|error| Refusal::Content { about: about.clone(), said: error.to_string() })
    };
    let pairs = Pairs::new(&model);
    let (mut counts, mut shot) = (PairCounts::new(model.detectors, &pairs), vec![0; layout.words()]);
    while read(&mut shot)? {
        counts.observe(&pairs, &shot);
    }
    Ok((about, model, counts))
}

fn of_run(args: &FitArgs, user_paths: &UserPaths) -> Result<(String, Model, PairCounts), Refusal> {
    let dir = runs::find(&args.from, args.logs.as_deref(), user_paths)?;
    let about = format!("run {}", dir.display());
    let missing = |name: &str, error: String| {
        let expected = "the counts of a run that watched for drifts";
        let remedy = "run it with --watch-drift, or name a file of shots and its model by --dem";
        Refusal::unusable(&about, format!("no readable {name} ({error})"), expected, remedy)
    };
    let read =
        |name: &str, most: u64| files::read_in(&dir, name, most).map_err(|error| missing(name, error.to_string()));
    let damaged = |name: &str, said: String| Refusal::Content { about: format!("{about}, {name}"), said };
    let mut streams: Vec<StreamDetections> = serde_json::from_slice(&read(DETECTIONS, COUNTS_BYTES_MAX)?)
        .map_err(|error| damaged(DETECTIONS, error.to_string()))?;
    let named: Vec<u32> = streams.iter().map(|of| of.stream).collect();
    streams.retain(|of| args.stream.is_none_or(|stream| stream == of.stream));
    let Some(first) = streams.first() else {
        let found = args.stream.map_or("no shots".to_owned(), |stream| format!("no shots of stream {stream}"));
        let expected = named.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        return Err(Refusal::unusable(about, found, format!("one of the streams {expected}"), "name one of them"));
    };
    let name = first.model.clone();
    if name.contains('/') {
        return Err(damaged(DETECTIONS, "a model is not in the run's directory; the file was changed".to_owned()));
    }
    if streams.iter().any(|of| of.model != name) {
        return Err(Refusal::unusable(
            about,
            "streams with different models",
            "one model",
            "name one stream: --stream N",
        ));
    }
    let [model_file, counts_file] = [&name, DETECTIONS].map(|name| dir.join(name));
    let inputs = [("the run's model", model_file.as_path()), ("the run's counts", &counts_file)];
    require_distinct(&inputs, &[("-o", &args.output)])?;
    let model = Model::parse(&read(&name, DEM_BYTES_MAX)?).map_err(|error| damaged(&name, error.to_string()))?;
    if streams.iter().any(|of| of.model_hash != model.hash()) {
        let found = format!("counts of another model than {name} has");
        let remedy = "if the run goes on, its model has just changed: try again in five seconds";
        return Err(Refusal::unusable(about, found, "both of one model", remedy));
    }
    let pairs = Pairs::new(&model);
    let mut counts = PairCounts::new(model.detectors, &pairs);
    for StreamDetections { shots, fired, together, .. } in streams {
        let is_whole = (fired.len(), together.len()) == (counts.fired.len(), counts.together.len());
        let is_possible = |(&(a, b), both): (&(u32, u32), &u64)| *both <= fired[a as usize].min(fired[b as usize]);
        if !is_whole || fired.iter().any(|count| *count > shots) || !pairs.ends().iter().zip(&together).all(is_possible)
        {
            return Err(damaged(
                DETECTIONS,
                "these are not counts of the run's model; the file was changed".to_owned(),
            ));
        }
        counts.add(&PairCounts { shots, fired, together });
    }
    Ok((about, model, counts))
}

/// Mechanisms whose probability changed, the largest change first.
fn changes(before: &Model, after: &Model) -> Vec<Change> {
    let mut all: Vec<Change> = (before.errors.iter().zip(&after.errors))
        .filter(|(before, after)| before.probability != after.probability)
        .map(|(before, after)| Change {
            detectors: before.effect().detectors,
            before: before.probability,
            after: after.probability,
        })
        .collect();
    all.sort_by(|a, b| (b.after - b.before).abs().total_cmp(&(a.after - a.before).abs()));
    all.truncate(SHOWN);
    all
}

impl Fitted {
    fn text(&self) -> String {
        let Fitted { shots, mechanisms, too_rare, changes, written } = self;
        let (mechanisms, shots) = (counted(*mechanisms as u64, "mechanism"), counted(*shots, "shot"));
        let mut text = format!("fitted {mechanisms} to {shots}; wrote {written}\n");
        if *too_rare > 0 {
            let are = if *too_rare == 1 { "is" } else { "are" };
            text += &format!(
                "{too_rare} of them {are} too rare for {shots} to tell how rare: each has half an error in {shots}, or the \
                 model's probability where that is less; more shots tell more\n"
            );
        }
        if !changes.is_empty() {
            text += "largest changes:\n";
        }
        for Change { detectors, before, after } in changes {
            let names: Vec<String> = detectors.iter().map(|detector| format!("D{detector}")).collect();
            let ratio = after / before;
            text += &format!("  {:<24} {before:.6} -> {after:.6} ({ratio:.2} times)\n", names.join(" "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Fitted, changes, fit};
    use crate::cli::args::{Args, Command};
    use crate::cli::places::UserPaths;
    use clap::Parser;
    use pinwheel_engine::code::{Format, Layout, Model, Sampler, ShotWriter, bundled_named};
    use pinwheel_engine::decode::MatcherModel;
    use pinwheel_engine::profile::{Decoder, Predecoder, Window};
    use std::fs;
    use std::path::Path;

    /// The last two keep their probability: no detector tells of one, and the other cannot happen.
    const MODEL: &str = "error(0.01) D0\nerror(0.01) D0 D1\nerror(0.01) D1 L0\nerror(0.01) L0\nerror(0) D0 L0\n";

    fn run(words: &[&str]) -> Result<u8, String> {
        let words = ["pinwheel", "fit"].iter().chain(words);
        let Some(Command::Fit(args)) = Args::try_parse_from(words).map_err(|error| error.to_string())?.command else {
            panic!("no fit")
        };
        fit(&args, &UserPaths::default()).map_err(|refusal| refusal.to_string())
    }

    fn shots(model: &Model, path: &Path, count: u32) {
        let mut writer = ShotWriter::new(Vec::new(), Format::B8, Layout::detectors(model.detectors));
        let (mut sampler, mut shot, mut flips) = (Sampler::new(model, 3), vec![0; 1], vec![0; 1]);
        for _ in 0..count {
            sampler.draw(&mut shot, &mut flips);
            writer.write_shot(&shot).unwrap();
        }
        fs::write(path, writer.finish().unwrap()).unwrap();
    }

    #[test]
    fn a_model_is_refitted_to_a_file_of_shots() {
        let dir = tempfile::tempdir().unwrap();
        let [dem, data, out] = ["m.dem", "s.b8", "f.dem"].map(|name| dir.path().join(name));
        fs::write(&dem, MODEL).unwrap();
        let truth = Model::parse(MODEL.replacen("0.01) D0 D1", "0.04) D0 D1", 1).as_bytes()).unwrap();
        shots(&truth, &data, 100_000);
        let [dem, data, out] = [&dem, &data, &out].map(|path| path.to_str().unwrap());
        assert_eq!(run(&[data, "--dem", dem, "-o", out]), Ok(0));
        let (before, after) = (Model::parse(MODEL.as_bytes()).unwrap(), Model::parse(&fs::read(out).unwrap()).unwrap());
        assert!((after.errors[1].probability - 0.04).abs() < 0.003, "{after:?}");
        assert!((after.errors[0].probability - 0.01).abs() < 0.003, "{after:?}");
        let changes = changes(&before, &after);
        assert_eq!(changes.iter().map(|change| change.detectors.len()).collect::<Vec<_>>(), [2, 1, 1]);
        let text = Fitted { shots: 1, mechanisms: 5, too_rare: 0, changes, written: "F".to_owned() }.text();
        assert!(text.contains("D0 D1 ") && text.contains("-> 0.0"), "{text}");
        let said = run(&[data, "--dem", dem, "-o", dem]).unwrap_err();
        assert!(said.contains("--dem"), "{said}");
    }

    /// An error that few shots did not have was given the probability 0.
    #[test]
    fn a_model_fitted_to_few_shots_decodes_errors_that_none_of_them_had() {
        let dir = tempfile::tempdir().unwrap();
        let [data, out] = ["s.b8", "f.dem"].map(|name| dir.path().join(name));
        let model = bundled_named("surface_d3").unwrap();
        shots(&model, &data, 300);
        let [data, out] = [&data, &out].map(|path| path.to_str().unwrap());
        assert_eq!(run(&[data, "--dem", "surface_d3", "-o", out]), Ok(0));
        let fitted = Model::parse(&fs::read(out).unwrap()).unwrap();
        let rarest = fitted.errors.iter().map(|error| error.probability).fold(1.0, f64::min);
        assert!(rarest > 0.0, "{rarest}");
        for decoder in [Decoder::Matching, Decoder::Correlated, Decoder::UnionFind] {
            let ready = MatcherModel::of(&fitted, decoder, Predecoder::None, Window::None).unwrap();
            let mut matcher = ready.matcher();
            for error in &model.errors {
                let mut shot = vec![0; model.detector_words()];
                error
                    .effect()
                    .detectors
                    .iter()
                    .for_each(|detector| shot[*detector as usize / 64] |= 1 << (detector % 64));
                matcher.decode(&shot, &mut [0]).unwrap_or_else(|refused| panic!("{error:?}: {refused}"));
            }
        }
        let text = Fitted { shots: 9, mechanisms: 3, too_rare: 1, changes: Vec::new(), written: "F".to_owned() }.text();
        assert!(text.contains("1 of them is too rare for 9 shots"), "{text}");
    }

    #[test]
    fn runs_without_counts_and_empty_files_are_refused_in_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let [dem, data, out] = ["m.dem", "s.b8", "f.dem"].map(|name| dir.path().join(name));
        fs::write(&dem, MODEL).unwrap();
        fs::write(&data, []).unwrap();
        let here = dir.path().to_str().unwrap();
        let [dem, data, out] = [&dem, &data, &out].map(|path| path.to_str().unwrap());
        assert!(run(&[data, "--dem", dem, "-o", out]).unwrap_err().contains("no shots"));
        assert!(run(&[here, "-o", out]).unwrap_err().contains("--watch-drift"));
        fs::write(dir.path().join("model.dem"), MODEL).unwrap();
        let detections = |hash: u64, counts: &str| {
            let counts = format!(r#"[{{"stream":0,"model":"model.dem","model_hash":{hash},"shots":3,{counts}}}]"#);
            fs::write(dir.path().join("detections.json"), counts).unwrap();
        };
        let hash = Model::parse(MODEL.as_bytes()).unwrap().hash();
        // More than there are shots; both fired more often than one of them.
        for counts in [r#""fired":[4,0],"together":[0]"#, r#""fired":[1,0],"together":[1]"#] {
            detections(hash, counts);
            assert!(run(&[here, "-o", out]).unwrap_err().contains("was changed"), "{counts}");
        }
        detections(hash ^ 1, r#""fired":[1,0],"together":[0]"#);
        assert!(run(&[here, "-o", out]).unwrap_err().contains("its model has just changed"));
        assert!(!Path::new(out).exists());
    }
}
