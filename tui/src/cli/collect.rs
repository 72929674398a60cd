//! `pinwheel collect`: logical error rates of many models and decoders, without an engine.
//!
//! The main thread gives out blocks of shots and appends rows; threads on the cores that no engine has claimed decode.
//! Progress goes to standard error, results to standard output. `collect merge` sums the files of several collections.

use super::distinct_files::require_distinct;
use super::input::model_file;
use super::refusal::{Refusal, require_threads};
use super::say::{self, Print, counted};
use super::shots::{read_set, read_truth};
use super::signals::Signals;
use super::trace::whole;
use super::values::{decoder, duration};
use clap::{Args as ClapArgs, Subcommand};
use pinwheel_collect::faults::{FaultCounts, ScaledRate, scaled_model};
use pinwheel_collect::gaps::{GapCounts, Kept};
use pinwheel_collect::results::{Results, ResultsError, merged};
use pinwheel_collect::rows::{HEADER, Row, lines};
use pinwheel_collect::run::{
    CollectError, CountBy, Limits, Options, Progress, Shard, THREADS_MAX, collect as collect_tasks, repeated,
};
use pinwheel_collect::task::{FileShots, Task, metadata_of_name};
use pinwheel_engine::board;
use pinwheel_engine::code::{Format, Layout, Model};
use pinwheel_engine::host::{HostFacts, pin};
use pinwheel_engine::profile::{Decoder, DecoderKind};
use pinwheel_engine::record::Output;
use pinwheel_report::report::{duration_text, grouped, interval_95};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two lines of progress.
const PROGRESS_EVERY_NS: u64 = 2_000_000_000;
/// Largest scale of the noise, and 1 over the smallest.
const SCALE_MAX: f64 = 1e6;

/// Time of a plugin for a shot: nobody waits for the answer, and a process that hangs is started again.
const PLUGIN_LIMIT_US: u32 = 10_000_000;

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct CollectArgs {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Models: Stim's .dem, or bundled ones by name, also with their rounds: surface_d5@r50
    #[arg(long, value_name = "F", num_args = 1.., required = true)]
    pub dem: Vec<PathBuf>,
    /// Decoder: matching, correlated, union-find, lookup or plugin:PATH; several with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = decoder, default_value = "matching")]
    pub decoder: Vec<Decoder>,
    /// Configuration of the plugins, JSON that is passed on unread
    #[arg(long, value_name = "JSON")]
    pub plugin_config: Option<String>,
    /// Scale the noise of each model: the odds of each mechanism; several with commas
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = scale, conflicts_with = "shots")]
    pub noise: Vec<f64>,
    /// Decode these shots instead of drawing some; needs --observables and one model
    #[arg(long, value_name = "F", requires = "observables")]
    pub shots: Option<PathBuf>,
    /// True observables of these shots
    #[arg(long, value_name = "F", requires = "shots")]
    pub observables: Option<PathBuf>,
    /// Format of both files: b8, 01 or dets
    #[arg(long, value_name = "b8|01|dets", requires = "shots", default_value = "b8")]
    pub format: Format,
    /// A task is done at this number of shots
    #[arg(long, value_name = "N", value_parser = count)]
    pub max_shots: Option<u64>,
    /// A task is done at this number of errors
    #[arg(long, value_name = "N", value_parser = count)]
    pub max_errors: Option<u64>,
    /// The collection ends after this time
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub max_time: Option<Duration>,
    /// File of results, which sinter reads; a collection that was ended goes on where it was
    #[arg(short, long, value_name = "F", required = true)]
    pub output: Option<PathBuf>,
    /// Number of threads [default: the cores that no engine has claimed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=THREADS_MAX as i64))]
    pub threads: Option<u32>,
    /// Seed of the shots: equal seeds draw equal shots [default: another each time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Do part I of N, from 1/N to N/N, each into a file of its own
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "1/1")]
    pub shard: Shard,
    /// Estimate the rates at the noise scaled by these, too, by counting shots by their number of faults
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = scale, conflicts_with = "shots")]
    pub estimate: Vec<f64>,
    /// Count shots by the gap of their answers, in decibels, and print what is left without those of small gaps
    #[arg(long)]
    pub gaps: bool,
    #[command(flatten)]
    pub print: Print,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Sum files of results: one row for each task
    Merge {
        /// Files of results
        #[arg(value_name = "F", required = true)]
        files: Vec<PathBuf>,
        /// Write the sums here [default: standard output]
        #[arg(short, long, value_name = "F")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Serialize)]
struct TaskResult {
    decoder: String,
    metadata: Value,
    strong_id: String,
    shots: u64,
    errors: u64,
    /// Errors divided by shots; `null` without shots, and of a model without observables.
    rate: Option<f64>,
    /// The 95 % Wilson interval of that rate.
    rate_ci95: Option<[f64; 2]>,
    /// Time of all threads together.
    seconds: f64,
    /// Rates at other noise; none of a model without observables.
    estimates: Vec<ScaledRate>,
    /// Shots that the rates at other noise are of; `null` without `--estimate`.
    estimated_shots: Option<u64>,
    /// Shots and errors by gap; `null` without `--gaps`.
    gaps: Option<GapCounts>,
}

/// The decoder as it is collected with, and what its rows say of it: a plugin has its configuration, and
/// [`PLUGIN_LIMIT_US`] for a shot.
fn offline(mut decoder: Decoder, mut about: Value, plugin_config: Option<&str>) -> (Decoder, Value) {
    if let Decoder::Plugin { limit_us, config, .. } = &mut decoder {
        *limit_us = Some(PLUGIN_LIMIT_US);
        if let Some(text) = plugin_config {
            text.clone_into(config);
            about["plugin_config"] = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        }
    }
    (decoder, about)
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale: &f64| (1.0 / SCALE_MAX..=SCALE_MAX).contains(scale));
    scale.ok_or_else(|| format!("found {text:?}, expected a number from 1e-6 to 1e6; write it like 0.5"))
}

