//! Links from a row to another and back; comparison with a mark.

use super::Bench;
use crate::effect::Effect;
use crate::keymap::key::Key;
use crate::model::{View, Zoom};
use crate::msg::{Finished, Msg};
use crate::tests::synthetic::{SyntheticFaults, looked_up, snapshot};
use pinwheel_engine::board::snapshot::{SiloView, SlotState};

fn troubled() -> Bench {
    let mut bench = Bench::new();
    bench.now_ns += 100_000_000;
    let snapshot = Some(Box::new(snapshot(500, SyntheticFaults::All)));
    bench.take(Msg::Snapshot { now_ns: bench.now_ns, snapshot, finished: Finished::No });
    bench
}

#[test]
fn a_slot_leads_to_its_worker_its_thread_that_ones_alarm_and_its_stack_and_back() {
    let mut bench = troubled();
    bench.keys(&[Key::Char('3')]);
    bench.model.cursor.slot = 402;
    bench.keys(&[Key::Enter]);
    assert_eq!((bench.model.view, bench.model.cursor.worker), (View::Workers, 2));
    bench.keys(&[Key::Enter]);
    let thread = &bench.model.picture().unwrap().snapshot.threads[bench.model.cursor.thread];
    assert_eq!((bench.model.view, thread.name.as_str()), (View::Threads, "hot-0"));
    bench.keys(&[Key::Enter]);
    let alarm = &bench.model.picture().unwrap().snapshot.alarms[bench.model.cursor.alarm];
    assert_eq!((bench.model.view, alarm.thread.as_deref()), (View::Alarms, Some("hot-0")));
    assert!(!alarm.stack.is_empty());
    bench.keys(&[Key::Enter]);
    assert_eq!((bench.model.view, bench.model.zoom), (View::Alarms, Zoom::Details));
    bench.keys(&[Key::Enter]);
    assert_eq!(bench.model.view, View::Threads, "from the stack to the thread it is of");
    bench.keys(&[Key::Backspace; 5]);
    assert_eq!((bench.model.view, bench.model.cursor.slot), (View::Slots, 402));
    bench.keys(&[Key::Backspace]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("no step to go back"));
}

#[test]
fn what_leads_nowhere_says_why() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('3')]);
    bench.model.cursor.slot = 900;
    for (view, why) in [(View::Slots, "idle"), (View::Threads, "no alarm"), (View::Help, "nowhere else")] {
        bench.model.view = view;
        bench.model.notice = None;
        bench.keys(&[Key::Enter]);
        assert_eq!(bench.model.view, view);
        assert!(bench.model.notice.as_ref().unwrap().text.contains(why), "{view:?}");
    }
}

#[test]
fn every_row_of_every_view_leads_somewhere_or_says_why_not() {
    let mut bench = troubled();
    for brought in looked_up(SyntheticFaults::All) {
        bench.take(Msg::LookedUp(brought));
    }
    for view in View::ALL {
        for row in 0..6 {
            (bench.model.view, bench.model.zoom, bench.model.notice) = (view, Zoom::Both, None);
            if let Some(list) = crate::model::lists::List::of(view) {
                *list.cursor(&mut bench.model.cursor) = row;
            }
            let before = (bench.model.view, bench.model.cursor, bench.model.zoom);
            let effects = bench.take(Msg::Key(Key::Enter));
            let after = (bench.model.view, bench.model.cursor, bench.model.zoom);
            let asked = effects.iter().any(|effect| !matches!(effect, crate::effect::Effect::LookUp(_)));
            let opened = bench.model.overlay.take().is_some();
            assert!(before != after || bench.model.notice.is_some() || asked || opened, "{view:?} row {row}");
            bench.keys(&[Key::Char('f')]);
            bench.model.frozen = None;
        }
    }
}

#[test]
fn the_way_back_is_bounded() {
    let mut bench = troubled();
    for _ in 0..100 {
        bench.keys(&[Key::Char('9'), Key::Enter]);
    }
    assert_eq!(bench.model.trail.len(), crate::model::TRAIL_MAX);
}

