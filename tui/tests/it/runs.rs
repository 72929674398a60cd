//! What `run` prints and how it ends, by `CONTRACT`'s names.

use crate::world::{
    SHORT_DRAIN, World, calm_lab_with, engine, golden, has_keys, keys, patient, until, until_seen, word,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

const REPORT: &str = "submitted answered lost duplicated out_of_order errors late deadline_ns logical_errors \
    logical_error_rate logical_error_rate_ci95 shots_with_observables ended_by throughput_per_s latency_ns \
    latency_from_submit_ns stages console_cost device decoder predecoder profile silos threads streams alarms host run_dir \
    decoders ler_at model incidents";

#[track_caller]
fn sound(report: &Value, shots: u64) {
    assert_eq!((report["submitted"].as_u64(), report["answered"].as_u64()), (Some(shots), Some(shots)), "{report}");
    assert_eq!((report["lost"].as_u64(), report["duplicated"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn json_has_every_key_of_the_contract_and_the_run_directory_keeps_it() {
    let _one = engine();
    let world = World::new();
    // A shot that a deadline ends has no prediction to judge.
    let ran = world.run(&format!("run --json {} --count 2000 --rate max --label night-7", patient(&world))).exits(0);
    let report = ran.json();
    has_keys(&report, REPORT);
    sound(&report, 2000);
    for times in ["latency_ns", "latency_from_submit_ns"] {
        has_keys(&report[times], "p50 p90 p99 p999 max");
        assert!(report[times]["p50"].as_u64().unwrap() > 0);
    }
    for (name, times) in report["stages"].as_object().unwrap() {
        has_keys(times, "p50 p99 max count");
        assert!(!name.is_empty());
    }
    for thread in report["threads"].as_array().unwrap() {
        has_keys(thread, "name roles core hot frames frame_gap_ns allocations frames_elsewhere");
        has_keys(&thread["frame_gap_ns"], "p50 p99 p999 max");
    }
    let streams = report["streams"].as_array().unwrap();
    assert_eq!(streams.iter().map(|stream| stream["answered"].as_u64().unwrap()).sum::<u64>(), 2000);
    for stream in streams {
        has_keys(stream, "id answered late errors p99 logical_error_rate input_health");
    }
    has_keys(&report["decoders"][0], "name shots share logical_errors p50 p99 disagreements");
    has_keys(&report["ler_at"][0], "t_ns rate ci95");
    has_keys(&report["model"], "hash path");
    assert_eq!((report["ended_by"].as_str(), report["label"].as_str()), (Some("count"), Some("night-7")));
    let [low, high] = [0, 1].map(|i| report["logical_error_rate_ci95"][i].as_f64().unwrap());
    let rate = report["logical_error_rate"].as_f64().unwrap();
    assert!((low..=high).contains(&rate) && report["shots_with_observables"] == 2000);
    assert_eq!(world.report("state/pinwheel"), report);
    assert!(ran.err.lines().all(|line| !line.contains("panicked")), "{}", ran.err);
}

#[test]
fn a_duration_ends_a_run_and_says_so() {
    let _one = engine();
    let world = World::new();
    let report = world.run("run --profiles calm --profile lab --json --duration 300ms --rate 2000").exits(0).json();
    assert_eq!(report["ended_by"], "duration");
    let live_ns = report["elapsed_live_ns"].as_u64().unwrap();
    assert!(live_ns >= 300_000_000, "{live_ns}");
    sound(&report, report["submitted"].as_u64().unwrap());
    assert_eq!(report["rate_hz"], 2000.0);
}

#[test]
fn the_report_goes_to_standard_output_and_progress_to_standard_error() {
    let _one = engine();
    let world = World::new();
    until_seen(["1500ms", "6s", "30s"], |span| {
        let ran = world.run(&format!("run --profiles calm --profile lab --duration {span} --rate 2000")).exits(0);
        for part in ["answered", "must equal submitted", "ended by duration", "Kept in "] {
            assert!(String::from_utf8_lossy(&ran.out).contains(part), "{part}");
        }
        ran.err.lines().any(|line| line.contains("answered") && line.contains("p99"))
    });
}

#[test]
fn answers_on_standard_output_are_one_line_each_and_the_report_is_the_last() {
    let _one = engine();
    let world = World::new();
    let ran =
        world.run("run --profiles calm --profile lab --json --count 500 --rate max --streams 2 --answers -").exits(0);
    let lines: Vec<Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (report, answers) = lines.split_last().unwrap();
    sound(report, 500);
    assert_eq!(answers.len(), 500);
    let mut seen: Vec<(u64, u64)> = answers
        .iter()
        .map(|answer| {
            assert_eq!(keys(answer).len(), 7);
            has_keys(answer, "stream seq status observables latency_ns decoder model");
            assert_eq!((&answer["decoder"], &answer["model"]), (&Value::from("matching"), &report["model"]["hash"]));
            (answer["stream"].as_u64().unwrap(), answer["seq"].as_u64().unwrap())
        })
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 500, "an answer came twice");
}

#[test]
fn a_reader_of_answers_that_goes_away_ends_nothing_badly() {
    let _one = engine();
    let world = World::new();
    let mut command = world.command("run --count 5000 --rate max --answers -");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with('{'), "{first}");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert!(status.code().is_some() && !said.contains("panicked"), "{status}: {said}");
}

#[test]
fn without_shared_memory_it_says_so_once_and_runs() {
    let _one = engine();
    let world = World::new();
    let mut command = world.command("run --profiles calm --profile lab --json --count 300 --rate max");
    let output = command.env("PINWHEEL_SHM", "/proc/nowhere").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    sound(&report, 300);
    let notes = report["notes"].to_string();
    assert_eq!(
        notes.matches("board not shared").count() + said.matches("board not shared").count(),
        1,
        "{notes}{said}"
    );
}

#[test]
fn sigterm_and_sigint_drain_and_exit_by_their_number() {
    let _one = engine();
    for (signal, status, ended_by) in
        [(rustix::process::Signal::TERM, 143, "sigterm"), (rustix::process::Signal::INT, 130, "sigint")]
    {
        let world = World::new();
        let mut command =
            world.command("run --profiles calm --json --profile shared --rate 2000 --duration 40s --answers a");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("an answer", || world.answer_bytes() > 0);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["ended_by"], ended_by);
        sound(&report, report["submitted"].as_u64().unwrap());
    }
}

#[test]
fn a_role_that_panics_ends_the_run_with_status_1_and_every_shot_answered() {
    let _one = engine();
    let world = World::new();
    // A shot is answered at the end of the drain if a worker has taken it: enough workers for every shot
    // that a busy machine leaves in the ring.
    let workers = ("workers: 8,", "workers: 64,");
    let dies = ("role_panic: None", "role_panic: Some((role: Poll, after_items: 200))");
    world.put("profiles/faulty.ron", calm_lab_with(&[dies, workers, SHORT_DRAIN]));
    let ran = world.run("run --json --profiles profiles --profile faulty --rate 2000 --duration 1m").exits(1);
    let report = ran.json();
    assert_eq!(report["ended_by"], "fault");
    sound(&report, report["submitted"].as_u64().unwrap());
    let alarms = report["alarms"].to_string();
    assert!(alarms.contains("role_died") && alarms.contains("poll"), "{alarms}");
}

#[test]
fn shots_of_a_multiple_of_the_width_are_caught_by_input_health() {
    let _one = engine();
    let world = World::new();
    // 120 detectors are 15 bytes a shot, which read as 24 detectors are five shots of 3 bytes.
    let words = format!(
        "run --json --rate max --dem {} --shots {}",
        word(&golden("surf_z_d3_r3_p0.005.dem")),
        word(&golden("surf_z_d5_r5_p0.005.dets.b8")),
    );
    let ran = world.run(&words);
    if ran.status == Some(2) {
        panic!("refused outright: {}", ran.err);
    }
    let report = ran.json();
    let verdicts: Vec<&str> = report["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stream| stream["input_health"]["verdict"].as_str().unwrap())
        .collect();
    assert_eq!((ran.status, verdicts.contains(&"Bad")), (Some(1), true), "{verdicts:?} {}", report["alarms"]);
    assert!(report["alarms"].to_string().contains("input_bad"), "{}", report["alarms"]);
}

#[test]
fn shots_from_standard_input_drain_at_its_end() {
    let _one = engine();
    let world = World::new();
    let words = format!(
        "run --json {} --rate max --dem {} --shots - --predictions p",
        patient(&world),
        word(&golden("surf_z_d3_r3_p0.005.dem"))
    );
    let mut command = world.command(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let shots = std::fs::read(golden("surf_z_d3_r3_p0.005.dets.b8")).unwrap();
    let head = shots[..3 * 1000].to_vec();
    let mut stdin = child.stdin.take().unwrap();
    let giver = std::thread::spawn(move || stdin.write_all(&head).unwrap());
    let output = child.wait_with_output().unwrap();
    giver.join().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    sound(&report, 1000);
    assert_eq!((report["ended_by"].as_str(), report["logical_error_rate"].is_null()), (Some("input"), true));
    let expected = std::fs::read(golden("surf_z_d3_r3_p0.005.pm.b8")).unwrap();
    assert_eq!(std::fs::read(world.path("p")).unwrap().len(), 1000);
    let differ = std::fs::read(world.path("p")).unwrap().iter().zip(&expected).filter(|(a, b)| a != b).count();
    assert!(differ <= 1, "{differ} of 1000 predictions differ");
}

#[test]
fn an_input_that_breaks_off_says_where_and_why_and_what_came_before_is_answered() {
    let _one = engine();
    let world = World::new();
    let dem = word(&golden("surf_z_d3_r3_p0.005.dem"));
    let words = format!("run --json {} --rate max --dem {dem} --shots - --format 01", patient(&world));
    let mut command = world.command(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{0}\n{0}\nnot a shot\n", "0".repeat(24)).as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), report["answered"].as_u64(), report["lost"].as_u64()),
        (Some(1), Some(2), Some(0))
    );
    let alarms = report["alarms"].as_array().unwrap();
    let told = alarms.iter().find(|alarm| alarm["alarm"] == "input_broken").unwrap().to_string();
    assert!(told.contains("line 3") && told.contains("expected"), "{told}");
}

#[test]
fn an_allocation_on_a_hot_thread_is_counted_and_its_source_line_named() {
    let _one = engine();
    let world = World::new();
    let profile = calm_lab_with(&[("role_allocation: None", "role_allocation: Some((role: Poll, after_items: 200))")]);
    world.put("profiles/faulty.ron", profile);
    let ran = world.run("run --json --profiles profiles --profile faulty --rate 2000 --count 4000").exits(0);
    let report = ran.json();
    let calls: Vec<u64> =
        report["threads"].as_array().unwrap().iter().map(|t| t["allocations"].as_u64().unwrap()).collect();
    assert_eq!(calls.iter().sum::<u64>(), 2, "one call for the block, one to free it: {calls:?}");
    let alarms = report["alarms"].to_string();
    assert!(alarms.contains("hot_allocation") && alarms.contains("faulty.rs:"), "{alarms}");
}
