//! Files that a run leaves, and the board that a killed engine leaves: damaged, then read by every
//! command that reads them.

use super::{Campaign, Running, is_sound, ran};
use crate::world::{World, engine, until};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};

fn only_run(world: &World) -> PathBuf {
    let entries = fs::read_dir(world.path("logs")).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir()).max().expect("a run")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn damaged_recordings_and_boards_are_read_as_far_as_they_go_or_refused() {
    let _one = engine();
    let mut campaign = Campaign::new("recordings", "files", 470);
    let world = World::new();
    let running = Running::engine(&world, "--label hostile");
    let status = world.run("ctl status").exits(0).json();
    assert!(status["answered"].is_u64(), "{status}");
    let sound = only_run(&world);
    until("a recording", || fs::metadata(sound.join("recording.pwt")).is_ok_and(|found| found.len() > 12_000));
    running.signal(Signal::KILL);
    drop(running);
    let boards = || fs::read_dir(world.path("shm")).unwrap().flatten().map(|entry| entry.path());
    let board = boards().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("board-")).unwrap();
    let board_bytes = fs::read(&board).unwrap();
    let files: Vec<PathBuf> = fs::read_dir(&sound).unwrap().flatten().map(|entry| entry.path()).collect();
    let files: Vec<PathBuf> = files.into_iter().filter(|path| path.is_file()).collect();
    assert!(files.len() >= 4, "{files:?}");
    let kept = world.path("kept");
    copy(&sound, &kept);
    for _ in 0..campaign.amount {
        if campaign.below(3) == 0 {
            let mut bytes = board_bytes.clone();
            campaign.damage(&mut bytes);
            fs::write(&board, bytes).unwrap();
            for words in ["postmortem --json", "postmortem", "cores --json", "ctl status"] {
                is_sound(&ran(&world, words), &[0, 1, 2]);
            }
            fs::write(&board, &board_bytes).unwrap();
            continue;
        }
        let file = campaign.pick(&files).clone();
        let mut bytes = fs::read(kept.join(file.file_name().unwrap())).unwrap();
        campaign.damage(&mut bytes);
        fs::write(&file, bytes).unwrap();
        let name = sound.file_name().unwrap().to_str().unwrap();
        for words in [
            format!("replay {name} --at end --json --logs logs"),
            format!("replay {name} --at 300ms --logs logs"),
            format!("trace {name} -o - --logs logs"),
            format!("report {name} --with {name} -o - --logs logs"),
            format!("compare {name} {name} --logs logs --json"),
            format!("compare {name} {name} --logs logs"),
        ] {
            is_sound(&ran(&world, &words), &[0, 1, 2]);
        }
        fs::copy(kept.join(file.file_name().unwrap()), &file).unwrap();
    }
    campaign.done();
}
