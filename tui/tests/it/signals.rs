//! What the operating system asks of a console, and a panic under it.

use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{World, engine, lab_with, until};
use rustix::process::{Signal, kill_process};

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
    let mut terminal = Terminal::start(&world, &format!("{RUN} --answers a"), (80, 24), &[]);
    terminal.see_live();
    let pid = terminal.pid();
    let written = || std::fs::metadata(world.path("a")).map_or(0, |file| file.len());
    let mut child = terminal.hang_up();
    let bytes = written();
    until("answers without a terminal", || written() > bytes + 100_000);
    assert!(child.try_wait().unwrap().is_none());
    kill_process(pid, Signal::TERM).unwrap();
    until("the end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().exit_code(), 143);
    let report = world.report("logs");
    assert_eq!((report["ended_by"].as_str(), report["lost"].as_u64()), (Some("sigterm"), Some(0)));
}

#[test]
fn a_lost_terminal_drains_where_the_profile_says_so() {
    let _one = engine();
    let world = World::new();
    world.put("profiles/tied.ron", lab_with(&[("on_hangup: Detach", "on_hangup: Drain")]));
    let words = format!("{RUN} --profiles profiles --profile tied");
    let mut terminal = Terminal::start(&world, &words, (80, 24), &[]);
    terminal.see_live();
    let mut child = terminal.hang_up();
    until("the end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().exit_code(), 0);
    let report = world.report("logs");
    assert_eq!((report["ended_by"].as_str(), report["lost"].as_u64()), (Some("drained"), Some(0)));
}

#[test]
fn a_role_that_panics_leaves_a_usable_terminal_and_its_place() {
    let _one = engine();
    let world = World::new();
    let doomed = lab_with(&[("role_panic: None", "role_panic: Some((role: Poll, after_items: 2000))")]);
    world.put("profiles/doomed.ron", doomed);
    let words = format!("{RUN} --profiles profiles --profile doomed");
    let mut terminal = Terminal::start(&world, &words, (120, 40), &[]);
    terminal.see_words(&["LIVE"]);
    terminal.see("the death of a role", |screen| {
        let text = screen.contents();
        text.contains("poll") && (text.contains("died") || text.contains("panicked"))
    });
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
