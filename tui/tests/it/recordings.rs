//! What runs leave, and what can be learnt from it: recordings, boards of the dead, dumps,
//! comparisons, traces, metrics.

use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{Ran, World, engine, has_keys, only_engine, until, until_seen};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A run of a moment.
pub const SHORT: &str = "run --profiles calm --profile shared --rate 2000 --duration 1500ms --logs logs --json";

/// Runs that a moment has to be near in, or an end.
const TRIES: usize = 8;

/// The runs in `logs`, oldest first.
pub fn run_dirs(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.path("logs")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    runs.sort();
    runs
}

fn boards(world: &World) -> usize {
    let names = fs::read_dir(world.path("shm")).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("board-")).count()
}

/// A run without an end; killed when the test is over, however it ends.
pub struct Engine(pub Child);

impl Engine {
    pub fn start(world: &World, more: &str) -> Engine {
        let words =
            format!("run --profiles calm --profile shared --rate 2000 --duration 10m --logs logs --headless {more}");
        let mut command = world.command(&words);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let engine = Engine(child);
        let recorded = || run_dirs(world).first().and_then(|run| fs::metadata(run.join("recording.pwt")).ok());
        until("two seconds of a recording", || recorded().is_some_and(|found| found.len() > 25_000));
        engine
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.0.id() as i32).unwrap(), signal).unwrap();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_leaves_a_manifest_a_recording_and_histograms_and_every_moment_of_it_is_replayed() {
    let _one = only_engine();
    assert!((0..TRIES).any(|_| leaves_what_is_replayed(&World::new())), "no moment of {TRIES} runs is near");
}

/// Whether the moment that was asked for is near; a recorder that has no turn takes no picture meanwhile.
fn leaves_what_is_replayed(world: &World) -> bool {
    let report = world.run(&format!("{SHORT} --keep --label first")).exits(0).json();
    let [run] = &run_dirs(world)[..] else { panic!("one run") };
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("manifest.json")).unwrap()).unwrap();
    has_keys(&manifest, "version board_layout profile label input seed command pid started_utc_s keep plan ended");
    assert_eq!((&manifest["keep"], &manifest["ended"]["by"]), (&Value::Bool(true), &report["ended_by"]));
    assert_eq!(manifest["input"], report["input"]);
    assert!(manifest["plan"]["threads"].as_array().is_some_and(|threads| !threads.is_empty()), "{}", manifest["plan"]);
    assert!(fs::read_to_string(run.join("latency.hlog")).unwrap().contains("Tag=latency,"));

    let last = world.run("replay last --at end --json --logs logs").exits(0).json();
    has_keys(&last, "submitted answered errors late latency_ns stages threads streams alarms replay board");
    assert!(last.get("exit_status").is_none() && last.get("ended_by").is_none());
    assert_eq!(last["answered"], report["answered"]);
    assert_eq!(last["latency_ns"], report["latency_ns"]);
    assert_eq!(last["stages"], report["stages"]);
    let name = run.file_name().unwrap().to_str().unwrap();
    let early = world.run(&format!("replay {name} --at 1s --json --logs logs")).exits(0).json();
    assert!(early["answered"].as_u64() <= last["answered"].as_u64());
    let at_ns = early["replay"]["at_ns"].as_u64().unwrap();
    assert!(at_ns <= 1_000_000_000, "{at_ns}");
    assert!(world.run("replay last --logs logs").exits(0).text().contains("heartbeat"));
    for output in ["--json", "--snapshot", "--csv --view threads", "--svg"] {
        let [printed, end] =
            ["", " --at end"].map(|at| world.run(&format!("replay last {output}{at} --logs logs")).exits(0).text());
        assert!(printed == end, "{output}: without --at, printed output shows the end");
    }
    at_ns >= 800_000_000
}

#[test]
fn a_missing_run_and_an_invalid_moment_are_refused_in_one_sentence() {
    let world = World::new();
    for (words, part) in [
        ("replay last --logs logs", "pinwheel run"),
        ("trace nothing --logs logs", "found none in logs"),
        ("trace nothing --logs logs --hlog -", "--hlog -: found standard output"),
        ("compare a b --logs logs", "run a: found none"),
        ("replay last --at noon", "12.5s"),
        ("postmortem", "replay last"),
        ("dump", "pinwheel run"),
    ] {
        let ran = world.run(words).exits(2);
        assert!(ran.err.contains(part) && ran.err.trim_end().lines().count() == 1, "{words}: {}", ran.err);
    }
}

