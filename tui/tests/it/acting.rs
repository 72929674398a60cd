//! Acting from the console: another input, drills, moves, reasons, and the list of who did what.

use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{World, engine, golden, only_engine, word};
use std::fs;
use std::path::PathBuf;

const DEM: &str = "surf_z_d3_r3_p0.005.dem";
const SHOTS: &str = "surf_z_d3_r3_p0.005.dets.b8";

fn runs(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.path("logs")).unwrap().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    runs.sort();
    runs
}

fn command(terminal: &mut Terminal, text: &str) {
    terminal.press(&format!(":{text}"));
    terminal.see_words(&[&format!(":{text}_")]);
    terminal.press("\r");
}

#[test]
fn another_input_drains_first_the_console_stays_and_each_run_keeps_its_report() {
    let _one = engine();
    let world = World::new();
    let words = format!("{RUN} --dem {}", word(&golden(DEM)));
    let mut terminal = Terminal::start(&world, &words, (160, 40), &[]);
    terminal.see_live();
    command(&mut terminal, "input nothing.b8");
    terminal.see_words(&["input nothing.b8?", "then it restarts on nothing.b8"]);
    terminal.press("y");
    terminal.see_words(&["nothing.b8: found", "LIVE"]);
    fs::copy(golden(SHOTS), world.path("today.b8")).unwrap();
    command(&mut terminal, "input today.b8");
    terminal.see_words(&["input today.b8?"]);
    terminal.press("w");
    terminal.see_words(&["reason, kept with the action"]);
    terminal.press("last night\r");
    terminal.see_words(&["why: last night"]);
    terminal.press("y");
    terminal.see("shots of the file", |screen| {
        let head = screen.rows(0, 160).next().unwrap();
        head.contains("LIVE") && head.contains("today.b8")
    });
    assert_eq!(runs(&world).len(), 2);
    terminal.press("qy");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    terminal.is_restored();
    for run in runs(&world) {
        let report: serde_json::Value = serde_json::from_slice(&fs::read(run.join("report.json")).unwrap()).unwrap();
        assert_eq!((report["ended_by"].as_str(), report["lost"].as_u64()), (Some("drained"), Some(0)));
    }
    let events = fs::read_to_string(runs(&world)[0].join("events.jsonl")).unwrap();
    assert!(
        events.contains("input sampler surf_z_d3_r3_p0.005.dem to today.b8 asked for by")
            && events.contains(": last night"),
        "{events}"
    );
}

/// Drills that are tried until one's stack is there: a thread that was descheduled in the middle of its long handler is
/// judged by that, and a sample that comes after the end of a stall is discarded.
const DRILLS: usize = 8;

/// Drills once; whether the alarm that follows shows where the thread was.
fn drilled(terminal: &mut Terminal) -> bool {
    command(terminal, "drill long-handler");
    terminal.see_words(&["drill long-handler?", "name the cause"]);
    terminal.press("y");
    terminal.see_words(&["drill long-handler asked for"]);
    terminal.press("9");
    // What it is called depends on what else the machine does meanwhile; that it is called does not.
    let is_told =
        |screen: &vt100::Screen| ["hot-0 stood still", "do: "].iter().all(|part| screen.contents().contains(part));
    if !terminal.soon(is_told) {
        return false;
    }
    // Late answers name the same cause, and have no stack.
    terminal.press("/heartbeat long\r");
    terminal.soon(|screen| screen.contents().contains("long handler, certain")) && {
        terminal.press("g\r");
        terminal.see("the details alone", |screen| {
            let text = screen.contents();
            text.contains("do: ") && !text.contains("alarms: ")
        });
        terminal.soon(|screen| screen.contents().contains("#0 "))
    }
}

#[test]
fn a_drill_calls_its_alarm_which_leads_to_the_stack() {
    let _one = only_engine();
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (160, 50), &[]);
    terminal.see_live();
    let found = (0..DRILLS).any(|_| {
        let found = drilled(&mut terminal);
        if !found {
            // The list again, whole.
            terminal.press("1");
            terminal.see_words(&["harvest"]);
            terminal.press("9");
            if terminal.soon(|screen| screen.contents().contains("/heartbeat")) {
                terminal.press("/");
                terminal.press("\x1b");
                terminal.see("no filter", |screen| !screen.contents().contains("/heartbeat"));
            }
        }
        found
    });
    assert!(found, "no stack after {DRILLS} drills on:\n{}", terminal.text());
    let stack: String = terminal.text().lines().filter(|row| row.trim_start().starts_with('#')).collect();
    assert!(stack.contains("compute_too_long") && stack.contains("drill_role.rs:"), "{stack}");
    // From the stack on to the thread that stood there.
    terminal.press("\r");
    terminal.see_words(&["threads: which is late", "─ hot-0, thread"]);
    terminal.press("u");
    terminal.see_words(&["who did what, why", "drill long-handler"]);
    command(&mut terminal, "drill role-panic");
    terminal.see_words(&["the run ends", "type drill role-panic"]);
    terminal.press("y\r");
    terminal.see_words(&["y_", "type drill role-panic"]);
    terminal.press("\x1b");
    terminal.see("no question", |screen| !screen.contents().contains("type drill role-panic"));
    terminal.press("qy");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
}

#[test]
fn a_stream_moved_from_the_console_is_listed_with_user_and_reason() {
    let _one = engine();
    let world = World::new();
    let words = format!("{RUN} --silos 2 --streams 4");
    let mut terminal = Terminal::start(&world, &words, (160, 50), &[]);
    terminal.see_live();
    terminal.press("t");
    terminal.see_words(&["which logical qubit is late"]);
    terminal.press("b");
    terminal.see_words(&["which stream, and to which silo"]);
    terminal.press("1\r");
    terminal.see_words(&["move stream 0 to silo 1?"]);
    terminal.press("w");
    terminal.see_words(&["reason, kept with the action"]);
    terminal.press("tea\r");
    terminal.see_words(&["why: tea"]);
    terminal.press("y");
    terminal.see_words(&["move stream 0 to silo 1 asked for"]);
    terminal.press("u");
    terminal.see_words(&["move of stream 0 to silo 1 asked for", "tea"]);
    terminal.press("7");
    terminal.see_words(&["moves"]);
    terminal.press("qy");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    let report = world.report("logs");
    assert_eq!(report["lost"], 0);
    assert!(report["streams"][0]["silo"] == 1 || report["moves"].to_string().contains('1'), "{report}");
}
