//! The same console without colour and without unicode.

use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{World, engine};
use vt100::{Color, Screen};

fn coloured(screen: &Screen) -> usize {
    let (rows, columns) = screen.size();
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let is_coloured = |(row, column)| {
        let cell = screen.cell(row, column).unwrap();
        cell.fgcolor() != Color::Default || cell.bgcolor() != Color::Default
    };
    cells.filter(|at| is_coloured(*at)).count()
}

#[test]
fn colour_is_there_unless_no_color_forbids_it() {
    let _one = engine();
    for (variables, expects_colour) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let world = World::new();
        let mut terminal = Terminal::start(&world, RUN, (80, 24), variables);
        terminal.see_live();
        let cells = coloured(terminal.screen());
        assert_eq!(cells > 0, expects_colour, "{cells} cells\n{}", terminal.text());
        terminal.press("qy");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn a_locale_without_unicode_gets_ascii_in_every_view() {
    let _one = engine();
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (80, 24), &[("LANG", "C")]);
    terminal.see_live();
    for (key, word) in [
        ("2", "threads"),
        ("3", "slots"),
        ("4", "workers"),
        ("5", "prod"),
        ("6", "decoders"),
        ("7", "no page has moved yet"),
        ("8", "--input"),
        ("9", "alarms"),
        ("0", "everywhere"),
        ("1", "harvest"),
    ] {
        terminal.press(key);
        terminal.see_words(&[word]);
        let text = terminal.text();
        assert!(text.is_ascii(), "{:?} in {text}", text.chars().find(|c| !c.is_ascii()));
    }
    terminal.press("p");
    terminal.see_words(&["1-9 pick"]);
    assert!(terminal.text().is_ascii());
    terminal.press("\x1b");
    terminal.see("no chooser", |screen| !screen.contents().contains("1-9 pick"));
    terminal.press("q");
    terminal.see_words(&["drain and quit?"]);
    assert!(terminal.text().is_ascii());
    terminal.press("y");
    assert_eq!(terminal.end(), 0);
}
