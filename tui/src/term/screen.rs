//! The screen: raw mode and alternate screen while it lives, the terminal as before afterwards.
//!
//! Owns the terminal's state. It is given back once, whichever comes first: drop, or a panic of the console thread.
//!
//! # Why the hook looks at the thread
//!
//! A panic hook hears every thread. A role that panics is caught, published and shown as an alarm; giving the terminal
//! back for it would take the console away when it is needed. So only the console thread's own panic restores the terminal.
//! Every panic then goes to the hook before: the engine's keeps a hot thread's place without a word. What another thread's
//! panic prints over the picture is drawn over by the next frame, which begins anew.

use super::TermError;
use super::output::{self, Frames, Gather};
use crate::model::Model;
use crate::view;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute, queue, style, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use std::io;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The terminal while the console has it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Gather>>,
    frames: Frames,
    taken: Taken,
}

impl Screen {
    /// Takes the terminal.
    pub fn open() -> Result<Screen, TermError> {
        let refused = |what| move |error| TermError::Terminal { what, error };
        let taken = Taken::take().map_err(refused("raw mode or the alternate screen"))?;
        // The theme alone decides about colour; see `theme`.
        style::force_color_output(true);
        let (gather, frames) = output::gathered();
        let terminal = Terminal::new(CrosstermBackend::new(gather)).map_err(refused("a first frame"))?;
        Ok(Screen { terminal, frames, taken })
    }

    /// Columns and rows.
    pub fn size(&self) -> Result<(u16, u16), TermError> {
        let size = self.terminal.size().map_err(|error| TermError::Terminal { what: "its size", error })?;
        Ok((size.width, size.height))
    }

    /// Draws the model as one synchronised update.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        if self.taken.scribbled.swap(false, Ordering::Relaxed) {
            self.forget()?;
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| view::view(model, frame))?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        self.frames.send(&mut io::stdout().lock())
    }

    /// Forgets what is on the screen, so that the next frame draws every cell. Through `resize`: the library's `clear`
    /// asks the terminal for its cursor and fails where none answers.
    pub fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.frames.bytes()
    }
}

/// The terminal's state, to be given back once.
struct Taken {
    up: Arc<AtomicBool>,
    scribbled: Arc<AtomicBool>,
}

impl Taken {
    fn take() -> io::Result<Taken> {
        let up = Arc::new(AtomicBool::new(true));
        terminal::enable_raw_mode()?;
        let scribbled = Arc::new(AtomicBool::new(false));
        let taken = Taken { up: Arc::clone(&up), scribbled: Arc::clone(&scribbled) };
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        hook(up, scribbled);
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back(&self.up);
    }
}

/// Gives the terminal back if it is still taken. Relaxed: only the console thread gives it back.
fn give_back(up: &AtomicBool) {
    if !up.swap(false, Ordering::Relaxed) {
        return;
    }
    // A terminal that is gone cannot be restored, and there is nobody to tell.
    let _gone =
        execute!(io::stdout(), EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _gone = terminal::disable_raw_mode();
}

/// Chains a hook that restores the terminal when the console thread panics.
fn hook(up: Arc<AtomicBool>, scribbled: Arc<AtomicBool>) {
    let console = thread::current().id();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == console {
            give_back(&up);
        } else {
            // Relaxed: a frame that misses it is followed by one that does not.
            scribbled.store(true, Ordering::Relaxed);
        }
        before(info);
    }));
}
