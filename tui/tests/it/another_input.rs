//! Another input at a running engine's word: by `pinwheel ctl` and from an attached console.

use crate::attach::{Headless, own_console};
use crate::terminal::Terminal;
use crate::world::{World, acknowledged, drained, engine, golden, until, word};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const DEM: &str = "surf_z_d3_r3_p0.005.dem";
const SHOTS: &str = "surf_z_d3_r3_p0.005.dets.b8";

/// The directory of the run that goes on now.
fn run_now(world: &World) -> PathBuf {
    PathBuf::from(world.run("ctl status").exits(0).json()["run_dir"].as_str().unwrap())
}

fn report(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("report.json")).unwrap()).unwrap()
}

#[test]
fn another_input_by_ctl_ends_one_run_with_its_report_and_begins_the_next_in_the_same_process() {
    let _one = engine();
    let world = World::new();
    let mut headless = Headless::start(&world);
    let (pid, first) = (headless.0.id(), run_now(&world));
    // What cannot be used is refused before anything is drained.
    for (words, about) in [
        ("nothing.b8", "--shots"),
        ("sampler --dem nowhere", "--dem nowhere"),
        ("-", "input -"),
        ("udp:nowhere", "input udp:nowhere"),
        ("sampler --observables truth", "--observables"),
    ] {
        let said = world.run(&format!("ctl input {words}")).exits(2).err;
        assert!(said.contains(about) && said.contains("; "), "{said}");
    }
    let narrow = world.put("narrow.b8", [0; 5]);
    let said = world.run(&format!("ctl input {} --dem {}", word(&narrow), word(&golden(DEM)))).exits(2).err;
    assert!(said.contains("narrow.b8"), "{said}");
    let status = world.run("ctl status").exits(0).json();
    assert_eq!((&status["phase"], status["run_dir"].as_str()), (&Value::from("LIVE"), first.to_str()));
    let changed = world.run("ctl input sampler --dem surface_d3 --why smaller").exits(0).text();
    let lines: Vec<Value> = changed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [told, begun] = &lines[..] else { panic!("{changed}") };
    assert_eq!((&told["from"], &told["to"]), (&"sampler surface_d5".into(), &"sampler surface_d3".into()));
    assert_eq!((&begun["pid"], &begun["phase"]), (&pid.into(), &"LIVE".into()));
    let second = PathBuf::from(begun["run_dir"].as_str().unwrap());
    assert_eq!((begun["run"].as_str(), &begun["input"]), (second.file_name().unwrap().to_str(), &told["to"]));
    assert_eq!(run_now(&world), second);
    // Nothing of the first is lost, and its log says who wanted that, and why.
    let ended = report(&first);
    assert_eq!((&ended["lost"], &ended["duplicated"], &ended["ended_by"]), (&0.into(), &0.into(), &"drained".into()));
    assert_eq!(ended["submitted"], ended["answered"]);
    let events = |run: &Path| fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    let (from, to, who) = (&told["from"], &told["to"], "asked for by ");
    let said = format!("input {} to {} {who}", from.as_str().unwrap(), to.as_str().unwrap());
    let event = events(&first);
    assert!(event.contains(&said) && event.contains("uid") && event.contains(": smaller"), "{event}");
    // The next one's log says what it follows.
    until("the same in the next log", || events(&second).contains(first.file_name().unwrap().to_str().unwrap()));
    // Then a file, whose end ends the run.
    let shots = format!("{} --dem {}", word(&golden(SHOTS)), word(&golden(DEM)));
    let third = world.run(&format!("ctl input {shots}")).text();
    assert!(third.contains(SHOTS), "{third}");
    until("the end of the file", || headless.0.try_wait().unwrap().is_some());
    assert_eq!(headless.0.wait().unwrap().code(), Some(0));
    assert_eq!(report(&second)["lost"], 0);
}

#[test]
fn a_run_whose_results_are_of_one_input_takes_no_other() {
    let _one = engine();
    for words in ["--rate 2000 --count 100000000 --headless", "--rate 2000 --duration 10m --json"] {
        let world = World::new();
        let _headless = Headless::start_with(&world, words);
        let said = world.run("ctl input sampler").exits(2).err;
        let option = words.split_whitespace().find(|word| ["--count", "--json"].contains(word)).unwrap();
        assert!(said.contains(&format!("a run with {option} ")) && said.contains("start another"), "{said}");
        assert_eq!(world.run("ctl status").exits(0).json()["phase"], "LIVE");
    }
}

#[test]
fn after_another_model_the_next_input_has_to_name_its_model() {
    let _one = engine();
    let world = World::new();
    let _headless = Headless::start_with(&world, "--rate 2000 --duration 10m --headless --dem surface_d3");
    let text = fs::read_to_string(golden(DEM)).unwrap();
    world.put("today.dem", text.replacen("error(0.0", "error(0.1", 1));
    acknowledged(&world, "ctl model today.dem --stream 0");
    let said = world.run("ctl input sampler").exits(2).err;
    assert!(said.contains("today.dem instead of the model of the start") && said.contains("--dem"), "{said}");
    world.run("ctl input sampler --dem today.dem").exits(0);
    drained(&world, "ctl drain");
}

