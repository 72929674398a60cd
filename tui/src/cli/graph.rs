//! `pinwheel graph`: runs a task graph from a file or a bundled one, and reports its cost.
//!
//! Runs on the main thread, which is the first worker; each other worker has its own thread until
//! the graph ends. Exit status 1 if a task failed or ran before a task that it depends on.

use super::distinct_files::require_distinct;
use super::refusal::{Refusal, require_threads};
use super::say::{self, Print, counted};
use clap::builder::{PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use clap::{Args as ClapArgs, value_parser};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::files;
use pinwheel_engine::graph::{
    BATCH_MAX, Batch, Config, Deps, Event, Filter, Issue, Overflow, PERMITS_MAX, Placement, Ready, Start, Trace,
    WINDOW_TASKS_MAX, WORKERS_MAX, write_trace,
};
use pinwheel_engine::record::Output;
use pinwheel_lab::graphs::bundled;
use pinwheel_lab::graphs::graph_spec::{GraphSpec, Kernel};
use pinwheel_lab::graphs::run::{Report, run_graph, workers_for};
use pinwheel_report::report::grouped;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Default number of tasks of a bundled graph.
const TASKS: u32 = 100_000;
/// Largest graph file.
const GRAPH_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, ClapArgs)]
pub struct GraphArgs {
    /// A graph in RON, or one of chain, independent, tree, wavefront, random, matmul, attention,
    /// offload
    #[arg(value_name = "FILE|NAME")]
    pub graph: String,
    /// Approximate number of tasks of a bundled graph
    #[arg(long, value_name = "N", default_value_t = TASKS, value_parser = from_1(bundled::TASKS_MAX), allow_negative_numbers = true)]
    pub tasks: u32,
    /// Workers of the CPU pool, including this thread
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = from_1(WORKERS_MAX), allow_negative_numbers = true)]
    pub workers: u32,
    /// How dependencies are found
    #[arg(long, value_name = "RULE", default_value = "overlap", value_parser = one_of(&DEPS))]
    pub deps: Deps,
    /// Order in which ready tasks run
    #[arg(long, value_name = "ORDER", default_value = "auto", value_parser = one_of(&READY))]
    pub ready: Ready,
    /// When the first task may run: immediate, after (all are submitted), or after N are submitted
    #[arg(long, value_name = "WHEN", default_value = "immediate", value_parser = start, allow_negative_numbers = true)]
    pub start: Start,
    /// Most tasks submitted but not retired
    #[arg(long, value_name = "N", default_value_t = 8_192, value_parser = from_1(WINDOW_TASKS_MAX), allow_negative_numbers = true)]
    pub window: u32,
    /// Behaviour when the window is full
    #[arg(long, value_name = "WORD", default_value = "stall", value_parser = one_of(&OVERFLOW))]
    pub overflow: Overflow,
    /// Most tasks of a stream between dispatch and completion
    #[arg(long, value_name = "N", value_parser = from_1(PERMITS_MAX), allow_negative_numbers = true)]
    pub permits_per_stream: Option<u32>,
    /// Completions resolved in one batch
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_1(BATCH_MAX), allow_negative_numbers = true)]
    pub batch: u32,
    /// Send ready tasks to the worker of their stream
    #[arg(long)]
    pub by_stream: bool,
    /// Write the time and worker of each task as a trace for Perfetto
    #[arg(long, value_name = "F")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub print: Print,
}

const DEPS: [(&str, Deps); 3] =
    [("exact", Deps::InferTensorMapExact), ("overlap", Deps::InferBytesOverlap), ("explicit", Deps::Explicit)];
const READY: [(&str, Ready); 4] =
    [("fifo", Ready::Fifo), ("stream", Ready::FifoPerStream), ("steal", Ready::WorkSteal), ("auto", Ready::Auto)];
const OVERFLOW: [(&str, Overflow); 3] =
    [("stall", Overflow::Stall), ("abort", Overflow::Abort), ("benchmark", Overflow::Benchmark)];

