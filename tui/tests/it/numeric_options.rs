//! Numbers on the command line outside of their range: refused with it, never changed to another.

use crate::world::{World, engine};

#[test]
fn a_number_outside_its_range_is_refused_with_the_range_and_never_clamped() {
    let world = World::new();
    world.put("m.dem", "error(0.1) D0 L0\n");
    for (words, option, range) in [
        ("graph chain --tasks 0", "--tasks", "1..=1048576"),
        ("graph chain --tasks 1048577", "--tasks", "1..=1048576"),
        ("graph chain --tasks 100000000", "--tasks", "1..=1048576"),
        ("graph chain --tasks -1", "--tasks", "1..=1048576"),
        ("graph chain --workers 0", "--workers", "1..=256"),
        ("graph chain --workers 257", "--workers", "1..=256"),
        ("graph chain --window 0", "--window", "1..=524288"),
        ("graph chain --window 524289", "--window", "1..=524288"),
        ("graph chain --batch 0", "--batch", "1..=4096"),
        ("graph chain --permits-per-stream 0", "--permits-per-stream", "1..="),
        ("graph chain --start 0", "--start", "1 or more"),
        ("graph chain --start -1", "--start", "1 or more"),
        ("arbiter --pages 0", "--pages", "1..="),
        ("arbiter --threads 300", "--threads", "2..="),
        ("drill sleep --repeat 0", "--repeat", "1..=1000"),
        ("send m.dem udp:127.0.0.1:9 --rate auto", "--rate", "above 0 and at most 1e9, or max"),
        ("send m.dem udp:127.0.0.1:9 --rate -1", "--rate", "above 0 and at most 1e9, or max"),
        ("send m.dem udp:127.0.0.1:9 --parts 1025", "--parts", "1..=1024"),
        ("send m.dem udp:127.0.0.1:9 --laps 0", "--laps", "1..="),
        ("send m.dem shm:x --parts 2", "--parts", "a socket"),
        ("run --round-period 10s --count 1 --dem m.dem", "--round-period", "100ns to 1s"),
        ("run --rate 1e10", "--rate", "at most 1e9"),
        ("attach --json --every 1ms", "--every", "100ms or more"),
        ("ctl profile lab --for 1500ms", "--for", "whole seconds"),
        ("ctl drill sleep --for 20us", "--for", "whole milliseconds"),
    ] {
        let ran = world.run(words).exits(2);
        assert!(ran.err.contains(option) && ran.err.contains(range), "{words}: {}", ran.err);
        assert!(ran.text().is_empty() && ran.err.trim_end().lines().count() == 1, "{words}: {}", ran.err);
    }
    for words in ["graph chain --tasks 1 --json", "graph chain --tasks 10 --workers 1 --start 1 --json"] {
        world.run(words).exits(0);
    }
}

#[test]
fn a_moment_outside_of_a_recording_is_said_to_be() {
    let _one = engine();
    let world = World::new();
    world.run("run --profile shared --rate 500 --duration 1s --logs logs --json").exits(0);
    for (at, is_outside) in [("1h", true), ("-1h", true), ("end", false), ("0", false), ("-0.1s", false)] {
        let ran = world.run(&format!("replay last --logs logs --json --at {at}")).exits(0);
        assert_eq!(ran.err.contains("outside the recording"), is_outside, "{at}: {}", ran.err);
    }
}