fn count(text: &str) -> Result<u64, String> {
    let refused = || format!("found {text:?}, expected a whole number above 0; write it like 1000000 or 1e6");
    let count = text.parse::<u64>().ok().or_else(|| {
        let count = text.parse::<f64>().ok()?;
        (count.fract() == 0.0 && (1.0..=1e15).contains(&count)).then_some(count as u64)
    });
    count.filter(|count| *count > 0).ok_or_else(refused)
}

fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    let valid = parts.filter(|(index, count): &(u32, u32)| (1..=*count).contains(index));
    let shard = valid.map(|(index, count)| Shard { index: index - 1, count });
    shard.ok_or_else(|| format!("found {text:?}, expected two whole numbers, the first from 1 to the second, like 1/8"))
}

pub fn collect(args: &CollectArgs) -> Result<u8, Refusal> {
    if let Some(Verb::Merge { files, output }) = &args.verb {
        return merge(files, output.as_deref());
    }
    let limits = Limits { shots: args.max_shots, errors: args.max_errors, time: args.max_time };
    if limits == Limits::default() && args.shots.is_none() {
        let expected = "--max-shots, --max-errors or --max-time";
        return Err(Refusal::Usage(format!("collect: found no end, expected one of {expected}; add one")));
    }
    let path = args.output.clone().unwrap_or_default();
    if path == Path::new("-") {
        let remedy = "name a file; the results are printed in any case";
        return Err(Refusal::unusable("-o -", "standard output", "a file that rows are appended to", remedy));
    }
    let named = args.dem.iter().map(|path| ("--dem", path.as_path()));
    let shots = args.shots.iter().map(|path| ("--shots", path.as_path()));
    let observables = args.observables.iter().map(|path| ("--observables", path.as_path()));
    require_distinct(&named.chain(shots).chain(observables).collect::<Vec<_>>(), &[("-o", &path)])?;
    let has_plugin = args.decoder.iter().any(|decoder| decoder.kind() == DecoderKind::Plugin);
    if args.gaps && has_plugin {
        let remedy = "leave --gaps or the plugin out";
        return Err(Refusal::unusable("--gaps", "a plugin, which tells none", "a built-in decoder", remedy));
    }
    if args.plugin_config.is_some() && !has_plugin {
        let remedy = "add --decoder plugin:PATH, or leave the option out";
        return Err(Refusal::unusable("--plugin-config", "no plugin", "one that takes it", remedy));
    }
    let tasks = tasks(args)?;
    let errors_alone = Limits { errors: limits.errors, ..Limits::default() } == limits;
    if let Some(task) = tasks.iter().find(|task| task.model.observables == 0 && task.shots.is_none())
        && errors_alone
    {
        let found = format!("{}, without observables and so without errors", task.metadata);
        return Err(Refusal::unusable(
            "--max-errors",
            found,
            "an end that it reaches",
            "add --max-shots or --max-time",
        ));
    }
    let (options, signals) = means(args, limits)?;
    let mut results = Results::open(&path).map_err(|error| unusable(&path, &error))?;
    if results.cut_bytes > 0 {
        let (bytes, path) = (results.cut_bytes, path.display());
        let bytes = counted(bytes, "byte");
        say::people(&format!("pinwheel: collect: removed {bytes} of a line that was cut off from {path}"));
    }
    let (stop, mut told_ns) = (AtomicBool::new(false), 0);
    let ended = collect_tasks(&tasks, &mut results, &options, &stop, |progress| {
        // Relaxed: the flag has no other memory behind it.
        stop.store(signals.received().is_some(), Ordering::Relaxed);
        if progress.elapsed_ns >= told_ns + PROGRESS_EVERY_NS {
            told_ns = progress.elapsed_ns;
            say::people(&progress_text(progress));
        }
    });
    let status = match ended {
        Ok(_) => signals.received().map_or(0, |signal| u8::try_from(128 + signal).unwrap_or(1)),
        // No fault of the input. What was counted is printed all the same.
        Err(error @ CollectError::Panicked { .. }) => {
            say::people(&format!("pinwheel: collect: {error}"));
            1
        }
        Err(error) => {
            // A collection that was refused leaves no file without rows.
            results.withdraw().map_err(|error| unusable(&path, &error.into()))?;
            return Err(Refusal::Content { about: "collect".to_owned(), said: error.to_string() });
        }
    };
    let found: Vec<TaskResult> = tasks.iter().map(|task| result(task, &results, args)).collect();
    Ok(args.print.to_stdout(&found, || text(&found), status))
}

