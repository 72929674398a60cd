//! The page of a run: what it says of a sound run, a killed one and two of them, and that texts of
//! others do nothing in it.

use crate::golden_recording::golden;
use crate::recordings::{Engine, SHORT, run_dirs};
use crate::world::{World, engine, only_engine, until};
use pinwheel_engine::board::{self, Board, Place, Shape};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::record::{Recorder, SNAPSHOT_PERIOD};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Closes a tag, opens a script, clears a terminal, and turns the direction of what follows.
const HOSTILE: &str = "\"'></td><script>alert(1)</script>&\u{1b}[2J\u{202e}fdp";

/// The texts of a page, one a line, without its tags and its style.
fn texts(page: &str) -> Vec<String> {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    let shown = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let of_tag = |piece: &str| piece.split_once('>').map_or(String::new(), |(_, text)| text.trim().to_owned());
    let texts = head.split('<').chain(body.split('<')).map(of_tag).filter(|text| !text.is_empty());
    texts.map(|text| shown.iter().fold(text, |text, (from, to)| text.replace(from, to))).collect()
}

/// Demands that a page loads nothing, runs nothing, and holds no character that is obeyed.
#[track_caller]
fn is_self_contained(page: &str) {
    let (_, after) = page.split_once("</style>").unwrap();
    for word in ["<script", "<link", "<img", "<iframe", "<object", " href=", " src=", " onload", "url(", "@import"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(!page.contains("http:") && !page.contains("https:") && !after.contains(" style="));
    assert!(page.contains("default-src 'none'"));
    assert!(
        page.chars().all(|found| found == '\n' || !(found.is_control() || ('\u{202a}'..='\u{202e}').contains(&found)))
    );
}

fn page(world: &World, words: &str) -> String {
    let page = world.run(&format!("report {words} -o -")).exits(0).text();
    is_self_contained(&page);
    page
}

/// Whether a text of the page contains this.
#[track_caller]
fn says(page: &str, part: &str) {
    assert!(texts(page).iter().any(|text| text.contains(part)), "{part} is not in {:#?}", texts(page));
}

#[test]
fn the_page_of_the_golden_recording_says_what_was_approved() {
    let world = World::new();
    let run = golden(&world);
    let page = page(&world, run);
    let place = world.path("golden").display().to_string();
    insta::assert_snapshot!("report_golden", texts(&page).join("\n").replace(&place, "DIR"));
    world.run("report golden").exits(0);
    assert_eq!(fs::read_to_string(world.path("golden/report.html")).unwrap(), page);
    // A recording stands for its run.
    let of_file = world.run("report golden/recording.pwt -o -").exits(0).text();
    assert_eq!(of_file, page);
}

#[test]
fn a_sound_run_has_its_verdict_first_then_every_section_and_its_figures_beside_another_runs() {
    let _one = engine();
    let world = World::new();
    let report = world.run(SHORT).exits(0).json();
    let late = SHORT.replace("--json", "--deadline 1us --label late --json");
    world.run(&late).exits(0);
    let runs: Vec<String> =
        run_dirs(&world).iter().map(|run| run.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let page = page(&world, &format!("{} --with {} --logs logs", runs[0], runs[1]));
    let shots = report["answered"].as_u64().unwrap().to_string();
    let shots =
        if shots.len() > 3 { format!("{},{}", &shots[..shots.len() - 3], &shots[shots.len() - 3..]) } else { shots };
    says(&page, &format!("Each of {shots} shots was answered exactly once."));
    says(&page, "It was ended by its duration after ");
    let headings = [
        "What ran",
        "Incidents",
        "Latency",
        "Logical errors",
        "Over time",
        "Environment",
        "Warnings and notes",
        "Compared with another run",
    ];
    let places =
        headings.map(|heading| page.find(&format!("<h2>{heading}</h2>")).unwrap_or_else(|| panic!("{heading}")));
    assert!(page.find("class=\"verdict sound\"").unwrap() < places[0] && places.is_sorted(), "{places:?}");
    for part in ["p50 ", "p99 ", "p99.9 ", "decode: in the decoder", "Answers per second", "limits.late_us"] {
        says(&page, part);
    }
    // Nothing is answered within a microsecond.
    says(&page, "1.000 [");
    says(&page, "differs");
}

#[test]
fn a_killed_run_has_a_page_of_what_it_left_which_says_so() {
    let _one = only_engine();
    let world = World::new();
    let mut killed = Engine::start(&world, "");
    until("answers", || world.run("ctl status").exits(0).json()["answered"].as_u64() > Some(500));
    let goes_on = page(&world, "last --logs logs");
    says(&goes_on, "The run goes on: ");
    killed.signal(Signal::KILL);
    killed.0.wait().unwrap();
    let left = page(&world, "last --logs logs");
    says(&left, "The run has no end: it was killed, or its machine stopped.");
    says(&left, "The run has no report.json: the figures are those of its last snapshot.");
    let board = world.run("postmortem --json").exits(0).json();
    let answered = texts(&left).into_iter().find(|text| text.starts_with("The last sign of it is from ")).unwrap();
    let digits: String = board["answered"].to_string();
    assert!(answered.replace(',', "").contains(&format!("{digits} answered")), "{answered}: {digits}");
    // Without its recording and its board, too.
    let run = &run_dirs(&world)[0];
    fs::remove_file(run.join("recording.pwt")).unwrap();
    fs::remove_dir_all(world.path("shm")).unwrap();
    let bare = page(&world, "last --logs logs");
    says(&bare, "Nothing of it was recorded.");
    says(&bare, "pinwheel"); // its command line
}

/// Pictures of an hour at ten a second.
const HOUR: u64 = 36_000;

/// Records a run of so many pictures in virtual time: the lab's sizes, 20,000 shots a second.
fn recorded(world: &World, name: &str, pictures: u64) {
    let nanos = Arc::new(AtomicU64::new(1_000_000));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    let shape = Shape { threads: 4, silos: 1, slots: 1024, workers: 8, decoders: 2, streams: 4 };
    let board = Arc::new(Board::create(shape, Place::Private).unwrap());
    board::set(&board.header().nanos_per_tick_q32, 1 << 32);
    board::set(&board.header().start_ticks, clock.start().0);
    let run = world.path(name);
    fs::create_dir(&run).unwrap();
    let mut recorder = Recorder::new(Arc::clone(&board), clock, Some(&run));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    for shot in 0..pictures * 2_000 {
        let now = nanos.fetch_add(SNAPSHOT_PERIOD.0 / 2_000, Ordering::Relaxed);
        let stamps = &board.slots(0)[(shot % 1_024) as usize];
        for (later, word) in [&stamps.scheduled, &stamps.dispatched, &stamps.answered].into_iter().enumerate() {
            board::set(word, now + later as u64 * (random.next_u64() % 20_000));
        }
        let latency_ns = 20_000 + random.next_u64() % 150_000;
        board::add(&board.harvest(0).answered, 1);
        board.stream_harvest((shot % 4) as usize).latency.record(latency_ns);
        let latency = board.latency(0);
        [&latency.total, &latency.from_submit]
            .into_iter()
            .chain(&latency.stages)
            .for_each(|times| times.record(latency_ns));
        if shot % 2_000 == 1_999 {
            recorder.step();
        }
    }
}

#[test]
#[ignore = "makes a recording of an hour; for a release build"]
fn an_hour_becomes_a_page_within_two_seconds_and_two_megabytes() {
    let world = World::new();
    recorded(&world, "hour", HOUR);
    let mut spans: Vec<Duration> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            world.run("report hour -o page.html").exits(0);
            begun.elapsed()
        })
        .collect();
    spans.sort();
    let (page, tape) =
        (fs::read(world.path("page.html")).unwrap(), fs::metadata(world.path("hour/recording.pwt")).unwrap());
    eprintln!("a recording of {} bytes: {spans:?}, {} bytes", tape.len(), page.len());
    assert!(spans[2] < Duration::from_secs(2) && page.len() < 2_000_000);
    is_self_contained(std::str::from_utf8(&page).unwrap());
}

