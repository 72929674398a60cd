//! Finding one's way on the console, and the console's facts without one.

use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{World, engine};

#[test]
fn lists_are_filtered_commands_found_by_words_and_all_views_filled() {
    let _one = engine();
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    terminal.press("r");
    terminal.see_words(&["which queue is full", " harvest"]);
    terminal.press("/rx");
    terminal.see_words(&["/rx_ 1 of 4"]);
    terminal.see("one ring", |screen| !screen.contents().contains(" harvest"));
    terminal.press("\r");
    terminal.see_words(&["/rx 1 of 4", "f freeze"]);
    terminal.press("/\x1b");
    terminal.see_words(&[" dispatch", " harvest"]);
    terminal.press("/!rx ring:tx|ready");
    terminal.see_words(&["/!rx ring:tx|ready_ 2 of 4"]);
    terminal.press("\x1b");
    terminal.see_words(&[" dispatch", " harvest"]);
    terminal.press(":glyphs ascii\r");
    terminal.see("ascii", |screen| screen.contents().is_ascii());
    for (key, words) in [
        ("t", &["which logical qubit is late", "as the model says"][..]),
        ("r", &["which queue is full", "emptied by", "dispatch"]),
        ("e", &["what of this machine costs latency", "isolcpus", "expected"]),
        ("c", &["who uses which core", "threads of this engine"]),
        ("v", &["what happened in this run", "entered LIVE"]),
        ("m", &["marked"]),
        ("=", &["what is other than at the mark", "answered/s", "same"]),
    ] {
        terminal.press(key);
        terminal.see_words(words);
    }
    terminal.press("qy");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
}

#[test]
fn a_profile_taken_for_a_time_is_counted_down_and_comes_back() {
    let _one = engine();
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    // So long that it is seen while it is lent.
    terminal.press(":profile lab for 6s\r");
    terminal.see_words(&["apply a profile?", "shared", "lab for 6s, then shared again"]);
    terminal.press("y");
    terminal.see_words(&["profile lab", "shared in "]);
    terminal.see_words(&["profile shared"]);
    terminal.press("5");
    terminal.see_words(&["switches made here", "asked for"]);
    terminal.press("qy");
    assert_eq!(terminal.end(), 0);
    assert_eq!(world.report("logs")["profile"], "shared");
}

#[test]
fn a_users_own_keys_hold_and_a_bad_file_of_them_is_refused_in_one_sentence() {
    let _one = engine();
    let world = World::new();
    world.put("own.ron", r#"{ "views": { "quit": ["X", "ctrl-c"], "alarms": ["F9"] } }"#);
    let mut terminal = Terminal::start(&world, &format!("{RUN} --keys own.ron"), (120, 40), &[]);
    terminal.see_live();
    terminal.see_words(&["X quit"]);
    terminal.press("q\x1b[20~");
    terminal.see_words(&["alarms: "]);
    assert!(!terminal.text().contains("drain and quit?"), "q is no key now");
    terminal.press("X");
    terminal.see_words(&["drain and quit?"]);
    terminal.press("y");
    assert_eq!(terminal.end(), 0);
    world.put("bad.ron", r#"{ "views": { "quit": ["p"] } }"#);
    let mut refused = Terminal::start(&world, &format!("{RUN} --keys bad.ron"), (200, 40), &[]);
    assert_eq!(refused.end(), 2);
    assert!(refused.text().contains("key 'p' in views is bound to both"), "{}", refused.text());
}

#[test]
fn a_recorded_moment_is_printed_as_a_screen_and_as_values() {
    let _one = engine();
    let world = World::new();
    world.run("run --profiles calm --profile shared --rate 2000 --duration 2s --headless --logs logs").exits(0);
    let screen = world.run("replay last --at end --snapshot --view rings --size 120x30 --logs logs").exits(0).text();
    assert!(screen.contains("which queue is full") && screen.contains("emptied by"), "{screen}");
    assert!(screen.lines().count() == 30 && screen.lines().all(|line| line.chars().count() <= 120), "{screen}");
    let values = world.run("replay last --at end --csv --view threads --logs logs").exits(0).text();
    let lines: Vec<&str> = values.lines().collect();
    assert!(lines[0].starts_with("thread,core,policy,silence") && lines.len() >= 2, "{values}");
    assert!(lines.iter().any(|line| line.starts_with("hot-0,")), "{values}");
    let events = world.run("replay last --at end --csv --view log --logs logs").exits(0).text();
    assert!(events.contains("entered LIVE"), "{events}");
    let refused = world.run("replay last --csv --view graph --logs logs").exits(2);
    assert!(refused.err.contains("a view without a list"), "{}", refused.err);
}

#[test]
fn the_manual_and_completions_go_to_standard_output() {
    let world = World::new();
    let manual = world.run("man").exits(0).text();
    assert!(manual.contains(".SH KEYS") && manual.contains("undo") && manual.contains("EXIT STATUS"));
    assert!(world.run("completions bash").exits(0).text().contains("postmortem"));
    assert_eq!(world.run("completions tcsh").exits(2).err.trim_end().lines().count(), 1);
}
