//! Options of `pinwheel run`, and the parsers of values that only they take.
//!
//! Pure. The module `request` checks the options against each other.

use crate::cli::console_options::ConsoleArgs;
use crate::cli::metrics;
use crate::cli::values::{decoder, duration, rate, shadow};
use clap::Args as ClapArgs;
use pinwheel_engine::board::layout::LABEL_BYTES_MAX;
use pinwheel_engine::code::Format;
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::profile::{Decoder, Rate, Shadow, Silos, Window, WindowRounds};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Default, ClapArgs)]
pub struct RunArgs {
    /// Profile: a name in the profiles directory or built in, or a path that ends in .ron [default:
    /// lab]
    #[arg(long, value_name = "P")]
    pub profile: Option<String>,
    /// Detector error model: Stim's .dem, or a bundled one by name: surface_d5, surface_d3,
    /// surface_d5@r50 (50 rounds)
    #[arg(long, value_name = "F")]
    pub dem: Option<PathBuf>,
    /// Shots to decode, detection events only; - reads standard input and drains at its end
    #[arg(long, value_name = "F")]
    pub shots: Option<PathBuf>,
    /// Take live shots from other processes: udp:ADDRESS:PORT, unix:PATH, shm:NAME, or cudaq:ADDRESS:PORT for clients
    /// of CUDA-Q's decoding server (with port 0, each decoder has a port of its own)
    #[arg(long, value_name = "udp:A|cudaq:A|unix:P|shm:N", conflicts_with_all = ["shots", "observables", "rate"], value_parser = LivePlace::parse)]
    pub input: Option<LivePlace>,
    /// Addresses or networks of senders to accept [default: this machine's]
    #[arg(long, value_name = "NET,NET", value_delimiter = ',', requires = "input")]
    pub allow: Vec<String>,
    /// Share the streams with engines of other hosts, as this file says: see pinwheel hosts. Needs a build with
    /// feature hosts
    #[arg(long, value_name = "F", conflicts_with_all = ["shots", "cudaq_config"])]
    pub hosts: Option<PathBuf>,
    /// Map from measurements to detectors and observables, where shots are measurements
    #[arg(long, value_name = "F")]
    pub m2d: Option<PathBuf>,
    /// Soft bytes of the shots: a second file, with one record for each shot. A record has one byte for each readout,
    /// which says how sure the readout is
    #[arg(long, value_name = "F", requires_all = ["shots", "soft_map"])]
    pub soft: Option<PathBuf>,
    /// Map from soft bytes to the errors that they are about, where shots may have soft bytes
    #[arg(long, value_name = "F")]
    pub soft_map: Option<PathBuf>,
    /// CUDA-Q's configuration of decoders, YAML: gives model, map and streams, takes calls from CUDA-Q's clients, and
    /// simulates no device latency [default input: cudaq:127.0.0.1:0]
    #[arg(long, value_name = "F", conflicts_with_all = ["dem", "m2d", "streams"])]
    pub cudaq_config: Option<PathBuf>,
    /// Bytes of a datagram of CUDA-Q's clients [default: 256]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub cudaq_slot_size: Option<u32>,
    /// Print the decoders' ports as the first line of standard output once they take calls, and their counters at the
    /// end, as CUDA-Q's decoding server does; no console
    #[arg(long)]
    pub ready_line: bool,
    /// True observables of the shots, to compare the answers with
    #[arg(long, value_name = "F")]
    pub observables: Option<PathBuf>,
    /// Format of shots, observables and predictions: b8, 01 or dets [default: b8]
    #[arg(long, value_name = "b8|01|dets")]
    pub format: Option<Format>,
    /// Total shots per second of all streams, or max, or auto (half the capacity measured in
    /// warm-up)
    #[arg(long, value_name = "HZ|max|auto", value_parser = rate, allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// End after this many shots
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub count: Option<u64>,
    /// End after this time: 10s, 500ms, 20us, 1m
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Number of complete pipelines, or auto (one for each NUMA node or GPU)
    #[arg(long, value_name = "auto|N", value_parser = silos, allow_negative_numbers = true)]
    pub silos: Option<Silos>,
    /// Number of streams; a stream is the shots of one logical qubit
    #[arg(long, value_name = "N", value_parser = small, allow_negative_numbers = true)]
    pub streams: Option<u32>,
    /// Zipf exponent S of the streams' rates: the rate of stream n is proportional to (n + 1)^-S
    /// (1.1 is common)
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub zipf: Option<f64>,
    /// Move a random stream to another silo at this interval: 1ms, 100us. Only streams that take part
    /// in placement are drawn; if none does, any stream
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub move_every: Option<Duration>,
    /// Stop one silo at this interval, in turn, and restart it after half of it: 1s, 200ms
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub kill_every: Option<Duration>,
    /// Answers later than this after their scheduled arrival count as late: 20us, 2ms
    #[arg(long, value_name = "D", value_parser = duration, allow_hyphen_values = true)]
    pub deadline: Option<Duration>,
    /// Decode long experiments in sliding windows of C rounds to commit and B rounds of look-ahead
    /// (best the code's distance each): 5,5; as a stream, each round added to the matching of those
    /// before it: stream:5,5; in blocks of N rounds that several workers match at once: blocks:50; or whole:
    /// each shot in one piece
    #[arg(long, value_name = "C,B|stream:C,B|blocks:N|whole", value_parser = window, allow_hyphen_values = true)]
    pub window: Option<Window>,
    /// Deliver each shot round by round, one round each DURATION (1us); with --window, a window
    /// starts when its rounds have arrived, and latency counts from the last round
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub round_period: Option<Duration>,
    /// Watch for single errors that become more or less frequent than the model says; pinwheel fit refits
    /// the model to what was counted
    #[arg(long)]
    pub watch_drift: bool,
    /// Decoder: matching; correlated (matching in two passes: more accurate, slower; whole shots only);
    /// union-find (faster, less accurate); lookup (a table, for small models; whole shots only); or
    /// plugin:PATH (a shared library with the deq decoder interface, in a process of its own;
    /// trusted-plugin:PATH runs it within the engine; whole shots only)
    #[arg(long, value_name = "matching|correlated|union-find|lookup|plugin:PATH", value_parser = decoder)]
    pub decoder: Option<Decoder>,
    /// Tell how much likelier each answer is than any other, in decibels: `gap_db` in --answers. Costs a second
    /// search for each shot; whole shots only, without a predecoder
    #[arg(long)]
    pub confidence: bool,
    /// Answers with a gap below DB say that they are not to be trusted; with --confidence, which it implies
    #[arg(long, value_name = "DB")]
    pub abstain_below: Option<u8>,
    /// Give one shot in N [default: 100] to a second decoder too, on a thread that no shot waits for, and
    /// compare: union-find,100
    #[arg(long, value_name = "DECODER[,N]", value_parser = shadow)]
    pub shadow: Option<Shadow>,
    /// Device for the predecode step: auto (a GPU where there is one, else none), none (the decode
    /// workers), sim (a simulated one), cuda (each silo a GPU of its own), or cuda:N (GPU N for all silos)
    #[arg(long, value_name = "auto|none|sim|cuda[:N]", value_parser = device)]
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
    /// Directory that run directories are made in [default: the checkout's logs, else
    /// $XDG_STATE_HOME/pinwheel]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// A label for this run, kept in its report
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub label: Option<String>,
    /// Remove this run only after all runs without --keep
    #[arg(long)]
    pub keep: bool,
    /// Serve the board as OpenMetrics: a port of this machine, or an address with a port
    #[arg(long, value_name = "ADDR", value_parser = metrics::address)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Drain when the process of this number ends, which started this one
    #[arg(long, value_name = "PID", hide = true)]
    pub ends_with: Option<i32>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// No console, even on a terminal
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub console: ConsoleArgs,
}