/// Threads, seed and signals of a collection.
fn means(args: &CollectArgs, limits: Limits) -> Result<(Options, Signals), Refusal> {
    let threads = threads(args)?;
    require_threads("collect", threads)?;
    let seed = match args.seed {
        Some(seed) => seed,
        None => random_seed()?,
    };
    let count_by = CountBy { faults: !args.estimate.is_empty(), gaps: args.gaps };
    let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
    Ok((Options { limits, threads, seed, shard: args.shard, count_by }, signals))
}

fn unusable(path: &Path, error: &ResultsError) -> Refusal {
    Refusal::Content { about: format!("results {}", path.display()), said: error.to_string() }
}

/// Every model with every scale of its noise and every decoder.
fn tasks(args: &CollectArgs) -> Result<Vec<Task>, Refusal> {
    let mut tasks = Vec::new();
    if args.shots.is_some() && args.dem.len() > 1 {
        let found = format!("{} models", args.dem.len());
        return Err(Refusal::unusable("--shots", found, "one, that of the shots", "collect each with its shots"));
    }
    for path in &args.dem {
        let (model, name) = model_file(path)?;
        let files = files(args, &model)?;
        let about = metadata_of_name(&name);
        let scaled: Vec<(Model, Value)> = match args.noise.as_slice() {
            [] => vec![(model, about)],
            scales => scales.iter().map(|scale| (scaled_model(&model, *scale), with_scale(&about, *scale))).collect(),
        };
        for (model, about) in scaled {
            let model = Arc::new(model);
            for decoder in &args.decoder {
                let (decoder, about) = offline(decoder.clone(), about.clone(), args.plugin_config.as_deref());
                tasks.push(Task::new(Arc::clone(&model), decoder, files.clone(), &about));
            }
        }
    }
    if let Some(task) = repeated(&tasks) {
        let found = format!("{} by {} twice", task.metadata, task.decoder_name());
        return Err(Refusal::unusable("collect", found, "each task once", "name each model, decoder and scale once"));
    }
    Ok(tasks)
}

