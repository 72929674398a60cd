//! Lists: filter, sort, columns, zoom, palette, theme.

use super::{Bench, update};
use crate::effect::Effect;
use crate::keymap::Action;
use crate::keymap::bound::Keymap;
use crate::keymap::key::Key;
use crate::model::choices::Panel;
use crate::model::commands::Choice;
use crate::model::lists::{Direction, Headings, List, columns_shown, csv, shown};
use crate::model::lookups::LookupRequest;
use crate::model::{Overlay, View, Zoom};
use crate::msg::{Finished, Msg};
use crate::source::past::Past;
use crate::tests::synthetic::{SyntheticFaults, looked_up, snapshot};
use crate::theme::{Glyphs, Palette};
use pinwheel_engine::engine::Command;
use std::rc::Rc;

fn written(text: &str) -> Vec<Key> {
    text.chars().map(Key::Char).collect()
}

/// Writes and keeps a filter.
fn filter(bench: &mut Bench, text: &str) {
    bench.keys(&[Key::Char('/')]);
    bench.keys(&written(text));
    bench.keys(&[Key::Enter]);
}

#[test]
fn a_filter_shows_only_rows_that_hold_all_its_words_and_escape_shows_all_again() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('2')]);
    filter(&mut bench, "DEC");
    assert_eq!(shown(&bench.model, List::Threads), [1], "work-0 decodes");
    assert_eq!(bench.model.cursor.thread, 1, "the cursor went to a row that is shown");
    assert!(bench.model.overlay.is_none());
    bench.keys(&[Key::Down, Key::Up, Key::End]);
    assert_eq!(bench.model.cursor.thread, 1);
    filter(&mut bench, " nothing");
    assert!(shown(&bench.model, List::Threads).is_empty());
    bench.keys(&[Key::Down, Key::Char('/'), Key::Esc]);
    assert_eq!(shown(&bench.model, List::Threads), [0, 1]);
}

#[test]
fn letters_of_a_filter_do_nothing_else() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('2')]);
    filter(&mut bench, "qyp1");
    assert_eq!((bench.source.drains, bench.model.view, &bench.model.overlay), (0, View::Threads, &None));
}

#[test]
fn filtered_slots_are_a_list_in_which_the_arrows_move_by_rows() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('3')]);
    filter(&mut bench, "in flight");
    assert_eq!(shown(&bench.model, List::Slots), [401, 402, 403]);
    bench.keys(&[Key::Home, Key::Down]);
    assert_eq!(bench.model.cursor.slot, 402);
}

#[test]
fn rows_move_when_the_user_sorts_and_stay_put_when_their_numbers_change() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('t')]);
    let streams = |bench: &Bench| -> Vec<u32> {
        let picture = bench.model.picture().unwrap();
        shown(&bench.model, List::Streams).into_iter().map(|row| picture.snapshot.streams[row].id).collect()
    };
    let fed = |bench: &mut Bench, late: [u64; 3]| {
        bench.now_ns += 100_000_000;
        let mut picture = snapshot(1_000 + bench.now_ns / 100_000_000, SyntheticFaults::None);
        let one = picture.streams[0].clone();
        picture.streams = (0..3).map(|id| pinwheel_engine::board::snapshot::StreamView { id, ..one.clone() }).collect();
        for (stream, late) in picture.streams.iter_mut().zip(late) {
            stream.late = late;
        }
        let snapshot = Some(Box::new(picture));
        bench.take(Msg::Snapshot { now_ns: bench.now_ns, snapshot, finished: Finished::No });
    };
    fed(&mut bench, [5, 50, 10]);
    assert_eq!(streams(&bench), [0, 1, 2]);
    let late = List::Streams.columns().iter().position(|column| column.name == "late").unwrap();
    crate::model::lists::sort(&mut bench.model, List::Streams, late, crate::model::lists::Direction::Down);
    assert_eq!(streams(&bench), [1, 2, 0]);
    fed(&mut bench, [900, 50, 10]);
    assert_eq!(streams(&bench), [1, 2, 0], "rows stay put");
    bench.keys(&[Key::Char('V')]);
    assert_eq!(streams(&bench), [2, 1, 0], "sorted anew, the other direction round");
    bench.keys(&[Key::Home]);
    assert_eq!(bench.model.cursor.stream, 2, "the first row shown");
}

