//! The mouse on the console, and what is kept from one start to the next.

use crate::terminal::Terminal;
use crate::world::{World, calm_lab_with, engine};
use vt100::{MouseProtocolEncoding, MouseProtocolMode};

const RUN: &str = "run --profiles two --profile two --rate 2000 --logs logs";

/// Where a run has two threads, whatever else is pinned to this machine's cores.
fn world() -> World {
    let threads = r#"threads: Explicit([
        (name: "hot-0", roles: [Feed, Dispatch, Device, Poll, Graph, Harvest], silo: 0, core: None),
        (name: "decode-0", roles: [Decode], silo: 0, core: None),
    ]),"#;
    let world = World::new();
    world.put("two/two.ron", calm_lab_with(&[("spin: Lab", "spin: Shared"), ("threads: Auto,", threads)]));
    world
}

fn mode(terminal: &Terminal) -> (MouseProtocolMode, MouseProtocolEncoding) {
    (terminal.screen().mouse_protocol_mode(), terminal.screen().mouse_protocol_encoding())
}

#[test]
fn clicks_select_open_and_ask_and_the_mouse_is_given_back() {
    let _one = engine();
    let world = world();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    assert_eq!(mode(&terminal), (MouseProtocolMode::PressRelease, MouseProtocolEncoding::Sgr));
    terminal.click("2 threads");
    terminal.see_words(&["threads: which is late", "decode-0"]);
    terminal.click("decode-0 ");
    terminal.see("the other thread's details", |screen| screen.contents().contains("─ decode-0, thread"));
    terminal.click("q quit");
    terminal.see_words(&["drain and quit?", "n no"]);
    terminal.click("n no");
    terminal.see("no question", |screen| !screen.contents().contains("drain and quit?"));
    terminal.press("qy");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    terminal.is_restored();
}

#[test]
fn theme_columns_order_and_mouse_are_restored_and_an_unusable_file_is_reported() {
    let _one = engine();
    let world = world();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    terminal.press("T");
    terminal.see_words(&["theme light"]);
    terminal.press("x");
    terminal.see("the terminal's mouse", |screen| screen.mouse_protocol_mode() == MouseProtocolMode::None);
    terminal.press("2S");
    terminal.see_words(&["thread↑"]);
    terminal.press("/hot");
    terminal.see_words(&["/hot_ 1 of"]);
    terminal.press("\rqy");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    let kept = world.path("state/pinwheel/console.ron");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("\"light\"") && text.contains("(\"thread\", \"up\")"), "{text}");
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    assert_eq!(mode(&terminal).0, MouseProtocolMode::None);
    terminal.press("2");
    terminal.see_words(&["thread↑", "hot-0", "decode-0"]);
    terminal.press("qy");
    assert_eq!(terminal.end(), 0);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), text, "nothing was changed");
    std::fs::write(&kept, "(theme: Some(\"pink\"))").unwrap();
    let mut terminal = Terminal::start(&world, RUN, (200, 40), &[]);
    terminal.see_words(&["console.ron is damaged (theme 'pink'"]);
    terminal.see_live();
    assert_eq!(mode(&terminal).0, MouseProtocolMode::PressRelease);
    terminal.press("qy");
    assert_eq!(terminal.end(), 0);
}
