//! What was refused, as lines on standard error: a limited number a minute.
//!
//! Connections put lines into a channel of [`WAITING_MAX`]; the accepting loop alone prints, and counts what it does
//! not print. [`say`] escapes what a terminal would execute.

use crate::cli::say;
use std::fmt::Arguments;
use std::net::SocketAddr;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Most lines printed in a minute.
const LINES_PER_MINUTE: u32 = 30;
/// Most lines that wait for the printing loop; further ones are dropped.
const WAITING_MAX: usize = 64;
/// Most characters of a line: clients send some of it.
const LINE_CHARS_MAX: usize = 200;

/// Takes lines from any connection.
#[derive(Clone)]
pub struct Refusals(Sender<String>);

impl Refusals {
    pub fn channel() -> (Refusals, Receiver<String>) {
        let (sender, receiver) = channel(WAITING_MAX);
        (Refusals(sender), receiver)
    }

    /// What was refused to `peer`, and why.
    pub fn log(&self, peer: SocketAddr, what: Arguments<'_>) {
        let line = format!("pinwheel: refused {peer}: {what}");
        let line = line.chars().map(|letter| if letter == '\n' { ' ' } else { letter }).take(LINE_CHARS_MAX).collect();
        // More than the loop can print in a minute wait already.
        let _ = self.0.try_send(line);
    }
}

/// What was printed in this minute.
#[derive(Debug, Default)]
pub struct Said {
    lines: u32,
    left_out: u32,
}

impl Said {
    /// Prints a line, unless there were enough in this minute.
    pub fn line(&mut self, line: &str) {
        if self.takes() {
            say::people(line);
        }
    }

    fn takes(&mut self) -> bool {
        let is_printed = self.lines < LINES_PER_MINUTE;
        *(if is_printed { &mut self.lines } else { &mut self.left_out }) += 1;
        is_printed
    }

    /// Begins a minute; says how many lines the last one left out.
    pub fn minute(&mut self) {
        if self.left_out > 0 {
            say::people(&format!("pinwheel: refused {} more in the last minute", self.left_out));
        }
        *self = Said::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_PER_MINUTE, Said};

    #[test]
    fn a_minute_has_a_limited_number_of_lines_and_the_rest_is_counted() {
        let mut said = Said::default();
        let printed = (0..100).filter(|_| said.takes()).count();
        assert_eq!((printed, said.left_out), (LINES_PER_MINUTE as usize, 100 - LINES_PER_MINUTE));
        said.minute();
        assert!(said.takes());
    }
}