/// Value of `--device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    Auto,
    None,
    Sim,
    Cuda { index: Option<u32> },
}

/// Parses a label of at most [`LABEL_BYTES_MAX`] bytes.
fn label(text: &str) -> Result<String, String> {
    if text.len() > LABEL_BYTES_MAX {
        let found = text.len();
        return Err(format!("found {found} bytes, expected at most {LABEL_BYTES_MAX}; shorten the label"));
    }
    Ok(text.to_owned())
}

/// Parses `C,B`, `stream:C,B`, `blocks:N` or `whole`. The profile's schema checks the range.
pub fn window(text: &str) -> Result<Window, String> {
    if text == "whole" {
        return Ok(Window::None);
    }
    let refuse = || {
        "expected commit rounds and buffer rounds, whole numbers of 1 or more, rounds of a block, or whole; write it \
         like --window 5,5, --window stream:5,5 or --window blocks:50"
            .to_owned()
    };
    if let Some(rounds) = text.strip_prefix("blocks:") {
        return rounds.parse().map(Window::Blocks).map_err(|_| refuse());
    }
    let (is_stream, sizes) = text.strip_prefix("stream:").map_or((false, text), |sizes| (true, sizes));
    let rounds = sizes.split_once(',').and_then(|(commit, buffer)| Some((commit.parse().ok()?, buffer.parse().ok()?)));
    let (commit_rounds, buffer_rounds) = rounds.ok_or_else(refuse)?;
    let rounds = WindowRounds { commit_rounds, buffer_rounds };
    Ok(if is_stream { Window::Stream(rounds) } else { Window::Some(rounds) })
}

/// Parses `auto`, `none`, `sim`, `cuda` or `cuda:N`. The engine's start checks whether the device exists.
pub fn device(text: &str) -> Result<DeviceChoice, String> {
    let refuse = || {
        "expected auto, none, sim, cuda or cuda:N with the number of a GPU; write it like --device cuda:0".to_owned()
    };
    match text {
        "auto" => Ok(DeviceChoice::Auto),
        "none" => Ok(DeviceChoice::None),
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
        Ok(0) | Err(_) => Err("expected a whole number of shots, 1 or more; omit --count for no limit".to_owned()),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{DeviceChoice, device, silos, window};
    use pinwheel_engine::profile::{Silos, Window, WindowRounds};

    #[test]
    fn windows_are_two_numbers_of_rounds_or_whole() {
        assert_eq!(window("5,7"), Ok(Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 7 })));
        let stream = Window::Stream(WindowRounds { commit_rounds: 5, buffer_rounds: 7 });
        assert_eq!(window("stream:5,7"), Ok(stream));
        assert_eq!(window("whole"), Ok(Window::None));
        assert_eq!(window("blocks:50"), Ok(Window::Blocks(50)));
        for text in [
            "",
            "5",
            "5,",
            ",5",
            "5,-1",
            "5,5,5",
            "5, 5",
            "none",
            "stream",
            "stream:5",
            "5,stream:5",
            "4294967296,1",
            "blocks:",
            "blocks:5,5",
        ] {
            assert!(window(text).unwrap_err().contains("--window 5,5"), "{text}");
        }
    }

    #[test]
    fn devices_are_named_and_numbered() {
        assert_eq!(device("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(device("none"), Ok(DeviceChoice::None));
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
}
