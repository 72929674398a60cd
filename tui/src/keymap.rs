//! The key table: dispatch, footer, help, palette, man page and the book's page of keys all use it.
//!
//! Owns the texts of every binding; pure data, on the console thread. [`mod@table`] is the table,
//! [`bound`] is the table with the user's keys, [`mod@file`] reads those keys, [`page`] writes the
//! table for documents. Tests compare all of these. No other code of the console matches on a key.

pub mod bound;
pub mod file;
pub mod key;
pub mod name;
pub mod page;
mod table;

pub use table::TABLE;

use crate::model::view::View;
use crate::named::named;
use key::Key;
use pinwheel_engine::engine::SiloCommand;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    NextView,
    PreviousView,
    Show(View),
    Move(Step),
    NextSilo,
    /// Freeze the picture, or continue.
    Freeze,
    /// Step so many milliseconds back (negative) or forward.
    Scrub(i64),
    /// Step to the onset of the previous alarm.
    ToOnset,
    /// Step to the first moment recorded, or to the last.
    ToEnd(End),
    Note,
    /// Play a replay, or stop it.
    Play,
    /// Open the profile chooser.
    Choose,
    /// Take the profile under the cursor.
    Take,
    /// Take the profile of that number, from 1.
    TakeNumber(u8),
    /// Leave: asks, drains, then ends; the engine of another process continues.
    Quit,
    /// Drain and end the engine, also that of another process.
    End,
    /// Hold the feed, or resume it.
    Hold,
    /// Set another rate.
    Rate,
    /// Take the last change of the error model back.
    UndoModel,
    Confirm,
    Cancel,
    Suspend,
    Redraw,
    /// Copy the row under the cursor with its details.
    Copy,
    /// Acknowledge the alarm under the cursor.
    Acknowledge,
    AcknowledgeAll,
    /// Incidents or all alarms in the list.
    AlarmRows,
    /// Silence the alarm under the cursor for ten minutes.
    Snooze,
    Palette,
    /// Filter the rows of the view's list.
    Filter,
    /// Sort the view's list by another column, once.
    Sort(Sorting),
    /// Choose the columns of the view's list.
    Columns,
    /// Show or hide the column under the cursor.
    Toggle,
    /// List and details, details alone, list alone.
    Zoom,
    /// Follow the link of the row under the cursor.
    Follow,
    /// Return to the place before the last link.
    Back,
    NextTheme,
    /// Mark the picture shown, to compare with.
    Mark,
    /// Apply the profile that was in force before the last switch.
    Undo,
    /// Write the screen to a text file.
    DumpScreen,
    /// Take the mouse, or leave it to the terminal.
    Mouse,
    /// Drain, kill or rejoin the silo under the cursor.
    Silo(SiloCommand),
    /// Move a stream to another silo.
    MoveStream,
    Input,
    /// Give a reason, at a question.
    Why,
    /// Half the span of the chart, around the cursor.
    Closer,
    /// Twice the span of the chart.
    Wider,
    /// Begin the tour, or go to its next step.
    Tour,
    EndTour,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// By the next column; after the last column, in the engine's order.
    Next,
    /// By the same column in the opposite direction; an unsorted list by its first column.
    Reverse,
}

/// An end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    First,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    First,
    Last,
}

named! {
    /// Scopes of bindings, in the order of help.
    pub enum Scope {
        /// In every view without a question.
        Views = "views", "everywhere";
        /// Takes precedence over the keys of every view, as do the next six.
        Profiles = "profiles", "in profiles";
        Help = "help", "in help";
        Chart = "chart", "in the chart";
        Alarms = "alarms", "in alarms";
        Placement = "placement", "in placement";
        Streams = "streams", "in streams";
        /// While the picture is frozen or from a recording.
        Past = "past", "in the past";
        /// Unbound keys are text input, as in a filter and a note.
        Palette = "palette", "in the palette";
        Filter = "filter", "in a filter";
        Columns = "columns", "at the columns";
        Chooser = "chooser", "in the profile chooser";
        Question = "question", "at a question";
        Note = "note", "while writing";
    }
}

impl Scope {
    /// The scope searched for a key that this scope does not bind.
    fn outer(self) -> Option<Scope> {
        match self {
            Scope::Profiles
            | Scope::Help
            | Scope::Chart
            | Scope::Past
            | Scope::Alarms
            | Scope::Placement
            | Scope::Streams => Some(Scope::Views),
            _ => None,
        }
    }
}

/// Whether the footer shows a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footer {
    /// Shown, with this word.
    Word(&'static str),
    Absent,
}

/// A row of the table: each of `keys` performs `action`. If `keys` are the digits, the digit is the
/// action's number.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub scope: Scope,
    pub keys: &'static [Key],
    pub action: Action,
    /// Word in the footer, if any.
    pub footer: Footer,
    /// Text in help, one line.
    pub help: &'static str,
}

#[cfg(test)]
mod tests;
