//! How every command writes the files that it is told to write.

use crate::golden_recording::golden;
use crate::world::{World, engine, until};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A link to a file, a link to nothing yet, and a FIFO.
fn places() -> World {
    let world = World::new();
    world.put("real", "old");
    symlink("real", world.path("link")).unwrap();
    symlink("absent", world.path("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(world.path("pipe")).status().unwrap().success());
    world
}

/// Runs a command that writes `links`, each of them with the file behind it.
#[track_caller]
fn writes_behind(world: &World, words: &str, links: &[(&str, &str)]) {
    world.run(words).exits(0);
    for (link, real) in links {
        assert!(world.path(link).is_symlink(), "{words}: {link} is no link any more");
        assert!(fs::metadata(world.path(real)).unwrap().len() > 3, "{words}: nothing behind {link}");
    }
    let left: Vec<String> = world.files().into_iter().filter(|name| name.ends_with(".partial")).collect();
    assert_eq!(left, Vec::<String>::new(), "{words}");
}

/// Runs a command that writes the FIFO.
#[track_caller]
fn writes_through(world: &World, words: &str) {
    let pipe = world.path("pipe");
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            fs::File::open(pipe).unwrap().read_to_end(&mut bytes).unwrap();
            bytes.len()
        })
    };
    world.run(words).exits(0);
    let kind = fs::symlink_metadata(&pipe).unwrap().file_type();
    assert!(kind.is_fifo(), "{words}: the FIFO was replaced by {kind:?}");
    assert!(reader.join().unwrap() > 3, "{words}");
}

#[test]
fn links_are_written_to_their_targets_and_fifos_and_devices_written_through_by_every_command() {
    let world = places();
    golden(&world);
    writes_behind(&world, "trace golden -o link --hlog dangling", &[("link", "real"), ("dangling", "absent")]);
    writes_through(&world, "trace golden -o trace --hlog pipe");
    fs::remove_file(world.path("absent")).unwrap();
    writes_behind(&world, "report golden -o dangling", &[("dangling", "absent")]);
    writes_through(&world, "report golden -o pipe");
    let graph = "graph chain --tasks 10 --trace";
    writes_behind(&world, &format!("{graph} link"), &[("link", "real")]);
    fs::remove_file(world.path("absent")).unwrap();
    writes_behind(&world, &format!("{graph} dangling"), &[("dangling", "absent")]);
    writes_through(&world, &format!("{graph} pipe"));
    let full = world.run("trace golden -o /dev/full").exits(2);
    assert!(full.err.contains("/dev/full") && fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    let lost = world.run("graph chain --tasks 10 --trace /dev/full --json").exits(1);
    assert!(lost.err.contains("--trace /dev/full") && lost.json()["tasks"] == 10, "{}", lost.err);
}

#[test]
fn no_output_of_any_command_is_an_input_or_another_output() {
    let world = World::new();
    golden(&world);
    let dem = "error(0.1) D0 L0\n";
    world.put("m.dem", dem);
    world.put("s.b8", [1, 0, 1]);
    world.put("o.b8", [1, 0, 1]);
    world.put("map", "measurements 1\nD0 0\nL0\n");
    world.put("g.ron", "()");
    symlink("s.b8", world.path("link")).unwrap();
    fs::hard_link(world.path("s.b8"), world.path("hard")).unwrap();
    symlink("new", world.path("dangling")).unwrap();
    let of_all = |world: &World| -> Vec<(String, Vec<u8>)> {
        let names = world.files();
        names.into_iter().map(|name| (name.clone(), fs::read(world.path(&name)).unwrap_or_default())).collect()
    };
    let before = of_all(&world);
    let run = "run --headless --logs logs --dem m.dem --shots s.b8";
    for words in [
        format!("{run} --predictions s.b8"),
        format!("{run} --predictions ./m.dem"),
        format!("{run} --answers link"),
        format!("{run} --answers hard"),
        format!("{run} --observables o.b8 --predictions o.b8"),
        format!("{run} --m2d map --answers map"),
        format!("{run} --predictions new --answers dangling"),
        format!("{run} --predictions new --answers ./new"),
        "trace golden -o golden/recording.pwt".to_owned(),
        "trace golden -o golden/events.jsonl".to_owned(),
        "trace golden -o new --hlog new".to_owned(),
        "report golden -o golden/events.jsonl".to_owned(),
        "graph g.ron --trace g.ron".to_owned(),
        "send s.b8 udp:127.0.0.1:9 --predictions hard".to_owned(),
    ] {
        let ran = world.run(&words).exits(2);
        assert!(ran.err.contains("expected a file of its own"), "{words}: {}", ran.err);
        assert_eq!(of_all(&world), before, "{words} changed something");
    }
    // Standard input and output are files too.
    let redirected = |words: &str, input: &str, output: Option<&str>| {
        let mut command = world.command(words);
        command.stdin(fs::File::open(world.path(input)).unwrap());
        if let Some(output) = output {
            command.stdout(fs::OpenOptions::new().append(true).open(world.path(output)).unwrap());
        }
        command.output().unwrap()
    };
    let from_stdin = "run --headless --logs logs --dem m.dem --shots - --predictions s.b8";
    let from_file = "run --json --logs logs --dem m.dem --shots s.b8";
    for ran in [redirected(from_stdin, "s.b8", None), redirected(from_file, "o.b8", Some("s.b8"))] {
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && said.contains("expected a file of its own"), "{said}");
        assert_eq!(of_all(&world), before);
    }
}

