//! The request of one run: the options, applied to the profile and checked against each other.
//!
//! Pure: makes a [`RunRequest`] or one sentence from options and profile. Opens no file: `input`
//! reads files, `places` finds directories.

use super::cudaq::Decoders;
use super::refusal::Refusal;
use super::run::args::{DeviceChoice, RunArgs};
use pinwheel_engine::code::Format;
use pinwheel_engine::engine::{LivePlace, Network};
use pinwheel_engine::profile::{Device, Latency, Profile, Shadow, Silos, Source, Weights};
use pinwheel_engine::record::REORDER_SLACK;
use pinwheel_hosts::settings::HostSettings;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Duration of a run that has no end of its own and no console to end it from.
const HEADLESS_DURATION: Duration = Duration::from_secs(10);

/// How a run shows its progress and its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// The console on this terminal.
    Console,
    /// Progress lines, then a report as text.
    People,
    /// Progress lines, then a report in JSON.
    Scripts,
}

/// Where shots come from.
#[derive(Clone, Debug, PartialEq)]
pub enum ShotSource {
    /// The model's sampler.
    Sampler { seed: u64 },
    /// A file of shots, and one of true observables.
    File { shots: PathBuf, observables: Option<PathBuf> },
    /// Standard input.
    Stdin,
    /// Live shots from other processes.
    Live(LivePlace),
}

/// Where the model comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// `--dem F`.
    Option(PathBuf),
    /// A bundled model's name or a path, from the profile.
    Profile(String),
}

/// The resolved request of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    pub profile_name: String,
    /// The profile's file; `None` if it is built in.
    pub profile_file: Option<PathBuf>,
    /// The profile with the options applied.
    pub profile: Profile,
    pub label: String,
    pub model: ModelSource,
    pub shots: ShotSource,
    pub format: Format,
    /// Map from measurements to detectors, if shots are measurements.
    pub m2d: Option<PathBuf>,
    /// CUDA-Q's decoders, whose model and map take the place of those that are named.
    pub decoders: Option<Arc<Decoders>>,
    /// Whether the decoders' ports and counters are printed as CUDA-Q's server prints them.
    pub ready_line: bool,
    /// Soft bytes of a file of shots.
    pub soft: Option<PathBuf>,
    /// Map of soft bytes, if shots may have some.
    pub soft_map: Option<PathBuf>,
    pub count: Option<u64>,
    pub duration: Option<Duration>,
    pub predictions: Option<PathBuf>,
    pub answers: Option<PathBuf>,
    pub output_mode: OutputMode,
    /// Remove this run only after all runs without `keep`.
    pub keep: bool,
    /// Interval at which a stream moves.
    pub move_every: Option<Duration>,
    /// Interval at which a silo is stopped.
    pub kill_every: Option<Duration>,
    /// Other hosts that decode shots, too.
    pub hosts: Option<HostSettings>,
    /// Address at which metrics are served.
    pub metrics: Option<std::net::SocketAddr>,
    pub notes: Vec<String>,
}

impl RunRequest {
    /// Resolves the request of a run. `on_terminal`: standard input and output are a terminal.
    ///
    /// # Errors
    /// One sentence about options that are out of range or contradict each other.
    pub fn resolve(
        args: &RunArgs,
        profile_name: String,
        mut profile: Profile,
        on_terminal: bool,
    ) -> Result<Self, Refusal> {
        let output_mode = match (args.json, args.headless || args.ready_line || !on_terminal) {
            (true, _) => OutputMode::Scripts,
            (false, true) => OutputMode::People,
            (false, false) => OutputMode::Console,
        };
        apply_options(args, &mut profile)?;
        in_range(args, &profile_name, &profile)?;
        let model = profile.input.source.model().to_owned();
        let shots = shot_source(args, &profile.input.source)?;
        let m2d = args.m2d.clone().or_else(|| profile.input.m2d.as_ref().map(PathBuf::from));
        let mut request = RunRequest {
            profile_name,
            profile_file: None,
            label: args.label.clone().unwrap_or_default(),
            model: args.dem.clone().map_or(ModelSource::Profile(model), ModelSource::Option),
            shots,
            format: args.format.unwrap_or(Format::B8),
            m2d,
            decoders: None,
            ready_line: args.ready_line,
            soft: args.soft.clone(),
            soft_map: args.soft_map.clone(),
            count: args.count,
            duration: args.duration,
            predictions: args.predictions.clone(),
            answers: args.answers.clone(),
            output_mode,
            keep: args.keep,
            move_every: args.move_every,
            kill_every: args.kill_every,
            hosts: None,
            metrics: args.metrics,
            notes: Vec::new(),
            profile,
        };
        request.limit_duration();
        request.keep_predictions_in_a_file()?;
        request.check_source()?;
        request.require_several_silos()?;
        Ok(request)
    }

