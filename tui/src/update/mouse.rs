//! What the mouse does: a click puts the cursor there, or does what a key would; a double click follows; the wheel moves.
//!
//! Pure, on the console thread. Asks the view what the cells stand for, and has no powers of its own: each thing it does is
//! a key's.
//!
//! # Why a quick click never says yes
//!
//! A question's answers stand where other keys stood a moment before. The second half of a double click that fell on one of
//! those must not answer what nobody has read.

use super::{actions, lists, moves, palette};
use crate::effect::Effect;
use crate::keymap::{Action, Scope, Step};
use crate::model::lists::{List, first_way};
use crate::model::target::Target;
use crate::model::{Model, Overlay, View, Zoom};
use crate::msg::{Mouse, MouseDeed};
use crate::view::target_at;

/// Two clicks that are no further apart are one double click, nanoseconds.
pub const DOUBLE_NS: u64 = 500_000_000;
/// Rows of one turn of the wheel.
const WHEEL_ROWS: usize = 3;

/// A click that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressed {
    at_ns: u64,
    cell: (u16, u16),
    /// It led to another view: what lies there now was not what was clicked.
    is_away: bool,
}

/// How a click stands to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Click {
    Single,
    /// Soon after another one, elsewhere.
    Quick,
    /// Soon after another one, in the same place.
    Double,
    /// The same, and the first one led to another view.
    Spent,
}

/// Does what `mouse` did.
pub(super) fn act(model: &mut Model, mouse: Mouse) -> Vec<Effect> {
    match mouse.deed {
        MouseDeed::WheelUp => wheel(model, Step::Up),
        MouseDeed::WheelDown => wheel(model, Step::Down),
        MouseDeed::Click => {
            let click = click(model, (mouse.x, mouse.y));
            match target_at(model, mouse.x, mouse.y) {
                Some(target) if click != Click::Spent => on(model, target, click),
                _ => Vec::new(),
            }
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
    // A question, or a line that is written, has nothing to move in.
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
            to(model, view_of(list));
            *list.cursor(&mut model.cursor) = row;
        }
        Target::Heading(list, column) => {
            let way = match &model.lists.of(list).order {
                Some(order) if order.column == column => order.way.other(),
                _ => first_way(model, list, column),
            };
            lists::by(model, list, Some((column, way)));
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
    // The first half of a double click has put the cursor there.
    if click == Click::Double { actions::act(model, Action::Follow) } else { Vec::new() }
}

/// In something that one chooses from, the second click takes what the first one put the cursor on.
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
            palette::run(model, &typed)
        }
        (Target::Column(column), Some(Overlay::Columns(at))) => {
            *at = column;
            lists::toggle(model);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Goes to `view`, and back from there leads here.
fn to(model: &mut Model, view: View) {
    if model.view != view {
        actions::leave_trail(model);
        (model.view, model.zoom) = (view, Zoom::Both);
        if let Some(pressed) = &mut model.pressed {
            pressed.is_away = true;
        }
    }
}

/// The view of a list.
fn view_of(list: List) -> View {
    View::ALL.into_iter().find(|view| List::of(*view) == Some(list)).unwrap_or(View::Overview)
}
