//! `cores`, `check` and `plan` on this machine and on a recorded one.

use crate::world::{World, engine, has_keys, lab_with};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// With a home, a state directory and a place for claims of its own.
fn pinwheel(home: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinwheel"));
    command.args(words.split_whitespace()).current_dir(home).env("HOME", home).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", home.join("state")).env("PINWHEEL_SHM", home.join("shm"));
    command.output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn every_core_of_this_machine_has_a_row() {
    let home = tempfile::tempdir().unwrap();
    let output = pinwheel(home.path(), "cores --json");
    let rows = json(&output);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(output.status.code() == Some(0) && rows.as_array().unwrap().len() >= cores, "{output:?}");
    for row in rows.as_array().unwrap() {
        assert!(row["core"].is_u64() && row["node"].is_u64() && row["pinned_by"].is_array(), "{row}");
        assert!(row["claimed_by"].is_null(), "nobody claims in a fresh place: {row}");
        assert!(row["busy"].as_f64().is_none_or(|busy| (0.0..=1.0).contains(&busy)), "{row}");
    }
}

#[test]
fn a_report_is_signed_kept_and_verified_and_a_forged_one_exits_with_1() {
    let home = tempfile::tempdir().unwrap();
    let output = pinwheel(home.path(), "check --json");
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for row in report["rows"].as_array().unwrap() {
        for key in ["id", "found", "expected", "verdict", "why", "fix"] {
            assert!(row[key].is_string(), "{key} of {row}");
        }
        assert!(["pass", "warn", "fail", "not_visible"].contains(&row["verdict"].as_str().unwrap()), "{row}");
    }
    assert_eq!((report["signature"].as_str().unwrap().len(), report["key"].as_str().unwrap().len()), (128, 64));
    let key = home.path().join("state/pinwheel/host.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);

    std::fs::write(home.path().join("kept.json"), &output.stdout).unwrap();
    let verified = pinwheel(home.path(), "check --verify kept.json --json");
    assert_eq!((verified.status.code(), &json(&verified)["verified"]), (Some(0), &Value::Bool(true)));
    assert_eq!(json(&verified)["this_host"], true);
    let forged = String::from_utf8(output.stdout).unwrap().replace("\"verdict\":\"warn\"", "\"verdict\":\"pass\"");
    std::fs::write(home.path().join("kept.json"), forged.replace("\"verdict\":\"fail\"", "\"verdict\":\"pass\""))
        .unwrap();
    let verified = pinwheel(home.path(), "check --verify kept.json");
    let said = String::from_utf8(verified.stderr).unwrap();
    assert_eq!((verified.status.code(), said.lines().count()), (Some(1), 1), "{said}");

    let strict = pinwheel(home.path(), "check --strict --json");
    let fails = json(&strict)["rows"].as_array().unwrap().iter().any(|row| row["verdict"] == "fail");
    assert_eq!(strict.status.code(), Some(i32::from(fails)));
    assert_eq!(json(&strict)["key"], report["key"]);
}

#[test]
fn a_plan_for_a_recorded_machine_uses_its_cores_and_only_those_named() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("tree");
    write(&root, "sys/devices/system/cpu/online", "0-7\n");
    for core in 0..8 {
        let name = format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        write(&root, &name, &format!("{core}\n"));
    }
    write(&root, "sys/devices/system/node/node0/cpulist", "0-3\n");
    write(&root, "sys/devices/system/node/node1/cpulist", "4-7\n");
    let hot = |words: &str| -> Vec<(u64, u64)> {
        let plan = json(&pinwheel(home.path(), words));
        let threads = plan["threads"].as_array().unwrap();
        threads.iter().map(|row| (row["core"].as_u64().unwrap(), row["node"].as_u64().unwrap())).collect()
    };
    // A silo for each node, with what is left of the first one behind the cores of the system.
    let both = [(2, 0), (3, 0), (4, 1), (5, 1), (6, 1), (7, 1)];
    assert_eq!(hot("plan --profile prod --topology tree --json"), both);
    assert_eq!(hot("plan --profile prod --topology tree/sys --cores 0-2 --json"), [(1, 0), (2, 0)]);
    std::fs::write(home.path().join("auto.ron"), "(base: \"prod\", device: Auto)").unwrap();
    for (profile, has_device) in [("prod", true), ("auto.ron", false)] {
        let plan = json(&pinwheel(home.path(), &format!("plan --profile {profile} --topology tree --json")));
        assert_eq!(plan["threads"].to_string().to_lowercase().contains("\"device"), has_device, "{plan}");
    }
    for words in ["plan --topology tree --cores 7-8", "plan --topology shm", "plan --cores x", "plan --cores 1022"] {
        let output = pinwheel(home.path(), words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.trim_end().lines().count()), (Some(2), 1), "{words}: {said}");
    }
}

