//! The program's own console in a pseudo-terminal: keys, sizes, a terminal that is lost, and every end.

use crate::after::{Ends, look};
use crate::draw::Draw;
use crate::engine::PATIENCE;
use crate::tally::Tally;
use crate::terminal::Terminal;
use crate::world::{Hang, World, read, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Keys that change what is shown, and nothing of the engine.
const KEYS: [&[u8]; 22] = [
    b"\t",
    b"1",
    b"2",
    b"3",
    b"4",
    b"5",
    b"6",
    b"7",
    b"8",
    b"9",
    b"M",
    b"c",
    b"u",
    b"?",
    b"\x1b",
    b"j",
    b"k",
    b"\r",
    b"[",
    b"f",
    b"\x1b[A",
    b"\x1b[<0;5;5M",
];

pub fn run(world: &World, draw: &mut Draw, tally: &mut Tally) {
    for _ in 0..draw.between(1, 3) {
        once(world, draw, tally);
    }
}

fn once(world: &World, draw: &mut Draw, tally: &mut Tally) {
    let words = format!(
        "run --dem surface_d3 --profile profiles/console.ron --rate {} --logs logs --no-settings",
        draw.between(100, 20_000)
    );
    // A loaded machine is not to miss a deadline.
    let calm = "(base: \"lab\", summary: \"calm\", limits: (launch_deadline_us: 30000000, shot_deadline_us: 60000000), \
                placement: (overflow: (deadline_ms: 60000)))";
    if let Err(error) = world.write("profiles/console.ron", calm) {
        return tally.violation("the round's files cannot be made", error.to_string());
    }
    let size = (draw.between(20, 240) as u16, draw.between(6, 70) as u16);
    let (mut terminal, mut child) = match Terminal::start(&world.command(&words), size) {
        Ok(started) => started,
        Err(error) => return tally.not_permitted(format!("a pseudo-terminal: {error}")),
    };
    tally.fault("console");
    let from = Instant::now();
    while terminal.drawn.load(Ordering::Relaxed) < 2_000 && from.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..draw.between(5, 80) {
        match draw.below(8) {
            0 => terminal.resize(draw.between(1, 300) as u16, draw.between(1, 100) as u16),
            1 => {
                let count = draw.below(8) as usize;
                // Bytes below 128 that are no letters: no command of the console's is among them.
                let bytes: Vec<u8> = draw.bytes(count).into_iter().map(|byte| 0x20 | byte & 0x0f).collect();
                terminal.press(&bytes);
            }
            _ => {
                let keys = draw.pick(&KEYS);
                terminal.press(keys);
            }
        }
        thread::sleep(Duration::from_millis(draw.below(20)));
    }
    let pid = Pid::from_raw(child.id() as i32);
    let signal = |signal: Signal| pid.is_some_and(|pid| kill_process(pid, signal).is_ok());
    let (ending, statuses) = match draw.below(5) {
        0 => ("sigterm", vec![143]),
        1 => ("sigint", vec![130]),
        2 => ("keys", vec![0, 1]),
        3 => ("terminal lost, then sigterm", vec![143]),
        _ => ("sigkill", vec![]),
    };
    match ending {
        "sigterm" => drop(signal(Signal::TERM)),
        "sigint" => drop(signal(Signal::INT)),
        "sigkill" => drop(signal(Signal::KILL)),
        "keys" => {
            // Out of any prompt or view first.
            for keys in [&b"\x1b"[..], b"\x1b", b"\x1b", b"q", b"y"] {
                terminal.press(keys);
                thread::sleep(Duration::from_millis(150));
            }
        }
        _ => {}
    }
    let terminal = if ending.starts_with("terminal lost") {
        drop(terminal);
        thread::sleep(Duration::from_millis(draw.below(300)));
        signal(Signal::TERM);
        None
    } else {
        Some(terminal)
    };
    tally.fault(&format!("console ended by {ending}"));
    match wait(&mut child, PATIENCE) {
        Err(Hang(mut evidence)) => {
            evidence["command"] = words.into();
            tally.hang(format!("console ended by {ending}"), evidence);
        }
        Ok(status) => {
            if ending != "sigkill" && !status.code().is_some_and(|code| statuses.contains(&code)) {
                let report = reports(world);
                let evidence = json!({ "command": words, "reports": report });
                tally.violation(format!("console ended by {ending}: {status}, expected {statuses:?}"), evidence);
            }
            look(world, if ending == "sigkill" { Ends::Killed } else { Ends::Orderly }, tally);
            if ending == "sigkill" {
                super::postmortem(world, child.id(), tally);
                world.clear();
            }
        }
    }
    drop(terminal);
}

/// What the runs' reports say of their ends.
fn reports(world: &World) -> Vec<serde_json::Value> {
    let runs = std::fs::read_dir(world.path("logs")).into_iter().flatten().flatten();
    let reports = runs.filter_map(|run| serde_json::from_str(&read(&run.path().join("report.json"))).ok());
    let brief = |report: serde_json::Value| {
        let alarms = report["alarms"].as_array().into_iter().flatten();
        let unsound: Vec<_> = alarms.filter(|alarm| alarm["unsound"] == true).map(|alarm| &alarm["what"]).collect();
        json!({ "ended_by": report["ended_by"], "exit_status": report["exit_status"], "unsound": unsound })
    };
    reports.map(brief).collect()
}
