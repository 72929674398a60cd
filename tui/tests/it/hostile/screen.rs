//! The terminal: sizes and bytes that no person types.

use super::Campaign;
use crate::console::RUN;
use crate::terminal::Terminal;
use crate::world::{World, engine};
use std::time::Duration;

#[test]
fn any_size_of_the_terminal_is_drawn() {
    let _one = engine();
    let mut campaign = Campaign::new("resizes", "sizes", 120);
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    let sizes = [1, 2, 3, 5, 10, 20, 39, 40, 79, 80, 132, 200, 250];
    for _ in 0..campaign.amount {
        let (columns, rows) = (*campaign.pick(&sizes), *campaign.pick(&sizes));
        terminal.resize(columns, rows);
        let view =
            *campaign.pick(&["1", "2", "3", "4", "5", "6", "7", "8", "9", "M", "t", "r", "e", "c", "v", "u", "?"]);
        terminal.press(view);
        terminal.rest(Duration::from_millis(60));
    }
    terminal.resize(120, 40);
    terminal.press("\x1b\x1b1");
    terminal.see_live();
    terminal.press("q");
    terminal.see_words(&["drain and quit?"]);
    terminal.press("y");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    terminal.is_restored();
    campaign.done();
}

#[test]
fn any_bytes_from_the_terminal_leave_it_restored() {
    let _one = engine();
    let mut campaign = Campaign::new("terminal", "bytes", 200_000);
    let mut left = usize::try_from(campaign.amount).unwrap();
    while left > 0 {
        let world = World::new();
        let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
        terminal.see_live();
        // Bytes may ask to quit and say yes: then the next console takes the rest.
        while left > 0 && !terminal.has_ended() {
            let count = (1 + campaign.below(64)).min(left);
            let pieces: [&[u8]; 6] = [
                b"\x1b[<0;10;10M",
                b"\x1b[<64;1;1M",
                b"\x1b[200~x\x1b[201~",
                b"\x1bOP",
                b"\x1b[99999;99999H",
                b"\xff\xfe",
            ];
            let mut bytes = campaign.pick(&pieces).to_vec();
            bytes.extend(campaign.bytes(count));
            // These end or stop a program by the terminal's own doing where it is not raw: not the console's claim.
            bytes.retain(|byte| !matches!(byte, 0x03 | 0x1A | 0x1C));
            terminal.press_bytes(&bytes);
            left -= count;
            terminal.rest(Duration::from_millis(20));
        }
        if !terminal.has_ended() {
            terminal.signal(rustix::process::Signal::TERM);
        }
        let status = terminal.end();
        assert!([0, 1, 143].contains(&status), "status {status}:\n{}", terminal.text());
        terminal.is_restored();
        assert!(!terminal.raw().contains("' panicked at "), "{}", terminal.text());
    }
    campaign.done();
}

#[test]
fn a_paste_that_never_ends_does_not_stop_the_console() {
    let _one = engine();
    let world = World::new();
    let mut terminal = Terminal::start(&world, RUN, (120, 40), &[]);
    terminal.see_live();
    terminal.press_bytes(b"\x1b[200~never ended");
    terminal.rest(Duration::from_millis(300));
    terminal.signal(rustix::process::Signal::TERM);
    assert_eq!(terminal.end(), 143, "{}", terminal.text());
    terminal.is_restored();
}
