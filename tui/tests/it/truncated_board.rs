//! A board that its owner truncates while somebody looks at it.

use crate::terminal::Terminal;
use crate::world::World;
use pinwheel_engine::board::{self, Board, Place, Shape};
use std::fs::File;

const SHAPE: Shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };

/// A board with a clock; this process's lock makes it a live engine's.
fn live_board(world: &World) -> Board {
    let board = Board::create(SHAPE, Place::Shared(world.path("shm"))).unwrap();
    board::set(&board.header().nanos_per_tick_q32, 1 << 32);
    board::set(&board.header().start_ticks, 1);
    board.header().profile.write("lab");
    board.publish();
    board
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
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
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
