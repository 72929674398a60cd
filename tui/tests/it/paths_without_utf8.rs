//! Paths, words and variables that are no UTF-8: they work, or one sentence refuses them.

use crate::world::{Ran, World, calm_lab_with, engine, until};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

const MODEL: &str = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";

/// Ends a process that a test left.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the program with words that may hold anything.
fn run(world: &World, words: &str, more: &[&OsStr]) -> Ran {
    Ran::new(words, world.command(words).args(more).output().unwrap())
}

/// Latin-1.
fn no_utf8(name: &[u8]) -> OsString {
    OsStr::from_bytes(name).to_owned()
}

#[test]
fn paths_in_options_of_a_run_need_not_be_utf8() {
    let _one = engine();
    let world = World::new();
    let path = |name: &[u8]| -> PathBuf { world.path("").join(OsStr::from_bytes(name)) };
    fs::create_dir_all(path(b"caf\xe9.logs")).unwrap();
    fs::create_dir_all(path(b"caf\xe9.profiles")).unwrap();
    fs::write(path(b"caf\xe9.dem"), MODEL).unwrap();
    fs::write(path(b"caf\xe9.m2d"), "measurements 3\nD0 0\nD1 1\nL0 2\n").unwrap();
    fs::write(path(b"caf\xe9.b8"), [0, 1, 2, 3]).unwrap();
    fs::write(path(b"caf\xe9.profiles/mine.ron"), calm_lab_with(&[("spin: Lab", "spin: Shared")])).unwrap();
    fs::write(path(b"caf\xe9.profiles/h\xe9.ron"), "()").unwrap();
    let mut words = Vec::new();
    for (option, name) in [
        ("--dem", &b"caf\xe9.dem"[..]),
        ("--m2d", b"caf\xe9.m2d"),
        ("--shots", b"caf\xe9.b8"),
        ("--predictions", b"caf\xe9.predictions"),
        ("--answers", b"caf\xe9.answers"),
        ("--logs", b"caf\xe9.logs"),
        ("--profiles", b"caf\xe9.profiles"),
    ] {
        words.extend([OsString::from(option), no_utf8(name)]);
    }
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let mut command = world.command("run --json --profile mine");
    command.args(&words).env("PINWHEEL_SHM", path(b"caf\xe9.shm"));
    let report: Value = Ran::new("run", command.output().unwrap()).exits(0).json();
    assert_eq!((&report["answered"], &report["lost"]), (&Value::from(4), &Value::from(0)));
    assert_eq!(fs::read(path(b"caf\xe9.predictions")).unwrap().len(), 4);
    assert_eq!(fs::read_to_string(path(b"caf\xe9.answers")).unwrap().lines().count(), 4);
    let logs = no_utf8(b"caf\xe9.logs");
    for words in ["replay last --json --logs", "compare last last --json --logs", "compare last last --logs"] {
        let ran = run(&world, words, &[&logs]).exits(0);
        assert!(!ran.text().contains("no such profile") && !ran.text().contains("No such file"), "{}", ran.text());
    }
    let traced = run(&world, "trace last -o", &[&no_utf8(b"caf\xe9.trace"), "--logs".as_ref(), &logs]).exits(0);
    assert!(traced.err.contains("wrote") && path(b"caf\xe9.trace").is_file());
    for words in ["profiles list --profiles", "profiles list --json --profiles"] {
        assert!(run(&world, words, &[&no_utf8(b"caf\xe9.profiles")]).exits(0).text().contains("mine"), "{words}");
    }
}

#[test]
fn paths_of_boards_and_dumps_need_not_be_utf8() {
    let _one = engine();
    let world = World::new();
    let shm = world.path("").join(OsStr::from_bytes(b"caf\xe9.shm"));
    let with = |words: &str| {
        let mut command = world.command(words);
        command.env("PINWHEEL_SHM", &shm);
        command
    };
    let start = with("run --profile shared --rate 500 --duration 10m --headless --logs logs")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut live = Ends(start.unwrap());
    until("the engine", || with("ctl status").output().unwrap().status.code() == Some(0));
    let dump = with("dump --json -o").arg(no_utf8(b"caf\xe9.dump")).output().unwrap();
    assert!(Ran::new("dump", dump).exits(0).json()["taken"].is_array());
    live.0.kill().unwrap();
    live.0.wait().unwrap();
    Ran::new("postmortem", with("postmortem --json").output().unwrap()).exits(0).json();
}

#[test]
fn a_word_for_another_host_that_is_no_utf8_is_refused_in_one_sentence() {
    let ran = run(&World::new(), "attach ssh:lab2 --json --keys", &[&no_utf8(b"caf\xe9")]).exits(2);
    assert!(ran.err.contains("expected words in UTF-8") && ran.err.trim_end().lines().count() == 1, "{}", ran.err);
}

#[test]
fn words_that_are_no_utf8_where_no_path_is_meant_are_one_sentence() {
    let world = World::new();
    let odd = no_utf8(b"caf\xe9");
    for words in [
        "run --profile",
        "run --label",
        "run --rate",
        "run --input",
        "replay",
        "graph",
        "attach",
        "ctl --to",
        "ctl note",
        "ctl profile",
        "ctl input",
        "compare last",
        "drill",
        "check --profile",
        "check --verify",
        "plan --topology",
        "gpu-check --dem",
        "dump -o caf/",
        "",
    ] {
        let ran = run(&world, words, &[&odd]).exits(2);
        assert!(ran.text().is_empty() && ran.err.starts_with("pinwheel: "), "{words}: {}", ran.err);
        assert_eq!(ran.err.trim_end().lines().count(), 1, "{words}: {}", ran.err);
    }
    let mut command = world.command("plan --profile lab --json");
    for name in ["TERM", "LANG", "NO_COLOR", "COLORTERM", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME", "PINWHEEL_SHM"] {
        command.env(name, &odd);
    }
    Ran::new("plan", command.output().unwrap()).exits(0).json();
}
