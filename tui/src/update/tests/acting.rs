//! What is done to silos, streams and the input: asked, with a reason, and with its effect.

use super::Bench;
use crate::effect::Effect;
use crate::keymap::key::Key;
use crate::model::lists::List;
use crate::model::measured::{AFTER_NS, Facts};
use crate::model::{Overlay, View};
use crate::msg::{Finished, Msg};
use crate::source::{Access, Ownership, Source};
use crate::tests::synthetic::{SyntheticFaults, looked_up, snapshot};
use pinwheel_engine::board::snapshot::{ActionView, AlarmView, SiloView, Snapshot, StreamView};
use pinwheel_engine::engine::{Command, InputSpec, SiloCommand};
use pinwheel_engine::profile::{Applies, Change};

fn write(bench: &mut Bench, text: &str) {
    bench.keys(&text.chars().map(Key::Char).collect::<Vec<_>>());
}

/// Shows the console an engine of three silos and four streams.
fn widen(bench: &mut Bench) {
    let mut now = bench.source.snapshot().unwrap();
    now.silos.extend((1..3).map(|id| SiloView { id, ..now.silos[0].clone() }).collect::<Vec<_>>());
    now.streams.extend((1..4).map(|id| StreamView { id, ..now.streams[0].clone() }).collect::<Vec<_>>());
    let (now_ns, snapshot) = (bench.now_ns, Some(Box::new(now)));
    bench.take(Msg::Snapshot { now_ns, snapshot, finished: Finished::No });
}

const KILL: Command = Command::Silo { silo: 0, command: SiloCommand::Kill };

#[test]
fn a_reason_is_written_at_the_question_and_goes_with_the_action() {
    let mut bench = Bench::new();
    let prod = bench.digit("prod");
    bench.keys(&[Key::Char('p'), prod, Key::Char('w')]);
    write(&mut bench, "beam time");
    bench.keys(&[Key::Enter]);
    assert!(matches!(bench.model.overlay, Some(Overlay::AskApply(_))), "back at the question");
    bench.keys(&[Key::Char('y')]);
    assert_eq!(
        (bench.source.applied.as_slice(), bench.source.whys.as_slice()),
        (&["prod".to_owned()][..], &["beam time".to_owned()][..])
    );
    assert_eq!(bench.model.switch.as_ref().map(|switch| switch.reason.as_str()), Some("beam time"));
    // What was given up leaves nothing for the next one.
    bench.keys(&[Key::Char('H'), Key::Char('w')]);
    write(&mut bench, "never");
    bench.keys(&[Key::Enter, Key::Char('n'), Key::Char('H')]);
    assert_eq!(bench.take(Msg::Key(Key::Char('y')))[..1], [Effect::Execute(Command::Pause, String::new())]);
    bench.keys(&[Key::Char('H'), Key::Char('w'), Key::Char('a'), Key::Esc]);
    assert!(bench.model.why.is_empty() && matches!(bench.model.overlay, Some(Overlay::Ask(Command::Pause))));
}

#[test]
fn a_drain_needs_a_yes_and_a_kill_needs_its_typed_words() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('M'), Key::Char('d'), Key::Char('n')]);
    assert!(bench.source.executed.is_empty());
    bench.keys(&[Key::Char('d'), Key::Char('y'), Key::Char('J'), Key::Enter]);
    let named = |command| Command::Silo { silo: 0, command };
    assert_eq!(bench.source.executed, [named(SiloCommand::Drain), named(SiloCommand::Rejoin)]);
    for wrong in ["", "y", "kill", "kill 1", "kill 01", "KILL 0", "kill 0x"] {
        bench.keys(&[Key::Char('K')]);
        write(&mut bench, wrong);
        bench.keys(&[Key::Enter]);
        assert!(matches!(bench.model.overlay, Some(Overlay::Type(..))), "{wrong}");
        bench.keys(&[Key::Esc]);
    }
    assert_eq!(bench.source.executed.len(), 2);
    bench.keys(&[Key::Char('K')]);
    write(&mut bench, "kill 0 successor wanted");
    bench.keys(&[Key::Enter]);
    assert_eq!(
        (bench.source.executed.last(), bench.source.whys.last().map(String::as_str)),
        (Some(&KILL), Some("successor wanted"))
    );
    assert!(bench.model.overlay.is_none() && bench.model.why.is_empty());
}

