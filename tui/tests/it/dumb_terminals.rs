//! Terminals that cannot move a cursor: every command does as it does without a terminal.

use crate::terminal::Terminal;
use crate::world::{World, engine};

#[test]
fn a_terminal_that_term_does_not_name_or_names_dumb_gets_no_console() {
    let _one = engine();
    let world = World::new();
    for term in ["dumb", ""] {
        for (words, status, said) in [
            ("run --profile shared --rate max --count 50 --logs logs", 0, "ended by count"),
            ("replay last --logs logs", 0, "answered"),
            ("arbiter --pages 2 --duration 20ms", 0, "decisions"),
            ("attach", 2, "no terminal"),
        ] {
            let mut terminal = Terminal::start(&world, words, (100, 30), &[("TERM", term)]);
            assert_eq!(terminal.end(), status, "{words}: {}", terminal.text());
            let raw = terminal.raw();
            assert!(raw.contains(said) && !raw.contains('\u{1b}'), "{words} with TERM={term:?}: {raw:?}");
            terminal.is_restored();
        }
    }
}
