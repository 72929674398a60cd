//! What the program reads whole has a limit, and what a message quotes of it is cut.

use crate::world::{World, word};
use std::os::unix::fs::symlink;
use std::time::Instant;

/// Longest message, bytes: a sentence with two paths and a quotation.
const MESSAGE_BYTES_MAX: usize = 2_500;

#[test]
fn an_endless_or_enormous_file_in_the_place_of_each_input_is_refused_unread() {
    let world = World::new();
    world.put("m.dem", "error(0.1) D0 L0\n");
    world.put("s.b8", [0; 100]);
    std::fs::File::create(world.path("huge")).unwrap().set_len(1 << 40).unwrap();
    for file in ["/dev/zero".to_owned(), word(&world.path("huge"))] {
        for words in [
            "run --headless --dem FILE",
            "run --headless --dem m.dem --shots FILE",
            "run --headless --dem m.dem --shots s.b8 --observables FILE",
            "run --headless --dem m.dem --shots s.b8 --m2d FILE",
            "run --headless --profile FILE",
            "check --verify FILE",
            "graph FILE",
        ] {
            let words = words.replace("FILE", &file);
            let before = Instant::now();
            let ran = world.run(&words).exits(2);
            assert!(ran.err.contains(&file), "{words}: {}", ran.err);
            // Reading 1 TiB takes minutes.
            assert!(before.elapsed().as_secs() < 60, "{words}: {:?}", before.elapsed());
            assert!(
                ran.err.len() < MESSAGE_BYTES_MAX && ran.err.trim_end().lines().count() == 1,
                "{words}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn endless_files_of_a_run_are_refused_unread() {
    let world = World::new();
    std::fs::create_dir(world.path("run")).unwrap();
    for name in ["manifest.json", "profile.ron", "report.json", "events.jsonl", "recording.pwt", "recording.index"] {
        symlink("/dev/zero", world.path("run").join(name)).unwrap();
    }
    for words in ["replay run --json", "trace run", "report run", "compare run run"] {
        let ran = world.run(words).exits(2);
        assert!(ran.err.len() < MESSAGE_BYTES_MAX, "{words}: {} bytes", ran.err.len());
    }
}

#[test]
fn what_a_message_quotes_of_a_file_is_cut() {
    let world = World::new();
    let long = "x".repeat(900_000);
    world.put("m.dem", "error(0.1) D0 L0\n");
    world.put("s.b8", [0; 100]);
    world.put("map", format!("measurements 4\nD0 {long}\n"));
    world.put("graph", format!("({long}: 1)"));
    world.put("report", format!("{{\"rows\": \"{long}\"}}"));
    world.put("profile.ron", format!("({long}: 1)"));
    for (words, status) in [
        ("run --headless --dem m.dem --shots s.b8 --m2d map", 2),
        ("graph graph", 2),
        ("check --verify report", 2),
        ("run --headless --profile ./profile.ron", 2),
        ("profiles validate ./profile.ron", 1),
    ] {
        let ran = world.run(words).exits(status);
        let said = ran.text() + &ran.err;
        assert!(said.contains("bytes omitted") && said.len() < MESSAGE_BYTES_MAX, "{words}: {} bytes", said.len());
    }
}