fn with_scale(about: &Value, scale: f64) -> Value {
    let mut about = about.clone();
    about["noise_scale"] = json!(scale);
    about
}

fn files(args: &CollectArgs, model: &Model) -> Result<Option<Arc<FileShots>>, Refusal> {
    let (Some(shots), Some(observables)) = (&args.shots, &args.observables) else { return Ok(None) };
    let about = format!("--shots {}", shots.display());
    let shots = read_set(&about, shots, args.format, Layout::detectors(model.detectors))?;
    let observables = read_truth(observables, model, shots.len(), args.format)?;
    let observables = Arc::unwrap_or_clone(observables);
    Ok(Some(Arc::new(FileShots { shots, observables })))
}

/// Keeps this process off the cores that others use; the number of threads.
fn threads(args: &CollectArgs) -> Result<usize, Refusal> {
    let all = HostFacts::read()?;
    let (free, used) = all.clone().without_used_cores(&board::directory());
    for note in &used {
        say::people(&format!("pinwheel: collect: {note}"));
    }
    let cores: Vec<u32> = free.cores.iter().map(|facts| facts.core).collect();
    if cores.is_empty() {
        let remedy = "end the engines that hold them, or wait";
        return Err(Refusal::unusable("collect", "no free core", "a core that no engine has claimed", remedy));
    }
    if cores.len() < all.cores.len() {
        // Where that is refused, the scheduler decides.
        let _ = pin::confine_current_thread(&cores);
    }
    Ok(args.threads.map_or(cores.len(), |threads| threads as usize).min(THREADS_MAX))
}

fn random_seed() -> Result<u64, Refusal> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|error| {
        Refusal::unusable("collect", error.to_string(), "random bytes of the system", "name a --seed")
    })?;
    Ok(u64::from_le_bytes(bytes))
}

fn progress_text(progress: &Progress) -> String {
    let Progress { done, tasks, shots, errors, elapsed_ns, left_ns } = *progress;
    let rate = shots as f64 * 1e9 / elapsed_ns.max(1) as f64;
    let left = left_ns.map_or_else(|| "not known".to_owned(), duration_text);
    format!(
        "{:>7.1} s  {done} of {} done  {}  {}/s  {}  time left {left}",
        elapsed_ns as f64 / 1e9,
        counted(tasks as u64, "task"),
        counted(shots, "shot"),
        grouped(rate as u64),
        counted(errors, "error")
    )
}

fn result(task: &Task, results: &Results, args: &CollectArgs) -> TaskResult {
    let row = results.of(&task.strong_id).cloned().unwrap_or_default();
    let Row { shots, errors, seconds, counts, .. } = row;
    let faults = FaultCounts::of_row(&counts);
    // Of nothing that could be predicted wrongly there is no rate.
    let has_rate = shots > 0 && task.model.observables > 0;
    let estimates = args.estimate.iter().filter(|_| task.model.observables > 0);
    TaskResult {
        decoder: task.decoder_name(),
        metadata: serde_json::from_str(&task.metadata).unwrap_or_default(),
        strong_id: task.strong_id.clone(),
        shots,
        errors,
        rate: has_rate.then(|| errors as f64 / shots as f64),
        rate_ci95: interval_95(errors, shots).filter(|_| has_rate),
        seconds,
        estimates: estimates.map(|scale| faults.rate_at(&task.model, *scale)).collect(),
        estimated_shots: (!args.estimate.is_empty()).then(|| faults.shots()),
        gaps: args.gaps.then(|| GapCounts::of_row(&counts)),
    }
}

