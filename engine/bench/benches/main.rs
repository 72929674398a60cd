//! Pinwheel's benchmarks, each with its peer measured in the same run: `cargo bench -p
//! pinwheel-bench`.
//!
//! Prints the measurements of each case (minimum, median, maximum over its repetitions), then one
//! `BENCH` line per figure. Words on the command line select areas; `--quick` (or
//! `PINWHEEL_BENCH_QUICK=1`) makes a smoke run of under a minute; `--pages` stores the lines in
//! `engine/docs/bench.txt` and generates the book's page and plots from them; with areas named, the
//! lines of the other areas stay, and a note says when the named ones were measured. Bounds:
//! each area has a number of repetitions; `scrub` and `telemetry` write to the temporary directory
//! and remove their files.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "harness")]

mod arbiter;
mod channels;
mod contenders;
mod cudaq;
mod deques;
mod frame;
mod graphs;
mod hops;
#[allow(dead_code, unused_imports, reason = "its tests are run by pinwheel-lab")]
mod host_simulation;
mod hosts;
mod input;
mod jitter;
mod live;
mod matching;
mod measure;
mod overflow;
mod overhead;
mod pages;
mod path;
#[allow(dead_code, unused_imports, reason = "its tests are run by pinwheel-lab")]
mod path_simulation;
mod placement;
#[allow(dead_code, unused_imports, reason = "its tests are run by pinwheel-lab")]
mod placement_simulation;
mod predecode;
mod queues;
mod rings;
mod roles;
mod scale;
mod scrub;
mod shadow;
mod telemetry;
mod threads;
mod timer;
mod transfers;
mod window;

use measure::{Effort, Suite};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Adds an area's cases.
type Register = fn(&mut Suite);

/// Areas by the prefix of their figures' names.
const AREAS: [(&str, Register); 25] = [
    ("arbiter", arbiter::register),
    ("transfer", transfers::register),
    ("dispatch", path::register),
    ("overhead", overhead::register),
    ("scale", scale::register),
    ("frame", frame::register),
    ("hops", hops::register),
    ("jitter", jitter::register),
    ("cudaq", cudaq::register),
    ("live", live::register),
    ("queue", queues::register),
    ("ring", rings::register),
    ("histogram", queues::register_histogram),
    ("matching", matching::register),
    ("predecode", predecode::register),
    ("timer", timer::register),
    ("deque", deques::register),
    ("graph", graphs::register),
    ("window", window::register),
    ("placement", placement::register),
    ("hosts", hosts::register),
    ("overflow", overflow::register),
    ("scrub", scrub::register),
    ("telemetry", telemetry::register),
    ("shadow", shadow::register),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_quick = words.iter().any(|word| word == "--quick")
        || std::env::var_os("PINWHEEL_BENCH_QUICK").is_some_and(|value| value != "0");
    let effort = if is_quick { Effort::Quick } else { Effort::Full };
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?").to_string();
    let (mut lines, mut areas) = (Vec::new(), Vec::new());
    for (area, register) in AREAS {
        if wanted.is_empty() || wanted.iter().any(|word| area.contains(word.as_str())) {
            let mut suite = Suite::new(effort);
            register(&mut suite);
            lines.extend(suite.run());
            areas.push(area);
        }
    }
    println!();
    for line in &lines {
        println!("{line}");
    }
    if words.iter().any(|word| word == "--pages") {
        let run = Run { lines, effort: if is_quick { "a smoke run (--quick)" } else { "full" }, load };
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let text = if wanted.is_empty() { run.stored(&docs) } else { run.stored_with(&docs, &areas) };
        fs::write(docs.join("bench.txt"), &text).unwrap();
        for (name, content) in pages::files(&text) {
            fs::write(docs.join("src").join(name), content).unwrap();
        }
    }
}

/// The result of a run.
struct Run {
    lines: Vec<String>,
    effort: &'static str,
    /// The machine's load average before the run.
    load: String,
}

impl Run {
    /// The lines with their machine and date, beside the stored ones of a GPU and of Taskflow, which
    /// no area here measures.
    fn stored(&self, docs: &Path) -> String {
        let Run { lines, effort, load } = self;
        let (machine, date) = (machine(), date());
        let mut text = format!("# machine={machine}\n# date={date}\n# effort={effort}, load average {load} before\n");
        let stored = fs::read_to_string(docs.join("bench.txt")).unwrap_or_default();
        let of_others = |line: &&str| {
            let is_of_gpu = line.starts_with("BENCH name=gpu/") || line.starts_with("# area gpu=");
            is_of_gpu || line.contains(" peer=taskflow-")
        };
        for line in stored.lines().filter(of_others).chain(lines.iter().map(String::as_str)) {
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    /// The lines beside the stored ones of other areas than `areas`, with a note on these.
    fn stored_with(&self, docs: &Path, areas: &[&str]) -> String {
        let stored = fs::read_to_string(docs.join("bench.txt")).unwrap_or_default();
        let is_of = |line: &&str, area: &str| {
            if line.contains(" peer=taskflow-") {
                return false;
            }
            let name = line.strip_prefix("BENCH name=").and_then(|name| name.strip_prefix(area));
            name.is_some_and(|rest| rest.starts_with(['/', '_'])) || line.starts_with(&format!("# area {area}="))
        };
        let kept = |line: &&str| !areas.iter().any(|area| is_of(line, area));
        let (heads, others): (Vec<&str>, Vec<&str>) =
            stored.lines().filter(kept).partition(|line| line.starts_with('#'));
        let mut text = String::new();
        heads.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        for area in areas {
            let Run { effort, load, .. } = self;
            let (machine, date) = (machine(), date());
            let is_loaded = load.parse::<f64>().is_ok_and(|load| load > 0.5);
            let caveat = if is_loaded { "; the machine did other work, so only ratios mean something" } else { "" };
            let note = format!("{date}, {effort} effort, {machine}, load average {load} before the run{caveat}");
            text.push_str(&format!("# area {area}={note}\n"));
        }
        for line in others.into_iter().chain(self.lines.iter().map(String::as_str)) {
            text.push_str(&format!("{line}\n"));
        }
        text
    }
}

fn date() -> String {
    let date = Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
    String::from_utf8_lossy(&date).trim().to_string()
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    format!("{model}, {cores} cores for this process, Linux {}", system.trim())
}
