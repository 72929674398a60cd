//! `pinwheel`: the console and the command line of the engine.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the command line that calls the console joins in the next merge")]

mod source;
mod model;
mod msg;
mod update;
mod effect;
mod keymap;
mod view;
mod widgets;
mod theme;
mod term;

fn main() {}
