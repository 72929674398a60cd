//! Messages to `update`: the console's events, as data.
//!
//! Owns the message type; only the console's loop makes messages. A message carries no handle.

use crate::keymap::key::Key;
use crate::model::lookups::LookupResult;
use crate::source::data::{Offer, Reply};
use crate::source::past::Past;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;

/// One event. Times are nanoseconds of the console's own clock.
#[derive(Clone, Debug)]
pub enum Msg {
    Tick {
        now_ns: u64,
    },
    /// The source was read.
    Snapshot {
        /// Time of the reading.
        now_ns: u64,
        /// The picture; `None`: unreadable.
        snapshot: Option<Box<Snapshot>>,
        /// Whether the engine's threads have all returned.
        finished: Finished,
    },
    Key(Key),
    Mouse(Mouse),
    Resize {
        columns: u16,
        rows: u16,
    },
    /// The profiles were listed.
    Offers(Vec<Offer>),
    /// A recording opened, shown from that moment on, nanoseconds after the engine's start.
    Replay(u64),
    /// A recorded moment, or why there is none.
    Past(Result<Box<Past>, String>),
    /// A command was passed to the engine, or refused in one sentence.
    Executed {
        command: Command,
        /// Success, or the refusal.
        result: Result<(), String>,
    },
    /// Another process's reply to a command.
    Reply(Reply),
    /// No further picture will arrive, with the reason in one sentence.
    Lost(String),
    /// Data from outside the board was read.
    LookedUp(LookupResult),
    /// The screen was written to that file, or an error in one sentence.
    Dumped(Result<String, String>),
    /// A file of the user is invalid, with the reason in one sentence.
    Unusable(String),
    Signal(Signal),
    /// Measured cost of the console itself.
    Cost(ConsoleCost),
}

/// Whether the engine has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Hot threads run.
    No,
    /// All hot threads have returned.
    Yes,
}

/// A signal to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Interrupt,
    /// SIGHUP: the terminal closed.
    Hangup,
    Suspend,
}

/// A mouse event and its cell: column and row from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    pub action: MouseAction,
    pub x: u16,
    pub y: u16,
}

/// Kinds of mouse events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseAction {
    /// The left button was pressed.
    Click,
    /// The wheel was turned away from the user.
    WheelUp,
    WheelDown,
}

/// Cost of the console itself over the last second.
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
