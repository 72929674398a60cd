//! Bad input: one sentence, exit status 2, nothing on standard output, nothing left behind, no panic.

use crate::world::{World, golden, lab_with, word};

/// A world with a sound model and one file of each kind of damage.
fn world() -> World {
    let world = World::new();
    world.put("m.dem", "error(0.1) D0 D1 L0\nerror(0.1) D1 D9\n");
    world.put("good.b8", [3, 0, 2, 2]);
    world.put("cut.b8", [3, 0, 2]);
    world.put("wide.01", "0000000000\n00000000001\n");
    world.put("narrow.01", "000\n");
    world.put("letters.01", "00000x0000\n");
    world.put("bad.dets", "shot D0 D99\n");
    world.put("empty.b8", "");
    world.put("long.obs", [1, 0, 1]);
    world.put("wide.obs", [2, 0]);
    world.put("syntax.dem", "error(0.1) D0 D1\nerror(0.1 D2\n");
    world.put("probability.dem", "error(0.1) D0\n  error(1.5) D1\n");
    world.put("file", "in the way");
    world.put("profiles/unknown.ron", lab_with(&[("slots: 1024,", "slots: 1024, slotz: 3,")]));
    world.put("profiles/many.ron", lab_with(&[("workers: 8,", "workers: 65,")]));
    world.put("profiles/syntax.ron", lab_with(&[("silos: Auto,", "silos: Auto,,")]));
    let rows: Vec<String> = (0..64)
        .map(|i| match i {
            0 => r#"(name: "hot-0", roles: [Feed, Dispatch, Device, Poll, Graph, Harvest], silo: 0, core: Some(0))"#
                .to_owned(),
            i => format!(r#"(name: "work-{i}", roles: [Decode], silo: 0, core: Some({i}))"#),
        })
        .collect();
    let explicit = format!("threads: Explicit([{}]),", rows.join(", "));
    let many_cores = lab_with(&[("threads: Auto,", &explicit), ("max_cores: Some(4),", "max_cores: None,")]);
    world.put("profiles/cores.ron", many_cores);
    world
}

/// Runs it, and holds it to the promise; what it said.
#[track_caller]
fn refused(world: &World, words: &str) -> String {
    let before = world.files();
    let ran = world.run(words).exits(2);
    assert_eq!(ran.text(), "", "{words}");
    assert_eq!(world.files(), before, "{words} left something behind");
    let said = ran.err;
    assert!(said.starts_with("pinwheel: ") && said.trim_end().lines().count() == 1, "{words}: {said}");
    assert!(!said.contains("panicked"), "{words}: {said}");
    said
}

#[track_caller]
fn each_names(cases: &[(&str, &[&str])]) {
    let world = world();
    for (words, parts) in cases {
        let said = refused(&world, words);
        for part in *parts {
            assert!(said.contains(part), "{words}: no '{part}' in: {said}");
        }
    }
}

#[test]
fn a_model_that_is_missing_or_malformed_is_refused_with_its_place() {
    each_names(&[
        ("run --json --dem none.dem", &["--dem none.dem"]),
        ("run --json --dem syntax.dem", &["--dem syntax.dem", "line 2", "column"]),
        ("run --json --dem probability.dem", &["line 2", "1.5"]),
        ("run --json --dem shm", &["--dem shm"]),
    ]);
}

#[test]
fn shots_of_another_width_or_cut_short_are_refused() {
    each_names(&[
        ("run --json --dem m.dem --shots none.b8", &["--shots none.b8"]),
        ("run --json --dem m.dem --shots cut.b8", &["--shots cut.b8"]),
        ("run --json --dem m.dem --shots empty.b8", &["no shots"]),
        ("run --json --dem m.dem --shots wide.01 --format 01", &["--shots wide.01", "2"]),
        ("run --json --dem m.dem --shots narrow.01 --format 01", &["--shots narrow.01", "10"]),
        ("run --json --dem m.dem --shots letters.01 --format 01", &["--shots letters.01"]),
        ("run --json --dem m.dem --shots bad.dets --format dets", &["--shots bad.dets", "99"]),
        ("run --json --dem m.dem --shots good.b8 --format 01", &["--shots good.b8"]),
    ]);
}

#[test]
fn observables_of_another_length_or_width_are_refused() {
    each_names(&[
        ("run --json --dem m.dem --shots good.b8 --observables none", &["--observables none"]),
        ("run --json --dem m.dem --shots good.b8 --observables long.obs", &["3 shots", "2"]),
        ("run --json --dem m.dem --shots good.b8 --observables wide.obs", &["--observables wide.obs"]),
    ]);
}

#[test]
fn wide_shots_are_refused_when_their_observables_count_them() {
    let world = World::new();
    let words = format!(
        "run --json --dem {} --shots {} --observables {}",
        word(&golden("surf_z_d3_r3_p0.005.dem")),
        word(&golden("surf_z_d5_r5_p0.005.dets.b8")),
        word(&golden("surf_z_d5_r5_p0.005.obs.b8")),
    );
    let said = refused(&world, &words);
    assert!(said.contains("--observables"), "{said}");
}

#[test]
fn numbers_out_of_range_are_refused_by_their_option() {
    each_names(&[
        ("run --json --rate -5", &["--rate", "-5"]),
        ("run --json --rate NaN", &["--rate", "NaN"]),
        ("run --json --rate inf", &["--rate"]),
        ("run --json --count 0", &["--count", "0"]),
        ("run --json --count -3", &["--count"]),
        ("run --json --duration 10", &["--duration", "unit"]),
        ("run --json --silos 0", &["--silos"]),
        ("run --json --silos 65", &["--silos"]),
        ("run --json --streams 0", &["--streams"]),
        ("run --json --deadline 1ns", &["--deadline"]),
        ("sim --seeds 5..5", &["--seeds"]),
    ]);
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_runs() {
    each_names(&[
        ("run --json --logs file", &["file"]),
        ("run --json --logs /proc/pinwheel", &["/proc/pinwheel"]),
        ("run --json --logs file/below", &["file/below"]),
        ("run --json --predictions none/p", &["none/p"]),
        ("run --json --predictions shm/p", &["shm/p"]),
        ("run --json --predictions -", &["--answers -"]),
        ("run --json --answers none/a", &["none/a"]),
        ("run --json --answers /proc/a", &["/proc/a"]),
    ]);
}

#[test]
fn profiles_that_cannot_hold_are_refused_with_file_line_and_column() {
    each_names(&[
        ("run --json --profile none", &["none"]),
        ("run --json --profiles profiles --profile unknown", &["unknown.ron:", "slotz"]),
        ("run --json --profiles profiles --profile many", &["many.ron:", "workers", "65"]),
        ("run --json --profiles profiles --profile syntax", &["syntax.ron:"]),
        ("run --json --profiles profiles --profile cores", &["core"]),
        ("run --json --profiles none", &["--profiles none"]),
        ("plan --json --profile none", &["none"]),
        ("profiles --profiles profiles diff lab syntax", &["syntax.ron:"]),
    ]);
    let world = world();
    let line = lab_with(&[]).lines().position(|line| line.contains("silos: Auto,")).unwrap() + 1;
    let said = refused(&world, "run --json --profiles profiles --profile syntax");
    assert!(said.contains(&format!("syntax.ron:{line}:")), "{said}");
}
