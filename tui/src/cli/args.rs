//! The command line's grammar: commands, options, and the values they take.
//!
//! Pure: words in, [`Args`] out. Bounded by the words given. Never touches a file: what a value means together with the
//! others is settled in `request`.

use clap::{Args as ClapArgs, Parser, Subcommand};
use pinwheel_engine::code::Format;
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::profile::{Rate, Silos, WindowRounds};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Takes QEC syndromes through a predecoder and CPU decoders on pinned threads, under a live console.
///
/// Without a command: the console with profile lab; without a terminal, progress lines and a report.
#[derive(Debug, Parser)]
#[command(name = "pinwheel", version, infer_long_args = false)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decode shots: from a model's sampler, a file, or standard input
    Run(Box<RunArgs>),
    /// Rehearse with virtual time and injected faults, one run per seed
    Sim(SimArgs),
    /// List, show, check and compare profiles
    Profiles(ProfilesArgs),
    /// Show which roles run on which threads and cores, without starting anything
    Plan(super::plan::PlanArgs),
    /// Show who uses which core: engines, other programs' pinned threads, load
    Cores(super::cores::CoresArgs),
    /// Load the ownership arbiter alone: silos that all want the same pages
    Arbiter(super::arbiter::ArbiterArgs),
    /// Compare this machine with what hot threads need, and sign the result
    Check(super::check::CheckArgs),
    /// Send a file of shots to a running engine at its cadence, and measure the answers
    Send(super::send::SendArgs),
    /// Provoke real faults and see whether the verdicts are right; without names, list them
    Drill(super::drill::DrillArgs),
    /// Run a task graph, described in a file or bundled, and show what it cost
    Graph(Box<super::graph::GraphArgs>),
    /// The console on an engine that runs in another process
    Attach(super::attach::AttachArgs),
    /// Act on a running engine, and print what was acknowledged
    Ctl(super::ctl::CtlArgs),
    /// Look at a run's recording, in the same console or as JSON
    Replay(super::replay::ReplayArgs),
    /// Look at the board that a killed process left
    Postmortem(super::postmortem::PostmortemArgs),
    /// Bundle all that is known of a running or frozen engine into a directory
    Dump(super::dump::DumpArgs),
    /// Compare two runs: rates with intervals, distributions, environment, profile
    Compare(super::compare::CompareArgs),
    /// Write a run's recording as a trace that Perfetto opens
    Trace(super::trace::TraceArgs),
    /// Check and measure the GPU path on this machine, each step of it; some minutes
    GpuCheck(super::gpu_check::GpuCheckArgs),
    /// Write the shell's completions to standard output
    Completions(super::manual::CompletionsArgs),
    /// Write the manual page to standard output
    Man,
}

