//! Names of actions and keys, as a file of keys, the palette and the man page spell them.
//!
//! Pure. One name for each action of a scope, one spelling to read and to write for each key.

use super::{Action, End, Sorting, Step};
use crate::model::View;
use crate::msg::Key;
use pinwheel_engine::engine::SiloDeed;

/// The action's name; no two rows of a scope have the same.
pub fn action(action: Action) -> &'static str {
    match action {
        Action::NextView => "next-view",
        Action::PreviousView => "previous-view",
        Action::Show(view) => self::view(view),
        Action::Move(step) => self::step(step),
        Action::NextSilo => "next-silo",
        Action::Freeze => "freeze",
        Action::Scrub(by_ms) => scrub(by_ms),
        Action::ToOnset => "to-onset",
        Action::ToEnd(End::First) => "first-moment",
        Action::ToEnd(End::Last) => "last-moment",
        Action::Note => "note",
        Action::Play => "play",
        Action::Choose => "profile",
        Action::Take => "take",
        Action::TakeNumber(_) => "take-number",
        Action::Quit => "quit",
        Action::End => "end-engine",
        Action::Hold => "hold-feed",
        Action::Rate => "rate",
        Action::Confirm => "confirm",
        Action::Cancel => "cancel",
        Action::Suspend => "suspend",
        Action::Redraw => "redraw",
        Action::Acknowledge => "acknowledge",
        Action::AcknowledgeAll => "acknowledge-all",
        Action::Snooze => "snooze",
        Action::Palette => "palette",
        Action::Filter => "filter",
        Action::Sort(Sorting::Next) => "sort",
        Action::Sort(Sorting::Reverse) => "sort-reverse",
        Action::Columns => "columns",
        Action::Toggle => "toggle",
        Action::Zoom => "zoom",
        Action::Follow => "follow",
        Action::Back => "back",
        Action::NextTheme => "next-theme",
        Action::Mark => "mark",
        Action::Undo => "undo-profile",
        Action::DumpScreen => "dump-screen",
        Action::Mouse => "mouse",
        Action::Silo(SiloDeed::Drain) => "drain-silo",
        Action::Silo(SiloDeed::Kill) => "kill-silo",
        Action::Silo(SiloDeed::Rejoin) => "rejoin-silo",
        Action::MoveStream => "move-stream",
        Action::Input => "input",
        Action::Why => "why",
    }
}

/// The view's name.
pub fn view(view: View) -> &'static str {
    match view {
        View::Overview => "overview",
        View::Threads => "threads",
        View::Slots => "slots",
        View::Workers => "workers",
        View::Profiles => "profiles",
        View::Graph => "graph",
        View::Arbiter => "arbiter",
        View::Placement => "placement",
        View::Sources => "sources",
        View::Help => "help",
        View::Alarms => "alarms",
        View::Streams => "streams",
        View::Rings => "rings",
        View::Environment => "environment",
        View::Cores => "cores",
        View::Log => "log",
        View::Actions => "actions",
        View::Compare => "compare",
    }
}

fn step(step: Step) -> &'static str {
    match step {
        Step::Up => "up",
        Step::Down => "down",
        Step::Left => "left",
        Step::Right => "right",
        Step::PageUp => "page-up",
        Step::PageDown => "page-down",
        Step::First => "first",
        Step::Last => "last",
    }
}

fn scrub(by_ms: i64) -> &'static str {
    match by_ms {
        ..-1_000 => "back-10s",
        -1_000..-10 => "back-100ms",
        -10..0 => "back-1ms",
        0..=10 => "forward-1ms",
        11..=1_000 => "forward-100ms",
        1_001.. => "forward-10s",
    }
}

/// Keys that are no character, by their names.
const NAMED: [(&str, Key); 15] = [
    ("tab", Key::Tab),
    ("shift-tab", Key::BackTab),
    ("enter", Key::Enter),
    ("esc", Key::Esc),
    ("backspace", Key::Backspace),
    ("up", Key::Up),
    ("down", Key::Down),
    ("left", Key::Left),
    ("right", Key::Right),
    ("pgup", Key::PageUp),
    ("pgdn", Key::PageDown),
    ("home", Key::Home),
    ("end", Key::End),
    ("space", Key::Char(' ')),
    ("delete", Key::Delete),
];

/// A key as it is written in a file of keys: `q`, `^c`, `ctrl-c`, `F5`, `space`, `pgup`.
pub fn key(text: &str) -> Option<Key> {
    let mut letters = text.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(Key::Char(letter));
    }
    if let Some((_, key)) = NAMED.into_iter().find(|(name, _)| *name == text) {
        return Some(key);
    }
    let control = text.strip_prefix("ctrl-").or_else(|| text.strip_prefix('^'));
    if let Some(letter) = control.filter(|rest| rest.chars().count() == 1).and_then(|rest| rest.chars().next()) {
        return Some(Key::Ctrl(letter.to_ascii_lowercase()));
    }
    let number = text.strip_prefix('F').and_then(|number| number.parse::<u8>().ok());
    number.filter(|number| (1..=24).contains(number)).map(Key::F)
}

/// A key in letters that every terminal and every page has.
pub fn spelled(key: Key) -> String {
    match key {
        Key::Char(' ') => "space".to_owned(),
        Key::Char(letter) => letter.to_string(),
        Key::Ctrl(letter) => format!("ctrl-{letter}"),
        Key::F(number) => format!("F{number}"),
        other => NAMED.iter().find(|(_, key)| *key == other).map_or_else(String::new, |(name, _)| (*name).to_owned()),
    }
}
