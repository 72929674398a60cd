//! The mouse: targets of cells, and clicks that act like keys.

use super::super::mouse::DOUBLE_NS;
use super::Bench;
use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::Action;
use crate::keymap::key::Key;
use crate::model::lists::{Direction, List};
use crate::model::target::Target;
use crate::model::{Mouse as Whose, Overlay, View};
use crate::msg::{Mouse, MouseAction, Msg};
use crate::view::targets;

/// The first cell of `target`.
fn place(bench: &Bench, target: Target) -> Option<(u16, u16)> {
    let (targets, (columns, rows)) = (targets(&bench.model), bench.model.size);
    (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y))).find(|(x, y)| targets.at(*x, *y) == Some(target))
}

/// A click on `target`, long after the previous one.
fn click(bench: &mut Bench, target: Target) -> Vec<Effect> {
    bench.now_ns += DOUBLE_NS + 1;
    again(bench, target)
}

/// A click soon after the previous one.
fn again(bench: &mut Bench, target: Target) -> Vec<Effect> {
    let found = place(bench, target);
    let (x, y) = found.unwrap_or_else(|| panic!("nothing stands for {target:?} in {:?}", bench.model.view));
    at(bench, MouseAction::Click, x, y)
}

fn at(bench: &mut Bench, action: MouseAction, x: u16, y: u16) -> Vec<Effect> {
    bench.take(Msg::Tick { now_ns: bench.now_ns });
    bench.take(Msg::Mouse(Mouse { action, x, y }))
}

#[test]
fn a_click_puts_the_cursor_on_a_row_and_the_second_one_follows_it() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('4')]);
    click(&mut bench, Target::Row(List::Workers, 2));
    assert_eq!((bench.model.view, bench.model.cursor.worker), (View::Workers, 2));
    again(&mut bench, Target::Row(List::Workers, 2));
    assert_eq!(bench.model.view, View::Threads, "a worker that runs leads to the thread that runs it");
    bench.keys(&[Key::Backspace]);
    assert_eq!((bench.model.view, bench.model.cursor.worker), (View::Workers, 2));
}

#[test]
fn what_another_view_shows_in_passing_is_opened_and_the_second_click_is_spent() {
    let mut bench = Bench::new();
    let (x, y) = place(&bench, Target::Row(List::Threads, 1)).unwrap();
    bench.now_ns += DOUBLE_NS + 1;
    at(&mut bench, MouseAction::Click, x, y);
    assert_eq!((bench.model.view, bench.model.cursor.thread), (View::Threads, 1));
    let before = bench.model.cursor;
    at(&mut bench, MouseAction::Click, x, y);
    assert_eq!((bench.model.view, bench.model.cursor), (View::Threads, before), "it fell on what nobody clicked");
    bench.keys(&[Key::Backspace]);
    assert_eq!(bench.model.view, View::Overview);
    let (oldest, _) = bench.model.picture().unwrap().derived.silos[0].oldest.unwrap();
    click(&mut bench, Target::Slot(0, oldest));
    assert_eq!(bench.model.view, View::Slots);
    click(&mut bench, Target::Slot(0, 401));
    assert_eq!(bench.model.cursor.slot, 401);
}

#[test]
fn headings_sort_once_and_the_other_way_at_the_next_click() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('4')]);
    let column = List::Workers.columns().iter().position(|column| !column.name.is_empty()).unwrap();
    click(&mut bench, Target::Heading(List::Workers, column));
    let first = bench.model.lists.of(List::Workers).order.clone().unwrap();
    click(&mut bench, Target::Heading(List::Workers, column));
    let second = bench.model.lists.of(List::Workers).order.clone().unwrap();
    assert_eq!((first.column, second.direction), (column, first.direction.other()));
    assert!([Direction::Up, Direction::Down].contains(&first.direction));
}

#[test]
fn tabs_and_footer_do_what_their_keys_do() {
    let mut bench = Bench::new();
    bench.take(Msg::Resize { columns: 120, rows: 40 });
    bench.model.notice = None;
    for view in [View::Slots, View::Threads, View::Arbiter] {
        click(&mut bench, Target::Do(Action::Show(view)));
        assert_eq!(bench.model.view, view);
    }
    click(&mut bench, Target::Do(Action::Quit));
    assert_eq!((&bench.model.overlay, bench.source.drains), (&Some(Overlay::AskQuit), 0));
}

