//! Limits of the process and of the board: refused in one sentence, exit status 2, nothing left behind.

use crate::world::{Ran, World, engine, lab_with};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Whether this process may act as another user, and is to: root has no limit on its processes.
fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// Runs the program under `ulimit` with this option, as a user that it holds for.
fn limited(world: &World, option: &str, words: &str) -> Ran {
    let other = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let as_user = if option.starts_with("-u") && is_root() { other } else { "" };
    let line = format!("ulimit -c 0; ulimit {option}; exec {as_user} {} {words}", env!("CARGO_BIN_EXE_pinwheel"));
    let mut command = Command::new("bash");
    command.arg("-c").arg(&line).current_dir(world.path("")).stdin(Stdio::null()).envs(world.variables());
    Ran::new(&line, command.output().unwrap())
}

/// A world that other users may write to.
fn open_world() -> World {
    let world = World::new();
    for directory in ["", "shm", "state", "home"] {
        fs::create_dir_all(world.path(directory)).unwrap();
        fs::set_permissions(world.path(directory), fs::Permissions::from_mode(0o777)).unwrap();
    }
    world
}

#[track_caller]
fn assert_one_sentence(world: &World, ran: Ran, before: &[String], parts: &[&str]) {
    let ran = ran.exits(2);
    let said = ran.err.trim_end();
    assert!(said.starts_with("pinwheel: ") && said.lines().count() == 1, "{}: {said}", ran.words);
    assert!(parts.iter().all(|part| said.contains(part)), "{}: {said}", ran.words);
    // The host's key is made once, and the claims' locks stay; no board, no run, no output does.
    let is_kept = |file: &&String| !file.ends_with("host.key") && !file.ends_with(".lock");
    let left: Vec<String> = world.files().iter().filter(is_kept).cloned().collect();
    assert_eq!(left, before, "{}", ran.words);
}

#[test]
fn a_limit_of_the_process_that_is_too_low_is_refused_and_leaves_nothing() {
    let _one = engine();
    let world = open_world();
    let run = "run --headless --json --answers a --predictions p --count 1000 --rate 5000";
    for (option, parts) in [
        ("-u 8", ["could not be started", "ulimit -u"]),
        ("-v 300000", ["address space", "ulimit -v"]),
        // Enough to start, but not for the stack of the signals of each thread that starts later.
        ("-v 913815", ["address space", "ulimit -v"]),
        ("-s 64", ["stack limit of 64 KiB", "ulimit -s"]),
        ("-f 1", ["the size of a file is 1024 bytes", "ulimit -f"]),
    ] {
        assert_one_sentence(&world, limited(&world, option, run), &[], &parts);
    }
    // A port for each decoder.
    let words = "run --headless --json --streams 300 --input cudaq:127.0.0.1:0";
    assert_one_sentence(&world, limited(&world, "-n 128", words), &[], &["a descriptor for each port", "ulimit -n"]);
    for words in ["arbiter --json --duration 100ms --threads 40", "drill long-handler --json"] {
        assert_one_sentence(&world, limited(&world, "-u 8", words), &[], &["ulimit -u"]);
    }
    let words = "arbiter --json --duration 100ms --threads 40";
    assert_one_sentence(&world, limited(&world, "-v 900000", words), &[], &["address space", "ulimit -v"]);
    assert_one_sentence(&world, limited(&world, "-s 64", "plan --json"), &[], &["ulimit -s"]);
}

#[test]
fn a_limit_of_the_board_is_refused_by_plan_validate_and_run() {
    let world = World::new();
    // One hot core, whatever the machine has.
    let one_core = ("max_cores: Some(4),", "max_cores: Some(1),");
    world.put(
        "profiles/many.ron",
        lab_with(&[one_core, ("silos: Auto,", "silos: 12,"), ("streams: 4,", "streams: 64,")]),
    );
    world.put("profiles/wide.ron", lab_with(&[one_core, ("decoders: Auto,", "decoders: Count(59),")]));
    let before = world.files();
    for (profile, part) in [("many", "plan at most 9 silos"), ("wide", "plan fewer decoders")] {
        let validated = world.run(&format!("profiles --json --profiles profiles validate {profile}")).exits(1).json();
        assert_eq!(validated["ok"], false);
        assert!(validated["errors"][0]["remedy"].as_str().unwrap().contains(part), "{validated}");
        let planned = world.run(&format!("plan --json --profiles profiles --profile {profile}")).exits(2);
        assert!(planned.json()["refused"].as_str().unwrap().contains(part), "{}", planned.err);
        let ran = world.run(&format!("run --headless --json --profiles profiles --profile {profile} --count 10"));
        assert_one_sentence(&world, ran, &before, &["at most 64 on one thread", part]);
    }
    let ran = world.run(&format!("run --json --label {}", "l".repeat(129)));
    assert_one_sentence(&world, ran, &before, &["--label", "129 bytes"]);
}
