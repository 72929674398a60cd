//! What was refused, as lines on standard error: a limited number a minute.
//!
//! Connections put lines into a channel of [`WAITING_MAX`]; the accepting loop gives them to a
//! thread that prints, and counts what it does not give. [`say`] escapes what a terminal would
//! execute.
//!
//! # Why a thread
//! Whoever reads standard error may stop: a pager, or a terminal after Ctrl-S. Only this thread
//! waits for it then, and the end of `serve` waits for at most [`END_TIME`].

use crate::cli::say;
use std::fmt::Arguments;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;

/// Most lines printed in a minute.
const LINES_PER_MINUTE: u32 = 30;
/// Most lines that wait for the accepting loop, which drops further ones, or for the printing
/// thread.
const WAITING_MAX: usize = 64;
/// Longest wait for the last lines, and between two looks whether they are printed.
const END_TIME: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);
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

/// Prints lines, and counts those of this minute.
pub struct Said {
    lines: u32,
    left_out: u32,
    printer: SyncSender<String>,
    thread: JoinHandle<()>,
}

impl Said {
    /// Starts the printing thread.
    ///
    /// # Errors
    /// If the system has none.
    pub fn start() -> io::Result<Said> {
        let (printer, lines) = sync_channel::<String>(WAITING_MAX);
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the command line, unpinned")]
        let thread = std::thread::Builder::new()
            .name("refusals".to_owned())
            .spawn(move || lines.into_iter().for_each(|line| say::people(&line)))?;
        Ok(Said { lines: 0, left_out: 0, printer, thread })
    }

    /// Prints a line, unless there were enough in this minute, or whoever reads them stands still.
    pub fn line(&mut self, line: String) {
        let is_printed = self.lines < LINES_PER_MINUTE && self.printer.try_send(line).is_ok();
        *(if is_printed { &mut self.lines } else { &mut self.left_out }) += 1;
    }

    /// Begins a minute; says how many lines were left out.
    pub fn minute(&mut self) {
        let said = || format!("pinwheel: refused {} more since the minute began", self.left_out);
        if self.left_out > 0 && self.printer.try_send(said()).is_ok() {
            self.left_out = 0;
        }
        self.lines = 0;
    }

    /// Waits for the last lines.
    pub async fn end(mut self) {
        self.minute();
        drop(self.printer);
        for _ in 0..END_TIME.as_millis() / LOOK.as_millis() {
            if self.thread.is_finished() {
                return;
            }
            sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{LINES_PER_MINUTE, Said};
    use std::sync::mpsc::sync_channel;

    /// With a printer that has room for this many lines, and what it gets.
    fn said(room: usize) -> (Said, std::sync::mpsc::Receiver<String>) {
        let (printer, lines) = sync_channel(room);
        let thread = Said::start().unwrap().thread;
        (Said { lines: 0, left_out: 0, printer, thread }, lines)
    }

    #[test]
    fn a_minute_has_a_limited_number_of_lines_and_the_rest_is_counted() {
        let (mut said, lines) = said(100);
        (0..100).for_each(|_| said.line(String::new()));
        assert_eq!((lines.try_iter().count(), said.left_out), (LINES_PER_MINUTE as usize, 100 - LINES_PER_MINUTE));
        said.minute();
        said.line("next".to_owned());
        let next: Vec<String> = lines.try_iter().collect();
        assert!(next[0].contains("refused 70 more") && next[1] == "next", "{next:?}");
    }

    #[test]
    fn lines_that_nobody_reads_are_counted_until_somebody_does() {
        let (mut said, lines) = said(1);
        (0..3).for_each(|_| said.line(String::new()));
        said.minute();
        assert_eq!((said.left_out, lines.try_iter().count()), (2, 1));
        said.minute();
        assert_eq!((said.left_out, lines.try_iter().count()), (0, 1));
    }
}
