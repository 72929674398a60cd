//! Mouse: a click moves the cursor or acts like a key; a double click follows a link; the wheel
//! scrolls.
//!
//! Pure, on the console thread. The view returns the target of each cell, and every mouse action
//! equals the action of a key.
//!
//! # Why a double click never confirms
//!
//! A question may appear under the pointer between the two clicks of a double click. The second
//! click must not answer a question that nobody has read.

use super::{actions, lists, moves};
use crate::effect::Effect;
use crate::keymap::{Action, Scope, Step};
use crate::model::lists::first_direction;
use crate::model::target::{Pressed, Target};
use crate::model::{Model, Overlay, View, Zoom};
use crate::msg::{Mouse, MouseAction};
use crate::view::target_at;

/// Longest time between the clicks of a double click, nanoseconds.
pub const DOUBLE_NS: u64 = 500_000_000;
/// Rows scrolled per step of the wheel.
const WHEEL_ROWS: usize = 3;

/// Relation of a click to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Click {
    Single,
    /// Soon after the previous click, in another cell.
    Quick,
    /// Soon after the previous click, in the same cell.
    Double,
    /// Like a double click, but the first click led to another view.
    Spent,
}

pub(super) fn act(model: &mut Model, mouse: Mouse) -> Vec<Effect> {
    match mouse.action {
        MouseAction::WheelUp => wheel(model, Step::Up),
        MouseAction::WheelDown => wheel(model, Step::Down),
        MouseAction::Click => {
            let (click, before) = (click(model, (mouse.x, mouse.y)), model.view);
            let effects = match target_at(model, mouse.x, mouse.y) {
                Some(target) if click != Click::Spent => on(model, target, click),
                _ => Vec::new(),
            };
            // Another view has another list: what is written on is not its filter.
            if model.view != before && matches!(model.overlay, Some(Overlay::Filter(_))) {
                model.overlay = None;
            }
            effects
        }
    }
}

fn click(model: &mut Model, cell: (u16, u16)) -> Click {
    let now = Pressed { at_ns: model.now_ns, cell, is_away: false };
    let before = model.pressed.replace(now).filter(|before| now.at_ns.saturating_sub(before.at_ns) <= DOUBLE_NS);
    match before {
        None => Click::Single,
        Some(before) if before.cell == cell && before.is_away => Click::Spent,
        Some(before) if before.cell == cell => Click::Double,
        Some(_) => Click::Quick,
    }
}

fn wheel(model: &mut Model, step: Step) -> Vec<Effect> {
    // Questions and input lines do not scroll.
    if matches!(model.scope(), Scope::Question | Scope::Note) {
        return Vec::new();
    }
    let is_small = matches!(model.overlay, Some(Overlay::Palette(_) | Overlay::Chooser | Overlay::Columns(_)));
    let rows = if is_small || model.view == View::Slots { 1 } else { WHEEL_ROWS };
    (0..rows).for_each(|_| moves::step(model, step));
    Vec::new()
}

fn on(model: &mut Model, target: Target, click: Click) -> Vec<Effect> {
    match target {
        Target::Do(Action::Confirm) if click != Click::Single => return Vec::new(),
        Target::Do(action) => return actions::act(model, action),
        Target::Row(list, row) => {
            to(model, list.view());
            *list.cursor(&mut model.cursor) = row;
        }
        Target::Heading(list, column) => {
            let direction = match &model.lists.of(list).order {
                Some(order) if order.column == column => order.direction.other(),
                _ => first_direction(model, list, column),
            };
            lists::by(model, list, Some((column, direction)));
            return Vec::new();
        }
        Target::Slot(silo, slot) => {
            to(model, View::Slots);
            (model.cursor.silo, model.cursor.slot) = (silo, slot);
        }
        Target::Silo(silo) => model.cursor.silo = silo,
        Target::Sender(stream) => model.cursor.source = stream,
        Target::Moment(at_ns) => return vec![Effect::LookAt(at_ns)],
        Target::Offer(_) | Target::Line(_) | Target::Column(_) => return chosen(model, target, click),
    }
    moves::clamp(model);
    // The first click of a double click has already moved the cursor.
    if click == Click::Double { actions::act(model, Action::Follow) } else { Vec::new() }
}

/// In a chooser, the second click takes the line that the first one selected.
fn chosen(model: &mut Model, target: Target, click: Click) -> Vec<Effect> {
    match (target, &mut model.overlay) {
        (Target::Offer(offer), _) => {
            model.cursor.profile = offer;
            moves::clamp(model);
            if click == Click::Double { actions::act(model, Action::Take) } else { Vec::new() }
        }
        (Target::Line(line), Some(Overlay::Palette(typed))) => {
            typed.at = line;
            if click != Click::Double {
                return Vec::new();
            }
            let typed = typed.clone();
            model.overlay = None;
            actions::run(model, &typed)
        }
        (Target::Column(column), Some(Overlay::Columns(at))) => {
            *at = column;
            lists::toggle(model);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Shows `view`, and records the step back.
fn to(model: &mut Model, view: View) {
    if model.view != view {
        actions::leave_trail(model);
        (model.view, model.zoom) = (view, Zoom::Both);
        if let Some(pressed) = &mut model.pressed {
            pressed.is_away = true;
        }
    }
}
