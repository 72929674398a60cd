//! Pinwheel's benchmarks, each with its peer measured in the same run: `cargo bench -p
//! pinwheel-bench`.
//!
//! Prints the measurements of each case (minimum, median, maximum over its repetitions), then one
//! `BENCH` line per figure. Words on the command line select areas; `--quick` (or
//! `PINWHEEL_BENCH_QUICK=1`) makes a smoke run of under a minute; `--pages` stores the lines of a
//! full run in `engine/docs/bench.txt` and generates the book's page and plots from them. Bounds:
//! each area has a number of repetitions; `scrub` and `telemetry` write to the temporary directory
//! and remove their files.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "harness")]

mod arbiter;
mod channels;
mod contenders;
mod deques;
mod frame;
mod graphs;
mod hops;
mod input;
mod jitter;
mod live;
mod matching;
mod measure;
mod overflow;
mod overhead;
mod pages;
mod path;
mod placement;
mod predecode;
mod queues;
mod rings;
mod roles;
mod scrub;
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
const AREAS: [(&str, Register); 21] = [
    ("arbiter", arbiter::register),
    ("transfer", transfers::register),
    ("dispatch", path::register),
    ("overhead", overhead::register),
    ("frame", frame::register),
    ("hops", hops::register),
    ("jitter", jitter::register),
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
    ("overflow", overflow::register),
    ("scrub", scrub::register),
    ("telemetry", telemetry::register),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_quick = words.iter().any(|word| word == "--quick")
        || std::env::var_os("PINWHEEL_BENCH_QUICK").is_some_and(|value| value != "0");
    let effort = if is_quick { Effort::Quick } else { Effort::Full };
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let mut lines = Vec::new();
    for (area, register) in AREAS {
        if wanted.is_empty() || wanted.iter().any(|word| area.contains(word.as_str())) {
            let mut suite = Suite::new(effort);
            register(&mut suite);
            lines.extend(suite.run());
        }
    }
    println!();
    for line in &lines {
        println!("{line}");
    }
    if words.iter().any(|word| word == "--pages") {
        assert!(wanted.is_empty(), "--pages measures all areas; name none");
        write_pages(&lines, is_quick);
    }
}

/// Stores the lines with their machine and date, and generates the page from them.
fn write_pages(lines: &[String], is_quick: bool) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let date = Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let head = format!(
        "# machine={model}, {cores} cores for this process, Linux {}\n# date={}\n# effort={}\n",
        system.trim(),
        String::from_utf8_lossy(&date).trim(),
        if is_quick { "a smoke run (--quick)" } else { "full" },
    );
    let text = format!("{head}{}\n", lines.join("\n"));
    fs::write(docs.join("bench.txt"), &text).unwrap();
    for (name, content) in pages::files(&text) {
        fs::write(docs.join("src").join(name), content).unwrap();
    }
}
