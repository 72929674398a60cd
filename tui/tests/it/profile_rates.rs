//! The rate of a run after its profile is switched: what the profile in force says, and where that
//! is `Auto`, the run's own.

use crate::world::{World, acknowledged, engine, lab_with, until};
use serde_json::Value;
use std::process::{Child, Stdio};

const FAST: f64 = 3_000.0;

/// A run that is live, with `patient` profiles: `lab` (rate Auto) and `slow` (1000 shots per second).
fn live(world: &World, options: &str) -> Child {
    let with = |rate: &str| {
        lab_with(&[
            ("spin: Lab", "spin: Shared"),
            ("launch_deadline_us: 20000,", "launch_deadline_us: 20000000,"),
            ("shot_deadline_us: 1000000,", "shot_deadline_us: 60000000,"),
            ("deadline_ms: 1000,", "deadline_ms: 60000,"),
            ("rate: Auto,", rate),
        ])
    };
    world.put("profiles/lab.ron", with("rate: Auto,"));
    world.put("profiles/slow.ron", with("rate: Hz(1000.0),"));
    let words = format!("run --headless --logs logs --profiles profiles --dem surface_d3 {options}");
    let child = world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("LIVE", || {
        let ran = world.run("ctl status");
        ran.status == Some(0) && ran.json()["phase"] == "LIVE"
    });
    child
}

fn rate(world: &World) -> f64 {
    world.run("ctl status").exits(0).json()["rate_hz"].as_f64().unwrap()
}

fn switched(world: &World, profile: &str) -> Value {
    acknowledged(world, &format!("ctl profile {profile}"))
}

fn stop(world: &World, mut child: Child) {
    world.run("ctl drain");
    child.wait().unwrap();
}

#[test]
fn a_profile_that_says_auto_gives_the_run_its_own_rate_back() {
    let _one = engine();
    let world = World::new();
    let child = live(&world, &format!("--rate {FAST}"));
    assert_eq!(rate(&world), FAST);
    assert!(switched(&world, "slow")["rate"].as_str().unwrap().contains("1000/s: from profile slow"));
    assert_eq!(rate(&world), 1_000.0);
    let back = switched(&world, "lab");
    assert_eq!(rate(&world), FAST, "{back}");
    assert!(back["rate"].as_str().unwrap().contains("3000/s: the rate of the start"), "{back}");
    let change = back["changes"].as_array().unwrap().iter().find(|change| change["field"] == "input.rate").unwrap();
    assert!(change["to"].to_string().contains("3000"), "{change}");
    // What was set by hand lasts until a profile is put into force.
    world.run("ctl rate 500").exits(0);
    assert_eq!(rate(&world), 500.0);
    switched(&world, "lab");
    assert_eq!(rate(&world), FAST);
    stop(&world, child);
}

#[test]
fn a_profile_that_says_auto_gives_the_measured_rate_back() {
    let _one = engine();
    let world = World::new();
    let child = live(&world, "");
    let measured = rate(&world);
    switched(&world, "slow");
    world.run("ctl rate 500").exits(0);
    switched(&world, "lab");
    assert_eq!(rate(&world), measured);
    stop(&world, child);
}