/// Replaces every text of a value.
fn poison(value: &mut Value) {
    match value {
        Value::String(text) => HOSTILE.clone_into(text),
        Value::Array(rows) => rows.iter_mut().for_each(poison),
        Value::Object(fields) => fields.values_mut().for_each(poison),
        _ => {}
    }
}

#[test]
fn texts_of_others_are_shown_and_do_nothing() {
    let world = World::new();
    let run = golden(&world);
    let mut report = world.run(&format!("replay {run} --at end --json")).exits(0).json();
    let fields = report.as_object_mut().unwrap();
    fields.remove("board");
    let at_end = json!({"alarm": "x", "what": "x", "unsound": true, "rule": "end_of_run", "number": null});
    fields["alarms"].as_array_mut().unwrap().push(at_end);
    fields.extend([("ended_by".to_owned(), json!("x")), ("exit_status".to_owned(), json!(1))]);
    fields.insert("host".to_owned(), json!({"hostname": "x", "cpu_model": "x", "kernel_release": "x"}));
    fields.insert("errors".to_owned(), json!({HOSTILE: 3}));
    fields.insert("error_names".to_owned(), json!({HOSTILE: "x"}));
    poison(&mut report);
    let mut manifest = json!({"version": "x", "board_layout": "x", "profile": "x", "label": "x", "input": "x", "seed": 1,
        "command": ["x", "x"], "pid": 1, "started_utc_s": 1, "keep": false, "plan": {}, "ended": null});
    poison(&mut manifest);
    let mut row = json!({"id": "x", "found": "x", "expected": "x", "why": "x", "fix": "x"});
    poison(&mut row);
    row["verdict"] = json!("fail");
    let name = "a<script>\u{1b}[2J\u{202e}b";
    fs::rename(world.path(run), world.path(name)).unwrap();
    for (file, value) in
        [("report.json", &report), ("manifest.json", &manifest), ("environment.json", &json!({"rows": [row]}))]
    {
        world.put(&format!("{name}/{file}"), value.to_string());
    }
    let note = json!({"event": "note", "ticks": 1u64 << 40, "text": HOSTILE});
    world.put(&format!("{name}/events.jsonl"), note.to_string());
    // Standard output is filtered; a file has what the page has.
    let written = |more: &[&OsStr]| {
        let mut command = world.command("report");
        assert!(command.arg(name).args(more).args(["-o", "page.html"]).output().unwrap().status.success());
        fs::read_to_string(world.path("page.html")).unwrap()
    };
    for more in [&[][..], &["--with".as_ref(), name.as_ref()]] {
        let page = written(more);
        is_self_contained(&page);
        // Profile, label, command, machine, alarms, environment, note: each shows it.
        assert!(page.matches("&lt;script&gt;alert(1)").count() > 25, "{page}");
        says(&page, r"</td><script>alert(1)</script>&\u{1b}[2J\u{202e}fdp");
    }
}

