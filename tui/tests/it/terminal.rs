//! A terminal of the tests' own with the program on it.
//!
//! A thread reads what the program writes and hands it on one piece at a time, through a channel
//! that holds one piece: as long as a test does not look, nobody reads, which is what a stopped
//! terminal is.

use crate::world::{DEADLINE, World};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use vt100::{MouseProtocolMode, Parser, Screen};

/// `ICANON | ECHO` of a terminal's local modes.
const COOKED: u32 = 0o2 | 0o10;

/// How long something may take that is not certain to come.
const SOON: Duration = Duration::from_secs(6);

/// The operator's end.
struct Line {
    master: Box<dyn MasterPty + Send>,
    /// `None` after bytes that a program did not take before it ended.
    keys: Option<Box<dyn Write + Send>>,
    pieces: Receiver<Vec<u8>>,
}

/// The program on its terminal; killed if a test fails before it has ended.
pub struct Terminal {
    /// What hanging up takes away.
    line: Option<Line>,
    child: Box<dyn Child + Send + Sync>,
    parser: Parser,
    /// Everything written so far.
    raw: Vec<u8>,
}

impl Terminal {
    /// Starts the program with these words on a terminal of that size, and variables over the world's.
    pub fn start(world: &World, words: &str, (columns, rows): (u16, u16), variables: &[(&str, &str)]) -> Terminal {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        world.put_calm(words);
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_pinwheel"));
        command.args(words.split_whitespace());
        command.cwd(world.path(""));
        for name in ["NO_COLOR", "LC_ALL", "LC_CTYPE", "COLORTERM"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        for (name, value) in world.variables() {
            command.env(name, value);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (piece, pieces) = sync_channel(1);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if piece.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = Some(pair.master.take_writer().unwrap());
        let parser = Parser::new(rows, columns, 0);
        Terminal { line: Some(Line { master: pair.master, keys, pieces }), child, parser, raw: Vec::new() }
    }

    pub fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// Everything written so far.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    pub fn press(&mut self, keys: &str) {
        let line = self.line.as_mut().unwrap().keys.as_mut().unwrap();
        line.write_all(keys.as_bytes()).unwrap();
        line.flush().unwrap();
    }

    /// Types what no keyboard sends. A program that has ended takes nothing.
    pub fn press_bytes(&mut self, bytes: &[u8]) {
        let Some(mut keys) = self.line.as_mut().unwrap().keys.take() else { return };
        let (back, typed) = sync_channel(1);
        let bytes = bytes.to_vec();
        // A thread of its own: Linux may never wake up a writer whose program ends while it waits.
        std::thread::spawn(move || {
            let _ = keys.write_all(&bytes).and_then(|()| keys.flush());
            let _ = back.send(keys);
        });
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            match typed.recv_timeout(Duration::from_millis(50)) {
                Ok(keys) => return self.line.as_mut().unwrap().keys = Some(keys),
                Err(_) if self.has_ended() => return,
                Err(_) => {}
            }
        }
        panic!("nobody reads what is typed:\n{}", self.text());
    }

    /// Clicks on the first place where these words stand.
    #[track_caller]
    pub fn click(&mut self, words: &str) {
        let columns = self.screen().size().1;
        let rows: Vec<String> = self.screen().rows(0, columns).collect();
        let found = rows.iter().enumerate().find_map(|(y, row)| Some((row.find(words)?, y)));
        let (bytes, y) = found.unwrap_or_else(|| panic!("no {words:?} on:\n{}", self.text()));
        let x = rows[y][..bytes].chars().count();
        self.press(&format!("\x1b[<0;{};{}M\x1b[<0;{};{}m", x + 1, y + 1, x + 1, y + 1));
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(rows, columns);
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.line.as_ref().unwrap().master.resize(size).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.process_id().unwrap()).unwrap()).unwrap()
    }

    /// Takes in what comes within that time, at most one piece; `false` at the end.
    fn take(&mut self, wait: Duration) -> bool {
        match self.line.as_ref().unwrap().pieces.recv_timeout(wait) {
            Ok(piece) => {
                self.parser.process(&piece);
                self.raw.extend_from_slice(&piece);
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Reads until the screen is as asked; fails after [`DEADLINE`] with the screen as it is.
    #[track_caller]
    pub fn see(&mut self, what: &str, mut is_so: impl FnMut(&Screen) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !is_so(self.screen()) {
            let open = self.take(Duration::from_millis(50));
            assert!(Instant::now() < end && (open || is_so(self.screen())), "no {what} on:\n{}", self.text());
        }
    }

    /// Reads until the screen is as asked; `false` if it is not within [`SOON`].
    pub fn soon(&mut self, mut is_so: impl FnMut(&Screen) -> bool) -> bool {
        let end = Instant::now() + SOON;
        while !is_so(self.screen()) {
            if !self.take(Duration::from_millis(50)) || Instant::now() >= end {
                return is_so(self.screen());
            }
        }
        true
    }

    /// Reads until all these words are on the screen.
    #[track_caller]
    pub fn see_words(&mut self, words: &[&str]) {
        self.see(&format!("{words:?}"), |screen| {
            let text = screen.contents();
            words.iter().all(|word| text.contains(word))
        });
    }

    /// Goes on reading for that long.
    pub fn rest(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if !self.take(left) {
                return;
            }
        }
    }

    /// Reads until the engine is live and shows a rate.
    #[track_caller]
    pub fn see_live(&mut self) {
        self.see("live counters", |screen| {
            let text = screen.contents();
            text.contains("LIVE") && text.contains("/s  backlog")
        });
    }

    /// Reads to the end; the exit status. `None`: by a signal.
    #[track_caller]
    pub fn end(&mut self) -> u32 {
        let end = Instant::now() + DEADLINE;
        while self.take(Duration::from_millis(50)) {
            assert!(Instant::now() < end, "no end on:\n{}", self.text());
        }
        self.end_unread()
    }

    /// The exit status without another look at what it writes.
    #[track_caller]
    pub fn end_unread(&mut self) -> u32 {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(Instant::now() < end, "it does not end; last seen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the terminal is as a shell wants it.
    #[track_caller]
    pub fn is_restored(&self) {
        let screen = self.screen();
        assert!(!screen.alternate_screen(), "left on the alternate screen");
        assert!(!screen.hide_cursor(), "left without a cursor");
        assert!(!screen.bracketed_paste(), "left in bracketed paste");
        assert_eq!(screen.mouse_protocol_mode(), MouseProtocolMode::None, "left without the terminal's own mouse");
        let modes = self.line.as_ref().unwrap().master.get_termios().unwrap().local_flags.bits();
        assert_eq!(modes & COOKED, COOKED, "left raw: {modes:o}");
    }

    /// Pulls the plug: the program gets SIGHUP and a terminal that answers with an error.
    pub fn hang_up(&mut self) {
        self.line = None;
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.child.kill();
            let _ = kill_process(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// The first number after `word`: "1,234", "1.2k".
pub fn number_after(text: &str, word: &str) -> Option<f64> {
    let rest = text.split(word).nth(1)?.trim_start();
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || ",.".contains(*c)).collect();
    let scale = match rest[digits.len()..].chars().next() {
        Some('k') => 1e3,
        Some('M') => 1e6,
        _ => 1.0,
    };
    Some(digits.replace(',', "").parse::<f64>().ok()? * scale)
}
