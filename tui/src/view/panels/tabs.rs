//! A row of the views and their keys, with the current view marked. Without room, the views farther
//! from it are left out.

use crate::keymap::{Action, Scope};
use crate::model::target::Target;
use crate::model::{Model, View};
use crate::theme::Tone;
use crate::widgets::pen::Pen;

pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    let tab = |view: View| (view, model.keymap.first_key(Scope::Views, Action::Show(view)), view.name());
    let tabs: Vec<(View, String, &str)> = View::ALL.into_iter().map(tab).collect();
    let width = |(_, key, word): &(View, String, &str)| (key.chars().count() + word.len() + 3) as u16;
    let here = View::ALL.iter().position(|view| *view == model.view).unwrap_or(0);
    let room = pen.width().saturating_sub(2);
    // Start at the left while the current view fits; else it comes last.
    let mut first = 0;
    while first < here && tabs[first..=here].iter().map(&width).sum::<u16>() > room {
        first += 1;
    }
    let mut x = 1;
    for tab in &tabs[first..] {
        let (view, key, word) = tab;
        if x + width(tab) > pen.width() {
            break;
        }
        pen.target(x, 0, width(tab) - 1, Target::Do(Action::Show(*view)));
        let after = pen.put(x, 0, key, Tone::Accent) + 1;
        pen.put(after, 0, word, if *view == model.view { Tone::Badge } else { Tone::Dim });
        x += width(tab);
    }
}
