//! An engine that others look at and act on: attach, ctl, a lost terminal, a killed process.

use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{World, acknowledged, calm_lab_with, drained, engine, has_keys, lab_with, until};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

/// A run without a terminal; killed when the test is over, however it ends.
pub struct Headless(pub Child);

impl Headless {
    pub fn start(world: &World) -> Headless {
        Headless::start_with(world, "--rate 2000 --duration 10m --headless")
    }

    /// The same with these words besides.
    pub fn start_with(world: &World, words: &str) -> Headless {
        let words = &format!("run --profiles calm --profile shared --logs logs {words}");
        let child = world.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let headless = Headless(child);
        until("a live engine", || {
            let ran = world.run("ctl status");
            ran.status == Some(0) && ran.json()["phase"] == "LIVE"
        });
        headless
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn socket(world: &World) -> PathBuf {
    let runs = fs::read_dir(world.path("logs")).unwrap().flatten().map(|run| run.path().join("control.sock"));
    runs.into_iter().find(|path| path.exists()).expect("a socket in the run's directory")
}

#[test]
fn an_attached_console_is_read_only_and_acts_with_control() {
    let _one = engine();
    let world = World::new();
    let mut own = Terminal::start(&world, RUN, (100, 30), &[]);
    own.see_live();
    let mut beside = Terminal::start(&world, "attach", (100, 30), &[]);
    beside.see_live();
    beside.see_words(&["READ-ONLY"]);
    for (key, what) in [("D", "drain refused"), ("H", "hold refused"), ("n", "note refused")] {
        beside.press(key);
        beside.see_words(&[what, "--control"]);
    }
    let mut acting = Terminal::start(&world, "attach --control", (100, 30), &[]);
    acting.see_live();
    acting.see_words(&["ATTACHED"]);
    acting.press("p");
    acting.see_words(&["lab"]);
    acting.press("2");
    acting.see_words(&["apply a profile?"]);
    acting.press("y");
    acting.see_words(&["acknowledged by", "profile lab"]);
    // All three see it, whoever did it.
    own.see_words(&["profile lab"]);
    beside.see_words(&["profile lab"]);
    acting.press("H");
    acting.see_words(&["hold the feed?"]);
    acting.press("y");
    acting.see_words(&["HELD"]);
    own.see_words(&["HELD"]);
    acting.press("q");
    beside.press("q");
    assert_eq!((acting.end(), beside.end()), (0, 0));
    acting.is_restored();
    own.press("H");
    own.see_words(&["resume the feed?"]);
    own.press("y");
    own.see("a feed that runs", |screen| !screen.contents().contains("HELD"));
    own.press("q");
    own.see_words(&["drain and quit?"]);
    own.press("y");
    // The profile that is in force now has deadlines that a busy machine misses: then the status is 1.
    assert!(own.end() <= 1, "{}", own.text());
}

/// A console of its own engine, which goes on when the console is lost.
pub fn own_console(world: &World) -> Terminal {
    world.put(
        "p/stays.ron",
        lab_with(&[
            ("spin: Lab", "spin: Shared"),
            ("launch_deadline_us: 20000,", "launch_deadline_us: 20000000,"),
            ("shot_deadline_us: 1000000,", "shot_deadline_us: 60000000,"),
        ]),
    );
    let run = "run --profiles p --profile stays --rate 2000 --logs logs";
    let mut own = Terminal::start(world, run, (100, 30), &[]);
    own.see_live();
    own
}

#[test]
fn a_running_engine_is_printed_as_screen_values_and_json_once_and_repeatedly() {
    let _one = engine();
    let world = World::new();
    let mut headless = Headless::start(&world);
    let screen = world.run("attach --snapshot --view rings --size 120x30").exits(0).text();
    assert!(screen.contains("which queue is full") && screen.lines().count() == 30, "{screen}");
    let values = world.run("attach --csv --view streams").exits(0).text();
    assert!(values.starts_with("stream,"), "{values}");
    let board = world.run("attach --json").exits(0).json();
    has_keys(&board, "answered latency_ns threads attach board");
    assert_eq!(board["attach"]["pid"], headless.0.id());
    assert!(world.run("attach --csv --view graph").exits(2).err.contains("a view without a list"));
    world.run("attach --every 1s").exits(2);
    let mut stream = world.command("attach --csv --view threads --every 100ms");
    let mut stream = stream.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(stream.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("at_s,thread,"));
    let moments: Vec<f64> =
        (0..20).map(|_| lines.next().unwrap().split(',').next().unwrap().parse().unwrap()).collect();
    assert!(moments.is_sorted() && moments[0] < moments[19], "{moments:?}");
    drained(&world, "ctl drain");
    assert!(lines.all(|line| line.split(',').count() > 5), "its headings stand before the first alone");
    assert_eq!((stream.wait().unwrap().code(), headless.0.wait().unwrap().code()), (Some(0), Some(0)));
}

#[test]
fn after_a_hangup_the_engine_goes_on_and_is_taken_over_by_an_attached_console() {
    let _one = engine();
    let world = World::new();
    let mut own = own_console(&world);
    own.hang_up();
    let before = world.run("ctl status").exits(0).json()["answered"].as_u64().unwrap();
    until("shots after the hangup", || {
        world.run("ctl status").exits(0).json()["answered"].as_u64().unwrap() > before + 200
    });
    // Looking is given up, and the engine goes on; then it is taken over, twice.
    let mut first = Terminal::start(&world, "attach --control", (100, 30), &[]);
    first.see_live();
    first.hang_up();
    assert_eq!(first.end_unread(), 0);
    assert!(!own.has_ended());
    let mut second = Terminal::start(&world, "attach --control", (100, 30), &[]);
    second.see_live();
    second.press("D");
    second.see_words(&["drain and end the engine of process"]);
    second.press("y");
    second.see_words(&["ENDED"]);
    second.press("q");
    assert_eq!(second.end(), 0, "{}", second.text());
    assert_eq!(own.end_unread(), 0);
    let report = world.report("logs");
    assert_eq!((&report["lost"], &report["ended_by"]), (&Value::from(0), &Value::from("drained")));
}

#[test]
fn a_profile_that_is_switched_live_decides_what_a_hangup_means() {
    let _one = engine();
    let world = World::new();
    let mut own = own_console(&world);
    // `shared` drains on a hangup; another process switched to it.
    acknowledged(&world, "ctl profile shared");
    own.see_words(&["profile shared"]);
    own.hang_up();
    own.end_unread();
    assert_eq!(world.report("logs")["lost"], 0);
}

#[test]
fn an_engine_that_is_killed_while_attached_is_shown_as_gone_and_leads_to_the_post_mortem() {
    let _one = engine();
    let world = World::new();
    let mut engine = Headless::start(&world);
    let mut terminal = Terminal::start(&world, "attach --control", (100, 30), &[]);
    terminal.see_live();
    rustix::process::kill_process(rustix::process::Pid::from_child(&engine.0), Signal::STOP).unwrap();
    terminal.see_words(&["SILENT"]);
    rustix::process::kill_process(rustix::process::Pid::from_child(&engine.0), Signal::CONT).unwrap();
    terminal.see("signs of life", |screen| !screen.contents().contains("SILENT"));
    engine.0.kill().unwrap();
    engine.0.wait().unwrap();
    terminal.see_words(&["GONE", "the engine is gone", &format!("pinwheel postmortem {}", engine.0.id())]);
    // A command that nobody takes any more is refused in words, not by the system's error.
    terminal.press("n");
    terminal.see_words(&["a note, kept with the run"]);
    terminal.press("too late\r");
    terminal.see_words(&["the engine closed its control socket"]);
    terminal.press("q");
    assert_eq!(terminal.end(), 1, "{}", terminal.text());
    terminal.is_restored();
    world.run(&format!("postmortem {} --json", engine.0.id())).exits(0);
}

#[test]
fn a_console_that_only_reads_opens_at_once_on_a_frozen_engine() {
    let _one = engine();
    let world = World::new();
    let engine = Headless::start(&world);
    until("an engine", || world.run("ctl status").status == Some(0));
    let pid = rustix::process::Pid::from_child(&engine.0);
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    let from = Instant::now();
    let mut terminal = Terminal::start(&world, "attach", (100, 30), &[]);
    terminal.see_words(&["SILENT"]);
    assert!(from.elapsed() < Duration::from_secs(8), "{:?}", from.elapsed());
    terminal.press("q");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    let mut acting = Terminal::start(&world, "attach --control", (100, 30), &[]);
    acting.see_words(&["no reply within 10 s", "unless the engine is frozen", "pinwheel dump"]);
    assert_eq!(acting.end(), 2);
}

#[test]
fn every_verb_of_ctl_acts_and_prints_what_was_acknowledged() {
    let _one = engine();
    let world = World::new();
    assert!(world.run("ctl status").exits(2).err.contains("pinwheel run"));
    let mut engine = Headless::start(&world);
    let pid = engine.0.id();
    let status = world.run(&format!("ctl --to {pid} status")).exits(0).json();
    has_keys(&status, "action pid phase profile rate_hz submitted answered alarms run_dir");
    let run = PathBuf::from(status["run_dir"].as_str().unwrap());
    assert_eq!(fs::metadata(run.join("control.sock")).unwrap().permissions().mode() & 0o777, 0o600);
    let name = run.file_name().unwrap().to_str().unwrap();
    let switched = acknowledged(&world, &format!("ctl profile lab --for 1s --why lunch --to {name}"));
    has_keys(&switched, "action from to epoch changes reverts_in_s threads acknowledged waited_ms pid");
    assert_eq!(switched["to"], "lab");
    until("the profile given back", || world.run("ctl status").exits(0).json()["profile"] == "shared");
    world.put("mine.ron", calm_lab_with(&[("spin: Lab", "spin: Shared")]));
    assert_eq!(acknowledged(&world, "ctl profile ./mine.ron")["to"], "mine");
    assert_eq!(acknowledged(&world, "ctl pause")["held"], true);
    let held = world.run("ctl status").exits(0).json();
    assert!(held["held_by"].as_str().is_some_and(|by| by.contains("uid")), "{held}");
    assert_eq!(acknowledged(&world, "ctl resume")["held"], false);
    assert_eq!(world.run("ctl rate 700").exits(0).json()["hz"], 700.0);
    acknowledged(&world, "ctl ack");
    assert_eq!(world.run("ctl note pump on").exits(0).json()["text"], "pump on");
    for (words, part) in [
        ("ctl ack 99", "there is no alarm 99"),
        ("ctl profile nothing", "expected one of"),
        ("ctl --to 1 pause", "(profile mine, run "),
        ("ctl --to 1 pause", "expected the engine of process 1; name one of them"),
        ("ctl --to nothing pause", "one of run nothing"),
        ("ctl profile lab --for 1ms", "expected 1 s"),
    ] {
        let ran = world.run(words).exits(2);
        assert!(ran.err.contains(part) && ran.err.trim_end().lines().count() == 1, "{words}: {}", ran.err);
    }
    assert_eq!(drained(&world, "ctl drain --why done")["action"], "end");
    assert_eq!(engine.0.wait().unwrap().code(), Some(0));
    assert!(!run.join("control.sock").exists());
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    for part in ["to lab for 1 s", ": lunch", "lab to shared", "feed held by", "rate 2000/s to 700/s", ": done"] {
        assert!(events.contains(part), "{part}: {events}");
    }
    assert!(world.run("ctl status").exits(2).err.contains("found none"));
}

#[test]
fn several_engines_are_selected_by_pid_and_stop_ends_one_at_once() {
    let _one = engine();
    let world = World::new();
    let mut first = Headless::start(&world);
    let second = Headless(
        world
            .command("run --profiles calm --profile shared --rate 500 --duration 10m --logs more --headless")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let (one, other) = (first.0.id(), second.0.id());
    until("the second engine", || world.run(&format!("ctl --to {other} status")).status == Some(0));
    let said = world.run("ctl pause").exits(2).err;
    assert!(said.contains(&one.to_string()) && said.contains(&other.to_string()) && said.contains("PID"), "{said}");
    world.run(&format!("ctl --to {one} stop")).exits(0);
    first.0.wait().unwrap();
    assert_eq!(world.run("ctl status").exits(0).json()["pid"], other);
}

#[test]
fn a_client_that_never_reads_is_disconnected_and_others_are_served() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let mut deaf = UnixStream::connect(socket(&world)).unwrap();
    deaf.set_nonblocking(true).unwrap();
    let line = b"{\"version\":2,\"command\":\"in_force\"}\n";
    until("the deaf client's end", || {
        for _ in 0..64 {
            match deaf.write(line) {
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return true,
                _ => {}
            }
        }
        assert_eq!(world.run("ctl status").exits(0).json()["phase"], "LIVE");
        false
    });
    let mut left = Vec::new();
    let _ = deaf.read_to_end(&mut left);
    assert!(left.starts_with(b"{\"version\":2,\"done\":"), "what it was told before");
}

/// How often the engine's thread of this name has waited.
fn waits_of(engine: &Headless, name: &str) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", engine.0.id())).unwrap().flatten();
    let mut texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let text = texts.find(|text| text.starts_with(&format!("Name:\t{name}\n"))).expect("a thread of this name");
    let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).expect("its waits");
    line.trim().parse().unwrap()
}