fn text(found: &[TaskResult]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for task in found {
        let TaskResult { decoder, metadata, shots, errors, rate, rate_ci95, seconds, .. } = task;
        let _ = write!(text, "{metadata} {decoder}: {} of {}", counted(*errors, "error"), counted(*shots, "shot"));
        if let Some((rate, ci95)) = rate.zip(*rate_ci95) {
            let _ = write!(text, ", {}", rate_text(rate, ci95));
        }
        // A row has milliseconds: of few shots that were counted before the time is not known.
        if *seconds > 0.0 {
            let _ = write!(text, "; {:.2} µs a shot", seconds * 1e6 / *shots as f64);
        }
        text.push('\n');
        let by_gaps = task.gaps.as_ref().map(GapCounts::shots);
        for (with, option) in [(task.estimated_shots, "--estimate"), (by_gaps, "--gaps")] {
            if let Some(with) = with.filter(|with| with < shots) {
                let (with, without) = (counted(with, "shot"), grouped(shots - with));
                let _ = writeln!(text, "  {option}: of {with}; {without} were collected without it");
            }
        }
        // Without a shot counted an estimate would say a rate of 0.
        let estimates = task.estimates.iter().filter(|_| task.estimated_shots != Some(0));
        for ScaledRate { scale, rate, ci95, unseen } in estimates {
            let _ = write!(text, "  noise × {scale}: {}", rate_text(*rate, *ci95));
            if *unseen > rate / 10.0 {
                let _ = write!(text, "; {unseen:.1e} of its shots have numbers of faults that were not seen");
            }
            text.push('\n');
        }
        let gaps = task.gaps.iter().filter(|_| rate.is_some());
        for Kept { from_db, part, rate, ci95 } in gaps.flat_map(GapCounts::kept) {
            let part = 100.0 * part;
            let _ = writeln!(text, "  gap of {from_db} dB or more: {part:.2} % of shots, {}", rate_text(rate, ci95));
        }
    }
    text
}

fn rate_text(rate: f64, [low, high]: [f64; 2]) -> String {
    format!("{rate:.3e} a shot, 95 % between {low:.3e} and {high:.3e}")
}

fn merge(files: &[PathBuf], output: Option<&Path>) -> Result<u8, Refusal> {
    // The sums in place of a part would be counted with the parts again, and a collection may be writing to it.
    let inputs: Vec<_> = files.iter().map(|path| ("the results to sum", path.as_path())).collect();
    require_distinct(&inputs, &output.iter().map(|path| ("-o", *path)).collect::<Vec<_>>())?;
    let rows = merged(files, |name, bytes| {
        let bytes = counted(bytes as u64, "byte");
        say::people(&format!("pinwheel: collect: left out {bytes} of a line that was cut off from {name}"));
    });
    let rows = rows.map_err(|(path, error)| unusable(Path::new(&path), &error))?;
    let table = format!("{HEADER}\n{}", lines(&rows));
    match output.filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let out = Output::file(path, "-o")?;
            whole(out, path, |out| out.write_all(table.as_bytes()).map_err(|error| error.to_string()))?;
            Ok(0)
        }
        None => Ok(say::written(say::text(&mut std::io::stdout().lock(), &table), 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::{TaskResult, count, scale, shard, text};
    use pinwheel_collect::run::Shard;

    /// A collection that was done already told 0.00 µs a shot.
    #[test]
    fn a_time_that_is_not_known_is_not_told() {
        let result = |seconds| TaskResult {
            decoder: "matching".to_owned(),
            metadata: serde_json::json!({"d": 3}),
            strong_id: String::new(),
            shots: 10,
            errors: 1,
            rate: Some(0.1),
            rate_ci95: Some([0.01, 0.2]),
            seconds,
            estimates: Vec::new(),
            estimated_shots: None,
            gaps: None,
        };
        let start = r#"{"d":3} matching: 1 error of 10 shots, 1.000e-1 a shot, 95 % between 1.000e-2 and 2.000e-1"#;
        assert_eq!(text(&[result(0.0)]), format!("{start}\n"));
        assert_eq!(text(&[result(1e-4)]), format!("{start}; 10.00 µs a shot\n"));
    }

    #[test]
    fn numbers_of_options_are_what_they_say() {
        assert_eq!((count("1e6"), count("7"), shard("2/8")), (Ok(1_000_000), Ok(7), Ok(Shard { index: 1, count: 8 })));
        assert_eq!(scale("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "1.5", "1e16", "many", ""] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0/8", "9/8", "1", "a/b", "1/0"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "inf", "nan", "1e7"] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }
}