    /// Serves the decoders of a configuration.
    #[must_use]
    pub fn serving(mut self, decoders: Option<Decoders>) -> Self {
        if let (Some(decoders), ShotSource::Live(LivePlace::Cudaq { decoders: numbers, .. })) =
            (&decoders, &mut self.shots)
        {
            numbers.clone_from(&decoders.numbers);
        }
        self.decoders = decoders.map(Arc::new);
        self
    }

    fn require_several_silos(&self) -> Result<(), Refusal> {
        let (option, expected) = match (self.move_every, self.kill_every) {
            _ if self.profile.silos != Silos::Count(1) => return Ok(()),
            (Some(_), _) => ("--move-every", "at least two silos to move between"),
            (None, Some(_)) => ("--kill-every", "at least two silos, so that one takes over"),
            (None, None) => return Ok(()),
        };
        Err(Refusal::unusable(option, "one silo", expected, "add --silos 2, or omit the option"))
    }

    /// Most shots in flight at once, including the lead of one silo over another.
    pub fn window_shots(&self) -> usize {
        let silos = self.profile.silos.most(self.profile.input.streams);
        self.profile.slots as usize * silos as usize + REORDER_SLACK
    }

    /// Limits the duration of a run without an end, if there is no console, and adds a note.
    fn limit_duration(&mut self) {
        let endless =
            self.count.is_none() && self.duration.is_none() && matches!(self.shots, ShotSource::Sampler { .. });
        if endless && self.output_mode != OutputMode::Console {
            self.duration = Some(HEADLESS_DURATION);
            self.notes.push("ends after 10 s: neither --count nor --duration was given".to_owned());
        }
    }

    /// Refuses options that the source cannot serve, before the source is opened.
    fn check_source(&self) -> Result<(), Refusal> {
        if self.ready_line && !matches!(self.shots, ShotSource::Live(LivePlace::Cudaq { .. })) {
            let (found, remedy) = ("a source without decoders", "give --cudaq-config F or --input cudaq:ADDRESS:PORT");
            return Err(Refusal::unusable("--ready-line", found, "a source for CUDA-Q's clients", remedy));
        }
        if let (ShotSource::Stdin, Some(soft)) = (&self.shots, &self.soft) {
            return Err(Refusal::unusable(
                format!("--soft {}", soft.display()),
                "shots from standard input",
                "shots from a file, with soft bytes for each",
                "give the shots as --shots FILE, or omit the soft bytes",
            ));
        }
        let without_soft_bytes = match &self.shots {
            ShotSource::Sampler { .. } => Some("a sampler, which draws no soft bytes"),
            ShotSource::Stdin => Some("shots from standard input, which have no soft bytes"),
            ShotSource::Live(LivePlace::Cudaq { .. }) => Some("calls of CUDA-Q's clients, which have no soft bytes"),
            ShotSource::File { .. } | ShotSource::Live(_) => None,
        };
        if let (Some(found), Some(map)) = (without_soft_bytes, &self.soft_map) {
            return Err(Refusal::unusable(
                format!("--soft-map {}", map.display()),
                found,
                "shots that may have soft bytes",
                "give --shots FILE with --soft, or --input with it",
            ));
        }
        match (&self.shots, &self.predictions, &self.m2d) {
            (ShotSource::Live(place), Some(predictions), _) => Err(Refusal::unusable(
                format!("--predictions {}", predictions.display()),
                format!("shots from {place}, which have no order across streams"),
                "shots of a file, whose order the predictions follow",
                "use --answers: each line has its stream and the sender's sequence number",
            )),
            (ShotSource::Sampler { .. }, _, Some(m2d)) => Err(Refusal::unusable(
                format!("--m2d {}", m2d.display()),
                "a sampler, which draws detection events",
                "shots that are measurements",
                "give --shots or --input with it",
            )),
            _ => Ok(()),
        }
    }

