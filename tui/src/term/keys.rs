//! Terminal events as messages. Pastes and focus changes do nothing: pasted text must never act as
//! keys.
//!
//! # Why the library reads with `use-dev-tty`
//!
//! Its default reader learns of each arrival once, and of a key and a resize that arrive together
//! it reports one: the key is then handled with the next event, or the new size is lost. The
//! `use-dev-tty` reader polls. With a timeout of zero it reads nothing at all, so the shortest
//! timeout is [`GLANCE`].

use crate::keymap::key::Key;
use crate::msg::{Mouse, MouseAction, Msg};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{self, OptionalActions, SpecialCodeIndex};
use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Timeout of the library's poll when no input is known: for a resize, or input it has read ahead.
/// Less than its clock's millisecond, so that it does not wait.
const GLANCE: Duration = Duration::from_micros(50);
/// Timeout of the poll when input has arrived: for the rest of a key that arrives in parts.
const PIECES: Duration = Duration::from_millis(1);

/// The next event of the terminal, if one comes within `at_most`; other ends of the wait are those
/// of [`wait`].
///
/// # Errors
/// When the terminal is closed, or cannot be read.
pub fn next(at_most: Duration, also: &PipeReader) -> io::Result<Option<Event>> {
    let library_wait = match wait(at_most, also)? {
        Woken::ByInput => PIECES,
        Woken::Otherwise => GLANCE,
    };
    if crossterm::event::poll(library_wait)? { crossterm::event::read().map(Some) } else { Ok(None) }
}

/// Lets a read of the terminal return at once when there is nothing to read. Raw mode comes before, and its end undoes
/// this, too.
///
/// # Why
///
/// After a part of a key or of a paste the library reads again, until there is nothing. Where a read waits, a terminal
/// that never sends the rest stops the console: no picture, no key and no signal would reach it.
///
/// # Errors
/// When there is no terminal, or it refuses.
pub fn never_wait() -> io::Result<()> {
    let set = |terminal: BorrowedFd<'_>| -> io::Result<()> {
        let mut modes = termios::tcgetattr(terminal)?;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(termios::tcsetattr(terminal, OptionalActions::Now, &modes)?)
    };
    let stdin = io::stdin();
    if stdin.is_terminal() { set(stdin.as_fd()) } else { set(File::open("/dev/tty")?.as_fd()) }
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    ByInput,
    /// A frame has gone out, a signal came, or the timeout expired.
    Otherwise,
}

/// Waits at most that long for a key, a signal, or a byte in `also`, which it consumes.
///
/// # Why not the library's own wait
///
/// The library's loop ignores errors of the terminal: once the terminal has hung up, its wait never
/// returns and occupies a whole core.
///
/// # Errors
/// When the terminal is closed: a broken pipe.
fn wait(at_most: Duration, mut also: &PipeReader) -> io::Result<Woken> {
    let stdin = io::stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(also, PollFlags::IN)];
    let at_most = Timespec::try_from(at_most).ok();
    match poll(&mut ends, at_most.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [keys, also_is] = ends.map(|end| end.revents());
    if keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    if also_is.contains(PollFlags::IN) {
        // The pipe holds a byte, so this read does not wait.
        let _taken = also.read(&mut [0; 64])?;
    }
    Ok(if keys.contains(PollFlags::IN) { Woken::ByInput } else { Woken::Otherwise })
}

/// The message of an event; `None`: the console ignores it.
pub fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => self::key(key).map(Msg::Key),
        Event::Resize(columns, rows) => Some(Msg::Resize { columns, rows }),
        Event::Mouse(mouse) => self::mouse(mouse).map(Msg::Mouse),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Paste(_) => None,
    }
}

/// A press of the left button, or the wheel. Mouse events with a modifier belong to the terminal.
fn mouse(mouse: MouseEvent) -> Option<Mouse> {
    let action = match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) if mouse.modifiers.is_empty() => MouseAction::Click,
        MouseEventKind::ScrollUp => MouseAction::WheelUp,
        MouseEventKind::ScrollDown => MouseAction::WheelDown,
        _ => return None,
    };
    Some(Mouse { action, x: mouse.column, y: mouse.row })
}

fn key(key: KeyEvent) -> Option<Key> {
    if key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META) {
        return None;
    }
    Some(match key.code {
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Delete => Key::Delete,
        KeyCode::F(number) => Key::F(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::message;
    use crate::keymap::key::Key;
    use crate::msg::Msg;
    use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    #[test]
    fn control_z_is_a_key_and_a_paste_is_ignored() {
        let z = Event::Key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL));
        assert!(matches!(message(z), Some(Msg::Key(Key::Ctrl('z')))));
        assert!(message(Event::Paste("py".to_owned())).is_none());
    }

    #[test]
    fn alt_and_a_letter_is_not_the_letter() {
        assert!(message(Event::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT))).is_none());
    }
}