#[test]
fn a_killed_engine_leaves_its_board_for_the_post_mortem_and_its_recording() {
    let _one = only_engine();
    assert!((0..TRIES).any(|_| leaves_its_board(&World::new())), "no recording of {TRIES} goes on to the end");
}

/// Whether its recording went on to shortly before its end; a recorder that has no turn has taken no picture.
fn leaves_its_board(world: &World) -> bool {
    let mut killed = Engine::start(world, "");
    let pid = killed.0.id();
    until("answers", || world.run("ctl status").exits(0).json()["answered"].as_u64() > Some(500));
    killed.signal(Signal::KILL);
    killed.0.wait().unwrap();
    let found = world.run("postmortem --json").exits(0).json();
    has_keys(&found, "submitted answered threads postmortem board");
    assert_eq!(found["postmortem"]["pid"], pid);
    assert!(found["answered"].as_u64().unwrap() > 500);
    assert_eq!(found["board"]["recorder"]["state"], "disk");
    let run = PathBuf::from(found["postmortem"]["run_dir"].as_str().unwrap());
    assert_eq!(world.path("").join(run).canonicalize().unwrap(), run_dirs(world)[0].canonicalize().unwrap());
    let last = world.run("replay last --at end --json --logs logs").exits(0).json();
    let (board_ns, tape_ns) = (found["board"]["at_ns"].as_u64().unwrap(), last["replay"]["at_ns"].as_u64().unwrap());
    assert!(board_ns + 50_000_000 > tape_ns, "{board_ns} {tape_ns}");
    // Its rates count from Live, not from its start.
    let compared = world.run("compare last last --logs logs --json").exits(0).json();
    let rates = compared["rates"].as_array().unwrap();
    let throughput = rates.iter().find(|rate| rate["name"] == "throughput").unwrap()["rate"][0].as_f64().unwrap();
    let from_start = last["answered"].as_u64().unwrap() as f64 * 1e9 / tape_ns as f64;
    assert!(throughput > 1.001 * from_start && throughput < 4_000.0, "{throughput} {from_start}");
    for whose in [&pid.to_string(), "last --logs logs"] {
        let told = world.run(&format!("postmortem {whose}")).exits(0).text();
        assert!(told.contains(&format!("left by process {pid}")), "{told}");
    }
    assert!(world.run("dump").exits(2).err.contains("pinwheel postmortem"));
    board_ns < tape_ns + 2_000_000_000
}

#[test]
fn a_frozen_engine_is_dumped_with_its_threads_its_last_minute_and_how_long_it_stood() {
    let _one = only_engine();
    let world = World::new();
    let frozen = Engine::start(&world, "");
    frozen.signal(Signal::STOP);
    until("a stopped process", || {
        fs::read_to_string(format!("/proc/{}/status", frozen.0.id())).unwrap().contains("T (stopped)")
    });
    // Silent for longer than the profile's limit, so that there is something to judge.
    let stopped = Instant::now();
    until("a silence", || stopped.elapsed() > Duration::from_millis(300));
    let told = world.run(&format!("dump {} -o bundle --json", frozen.0.id())).exits(0).json();
    assert!(told["frozen"].as_str().unwrap().starts_with('T'), "{told}");
    for file in [
        "board.json",
        "board",
        "check.json",
        "run/recording.pwt",
        "run/profile.ron",
        "run/manifest.json",
        "proc/status",
    ] {
        assert!(world.path("bundle").join(file).is_file(), "{file}: {told}");
    }
    let tasks = fs::read_dir(world.path("bundle/proc/task")).unwrap().flatten().map(|task| task.path());
    let names: Vec<String> = tasks.filter_map(|task| fs::read_to_string(task.join("comm")).ok()).collect();
    assert!(names.iter().any(|name| name.trim() == "hot-0") && names.iter().any(|name| name.trim() == "recorder"));
    let board: Value = serde_json::from_slice(&fs::read(world.path("bundle/board.json")).unwrap()).unwrap();
    let age_ns = board["board"]["threads"][0]["heartbeat_age_ns"].as_u64().unwrap();
    assert!(age_ns > 1_000_000, "it stands, and its heartbeat's age grows: {age_ns}");
    let verdicts: Value = serde_json::from_slice(&fs::read(world.path("bundle/verdicts.json")).unwrap()).unwrap();
    assert!(
        verdicts
            .as_array()
            .unwrap()
            .iter()
            .any(|verdict| verdict["thread"] == "hot-0" && verdict["cause"] == "stopped or debugged"),
        "{verdicts}"
    );
    // Who may not read another process's memory is told so; nothing is left out.
    match fs::read_to_string(world.path("bundle/stacks.txt")) {
        Ok(stacks) => {
            assert!(stacks.contains("hot-0 (thread") && stacks.lines().any(|line| line.contains(".rs:")), "{stacks}")
        }
        Err(_) => assert!(told["missing"].to_string().contains("stack of hot-0"), "{told}"),
    }
    // On a disk without room for it, what cannot be written is said.
    let line = format!("trap '' XFSZ; ulimit -f 0; exec {} dump -o full --json", env!("CARGO_BIN_EXE_pinwheel"));
    let mut full = Command::new("bash");
    full.arg("-c").arg(&line).current_dir(world.path("")).envs(world.variables());
    let full = Ran::new(&line, full.output().unwrap()).exits(1);
    assert!(full.json()["taken"].as_array().unwrap().is_empty(), "{}", full.text());
    assert!(full.err.contains("board.json cannot be written") && full.err.contains("-o DIR"), "{}", full.err);
    // The bundle's recording opens by itself.
    world.run("replay bundle/run --at end --json").exits(0);
    frozen.signal(Signal::CONT);
}