    fn keep_predictions_in_a_file(&self) -> Result<(), Refusal> {
        if self.predictions.as_deref() == Some(Path::new("-")) {
            let remedy = "name a file, or use --answers - for a stream of answers";
            return Err(Refusal::unusable(
                "--predictions -",
                "standard output",
                "a file, because predictions are written as a whole at the end",
                remedy,
            ));
        }
        Ok(())
    }
}

fn shot_source(args: &RunArgs, source: &Source) -> Result<ShotSource, Refusal> {
    let Some(shots) = &args.shots else {
        return match &args.observables {
            None => from_profile(source),
            Some(observables) => Err(needs("--observables", observables, "--shots")),
        };
    };
    if args.dem.is_none() && args.cudaq_config.is_none() {
        return Err(needs("--shots", shots, "--dem"));
    }
    if shots != Path::new("-") {
        return Ok(ShotSource::File { shots: shots.clone(), observables: args.observables.clone() });
    }
    match &args.observables {
        None => Ok(ShotSource::Stdin),
        Some(observables) => Err(Refusal::unusable(
            format!("--observables {}", observables.display()),
            "shots from standard input",
            "shots from a file, with observables for each",
            "give the shots as --shots FILE, or omit the observables",
        )),
    }
}

/// The source that the profile names.
fn from_profile(source: &Source) -> Result<ShotSource, Refusal> {
    Ok(match source {
        Source::Sampler { seed, .. } => ShotSource::Sampler { seed: *seed },
        Source::Unix { path, .. } => ShotSource::Live(LivePlace::Unix(PathBuf::from(path))),
        Source::Shm { name, group, .. } => {
            ShotSource::Live(LivePlace::Shm { name: name.clone(), group: group.clone() })
        }
        Source::Udp { address, allow, .. } => {
            let (at, allow) = internet(address, allow)?;
            ShotSource::Live(LivePlace::Udp { at, allow })
        }
        Source::Cudaq { address, allow, slot_size, .. } => {
            let (at, allow) = internet(address, allow)?;
            ShotSource::Live(LivePlace::Cudaq { at, allow, slot_bytes: *slot_size, decoders: Vec::new() })
        }
    })
}

/// Address and senders of a source on a network.
fn internet(address: &str, allow: &[String]) -> Result<(SocketAddr, Vec<Network>), Refusal> {
    let refused = |said| Refusal::Content { about: "input.source".to_owned(), said };
    let allow: Result<Vec<Network>, String> = allow.iter().map(|entry| Network::parse(entry)).collect();
    let at = address.parse().map_err(|_| refused(format!("found {address:?}, expected an address and a port")))?;
    Ok((at, allow.map_err(refused)?))
}

/// The source that `--input` names, with the model of the profile's source.
fn source(place: &LivePlace, args: &RunArgs, model: String) -> Source {
    match place {
        LivePlace::Udp { at, .. } => Source::Udp { address: at.to_string(), allow: args.allow.clone(), model },
        LivePlace::Cudaq { at, slot_bytes, .. } => {
            let (address, allow) = (at.to_string(), args.allow.clone());
            Source::Cudaq { address, allow, config: model, slot_size: *slot_bytes }
        }
        LivePlace::Unix(path) => Source::Unix { path: path.display().to_string(), model },
        LivePlace::Shm { name, group } => Source::Shm { name: name.clone(), group: group.clone(), model },
    }
}

fn needs(option: &str, file: &Path, other: &str) -> Refusal {
    let about = format!("{option} {}", file.display());
    Refusal::unusable(about, format!("no {other}"), format!("{other} with it"), format!("add the matching {other}"))
}

