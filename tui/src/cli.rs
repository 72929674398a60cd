//! The command line: parses a command, runs it, and returns the exit status.
//!
//! Runs on the main thread. Exit status: 0 for success, 1 when the command ran but found a problem,
//! 2 for unusable input or environment (with one sentence on standard error), 128 + signal after a
//! signal with a clean drain. Never calls `exit`: every path returns, so that open files are
//! closed.

mod distinct_files;
mod arbiter;
mod args;
mod attach;
mod check;
mod collect;
mod compare;
mod fit;
mod cores;
mod ctl;
mod cudaq;
mod dump;
mod engines;
mod gpu_check;
mod drill;
mod graph;
mod hosts;
mod cluster;
mod input;
mod load;
mod console_options;
mod manual;
mod metrics;
mod noise;
mod measurements;
mod places;
mod plan;
mod postmortem;
mod profiles;
mod refusal;
mod replay;
mod report;
mod request;
mod run;
mod runs;
mod say;
mod send;
mod serve;
mod shots;
mod soft;
mod disturbances;
mod signals;
mod sim;
mod screen_output;
mod trace;
mod values;
mod watch;

use args::{Args, Command};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use pinwheel_engine::board::fatal;
use pinwheel_engine::decode::plugin;
use pinwheel_engine::host::limit;
use places::UserPaths;
use refusal::{Refusal, UNUSABLE};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Smallest main-thread stack that is accepted. Release builds need 128 KiB, debug builds more.
const STACK_BYTES_MIN: u64 = 1 << 20;

/// Waits for `span`. Every thread of the command line is cold.
#[expect(clippy::disallowed_methods, reason = "no hot thread calls it")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Runs the command that the command line names.
pub fn main() -> ExitCode {
    if let Some(found) = limit::stack_bytes().filter(|found| *found < STACK_BYTES_MIN) {
        // Kept simple, because little stack is left.
        say::people(&format!(
            "pinwheel: found a stack limit of {} KiB, expected at least {}; raise it (ulimit -s)",
            found / 1024,
            STACK_BYTES_MIN / 1024
        ));
        return ExitCode::from(UNUSABLE);
    }
    // Without handlers a fatal signal ends the program without a report.
    let _ = fatal::install();
    // With this handler a write beyond the file-size limit returns an error instead of ending the
    // program.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    ExitCode::from(read_and_perform())
}

/// Parses and runs the command line, and prints a refusal; returns the exit status.
#[inline(never)]
fn read_and_perform() -> u8 {
    let done = match Args::try_parse() {
        Ok(args) => perform(args),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            // A closed output is no failure of `--help`.
            let _ = error.print();
            Ok(0)
        }
        Err(error) => Err(refusal::usage(&error, &args::command_of(std::env::args_os()))),
    };
    done.unwrap_or_else(|refusal| {
        say::people(&format!("pinwheel: {}", refusal::sentence(&refusal)));
        UNUSABLE
    })
}

fn perform(args: Args) -> Result<u8, Refusal> {
    let user_paths = UserPaths::of_process();
    match args.command {
        None => run::run(&run::args::RunArgs::default(), &user_paths),
        Some(Command::Run(args)) => run::run(&args, &user_paths),
        Some(Command::Sim(args)) => sim::sim(&args),
        Some(Command::Profiles(args)) => profiles::profiles(&args, &user_paths),
        Some(Command::Plan(args)) => plan::plan(&args, &user_paths),
        Some(Command::Cores(args)) => cores::cores(&args),
        Some(Command::Noise(args)) => noise::noise(&args),
        Some(Command::Arbiter(args)) => arbiter::arbiter(&args, &user_paths),
        Some(Command::Check(args)) => check::check(&args, &user_paths),
        Some(Command::Replay(args)) => replay::replay(&args, &user_paths),
        Some(Command::Postmortem(args)) => postmortem::postmortem(&args, &user_paths),
        Some(Command::Attach(args)) => attach::attach(&args, &user_paths),
        Some(Command::Serve(args)) => serve::serve(&args),
        Some(Command::Ctl(args)) => ctl::ctl(&args),
        Some(Command::Hosts(args)) => hosts::hosts(&args),
        Some(Command::Cluster(args)) => cluster::cluster(&args),
        Some(Command::Dump(args)) => dump::dump(&args, &user_paths),
        Some(Command::Compare(args)) => compare::compare(&args, &user_paths),
        Some(Command::Report(args)) => report::report(&args, &user_paths),
        Some(Command::Collect(args)) => collect::collect(&args),
        Some(Command::Fit(args)) => fit::fit(&args, &user_paths),
        Some(Command::Trace(args)) => trace::trace(&args, &user_paths),
        Some(Command::Send(args)) => send::send(&args),
        Some(Command::Drill(args)) => drill::drill(&args),
        Some(Command::Graph(args)) => graph::graph(&args),
        Some(Command::GpuCheck(args)) => gpu_check::gpu_check(&args),
        Some(Command::Completions(args)) => Ok(manual::completions(&args, &Args::command())),
        Some(Command::Man) => Ok(manual::man(Args::command())),
        Some(Command::PluginHost { engine }) => plugin::host(engine)
            .map(|()| 0)
            .map_err(|said| Refusal::Content { about: plugin::HOST_COMMAND.to_owned(), said }),
    }
}

#[cfg(test)]
mod tests;
