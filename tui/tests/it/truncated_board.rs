//! Boards that no engine of this program has as somebody looks at them: without a clock, held by the test, and
//! truncated by their owner.

use crate::terminal::Terminal;
use crate::world::World;
use pinwheel_engine::board::{self, Board, Place, Shape};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

const SHAPE: Shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };

/// A board with a clock; this process's lock makes it a live engine's.
fn live_board(world: &World) -> Board {
    let board = board_without_clock(world);
    board::set(&board.header().nanos_per_tick_q32, 1 << 32);
    board::set(&board.header().start_ticks, 1);
    board
}

fn board_without_clock(world: &World) -> Board {
    let board = Board::create(SHAPE, Place::Shared(world.path("shm"))).unwrap();
    board.header().profile.write("lab");
    board.publish();
    board
}

#[test]
fn a_board_that_has_no_moment_yet_is_refused_and_not_printed_as_nothing() {
    let world = World::new();
    let _board = board_without_clock(&world);
    for words in ["attach --json", "attach --csv"] {
        let ran = world.run(words).exits(2);
        assert!(ran.out.is_empty() && ran.err.contains("found no clock on it"), "{words}: {}", ran.text());
    }
}

#[test]
fn an_attached_console_begins_with_the_view_asked_for() {
    let world = World::new();
    let _board = live_board(&world);
    let mut console = Terminal::start(&world, "attach --view threads", (100, 30), &[]);
    console.see_words(&["threads: which is late"]);
    console.press("q");
    assert_eq!(console.end(), 0);
}

#[test]
fn a_stream_of_values_ends_with_its_terminal() {
    let world = World::new();
    let _board = live_board(&world);
    let mut command = world.command("attach --csv --every 100ms");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(129));
}

fn truncate(board: &Board) {
    File::options().write(true).open(board.path().unwrap()).unwrap().set_len(0).unwrap();
}

#[test]
fn a_board_truncated_under_an_attached_console_gives_the_terminal_back_and_says_why() {
    let world = World::new();
    let board = live_board(&world);
    let mut console = Terminal::start(&world, "attach", (100, 30), &[]);
    console.see_words(&["lab"]);
    assert!(console.screen().alternate_screen());
    truncate(&board);
    assert_ne!(console.end(), 0);
    console.is_restored();
    let said = console.text();
    assert!(said.contains("ended by SIGBUS") && said.contains("was truncated"), "{said}");
}

#[test]
fn a_board_truncated_under_a_stream_of_values_says_why() {
    let world = World::new();
    let board = live_board(&world);
    let mut command = world.command("attach --json --every 100ms");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    truncate(&board);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(7), "{said}");
    assert_eq!(said.matches("ended by SIGBUS").count(), 1, "{said}");
}
