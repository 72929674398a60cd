//! The command line: what was asked, whether it can be done, and the exit status.
//!
//! Runs on the main thread. Exit status: 0 done and sound, 1 done but something is wrong, 2 unusable input or
//! environment (one sentence on standard error), 128 + signal after a signal with a clean drain. Bounded by one command.
//! Never exits by itself: every path returns, so that what was opened is closed.

mod arbiter;
mod args;
mod attach;
mod check;
mod compare;
mod cores;
mod ctl;
mod dump;
mod engines;
mod gpu_check;
mod drill;
mod graph;
mod input;
mod load;
mod looks;
mod manual;
mod metrics;
mod measured;
mod places;
mod plan;
mod postmortem;
mod profiles;
mod refusal;
mod replay;
mod request;
mod run;
mod runs;
mod say;
mod send;
mod shuffle;
mod signals;
mod sim;
mod still;
mod trace;
mod watch;

use args::{Args, Command, RunArgs};
use clap::Parser;
use clap::error::ErrorKind;
use pinwheel_engine::board::fatal;
use places::Surroundings;
use refusal::Refusal;
use std::process::ExitCode;

/// Unusable input or environment.
const UNUSABLE: u8 = 2;

/// Does what the command line asks.
pub fn main() -> ExitCode {
    // Where the system refuses the handlers, such an end is as bare as without them.
    let _ = fatal::install();
    let done = match Args::try_parse() {
        Ok(args) => perform(args),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            // Help that nobody reads is no failure.
            let _ = error.print();
            Ok(0)
        }
        Err(error) => Err(refusal::usage(&error)),
    };
    ExitCode::from(done.unwrap_or_else(|refusal| {
        say::people(&format!("pinwheel: {refusal}"));
        UNUSABLE
    }))
}

fn perform(args: Args) -> Result<u8, Refusal> {
    let around = Surroundings::of_process();
    match args.command {
        None => run::run(&RunArgs::default(), &around),
        Some(Command::Run(args)) => run::run(&args, &around),
        Some(Command::Sim(args)) => sim::sim(&args),
        Some(Command::Profiles(args)) => profiles::profiles(&args, &around),
        Some(Command::Plan(args)) => plan::plan(&args, &around),
        Some(Command::Cores(args)) => cores::cores(&args),
        Some(Command::Arbiter(args)) => arbiter::arbiter(&args, &around),
        Some(Command::Check(args)) => check::check(&args, &around),
        Some(Command::Replay(args)) => replay::replay(&args, &around),
        Some(Command::Postmortem(args)) => postmortem::postmortem(&args, &around),
        Some(Command::Attach(args)) => attach::attach(&args, &around),
        Some(Command::Ctl(args)) => ctl::ctl(&args),
        Some(Command::Dump(args)) => dump::dump(&args, &around),
        Some(Command::Compare(args)) => compare::compare(&args, &around),
        Some(Command::Trace(args)) => trace::trace(&args, &around),
        Some(Command::Send(args)) => send::send(&args),
        Some(Command::Drill(args)) => drill::drill(&args),
        Some(Command::Graph(args)) => graph::graph(&args),
        Some(Command::GpuCheck(args)) => gpu_check::gpu_check(&args),
        Some(Command::Completions(args)) => Ok(manual::completions(&args)),
        Some(Command::Man) => Ok(manual::man()),
    }
}

/// The exit status of a command whose result was written, or could not be.
fn written(result: std::io::Result<()>, status: u8) -> u8 {
    match result {
        Ok(()) => status,
        Err(error) => {
            say::people(&format!(
                "pinwheel: standard output: found it not writable ({error}), expected room for the result; free some"
            ));
            1
        }
    }
}
