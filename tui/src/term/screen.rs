//! The screen: raw mode and alternate screen while the console runs, the previous state afterwards.
//!
//! Owns the terminal's state. It is restored once, by whichever comes first: drop, a panic of the
//! console thread, or a signal that ends the process ([`fatal`]).
//!
//! # Why the panic hook checks the thread
//!
//! A panic hook runs for the panics of all threads. A panic in a role is caught, published and
//! shown as an alarm; restoring the terminal then would remove the console when it is needed. So
//! only the console thread's own panic restores the terminal. Every panic then goes to the previous
//! hook: the engine's hook records the place of a hot thread's panic without output. The next frame
//! redraws every cell, so it overwrites the output of another thread's panic.

use super::TermError;
use super::clock::Clock;
use super::output::{self, FRAME_BYTES, Frames, Gather};
use super::writer::{Delivered, FinalWrite, Writer, Written};
use crate::model::{Model, Mouse};
use crate::view;
use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, queue, style, terminal};
use pinwheel_engine::board::fatal;
use pinwheel_engine::engine::set_before_abort;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::AsFd;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Button presses and the wheel, with numeric positions. Movements are off, unlike in the library's
/// mode: the console does not follow the pointer, and over a slow link each step would be a
/// message.
const MOUSE_ON: &str = "\u{1b}[?1000h\u{1b}[?1006h";
/// Returns the mouse to the terminal.
const MOUSE_OFF: &str = "\u{1b}[?1006l\u{1b}[?1000l";

/// The terminal while the console owns it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Gather>>,
    frames: Frames,
    writer: Writer,
    /// The buffer that the writer does not hold.
    spare: Vec<u8>,
    taken: TerminalState,
}

impl Screen {
    /// Takes over the terminal; the control sequences go out with the first frame.
    pub fn open(clock: Clock, mouse: Mouse) -> Result<Screen, TermError> {
        let refused = |what| move |error| TermError::Terminal { what, error };
        let output = io::stdout().as_fd().try_clone_to_owned().map_err(refused("a second handle"))?;
        let writer = Writer::start(File::from(output), clock).map_err(refused("a thread that writes to it"))?;
        let taken = TerminalState::take(writer.final_write()).map_err(refused("raw mode"))?;
        // The theme alone decides on colours; see `theme`.
        style::force_color_output(true);
        let (mut gather, frames) = output::gathered();
        queue!(gather, EnterAlternateScreen, EnableBracketedPaste, cursor::Hide).map_err(refused("its screen"))?;
        if mouse == Mouse::On {
            queue!(gather, style::Print(MOUSE_ON)).map_err(refused("its mouse"))?;
        }
        let terminal = Terminal::new(CrosstermBackend::new(gather)).map_err(refused("a first frame"))?;
        Ok(Screen { terminal, frames, writer, spare: Vec::with_capacity(FRAME_BYTES), taken })
    }

    /// Number of columns and rows.
    pub fn size(&self) -> Result<(u16, u16), TermError> {
        let size = self.terminal.size().map_err(|error| TermError::Terminal { what: "its size", error })?;
        Ok((size.width, size.height))
    }

    /// The result of the last frame, if it has gone out since the last call.
    ///
    /// # Errors
    /// The terminal's error on writing it.
    pub fn take_written(&mut self) -> io::Result<Option<FrameSent>> {
        let written = self.writer.take_written()?;
        Ok(written.map(|Written { buffer, took_ns, ended_ns }| {
            self.spare = buffer;
            FrameSent { took_ns, ended_ns }
        }))
    }

    /// Becomes readable when a frame has gone out.
    pub fn written(&self) -> &PipeReader {
        self.writer.woken()
    }

    /// Whether the last frame has gone out. Until then no frame may be drawn.
    pub fn is_idle(&self) -> bool {
        self.writer.is_idle()
    }

    /// Draws the model as one synchronised update, and passes it to the writer.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        if self.taken.overwritten.swap(false, Ordering::Relaxed) {
            self.forget()?;
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| view::view(model, frame))?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        self.writer.send(self.frames.take(std::mem::take(&mut self.spare)))
    }

    /// Marks every cell as unknown, so that the next frame draws all of them. Uses `resize`: the
    /// library's `clear` queries the terminal's cursor and fails without an answer.
    pub fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Takes the mouse, or leaves it to the terminal, from the next frame on.
    pub fn capture(&mut self, mouse: Mouse) -> io::Result<()> {
        let said = if mouse == Mouse::On { MOUSE_ON } else { MOUSE_OFF };
        queue!(self.terminal.backend_mut(), style::Print(said))
    }

    /// Gives the terminal `text` for its clipboard (OSC 52), with the next frame. A terminal that
    /// does not know it, or does not permit it, ignores it.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }

    /// Bytes passed to the writer so far.
    pub fn bytes(&self) -> u64 {
        self.frames.bytes()
    }

    /// Restores the terminal, and returns whether it accepted the last bytes.
    pub fn close(self) -> Delivered {
        self.taken.keys.give_back()
    }
}

/// Result of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameSent {
    /// Time that the terminal took, nanoseconds.
    pub took_ns: u64,
    /// End of the write, console clock.
    pub ended_ns: u64,
}

/// The terminal's state, restored once.
struct TerminalState {
    keys: Arc<Restore>,
    overwritten: Arc<AtomicBool>,
}

/// Everything needed to restore the terminal.
struct Restore {
    up: AtomicBool,
    final_write: FinalWrite,
}

