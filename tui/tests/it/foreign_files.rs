//! Files that somebody else has put where the program looks: none is waited for, followed or copied.

use crate::attach::Headless;
use crate::world::{DEADLINE, Ran, World, engine};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
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
fn a_fifo_a_link_and_a_directory_named_like_boards_are_not_waited_for_and_named_once() {
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

#[test]
fn links_and_fifos_in_a_run_are_neither_followed_nor_waited_for_and_a_dump_is_for_its_owner_alone() {
    let _one = engine();
    let world = World::new();
    let secret = world.put("secret", "root's own words\n");
    let mut headless = Headless::start(&world);
    let run = fs::read_dir(world.path("logs")).unwrap().next().unwrap().unwrap().path();
    for name in ["events.jsonl", "profile.ron", "manifest.json", "recording.pwt"] {
        let _ = fs::remove_file(run.join(name));
    }
    symlink(&secret, run.join("events.jsonl")).unwrap();
    symlink(&secret, run.join("recording.pwt")).unwrap();
    make_fifo(&run.join("manifest.json"));
    make_fifo(&run.join("profile.ron"));
    run_in_time(&world, "attach --json").exits(0);
    let told = run_in_time(&world, "dump --json -o dump").exits(0).json();
    let missing = |what: &str| {
        let of = |entry: &&Value| entry["what"] == what;
        told["missing"].as_array().unwrap().iter().find(of).unwrap_or_else(|| panic!("{what}: {told}"))["why"]
            .to_string()
    };
    assert!(missing("run/events.jsonl").contains("symbolic link"), "{told}");
    assert!(missing("run/recording.pwt").contains("symbolic link"), "{told}");
    assert!(missing("run/manifest.json").contains("FIFO") && missing("run/profile.ron").contains("FIFO"), "{told}");
    let mode = |name: &str| fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("dump"), mode("dump/run"), mode("dump/board.json"), mode("dump/board")),
        (0o700, 0o700, 0o600, 0o600)
    );
    assert!(!world.path("dump/run/events.jsonl").exists());
    headless.0.kill().unwrap();
    headless.0.wait().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    for words in [format!("replay {name} --logs logs --json"), format!("compare {name} {name} --logs logs --json")] {
        run_in_time(&world, &words).exits(2);
    }
}

#[test]
fn a_run_of_another_user_is_read_as_that_users_and_its_owner_is_said() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make another user's run");
        return;
    }
    let _one = engine();
    let world = World::new();
    world.run("run --profile shared --headless --count 2000 --rate 2000 --logs logs").exits(0);
    let run = fs::read_dir(world.path("logs")).unwrap().next().unwrap().unwrap().path();
    for entry in fs::read_dir(&run).unwrap().flatten() {
        std::os::unix::fs::chown(entry.path(), Some(65_534), None).unwrap();
    }
    std::os::unix::fs::chown(&run, Some(65_534), None).unwrap();
    let ran = world.run("replay last --logs logs --json").exits(0);
    assert_eq!(ran.err.matches("belongs to user 65534").count(), 1, "{}", ran.err);
    // A file of root's among them is none of the run's: it could be a link to it, or a name for it.
    std::os::unix::fs::chown(run.join("recording.pwt"), Some(0), None).unwrap();
    let ran = world.run("replay last --logs logs --json").exits(2);
    assert!(ran.err.contains("it belongs to user 0; user 65534 was expected"), "{}", ran.err);
}