#[test]
fn values_at_the_mark_are_shown_next_to_current_values() {
    let mut bench = Bench::new();
    (0..30).for_each(|_| bench.data());
    bench.keys(&[Key::Char('m'), Key::Char('=')]);
    let find = |bench: &Bench, name: &str| {
        let list = crate::model::lists::List::Compare;
        let row = (0..list.len(&bench.model)).find(|row| (list.columns()[0].cell)(&bench.model, *row).text == name);
        let row = row.unwrap_or_else(|| panic!("{name}"));
        [1, 2, 3].map(|column: usize| (list.columns()[column].cell)(&bench.model, row).text)
    };
    assert_eq!(find(&bench, "answered")[2], "same");
    (0..30).for_each(|_| bench.data());
    let [then, now, change] = find(&bench, "answered");
    assert_eq!((then.as_str(), now.as_str()), ("62.0k", "122k"));
    assert_eq!(change, "+97 %");
    assert_eq!(find(&bench, "hot-0: policy"), ["lab", "lab", "same"]);
}

#[test]
fn a_row_is_copied_with_its_details_and_without_what_a_terminal_would_execute() {
    let mut bench = troubled();
    bench.keys(&[Key::Char('9')]);
    let copied = |bench: &mut Bench| match &bench.take(Msg::Key(Key::Char('y')))[..] {
        [Effect::Copy(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let text = copied(&mut bench);
    assert!(text.contains("silo 0: device lost") && text.contains("\nso late_answers: silo 0: 45 of 100"), "{text}");
    bench.keys(&[Key::Down]);
    assert!(copied(&mut bench).contains("\n#0 compute (poller.rs:88)\n"));
    let mut hostile = snapshot(501, SyntheticFaults::All);
    hostile.alarms[0].sentence = "a\u{1b}]52;c;eA==\u{7}b\u{202e}\nrm".to_owned();
    let hostile = Some(Box::new(hostile));
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: hostile, finished: Finished::No });
    bench.keys(&[Key::Home]);
    let text = copied(&mut bench);
    assert!(text.contains("a ]52;c;eA== b  rm\n"), "{text:?}");
    bench.keys(&[Key::Char('1'), Key::Char('y')]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("no row to copy"));
}

#[test]
fn a_ring_leads_to_the_thread_of_its_own_silo() {
    let mut bench = Bench::new();
    let mut picture = snapshot(500, SyntheticFaults::None);
    picture.silos.push(SiloView { id: 1, ..picture.silos[0].clone() });
    let mut threads = picture.threads.clone();
    for thread in &mut threads {
        thread.name = format!("{}-of-1", thread.name);
        thread.roles.iter_mut().for_each(|role| role.silo = 1);
    }
    picture.threads.extend(threads);
    let rings: Vec<String> = picture.silos[0].rings.iter().map(|ring| ring.name.clone()).collect();
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: Some(Box::new(picture)), finished: Finished::No });
    let rx = rings.iter().position(|name| name == "rx").unwrap();
    for (silo, end) in [(1, "-of-1"), (0, "-0")] {
        bench.keys(&[Key::Char('r')]);
        (bench.model.cursor.silo, bench.model.cursor.ring) = (1 - silo, silo * rings.len() + rx);
        bench.keys(&[Key::Enter]);
        let thread = &bench.model.picture().unwrap().snapshot.threads[bench.model.cursor.thread];
        assert_eq!((bench.model.view, bench.model.cursor.silo), (View::Threads, silo));
        assert!(thread.name.ends_with(end), "{}", thread.name);
    }
}

#[test]
fn a_stream_leads_to_its_shot_that_waits_longest_whatever_state_it_just_entered() {
    let mut bench = Bench::new();
    let mut picture = snapshot(500, SyntheticFaults::None);
    let at_ns = picture.at_ns;
    let slots = &mut picture.silos[0].slots;
    slots.iter_mut().for_each(|slot| slot.state = SlotState::Idle);
    for (place, state, waits_ns, since_ns) in
        [(3, SlotState::Written, 9_000, 9_000), (5, SlotState::InFlight, 70_000, 10)]
    {
        (slots[place].state, slots[place].stream, slots[place].since_ns) = (state, 0, since_ns);
        slots[place].times.submitted_ns = at_ns - waits_ns;
    }
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: Some(Box::new(picture)), finished: Finished::No });
    bench.keys(&[Key::Char('t'), Key::Home, Key::Enter]);
    assert_eq!((bench.model.view, bench.model.cursor.slot), (View::Slots, 5));
}
