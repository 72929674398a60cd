//! `pinwheel`: the console and the command line of the engine.
#![forbid(unsafe_code)]

mod named;
mod source;
mod model;
mod msg;
mod update;
mod effect;
mod keymap;
mod view;
mod widgets;
mod theme;
mod settings;
mod term;

mod cli;

use pinwheel_engine::engine::Allocator;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    cli::main()
}

#[cfg(test)]
mod tests;
