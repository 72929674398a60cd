//! A signal while the program still loads: there is nothing to drain, and it ends at once.

use crate::world::{World, until, word};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};

/// `O_NONBLOCK` of Linux: a FIFO without a reader is refused instead of waited for.
const NONBLOCK: i32 = 0o4000;

fn fifo(world: &World, name: &str) -> std::path::PathBuf {
    let path = world.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Ends the child at the first signal, with this status.
#[track_caller]
fn ends_at_the_first(mut child: Child, signal: Signal, status: i32, words: &str) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    until(&format!("{words}: the end after one signal"), || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(status), "{words}");
}

#[test]
fn the_first_signal_while_the_input_is_loaded_ends_the_program_at_once() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        for words in ["run --headless --dem FIFO", "run --headless --dem m.dem --shots FIFO"] {
            let world = World::new();
            world.put("m.dem", "error(0.1) D0 L0\n");
            let pipe = fifo(&world, "pipe");
            let words = words.replace("FIFO", &word(&pipe));
            let child = world.command(&words).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
            let mut writer = None;
            until("the program reading the FIFO", || {
                writer = OpenOptions::new().write(true).custom_flags(NONBLOCK).open(&pipe).ok();
                writer.is_some()
            });
            ends_at_the_first(child, signal, status, &words);
            assert_eq!(world.files(), ["m.dem", "pipe"], "{words} left something behind");
        }
    }
}

#[test]
fn the_first_signal_while_an_output_waits_for_its_reader_ends_the_program_and_leaves_nothing() {
    let world = World::new();
    world.put("m.dem", "error(0.1) D0 L0\n");
    world.put("s.b8", [1, 0, 1]);
    fifo(&world, "pipe");
    let words = "run --headless --dem m.dem --shots s.b8 --predictions p --answers pipe";
    let child = world.command(words).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    // The handlers are installed before the model is read; after that only the FIFO makes it wait.
    let status = format!("/proc/{}/status", child.id());
    until("the program waiting for a reader", || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
        let caught = u64::from_str_radix(&field("SigCgt:"), 16).unwrap_or(0);
        caught & (1 << (Signal::TERM.as_raw() - 1)) != 0 && field("State:").starts_with('S')
    });
    ends_at_the_first(child, Signal::TERM, 143, words);
    assert_eq!(world.files(), ["m.dem", "pipe", "s.b8"]);
}
