//! `noise` on this machine: its JSON adds up, and a core that an engine has claimed is left out and named.

use crate::attach::Headless;
use crate::world::{World, engine, has_keys, lab_with, until};
use std::process::Stdio;

#[test]
fn the_noise_of_each_free_core_adds_up_and_a_claimed_core_is_left_out() {
    let _one = engine();
    let world = World::new();
    let cores = || {
        let ran = world.run("noise --duration 200ms --json").exits(0);
        let found = ran.json();
        has_keys(&found, "cores utc_s");
        for core in found["cores"].as_array().unwrap() {
            has_keys(core, "attributed_share by core gap_ns gaps hidden longest_ns span_ns");
            let gap_ns = core["gap_ns"].as_u64().unwrap();
            let sum: u64 = core["by"].as_array().unwrap().iter().map(|share| share["ns"].as_u64().unwrap()).sum();
            assert!(sum.abs_diff(gap_ns) <= gap_ns / 100 + 100, "{core}");
            for share in core["by"].as_array().unwrap() {
                has_keys(share, "count ns share what who");
            }
        }
        (found["cores"].as_array().unwrap().len(), ran.err)
    };
    let (free, said) = cores();
    assert!(free > 1 && said.is_empty(), "{said}");
    world.put("p/claims.ron", lab_with(&[("spin: Lab", "spin: Shared")]));
    let run = "run --profiles p --profile claims --logs logs --rate 1000 --duration 10m --headless";
    let _run = Headless(world.command(run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("a live engine", || {
        let ran = world.run("ctl status");
        ran.status == Some(0) && ran.json()["phase"] == "LIVE"
    });
    // On a busy machine the plan may find no core of its own, and claims none.
    let rows = world.run("cores --json").exits(0).json();
    let claimed = rows.as_array().unwrap().iter().filter(|row| !row["claimed_by"].is_null()).count();
    let (left, said) = cores();
    assert_eq!((left, said.matches("is left out: ").count()), (free - claimed, claimed), "{said}");
}
