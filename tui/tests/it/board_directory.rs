//! The directory of boards: who may be in it, whose locks count there, and what is found in it by which name.

use crate::attach::Headless;
use crate::world::{World, engine};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const RUN: &str = "run --profile shared --headless --count 10 --logs logs";

fn directory(world: &World, mode: u32) {
    fs::create_dir(world.path("shm")).unwrap();
    fs::set_permissions(world.path("shm"), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_board_directory_that_all_may_write_without_a_sticky_bit_is_refused_and_the_run_goes_on() {
    let _one = engine();
    let world = World::new();
    directory(&world, 0o777);
    world.run(RUN).exits(0);
    let notes = world.report("logs")["notes"].to_string();
    assert!(
        notes.contains("board not shared") && notes.contains("sticky bit") && notes.contains("chmod +t"),
        "{notes}"
    );
    let left: Vec<_> = fs::read_dir(world.path("shm")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_board_directory_of_another_user_is_refused_or_said() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make another user's directory");
        return;
    }
    let _one = engine();
    for (mode, said) in [(0o755, "board not shared"), (0o1777, "who can remove our board")] {
        let world = World::new();
        directory(&world, mode);
        std::os::unix::fs::chown(world.path("shm"), Some(65_534), None).unwrap();
        world.run(RUN).exits(0);
        let notes = world.report("logs")["notes"].to_string();
        assert!(notes.contains("belongs to user 65534") && notes.contains(said), "{mode:o}: {notes}");
    }
}

#[test]
fn a_board_directory_on_a_disk_is_said_once() {
    let _one = engine();
    let world = World::new();
    // Beside the program, which lies on a disk; the world may lie in memory.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = world.command(RUN).env("PINWHEEL_SHM", place.path().join("shm")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let notes = world.report("logs")["notes"].to_string();
    assert_eq!(notes.matches("disk file system").count(), 1, "{notes}");
}

#[test]
fn a_plain_lock_on_a_cores_file_takes_no_core_away_and_its_holder_is_named() {
    let world = World::new();
    directory(&world, 0o1777);
    let lock = |core: u64| {
        let path = world.path(&format!("shm/cpu{core}.lock"));
        let file = File::create(path).unwrap();
        file.lock().unwrap();
        file
    };
    let rows = world.run("cores --json").exits(0).json();
    let cores: Vec<u64> = rows.as_array().unwrap().iter().map(|row| row["core"].as_u64().unwrap()).collect();
    let _locks: Vec<File> = cores.iter().map(|core| lock(*core)).collect();
    for row in world.run("cores --json").exits(0).json().as_array().unwrap() {
        assert!(row["claimed_by"].is_null() && row["locked_by"]["pid"] == std::process::id(), "{row}");
    }
    let said = world.run("plan").exits(0).text();
    let (holder, left) = (format!("process {}", std::process::id()), "left to ".to_owned());
    assert!(said.contains(&holder) && said.contains("is no engine"), "{said}");
    assert!(!said.contains(&(left + &holder)), "{said}");
}

#[test]
fn a_dead_board_that_another_user_has_locked_counts_as_dead() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let _one = engine();
    let world = World::new();
    let mut headless = Headless::start(&world);
    headless.0.kill().unwrap();
    headless.0.wait().unwrap();
    let pid = headless.0.id();
    // The other user comes by an open file: the world's own directory is closed to it.
    let board = File::open(world.path(&format!("shm/board-{pid}"))).unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "flock",
        "/dev/stdin",
        "sh",
        "-c",
        "echo; exec sleep 600",
    ]);
    let mut other = command.stdin(board).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let found = world.run(&format!("postmortem {pid} --json"));
    let group = Pid::from_raw(i32::try_from(other.id()).unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    other.wait().unwrap();
    assert_eq!(found.exits(0).json()["postmortem"]["pid"], pid);
}

#[test]
fn a_killed_engines_board_is_found_by_its_runs_name_as_by_its_process() {
    let _one = engine();
    let world = World::new();
    let mut headless = Headless::start(&world);
    let run = fs::read_dir(world.path("logs")).unwrap().next().unwrap().unwrap().path();
    headless.0.kill().unwrap();
    headless.0.wait().unwrap();
    let pid = headless.0.id();
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    // By its name alone the directory of runs is not needed: the board is where boards are.
    for whose in [pid.to_string(), name, format!("logs/{}", run.file_name().unwrap().to_str().unwrap())] {
        let found = world.run(&format!("postmortem {whose} --json")).exits(0).json();
        assert_eq!(found["postmortem"]["pid"], pid, "{whose}");
    }
    world.run("postmortem no-such-run --logs logs").exits(2);
}