impl TerminalState {
    fn take(final_write: FinalWrite) -> io::Result<TerminalState> {
        // Without a terminal at standard input a fatal signal restores nothing; keys then come from
        // /dev/tty.
        let _ = fatal::take_terminal(give_back_bytes());
        terminal::enable_raw_mode()?;
        super::keys::never_wait().inspect_err(|_| drop(terminal::disable_raw_mode()))?;
        let keys = Arc::new(Restore { up: AtomicBool::new(true), final_write });
        let taken = TerminalState { keys: Arc::clone(&keys), overwritten: Arc::new(AtomicBool::new(false)) };
        hook(keys, Arc::clone(&taken.overwritten));
        Ok(taken)
    }
}

impl Drop for TerminalState {
    fn drop(&mut self) {
        self.keys.give_back();
    }
}

impl Restore {
    /// Restores the terminal if the console still owns it. Relaxed: one word, and the thread that
    /// swaps it first restores the terminal.
    fn give_back(&self) -> Delivered {
        if !self.up.swap(false, Ordering::Relaxed) {
            return Delivered::Yes;
        }
        let delivered = self.final_write.send(give_back_bytes());
        // A closed terminal cannot be restored, and the error has no reader.
        let _gone = terminal::disable_raw_mode();
        fatal::release_terminal();
        delivered
    }
}

/// Restores the terminal after a console of another process that cannot do it any more.
pub fn give_back() {
    // A closed terminal cannot be restored, and the error has no reader.
    let _gone = io::stdout().write_all(&give_back_bytes()).and_then(|()| io::stdout().flush());
}

/// Control sequences that undo all settings of the console.
fn give_back_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = queue!(
        bytes,
        EndSynchronizedUpdate,
        style::Print(MOUSE_OFF),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    bytes
}

/// Chains a hook that restores the terminal when the console thread panics, or when a hot thread
/// ends the process because the profile says so.
fn hook(keys: Arc<Restore>, overwritten: Arc<AtomicBool>) {
    let console = thread::current().id();
    let at_abort = Arc::clone(&keys);
    set_before_abort(move || {
        at_abort.give_back();
    });
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == console {
            keys.give_back();
        } else {
            // Relaxed: if a frame misses it, the next one sees it.
            overwritten.store(true, Ordering::Relaxed);
        }
        before(info);
    }));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

    use super::{Clock, Mouse, Restore, Screen, Writer, hook};
    use crate::model::Model;
    use crate::theme::Theme;
    use pinwheel_engine::profile::OnHangup;
    use portable_pty::{CommandBuilder, PtySize, native_pty_system};
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_panic_of_the_console_thread_gives_the_terminal_back_once_and_another_threads_does_not() {
        let (output, mut terminal) = UnixStream::pair().unwrap();
        let writer = Writer::start(output, Clock::start()).unwrap();
        let keys = Arc::new(Restore { up: AtomicBool::new(true), final_write: writer.final_write() });
        let overwritten = Arc::new(AtomicBool::new(false));
        let console = thread::spawn({
            let (keys, overwritten) = (Arc::clone(&keys), Arc::clone(&overwritten));
            move || {
                hook(Arc::clone(&keys), Arc::clone(&overwritten));
                thread::spawn(|| panic!("a role's panic, on purpose")).join().unwrap_err();
                assert!(keys.up.load(Ordering::Relaxed) && overwritten.load(Ordering::Relaxed));
                panic!("the console's panic, on purpose");
            }
        });
        console.join().unwrap_err();
        keys.give_back();
        drop(writer);
        let mut told = String::new();
        terminal.read_to_string(&mut told).unwrap();
        assert_eq!(told.matches("\u{1b}[?1049l").count(), 1, "{told:?}");
        assert!(told.ends_with("\u{1b}[?25h"), "{told:?}");
    }

    /// The child process of the test below: a console that panics while it shows a picture.
    #[test]
    #[ignore = "runs on a terminal of the test that starts it"]
    fn a_console_that_panics() {
        if std::env::var_os("PINWHEEL_TEST_TERMINAL").is_none() {
            return;
        }
        let mut screen = Screen::open(Clock::start(), Mouse::On).unwrap();
        let theme = Theme::from_variables(|_| None);
        screen.draw(&Model::new(theme, (80, 24), OnHangup::Detach)).unwrap();
        panic!("the console's panic, on purpose");
    }

    #[test]
    fn a_panic_of_the_console_leaves_a_usable_terminal_and_says_where() {
        const COOKED: u32 = 0o2 | 0o10;
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        let name = concat!(module_path!(), "::a_console_that_panics");
        let name = name.split_once("::").unwrap().1;
        command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env("PINWHEEL_TEST_TERMINAL", "1");
        let mut reader = pair.master.try_clone_reader().unwrap();
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut bytes = Vec::new();
        // The read ends with an error when no process has the terminal open any more.
        let _ended = reader.read_to_end(&mut bytes);
        assert!(!child.wait().unwrap().success());
        let told = String::from_utf8_lossy(&bytes);
        let (before, after) = told.split_once("\u{1b}[?1049l").expect("the alternate screen was left");
        assert!(
            before.contains("\u{1b}[?1049h") && before.contains("\u{1b}[?1000l") && before.contains("no picture yet")
        );
        assert!(after.contains("\u{1b}[?25h") && after.contains("the console's panic, on purpose"), "{after}");
        let modes = pair.master.get_termios().unwrap().local_flags.bits();
        assert_eq!(modes & COOKED, COOKED, "left raw: {modes:o}");
    }
}