#[test]
fn a_stream_is_moved_from_its_list_or_by_words_after_a_question() {
    let mut bench = Bench::new();
    widen(&mut bench);
    bench.keys(&[Key::Char('t'), Key::Char('b')]);
    assert_eq!(bench.model.overlay, Some(Overlay::Move("0 ".to_owned())), "the stream under the cursor");
    write(&mut bench, "1");
    bench.keys(&[Key::Enter]);
    let moved = Command::Move { stream: 0, to: 1 };
    assert_eq!((bench.model.overlay.as_ref(), bench.source.executed.len()), (Some(&Overlay::Ask(moved.clone())), 0));
    bench.keys(&[Key::Char('y')]);
    assert_eq!(bench.source.executed, [moved]);
    bench.keys(&[Key::Char(':')]);
    write(&mut bench, "move stream 3 to silo 2");
    bench.keys(&[Key::Enter, Key::Enter]);
    assert_eq!(bench.source.executed[1], Command::Move { stream: 3, to: 2 });
    bench.keys(&[Key::Char('M'), Key::Char('b')]);
    write(&mut bench, "3 x");
    bench.keys(&[Key::Enter]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("give a stream and its target silo"));
}

#[test]
fn a_decoder_or_model_is_changed_by_words_after_a_question_and_a_model_is_taken_back_by_one_key() {
    let mut bench = Bench::new();
    widen(&mut bench);
    let decoder = |stream| Command::Decoder { decoder: "union-find".to_owned(), stream };
    let model = |file: Option<&str>| Command::Model { file: file.map(str::to_owned), stream: None };
    let long = format!("/models/{}.dem", "d".repeat(120));
    let long_words = format!("model {long}");
    let written = [
        (long_words.as_str(), model(Some(&long))),
        ("decoder union-find", decoder(None)),
        ("decoder union-find for stream 3", decoder(Some(3))),
        ("model today.dem", model(Some("today.dem"))),
    ];
    for (words, command) in &written {
        bench.keys(&[Key::Char(':')]);
        write(&mut bench, words);
        bench.keys(&[Key::Enter]);
        assert_eq!(bench.model.overlay, Some(Overlay::Ask(command.clone())), "{words}");
        bench.keys(&[Key::Char('y')]);
        assert_eq!(bench.source.executed.last(), Some(command));
    }
    bench.keys(&[Key::Char('U'), Key::Char('n'), Key::Char('U'), Key::Char('y')]);
    assert_eq!(bench.source.executed[written.len()..], [model(None)]);
}

#[test]
fn a_command_on_a_silo_or_stream_that_is_not_there_is_refused_without_a_question() {
    let mut bench = Bench::new();
    widen(&mut bench);
    for (words, part) in [
        ("kill silo 7", "there is no silo 7; name one below 3"),
        ("drain silo 3", "there is no silo 3"),
        ("move stream 4 to silo 0", "there is no stream 4; name one below 4"),
        ("move stream 0 to silo 5", "there is no silo 5"),
        ("decoder lookup for stream 4", "there is no stream 4"),
        ("model a.dem for stream 4", "there is no stream 4"),
    ] {
        bench.keys(&[Key::Char(':')]);
        write(&mut bench, words);
        bench.keys(&[Key::Enter]);
        let said = bench.model.notice.take().map(|notice| notice.text).unwrap_or_default();
        assert!(bench.model.overlay.is_none() && said.starts_with(&format!("{words} refused: {part}")), "{said}");
    }
    assert!(bench.source.executed.is_empty());
}

