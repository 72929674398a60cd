//! The key table: dispatch, footer, help, palette, man page and the README's section are all made from it.
//!
//! Owns every binding; pure data, on the console thread. [`bound`] is the table with the keys that a user chose, [`mod@file`]
//! reads them, [`page`] writes the table out. Tests compare what all of these show. Nothing else in the console matches on
//! a key.

pub mod bound;
pub mod file;
pub mod name;
pub mod page;

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

const fn bind(scope: Scope, keys: &'static [Key], action: Action, footer: Footer, help: &'static str) -> Binding {
    Binding { scope, keys, action, footer, help }
}

const NO: Footer = Footer::Absent;

/// The table, in the order of footer and help.
pub const TABLE: &[Binding] = &[
    bind(Scope::Views, &[Key::Char('?'), Key::Char('0')], Action::Show(View::Help), Footer::Word("help"), "this page"),
    bind(Scope::Views, &[Key::Tab], Action::NextView, Footer::Word("view"), "next view"),
    bind(Scope::Views, &[Key::BackTab], Action::PreviousView, NO, "previous view"),
    bind(
        Scope::Views,
        &[Key::Char('1')],
        Action::Show(View::Overview),
        NO,
        "overview: is every shot answered, and how fast?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('2')],
        Action::Show(View::Threads),
        NO,
        "threads: which thread is late, and under what policy?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('3')],
        Action::Show(View::Slots),
        NO,
        "slots: which slot waits longest, and on whom?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('4')],
        Action::Show(View::Workers),
        NO,
        "workers: which worker is busy, with which slot?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('5')],
        Action::Show(View::Profiles),
        NO,
        "profiles: what would change, and has it arrived?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('6')],
        Action::Show(View::Graph),
        NO,
        "graph: which task waits longest, and on what?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('7')],
        Action::Show(View::Arbiter),
        NO,
        "arbiter: who may write which page, and who waits?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('M')],
        Action::Show(View::Placement),
        NO,
        "placement: which silo is full, and which stream should move?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('8')],
        Action::Show(View::Sources),
        NO,
        "sources: who sends, how fast, and what is missing?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('9'), Key::Char('!')],
        Action::Show(View::Alarms),
        NO,
        "alarms: what is wrong, since when, and why?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('t')],
        Action::Show(View::Streams),
        NO,
        "streams: which logical qubit is late, or wrong?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('r')],
        Action::Show(View::Rings),
        NO,
        "rings: which queue is full, and who empties it?",
    ),
    bind(
        Scope::Views,
        &[Key::Char('e')],
        Action::Show(View::Environment),
        NO,
        "environment: what of this machine costs latency?",
    ),
    bind(Scope::Views, &[Key::Char('c')], Action::Show(View::Cores), NO, "cores: who uses which core?"),
    bind(Scope::Views, &[Key::Char('v')], Action::Show(View::Log), NO, "log: what happened in this run, and when?"),
    bind(
        Scope::Views,
        &[Key::Char('u')],
        Action::Show(View::Actions),
        NO,
        "actions: who did what, why, and with what effect?",
    ),
    bind(Scope::Views, &[Key::Char('=')], Action::Show(View::Compare), NO, "compare: what is other than at the mark?"),
    bind(Scope::Views, &[Key::Char(':')], Action::Palette, Footer::Word("command"), "every command, by its words"),
    bind(
        Scope::Views,
        &[Key::Char('/')],
        Action::Filter,
        Footer::Word("filter"),
        "only the rows that hold these words",
    ),
    bind(
        Scope::Views,
        &[Key::Enter],
        Action::Follow,
        NO,
        "to what the row points to: slot, worker, thread, alarm, stack",
    ),
    bind(Scope::Views, &[Key::Backspace], Action::Back, NO, "back to where one came from"),
    bind(Scope::Views, &[Key::Char('z')], Action::Zoom, NO, "details alone, list alone, both"),
    bind(Scope::Views, &[Key::Char('S')], Action::Sort(Sorting::Next), NO, "sort once, by the next column"),
    bind(Scope::Views, &[Key::Char('V')], Action::Sort(Sorting::Reverse), NO, "sort once, the other way round"),
    bind(Scope::Views, &[Key::Char('C')], Action::Columns, NO, "choose columns"),
    bind(Scope::Views, &[Key::Char('m')], Action::Mark, NO, "mark the moment shown, to compare with"),
    bind(Scope::Views, &[Key::Char('T')], Action::NextTheme, NO, "next theme"),
    bind(Scope::Views, &[Key::Char('W')], Action::DumpScreen, NO, "write this screen to a text file"),
    bind(
        Scope::Views,
        &[Key::Char('x')],
        Action::Mouse,
        NO,
        "take the mouse, or leave it to the terminal to select text",
    ),
    bind(Scope::Views, &[Key::Char('P')], Action::Undo, NO, "back to the profile before the last switch"),
    bind(
        Scope::Views,
        &[Key::Char('p')],
        Action::Choose,
        Footer::Word("profile"),
        "choose a profile: one more key picks",
    ),
    bind(Scope::Views, &[Key::Char('f')], Action::Freeze, Footer::Word("freeze"), "freeze the picture, or go on"),
    bind(Scope::Views, &[Key::Char('[')], Action::Scrub(-100), Footer::Word("back"), "look a tenth of a second back"),
    bind(Scope::Views, &[Key::Char(']')], Action::Scrub(100), NO, "look a tenth of a second forward"),
    bind(Scope::Views, &[Key::Char('{')], Action::Scrub(-10_000), NO, "ten seconds back"),
    bind(Scope::Views, &[Key::Char('}')], Action::Scrub(10_000), NO, "ten seconds forward"),
    bind(Scope::Views, &[Key::Char('<')], Action::Scrub(-1), NO, "a millisecond back, where there are fast samples"),
    bind(Scope::Views, &[Key::Char('>')], Action::Scrub(1), NO, "a millisecond forward"),
    bind(Scope::Views, &[Key::Char('o')], Action::ToOnset, NO, "to the onset of the alarm before"),
    bind(Scope::Views, &[Key::Char('n')], Action::Note, NO, "write a note, kept with the run"),
    bind(Scope::Views, &[Key::Char('s')], Action::NextSilo, NO, "next silo"),
    bind(Scope::Views, &[Key::Up, Key::Char('k')], Action::Move(Step::Up), NO, "up"),
    bind(Scope::Views, &[Key::Down, Key::Char('j')], Action::Move(Step::Down), NO, "down"),
    bind(Scope::Views, &[Key::Left, Key::Char('h')], Action::Move(Step::Left), NO, "left"),
    bind(Scope::Views, &[Key::Right, Key::Char('l')], Action::Move(Step::Right), NO, "right"),
    bind(Scope::Views, &[Key::PageUp], Action::Move(Step::PageUp), NO, "a page up"),
    bind(Scope::Views, &[Key::PageDown], Action::Move(Step::PageDown), NO, "a page down"),
    bind(Scope::Views, &[Key::Home, Key::Char('g')], Action::Move(Step::First), NO, "to the first"),
    bind(Scope::Views, &[Key::End, Key::Char('G')], Action::Move(Step::Last), NO, "to the last"),
    bind(Scope::Views, &[Key::Ctrl('l')], Action::Redraw, NO, "draw the screen anew"),
    bind(Scope::Views, &[Key::Ctrl('z')], Action::Suspend, NO, "refused: it would stop the engine too"),
    bind(
        Scope::Views,
        &[Key::Char('q'), Key::Ctrl('c')],
        Action::Quit,
        Footer::Word("quit"),
        "drain, then quit; again: force; attached: leave",
    ),
    bind(Scope::Views, &[Key::Char('D')], Action::End, NO, "drain and end the engine, attached or not"),
    bind(Scope::Views, &[Key::Char('H')], Action::Hold, NO, "hold the feed, or let it go"),
    bind(Scope::Views, &[Key::Char('R')], Action::Rate, NO, "another rate, until a profile says another"),
    bind(Scope::Views, &[Key::Char('I')], Action::Input, NO, "another input: drains, then starts anew on it"),
    bind(Scope::Profiles, &[Key::Enter], Action::Take, Footer::Word("apply"), "show what would change, and apply"),
    bind(Scope::Past, &[Key::Left], Action::Scrub(-100), NO, "a tenth of a second back"),
    bind(Scope::Past, &[Key::Right], Action::Scrub(100), NO, "a tenth of a second forward"),
    bind(Scope::Past, &[Key::Home], Action::ToEnd(End::First), NO, "to the first moment recorded"),
    bind(Scope::Past, &[Key::End], Action::ToEnd(End::Last), NO, "to the last moment recorded"),
    bind(Scope::Past, &[Key::Char(' ')], Action::Play, NO, "let a replay run, or stop it"),
    bind(Scope::Note, &[Key::Enter], Action::Confirm, Footer::Word("keep"), "keep what was written"),
    bind(Scope::Note, &[Key::Esc, Key::Ctrl('c')], Action::Cancel, Footer::Word("back"), "leave it as it was"),
    bind(Scope::Alarms, &[Key::Char('a')], Action::Acknowledge, Footer::Word("acknowledge"), "seen: it calls no more"),
    bind(Scope::Alarms, &[Key::Char('A')], Action::AcknowledgeAll, NO, "all that hold are seen"),
    bind(Scope::Alarms, &[Key::Char('Z')], Action::Snooze, Footer::Word("snooze"), "it does not call for ten minutes"),
    bind(
        Scope::Placement,
        &[Key::Char('d')],
        Action::Silo(SiloDeed::Drain),
        Footer::Word("drain"),
        "drain the silo: its streams move to others",
    ),
    bind(
        Scope::Placement,
        &[Key::Char('K')],
        Action::Silo(SiloDeed::Kill),
        Footer::Word("kill"),
        "kill the silo: asks for its word",
    ),
    bind(
        Scope::Placement,
        &[Key::Char('J')],
        Action::Silo(SiloDeed::Rejoin),
        Footer::Word("rejoin"),
        "have the silo come back",
    ),
    bind(
        Scope::Placement,
        &[Key::Char('b')],
        Action::MoveStream,
        Footer::Word("move"),
        "move a stream to another silo",
    ),
    bind(
        Scope::Streams,
        &[Key::Char('b')],
        Action::MoveStream,
        Footer::Word("move"),
        "move the stream to another silo",
    ),
    bind(Scope::Chooser, &DIGITS, Action::TakeNumber(0), Footer::Word("pick"), "pick the profile of that number"),
    bind(Scope::Chooser, &[Key::Enter], Action::Take, Footer::Word("take"), "take the profile under the cursor"),
    bind(Scope::Chooser, &[Key::Up, Key::Char('k')], Action::Move(Step::Up), NO, "up"),
    bind(Scope::Chooser, &[Key::Down, Key::Char('j')], Action::Move(Step::Down), NO, "down"),
    bind(
        Scope::Chooser,
        &[Key::Esc, Key::Char('p'), Key::Char('q'), Key::Ctrl('c')],
        Action::Cancel,
        Footer::Word("back"),
        "back",
    ),
    bind(Scope::Question, &[Key::Char('y'), Key::Enter], Action::Confirm, Footer::Word("yes"), "yes"),
    bind(Scope::Question, &[Key::Char('n'), Key::Esc], Action::Cancel, Footer::Word("no"), "no"),
    bind(Scope::Question, &[Key::Char('w')], Action::Why, Footer::Word("why"), "say why: kept with the action"),
    bind(Scope::Palette, &[Key::Enter], Action::Confirm, Footer::Word("do"), "do what is under the cursor"),
    bind(Scope::Palette, &[Key::Up, Key::Ctrl('p')], Action::Move(Step::Up), NO, "up"),
    bind(Scope::Palette, &[Key::Down, Key::Ctrl('n')], Action::Move(Step::Down), NO, "down"),
    bind(Scope::Palette, &[Key::Esc, Key::Ctrl('c')], Action::Cancel, Footer::Word("back"), "back"),
    bind(Scope::Filter, &[Key::Enter], Action::Confirm, Footer::Word("keep"), "keep the filter"),
    bind(Scope::Filter, &[Key::Up], Action::Move(Step::Up), NO, "up"),
    bind(Scope::Filter, &[Key::Down], Action::Move(Step::Down), NO, "down"),
    bind(Scope::Filter, &[Key::Esc, Key::Ctrl('c')], Action::Cancel, Footer::Word("clear"), "all rows again"),
    bind(
        Scope::Columns,
        &[Key::Char(' '), Key::Enter],
        Action::Toggle,
        Footer::Word("show or hide"),
        "show or hide it",
    ),
    bind(Scope::Columns, &[Key::Up, Key::Char('k')], Action::Move(Step::Up), NO, "up"),
    bind(Scope::Columns, &[Key::Down, Key::Char('j')], Action::Move(Step::Down), NO, "down"),
    bind(
        Scope::Columns,
        &[Key::Esc, Key::Char('C'), Key::Char('q'), Key::Ctrl('c')],
        Action::Cancel,
        Footer::Word("back"),
        "back",
    ),
];

const DIGITS: [Key; 9] = [
    Key::Char('1'),
    Key::Char('2'),
    Key::Char('3'),
    Key::Char('4'),
    Key::Char('5'),
    Key::Char('6'),
    Key::Char('7'),
    Key::Char('8'),
    Key::Char('9'),
];

#[cfg(test)]
mod tests;