/// The only run directory of a world.
fn run_dir(world: &World) -> std::path::PathBuf {
    let mut runs = std::fs::read_dir(world.path("state/pinwheel")).unwrap().map(|entry| entry.unwrap().path());
    runs.find(|path| path.is_dir()).unwrap()
}

#[test]
fn every_run_keeps_a_signed_report_of_the_machine_and_says_what_is_wrong() {
    let _one = engine();
    let world = World::new();
    let report = world.run("run --profiles calm --profile lab --json --count 500 --rate 5000").exits(0).json();
    has_keys(&report["environment"], "fail warn file");
    let kept = run_dir(&world).join("environment.json");
    assert_eq!(report["environment"]["file"], kept.to_str().unwrap());
    let verified = world.run(&format!("check --json --verify {}", kept.display())).exits(0).json();
    assert_eq!((&verified["verified"], &verified["this_host"]), (&Value::Bool(true), &Value::Bool(true)));
    let rows = verified["rows"].as_array().unwrap();
    for (verdict, key) in [("fail", "fail"), ("warn", "warn")] {
        let named: Vec<&Value> = rows.iter().filter(|row| row["verdict"] == verdict).map(|row| &row["id"]).collect();
        assert_eq!(report["environment"][key].as_array().unwrap().iter().collect::<Vec<_>>(), named);
    }
    let interrupts = rows.iter().find(|row| row["id"] == "interrupts").unwrap();
    let countable = std::fs::read_to_string("/proc/interrupts").is_ok_and(|text| text.contains("CPU"));
    // Engines beside this test may have all cores.
    let has_hot_cores = interrupts["found"] != "no core is left for hot threads";
    assert_eq!(interrupts["verdict"] != "not_visible", countable && has_hot_cores, "{interrupts}");
    for row in rows.iter().filter(|row| row["id"].as_str().unwrap().starts_with("gap_probe")) {
        let found = row["found"].as_str().unwrap();
        assert!(found.starts_with("watched for ") || row["verdict"] == "not_visible", "{row}");
    }
}

#[test]
fn an_unwritable_report_is_reported_once_and_the_run_continues() {
    let _one = engine();
    let world = World::new();
    world.put("state/pinwheel/host.key", "no key");
    let ran = world.run("run --profiles calm --profile lab --json --count 200 --rate max --logs l").exits(0);
    assert_eq!(ran.err.matches("environment report not signed").count(), 1, "{}", ran.err);
    assert!(ran.json()["environment"]["file"].is_string());
}

#[test]
fn a_strict_profile_starts_only_where_no_row_fails_and_leaves_nothing_behind_where_one_does() {
    let _one = engine();
    let world = World::new();
    world.put("profiles/strict.ron", lab_with(&[("environment: Advise", "environment: Strict")]));
    let before = world.files();
    let ran = world.run("run --json --count 200 --rate max --logs l --profiles profiles --profile strict");
    if ran.status == Some(0) {
        // A machine that is set up for it. An interrupt during warm-up is reported, and refuses nothing.
        let fail = ran.json()["environment"]["fail"].as_array().unwrap().clone();
        assert!(fail.iter().all(|row| row == "interrupts"), "{fail:?}");
        return;
    }
    let said = ran.exits(2).err;
    assert!(
        said.starts_with("pinwheel: environment Strict: the host check failed: ")
            && said.trim_end().lines().count() == 1,
        "{said}"
    );
    // A core's lock stays where it is once made: what is deleted while another waits for it locks nobody out.
    let left: Vec<_> = world.files().into_iter().filter(|name| !name.ends_with(".lock")).collect();
    assert_eq!(left, before, "left something behind");
}