#[test]
fn sorting_goes_through_the_columns_shown_and_back_to_the_engines_order() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('2')]);
    let columns = columns_shown(&bench.model, List::Threads, 80).len();
    for _ in 0..columns {
        bench.keys(&[Key::Char('S')]);
        assert!(bench.model.lists.of(List::Threads).order.is_some());
    }
    bench.keys(&[Key::Char('S')]);
    assert!(bench.model.lists.of(List::Threads).order.is_none());
    bench.keys(&[Key::Char('1'), Key::Char('S')]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("has no list"));
}

/// The selected column.
fn cursor(bench: &Bench) -> usize {
    match bench.model.overlay {
        Some(Overlay::Columns(at)) => at,
        _ => panic!("the choice of columns is open"),
    }
}

#[test]
fn columns_are_shown_and_hidden_and_the_last_one_stays() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('r')]);
    let names = |bench: &Bench| -> Vec<&str> {
        let columns = columns_shown(&bench.model, List::Rings, 80);
        columns.into_iter().map(|(at, _)| List::Rings.columns()[at].name).collect()
    };
    assert!(!names(&bench).contains(&"full in all"));
    bench.keys(&[Key::Char('C')]);
    for _ in 0..List::Rings.columns().len() {
        bench.keys(&[Key::Char(' '), Key::Down]);
    }
    assert_eq!(names(&bench), ["full in all", "behind"], "all turned over");
    for _ in 0..2 * List::Rings.columns().len() {
        bench.keys(&[Key::Up]);
        if names(&bench).contains(&List::Rings.columns()[cursor(&bench)].name) {
            bench.keys(&[Key::Char(' ')]);
        }
    }
    assert_eq!(names(&bench).len(), 1, "the last one stays");
    bench.keys(&[Key::Esc]);
    assert!(bench.model.overlay.is_none());
}

#[test]
fn the_palette_does_what_the_words_say_and_asks_before_a_profile() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char(':')]);
    bench.keys(&written("theme light"));
    bench.keys(&[Key::Enter]);
    assert_eq!((bench.model.theme.palette, &bench.model.overlay), (Palette::Light, &None));
    bench.keys(&[Key::Char(':')]);
    bench.keys(&written("glyphs ascii"));
    bench.keys(&[Key::Enter]);
    assert_eq!(bench.model.theme.glyphs, Glyphs::Ascii);
    bench.keys(&[Key::Char(':')]);
    bench.keys(&written("alarms: what"));
    bench.keys(&[Key::Enter]);
    assert_eq!(bench.model.view, View::Alarms);
    for hidden in [true, false] {
        bench.keys(&[Key::Char(':')]);
        bench.keys(&written("layout trends"));
        bench.keys(&[Key::Enter]);
        assert_eq!((bench.model.chosen.hides(Panel::Trends), bench.model.view), (hidden, View::Overview));
    }
    bench.keys(&[Key::Char(':')]);
    bench.keys(&written("profile shared"));
    bench.keys(&[Key::Enter]);
    assert!(matches!(bench.model.overlay, Some(Overlay::AskApply(_))), "a step down too: one line is easily missed");
    assert!(bench.source.applied.is_empty());
    bench.keys(&[Key::Char('y')]);
    assert_eq!(bench.source.applied, ["shared"]);
    bench.keys(&[Key::Char(':')]);
    bench.keys(&written("xyzzy"));
    bench.keys(&[Key::Enter]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("no command"));
}

#[test]
fn every_command_of_the_table_is_in_the_palette_under_its_own_words() {
    let mut bench = Bench::new();
    for view in View::ALL {
        bench.model.view = view;
        for (action, _, what) in bench.model.keymap.commands(crate::keymap::Scope::Views) {
            let name = crate::keymap::name::action(action);
            let label = if what.starts_with(name) { what.to_owned() } else { format!("{name}: {what}") };
            let found = crate::model::commands::found(&bench.model, &label);
            let first = found.first().map(|entry| entry.label.as_str());
            assert_eq!(first, Some(label.as_str()), "{view:?}");
        }
    }
}

