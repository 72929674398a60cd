//! Choices of the palette, and changes of colours and layout.
//!
//! Pure, on the console thread.

use super::notice;
use crate::model::choices::Panel;
use crate::model::commands::{self, Choice, Typed};
use crate::model::{Model, NoticeKind, View};
use crate::theme::{Colour, Palette};

/// The effect of the selected palette line; without a match, a notice says so.
pub(super) fn under_cursor(model: &mut Model, typed: &Typed) -> Option<Choice> {
    let found = commands::found(model, &typed.text).into_iter().nth(typed.at);
    if found.is_none() {
        notice(model, NoticeKind::Refused, format!("no command matches '{}'", typed.text));
    }
    found.map(|entry| entry.choice)
}

/// Changes the colours, and names them in a notice.
pub(super) fn theme(model: &mut Model, palette: Palette) {
    (model.theme.palette, model.chosen.palette) = (palette, Some(palette));
    let said = match model.theme.colour {
        Colour::None => format!("theme {}; this terminal, or NO_COLOR, forbids colours", palette.name()),
        _ => format!("theme {}", palette.name()),
    };
    notice(model, NoticeKind::Done, said);
}

/// Shows a panel of the overview or hides it, and goes there.
pub(super) fn panel(model: &mut Model, panel: Panel) {
    let hidden = &mut model.chosen.hidden[panel as usize];
    *hidden = !*hidden;
    let said = if *hidden { "hidden; :layout shows it again" } else { "shown, where the screen has room" };
    notice(model, NoticeKind::Done, format!("panel {}: {said}", panel.name()));
    model.view = View::Overview;
}
