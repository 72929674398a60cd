//! Control characters in text that others wrote: on boards, in names of processes, runs and files,
//! in reports. None of them reaches a terminal.

use crate::terminal::Terminal;
use crate::world::{Ran, World, calm_lab_with, engine, until};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};

const MODEL: &str = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
/// Clears the screen, in seven bits and in eight; rings; turns the direction of what follows.
const OBEYED: &str = "x\u{1b}[2J\u{9b}2J\u{7}\u{202e}y";

/// Ends a process that a test left.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether nothing in it would be obeyed by a terminal.
fn is_shown(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap();
    let turns =
        |found: char| matches!(found, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.replace("\r\n", "\n").chars().all(|found| !turns(found) && (!found.is_control() || "\n\t".contains(found)))
}

/// Demands it of both outputs.
#[track_caller]
fn shown(ran: &Ran) {
    let text = String::from_utf8_lossy(&ran.out);
    assert!(is_shown(&ran.out) && is_shown(ran.err.as_bytes()), "{}: {text:?} {:?}", ran.words, ran.err);
}

/// Runs the program with words that may hold anything.
fn run(world: &World, words: &str, more: &[&OsStr]) -> Ran {
    Ran::new(words, world.command(words).args(more).output().unwrap())
}

#[test]
fn control_characters_of_a_board_a_run_and_a_report_reach_no_terminal() {
    let _one = engine();
    let world = World::new();
    let model = world.put(&format!("{OBEYED}.dem"), MODEL);
    let profile = format!("{}\n// {OBEYED}\n", calm_lab_with(&[("spin: Lab", "spin: Shared")]));
    world.put("profiles/lab.ron", &profile);
    world.put(&format!("profiles/{OBEYED}.ron"), &profile);
    world.put("profiles/malformed.ron", profile.replace("summary: \"", &format!("summary: \"{OBEYED}")));
    let words = "run --headless --rate 500 --duration 10m --logs logs --profiles profiles --profile";
    let mut command = world.command(words);
    command.args([OBEYED, "--label", OBEYED, "--dem"]).arg(&model);
    let mut live = Ends(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("the engine", || world.run("ctl status").status == Some(0));
    until("a picture in the recording", || world.run("replay last --logs logs --json").status == Some(0));
    for words in [
        "ctl status",
        "ctl note plain",
        "attach --json",
        "attach --csv --view threads",
        "attach --csv --view streams",
        "attach --snapshot",
        "cores",
        "cores --json",
        "profiles list --profiles profiles",
        "profiles list --profiles profiles --json",
        "profiles show lab --profiles profiles",
        "profiles validate malformed --profiles profiles",
        "profiles validate malformed --profiles profiles --json",
        "profiles show lab --profiles profiles --json",
        "ctl --to nothing status",
        "dump --json -o dumped",
    ] {
        shown(&world.run(words));
    }
    // On a terminal too: the console's cells hold none of it.
    let mut console = Terminal::start(&world, "attach", (120, 40), &[]);
    console.see_words(&["LIVE"]);
    console.press("q");
    console.end();
    let drawn = console.raw();
    assert!(!drawn.contains('\u{9b}') && !drawn.contains('\u{202e}') && !drawn.contains("x\u{1b}[2J"), "{drawn:?}");
    live.0.kill().unwrap();
    live.0.wait().unwrap();
    let killed = ["postmortem", "postmortem --json"].map(|words| world.run(words).exits(0));
    assert!(killed[0].text().contains(r"x\u{1b}[2J\u{9b}2J\u{7}\u{202e}y"), "{}", killed[0].text());
    assert!(killed[1].json()["label"].as_str().is_some_and(|label| label == OBEYED), "JSON means the same");
    killed.iter().for_each(shown);
    for words in [
        "replay last --logs logs",
        "replay last --logs logs --json",
        "replay last --logs logs --csv --view threads",
        "replay last --logs logs --csv --view log",
        "replay last --logs logs --snapshot",
        "compare last last --logs logs",
        "compare last last --logs logs --json",
        "trace last --logs logs -o -",
        "report last --logs logs -o -",
    ] {
        shown(&world.run(words).exits(0));
    }
    // A run's own words, in its report and in what it refuses.
    let report = run(
        &world,
        "run --headless --count 5 --logs more --label",
        &[OBEYED.as_ref(), "--dem".as_ref(), model.as_ref()],
    );
    shown(&report.exits(0));
    let refused = run(&world, "run --headless --count 5 --dem", &[format!("none{OBEYED}").as_ref()]);
    shown(&refused.exits(2));
}

#[test]
fn control_characters_of_an_unsigned_report_reach_no_terminal() {
    let world = World::new();
    let row = serde_json::json!({"id": OBEYED, "found": OBEYED, "expected": OBEYED, "verdict": "fail", "why": OBEYED, "fix": OBEYED});
    world.put("unsigned.json", serde_json::json!({"rows": [row], "signature": null, "key": OBEYED}).to_string());
    for words in ["check --verify unsigned.json", "check --verify unsigned.json --json"] {
        shown(&world.run(words).exits(1));
    }
    world.put("another.json", serde_json::json!({"rows": [], OBEYED: 1}).to_string());
    shown(&world.run("check --verify another.json").exits(2));
}

#[test]
fn control_characters_of_a_process_name_reach_no_terminal() {
    let world = World::new();
    fs::create_dir_all(world.path("shm")).unwrap();
    let program = world.path("\u{1b}[2J\u{9b}2Jx");
    let pinned = fs::copy("/bin/sleep", &program).is_ok().then(|| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(&program).arg("600").spawn().ok().map(Ends)
    });
    let Some(Some(sleeper)) = pinned else {
        eprintln!("skipped: no sleep or no taskset here");
        return;
    };
    let comm = format!("/proc/{}/comm", sleeper.0.id());
    until("the program's name", || fs::read_to_string(&comm).is_ok_and(|name| name.starts_with('\u{1b}')));
    shown(&world.run("cores").exits(0));
    let told = world.run("cores --json").exits(0);
    shown(&told);
    // Where there is one core, everything is pinned to it, and nothing is named.
    let names = told.json().to_string().contains(r"\u001b[2J");
    assert!(names || std::thread::available_parallelism().unwrap().get() == 1, "{}", told.text());
}

#[test]
fn a_path_with_every_kind_of_byte_is_quoted_in_a_refusal_without_control_characters() {
    let world = World::new();
    let ran = run(&world, "run --count 5 --dem", &[OsStr::from_bytes(b"a\xff\x1b[31m b")]).exits(2);
    assert!(is_shown(ran.err.as_bytes()) && ran.err.contains(r"\u{1b}[31m"), "{:?}", ran.err);
}