#[test]
fn a_command_while_the_engine_drains_is_refused_by_its_own_name() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('q'), Key::Char('y'), Key::Char('H')]);
    let said = bench.model.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("hold of the feed refused: the engine is draining or has ended"));
}

#[test]
fn a_gentler_profile_with_another_decoder_asks_first() {
    let mut bench = Bench::new();
    let shared = bench.digit("shared");
    bench.keys(&[Key::Char('p')]);
    for offer in bench.model.offers.iter_mut().flatten().filter(|offer| offer.name == "shared") {
        let body = offer.body.as_mut().unwrap();
        body.changes.push(Change {
            field: "decoder".to_owned(),
            from: "Matching".to_owned(),
            to: "UnionFind".to_owned(),
            applies: Applies::Live,
        });
    }
    bench.keys(&[shared]);
    assert!(matches!(bench.model.overlay, Some(Overlay::AskApply(_))), "{:?}", bench.model.overlay);
    assert!(bench.source.applied.is_empty());
}

#[test]
fn another_input_is_asked_for_and_a_new_engine_begins_anew() {
    let mut bench = Bench::new();
    (0..5).for_each(|_| bench.data());
    bench.keys(&[Key::Char('I')]);
    write(&mut bench, "shots of today.b8");
    bench.keys(&[Key::Enter, Key::Char('y')]);
    assert_eq!(bench.source.executed, [Command::Input(InputSpec::parse("shots of today.b8").unwrap())]);
    bench.keys(&[Key::Char(':')]);
    write(&mut bench, "input udp:127.0.0.1:7000");
    bench.keys(&[Key::Enter]);
    assert_eq!(
        bench.model.overlay,
        Some(Overlay::Ask(Command::Input(InputSpec::parse("udp:127.0.0.1:7000").unwrap())))
    );
    bench.keys(&[Key::Esc, Key::Char('m'), Key::Char('f')]);
    let anew = Some(Box::new(snapshot(1, SyntheticFaults::None)));
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: anew, finished: Finished::No });
    let model = &bench.model;
    assert!(model.frozen.is_none() && model.mark.is_none() && model.live.history.len() == 1);
    assert!(model.picture().unwrap().derived.rates.is_none(), "no rates over two engines");
    bench.keys(&[Key::Char('I')]);
    write(&mut bench, "today.b8 --rate 5");
    bench.keys(&[Key::Enter]);
    assert!(
        bench.model.overlay.is_none() && bench.model.notice.as_ref().unwrap().text.contains("--rate is not an option")
    );
    // One that began late is as far on as the one before when it is seen first.
    let mut late = snapshot(1, SyntheticFaults::None);
    late.engine.started_utc_s += 1;
    late.at_ns += 5;
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 2, snapshot: Some(Box::new(late)), finished: Finished::No });
    assert!(bench.model.live.history.len() == 1);
}

#[test]
fn a_read_only_console_cannot_change_the_input() {
    let mut bench = Bench::new();
    bench.model.ownership = Ownership::Attached { pid: 7, uid: 0, access: Access::Watch };
    bench.keys(&[Key::Char('I')]);
    assert!(bench.model.overlay.is_none());
    assert!(bench.model.notice.as_ref().unwrap().text.contains("another input refused"));
    bench.model.ownership = Ownership::Attached { pid: 7, uid: 0, access: Access::Act };
    bench.keys(&[Key::Char('I')]);
    assert_eq!(bench.model.overlay, Some(Overlay::Input(String::new())));
}

fn picture(bench: &mut Bench, tenths: u64, actions: u64) {
    let mut next: Snapshot = snapshot(tenths, SyntheticFaults::None);
    next.control.actions = actions;
    let what = "feed held by ada (uid 1000, process 7, pts/3): tea".to_owned();
    next.control.last = (actions > 0).then_some(ActionView { what, at_ns: 2_500_000_000 });
    bench.take(Msg::Snapshot { now_ns: tenths * 100_000_000, snapshot: Some(Box::new(next)), finished: Finished::No });
}