#[test]
fn the_palette_shows_the_keys_that_hold() {
    let mut bench = Bench::new();
    bench.model.keymap = Rc::new(Keymap::from_text(r#"{ "views": { "freeze": ["F5"] } }"#).unwrap());
    let found = crate::model::commands::found(&bench.model, "freeze");
    assert_eq!(found[0].keys, "F5");
    bench.keys(&[Key::F(5)]);
    assert!(bench.model.frozen.is_some());
}

#[test]
fn zoom_goes_round_and_another_view_begins_with_both() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('2'), Key::Char('z')]);
    assert_eq!(bench.model.zoom, Zoom::Details);
    bench.keys(&[Key::Char('z')]);
    assert_eq!(bench.model.zoom, Zoom::List);
    bench.keys(&[Key::Char('4')]);
    assert_eq!(bench.model.zoom, Zoom::Both);
    bench.keys(&[Key::Char('1'), Key::Char('z')]);
    assert_eq!(bench.model.zoom, Zoom::Both, "the overview is no list");
}

#[test]
fn csv_has_every_column_and_quotes_what_needs_it() {
    let mut bench = Bench::new();
    for brought in looked_up(SyntheticFaults::All) {
        bench.take(Msg::LookedUp(brought));
    }
    for list in List::ALL {
        let text = csv(&bench.model, list, None, Headings::Shown);
        let lines: Vec<&str> = text.split("\r\n").filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 1 + list.len(&bench.model), "{list:?}");
        let columns = list.columns().iter().filter(|column| !column.name.is_empty()).count();
        assert_eq!(lines[0].split(',').count(), columns, "{list:?}");
    }
    let threads = csv(&bench.model, List::Threads, None, Headings::Shown);
    assert!(threads.contains("hot-0") && threads.contains("feed dispatch"), "{threads}");
}

#[test]
fn views_that_read_files_ask_for_them_and_not_more_often_than_needed() {
    let mut bench = Bench::new();
    let asked = |effects: &[Effect]| effects.iter().filter(|effect| matches!(effect, Effect::LookUp(_))).count();
    assert_eq!(asked(&bench.take(Msg::Key(Key::Char('v')))), 1);
    assert_eq!(asked(&bench.take(Msg::Key(Key::Down))), 0);
    bench.now_ns += 3_000_000_000;
    assert_eq!(asked(&bench.take(Msg::Tick { now_ns: bench.now_ns })), 1);
    assert_eq!(asked(&bench.take(Msg::Key(Key::Char('c')))), 1, "another view wants something else");
    assert_eq!(asked(&bench.take(Msg::Key(Key::Char('1')))), 0);
}

#[test]
fn who_watches_the_newest_event_goes_on_to_and_who_reads_an_older_one_stays() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('v')]);
    let [_, _, _, log, _] = <[_; 5]>::try_from(looked_up(SyntheticFaults::None)).unwrap();
    bench.take(Msg::LookedUp(log.clone()));
    assert_eq!(bench.model.cursor.event, 3);
    bench.keys(&[Key::Home]);
    bench.take(Msg::LookedUp(log));
    assert_eq!(bench.model.cursor.event, 0);
}

#[test]
fn an_alarm_stays_under_the_cursor_while_others_come() {
    let mut bench = Bench::new();
    let mut fed = |tenths: u64, first: Option<usize>| {
        let mut picture = snapshot(tenths, SyntheticFaults::All);
        if let Some(first) = first {
            picture.alarms.swap(0, first);
        }
        let snapshot = Some(Box::new(picture));
        bench.take(Msg::Snapshot { now_ns: tenths * 100_000_000, snapshot, finished: Finished::No });
        bench.keys(&[Key::Char('9')]);
        let at = bench.model.cursor.alarm;
        bench.model.picture().unwrap().snapshot.alarms[at].number
    };
    let number = fed(500, None);
    assert_eq!(fed(501, Some(2)), number);
}

#[test]
fn an_alarm_stays_under_the_cursor_in_the_past_and_back_in_the_present() {
    let mut bench = Bench::new();
    let picture = |tenths: u64, first: usize| {
        let mut picture = snapshot(tenths, SyntheticFaults::All);
        picture.alarms.swap(0, first);
        picture
    };
    let feed = |bench: &mut Bench, tenths: u64, first| {
        let snapshot = Some(Box::new(picture(tenths, first)));
        bench.take(Msg::Snapshot { now_ns: tenths * 100_000_000, snapshot, finished: Finished::No });
    };
    let number = |bench: &Bench| bench.model.picture().unwrap().snapshot.alarms[bench.model.cursor.alarm].number;
    feed(&mut bench, 500, 0);
    bench.keys(&[Key::Char('9'), Key::Char('i'), Key::Home]);
    let chosen = number(&bench);
    bench.keys(&[Key::Char('f')]);
    feed(&mut bench, 501, 2);
    assert_eq!(number(&bench), chosen);
    let past = Past { pictures: vec![picture(400, 1)], ..Past::default() };
    update(&mut bench.model, Msg::Past(Ok(Box::new(past))));
    assert_eq!(number(&bench), chosen, "in the past");
    bench.keys(&[Key::Char('f')]);
    assert_eq!(number(&bench), chosen, "in the present");
}

