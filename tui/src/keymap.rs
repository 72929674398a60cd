//! The key table: dispatch, footer, help, palette, man page and the book's page of keys are all made from it.
//!
//! Owns the words of every binding; pure data, on the console thread. [`mod@table`] is the table, [`bound`] is the table with the keys that a user chose, [`mod@file`]
//! reads them, [`page`] writes the table out. Tests compare what all of these show. Nothing else in the console matches on
//! a key.

pub mod bound;
pub mod file;
pub mod name;
pub mod page;
mod table;

pub use table::TABLE;

use crate::model::View;
use crate::msg::Key;
use pinwheel_engine::engine::SiloDeed;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Next view.
    NextView,
    /// Previous view.
    PreviousView,
    /// That view.
    Show(View),
    /// Move the cursor.
    Move(Step),
    /// Another silo.
    NextSilo,
    /// Freeze, or go on.
    Freeze,
    /// Look so many milliseconds back (negative) or forward.
    Scrub(i64),
    /// To the onset of the alarm before the moment shown.
    ToOnset,
    /// To the first moment recorded, or to the last.
    ToEnd(End),
    /// Write a note.
    Note,
    /// Let a replay run, or stop it.
    Play,
    /// Open the profile chooser.
    Choose,
    /// Take the profile under the cursor.
    Take,
    /// Take the profile of that number, from 1.
    TakeNumber(u8),
    /// Leave: asks, drains, then ends; another process's engine is left as it is.
    Quit,
    /// Drain and end the engine, whose process it may be.
    End,
    /// Hold the feed, or let it go.
    Hold,
    /// Write another rate.
    Rate,
    /// Yes.
    Confirm,
    /// No.
    Cancel,
    /// Suspend: refused.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Acknowledge the alarm under the cursor.
    Acknowledge,
    /// Acknowledge all that hold.
    AcknowledgeAll,
    /// Let the alarm under the cursor not call for a while.
    Snooze,
    /// Open the command palette.
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
    /// To what the row under the cursor points to.
    Follow,
    /// Back to where one came from.
    Back,
    /// The next theme.
    NextTheme,
    /// Keep the picture shown to compare with.
    Mark,
    /// Apply the profile that was in force before the last switch.
    Undo,
    /// Write the screen to a text file.
    DumpScreen,
    /// Take the mouse, or leave it to the terminal.
    Mouse,
    /// Drain, kill or bring back the silo under the cursor.
    Silo(SiloDeed),
    /// Have a stream decoded elsewhere.
    MoveStream,
    /// Another input.
    Input,
    /// Say why, at a question.
    Why,
}

/// How to sort a list anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// By the next column; after the last one as the engine orders them.
    Next,
    /// By the same column, the other way round; a list not sorted yet by its first.
    Reverse,
}

/// An end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first moment.
    First,
    /// The last one.
    Last,
}

/// A cursor movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// One cell left.
    Left,
    /// One cell right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first.
    First,
    /// To the last.
    Last,
}

/// Where a binding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In every view while nothing is asked.
    Views,
    /// In the profiles view, before the keys of every view.
    Profiles,
    /// While the picture is frozen or from a recording, before the keys of every view.
    Past,
    /// In the alarms view, before the keys of every view.
    Alarms,
    /// In the placement view, likewise.
    Placement,
    /// In the streams view, likewise.
    Streams,
    /// In the profile chooser.
    Chooser,
    /// While a question is open.
    Question,
    /// While a note or a rate is written: what is not bound here is written.
    Note,
    /// In the command palette: what is not bound here is written.
    Palette,
    /// While a filter is written: what is not bound here is written.
    Filter,
    /// While columns are chosen.
    Columns,
}

impl Scope {
    /// All of them, in the order in which help shows them.
    pub const ALL: [Scope; 12] = [
        Scope::Views,
        Scope::Profiles,
        Scope::Alarms,
        Scope::Placement,
        Scope::Streams,
        Scope::Past,
        Scope::Palette,
        Scope::Filter,
        Scope::Columns,
        Scope::Chooser,
        Scope::Question,
        Scope::Note,
    ];

    /// Help's heading.
    pub fn heading(self) -> &'static str {
        match self {
            Scope::Views => "everywhere",
            Scope::Profiles => "in profiles",
            Scope::Past => "in the past",
            Scope::Alarms => "in alarms",
            Scope::Placement => "in placement",
            Scope::Streams => "in streams",
            Scope::Chooser => "in the profile chooser",
            Scope::Question => "at a question",
            Scope::Note => "while writing",
            Scope::Palette => "in the palette",
            Scope::Filter => "in a filter",
            Scope::Columns => "at the columns",
        }
    }

    /// Its name in a file of keys.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Views => "views",
            Scope::Profiles => "profiles",
            Scope::Past => "past",
            Scope::Alarms => "alarms",
            Scope::Placement => "placement",
            Scope::Streams => "streams",
            Scope::Chooser => "chooser",
            Scope::Question => "question",
            Scope::Note => "note",
            Scope::Palette => "palette",
            Scope::Filter => "filter",
            Scope::Columns => "columns",
        }
    }

    /// Where to look for a key that this scope does not bind.
    fn outer(self) -> Option<Scope> {
        match self {
            Scope::Profiles | Scope::Past | Scope::Alarms | Scope::Placement | Scope::Streams => Some(Scope::Views),
            Scope::Views
            | Scope::Chooser
            | Scope::Question
            | Scope::Note
            | Scope::Palette
            | Scope::Filter
            | Scope::Columns => None,
        }
    }
}

/// Whether the footer names a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footer {
    /// Yes, by this word.
    Word(&'static str),
    /// No.
    Absent,
}

/// One row of the table: any of `keys` does `action`. Where `keys` are the digits, the digit is the action's number.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Where.
    pub scope: Scope,
    /// Which keys.
    pub keys: &'static [Key],
    /// What.
    pub action: Action,
    /// In the footer.
    pub footer: Footer,
    /// In help, one line.
    pub help: &'static str,
}

#[cfg(test)]
mod tests;
