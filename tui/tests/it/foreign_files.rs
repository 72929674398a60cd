//! Files that somebody else has put where the program looks: none is waited for, followed or copied.

use crate::world::{DEADLINE, Ran, World, engine};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs it to its end, or fails when it hangs.
#[track_caller]
fn run_in_time(world: &World, words: &str) -> Ran {
    let child = world.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait_with_output().unwrap()));
    let Ok(output) = end.recv_timeout(DEADLINE) else {
        kill_process(pid, Signal::KILL).unwrap();
        panic!("{words} hangs");
    };
    Ran::new(words, output)
}

#[test]
fn a_fifo_a_link_and_a_directory_named_like_boards_hang_nobody_and_are_named_once() {
    let _one = engine();
    let world = World::new();
    fs::create_dir(world.path("shm")).unwrap();
    make_fifo(&world.path("shm/board-1"));
    fs::create_dir(world.path("shm/board-2")).unwrap();
    symlink("/dev/zero", world.path("shm/board-3")).unwrap();
    for words in ["attach --json", "attach 1 --json", "ctl status", "postmortem", "postmortem 1", "dump", "dump 1"] {
        let ran = run_in_time(&world, words).exits(2);
        for (name, kind) in [("board-1", "FIFO"), ("board-2", "directory"), ("board-3", "symbolic link")] {
            let said = format!("{name} is ignored: it is a {kind} of user");
            assert_eq!(ran.err.matches(&said).count(), 1, "{words}: {}", ran.err);
        }
    }
    run_in_time(&world, "run --profile shared --headless --count 10 --logs logs").exits(0);
    run_in_time(&world, "cores --json").exits(0);
}