#[test]
fn a_profile_for_a_limited_time_ends_with_its_run_and_another_decoder_stays() {
    let _one = engine();
    let world = World::new();
    let _headless = Headless::start_with(&world, "--rate 2000 --duration 10m --headless --decoder correlated");
    acknowledged(&world, "ctl decoder union-find");
    acknowledged(&world, "ctl profile lab --for 10m");
    world.run("ctl input sampler --dem surface_d3").exits(0);
    let status = world.run("ctl status").exits(0).json();
    assert_eq!((&status["profile"], &status["reverts_in_s"]), (&"shared".into(), &Value::Null));
    let profile = fs::read_to_string(run_now(&world).join("profile.ron")).unwrap();
    assert!(profile.contains("decoder: UnionFind"), "{profile}");
    drained(&world, "ctl drain");
}

#[test]
fn an_attached_console_asks_for_another_input_and_all_that_are_attached_go_on_with_it() {
    let _one = engine();
    let world = World::new();
    let mut headless = Headless::start(&world);
    let first = run_now(&world);
    let mut beside = Terminal::start(&world, "attach", (120, 30), &[]);
    beside.see_live();
    beside.press("I");
    beside.see_words(&["another input refused", "--control"]);
    let mut acting = Terminal::start(&world, "attach --control", (120, 30), &[]);
    acting.see_live();
    acting.press("I");
    acting.see_words(&["input: sampler, a file of shots"]);
    acting.press("nothing.b8\r");
    acting.see_words(&["input nothing.b8?"]);
    acting.press("y");
    // The console's own directory is meant, wherever the engine's process stands.
    acting.see_words(&["nothing.b8: found"]);
    assert_eq!(run_now(&world), first);
    acting.press("I");
    acting.see_words(&["input: sampler, a file of shots"]);
    acting.press("sampler --dem surface_d3\r");
    acting.see_words(&["input sampler --dem surface_d3?", "The engine drains"]);
    acting.press("y");
    for terminal in [&mut acting, &mut beside] {
        terminal.see("the next run", |screen| {
            let head = screen.rows(0, 120).next().unwrap();
            head.contains("LIVE") && head.contains("surface_d3")
        });
        terminal.see_live();
    }
    let second = run_now(&world);
    assert_ne!(first, second);
    assert_eq!(report(&first)["lost"], 0);
    // What is asked goes to the next run's engine.
    acting.press("H");
    acting.see_words(&["hold the feed?"]);
    acting.press("y");
    acting.see_words(&["HELD"]);
    beside.see_words(&["HELD"]);
    acting.press("D");
    acting.see_words(&["drain and end the engine of process"]);
    acting.press("y");
    acting.see_words(&["ENDED"]);
    beside.see_words(&["ENDED"]);
    acting.press("q");
    beside.press("q");
    assert_eq!((acting.end(), beside.end()), (0, 0));
    assert_eq!(headless.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_console_sees_another_input_by_ctl_and_so_does_an_engine_that_lost_its_terminal() {
    let _one = engine();
    let world = World::new();
    let mut own = own_console(&world);
    let first = run_now(&world);
    world.run("ctl input sampler --dem surface_d3").exits(0);
    own.see("the next run", |screen| {
        let head = screen.rows(0, 100).next().unwrap();
        head.contains("LIVE") && head.contains("surface_d3")
    });
    own.press("u");
    own.see_words(&["input sampler surface_d5 to sampler surface_d3"]);
    own.hang_up();
    let second = run_now(&world);
    world.run("ctl input sampler --dem surface_d5").exits(0);
    let third = run_now(&world);
    world.run("ctl drain").exits(0);
    assert_eq!(own.end_unread(), 0);
    for run in [first, second, third] {
        assert_eq!((&report(&run)["lost"], &report(&run)["ended_by"]), (&0.into(), &"drained".into()));
    }
}

#[test]
fn an_attached_console_reports_a_lost_source_if_no_run_follows() {
    let _one = engine();
    let world = World::new();
    let dir = world.path("in");
    fs::create_dir(&dir).unwrap();
    let mut headless = Headless::start_with(&world, "--input unix:in/shots --headless");
    let mut beside = Terminal::start(&world, "attach", (120, 30), &[]);
    beside.see_words(&["LIVE"]);
    // The place that it has is not tried beforehand, and is gone when the next run wants it.
    fs::remove_dir_all(&dir).unwrap();
    let said = world.run("ctl input unix:in/shots").exits(2).err;
    assert!(said.contains("expected a run on another input"), "{said}");
    assert_eq!(headless.0.wait().unwrap().code(), Some(1));
    beside.see_words(&["has ended before its run on another input began"]);
    beside.press("q");
    assert_eq!(beside.end(), 1, "{}", beside.text());
}