#[test]
fn a_question_is_answered_by_a_click_of_its_own_and_nothing_behind_it_is_reached() {
    let mut bench = Bench::new();
    bench.model.notice = None;
    click(&mut bench, Target::Do(Action::Quit));
    assert_eq!(place(&bench, Target::Row(List::Threads, 0)), None);
    again(&mut bench, Target::Do(Action::Confirm));
    assert_eq!((&bench.model.overlay, bench.source.drains), (&Some(Overlay::AskQuit), 0), "too quick to have read it");
    click(&mut bench, Target::Do(Action::Cancel));
    assert_eq!((&bench.model.overlay, bench.source.drains), (&None, 0));
    click(&mut bench, Target::Do(Action::Quit));
    for (x, y) in [(0, 0), (40, 12), (79, 22)] {
        bench.now_ns += DOUBLE_NS + 1;
        at(&mut bench, MouseAction::Click, x, y);
        at(&mut bench, MouseAction::WheelDown, x, y);
    }
    assert_eq!(bench.model.overlay, Some(Overlay::AskQuit));
    click(&mut bench, Target::Do(Action::Confirm));
    assert_eq!(bench.source.drains, 1);
    bench.data();
    assert_eq!(bench.left, Some(ConsoleEnd::Finished));
}

#[test]
fn the_palette_the_chooser_and_the_columns_are_chosen_from() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char(':')]);
    bench.keys(&"rings".chars().map(Key::Char).collect::<Vec<_>>());
    click(&mut bench, Target::Line(0));
    assert_eq!(bench.model.view, View::Overview, "one click only puts the cursor there");
    again(&mut bench, Target::Line(0));
    assert_eq!((bench.model.view, &bench.model.overlay), (View::Rings, &None));
    bench.keys(&[Key::Char('p')]);
    let prod = bench.model.offers.iter().flatten().position(|offer| offer.name == "prod").unwrap();
    click(&mut bench, Target::Offer(prod));
    again(&mut bench, Target::Offer(prod));
    assert!(matches!(bench.model.overlay, Some(Overlay::AskApply(_))) && bench.source.applied.is_empty());
    bench.keys(&[Key::Esc, Key::Char('2'), Key::Char('C')]);
    click(&mut bench, Target::Column(1));
    assert_eq!(bench.model.lists.of(List::Threads).toggled, 0b10);
}

#[test]
fn the_wheel_moves_where_the_arrows_would() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('?')]);
    at(&mut bench, MouseAction::WheelDown, 5, 5);
    assert_eq!(bench.model.cursor.help, 3);
    at(&mut bench, MouseAction::WheelUp, 5, 5);
    assert_eq!(bench.model.cursor.help, 0);
    bench.keys(&[Key::Char(':')]);
    at(&mut bench, MouseAction::WheelDown, 5, 5);
    assert!(matches!(&bench.model.overlay, Some(Overlay::Palette(typed)) if typed.at == 1));
}

#[test]
fn a_moment_of_the_time_line_is_gone_to() {
    let mut bench = Bench::new();
    (0..100).for_each(|_| bench.data());
    bench.keys(&[Key::Char('[')]);
    let line = bench.model.timeline.clone().unwrap();
    let effects = click(&mut bench, Target::Moment(line.from_ns));
    assert_eq!(effects, [Effect::LookAt(line.from_ns)]);
    assert_eq!(bench.model.timeline.as_ref().unwrap().at_ns, line.from_ns);
}

#[test]
fn the_mouse_is_left_to_the_terminal_at_a_key_and_that_is_remembered() {
    let mut bench = Bench::new();
    assert_eq!(bench.take(Msg::Key(Key::Char('x'))), [Effect::Capture(Whose::Off)]);
    assert_eq!((bench.model.mouse, bench.model.chosen.mouse), (Whose::Off, Some(Whose::Off)));
    assert_eq!(bench.take(Msg::Key(Key::Char('x'))), [Effect::Capture(Whose::On)]);
}

#[test]
fn a_tab_clicked_while_a_filter_is_written_keeps_it_and_begins_no_other() {
    let mut bench = Bench::new();
    bench.take(Msg::Resize { columns: 200, rows: 40 });
    bench.keys(&[Key::Char('2'), Key::Char('/'), Key::Char('h')]);
    click(&mut bench, Target::Do(Action::Show(View::Rings)));
    assert_eq!((bench.model.view, &bench.model.overlay), (View::Rings, &None));
    bench.keys(&[Key::Char('j')]);
    let filter = |list| bench.model.lists.of(list).filter.as_str();
    assert_eq!((filter(List::Threads), filter(List::Rings)), ("h", ""));
    bench.keys(&[Key::Char('/'), Key::Char('r')]);
    click(&mut bench, Target::Row(List::Rings, 1));
    assert!(matches!(bench.model.overlay, Some(Overlay::Filter(_))), "a row of the same list");
}
