//! Too little of something: address space, memory, descriptors, file size, room on disk and in the directory of boards.
//!
//! The program refuses in one sentence, or runs, soundly or not; it ends by no signal but the one that the
//! system sends for a group's memory.

use super::postmortem;
use crate::after::{Ends, look};
use crate::draw::Draw;
use crate::engine::{Engine, Out, PATIENCE};
use crate::leftovers;
use crate::tally::Tally;
use crate::world::{Hang, Ran, World};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const RUN: &str =
    "run --dem surface_d3 --rate max --count 3000 --headless --json --logs logs --answers out/a --predictions out/p";

pub fn run(world: &World, draw: &mut Draw, tally: &mut Tally) {
    for _ in 0..draw.between(3, 8) {
        match draw.below(7) {
            0..=2 => limited(world, draw, tally),
            3 | 4 => full(world, draw, tally),
            5 => filled_meanwhile(world, draw, tally),
            _ => grouped(world, draw, tally),
        }
    }
    look(world, Ends::Orderly, tally);
}

/// A run that may succeed, fail soundly or be refused, but end in no other way.
fn judge(ran: &Ran, what: &str, tally: &mut Tally) {
    if let Some(trouble) = ran.trouble(&[0, 1, 2]) {
        tally.violation(format!("{what}: {trouble}"), ran.words.clone());
    }
    let Some(report) = crate::engine::report(&ran.out) else {
        if ran.code() == 0 {
            tally.violation(format!("{what}: exit status 0 without a report"), ran.out.clone());
        }
        return;
    };
    for key in ["lost", "duplicated"] {
        if report[key].as_u64() != Some(0) {
            tally.violation(format!("{what}: {key} {}", report[key]), report["alarms"].clone());
        }
    }
    let answered = report["answered"].as_u64().unwrap_or(0);
    tally.shots += answered;
    tally.accepted += answered;
    tally.answered += answered;
    *tally.ingresses.entry("sampler".into()).or_default() += answered;
}

/// Limits of the process, by the shell's `ulimit`.
fn limited(world: &World, draw: &mut Draw, tally: &mut Tally) {
    let (option, name, value) = match draw.below(4) {
        0 => ("-v", "address space, kB", draw.between(1_000, 3_000_000)),
        1 => ("-n", "descriptors", draw.between(3, 80)),
        2 => ("-s", "stack, kB", draw.between(8, 16_000)),
        _ => ("-f", "file size, blocks", draw.below(4_000)),
    };
    let line = format!("ulimit -c 0; ulimit {option} {value} || exit 2; exec {} {RUN}", world.tree.binary.display());
    let mut command = Command::new("bash");
    command.arg("-c").arg(&line);
    world.dress(&mut command);
    // The shell writes no files, and the program's own output is short.
    match world.finish(command, &format!("ulimit {option} {value}; {RUN}"), PATIENCE) {
        // Below these the loader or the language's start itself ends, before `main`.
        Ok(ran) if is_before_main(&ran) => {}
        Ok(ran) => judge(&ran, &format!("{name} {value}"), tally),
        Err(Hang(evidence)) => tally.hang(format!("{name} {value}"), evidence),
    }
    tally.fault(&format!("limit: {}", name.split(',').next().unwrap_or(name)));
}

fn is_before_main(ran: &Ran) -> bool {
    ran.err.contains("error while loading shared libraries")
        || ran.code() == 127
        || (ran.err.is_empty() && ran.out.is_empty() && ran.status.signal().is_some())
}

/// A small file system at one of the places that the program writes to; unmounted on drop.
struct Small(PathBuf);

