//! Collecting logical error rates: killed at any moment, shared by several processes, and what is refused.

use crate::world::{World, only_engine, until, word};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const SHOTS: u64 = 6_000_000;

fn text_of(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

/// What was refused, without the lines on cores that other programs use at the moment.
fn refusal(err: &str) -> String {
    err.lines().filter(|line| !line.contains(" left to ")).collect::<Vec<_>>().join("\n")
}

/// Shots and errors in a file, and its rows.
fn sums(world: &World, file: &Path) -> (u64, u64, usize) {
    let text = text_of(file);
    let merged = world.run(&format!("collect merge {}", word(file))).exits(0).text();
    let fields: Vec<u64> = merged
        .lines()
        .nth(1)
        .map_or_else(Vec::new, |row| row.split(',').take(2).map(|field| field.trim().parse().unwrap()).collect());
    (fields.first().copied().unwrap_or(0), fields.get(1).copied().unwrap_or(0), text.lines().count() - 1)
}

#[test]
fn a_collection_that_is_killed_again_and_again_counts_each_shot_once() {
    // A collection takes cores on which no other thread is pinned.
    let _alone = only_engine();
    let world = World::new();
    let [parts, whole] = ["parts.csv", "whole.csv"].map(|name| world.path(name));
    let words =
        |file: &Path| format!("collect --dem surface_d3 --max-shots {SHOTS} --seed 5 --threads 2 -o {}", word(file));
    let result = world.run(&format!("{} --json", words(&whole))).exits(0).json();
    assert_eq!((result[0]["shots"].as_u64(), result[0]["metadata"]["dem"].as_str()), (Some(SHOTS), Some("surface_d3")));
    let mut killed = 0;
    for turn in 0.. {
        let before = fs::read(&parts).unwrap_or_default().len();
        let mut child = world.command(&words(&parts)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // As soon as it has counted something, or is done.
        until("rows or the end", || {
            child.try_wait().unwrap().is_some() || fs::read(&parts).unwrap_or_default().len() > before.max(100)
        });
        if child.try_wait().unwrap().is_some_and(|status| status.success()) {
            break;
        }
        let signal = if turn % 2 == 0 { Signal::KILL } else { Signal::TERM };
        let _ = kill_process(Pid::from_child(&child), signal);
        let status = child.wait().unwrap();
        assert!(signal == Signal::KILL || matches!(status.code(), Some(0 | 143)), "{status:?}");
        killed += 1;
        // What a full disk or a lost machine may leave.
        if turn == 2 {
            let text = fs::read(&parts).unwrap();
            fs::write(&parts, [text.as_slice(), b"     65536,      10"].concat()).unwrap();
        }
    }
    let ((shots, errors, rows), expected) = (sums(&world, &parts), sums(&world, &whole));
    assert_eq!((shots, errors), (expected.0, expected.1), "{killed} kills, {rows} rows");
    assert!(killed > 0 && rows > 1, "{killed} kills, {rows} rows");
}

#[test]
fn shards_are_merged_into_the_rows_of_all_and_two_processes_do_not_share_a_file() {
    // A collection takes cores on which no other thread is pinned.
    let _alone = only_engine();
    let world = World::new();
    let file = |index: u32| world.path(&format!("{index}.csv"));
    for index in 1..=3 {
        let place = word(&file(index));
        world
            .run(&format!(
                "collect --dem surface_d3 --decoder matching,union-find --max-shots 1e5 --shard {index}/3 -o {place}"
            ))
            .exits(0);
    }
    let all = (1..=3).map(|index| word(&file(index))).collect::<Vec<_>>().join(" ");
    let out = world.path("all.csv");
    world.run(&format!("collect merge {all} -o {}", word(&out))).exits(0);
    let text = text_of(&out);
    let shots: Vec<&str> = text.lines().skip(1).map(|row| row.split(',').next().unwrap().trim()).collect();
    assert_eq!(shots, ["100000", "100000"]);
    assert!(text.lines().next().unwrap().starts_with("     shots,    errors,  discards, seconds,decoder,strong_id"));
    let said = world.run(&format!("collect merge {all} {}", word(&file(1)))).exits(2).err;
    assert!(said.contains("expected each file once"), "{said}");
    // Sums in place of a part would be counted twice by the next merge.
    let said = world.run(&format!("collect merge {all} -o {}", word(&file(3)))).exits(2).err;
    assert!(said.contains("the file of the results to sum"), "{said}");
    let cut = world.put("cut.csv", text.clone() + "      7,");
    let said = world.run(&format!("collect merge {}", word(&cut))).exits(0).err;
    assert!(said.contains("left out 8 bytes of a line that was cut off"), "{said}");
    assert_eq!(world.run(&format!("collect merge {all} -o -")).exits(0).text(), text);
    assert!(!world.path("-").exists());
    // Another process holds the file.
    let held = word(&file(1));
    let mut child = world
        .command(&format!("collect --dem surface_d3 --max-time 60s -o {held}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let before = text_of(&file(1)).len();
    until("its first row", || text_of(&file(1)).len() > before);
    let said = world.run(&format!("collect --dem surface_d3 --max-shots 1 --threads 1 -o {held}")).exits(2).err;
    assert!(said.contains("another process collects into it"), "{said}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A file may have rows of shots that nobody counted by gaps or faults: the first 1,000 here.
#[test]
fn answers_are_counted_by_gap_and_shots_that_were_not_are_named() {
    // A collection takes cores on which no other thread is pinned.
    let _alone = only_engine();
    let world = World::new();
    let words = format!("collect --dem surface_d3 --seed 5 --threads 1 -o {}", word(&world.path("r.csv")));
    let estimated = world.run(&format!("{words} --max-shots 1000")).exits(0).text();
    assert_eq!(estimated.lines().count(), 1, "{estimated}");
    let none = world.run(&format!("{words} --max-shots 1000 --estimate 0.5 --gaps")).exits(0).text();
    let none: Vec<&str> = none.lines().skip(1).collect();
    let of = |option, counted, left| format!("  {option}: of {counted} shots; {left} were collected without it");
    assert_eq!(none, [of("--estimate", "0", "1,000"), of("--gaps", "0", "1,000")], "no rate of 0");
    let found = world.run(&format!("{words} --max-shots 21000 --gaps")).exits(0).text();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[1], of("--gaps", "20,000", "1,000"));
    assert!(lines[2].starts_with("  gap of 5 dB or more: ") && lines[2].contains(" % of shots, "), "{found}");
    let result = world.run(&format!("{words} --max-shots 21000 --gaps --json")).exits(0).json();
    let counted: u64 = result[0]["gaps"].as_array().unwrap().iter().map(|gap| gap["shots"].as_u64().unwrap()).sum();
    assert_eq!((counted, result[0]["shots"].as_u64()), (20_000, Some(21_000)));
    let torus = world.put("torus.dem", "error(0.1) D0 D1 L0\nerror(0.1) D1 D2\nerror(0.1) D2 D0\n");
    let refused = world.run(&format!("collect --dem {} --gaps --max-shots 9 -o torus.csv", word(&torus))).exits(2).err;
    assert!(refusal(&refused).contains("torus.dem"), "{refused}");
}

#[test]
fn a_model_without_observables_has_no_rate() {
    // A collection takes cores on which no other thread is pinned.
    let _alone = only_engine();
    let world = World::new();
    world.put("m.dem", "error(0.1) D0\nerror(0.1) D0 D1\n");
    let words = "collect --dem m.dem --max-shots 100 --threads 1 --estimate 0.5 -o r.csv";
    let result = &world.run(&format!("{words} --json")).exits(0).json()[0];
    assert_eq!((&result["shots"], &result["estimated_shots"]), (&100.into(), &100.into()), "{result}");
    assert!(result["rate"].is_null() && result["rate_ci95"].is_null(), "{result}");
    assert_eq!(result["estimates"], serde_json::json!([]), "{result}");
    let text = world.run(words).exits(0).text();
    assert!(text.contains("0 errors of 100 shots") && !text.contains("a shot, 95 %"), "{text}");
}

/// A mechanism that fires three detectors, which no built-in decoder takes.
#[test]
fn a_plugin_is_collected_by_its_file_and_another_build_of_it_is_another_task() {
    // A collection takes cores on which no other thread is pinned.
    let _alone = only_engine();
    let world = World::new();
    let library = world.path("own.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/plugins/single_mechanisms.c");
    let build = |flags: &[&str]| {
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-shared", "-fPIC"]).args(flags).arg("-o").arg(&library).arg(&source).status().unwrap()
    };
    assert!(build(&["-O0"]).success());
    world.put("three.dem", "error(0.1) D0 D1 D2 L0\nerror(0.2) D3\n");
    let collect = || {
        let words = format!("collect --dem three.dem --max-shots 3000 --decoder plugin:{} --json", word(&library));
        world.run(&format!("{words} --threads 2 -o r.csv")).exits(0).json()
    };
    let found = collect();
    assert_eq!(found[0]["decoder"], "plugin:own.so");
    assert_eq!((found[0]["shots"].as_u64(), found[0]["errors"].as_u64()), (Some(3_000), Some(0)));
    let words = format!("--decoder plugin:{} --plugin-config {{\"a\":1}}", word(&library));
    let said = world.run(&format!("collect --dem three.dem --max-shots 9 {words} -o other.csv")).exits(2).err;
    assert!(said.contains(r#""plugin_config":{"a":1}} by plugin:own.so: the plugin refuses"#), "{said}");
    let rows = || text_of(&world.path("r.csv")).lines().count() - 1;
    let first = rows();
    collect();
    assert_eq!(rows(), first, "its shots are counted");
    std::fs::remove_file(&library).unwrap();
    assert!(build(&["-O0", "-DANOTHER", "-g"]).success());
    assert_ne!(collect()[0]["strong_id"], found[0]["strong_id"]);
    assert!(rows() > first);
}

#[test]
fn rates_at_other_noise_are_estimated_where_direct_sampling_finds_them() {
    // A collection takes cores on which no other thread is pinned.
    let _alone = only_engine();
    let world = World::new();
    let [counted, direct] = ["counted.csv", "direct.csv"].map(|name| word(&world.path(name)));
    let run = |words: &str| {
        world.run(&format!("collect --dem surface_d3 --max-shots 3e5 --seed 1 --json {words}")).exits(0).json()
    };
    let estimates = run(&format!("--estimate 0.7,1.3 -o {counted}"))[0]["estimates"].clone();
    let sampled = run(&format!("--noise 0.7,1.3 -o {direct}"));
    for (estimate, sampled) in estimates.as_array().unwrap().iter().zip(sampled.as_array().unwrap()) {
        let ends = |value: &Value, key: &str| [0, 1].map(|at| value[key][at].as_f64().unwrap());
        let ([low, high], [direct_low, direct_high]) = (ends(estimate, "ci95"), ends(sampled, "rate_ci95"));
        assert_eq!(estimate["scale"], sampled["metadata"]["noise_scale"]);
        assert!(low <= direct_high && direct_low <= high, "{estimate} {sampled}");
    }
}

#[test]
fn what_cannot_be_collected_is_refused_in_one_sentence_and_leaves_no_file() {
    // A collection takes cores on which no other thread is pinned.
    let _alone = only_engine();
    let world = World::new();
    let (out, dem) = (world.path("out.csv"), world.put("h.dem", "error(0.1) D0 D1 D2 L0\n"));
    let no_observables = world.put("n.dem", "error(0.1) D0\n");
    let place = word(&out);
    for (words, part) in [
        (format!("--dem surface_d3 -o {place}"), "--max-shots, --max-errors or --max-time"),
        (format!("--dem nope --max-shots 5 -o {place}"), "one of surface_d5"),
        (format!("--dem surface_d3 surface_d3 --max-shots 5 -o {place}"), "each task once"),
        (format!("--dem surface_d3 --decoder plugin:/x --gaps --max-shots 5 -o {place}"), "leave --gaps or the plugin"),
        (format!("--dem {} --max-errors 5 -o {place}", word(&no_observables)), "without errors, expected an end"),
        (format!("--dem surface_d3 --max-shots 5 --shard 3/2 -o {place}"), "like 1/8"),
        (format!("--dem surface_d3 --max-shots 5 --noise 0 -o {place}"), "from 1e-6 to 1e6"),
        (format!("--dem surface_d3 --dem surface_d5 --shots a --observables b -o {place}"), "one, that of the shots"),
        (format!("--dem surface_d3 --plugin-config 1 --max-shots 5 -o {place}"), "add --decoder plugin:PATH"),
        ("--dem surface_d3 --max-shots 5 -o /dev/null".to_owned(), "no ordinary file"),
        ("--dem surface_d3 --max-shots 5 -o -".to_owned(), "-o -: found standard output"),
        (format!("--dem {0} --max-shots 5 -o {0}", word(&world.put("empty.dem", ""))), "the file of --dem"),
    ] {
        let said = refusal(&world.run(&format!("collect {words}")).exits(2).err);
        assert!(said.contains(part) && said.trim().lines().count() == 1, "{words}: {said}");
    }
    assert!(!out.exists());
    for (words, part) in [
        (word(&dem), r#"{"dem":"h.dem"} by matching: "#),
        ("surface_d3 --decoder plugin:/x".to_owned(), r#"by plugin:x: the plugin "/x" cannot be read"#),
    ] {
        let said = refusal(&world.run(&format!("collect --dem {words} --max-shots 5 -o {place}")).exits(2).err);
        assert!(said.contains(part) && said.trim().lines().count() == 1, "{said}");
    }
}