#[derive(Debug, Clone, Default, ClapArgs)]
pub struct RunArgs {
    /// Profile: a name in the profiles directory or built in, or a path that ends in .ron [default: lab]
    #[arg(long, value_name = "P")]
    pub profile: Option<String>,
    /// Detector error model: Stim's .dem, or a bundled one by name: surface_d5, surface_d3, surface_d5@r50 (50 rounds)
    #[arg(long, value_name = "F")]
    pub dem: Option<PathBuf>,
    /// Shots to decode, detection events only; - reads standard input and drains at its end
    #[arg(long, value_name = "F")]
    pub shots: Option<PathBuf>,
    /// Take shots from other processes while they happen: udp:ADDRESS:PORT, unix:PATH or shm:NAME
    #[arg(long, value_name = "udp:A|unix:P|shm:N", conflicts_with_all = ["shots", "observables", "rate"], value_parser = LivePlace::parse)]
    pub input: Option<LivePlace>,
    /// Senders whose datagrams are taken, addresses or networks [default: this machine's]
    #[arg(long, value_name = "NET,NET", value_delimiter = ',', requires = "input")]
    pub allow: Vec<String>,
    /// Shots are measurements: the map from them to detectors and observables
    #[arg(long, value_name = "F")]
    pub m2d: Option<PathBuf>,
    /// True observables of the shots, to judge the answers by
    #[arg(long, value_name = "F")]
    pub observables: Option<PathBuf>,
    /// Format of shots, observables and predictions: b8, 01 or dets [default: b8]
    #[arg(long, value_name = "b8|01|dets")]
    pub format: Option<Format>,
    /// Shots per second of all streams together, or max, or auto (half the capacity measured in warm-up)
    #[arg(long, value_name = "HZ|max|auto", value_parser = rate, allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// End after so many shots
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub count: Option<u64>,
    /// End after so long: 10s, 500ms, 20us, 1m
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Complete pipelines: so many, or auto (one for each NUMA node or GPU)
    #[arg(long, value_name = "auto|N", value_parser = silos, allow_negative_numbers = true)]
    pub silos: Option<Silos>,
    /// Logical qubits
    #[arg(long, value_name = "N", value_parser = small, allow_negative_numbers = true)]
    pub streams: Option<u32>,
    /// Skew the streams' rates: stream n comes as often as (n + 1) to the minus this (1.1 is a usual one)
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub zipf: Option<f64>,
    /// Move a stream, drawn at random of those that take part in placement, or of all, to another silo so often: 1ms, 100us
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub move_every: Option<Duration>,
    /// Have a silo die so often, in turn, and come back half of that later: 1s, 200ms
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub kill_every: Option<Duration>,
    /// Answers later than this after their scheduled arrival count as late: 20us, 2ms
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub deadline: Option<Duration>,
    /// Decode long experiments by sliding windows of so many rounds to commit and to look ahead (best the code's distance
    /// each): 5,5; or whole: each shot as a whole
    #[arg(long, value_name = "C,B|whole", value_parser = window, allow_hyphen_values = true)]
    pub window: Option<Windows>,
    /// Let each shot come round by round, one each DURATION (1us); with --window, windows start as their rounds are there,
    /// and latency counts from the last one
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub round_period: Option<Duration>,
    /// Device for the predecode step: auto (a GPU where there is one), sim (the CPU stand-in), cuda (each silo a GPU of its
    /// own), or cuda:N (GPU N for all silos)
    #[arg(long, value_name = "auto|sim|cuda[:N]", value_parser = device)]
    pub device: Option<DeviceChoice>,
    /// Write predicted observables here, one record per shot in input order
    #[arg(long, value_name = "F")]
    pub predictions: Option<PathBuf>,
    /// Write one JSON line per answer here, in completion order; - is standard output
    #[arg(long, value_name = "F|-")]
    pub answers: Option<PathBuf>,
    /// Directory of profiles [default: the checkout's, else those built in]
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    /// Directory that run directories are made in [default: the checkout's logs, else $XDG_STATE_HOME/pinwheel]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Your own words for this run, kept in its report
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Of all runs, remove this one last
    #[arg(long)]
    pub keep: bool,
    /// Serve the board as OpenMetrics: a port of this machine, or an address with a port
    #[arg(long, value_name = "ADDR", value_parser = super::metrics::address)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// No console, even on a terminal
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub looks: super::looks::LooksArgs,
}

/// What `--device` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    Auto,
    Sim,
    Cuda { index: Option<u32> },
}

/// What `--window` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    Whole,
    Sliding(WindowRounds),
}

#[derive(Debug, ClapArgs)]
pub struct SimArgs {
    /// Seeds to rehearse, the last one excluded
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    pub seeds: Range<u64>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ProfilesArgs {
    #[command(subcommand)]
    pub action: ProfilesAction,
    /// Directory of profiles [default: the checkout's, else those built in]
    #[arg(long, value_name = "DIR", global = true)]
    pub profiles: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// All profiles with their summaries
    List,
    /// One profile as it is written
    Show {
        /// Name or path
        #[arg(value_name = "P")]
        profile: String,
    },
    /// Everything that is wrong with one profile
    Validate {
        /// Name or path
        #[arg(value_name = "P")]
        profile: String,
    },
    /// What differs, and whether it applies to a running engine or at a restart
    Diff {
        /// Name or path
        #[arg(value_name = "FROM")]
        from: String,
        /// Name or path
        #[arg(value_name = "TO")]
        to: String,
    },
}

/// Units of a duration and their nanoseconds, longest name first where one ends in another.
const UNITS_NS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];
/// Longest duration taken: a year.
const DURATION_NS_MAX: f64 = 366.0 * 86_400e9;

/// `10s`, `500ms`, `20us`, `1m`, `1.5h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let refuse = |found: &str| {
        format!("found {found}, expected a time above 0 with its unit; write it like 10s, 500ms, 20us or 1m")
    };
    let split = text.find(|c: char| c.is_alphabetic()).ok_or_else(|| refuse("no unit"))?;
    let (number, unit) = text.split_at(split);
    let Some((_, unit_ns)) = UNITS_NS.into_iter().find(|(name, _)| *name == unit) else {
        return Err(refuse(&format!("unit '{unit}'")));
    };
    let value: f64 = number.parse().map_err(|_| refuse(&format!("number '{number}'")))?;
    let ns = (value * unit_ns).round();
    match ns {
        1.0..=DURATION_NS_MAX => Ok(Duration::from_nanos(ns as u64)),
        _ if ns > DURATION_NS_MAX => Err(refuse("more than a year")),
        _ => Err(refuse("nothing above 0")),
    }
}

