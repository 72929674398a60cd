//! Alarms as the operator meets them: on the console, and in the report.

use crate::terminal::Terminal;
use crate::world::{Ran, SHORT_DRAIN, World, calm_lab_with, engine, until};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;

const DIES: (&str, &str) = ("role_panic: None", "role_panic: Some((role: Poll, after_items: 1000))");

#[test]
fn a_role_that_dies_is_in_the_alarms_view_with_its_place_and_what_to_do() {
    let _one = engine();
    let world = World::new();
    world.put("dies.ron", calm_lab_with(&[DIES, SHORT_DRAIN, ("spin: Lab", "spin: Shared")]));
    let run = "run --profile dies.ron --rate 2000 --logs logs";
    let mut terminal = Terminal::start(&world, run, (160, 50), &[]);
    terminal.press("9");
    terminal.see_words(&["role_died", "critical", "certain", "faulty.rs"]);
    // The cursor stays on the alarm that it was on when a worse one comes: an answer must not hit another one.
    terminal.press("g");
    terminal.see_words(&["without another one the run drains"]);
}

#[test]
fn the_report_has_the_boards_alarms_with_cause_and_evidence() {
    let _one = engine();
    let world = World::new();
    world.put("dies.ron", calm_lab_with(&[DIES, SHORT_DRAIN, ("spin: Lab", "spin: Shared")]));
    let report = world.run("run --profile dies.ron --rate 2000 --logs logs --json").exits(1).json();
    let alarms = report["alarms"].as_array().unwrap();
    let logged = alarms.iter().find(|alarm| alarm["rule"] == "role_died").unwrap();
    assert_eq!((logged["severity"].as_str(), logged["cause"].as_str()), (Some("critical"), Some("died")));
    assert_eq!(logged["confidence"], "certain");
    assert!(!logged["evidence"].as_array().unwrap().is_empty() && !logged["runbook"].as_str().unwrap().is_empty());
}

#[test]
fn drills_are_listed_and_an_unknown_one_is_refused_with_those_there_are() {
    let world = World::new();
    let listed = world.run("drill").exits(0).text();
    for name in ["long-handler", "sigstop", "ptrace-stop", "cpu-quota", "claims-work"] {
        assert!(listed.contains(name), "{listed}");
    }
    let rows = world.run("drill --json").exits(0).json();
    assert_eq!(
        (rows[0]["drill"].as_str(), rows[0]["expected"].as_str(), rows.as_array().map(Vec::len)),
        (Some("long-handler"), Some("long handler"), Some(listed.lines().count() - 1))
    );
    assert!(world.run("drill --rules").exits(0).text().contains("(id: Heartbeat, severity: Warn"));
    world.run("drill nap").exits(2);
    let refused = world.run("drill lost-ack --json").exits(0).json();
    assert_eq!((refused[0]["permitted"].as_bool(), refused[0]["drill"].as_str()), (Some(false), Some("lost-ack")));
}

#[test]
fn a_signal_ends_a_drill_which_leaves_nothing() {
    let _one = engine();
    let world = World::new();
    // The device completes nothing for some ten seconds until the verdict.
    let mut command = world.command("drill slots-fill --json");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let boards = || std::fs::read_dir(world.path("shm")).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    let has_board = || boards().any(|name| name.to_string_lossy().starts_with("board-"));
    until("a board", || has_board() || child.try_wait().unwrap().is_some());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ran = Ran::new("drill", child.wait_with_output().unwrap()).exits(143);
    assert_eq!(ran.json(), serde_json::json!([]));
    assert!(!has_board(), "{:?}", boards().collect::<Vec<_>>());
}
