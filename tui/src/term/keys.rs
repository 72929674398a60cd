//! Terminal events as messages. Pastes and focus are not keys and do nothing: pasted text must never act.
//!
//! # Why the library reads with `use-dev-tty`
//!
//! Its other way hears of each arrival once, and of a key and a resize that arrive together it takes one: the key is then
//! answered when the next one comes, or the size is never heard of. This one asks what there is. A wait of zero it takes for
//! none at all, and looks at nothing: so the shortest is [`GLANCE`].

use crate::msg::{Key, Mouse, MouseDeed, Msg};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, PipeReader, Read};
use std::time::Duration;

/// How long the library may look where nothing is known to have come: for a resize, or what it has read ahead. Less than
/// its clock's millisecond, so that it does not wait.
const GLANCE: Duration = Duration::from_micros(50);
/// And where something has come from the terminal: the rest of a key that came in pieces.
const PIECES: Duration = Duration::from_millis(1);

/// The next event of the terminal, if one has come within `at_most`; what else ends the wait is as in [`wait`].
///
/// # Errors
/// When the terminal is gone, or cannot be read.
pub fn next(at_most: Duration, also: &PipeReader) -> io::Result<Option<Event>> {
    let library_wait = match wait(at_most, also)? {
        Woken::ByInput => PIECES,
        Woken::Otherwise => GLANCE,
    };
    if crossterm::event::poll(library_wait)? { crossterm::event::read().map(Some) } else { Ok(None) }
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// There is something to read from the terminal.
    ByInput,
    /// A frame has gone out, a signal came, or the time is over.
    Otherwise,
}

/// Waits for a key, a signal, or a byte in `also`, which is taken; at most that long.
///
/// # Why not the library's own wait
///
/// Its loop takes no error of the terminal for an end: once the terminal has hung up, its wait never returns, and takes a
/// whole core.
///
/// # Errors
/// When the terminal is gone: a broken pipe.
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
        // There is a byte, so this does not wait.
        let _taken = also.read(&mut [0; 64])?;
    }
    Ok(if keys.contains(PollFlags::IN) { Woken::ByInput } else { Woken::Otherwise })
}

/// The message of an event, if it means anything here.
pub fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => self::key(key).map(Msg::Key),
        Event::Resize(columns, rows) => Some(Msg::Resize { columns, rows }),
        Event::Mouse(mouse) => self::mouse(mouse).map(Msg::Mouse),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Paste(_) => None,
    }
}

/// A press of the first button, or the wheel. With a modifier it is the terminal's.
fn mouse(mouse: MouseEvent) -> Option<Mouse> {
    let deed = match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) if mouse.modifiers.is_empty() => MouseDeed::Click,
        MouseEventKind::ScrollUp => MouseDeed::WheelUp,
        MouseEventKind::ScrollDown => MouseDeed::WheelDown,
        _ => return None,
    };
    Some(Mouse { deed, x: mouse.column, y: mouse.row })
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
    use crate::msg::{Key, Msg};
    use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    #[test]
    fn control_z_is_a_key_and_a_paste_is_none() {
        let z = Event::Key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL));
        assert!(matches!(message(z), Some(Msg::Key(Key::Ctrl('z')))));
        assert!(message(Event::Paste("py".to_owned())).is_none());
    }

    #[test]
    fn alt_and_a_letter_is_not_the_letter() {
        assert!(message(Event::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT))).is_none());
    }
}
