//! The stranger from outside, with a program that only sleeps in Pinwheel's place.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "harness")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// On a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let from = Instant::now();
    while !is_so() {
        assert!(from.elapsed() < PATIENCE, "no {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a process has made in both directories of temporary files.
fn left(of: u32) -> Vec<PathBuf> {
    let prefix = format!("pinwheel-stranger-{of}-");
    let entries = [std::env::temp_dir(), "/dev/shm".into()].map(|parent| fs::read_dir(parent).into_iter().flatten());
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&prefix)).collect()
}

/// Programs that the process `of` has started in its directories.
fn programs(of: u32) -> usize {
    let prefix = format!("/pinwheel-stranger-{of}-");
    let variables = fs::read_dir("/proc").unwrap().flatten().map(|entry| fs::read(entry.path().join("environ")));
    variables.flatten().filter(|variables| String::from_utf8_lossy(variables).contains(&prefix)).count()
}

#[test]
fn a_stranger_that_is_killed_leaves_no_directory_and_no_program() {
    let program = std::env::temp_dir().join(format!("pinwheel-sleeps-{}", std::process::id()));
    fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for signal in [Signal::TERM, Signal::KILL] {
        let mut stranger = Command::new(env!("CARGO_BIN_EXE_pinwheel-stranger"))
            .args(["--kind", "stream", "--round", "1", "--binary"])
            .arg(&program)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = stranger.id();
        until("round", || left(pid).len() >= 2 && programs(pid) > 0);
        kill_process(Pid::from_child(&stranger), signal).unwrap();
        stranger.wait().unwrap();
        until("end of what it left", || left(pid).is_empty() && programs(pid) == 0);
    }
    fs::remove_file(program).unwrap();
}