/// A rate above 0, `max` or `auto`.
pub fn rate(text: &str) -> Result<Rate, String> {
    let refuse =
        || "expected shots per second above 0 and at most 1e9, max, or auto; write it like --rate 50000".to_owned();
    match text {
        "max" => Ok(Rate::Max),
        "auto" => Ok(Rate::Auto),
        number => match number.parse::<f64>() {
            Ok(hz) if hz > 0.0 && hz <= 1e9 => Ok(Rate::Hz(hz)),
            _ => Err(refuse()),
        },
    }
}

/// A rate above 0, or `max` as an infinite one: where nothing is measured that `auto` could go by.
pub fn rate_or_max(text: &str) -> Result<f64, String> {
    match rate(text) {
        Ok(Rate::Hz(hz)) => Ok(hz),
        Ok(Rate::Max) => Ok(f64::INFINITY),
        Ok(Rate::Auto) | Err(_) => {
            Err("expected shots per second above 0 and at most 1e9, or max; auto is measured at a start only"
                .to_owned())
        }
    }
}

/// `C,B`, or `whole`. Their range is the profile's matter.
pub fn window(text: &str) -> Result<Windows, String> {
    if text == "whole" {
        return Ok(Windows::Whole);
    }
    let rounds = text.split_once(',').and_then(|(commit, buffer)| Some((commit.parse().ok()?, buffer.parse().ok()?)));
    let (commit_rounds, buffer_rounds) = rounds.ok_or_else(|| {
        "expected commit rounds and buffer rounds, whole numbers of 1 or more, or whole; write it like --window 5,5"
            .to_owned()
    })?;
    Ok(Windows::Sliding(WindowRounds { commit_rounds, buffer_rounds }))
}

/// `auto`, `sim`, `cuda` or `cuda:N`. Whether there is such a device is seen at the start.
pub fn device(text: &str) -> Result<DeviceChoice, String> {
    let refuse =
        || "expected auto, sim, cuda or cuda:N with the number of a GPU; write it like --device cuda:0".to_owned();
    match text {
        "auto" => Ok(DeviceChoice::Auto),
        "sim" => Ok(DeviceChoice::Sim),
        "cuda" => Ok(DeviceChoice::Cuda { index: None }),
        other => {
            let digits = other.strip_prefix("cuda:").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            let index = digits.and_then(|digits| digits.parse().ok()).ok_or_else(refuse)?;
            Ok(DeviceChoice::Cuda { index: Some(index) })
        }
    }
}

fn count(text: &str) -> Result<u64, String> {
    match text.replace('_', "").parse() {
        Ok(0) | Err(_) => Err("expected a whole number of shots, 1 or more; leave --count out for no limit".to_owned()),
        Ok(count) => Ok(count),
    }
}

fn small(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected a whole number, 1 or more; write it without sign or unit".to_owned())
}

fn silos(text: &str) -> Result<Silos, String> {
    if text == "auto" {
        return Ok(Silos::Auto);
    }
    let refused = |_| "expected auto, or a whole number, 1 or more; write it like --silos auto or --silos 2".to_owned();
    text.parse().map(Silos::Count).map_err(refused)
}