/// The waiting connection ended each wait of the engine's thread at once: it took a core.
#[test]
fn a_client_that_no_descriptor_is_free_for_takes_no_core_and_is_served_once_one_is() {
    let _one = engine();
    let world = World::new();
    let engine = Headless::start(&world);
    // The engine has those of this process.
    let whole = getrlimit(Resource::Nofile);
    let limit_descriptors = |limit| prlimit(Some(Pid::from_child(&engine.0)), Resource::Nofile, limit).unwrap();
    limit_descriptors(Rlimit { current: Some(8), ..whole });
    let mut client = UnixStream::connect(socket(&world)).unwrap();
    client.write_all(b"{\"version\":2,\"command\":\"in_force\"}\n").unwrap();
    let before = waits_of(&engine, "control-socket");
    until("ten waits", || waits_of(&engine, "control-socket") >= before + 10);
    limit_descriptors(whole);
    let mut answer = String::new();
    BufReader::new(client).read_line(&mut answer).unwrap();
    assert!(answer.starts_with("{\"version\":2,\"done\":"), "{answer}");
}

#[test]
fn another_user_is_refused_by_ctl() {
    let _one = engine();
    let world = World::new();
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let _engine = Headless::start(&world);
    let mut command: Command = world.command("ctl pause");
    let Ok(output) = command.uid(NOBODY).output() else {
        eprintln!("skipped: this user cannot become another, or that one may not run the program");
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("control socket") && said.contains("act as its user"), "{said}");
    assert_eq!(world.run("ctl status").exits(0).json()["held_by"], Value::Null);
}
