//! The key table: dispatch, footer and help are all made from it.
//!
//! Owns every binding; pure data and lookups, on the console thread. A test compares what the three show. Nothing else in
//! the console matches on a key.

use crate::model::View;
use crate::msg::Key;

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
    /// In the profile chooser.
    Chooser,
    /// While a question is open.
    Question,
    /// While a note or a rate is written: what is not bound here is written.
    Note,
}

impl Scope {
    /// All of them, in the order in which help shows them.
    pub const ALL: [Scope; 7] =
        [Scope::Views, Scope::Profiles, Scope::Alarms, Scope::Past, Scope::Chooser, Scope::Question, Scope::Note];

    /// Help's heading.
    pub fn heading(self) -> &'static str {
        match self {
            Scope::Views => "everywhere",
            Scope::Profiles => "in profiles",
            Scope::Past => "in the past",
            Scope::Alarms => "in alarms",
            Scope::Chooser => "in the profile chooser",
            Scope::Question => "at a question",
            Scope::Note => "while writing",
        }
    }

    /// Where to look for a key that this scope does not bind.
    fn outer(self) -> Option<Scope> {
        match self {
            Scope::Profiles | Scope::Past | Scope::Alarms => Some(Scope::Views),
            Scope::Views | Scope::Chooser | Scope::Question | Scope::Note => None,
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
    bind(Scope::Views, &[Key::Char('?')], Action::Show(View::Help), Footer::Word("help"), "this page"),
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
        &[Key::Char('8')],
        Action::Show(View::Sources),
        NO,
        "sources: who sends, how fast, and what is missing?",
    ),
    bind(Scope::Views, &[Key::Char('0')], Action::Show(View::Help), NO, "help"),
    bind(
        Scope::Views,
        &[Key::Char('9'), Key::Char('!')],
        Action::Show(View::Alarms),
        NO,
        "alarms: what is wrong, since when, and why?",
    ),
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
    bind(Scope::Alarms, &[Key::Char('z')], Action::Snooze, Footer::Word("snooze"), "it does not call for ten minutes"),
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

/// What `key` means in `scope`.
pub fn action(scope: Scope, key: Key) -> Option<Action> {
    let mut scope = Some(scope);
    while let Some(here) = scope {
        if let Some(binding) = TABLE.iter().find(|b| b.scope == here && b.keys.contains(&key)) {
            return Some(resolve(binding.action, key));
        }
        scope = here.outer();
    }
    None
}

fn resolve(action: Action, key: Key) -> Action {
    match (action, key) {
        (Action::TakeNumber(_), Key::Char(digit)) => {
            Action::TakeNumber(digit.to_digit(10).and_then(|d| u8::try_from(d).ok()).unwrap_or(0))
        }
        (other, _) => other,
    }
}

/// The footer's entries in `scope`: (keys, word).
pub fn footer(scope: Scope) -> Vec<(String, &'static str)> {
    let mut entries = Vec::new();
    let mut scope = Some(scope);
    while let Some(here) = scope {
        for binding in TABLE.iter().filter(|b| b.scope == here) {
            if let Footer::Word(word) = binding.footer {
                entries.push((keys_short(binding), word));
            }
        }
        scope = here.outer();
    }
    entries
}

/// Help's rows in `scope`: (keys, what).
pub fn help(scope: Scope) -> impl Iterator<Item = (String, &'static str)> {
    TABLE.iter().filter(move |b| b.scope == scope).map(|b| (keys_long(b), b.help))
}

fn keys_short(binding: &Binding) -> String {
    match (binding.action, binding.keys) {
        (Action::TakeNumber(_), _) => "1-9".to_owned(),
        (Action::Move(_), _) => "↑↓".to_owned(),
        (_, [first, ..]) => first.label(),
        (_, []) => String::new(),
    }
}

fn keys_long(binding: &Binding) -> String {
    match binding.action {
        Action::TakeNumber(_) => "1-9".to_owned(),
        _ => binding.keys.iter().map(|key| key.label()).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Action, Footer, Scope, TABLE, action, footer, help};
    use crate::msg::Key;

    #[test]
    fn every_key_of_the_table_is_dispatched_to_its_own_row() {
        for binding in TABLE {
            assert!(!binding.keys.is_empty() && !binding.help.is_empty());
            for key in binding.keys {
                let found = action(binding.scope, *key).unwrap();
                match binding.action {
                    Action::TakeNumber(_) => assert!(matches!(found, Action::TakeNumber(1..=9))),
                    expected => assert_eq!(found, expected, "{key:?} is bound twice in {:?}", binding.scope),
                }
            }
        }
    }

    #[test]
    fn help_shows_every_row_and_footer_only_rows_of_help() {
        let rows: usize = Scope::ALL.iter().map(|scope| help(*scope).count()).sum();
        assert_eq!(rows, TABLE.len());
        for scope in Scope::ALL {
            for (keys, word) in footer(scope) {
                let row = TABLE.iter().find(|b| b.footer == Footer::Word(word)).unwrap();
                assert!(!keys.is_empty());
                assert!(help(row.scope).any(|(_, what)| what == row.help), "{word}");
            }
        }
    }

    #[test]
    fn what_the_footer_names_works_there() {
        for scope in Scope::ALL {
            for binding in TABLE.iter().filter(|b| matches!(b.footer, Footer::Word(_)) && b.scope == scope) {
                assert!(action(scope, binding.keys[0]).is_some());
            }
        }
    }

    #[test]
    fn a_question_hears_nothing_but_its_answers() {
        for key in [Key::Char('q'), Key::Char('p'), Key::Tab, Key::Char('1'), Key::Ctrl('c'), Key::Up] {
            assert_eq!(action(Scope::Question, key), None);
        }
    }
}