/// `A..B`, B excluded and above A.
pub fn seeds(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.filter(|range: &Range<u64>| !range.is_empty()).ok_or_else(|| {
        "expected two whole numbers, the second above the first; write it like --seeds 0..1000".to_owned()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Args, Command, DeviceChoice, Windows, device, duration, rate, seeds, silos, window};
    use clap::{CommandFactory, Parser};
    use pinwheel_engine::profile::{Rate, Silos, WindowRounds};
    use std::time::Duration;

    #[test]
    fn the_grammar_is_consistent() {
        Args::command().debug_assert();
    }

    /// An option that holds for all verbs of a command and an argument of one verb are told apart by their names alone.
    #[test]
    fn no_argument_has_the_name_of_an_option_of_the_command_above_it() {
        fn look(command: &clap::Command, above: &[String]) {
            let own = || command.get_arguments().map(|arg| arg.get_id().to_string());
            let taken: Vec<_> = own().filter(|name| above.contains(name)).collect();
            assert_eq!(taken, Vec::<String>::new(), "of {}", command.get_name());
            let global = command.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.get_id().to_string());
            let above: Vec<_> = above.iter().cloned().chain(global).collect();
            command.get_subcommands().for_each(|verb| look(verb, &above));
        }
        look(&Args::command(), &[]);
        for words in ["move 3 1 --to 7", "--to 7 move 3 1", "silo kill 1 --to 7", "rate 5 --why x --to 7"] {
            let words = format!("pinwheel ctl {words}");
            assert!(Args::try_parse_from(words.split_whitespace()).is_ok(), "{words}");
        }
    }

    #[test]
    fn durations_carry_their_unit() {
        for (text, ns) in [
            ("10s", 10_000_000_000),
            ("500ms", 500_000_000),
            ("20us", 20_000),
            ("20µs", 20_000),
            ("1m", 60_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("7ns", 7),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in
            ["10", "", "s", "-1s", "0s", "0.1ns", "10 s", "10x", "nans", "infs", "NaNs", "1e99h", "1s1s", "1e3s"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_above_zero_or_named() {
        assert_eq!(rate("max"), Ok(Rate::Max));
        assert_eq!(rate("auto"), Ok(Rate::Auto));
        assert_eq!(rate("5e4"), Ok(Rate::Hz(50_000.0)));
        for text in ["-5", "0", "NaN", "inf", "-inf", "1e10", "fast", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_value_parser_panic(text in "[0-9.eE+-]{0,8}[a-zµ .]{0,4}.{0,4}") {
            if let Ok(found) = duration(&text) {
                proptest::prop_assert!(!found.is_zero());
            }
            if let Ok(Rate::Hz(hz)) = rate(&text) {
                proptest::prop_assert!(hz > 0.0 && hz <= 1e9);
            }
            if let Ok(range) = seeds(&text) {
                proptest::prop_assert!(!range.is_empty());
            }
        }
    }

    #[test]
    fn windows_are_two_numbers_of_rounds_or_whole() {
        assert_eq!(window("5,7"), Ok(Windows::Sliding(WindowRounds { commit_rounds: 5, buffer_rounds: 7 })));
        assert_eq!(window("whole"), Ok(Windows::Whole));
        for text in ["", "5", "5,", ",5", "5,-1", "5,5,5", "5, 5", "none", "4294967296,1"] {
            assert!(window(text).unwrap_err().contains("--window 5,5"), "{text}");
        }
    }

    #[test]
    fn devices_are_named_and_numbered() {
        assert_eq!(device("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(device("sim"), Ok(DeviceChoice::Sim));
        assert_eq!(device("cuda"), Ok(DeviceChoice::Cuda { index: None }));
        assert_eq!(device("cuda:12"), Ok(DeviceChoice::Cuda { index: Some(12) }));
        for text in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "CUDA", "cuda:99999999999"] {
            assert!(device(text).unwrap_err().contains("--device cuda:0"), "{text}");
        }
    }

    #[test]
    fn silos_are_counted_or_left_to_the_machine() {
        assert_eq!([silos("auto"), silos("3")], [Ok(Silos::Auto), Ok(Silos::Count(3))]);
        for text in ["", "Auto", "one", "-1", "1.5", "99999999999"] {
            assert!(silos(text).unwrap_err().contains("--silos auto"), "{text}");
        }
    }

    #[test]
    fn seeds_are_a_range_that_holds_some() {
        assert_eq!(seeds("0..1000"), Ok(0..1000));
        for text in ["5", "5..5", "6..5", "..5", "5..", "-1..3", "a..b"] {
            assert!(seeds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_option_of_run_is_understood() {
        let live = "pinwheel run --dem d --input udp:127.0.0.1:7000 --allow 10.0.0.0/24,10.1.0.1 --m2d m";
        let Some(Command::Run(run)) = Args::try_parse_from(live.split_whitespace()).unwrap().command else {
            panic!("no run")
        };
        assert_eq!((run.input.unwrap().to_string().as_str(), run.allow.len()), ("udp:127.0.0.1:7000", 2));
        let words = "pinwheel run --profile p --dem d --shots - --observables o --format 01 --rate max --count 1_000 --duration 1m \
                     --silos 2 --streams 8 --zipf 1.1 --deadline 20us --window 5,5 --round-period 1us --device cuda:0 --predictions F --answers - --profiles a --logs b --label x --keep --metrics 0 --json --headless";
        let Some(Command::Run(run)) = Args::try_parse_from(words.split_whitespace()).unwrap().command else {
            panic!("no run")
        };
        assert_eq!((run.count, run.silos, run.streams), (Some(1_000), Some(Silos::Count(2)), Some(8)));
        assert_eq!(run.zipf, Some(1.1));
        assert!(run.json && run.headless && run.keep);
        assert!(run.metrics.is_some_and(|address| address.ip().is_loopback()));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for words in [
            "pinwheel run --input tcp:1",
            "pinwheel run --input shm:a --rate 5",
            "pinwheel run --allow 10.0.0.1",
            "pinwheel run --count 0",
            "pinwheel run --count -1",
            "pinwheel run --rate -5",
            "pinwheel run --duration 5",
        ] {
            assert!(Args::try_parse_from(words.split_whitespace()).is_err(), "{words}");
        }
        assert!(Args::try_parse_from("pinwheel profiles list --json".split_whitespace()).is_ok());
        assert!(Args::try_parse_from("pinwheel profiles --profiles d diff a b".split_whitespace()).is_ok());
    }
}
