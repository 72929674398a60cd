//! `pinwheel graph`: runs a task graph, described in a file or bundled, and says what it cost.
//!
//! Runs on the main thread, which is the first worker, with the other workers on threads of their own until the graph is
//! over. Exit status 1 if a task failed or ran before one that it depends on.

use super::refusal::Refusal;
use super::{say, written};
use crate::report::grouped;
use clap::builder::RangedI64ValueParser;
use clap::{Args as ClapArgs, ValueEnum, value_parser};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::graph::described::{Described, Kernel};
use pinwheel_engine::graph::perform::{Report, perform, workers_for};
use pinwheel_engine::graph::{
    BATCH_MAX, Batch, Config, Deps, Event, Filter, Issue, Overflow, PERMITS_MAX, Placement, Ready, Start, Trace,
    WINDOW_TASKS_MAX, WORKERS_MAX, bundled, write_trace,
};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

/// Tasks of a bundled graph unless the command line says otherwise.
const TASKS: u32 = 100_000;

#[derive(Debug, ClapArgs)]
pub struct GraphArgs {
    /// A graph in RON, or one of chain, independent, tree, wavefront, random, matmul, attention, offload
    #[arg(value_name = "FILE|NAME")]
    pub graph: String,
    /// About how many tasks a bundled graph has
    #[arg(long, value_name = "N", default_value_t = TASKS, value_parser = from_1(bundled::TASKS_MAX), allow_negative_numbers = true)]
    pub tasks: u32,
    /// Workers of the processor's pool, this thread included
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = from_1(WORKERS_MAX), allow_negative_numbers = true)]
    pub workers: u32,
    /// How dependencies are found
    #[arg(long, value_name = "RULE", default_value = "overlap")]
    pub deps: DepsWord,
    /// In which order ready tasks are taken
    #[arg(long, value_name = "ORDER", default_value = "auto")]
    pub ready: ReadyWord,
    /// When the first task may run: immediate, after (all are submitted), or after so many
    #[arg(long, value_name = "WHEN", default_value = "immediate", value_parser = start, allow_negative_numbers = true)]
    pub start: Start,
    /// Tasks submitted and not retired
    #[arg(long, value_name = "N", default_value_t = 8_192, value_parser = from_1(WINDOW_TASKS_MAX), allow_negative_numbers = true)]
    pub window: u32,
    /// What happens beyond the window
    #[arg(long, value_name = "WORD", default_value = "stall")]
    pub overflow: OverflowWord,
    /// Tasks of a stream between dispatch and completion
    #[arg(long, value_name = "N", value_parser = from_1(PERMITS_MAX), allow_negative_numbers = true)]
    pub permits_per_stream: Option<u32>,
    /// Completions resolved together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_1(BATCH_MAX), allow_negative_numbers = true)]
    pub batch: u32,
    /// Send ready tasks to the worker of their stream
    #[arg(long)]
    pub by_stream: bool,
    /// Write when each task ran, and where, for Perfetto
    #[arg(long, value_name = "F")]
    pub trace: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum DepsWord {
    Exact,
    Overlap,
    Explicit,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ReadyWord {
    Fifo,
    Stream,
    Steal,
    Auto,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OverflowWord {
    Stall,
    Abort,
    Benchmark,
}

fn from_1(most: u32) -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=i64::from(most))
}

fn start(word: &str) -> Result<Start, String> {
    match word {
        "immediate" => Ok(Start::Immediate),
        "after" => Ok(Start::AfterOrchestration),
        number => match number.parse() {
            Ok(tasks @ 1..) => Ok(Start::Threshold(tasks)),
            _ => Err("expected immediate, after, or a number of tasks, 1 or more".to_owned()),
        },
    }
}

pub fn graph(args: &GraphArgs) -> Result<u8, Refusal> {
    let described = described(args)?;
    let config = config(args, &described);
    let clock = Clock::machine();
    let done = perform(&described, &config, &clock);
    let (report, events) =
        done.map_err(|error| Refusal::Content { about: args.graph.clone(), said: error.to_string() })?;
    if let Some(path) = &args.trace {
        write_events(path, &clock, &events)?;
    }
    let status = u8::from(report.failed > 0 || report.order_violations.is_some_and(|count| count > 0));
    let out = &mut io::stdout().lock();
    Ok(written(if args.json { say::json(out, &report) } else { say::text(out, &text(&report)) }, status))
}

fn described(args: &GraphArgs) -> Result<Described, Refusal> {
    if let Some(described) = bundled::bundled(&args.graph, args.tasks) {
        return Ok(described);
    }
    let text = std::fs::read_to_string(&args.graph).map_err(|error| {
        let expected = format!("a readable file, or one of {}", bundled::NAMES.join(", "));
        Refusal::unusable(format!("graph {}", args.graph), error.to_string(), expected, "name another one")
    })?;
    Described::parse(&text).map_err(|error| Refusal::Content { about: args.graph.clone(), said: error.to_string() })
}

