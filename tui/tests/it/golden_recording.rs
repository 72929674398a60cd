//! A recording that is kept with the source, replayed to the screens that were approved.

use crate::terminal::Terminal;
use crate::world::{World, engine, until};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// What is kept of the run.
const FILES: [&str; 2] = ["recording.pwt", "events.jsonl"];
/// Most bytes of it.
const BYTES_MAX: u64 = 300_000;
/// How a new one is made; its screens are read before they are approved.
const RENEW: &str = "cargo test -p pinwheel --test it a_new_golden_recording -- --ignored, then \
                     INSTA_UPDATE=always cargo test -p pinwheel --test it the_golden_recording, then read the diff of the screens";
/// The run: two silos, four streams, a few seconds.
const RUN: &str = "run --profile shared --rate 400 --silos 2 --streams 4 --duration 1m --logs logs --headless";

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The golden run in a world of its own, as a relative path there.
pub fn golden(world: &World) -> &'static str {
    for file in FILES {
        world.put(&format!("golden/{file}"), fs::read(kept().join(file)).unwrap());
    }
    let ran = world.run("replay golden --json");
    assert!(
        !ran.err.contains("board layout"),
        "the board's layout is another one since the golden recording was made. Make a new one: {RENEW}\n{}",
        ran.err
    );
    ran.exits(0);
    "golden"
}

#[test]
fn the_golden_recording_is_replayed_to_the_screens_that_were_approved() {
    let world = World::new();
    let run = golden(&world);
    let views = [
        ("overview", "80x24"),
        ("overview", "200x60"),
        ("threads", "80x24"),
        ("slots", "80x24"),
        ("workers", "80x24"),
        ("graph", "80x24"),
        ("arbiter", "80x24"),
        ("placement", "80x24"),
        ("placement", "200x60"),
        ("streams", "80x24"),
        ("rings", "80x24"),
        ("alarms", "120x40"),
        ("log", "120x40"),
        ("actions", "200x60"),
    ];
    for (view, size) in views {
        // Before the drill, in its alarm, and at the end.
        let mut screens = String::new();
        for at in ["1500ms", "3500ms", "end"] {
            let words = format!("replay {run} --at {at} --snapshot --view {view} --size {size} --glyphs utf-8");
            screens += &format!("at {at}\n{}", world.run(&words).exits(0).text());
        }
        assert!(screens.matches("REPLAY").count() == 3, "{screens}");
        insta::assert_snapshot!(format!("golden_{view}_{size}"), screens);
    }
}

#[test]
fn the_golden_recordings_values_are_those_of_its_screens() {
    let world = World::new();
    let run = golden(&world);
    let actions = world.run(&format!("replay {run} --at end --csv --view actions")).exits(0).text();
    let drill: Vec<&str> = actions.lines().filter(|line| line.contains("drill long-handler")).collect();
    assert!(!drill.is_empty(), "{actions}");
    let alarms = world.run(&format!("replay {run} --at end --csv --view alarms")).exits(0).text();
    assert!(alarms.lines().count() > 1, "{alarms}");
    // It has no such file.
    let environment = world.run(&format!("replay {run} --csv --view environment")).exits(0);
    assert!(environment.err.contains("cannot read") && environment.text().lines().count() == 1, "{}", environment.err);
}

#[test]
fn the_console_of_a_recording_begins_with_the_view_asked_for_and_ends_with_the_number_of_its_signal() {
    let world = World::new();
    let run = golden(&world);
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let words = format!("replay {run} --view threads");
        let mut console = Terminal::start(&world, &words, (100, 30), &[]);
        console.see_words(&["REPLAY", "threads: which is late"]);
        console.signal(signal);
        assert_eq!(console.end(), status);
        console.is_restored();
    }
}

#[test]
#[ignore = "makes a new golden recording, in place of the one that is kept"]
fn a_new_golden_recording_is_made() {
    let _one = engine();
    let world = World::new();
    let engine = Running(world.command(RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let status = |name: &str| {
        let ran = world.run("ctl status");
        (ran.status == Some(0)).then(|| ran.json()[name].clone())
    };
    let since_s = || status("at_ns").and_then(|at| at.as_u64()).map_or(0.0, |ns| ns as f64 / 1e9);
    until("two seconds", || since_s() > 2.0);
    world.run("ctl drill long-handler --for 300ms --why golden").exits(0);
    until("the effect of the drill", || since_s() > 5.7);
    world.run("ctl drain").exits(0);
    drop(engine);
    let logs = fs::read_dir(world.path("logs")).unwrap().flatten().map(|entry| entry.path());
    let run = logs.into_iter().find(|path| path.join("recording.pwt").is_file()).expect("a run");
    let bytes: u64 = FILES.iter().map(|file| fs::metadata(run.join(file)).map_or(0, |found| found.len())).sum();
    assert!(bytes < BYTES_MAX, "{bytes} bytes");
    fs::create_dir_all(kept()).unwrap();
    for file in FILES {
        fs::copy(run.join(file), kept().join(file)).unwrap();
    }
}

/// A run that ends by itself; waited for, and killed if a test fails before.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}
