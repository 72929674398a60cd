//! `pinwheel`: the console and the command line of the engine.
#![forbid(unsafe_code)]

fn main() {}