fn config(args: &GraphArgs, described: &Described) -> Config {
    let window_tasks = args.window;
    Config {
        deps: match args.deps {
            DepsWord::Exact => Deps::InferTensorMapExact,
            DepsWord::Overlap => Deps::InferBytesOverlap,
            DepsWord::Explicit => Deps::Explicit,
        },
        ready: match args.ready {
            ReadyWord::Fifo => Ready::Fifo,
            ReadyWord::Stream => Ready::FifoPerStream,
            ReadyWord::Steal => Ready::WorkSteal,
            ReadyWord::Auto => Ready::Auto,
        },
        overflow: match args.overflow {
            OverflowWord::Stall => Overflow::Stall,
            OverflowWord::Abort => Overflow::Abort,
            OverflowWord::Benchmark => Overflow::Benchmark,
        },
        placement: if args.by_stream { Placement::ByStream } else { Placement::Releaser },
        issue: args.permits_per_stream.map_or(Issue::Open, Issue::PerStream),
        batch: Batch { threshold: args.batch, ..Config::default().batch },
        trace: if args.trace.is_some() { Trace::Cycles(Filter::default()) } else { Trace::Off },
        trace_events: described.tasks.len() as u32,
        workers: workers_for(described, args.workers),
        start: args.start,
        window_tasks,
        map_entries: Config::default().map_entries.max(window_tasks.saturating_mul(2)),
        ..Config::default()
    }
}

fn write_events(path: &PathBuf, clock: &Clock, events: &[Event]) -> Result<(), Refusal> {
    let write = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        write_trace(&mut file, clock, events.iter().map(|event| (0, event)), Kernel::name)?;
        io::Write::flush(&mut file)
    };
    write().map_err(|error| {
        let about = format!("--trace {}", path.display());
        Refusal::unusable(about, error.to_string(), "a file that can be written", "name another one")
    })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let or_unknown = |count: Option<u64>| count.map_or_else(|| "not checked".to_owned(), grouped);
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}: {} tasks, {} dependencies under way; {} by {}, {} workers",
        report.name,
        grouped(report.tasks),
        grouped(report.edges),
        report.policy,
        report.deps,
        report.workers
    );
    let replay = report.replay_ns_per_task.map_or_else(String::new, |nanos| format!(", {nanos:.1} replayed"));
    let _ = writeln!(
        text,
        "  {:.1} ns a task ({:.1} until the last was submitted{replay}); {} tasks a second",
        report.ns_per_task,
        report.submit_ns_per_task,
        grouped(report.tasks_per_s as u64)
    );
    let _ = writeln!(
        text,
        "  {} stolen, {} sweeps in vain, {} window stalls, {} waits for a permit",
        grouped(report.steals),
        grouped(report.steals_empty),
        grouped(report.window_stalls),
        grouped(report.gate_waits)
    );
    let _ = writeln!(
        text,
        "  critical path {} tasks; {} out of order, {} failed",
        or_unknown(report.critical_path_tasks.map(u64::from)),
        or_unknown(report.order_violations),
        grouped(report.failed)
    );
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::graph;
    use crate::cli::args::{Args, Command};
    use clap::Parser;

    fn run(words: &str) -> Result<u8, String> {
        let args = Args::try_parse_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        let Some(Command::Graph(args)) = args.command else { panic!("{words}") };
        graph(&args).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_graph_in_a_file_runs_and_leaves_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let (file, trace) = (folder.path().join("g.ron"), folder.path().join("t.json"));
        std::fs::write(
            &file,
            r#"Graph(name: "mine", tensors: [(4, 4, 4, 64)], tasks: [
                (kernel: Spin(100), writes: [(0, 0, 0, 2, 2)]),
                (kernel: Copy, reads: [(0, 1, 1, 2, 2)], writes: [(0, 2, 2, 2, 2)]),
            ])"#,
        )
        .unwrap();
        let (file, trace) = (file.to_str().unwrap(), trace.to_str().unwrap());
        assert_eq!(run(&format!("pinwheel graph {file} --json --ready steal --trace {trace}")), Ok(0));
        let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
        assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 2);
        assert_eq!(trace["traceEvents"][0]["name"], "spin");
    }

    #[test]
    fn what_cannot_be_run_is_said() {
        let said = |words: &str| run(words).unwrap_err();
        assert!(said("pinwheel graph nonsense").contains("one of chain, independent, tree"));
        assert!(said("pinwheel graph chain --start soon").contains("expected immediate, after, or a number"));
        // One more of the device's.
        assert!(said("pinwheel graph offload --tasks 10 --workers 256").contains("workers: found 257"));
        let over = said("pinwheel graph chain --tasks 5000 --window 16 --overflow abort --start after");
        assert!(over.contains("window overflow: found 16"), "{over}");
    }
}
