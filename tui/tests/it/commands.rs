//! Exit status and outputs of commands that need no running engine.

use crate::world::{World, engine, has_keys, lab_with};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A process far from any checkout, with its own home.
fn pinwheel(home: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinwheel"));
    command.args(words.split_whitespace()).current_dir(home).env("HOME", home).env_remove("XDG_STATE_HOME");
    command.stdin(Stdio::null());
    command
}

fn said(words: &str) -> (Output, usize) {
    let home = tempfile::tempdir().unwrap();
    let output = pinwheel(home.path(), words).output().unwrap();
    (output, std::fs::read_dir(home.path()).unwrap().count())
}

#[test]
fn unusable_input_is_one_sentence_with_status_2_and_nothing_left_behind() {
    for words in [
        "run --rate -5",
        "run --count 0",
        "run --duration 10",
        "run --silos 0",
        "run --shots s.b8",
        "run --dem missing.dem --headless",
        "run --profile missing",
        "run --profiles missing",
        "run --predictions missing/p --headless",
        "run --answers missing/a --headless",
        "run --logs /proc/pinwheel --headless",
        "run --nonsense",
        "profiles show missing",
        "profiles diff lab missing",
        "plan --profile missing",
        "sim --seeds 3..3",
    ] {
        let (output, left) = said(words);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len(), left), (Some(2), 0, 0), "{words}: {told}");
        assert!(told.starts_with("pinwheel: ") && told.trim_end().lines().count() == 1, "{words}: {told}");
    }
}

#[test]
fn results_go_to_standard_output_and_exit_with_0() {
    for words in ["--help", "--version", "run --help", "profiles list", "profiles show lab", "plan", "plan --json"] {
        let (output, left) = said(words);
        assert_eq!((output.status.code(), output.stderr.len(), left), (Some(0), 0, 0), "{words}");
        assert!(!output.stdout.is_empty(), "{words}");
    }
    let (output, _) = said("profiles list --json");
    let entries: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(entries.as_array().unwrap().len(), 4);
}

#[test]
fn json_of_commands_without_an_engine_has_the_contracts_keys() {
    let world = World::new();
    let listed = world.run("profiles list --json").exits(0).json();
    for (entry, name) in listed.as_array().unwrap().iter().zip(["prod", "lab", "shared", "drill"]) {
        assert!(entry["name"] == name, "{entry}");
        has_keys(entry, "name path summary");
    }
    let valid = world.run("profiles validate lab --json").exits(0).json();
    assert_eq!((valid["ok"].as_bool(), valid["errors"].as_array().map(Vec::len)), (Some(true), Some(0)));
    world.put("bad/bad.ron", lab_with(&[("workers: 8,", "workers: 65,")]));
    let ran = world.run("profiles --profiles bad validate bad --json");
    let found = ran.json();
    assert!(ran.status != Some(0) && found["ok"] == false, "{:?} {found}", ran.status);
    has_keys(&found["errors"][0], "line column found expected remedy");
    let diff = world.run("profiles diff lab prod --json").exits(0).json();
    for change in diff.as_array().unwrap() {
        has_keys(change, "field from to applies");
        assert!(["live", "restart"].contains(&change["applies"].as_str().unwrap()), "{change}");
    }
    assert!(diff.to_string().contains("spin"));
    let plan = world.run("plan --json").exits(0).json();
    has_keys(&plan, "threads cold_cores unused_cores refused");
    has_keys(&plan["threads"][0], "name roles core node hot");
    let sim = world.run("sim --seeds 0..20 --json").exits(0).json();
    has_keys(&sim, "seeds shots steps faults violations");
    assert_eq!((sim["seeds"].as_u64(), sim["violations"].as_array().map(Vec::len)), (Some(20), Some(0)));
    assert_eq!(world.files(), ["bad/bad.ron"]);
}

#[test]
fn json_of_commands_with_hot_threads_has_the_contracts_keys() {
    let _one = engine();
    let world = World::new();
    let graph = world.run("graph chain --tasks 10 --json").exits(0).json();
    has_keys(&graph, "name tasks edges policy deps workers elapsed_ns ns_per_task submit_ns_per_task steals");
    has_keys(&graph, "order_violations failed");
    let arbiter = world.run("arbiter --pages 16 --threads 2 --duration 100ms --json").exits(0).json();
    has_keys(&arbiter, "decisions decision_ns responses transfers transfer_ns violations");
    for times in ["decision_ns", "transfer_ns"] {
        has_keys(&arbiter[times], "p50 p99 p999 max");
    }
    assert!(arbiter["decisions"].as_u64() > Some(0) && arbiter["violations"] == 0, "{arbiter}");
    let cores = world.run("cores --json").exits(0).json();
    cores.as_array().unwrap().iter().for_each(|row| has_keys(row, "core node sibling claimed_by pinned_by busy"));
    let drills = world.run("drill lost-ack --json").exits(0).json();
    has_keys(&drills[0], "drill permitted reason expected given confidence time_to_verdict_ms");
}

#[test]
fn a_graph_of_too_many_tasks_says_that_its_order_is_not_checked() {
    let ran = World::new().run("graph matmul --tasks 6000").exits(0);
    assert!(ran.text().contains("\n  order not checked (too many tasks), 0 failed"), "{}", ran.text());
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let home = tempfile::tempdir().unwrap();
    let mut child =
        pinwheel(home.path(), "profiles show lab").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""));
}
