//! Models without observables, and what a run with errors among its answers exits with.

use crate::world::{World, engine, lab_with, patient};

/// What a run of `options` on the files of `world` makes: exit status and report.
fn ran(world: &World, options: &str) -> (Option<i32>, serde_json::Value) {
    let profile = patient(world);
    let ran = world.run(&format!("run --headless --json --logs logs {profile} {options}"));
    (ran.status, ran.json())
}

fn has_errored(report: &serde_json::Value) -> bool {
    report["alarms"].as_array().unwrap().iter().any(|alarm| alarm["alarm"] == "errored")
}

#[test]
fn a_model_without_observables_is_decoded_from_a_sampler_a_file_and_into_predictions() {
    let _one = engine();
    let world = World::new();
    world.put("m.dem", "error(0.1) D0\nerror(0.1) D0 D1\n");
    world.put("s.01", "01\n10\n11\n00\n".repeat(50));
    for options in ["", "--silos 2 --streams 4", "--shots s.01 --format 01", "--predictions p.01 --format 01"] {
        let (status, report) = ran(&world, &format!("--dem m.dem --count 200 --rate 5000 {options}"));
        assert_eq!((status, &report["errors"]), (Some(0), &serde_json::json!({})), "{options}: {}", report["alarms"]);
        assert_eq!((&report["answered"], &report["observables"]), (&200.into(), &0.into()), "{options}");
        for key in ["logical_error_rate", "logical_error_rate_ci95"] {
            assert!(report[key].is_null(), "{options}: {key} of no observables: {}", report[key]);
        }
        assert_eq!((&report["shots_with_observables"], &report["ler_at"]), (&0.into(), &serde_json::json!([])));
    }
    assert_eq!(std::fs::read_to_string(world.path("p.01")).unwrap(), "\n".repeat(200));
}

#[test]
fn errors_among_the_answers_exit_with_1_whatever_outputs_were_asked_for() {
    let _one = engine();
    let world = World::new();
    // Nothing explains D1 alone.
    world.put("m.dem", "error(0.1) D0 L0\ndetector D1\n");
    world.put("s.01", "10\n01\n".repeat(20));
    for options in ["", "--answers a", "--predictions p"] {
        let (status, report) = ran(&world, &format!("--dem m.dem --shots s.01 --format 01 --rate 5000 {options}"));
        assert_eq!((status, &report["errors"]["10"]), (Some(1), &20.into()), "{options}: {}", report["alarms"]);
        assert!(has_errored(&report), "{options}: {}", report["alarms"]);
    }
}

#[test]
fn errors_that_the_profile_injects_exit_with_0() {
    let _one = engine();
    let world = World::new();
    let faulty = lab_with(&[
        ("spin: Lab", "spin: Shared"),
        ("decoder_panic: 0.0,", "decoder_panic: 0.3,"),
        ("launch_deadline_us: 20000,", "launch_deadline_us: 20000000,"),
        ("shot_deadline_us: 1000000,", "shot_deadline_us: 60000000,"),
        ("deadline_ms: 1000,", "deadline_ms: 60000,"),
    ]);
    world.put("faulty/faulty.ron", faulty);
    let words =
        "run --headless --json --logs logs --profiles faulty --profile faulty --dem surface_d3 --rate 2000 --count 300";
    let ran = world.run(words).exits(0);
    let report = ran.json();
    assert!(report["errors"]["8"].as_u64().unwrap() > 0 && !has_errored(&report), "{}", report["errors"]);
}