fn apply_options(args: &RunArgs, profile: &mut Profile) -> Result<(), Refusal> {
    if let Some(rate) = args.rate {
        profile.input.rate = rate;
    }
    if let Some(silos) = args.silos {
        profile.silos = silos;
    }
    if let Some(streams) = args.streams {
        profile.input.streams = streams;
    }
    if let Some(exponent) = args.zipf {
        profile.input.weights = Weights::Zipf(exponent);
    }
    if let Some(deadline) = args.deadline {
        profile.limits.late_us = whole_us(deadline)?;
    }
    if let Some(window) = args.window {
        profile.window = window;
    }
    if let Some(period) = args.round_period {
        profile.input.round_ns = Some(u32::try_from(period.as_nanos()).map_err(|_| {
            let found = format!("{period:?}");
            Refusal::unusable("--round-period", found, "100ns to 1s", "superconducting qubits have about 1us")
        })?);
    }
    profile.input.watch_drift |= args.watch_drift;
    if let Some(decoder) = &args.decoder {
        profile.decoder.clone_from(decoder);
    }
    profile.confidence |= args.confidence || args.abstain_below.is_some();
    profile.abstain_below = args.abstain_below.or(profile.abstain_below);
    if let Some(shadow) = &args.shadow {
        // A model of its own stays the profile's.
        let model = profile.shadow.take().and_then(|shadow| shadow.model);
        profile.shadow = Some(Shadow { model, ..shadow.clone() });
    }
    match args.device {
        None => {}
        // Keeps the profile's latency.
        Some(DeviceChoice::Sim) if matches!(profile.device, Device::Sim { .. }) => {}
        Some(DeviceChoice::Sim) => profile.device = Device::Sim { latency: Latency::None },
        Some(DeviceChoice::Auto) => profile.device = Device::Auto,
        Some(DeviceChoice::None) => profile.device = Device::None,
        Some(DeviceChoice::Cuda { index }) => {
            let batch_shots = match profile.device {
                Device::Cuda { batch_shots, .. } => batch_shots,
                Device::Auto | Device::None | Device::Sim { .. } => 1,
            };
            profile.device = Device::Cuda { index, batch_shots };
        }
    }
    if let Some(place) = &args.input {
        let model = profile.input.source.model().to_owned();
        profile.input.source = source(place, args, model);
    }
    if let (Some(place), false) = (&args.input, args.allow.is_empty())
        && !matches!(place, LivePlace::Udp { .. } | LivePlace::Cudaq { .. })
    {
        let found = format!("{place}, which other machines do not reach");
        return Err(Refusal::unusable("--allow", found, "udp:ADDRESS:PORT or cudaq:ADDRESS:PORT", "leave --allow out"));
    }
    if let Some(bytes) = args.cudaq_slot_size {
        let Source::Cudaq { slot_size, .. } = &mut profile.input.source else {
            let (found, expected) =
                ("no source for CUDA-Q's clients", "--cudaq-config F or --input cudaq:ADDRESS:PORT");
            return Err(Refusal::unusable("--cudaq-slot-size", found, expected, "add one of these, or leave it out"));
        };
        *slot_size = bytes;
    }
    if let Some(dem) = &args.dem {
        *profile.input.source.model_mut() = dem.display().to_string();
    }
    if let Some(m2d) = &args.m2d {
        profile.input.m2d = Some(m2d.display().to_string());
    }
    Ok(())
}

fn whole_us(deadline: Duration) -> Result<u32, Refusal> {
    let us = u32::try_from(deadline.as_micros()).ok();
    us.filter(|us| Duration::from_micros(u64::from(*us)) == deadline).ok_or_else(|| {
        let found = format!("{deadline:?}");
        Refusal::unusable("--deadline", found, "whole microseconds, 1us to 60s", "write it like 20us or 2ms")
    })
}