#[test]
fn whoever_acts_the_effect_is_read_a_while_after_and_the_list_says_who_why_and_what_came_of_it() {
    let mut bench = Bench::new();
    (2..=25).for_each(|tenths| picture(&mut bench, tenths, 0));
    (26..=50).for_each(|tenths| picture(&mut bench, tenths, 1));
    assert_eq!(bench.model.measured.len(), 1);
    assert!(bench.model.measured[0].after.is_none() && bench.model.measured[0].before != Facts::default());
    let tenths = (2_500_000_000 + AFTER_NS) / 100_000_000;
    (51..=tenths).for_each(|tenths| picture(&mut bench, tenths, 1));
    assert!(bench.model.measured[0].after.is_some());
    for brought in looked_up(SyntheticFaults::None) {
        bench.take(Msg::LookedUp(brought));
    }
    bench.keys(&[Key::Char('u')]);
    assert_eq!((bench.model.view, List::Actions.len(&bench.model)), (View::Actions, 1));
    let told: String = List::Actions.details(&bench.model, 0).into_iter().map(|(text, _)| text + "\n").collect();
    for part in
        ["feed held, at", "by ada (uid 1000, process 7, pts/3)", "why: tea", "effect, a second before", "cores →"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(matches!(bench.take(Msg::Key(Key::Enter))[..], [Effect::LookAt(2_500_000_000), ..]));
}

/// Acknowledges or snoozes the root of an incident twice; the alarms for which each try asks it.
fn asked_of(bench: &mut Bench, key: Key, is_done: fn(&mut AlarmView)) -> Vec<Vec<u64>> {
    let mut next = snapshot(20, SyntheticFaults::All);
    let root = next.incidents.iter().find(|incident| !incident.consequences.is_empty()).unwrap().number;
    let of_root = |alarm: &&mut AlarmView| alarm.incident == root && alarm.is_active();
    bench.model.view = View::Alarms;
    (0..2)
        .map(|_| {
            next.at_ns += 1;
            let (now_ns, snapshot) = (bench.now_ns + 1, Some(Box::new(next.clone())));
            bench.take(Msg::Snapshot { now_ns, snapshot, finished: Finished::No });
            bench.model.cursor.alarm = next.alarms.iter().position(|alarm| alarm.number == root).unwrap();
            let effects = bench.take(Msg::Key(key));
            // The first of them is done; the others had no room.
            next.alarms.iter_mut().filter(of_root).take(1).for_each(is_done);
            let number = |effect| match effect {
                Effect::Execute(Command::Acknowledge { number } | Command::Snooze { number, .. }, _) => Some(number),
                _ => None,
            };
            effects.into_iter().filter_map(number).collect()
        })
        .collect()
}

#[test]
fn a_second_try_about_an_incident_reaches_the_alarms_of_which_the_first_had_no_room() {
    let acknowledge = |alarm: &mut AlarmView| alarm.acknowledged_ns = Some(1);
    let snooze = |alarm: &mut AlarmView| alarm.snoozed_until_ns = Some(u64::MAX);
    for (key, is_done) in [('a', acknowledge as fn(&mut AlarmView)), ('Z', snooze)] {
        let asked = asked_of(&mut Bench::new(), Key::Char(key), is_done);
        assert!(asked[0].len() > 1, "{key}: {asked:?}");
        assert_eq!(asked[1], asked[0][1..], "{key}");
    }
}

#[test]
fn a_console_in_a_browser_writes_no_file_on_the_machine_that_serves_it() {
    for access in [Access::Watch, Access::Act] {
        let mut bench = Bench::new();
        bench.model.ownership = Ownership::Attached { pid: 7, uid: 0, access };
        assert_eq!(bench.take(Msg::Key(Key::Char('W'))), [Effect::DumpScreen]);
        bench.model.is_served = true;
        assert_eq!(bench.take(Msg::Key(Key::Char('W'))), []);
        assert!(bench.model.notice.as_ref().unwrap().text.contains("writing the screen refused"));
    }
}
