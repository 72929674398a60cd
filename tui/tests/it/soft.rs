//! Soft bytes through the whole program: a file beside the shots, and `send`.

use crate::world::{Ran, World, engine, patient, word};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;

/// Both detectors fire because a readout was wrong, or else, if it was surely right, by two other errors, of which
/// one flips the observable.
const MODEL: &str = "error(0.1) D0 D1\nerror(0.05) D0 L0\nerror(0.05) D1\n";
const MAP: &str = "soft 1\nS0 0.1 D0 D1\n";

/// A model, its map, and four shots whose byte says nothing, sure, doubtful, and surer than in the mean.
fn world() -> World {
    let world = World::new();
    world.put("m.dem", MODEL);
    world.put("map", MAP);
    world.put("s.b8", [3; 4]);
    world.put("soft.b8", [0, 255, 1, 120]);
    world
}

const PREDICTED: [u8; 4] = [0, 1, 0, 1];

#[test]
fn a_file_of_soft_bytes_in_every_format_is_read_beside_the_shots() {
    let _one = engine();
    let world = world();
    let bits = |byte: u8| (0..8).map(move |at| byte >> at & 1);
    let text: String =
        [0, 255, 1, 120].iter().map(|byte| bits(*byte).map(|bit| bit.to_string()).collect::<String>() + "\n").collect();
    world.put("s.01", "11\n".repeat(4));
    world.put("soft.01", text);
    for format in ["b8", "01"] {
        let run = format!("run --json {} --rate max --dem m.dem --format {format} --shots s.{format}", patient(&world));
        let predicted = |more: &str| {
            world.run(&format!("{run} --predictions p {more}")).exits(0);
            let found = fs::read(world.path("p")).unwrap();
            if format == "b8" {
                found
            } else {
                found.into_iter().filter(|byte| *byte != b'\n').map(|byte| byte - b'0').collect()
            }
        };
        assert_eq!(predicted(&format!("--soft-map map --soft soft.{format}")), PREDICTED);
        assert_eq!(predicted("--soft-map map"), [0; 4], "without soft bytes");
        assert_eq!(predicted(""), [0; 4]);
    }
}

#[test]
fn send_sends_soft_bytes_to_an_engine_with_a_map_only() {
    let _one = engine();
    let world = world();
    for (source, map, sends) in
        [("unix:shots", "--soft-map map", true), ("shm:soft", "--soft-map map", true), ("shm:soft", "", false)]
    {
        let words = format!("run --json {} --dem m.dem {map} --input {source} --logs logs", patient(&world));
        let run = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let sent = world.run(&format!("send s.b8 {source} --soft soft.b8 --json --predictions p.b8"));
        let short = world.run(&format!("send s.b8 {source} --soft map"));
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        Ran::new(&words, run.wait_with_output().unwrap()).exits(130);
        if sends {
            sent.exits(0);
            assert_eq!(fs::read(world.path("p.b8")).unwrap(), PREDICTED, "{source}");
            let said = short.exits(2).err;
            assert!(said.contains("--soft map: found 20 shots, expected 4"), "{said}");
        } else {
            let said = sent.exits(2).err;
            assert!(said.contains("--soft soft.b8: found an engine without a map of soft bytes"), "{said}");
            assert_eq!(said.trim().lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn files_that_do_not_belong_together_are_refused_in_one_sentence() {
    let world = world();
    world.put("short.b8", [0; 3]);
    for (name, map) in
        [("other", "soft 1\nS0 0.1 D0 D2\n"), ("high", "soft 1\nS0 0.2 D0 D1\n"), ("two", "soft 2\nS0 0.1 D0 D1\n")]
    {
        world.put(name, map);
    }
    let run = "run --headless --logs logs --dem m.dem --shots s.b8";
    let m2d = word(&world.put("m2d", "measurements 2\nD0 0\nD1 1\n"));
    for (words, part) in [
        (format!("{run} --soft-map map --soft short.b8"), "--soft short.b8: found 3 shots, expected 4"),
        (format!("{run} --soft-map map --soft none"), "--soft none"),
        (format!("{run} --soft-map none"), "--soft-map none"),
        (format!("{run} --soft-map other"), "line 2: found D0 D2, expected the detectors of an error of the model"),
        (format!("{run} --soft-map high"), "line 2: found readouts of D0 D1 that are wrong with probability 2.000e-1"),
        (format!("{run} --soft-map two"), "no line for S1"),
        (format!("{run} --m2d {m2d} --soft-map map --soft short.b8"), "--soft short.b8: found 3 shots, expected 4"),
        (format!("{run} --soft-map map --window 1,1"), "the model has a map of soft bytes"),
        (format!("{run} --soft-map map --soft soft.b8 --predictions soft.b8"), "expected a file of its own"),
    ] {
        let said = world.run(&words).exits(2).err;
        assert!(said.contains(part) && said.trim().lines().count() == 1, "{words}: {said}");
    }
    // One option without the others is a mistake in the command line.
    for (words, missing) in [
        (format!("{run} --soft soft.b8"), "--soft-map <F>"),
        ("run --headless --soft soft.b8 --soft-map map".to_owned(), "--shots <F>"),
    ] {
        let said = world.run(&words).exits(2).err;
        assert!(said.contains(&format!("required arguments were not provided: {missing}")), "{words}: {said}");
    }
}
