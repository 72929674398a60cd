//! What the operating system asks of a console, and a panic under it.

use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{SHORT_DRAIN, World, calm_lab_with, engine, until};
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn sigterm_and_sigint_drain_and_give_the_terminal_back() {
    let _one = engine();
    for (signal, status, ended_by) in [(Signal::TERM, 143, "sigterm"), (Signal::INT, 130, "sigint")] {
        let world = World::new();
        let mut terminal = Terminal::start(&world, RUN, (80, 24), &[]);
        terminal.see_live();
        terminal.signal(signal);
        assert_eq!(terminal.end(), status, "{}", terminal.text());
        terminal.is_restored();
        let report = world.report("logs");
        assert_eq!((report["ended_by"].as_str(), report["lost"].as_u64()), (Some(ended_by), Some(0)));
    }
}

#[test]
fn suspending_is_refused_by_key_and_by_signal() {
    let _one = engine();
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    terminal.press("\x1a");
    terminal.see_words(&["suspend refused"]);
    terminal.see("the notice gone", |screen| !screen.contents().contains("suspend refused"));
    terminal.signal(Signal::TSTP);
    terminal.see_words(&["suspend refused"]);
    terminal.press("qy");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_lost_terminal_leaves_the_engine_running_until_sigterm() {
    let _one = engine();
    let world = World::new();
    world.put("profiles/loose.ron", calm_lab_with(&[("spin: Lab", "spin: Shared")]));
    let words = "run --rate 2000 --logs logs --profiles profiles --profile loose --answers a";
    let mut terminal = Terminal::start(&world, words, (80, 24), &[]);
    terminal.see_live();
    let written = || world.answer_bytes();
    terminal.hang_up();
    let bytes = written();
    until("answers without a terminal", || written() > bytes + 100_000);
    assert!(!terminal.has_ended());
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end_unread(), 143);
    let report = world.report("logs");
    assert_eq!((report["ended_by"].as_str(), report["lost"].as_u64()), (Some("sigterm"), Some(0)));
}

#[test]
fn sigterm_that_comes_with_the_loss_of_the_terminal_ends_the_run() {
    let _one = engine();
    for is_read_until_stopped in [false, true] {
        let world = World::new();
        world.put("profiles/loose.ron", calm_lab_with(&[("spin: Lab", "spin: Shared")]));
        let words = "run --rate 2000 --logs logs --profiles profiles --profile loose";
        let mut terminal = Terminal::start(&world, words, (80, 24), &[]);
        terminal.see_live();
        terminal.signal(Signal::STOP);
        if is_read_until_stopped {
            // The terminal stays until the next frame then, so that SIGTERM comes first.
            terminal.rest(Duration::from_millis(200));
        }
        // While it is stopped both become pending, so that it receives them at once.
        terminal.hang_up();
        terminal.signal(Signal::TERM);
        terminal.signal(Signal::CONT);
        let status = terminal.end_unread();
        let report = world.report("logs");
        assert_eq!((status, report["ended_by"].as_str()), (143, Some("sigterm")), "{report}");
    }
}

#[test]
fn a_lost_terminal_drains_where_the_profile_says_so() {
    let _one = engine();
    let world = World::new();
    world.put(
        "profiles/tied.ron",
        calm_lab_with(&[("on_hangup: Detach", "on_hangup: Drain"), ("spin: Lab", "spin: Shared")]),
    );
    let words = "run --rate 2000 --logs logs --profiles profiles --profile tied";
    let mut terminal = Terminal::start(&world, words, (80, 24), &[]);
    terminal.see_live();
    terminal.hang_up();
    assert_eq!(terminal.end_unread(), 0);
    let report = world.report("logs");
    assert_eq!((report["ended_by"].as_str(), report["lost"].as_u64()), (Some("drained"), Some(0)));
}

#[test]
fn a_role_that_panics_leaves_a_usable_terminal_and_its_place() {
    let _one = engine();
    let world = World::new();
    let faulty = calm_lab_with(&[
        ("role_panic: None", "role_panic: Some((role: Poll, after_items: 2000))"),
        SHORT_DRAIN,
        ("spin: Lab", "spin: Shared"),
    ]);
    world.put("profiles/faulty.ron", faulty);
    let words = "run --rate 2000 --logs logs --profiles profiles --profile faulty";
    let mut terminal = Terminal::start(&world, words, (120, 40), &[]);
    terminal.see_words(&["LIVE"]);
    terminal.see_words(&["poll on hot-0 died at", "faulty.rs"]);
    terminal.press("2");
    terminal.see_words(&["threads: which is late"]);
    terminal.press("q");
    terminal.see("a question or the end", |screen| {
        let text = screen.contents();
        text.contains("drain and quit?") || text.contains("Kept in ")
    });
    terminal.press("y");
    assert_eq!(terminal.end(), 1, "{}", terminal.text());
    terminal.is_restored();
    let said = terminal.raw();
    assert!(said.contains("role_died") && said.contains("panicked"), "{}", terminal.text());
}

#[test]
fn in_strict_an_allocation_ends_the_process_but_gives_the_terminal_back_and_names_the_place() {
    let _one = engine();
    let world = World::new();
    let faulty = calm_lab_with(&[
        ("role_allocation: None", "role_allocation: Some((role: Poll, after_items: 500))"),
        ("hot_allocations: Count", "hot_allocations: Abort"),
        ("spin: Lab", "spin: Shared"),
    ]);
    world.put("profiles/faulty.ron", faulty);
    let words = "run --rate 2000 --logs logs --profiles profiles --profile faulty";
    let mut terminal = Terminal::start(&world, words, (120, 40), &[]);
    assert_ne!(terminal.end(), 0);
    terminal.is_restored();
    let said = terminal.raw();
    assert!(said.contains("found an allocator call of 4 bytes on hot thread") && said.contains("faulty.rs:"), "{said}");
}
