//! The command line's grammar: all commands. Each command's file declares its options.
//!
//! Pure: parses words to [`Args`].

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsStr;

/// Decodes syndromes of quantum error correction in real time, on pinned threads, under a live
/// console.
///
/// Without a command: runs profile lab under the console; without a terminal, prints progress lines
/// and a report.
#[derive(Debug, Parser)]
#[command(name = "pinwheel", version, infer_long_args = false)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decode shots: drawn from a model, or from a file, standard input or other processes
    Run(Box<super::run::args::RunArgs>),
    /// Simulate the engine in virtual time with injected faults, one run per seed
    Sim(super::sim::SimArgs),
    /// List, show, check and compare profiles
    Profiles(super::profiles::ProfilesArgs),
    /// Show which roles run on which threads and cores, without starting anything
    Plan(super::plan::PlanArgs),
    /// Show who uses which core: engines, other programs' pinned threads, load
    Cores(super::cores::CoresArgs),
    /// Measure what takes each core away, and attribute it: tasks, interrupts, hypervisor
    Noise(super::noise::NoiseArgs),
    /// Load the ownership arbiter alone: all silos request the same pages
    Arbiter(super::arbiter::ArbiterArgs),
    /// Check this machine against the needs of hot threads, and sign the result
    Check(super::check::CheckArgs),
    /// Send a file of shots to a running engine at a fixed rate, and measure the answers
    Send(super::send::SendArgs),
    /// Provoke real faults and check the verdicts; without names, list the drills
    Drill(super::drill::DrillArgs),
    /// Run a task graph from a file or a bundled one, and report its cost
    Graph(Box<super::graph::GraphArgs>),
    /// Open the console on an engine in another process
    Attach(super::attach::AttachArgs),
    /// Serve the console of a running engine to browsers
    Serve(super::serve::ServeArgs),
    /// Send a command to a running engine, and print its acknowledgement
    Ctl(super::ctl::CtlArgs),
    /// Show the hosts that share streams with a running engine, and place streams on them
    Hosts(super::hosts::HostsArgs),
    /// Start engines that share streams, on this machine, with a load, to try it out
    Cluster(super::cluster::ClusterArgs),
    /// Show a run's recording, in the console or as JSON
    Replay(super::replay::ReplayArgs),
    /// Show the board that a killed process left
    Postmortem(super::postmortem::PostmortemArgs),
    /// Collect all diagnostics of a running or frozen engine in a directory
    Dump(super::dump::DumpArgs),
    /// Compare two runs: rates with intervals, distributions, environment, profile
    Compare(super::compare::CompareArgs),
    /// Write a page that explains a run without the console: one HTML file, without a script
    Report(super::report::ReportArgs),
    /// Collect logical error rates of models and decoders in bulk, without an engine
    Collect(Box<super::collect::CollectArgs>),
    /// Write a model refitted to the shots of a run or of a file
    Fit(super::fit::FitArgs),
    /// Write a run's recording as a trace that Perfetto opens
    Trace(super::trace::TraceArgs),
    /// Check and measure each step of the GPU path on this machine; takes a minute or more
    GpuCheck(super::gpu_check::GpuCheckArgs),
    /// Write the shell's completions to standard output
    Completions(super::manual::CompletionsArgs),
    /// Write the manual page to standard output
    Man,
    /// Be the process of a decoder plugin; an engine starts it
    #[command(hide = true)]
    PluginHost {
        /// Process number of the engine
        engine: i32,
    },
}

/// The command that the words of a command line name, without options and arguments.
pub fn command_of(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let program = Args::command();
    let (mut command, mut name) = (&program, program.get_name().to_owned());
    for word in words.into_iter().skip(1) {
        let Some(verb) = command.find_subcommand(word) else { break };
        (command, name) = (verb, format!("{name} {}", verb.get_name()));
    }
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Args, Command};
    use clap::{CommandFactory, Parser};
    use pinwheel_engine::profile::Silos;

    #[test]
    fn the_grammar_is_consistent() {
        Args::command().debug_assert();
    }

    /// A global option of a command and an argument of its subcommand are distinguished by name
    /// only.
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
    fn every_option_of_run_is_understood() {
        let live = "pinwheel run --dem d --input udp:127.0.0.1:7000 --allow 10.0.0.0/24,10.1.0.1 --m2d m";
        let Some(Command::Run(run)) = Args::try_parse_from(live.split_whitespace()).unwrap().command else {
            panic!("no run")
        };
        assert_eq!((run.input.unwrap().to_string().as_str(), run.allow.len()), ("udp:127.0.0.1:7000", 2));
        let words = "pinwheel run --profile p --dem d --shots - --observables o --format 01 --rate max --count 1_000 --duration 1m \
                     --silos 2 --streams 8 --zipf 1.1 --deadline 20us --window 5,5 --round-period 1us --decoder matching --device cuda:0 --predictions F --answers - --profiles a --logs b --label x --keep --metrics 0 --json --headless";
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