/// Parses one of these words; clap lists them.
fn one_of<T: Copy + Send + Sync>(words: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(words.iter().map(|(name, _)| *name));
    names.try_map(|word| words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or("no such word"))
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

/// Most threads whose start is tested before a graph runs.
const THREADS_TRIED_MAX: usize = 1024;

pub fn graph(args: &GraphArgs) -> Result<u8, Refusal> {
    let trace = args.trace.as_deref();
    let outputs: Vec<_> = trace.iter().map(|path| ("--trace", *path)).collect();
    require_distinct(&[("the graph", Path::new(&args.graph))], &outputs)?;
    let spec = spec(args)?;
    let trace = trace.map(|path| Ok::<_, Refusal>((path, Output::file(path, "--trace")?))).transpose()?;
    let config = config(args, &spec);
    require_threads("graph", THREADS_TRIED_MAX.min(args.workers as usize))?;
    let clock = Clock::machine();
    let done = run_graph(&spec, &config, &clock);
    let (report, events) =
        done.map_err(|error| Refusal::Content { about: args.graph.clone(), said: error.to_string() })?;
    let mut status = u8::from(report.failed > 0 || report.order_violations.is_some_and(|count| count > 0));
    if let Some((path, output)) = trace
        && let Err(error) = write_events(output, &clock, &events)
    {
        say::people(&format!(
            "pinwheel: --trace {}: cannot be written ({error}); free space there or name another file",
            path.display()
        ));
        status = 1;
    }
    Ok(args.print.to_stdout(&report, || text(&report), status))
}

fn spec(args: &GraphArgs) -> Result<GraphSpec, Refusal> {
    if let Some(spec) = bundled::bundled(&args.graph, args.tasks) {
        return Ok(spec);
    }
    let text = files::read_named_text(Path::new(&args.graph), GRAPH_BYTES_MAX).map_err(|error| {
        let expected = format!("a readable file, or one of {}", bundled::NAMES.join(", "));
        Refusal::unusable(format!("graph {}", args.graph), error.to_string(), expected, "name another one")
    })?;
    GraphSpec::parse(&text).map_err(|error| Refusal::Content { about: args.graph.clone(), said: error.to_string() })
}

fn config(args: &GraphArgs, spec: &GraphSpec) -> Config {
    let window_tasks = args.window;
    Config {
        deps: args.deps,
        ready: args.ready,
        overflow: args.overflow,
        placement: if args.by_stream { Placement::ByStream } else { Placement::Releaser },
        issue: args.permits_per_stream.map_or(Issue::Open, Issue::PerStream),
        batch: Batch { threshold: args.batch, ..Config::default().batch },
        trace: if args.trace.is_some() { Trace::Cycles(Filter::default()) } else { Trace::Off },
        trace_events: spec.tasks.len() as u32,
        workers: workers_for(spec, args.workers),
        start: args.start,
        window_tasks,
        map_entries: Config::default().map_entries.max(window_tasks.saturating_mul(2)),
        ..Config::default()
    }
}

fn write_events(mut output: Output, clock: &Clock, events: &[Event]) -> io::Result<()> {
    write_trace(&mut output, clock, events.iter().map(|event| (0, event)), Kernel::name)?;
    output.commit()
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let order = report.critical_path_tasks.zip(report.order_violations).map_or_else(
        || "order not checked (too many tasks)".to_owned(),
        |(path, wrong)| format!("critical path {}; {} out of order", counted(path.into(), "task"), grouped(wrong)),
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}: {}, {} dependencies under way; {} by {}, {}",
        report.name,
        counted(report.tasks, "task"),
        grouped(report.edges),
        report.policy,
        report.deps,
        counted(report.workers as u64, "worker")
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
        "  {} stolen, {} that found nothing, {}, {} for a permit",
        grouped(report.steals),
        counted(report.steals_empty, "sweep"),
        counted(report.window_stalls, "window stall"),
        counted(report.gate_waits, "wait")
    );
    let _ = writeln!(text, "  {order}, {} failed", grouped(report.failed));
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
        // One more thread for the device.
        assert!(said("pinwheel graph offload --tasks 10 --workers 256").contains("workers: found 257"));
        let over = said("pinwheel graph chain --tasks 5000 --window 16 --overflow abort --start after");
        assert!(over.contains("window full: 16 tasks"), "{over}");
    }
}
