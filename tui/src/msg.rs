//! What happens to the console, as data.
//!
//! Owns the message type and the console's own key type; made by the console's loop only. Never carries a handle.

use crate::model::found::Brought;
use crate::source::past::Past;
use crate::source::{News, Offer};
use pinwheel_engine::board::snapshot::Snapshot;

/// One thing that happened. Times are nanoseconds of the console's own clock.
#[derive(Clone, Debug)]
pub enum Msg {
    /// Time passed.
    Tick {
        /// Now.
        now_ns: u64,
    },
    /// The source was read.
    Snapshot {
        /// When it was read.
        now_ns: u64,
        /// What it said; `None`: it could not be read.
        snapshot: Option<Box<Snapshot>>,
        /// Whether the engine's threads have all left.
        finished: Finished,
    },
    /// A key.
    Key(Key),
    /// The mouse.
    Mouse(Mouse),
    /// The terminal has another size.
    Resize {
        /// Columns.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// The profiles were listed.
    Offers(Vec<Offer>),
    /// A recording is looked at, from that moment on, nanoseconds after the engine's start.
    Replay(u64),
    /// A moment of the past, or why there is none.
    Past(Result<Box<Past>, String>),
    /// A note was kept, or why not.
    Noted(Result<(), String>),
    /// A profile was applied, or refused in one sentence.
    Applied {
        /// Its name.
        name: String,
        /// How it went.
        result: Result<(), String>,
    },
    /// An alarm was answered, or could not be, in one sentence.
    Answered {
        /// What was done.
        what: &'static str,
        /// How it went.
        result: Result<(), String>,
    },
    /// What another process said to something that was asked of it.
    News(News),
    /// No picture will come any more, in one sentence why.
    Lost(String),
    /// Something was asked for, or could not be, in one sentence why.
    Asked {
        /// What.
        what: String,
        /// How it went.
        result: Result<(), String>,
    },
    /// Something that is not on the board was read.
    Brought(Brought),
    /// The screen was written to that file, or was not, in one sentence.
    Dumped(Result<String, String>),
    /// Something of the user's cannot be used, in one sentence.
    Unusable(String),
    /// The operating system asked for something.
    Signal(Signal),
    /// What the console itself costs.
    Cost(ConsoleCost),
}

/// Whether the engine has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Hot threads run.
    No,
    /// All have left.
    Yes,
}

/// A request of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
    /// SIGHUP: the terminal went away.
    Hangup,
    /// SIGTSTP: refused.
    Suspend,
}

/// What the mouse did, and where: column and row from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What.
    pub deed: MouseDeed,
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
}

/// What a mouse does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseDeed {
    /// Its first button was pressed.
    Click,
    /// Its wheel was turned away from the user.
    WheelUp,
    /// Towards.
    WheelDown,
}

/// A key, with what the console cares about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character, shift applied.
    Char(char),
    /// Control and a lower-case letter.
    Ctrl(char),
    /// Tab.
    Tab,
    /// Shift-Tab.
    BackTab,
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Arrow.
    Up,
    /// Arrow.
    Down,
    /// Arrow.
    Left,
    /// Arrow.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Delete.
    Delete,
    /// A function key, from 1.
    F(u8),
}

impl Key {
    /// As footer and help spell it.
    pub fn label(self) -> String {
        match self {
            Key::Char(' ') => "space".to_owned(),
            Key::Char(c) => c.to_string(),
            Key::Ctrl(c) => format!("^{}", c.to_ascii_uppercase()),
            Key::Tab => "tab".to_owned(),
            Key::BackTab => "shift-tab".to_owned(),
            Key::Enter => "enter".to_owned(),
            Key::Esc => "esc".to_owned(),
            Key::Backspace => "backspace".to_owned(),
            Key::Up => "↑".to_owned(),
            Key::Down => "↓".to_owned(),
            Key::Left => "←".to_owned(),
            Key::Right => "→".to_owned(),
            Key::PageUp => "pgup".to_owned(),
            Key::PageDown => "pgdn".to_owned(),
            Key::Home => "home".to_owned(),
            Key::End => "end".to_owned(),
            Key::Delete => "del".to_owned(),
            Key::F(number) => format!("F{number}"),
        }
    }
}

/// What the console itself costs, over the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ConsoleCost {
    /// CPU time of the console thread per second, milliseconds.
    pub cpu_ms_per_s: f64,
    /// Frames drawn per second.
    pub draws_per_s: f64,
    /// Bytes written to the terminal per second.
    pub bytes_per_s: f64,
    /// CPU time of the console thread since it started, milliseconds.
    pub cpu_ms: f64,
    /// Frames drawn since it started.
    pub draws: u64,
    /// Bytes written since it started.
    pub bytes: u64,
    /// Time since it started, milliseconds.
    pub elapsed_ms: f64,
}