#[test]
fn two_runs_are_compared_with_intervals_and_their_profiles() {
    let _one = engine();
    let world = World::new();
    world.run(SHORT).exits(0);
    world
        .run("run --profiles calm --profile lab --rate 2000 --duration 1500ms --deadline 1us --logs logs --json")
        .exits(0);
    let runs: Vec<String> =
        run_dirs(&world).iter().map(|run| run.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let words = format!("compare {} {} --logs logs", runs[0], runs[1]);
    let compared = world.run(&format!("{words} --json")).exits(0).json();
    has_keys(&compared, "runs rates histograms environment profile inputs missing");
    let rate =
        |name: &str| compared["rates"].as_array().unwrap().iter().find(|rate| rate["name"] == name).cloned().unwrap();
    let late = rate("late");
    let lab = usize::from(runs[1].contains("lab"));
    assert_eq!(late["rate"][lab], 1.0, "nothing is answered within a microsecond: {late}");
    assert!(late["ci95"][0][0].is_number() && rate("throughput")["ci95"][1][1].is_number());
    let changes = compared["profile"].as_array().unwrap();
    assert!(changes.iter().any(|change| change["field"] == "limits.late_us"), "{changes:?}");
    assert_eq!(compared["histograms"].as_array().unwrap().len(), 8);
    assert!(compared["histograms"][0]["distance"].is_number());
    let same = world.run(&format!("compare {} {} --logs logs --json", runs[0], runs[0])).exits(0).json();
    assert!(same["rates"].as_array().unwrap().iter().all(|rate| rate["differs"] == false));
    assert_eq!((same["profile"].as_array().unwrap().len(), &same["histograms"][0]["distance"]), (0, &Value::from(0.0)));
    assert!(world.run(&words).exits(0).text().contains("profile limits.late_us"));
}

#[test]
fn a_trace_is_json_with_threads_shots_stages_and_counters() {
    let _one = engine();
    until_seen(["1500ms", "6s", "30s"], |span| {
        let world = World::new();
        world.run(&SHORT.replace("1500ms", span)).exits(0);
        is_traced(&world)
    });
}

/// Whether there was enough to trace: shots and counters are looked at by cold threads, when they have their turn.
fn is_traced(world: &World) -> bool {
    world.run("trace last --logs logs -o t.json --hlog l.hlog").exits(0);
    let trace: Value = serde_json::from_slice(&fs::read(world.path("t.json")).unwrap()).unwrap();
    let rows = trace["traceEvents"].as_array().unwrap();
    let named = |phase: &str, name: &str| rows.iter().filter(|row| row["ph"] == phase && row["name"] == name).count();
    assert!(rows.iter().any(|row| row["ph"] == "M" && row["args"]["name"] == "hot-0"));
    let has_stages = ["dispatch", "device", "queue", "decode", "harvest"].iter().all(|stage| named("X", stage) > 50);
    let has_counters = named("C", "answered/s") > 5 && named("C", "rx depth") > 5;
    for row in rows.iter().filter(|row| row["ph"] == "X") {
        assert!(row["dur"].as_f64().unwrap() >= 0.0 && row["ts"].as_f64().unwrap() > 0.0, "{row}");
    }
    let shots: Vec<&Value> = rows.iter().filter(|row| row["args"]["sequence"].is_number()).collect();
    let mut ids: Vec<_> = shots.iter().map(|row| row["name"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), shots.len(), "no shot twice");
    assert!(fs::read_to_string(world.path("l.hlog")).unwrap().contains("#[StartTime"));
    assert!(world.run("trace last --logs logs -o -").exits(0).json()["traceEvents"].is_array());
    has_stages && has_counters
}

fn scrape(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// Families in one block each, samples of a known family, numbers, an end: what an OpenMetrics
/// parser refuses otherwise.
fn well_formed(text: &str) {
    let mut family = String::new();
    let mut seen = Vec::new();
    let body = text.strip_suffix("# EOF\n").expect("an end");
    for line in body.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            family = declared.split(' ').next().unwrap().to_owned();
            assert!(!seen.contains(&family), "{family} twice");
            seen.push(family.clone());
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            let bare = name.split('{').next().unwrap();
            let suffix = bare.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line} in {family}"));
            assert!(["", "_total", "_info", "_sum", "_count"].contains(&suffix), "{line}");
            assert_eq!(name.contains('{'), name.ends_with('}'), "{line}");
        }
    }
}