#[test]
fn what_cannot_be_read_or_written_is_refused_in_one_sentence() {
    let world = World::new();
    golden(&world);
    world.put("empty/other", "");
    world.put("damaged/recording.pwt", "no recording");
    for (words, part) in [
        ("report nothing --logs logs", "found none in logs"),
        ("report golden --with nothing --logs logs", "run nothing: found none"),
        ("report golden --with empty", "neither report.json nor a recording"),
        ("report empty", "neither report.json nor manifest.json"),
        ("report damaged", "neither report.json nor manifest.json"),
        ("report golden -o empty", "cannot write"),
        ("report golden -o no/such/page.html", "cannot write"),
        ("report golden -o /dev/full", "/dev/full"),
        ("report golden -o golden/recording.pwt", "expected a file of its own"),
    ] {
        let ran = world.run(words).exits(2);
        assert!(ran.err.contains(part) && ran.err.trim_end().lines().count() == 1, "{words}: {}", ran.err);
    }
    // Of a run whose recording cannot be read, what its report says is compared.
    world.put("damaged/report.json", "{}");
    let compared = world.run("compare golden damaged").exits(0).text();
    let part = "damaged: distributions are not compared: recording ";
    assert!(compared.contains(part) && compared.contains("are not the head of a recording"), "{compared}");
    // A page that exists is replaced, as every other output is.
    world.put("page.html", "old");
    world.run("report golden -o page.html").exits(0);
    assert!(fs::read_to_string(world.path("page.html")).unwrap().starts_with("<!DOCTYPE html>"));
}
