//! Doing what the palette found, as the command's key would.
//!
//! Pure, on the console thread. A profile that is taken here always asks first.

use super::{actions, deeds, lists, notice, profile};
use crate::effect::Effect;
use crate::model::commands::{self, Command, Typed};
use crate::model::lists::{Arranged, List};
use crate::model::{Model, NoticeKind};
use crate::theme::{Colour, Palette};

/// Does the line under the palette's cursor. The palette is closed by then.
pub(super) fn run(model: &mut Model, typed: &Typed) -> Vec<Effect> {
    let found = commands::found(model, &typed.text);
    let Some(entry) = found.into_iter().nth(typed.at) else {
        notice(model, NoticeKind::Refused, format!("no command has the letters of '{}'", typed.text));
        return Vec::new();
    };
    match entry.command {
        Command::Do(action) => return actions::act(model, action),
        Command::Profile(place, span) => return profile::take(model, place, span),
        Command::Deed(deed) => return deeds::ask(model, deed),
        Command::Theme(palette) => theme(model, palette),
        Command::Glyphs(glyphs) => (model.theme.glyphs, model.chosen.glyphs) = (glyphs, Some(glyphs)),
        Command::Sort(column, way) => {
            if let Some(list) = List::of(model.view) {
                lists::by(model, list, Some((column, way)));
            }
        }
        Command::Unarrange => {
            if let Some(list) = List::of(model.view) {
                *model.lists.of_mut(list) = Arranged::default();
            }
        }
    }
    Vec::new()
}

/// Takes other colours, and says which.
pub(super) fn theme(model: &mut Model, palette: Palette) {
    (model.theme.palette, model.chosen.palette) = (palette, Some(palette));
    let said = match model.theme.colour {
        Colour::None => format!("theme {}; this terminal, or NO_COLOR, forbids colours", palette.name()),
        _ => format!("theme {}", palette.name()),
    };
    notice(model, NoticeKind::Done, said);
}