#[test]
fn the_log_is_sorted_by_time_with_its_alarms_and_says_it_in_csv() {
    let mut bench = Bench::new();
    let picture = Some(Box::new(snapshot(500, SyntheticFaults::All)));
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: picture, finished: Finished::No });
    for brought in looked_up(SyntheticFaults::All) {
        bench.take(Msg::LookedUp(brought));
    }
    for direction in [Direction::Up, Direction::Down] {
        crate::model::lists::sort(&mut bench.model, List::Log, 0, direction);
        let events = bench.model.lookups.log.rows();
        let shown = crate::model::lists::shown(&bench.model, List::Log);
        let mut times: Vec<_> = shown.into_iter().map(|row| events[row].at_ns.unwrap()).collect();
        if direction == Direction::Down {
            times.reverse();
        }
        assert!(times.len() > 6 && times.is_sorted(), "{times:?}");
    }
    let text = csv(&bench.model, List::Log, None, Headings::Shown);
    assert!(text.contains("\r\n1500000000,watchdog,phase,LIVE"), "{text}");
}

#[test]
fn all_rows_again_leave_the_columns_as_they_were_chosen() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('2'), Key::Char('S')]);
    bench.model.lists.of_mut(List::Threads).toggled = 0b10;
    bench.model.lists.of_mut(List::Threads).filter = "hot".to_owned();
    bench.keys(&[Key::Char(':')]);
    bench.keys(&written("all rows, as the engine orders them"));
    bench.keys(&[Key::Enter]);
    let arranged = bench.model.lists.of(List::Threads);
    assert_eq!((arranged.toggled, &*arranged.filter, &arranged.order), (0b10, "", &None));
}

#[test]
fn slots_in_a_list_are_gone_through_one_by_one() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('3'), Key::Home, Key::Down]);
    assert_eq!(bench.model.cursor.slot, 64, "a row of the map");
    bench.keys(&[Key::Char('z'), Key::Char('z'), Key::Down]);
    assert_eq!((bench.model.zoom, bench.model.cursor.slot), (Zoom::List, 65));
    bench.keys(&[Key::Char('z'), Key::Char('/'), Key::Down]);
    assert_eq!(bench.model.cursor.slot, 66, "while its filter is written");
}

#[test]
fn the_palette_has_the_keys_of_the_views_that_have_some_of_their_own() {
    let mut bench = Bench::new();
    for (view, name, action) in [
        (View::Chart, "closer", Action::Closer),
        (View::Help, "tour", Action::Tour),
        (View::Alarms, "snooze", Action::Snooze),
    ] {
        bench.model.view = view;
        let found = crate::model::commands::found(&bench.model, name);
        assert_eq!(found[0].choice, Choice::Do(action));
    }
}

#[test]
fn only_what_can_be_done_for_a_time_is_found_with_one() {
    let bench = Bench::new();
    let found = |text| crate::model::commands::found(&bench.model, text);
    let drill = Command::Drill { name: "sleep".to_owned(), for_ms: Some(2_000) };
    assert_eq!(
        (&*found("drill sleep for 2s")[0].label, &found("drill sleep for 2s")[0].choice),
        ("drill sleep for 2s", &Choice::Execute(drill))
    );
    let all = found("o for 20m");
    assert!(!all.is_empty() && all.iter().all(|entry| matches!(entry.choice, Choice::Profile(_, Some(_)))));
    assert!(found("drill sleep for 20x").is_empty() && found("quit for 2s").is_empty());
}

#[test]
fn the_other_users_of_the_cores_are_looked_up_at_a_switch_in_every_view() {
    for view in ['1', 'v', 'u', 'N', 'w', 'e'] {
        let mut bench = Bench::new();
        let prod = bench.digit("prod");
        bench.keys(&[Key::Char(view), Key::Char('p')]);
        let effects = bench.take(Msg::Key(prod));
        assert!(effects.contains(&Effect::LookUp(LookupRequest::Cores)), "{view}: {effects:?}");
    }
}
