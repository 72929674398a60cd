//! `pinwheel`: the console and the command line of the engine.
#![forbid(unsafe_code)]

mod cli;
mod engine;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
