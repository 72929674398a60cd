//! Files that are damaged between runs: each command that reads one says so in a sentence, or makes sense of it.
//!
//! The test suite draws whole campaigns of damaged profiles, recordings and boards inside the program's own test
//! (`tui/tests/it/hostile`); here the release binary reads them, of a run that it has just made, and of one that was
//! killed.

use crate::after::{Ends, look};
use crate::draw::Draw;
use crate::engine::{Engine, Out, PATIENCE};
use crate::tally::Tally;
use crate::world::{Hang, World};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

pub fn run(world: &World, draw: &mut Draw, tally: &mut Tally) {
    let prepared = prepare(world, tally);
    let Some(run) = prepared else { return };
    for _ in 0..draw.between(20, 60) {
        let (file, words) = target(world, &run, draw);
        let Ok(whole) = fs::read(&file) else { continue };
        let damage = damage(&file, &whole, draw);
        match world.run(&words, PATIENCE) {
            Ok(ran) => {
                if let Some(trouble) = ran.trouble(&[0, 1, 2]) {
                    tally.violation(
                        format!("{words}: {trouble}"),
                        json!({ "file": file.display().to_string(), "damage": damage }),
                    );
                }
            }
            Err(Hang(evidence)) => tally.hang(words, evidence),
        }
        tally.fault("damaged file");
        // A board may be removed by whoever finds it unusable.
        let _ = fs::remove_dir(&file);
        let _ = fs::write(&file, &whole);
    }
    look(world, Ends::Killed, tally);
}

/// A run that ended, and one that was killed; the directory of the first.
fn prepare(world: &World, tally: &mut Tally) -> Option<PathBuf> {
    let golden = |name: &str| world.tree.data.join(format!("surf_z_d3_r3_p0.005.{name}"));
    for (from, to) in
        [("dem", "model.dem"), ("dets.b8", "shots.b8"), ("dets.01", "shots.01"), ("obs.b8", "observables.b8")]
    {
        fs::copy(golden(from), world.path(to)).ok()?;
    }
    world
        .write("profiles/mine.ron", "(base: \"lab\", summary: \"mine\", device: Sim(latency: None), slots: 64)")
        .ok()?;
    world.write("graph.ron", "()").ok()?;
    let words = "run --dem model.dem --shots shots.b8 --rate max --count 500 --headless --json --logs logs";
    match world.run(words, PATIENCE) {
        Ok(ran) if ran.code() == 0 => {}
        Ok(ran) => tally.violation(format!("{words}: exit status {}", ran.code()), ran.err),
        Err(Hang(evidence)) => tally.hang(words, evidence),
    }
    let run = fs::read_dir(world.path("logs")).ok()?.flatten().next()?.path();
    let mut killed =
        Engine::start(world, "run --dem model.dem --rate 2000 --headless --logs killed", Stdio::null(), Out::File)
            .ok()?;
    if killed.until_live(world, tally) {
        thread::sleep(Duration::from_millis(200));
        killed.signal(Signal::KILL);
        let _ = killed.end(PATIENCE);
        super::postmortem(world, killed.pid, tally);
    }
    Some(run)
}

/// A file and a command that reads it.
fn target(world: &World, run: &Path, draw: &mut Draw) -> (PathBuf, String) {
    let brief = "--count 200 --duration 5s --rate max --headless --json --logs logs2";
    let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match draw.below(12) {
        0 => (world.path("profiles/mine.ron"), format!("run --profile profiles/mine.ron {brief}")),
        1 => (world.path("profiles/mine.ron"), "profiles validate profiles/mine.ron --json".into()),
        2 => (world.path("model.dem"), format!("run --dem model.dem {brief}")),
        3 => (world.path("shots.b8"), format!("run --dem surface_d3 --shots shots.b8 --answers a.jsonl {brief}")),
        4 => (world.path("shots.01"), format!("run --dem surface_d3 --format 01 --shots shots.01 {brief}")),
        5 => (
            world.path("observables.b8"),
            format!("run --dem surface_d3 --shots shots.b8 --observables observables.b8 {brief}"),
        ),
        6 => {
            let board = fs::read_dir(&world.shm).into_iter().flatten().flatten().map(|entry| entry.path());
            let board = board.filter(|path| path.display().to_string().contains("board-")).min();
            let words = *draw.pick(&["postmortem --json --logs killed", "attach --json", "ctl status", "cores --json"]);
            (board.unwrap_or_default(), words.into())
        }
        7 => (run.join("manifest.json"), format!("replay {name} --logs logs --json")),
        8 => {
            let words = [
                format!("replay {name} --logs logs --snapshot --view events"),
                format!("report {name} --logs logs --output page.html"),
            ];
            (run.join("events.jsonl"), draw.pick(&words).clone())
        }
        9 => (run.join("recording.index"), format!("replay {name} --logs logs --at end --json")),
        10 => (run.join("report.json"), format!("compare {name} {name} --logs logs --json")),
        _ => {
            let words = [
                format!("replay {name} --logs logs --json"),
                format!("replay {name} --logs logs --at -100ms --snapshot --view threads"),
                format!("replay {name} --logs logs --csv --view streams"),
                format!("trace {name} --logs logs --output trace.json"),
                format!("report {name} --logs logs --output page.html"),
            ];
            (run.join("recording.pwt"), draw.pick(&words).clone())
        }
    }
}

/// Damages a file; what it did.
fn damage(file: &Path, whole: &[u8], draw: &mut Draw) -> String {
    let mut bytes = whole.to_vec();
    let length = bytes.len().max(1) as u64;
    let what = match draw.below(8) {
        0 => {
            bytes.truncate(draw.below(length) as usize);
            format!("truncated to {}", bytes.len())
        }
        1 => {
            let count = draw.below(5_000) as usize;
            bytes.extend(draw.bytes(count));
            format!("{count} bytes appended")
        }
        2 => {
            bytes.clear();
            "empty".into()
        }
        3 => {
            let (from, count) = (draw.below(length) as usize, draw.below(4096) as usize);
            let to = (from + count).min(bytes.len());
            bytes[from.min(to)..to].fill(0);
            format!("zeros in {from}..{to}")
        }
        4 => {
            let _ = (fs::remove_file(file), fs::create_dir(file));
            return "a directory".into();
        }
        5 => {
            let (at, count) = (draw.below(length) as usize, draw.below(64) as usize);
            let insert = draw.bytes(count);
            bytes.splice(at.min(bytes.len())..at.min(bytes.len()), insert);
            format!("{count} bytes inserted at {at}")
        }
        _ => {
            let mut places = Vec::new();
            for _ in 0..draw.between(1, 20) {
                let at = draw.below(length) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = draw.next() as u8;
                    places.push(at);
                }
            }
            format!("bytes changed at {places:?}")
        }
    };
    let _ = fs::write(file, bytes);
    what
}