/// Names the option that set a value out of the schema's range.
fn in_range(args: &RunArgs, name: &str, profile: &Profile) -> Result<(), Refusal> {
    let Some(error) = profile.validate().into_iter().next() else { return Ok(()) };
    let option = match error.field.as_str() {
        "silos" if args.silos.is_some() => "--silos".to_owned(),
        "input.streams" if args.streams.is_some() => "--streams".to_owned(),
        "input.weights" if args.zipf.is_some() => "--zipf".to_owned(),
        "limits.late_us" if args.deadline.is_some() => "--deadline".to_owned(),
        "decoder" if args.decoder.is_some() => "--decoder".to_owned(),
        "confidence" if args.confidence || args.abstain_below.is_some() => "--confidence".to_owned(),
        "abstain_below" if args.abstain_below.is_some() => "--abstain-below".to_owned(),
        "shadow.one_in" | "shadow.decoder" if args.shadow.is_some() => "--shadow".to_owned(),
        "window" | "window.commit_rounds" | "window.buffer_rounds" if args.window.is_some() => "--window".to_owned(),
        "input.round_ns" if args.round_period.is_some() => "--round-period, in ns,".to_owned(),
        "input.source.slot_size" if args.cudaq_slot_size.is_some() => "--cudaq-slot-size".to_owned(),
        "input.source.allow" if !args.allow.is_empty() => "--allow".to_owned(),
        "input.source.path" if args.input.is_some() => "--input".to_owned(),
        "input.rate" if args.rate.is_some() => "--rate".to_owned(),
        field => format!("profile {name} with these options, {field}"),
    };
    Err(Refusal::unusable(option, error.found, error.expected, error.remedy))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{ModelSource, OutputMode, REORDER_SLACK, RunArgs, RunRequest, ShotSource};
    use crate::cli::args::{Args, Command};
    use clap::Parser;
    use pinwheel_engine::profile::{Profile, Rate, Silos, Weights, Window, WindowRounds};
    use std::path::PathBuf;
    use std::time::Duration;

    fn resolve(options: &str, on_terminal: bool) -> Result<RunRequest, String> {
        let words = format!("pinwheel run {options}");
        let Some(Command::Run(args)) = Args::try_parse_from(words.split_whitespace()).unwrap().command else {
            panic!("no run")
        };
        resolve_args(&args, on_terminal)
    }

    fn resolve_args(args: &RunArgs, on_terminal: bool) -> Result<RunRequest, String> {
        let (profile, _) = Profile::load("lab", None).unwrap();
        RunRequest::resolve(args, "lab".to_owned(), profile, on_terminal).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn options_are_laid_over_the_profile() {
        let plain = resolve("", true).unwrap();
        let laid = resolve("--rate 5e4 --silos 2 --streams 8 --deadline 20us --dem a.dem --window 5,7", true).unwrap();
        assert_eq!(laid.profile.input.rate, Rate::Hz(50_000.0));
        assert_eq!(
            (laid.profile.silos, laid.profile.input.streams, laid.profile.limits.late_us),
            (Silos::Count(2), 8, 20)
        );
        assert_eq!(laid.model, ModelSource::Option(PathBuf::from("a.dem")));
        assert_eq!((plain.profile.silos, plain.profile.input.rate), (Silos::Auto, Rate::Auto));
        assert_eq!(plain.profile.input.weights, Weights::Even);
        assert_eq!(resolve("--zipf 1.1", true).unwrap().profile.input.weights, Weights::Zipf(1.1));
        assert!(matches!(plain.model, ModelSource::Profile(_)));
        // Each of the four streams may have its own silo.
        assert_eq!(plain.window_shots() - REORDER_SLACK, 4 * plain.profile.slots as usize);
        assert_eq!(resolve("--silos auto --move-every 1ms", true).unwrap().profile.silos, Silos::Auto);
        let window = WindowRounds { commit_rounds: 5, buffer_rounds: 7 };
        assert_eq!((plain.profile.window, laid.profile.window), (Window::None, Window::Some(window)));
        let (mut profile, _) = Profile::load("lab", None).unwrap();
        profile.window = Window::Some(window);
        let args = RunArgs { window: Some(Window::None), ..RunArgs::default() };
        assert_eq!(RunRequest::resolve(&args, "lab".to_owned(), profile, true).unwrap().profile.window, Window::None);
    }

    #[test]
    fn a_terminal_gets_the_console_unless_an_option_says_otherwise() {
        assert_eq!(resolve("", true).unwrap().output_mode, OutputMode::Console);
        assert_eq!(resolve("--headless", true).unwrap().output_mode, OutputMode::People);
        assert_eq!(resolve("", false).unwrap().output_mode, OutputMode::People);
        assert_eq!(resolve("--json", true).unwrap().output_mode, OutputMode::Scripts);
    }

    #[test]
    fn only_a_run_without_an_end_gets_ten_seconds() {
        let ten = Some(Duration::from_secs(10));
        assert_eq!(resolve("", false).unwrap().duration, ten);
        assert_eq!(resolve("--json", true).unwrap().duration, ten);
        assert_eq!(resolve("", true).unwrap().duration, None);
        assert_eq!(resolve("--count 5", false).unwrap().duration, None);
        assert_eq!(resolve("--dem d --shots s", false).unwrap().duration, None);
        assert_eq!(resolve("--dem d --shots -", false).unwrap().duration, None);
        assert_eq!(resolve("--duration 1m", false).unwrap().duration, Some(Duration::from_secs(60)));
    }

    #[test]
    fn sources_follow_the_options() {
        assert!(matches!(resolve("--dem d", true).unwrap().shots, ShotSource::Sampler { .. }));
        assert_eq!(resolve("--dem d --shots -", true).unwrap().shots, ShotSource::Stdin);
        let file = ShotSource::File { shots: PathBuf::from("s"), observables: Some(PathBuf::from("o")) };
        assert_eq!(resolve("--dem d --shots s --observables o", true).unwrap().shots, file);
    }

    #[test]
    fn a_live_source_keeps_the_profiles_model_and_has_no_end_of_its_own() {
        let laid = resolve("--input udp:127.0.0.1:7000 --allow 10.0.0.0/8 --m2d map", false).unwrap();
        assert_eq!((laid.duration, laid.m2d.as_deref()), (None, Some("map".as_ref())));
        let ShotSource::Live(place) = &laid.shots else { panic!("{:?}", laid.shots) };
        assert_eq!(place.to_string(), "udp:127.0.0.1:7000");
        assert_eq!(laid.profile.input.source.model(), "surface_d5");
        assert!(matches!(resolve("--input shm:a --dem d", true).unwrap().shots, ShotSource::Live(_)));
    }

    #[test]
    fn contradictions_are_one_sentence_each() {
        for (options, part) in [
            ("--dem d --shots - --observables o", "--shots FILE"),
            ("--input udp:127.0.0.1:0 --predictions f", "use --answers"),
            ("--input udp:127.0.0.1:0 --allow host", "--allow: found \"host\""),
            ("--input unix:/a --allow 10.0.0.7", "--allow: found unix:/a, which other machines do not reach"),
            (
                "--input udp:127.0.0.1:0 --cudaq-slot-size 300",
                "--cudaq-slot-size: found no source for CUDA-Q's clients",
            ),
            ("--cudaq-slot-size 300", "expected --cudaq-config F or --input cudaq:ADDRESS:PORT"),
            ("--shadow plugin:a.so", "--shadow: found Plugin, expected a built-in decoder"),
            ("--window blocks:0", "--window: found 0, expected 1..=10000"),
            ("--m2d m", "give --shots or --input"),
            ("--soft-map m", "found a sampler, which draws no soft bytes, expected shots that may have soft bytes"),
            ("--dem d --shots - --soft-map m", "found shots from standard input, which have no soft bytes"),
            ("--input cudaq:127.0.0.1:0 --soft-map m", "found calls of CUDA-Q's clients, which have no soft bytes"),
            ("--dem d --shots - --soft s --soft-map m", "give the shots as --shots FILE, or omit the soft bytes"),
            ("--silos 1 --move-every 1ms", "add --silos 2"),
            ("--silos 1 --kill-every 1s", "add --silos 2"),
            ("--silos 0", "--silos: found 0"),
            ("--streams 4096", "--streams: found 4096"),
            ("--zipf 0", "--zipf: found 0, expected above 0, at most 4"),
            ("--deadline 100ns", "--deadline: found 100ns"),
            ("--window 0,5", "--window: found 0, expected 1..=10000"),
            ("--window 5,10001", "--window: found 10001, expected 1..=10000"),
            (
                "--decoder correlated --window 5,5",
                "--decoder: found Correlated, expected Matching unless window is None",
            ),
            ("--decoder lookup --window 5,5", "--decoder: found Lookup, expected Matching unless window is None"),
            (
                "--decoder union-find --window stream:5,5",
                "--decoder: found UnionFind, expected Matching where window is Stream",
            ),
            ("--deadline 61s", "--deadline: found"),
            ("--predictions -", "--answers -"),
        ] {
            let said = resolve(options, false).unwrap_err();
            assert!(said.contains(part) && !said.contains('\n'), "{options}: {said}");
        }
    }

    #[test]
    fn files_that_need_another_name_it() {
        let shots = RunArgs { shots: Some(PathBuf::from("s")), ..RunArgs::default() };
        assert!(resolve_args(&shots, false).unwrap_err().contains("no --dem"));
        let observables = RunArgs { observables: Some(PathBuf::from("o")), ..RunArgs::default() };
        assert!(resolve_args(&observables, false).unwrap_err().contains("no --shots"));
    }
}