#[test]
fn metrics_are_served_on_loopback_and_well_formed() {
    let _one = engine();
    let world = World::new();
    let mut running = Engine::start(&world, "--metrics 0");
    let mut said = String::new();
    let err = running.0.stderr.as_mut().unwrap();
    let mut byte = [0];
    while !said.contains("/metrics") {
        err.read_exact(&mut byte).unwrap();
        said.push(char::from(byte[0]));
    }
    let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let reply = scrape(&address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    well_formed(body);
    for name in [
        "pinwheel_answered_total{silo=\"0\"}",
        "pinwheel_thread_heartbeat_age_seconds{thread=\"hot-0\"}",
        "quantile=\"0.999\"",
    ] {
        assert!(body.contains(name), "{name}: {body}");
    }
    assert!(scrape(&address, "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(scrape(&address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    let taken =
        world.run(&format!("run --profiles calm --profile shared --metrics {address} --logs more --headless")).exits(2);
    assert!(taken.err.contains("free port") && !world.path("more").exists(), "{}", taken.err);
    running.signal(Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(143));
    assert_eq!(boards(&world), 0, "nobody holds the board any more");
}

#[test]
fn the_console_looks_back_writes_a_note_and_replays_it() {
    let _one = engine();
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    terminal.press("n");
    terminal.see_words(&["a note, kept with the run"]);
    terminal.press("pump on\r");
    terminal.see_words(&["note kept in events.jsonl"]);
    terminal.press("[[[");
    terminal.see_words(&["PAST", "f: now"]);
    terminal.press("f");
    terminal.see("the present", |screen| !screen.contents().contains("f: now"));
    terminal.press("q");
    terminal.see_words(&["drain and quit?"]);
    terminal.press("y");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());

    let mut replay = Terminal::start(&world, "replay last --logs logs", (120, 40), &[]);
    replay.see_words(&["REPLAY", "space runs"]);
    // At once: it stands still until it is told to run.
    replay.press("\x1b[F");
    replay.see("the end", |screen| screen.contents().contains("-0.0 s"));
    replay.press("2");
    replay.see_words(&["threads: which is late", "hot-0"]);
    replay.press("p");
    replay.see_words(&["another profile refused", "recording"]);
    replay.press("q");
    assert_eq!(replay.end(), 0, "{}", replay.text());
    let events = fs::read_to_string(run_dirs(&world)[0].join("events.jsonl")).unwrap();
    assert!(events.contains("\"event\":\"note\"") && events.contains("pump on"), "{events}");
}

#[test]
fn a_recording_is_replayed_to_identical_screens() {
    let _one = engine();
    let world = World::new();
    world.run(SHORT).exits(0);
    for view in ["overview", "threads", "slots", "graph", "placement", "streams", "alarms", "actions"] {
        for at in ["700ms", "end"] {
            let words = format!("replay last --at {at} --snapshot --view {view} --size 120x40 --logs logs");
            let (first, second) = (world.run(&words).exits(0).text(), world.run(&words).exits(0).text());
            assert!(first.contains("REPLAY") && first == second, "{view} at {at}:\n{first}\n{second}");
        }
    }
}

#[test]
fn old_runs_make_room_for_new_ones_and_kept_ones_stay() {
    let _one = engine();
    let world = World::new();
    let text = crate::world::calm_lab_with(&[("spin: Lab", "spin: Shared"), ("kept_runs: 20", "kept_runs: 2")]);
    world.put("p/two.ron", text);
    let run = "run --profiles p --profile two --rate 1000 --count 200 --logs logs --json";
    world.run(&format!("{run} --keep")).exits(0);
    let kept = run_dirs(&world);
    for _ in 0..3 {
        world.run(run).exits(0);
    }
    let left = run_dirs(&world);
    assert!(left.len() == 2 && left.contains(&kept[0]), "{left:?}");
}