#[test]
fn a_report_that_cannot_be_kept_at_the_end_is_said_and_the_status_is_1() {
    let _one = engine();
    let world = World::new();
    let words = "run --profile shared --rate 1000 --duration 2s --logs logs --json";
    let child = world.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run_dir = || -> Option<PathBuf> {
        let runs = fs::read_dir(world.path("logs")).ok()?.filter_map(Result::ok).map(|entry| entry.path());
        runs.into_iter().find(|path| path.join("manifest.json").exists())
    };
    until("the run's directory", || run_dir().is_some());
    // As a full disk would, a directory in its place refuses the file.
    let run = run_dir().unwrap();
    fs::create_dir(run.join("report.json")).unwrap();
    let ran = crate::world::Ran::new(words, child.wait_with_output().unwrap()).exits(1);
    assert!(ran.err.contains("run directory: ") && ran.err.contains("report.json"), "{}", ran.err);
    assert_eq!(ran.json()["exit_status"], 1);
    assert!(ran.json()["alarms"].to_string().contains("run_directory"), "{}", ran.json()["alarms"]);
    let manifest: serde_json::Value = serde_json::from_slice(&fs::read(run.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["ended"]["exit_status"], 1);
}

/// The last bytes wait in a buffer; their error was not seen.
#[test]
fn a_trace_on_standard_output_without_room_for_its_last_bytes_is_refused() {
    let world = World::new();
    golden(&world);
    let program = env!("CARGO_BIN_EXE_pinwheel");
    let bytes = world.run("trace golden -o -").exits(0).out.len();
    // In blocks of 512 bytes, as POSIX has it.
    let script = format!("ulimit -f {}; exec {program} trace golden -o - >cut", bytes / 512);
    let mut shell = Command::new("sh");
    let ran = shell.args(["-c", &script]).current_dir(world.path("")).envs(world.variables()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(2) && said.contains("trace: cannot write the output"), "{ran:?}");
}

#[test]
fn a_recording_that_is_named_itself_stands_for_its_run() {
    let world = World::new();
    golden(&world);
    world.run("trace golden/recording.pwt").exits(0);
    assert!(world.path("golden/trace.json").is_file());
    let compared = world.run("compare golden/recording.pwt golden --json").exits(0).json();
    assert_eq!(compared["runs"][0], compared["runs"][1]);
}

#[test]
fn a_link_in_a_runs_own_directory_is_not_followed() {
    let world = World::new();
    golden(&world);
    world.put("real", "old");
    for (command, file) in [("trace golden", "golden/trace.json"), ("report golden", "golden/report.html")] {
        symlink("../real", world.path(file)).unwrap();
        world.run(command).exits(0);
        assert_eq!(fs::read(world.path("real")).unwrap(), b"old");
        assert!(fs::symlink_metadata(world.path(file)).unwrap().is_file());
    }
}

#[test]
fn an_output_keeps_the_mode_of_the_file_that_it_replaces() {
    let world = World::new();
    let out = world.put("out", "old");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o600)).unwrap();
    world.run("graph chain --tasks 10 --trace out").exits(0);
    assert_eq!(fs::metadata(out).unwrap().permissions().mode() & 0o777, 0o600);
}
