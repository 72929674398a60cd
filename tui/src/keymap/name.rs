//! Names of actions in key files, the palette and the man page.
//!
//! Pure. Each action of a scope has one name.

use super::{Action, End, Sorting, Step};
use pinwheel_engine::engine::SiloCommand;

/// The action's name; no two rows of a scope have the same.
pub fn action(action: Action) -> &'static str {
    match action {
        Action::NextView => "next-view",
        Action::PreviousView => "previous-view",
        Action::Show(view) => view.name(),
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
        Action::UndoModel => "undo-model",
        Action::Confirm => "confirm",
        Action::Cancel => "cancel",
        Action::Suspend => "suspend",
        Action::Redraw => "redraw",
        Action::Copy => "copy",
        Action::Acknowledge => "acknowledge",
        Action::AcknowledgeAll => "acknowledge-all",
        Action::AlarmRows => "alarm-rows",
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
        Action::Closer => "closer",
        Action::Wider => "wider",
        Action::Tour => "tour",
        Action::EndTour => "end-tour",
        Action::Undo => "undo-profile",
        Action::DumpScreen => "dump-screen",
        Action::Mouse => "mouse",
        Action::Silo(SiloCommand::Drain) => "drain-silo",
        Action::Silo(SiloCommand::Kill) => "kill-silo",
        Action::Silo(SiloCommand::Rejoin) => "rejoin-silo",
        Action::MoveStream => "move-stream",
        Action::Input => "input",
        Action::Why => "why",
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