impl Small {
    fn mount(at: &Path, kilobytes: u64, tally: &mut Tally) -> Option<Small> {
        let options = std::ffi::CString::new(format!("size={kilobytes}k,mode=0755")).ok()?;
        match mount("tmpfs", at, "tmpfs", MountFlags::empty(), Some(options.as_c_str())) {
            Ok(()) => Some(Small(at.to_owned())),
            Err(error) => {
                tally.not_permitted(format!("mounting a file system: {error}"));
                None
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn place(world: &World, draw: &mut Draw) -> (PathBuf, &'static str) {
    match draw.below(3) {
        0 => (world.path("logs"), "runs"),
        1 => (world.shm.clone(), "boards"),
        _ => (world.path("full"), "answers"),
    }
}

/// A place that is too small from the start.
fn full(world: &World, draw: &mut Draw, tally: &mut Tally) {
    let (at, name) = place(world, draw);
    let _ = fs::create_dir_all(&at);
    let kilobytes = if draw.one_in(3) { 4 } else { draw.between(4, 4_000) };
    let Some(small) = Small::mount(&at, kilobytes, tally) else { return };
    let words = RUN.replace("out/", if name == "answers" { "full/" } else { "out/" });
    match world.run(&words, PATIENCE) {
        Ok(ran) => judge(&ran, &format!("{kilobytes} kB for {name}"), tally),
        Err(Hang(evidence)) => tally.hang(format!("{kilobytes} kB for {name}"), evidence),
    }
    drop(small);
    tally.fault(&format!("small file system: {name}"));
}

/// A place that fills up while the engine runs.
fn filled_meanwhile(world: &World, draw: &mut Draw, tally: &mut Tally) {
    let (at, name) = place(world, draw);
    let _ = fs::create_dir_all(&at);
    let Some(small) = Small::mount(&at, 8_000, tally) else { return };
    let out = if name == "answers" { "full/" } else { "out/" };
    let words = format!("run --dem surface_d3 --rate 20000 --headless --json --logs logs --answers {out}a");
    let Ok(mut engine) = Engine::start(world, &words, Stdio::null(), Out::File) else { return };
    if engine.until_live(world, tally) {
        if let Ok(mut filler) = fs::File::create(at.join("filler")) {
            while filler.write_all(&[1; 4096]).is_ok() {}
        }
        thread::sleep(Duration::from_millis(draw.between(100, 1500)));
        engine.signal(Signal::TERM);
    }
    match engine.end(PATIENCE) {
        Ok(ran) => {
            let what = format!("{name} filled meanwhile");
            if let Some(trouble) = ran.trouble(&[1, 2, 143]) {
                tally.violation(format!("{what}: {trouble}"), words);
            }
            match crate::engine::report(&ran.out) {
                Some(report) if report["lost"] == 0 && report["duplicated"] == 0 => {}
                Some(report) => tally.violation(format!("{what}: lost or duplicated"), report["alarms"].clone()),
                None if ran.code() == 2 => {}
                None => tally.violation(format!("{what}: no report"), ran.err),
            }
        }
        Err(Hang(evidence)) => tally.hang(format!("{name} filled meanwhile"), evidence),
    }
    drop(small);
    tally.fault(&format!("file system full meanwhile: {name}"));
}

/// Whether there is a board whose first word, which is written last, is there.
fn has_board(path: &Path) -> bool {
    let mut first = [0; 8];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first != [0; 8]
}

/// A control group with little memory: the system may kill the engine, whose board is then to be read.
fn grouped(world: &World, draw: &mut Draw, tally: &mut Tally) {
    let group = leftovers::group(std::process::id());
    let megabytes = draw.between(8, 200);
    let made = fs::create_dir_all(&group)
        .and_then(|()| fs::write(group.join("memory.limit_in_bytes"), format!("{}", megabytes << 20)));
    if let Err(error) = made {
        let _ = fs::remove_dir(&group);
        return tally.not_permitted(format!("a control group for memory: {error}"));
    }
    let line = format!("echo $$ > {}/cgroup.procs && exec {} {RUN}", group.display(), world.tree.binary.display());
    let mut command = Command::new("bash");
    command.arg("-c").arg(&line);
    world.dress(&mut command);
    if let Ok(mut engine) = Engine::start_as(world, command, RUN, Stdio::null(), Out::File) {
        match engine.end(PATIENCE) {
            Ok(ran) if ran.status.signal() == Some(9) => {
                // Killed before its board was complete: then there is nothing to read.
                if has_board(&world.shm.join(format!("board-{}", engine.pid))) {
                    postmortem(world, engine.pid, tally);
                }
                world.clear();
            }
            Ok(ran) => judge(&ran, &format!("a group of {megabytes} MB"), tally),
            Err(Hang(evidence)) => tally.hang(format!("a group of {megabytes} MB"), evidence),
        }
    }
    let _ = fs::remove_dir(&group);
    tally.fault("memory of the group");
}
