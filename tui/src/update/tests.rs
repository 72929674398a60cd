//! `update` over messages, and over random keys.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

mod acting;
mod arranging;
mod charting;
mod clicking;
mod following;
mod fuzz;
mod switching;
mod touring;

use super::update;
use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::key::Key;
use crate::model::{Leaving, Mode, Model, NoticeKind, Overlay, View};
use crate::msg::{Finished, Msg, Signal};
use crate::source::past::Past;
use crate::source::{Access, Ownership, Source};
use crate::tests::synthetic::{Synthetic, SyntheticFaults, snapshot};
use crate::theme::{Colour, Glyphs, Palette, Theme};
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::OnHangup;

const THEME: Theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };

/// A console with its loop's acting side, without terminal and clock.
struct Bench {
    model: Model,
    source: Synthetic,
    now_ns: u64,
    left: Option<ConsoleEnd>,
}

impl Bench {
    fn new() -> Bench {
        let model = Model::new(THEME, (80, 24), OnHangup::Detach);
        let mut bench = Bench { model, source: Synthetic::new(), now_ns: 0, left: None };
        bench.act(vec![Effect::ListOffers]);
        bench.data();
        bench
    }

    fn data(&mut self) {
        self.now_ns += 100_000_000;
        let snapshot = self.source.snapshot().map(Box::new);
        let finished = if self.source.is_finished() { Finished::Yes } else { Finished::No };
        self.take(Msg::Snapshot { now_ns: self.now_ns, snapshot, finished });
    }

    fn keys(&mut self, keys: &[Key]) {
        for key in keys {
            self.take(Msg::Key(*key));
        }
    }

    fn take(&mut self, msg: Msg) -> Vec<Effect> {
        let effects = update(&mut self.model, msg);
        self.act(effects.clone());
        effects
    }

    fn act(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::ListOffers => {
                    let offers = self.source.offers();
                    self.take(Msg::Offers(offers));
                }
                Effect::Execute(command, why) => {
                    let result = self.source.execute(&command, &why);
                    self.take(Msg::Executed { command, result });
                }
                Effect::LookAt(at_ns) => {
                    let past = self.source.past(at_ns).map(Box::new);
                    self.take(Msg::Past(past));
                }
                Effect::LookAfter { shown_ns, at_ns } => {
                    let past = self.source.past_after(shown_ns, at_ns).map(Box::new);
                    self.take(Msg::Past(past));
                }
                Effect::Redraw
                | Effect::LookUp(_)
                | Effect::CommandHosts(_)
                | Effect::DumpScreen
                | Effect::Capture(_)
                | Effect::Copy(_) => {}
                Effect::Leave(end) => self.left = Some(end),
            }
        }
    }

    fn digit(&self, name: &str) -> Key {
        let index = self.model.offers.iter().flatten().position(|offer| offer.name == name).unwrap();
        Key::Char(char::from_digit(index as u32 + 1, 10).unwrap())
    }
}

#[test]
fn two_keys_step_down_and_the_next_picture_shows_it() {
    let mut bench = Bench::new();
    let shared = bench.digit("shared");
    bench.keys(&[Key::Char('p'), shared]);
    assert_eq!(bench.source.applied, ["shared"]);
    bench.data();
    assert_eq!(bench.model.in_force(), Some(("shared", SpinPolicy::Shared)));
    assert_eq!(bench.model.switch.as_ref().map(|s| (s.from.as_str(), s.to.as_str())), Some(("lab", "shared")));
}

#[test]
fn stepping_up_asks_and_no_is_no() {
    let mut bench = Bench::new();
    let prod = bench.digit("prod");
    bench.keys(&[Key::Char('p'), prod]);
    assert!(matches!(bench.model.overlay, Some(Overlay::AskApply(_))));
    bench.keys(&[Key::Char('n')]);
    assert!(bench.source.applied.is_empty() && bench.model.overlay.is_none());
    bench.keys(&[Key::Char('p'), prod, Key::Char('y')]);
    assert_eq!(bench.source.applied, ["prod"]);
}

#[test]
fn without_a_picture_every_profile_asks() {
    let mut bench = Bench::new();
    bench.model.live.picture = None;
    let shared = bench.digit("shared");
    bench.keys(&[Key::Char('p'), shared]);
    assert!(bench.source.applied.is_empty());
}

#[test]
fn the_profile_in_force_is_said_to_be_and_nothing_is_applied() {
    let mut bench = Bench::new();
    let lab = bench.digit("lab");
    bench.keys(&[Key::Char('p'), lab]);
    assert!(bench.source.applied.is_empty() && bench.model.overlay.is_none());
    assert!(bench.model.notice.unwrap().text.contains("in force already"));
}

#[test]
fn a_refused_profile_is_said_and_no_switch_is_claimed() {
    let mut bench = Bench::new();
    let command = Command::Profile { name: "prod".to_owned(), text: None, for_s: None };
    bench.take(Msg::Executed { command, result: Err("core 1 is shared".to_owned()) });
    let notice = bench.model.notice.unwrap();
    assert_eq!(notice.kind, NoticeKind::Refused);
    assert!(notice.text.contains("core 1 is shared") && bench.model.switch.is_none());
}

#[test]
fn quit_asks_then_drains_then_leaves_when_all_is_answered() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('q')]);
    assert_eq!((bench.source.drains, bench.left), (0, None));
    bench.keys(&[Key::Enter]);
    assert_eq!((bench.source.drains, bench.left), (1, None));
    assert!(matches!(bench.model.leaving, Leaving::Draining { .. }));
    bench.data();
    assert_eq!(bench.left, Some(ConsoleEnd::Finished));
}

#[test]
fn a_second_quit_forces_only_after_asking() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('q'), Key::Char('y'), Key::Char('q')]);
    assert_eq!((bench.model.overlay.clone(), bench.left), (Some(Overlay::AskForce), None));
    bench.keys(&[Key::Char('n')]);
    assert_eq!(bench.left, None);
    bench.keys(&[Key::Ctrl('c'), Key::Char('y')]);
    assert_eq!(bench.left, Some(ConsoleEnd::Forced));
}

#[test]
fn an_engine_that_ended_by_itself_is_left_at_once_and_only_then() {
    let mut bench = Bench::new();
    bench.source.drains = 1;
    bench.data();
    assert_eq!(bench.left, None);
    bench.keys(&[Key::Char('q')]);
    assert_eq!(bench.left, Some(ConsoleEnd::Finished));
}

#[test]
fn sigterm_drains_and_a_second_one_does_not_wait() {
    let mut bench = Bench::new();
    bench.take(Msg::Signal(Signal::Terminate));
    assert_eq!((bench.source.drains, bench.left), (1, None));
    bench.take(Msg::Signal(Signal::Terminate));
    assert_eq!(bench.left, Some(ConsoleEnd::Killed));
    let mut bench = Bench::new();
    bench.take(Msg::Signal(Signal::Interrupt));
    bench.data();
    assert_eq!(bench.left, Some(ConsoleEnd::Interrupted));
}

#[test]
fn hangup_detaches_or_drains_as_the_profile_says() {
    let mut bench = Bench::new();
    bench.take(Msg::Signal(Signal::Hangup));
    assert_eq!((bench.source.drains, bench.left), (0, Some(ConsoleEnd::HungUp)));
    let mut bench = Bench::new();
    bench.model.on_hangup = OnHangup::Drain;
    bench.take(Msg::Signal(Signal::Hangup));
    assert_eq!((bench.source.drains, bench.left), (1, Some(ConsoleEnd::HungUp)));
}

#[test]
fn suspend_is_refused_in_words() {
    for msg in [Msg::Key(Key::Ctrl('z')), Msg::Signal(Signal::Suspend)] {
        let mut bench = Bench::new();
        assert!(bench.take(msg).is_empty());
        assert!(bench.model.notice.unwrap().text.starts_with("suspend refused"));
    }
}

#[test]
fn frozen_keeps_its_picture_while_one_moves_about_and_data_goes_on() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('f')]);
    let frozen_ns = bench.model.picture().unwrap().snapshot.at_ns;
    for _ in 0..5 {
        bench.data();
    }
    bench.keys(&[Key::Char('3'), Key::Home, Key::Down, Key::Right]);
    assert_eq!((bench.model.view, bench.model.cursor.slot), (View::Slots, 65));
    assert_eq!(bench.model.picture().unwrap().snapshot.at_ns, frozen_ns);
    assert!(!bench.model.is_fresh());
    bench.keys(&[Key::Char('f')]);
    assert_eq!(bench.model.picture().unwrap().snapshot.at_ns, frozen_ns + 500_000_000);
    assert!(bench.model.is_fresh());
}

#[test]
fn the_keys_of_a_view_hold_in_the_past_too() {
    let mut bench = Bench::new();
    let alarmed = Some(Box::new(snapshot(900, SyntheticFaults::All)));
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: alarmed, finished: Finished::No });
    bench.keys(&[Key::Char('f'), Key::Char('9'), Key::Char('i')]);
    assert_eq!(bench.model.alarm_rows, crate::model::alarms::AlarmRows::All);
    let effects = bench.take(Msg::Key(Key::Char('A')));
    assert_eq!(effects, [Effect::Execute(Command::Acknowledge { number: 0 }, String::new())]);
    bench.keys(&[Key::Char('M'), Key::Char('K')]);
    assert!(matches!(bench.model.overlay, Some(Overlay::Type(..))), "it takes its typed words there too");
    bench.keys(&[Key::Esc]);
    // Keys of the past come first.
    let effects = bench.take(Msg::Key(Key::Left));
    assert!(matches!(effects[..], [Effect::LookAt(_)]), "{effects:?}");
}

#[test]
fn a_recording_says_that_it_takes_no_rate_and_no_profile() {
    let mut bench = Bench::new();
    bench.take(Msg::Replay(0));
    for (key, what) in [('R', "rate refused"), ('p', "another profile refused")] {
        bench.model.notice = None;
        bench.keys(&[Key::Char(key)]);
        assert_eq!(bench.model.overlay, None);
        let notice = bench.model.notice.take().unwrap().text;
        assert!(notice.contains(what) && notice.contains("recording"), "{notice}");
    }
}

fn at_ns(bench: &Bench) -> u64 {
    bench.model.picture().unwrap().snapshot.at_ns
}

#[test]
fn looking_back_shows_the_moment_with_its_rates_and_f_comes_back_to_now() {
    let mut bench = Bench::new();
    (0..100).for_each(|_| bench.data());
    let now_ns = at_ns(&bench);
    bench.keys(&[Key::Char('['), Key::Char('['), Key::Left, Key::Left, Key::Right]);
    assert_eq!(at_ns(&bench), now_ns - 300_000_000);
    let picture = bench.model.picture().unwrap();
    assert!(picture.derived.rates.is_some() && picture.derived.latency.is_some());
    assert_eq!(bench.model.timeline.as_ref().unwrap().at_ns, now_ns - 300_000_000);
    bench.data();
    bench.keys(&[Key::Char('{')]);
    assert_eq!(at_ns(&bench), bench.model.timeline.as_ref().unwrap().from_ns, "no further than the first picture");
    bench.keys(&[Key::Home, Key::End]);
    assert_eq!(at_ns(&bench), now_ns + 100_000_000, "the recording grew meanwhile");
    assert!(!bench.model.is_fresh());
    bench.keys(&[Key::Char('f')]);
    assert!(bench.model.is_fresh() && bench.model.timeline.is_none());
    bench.keys(&[Key::Char(']')]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("newest moment"));
}

#[test]
fn a_replay_runs_stops_at_its_end_and_is_left_without_a_question() {
    let mut bench = Bench::new();
    (0..50).for_each(|_| bench.data());
    bench.source.drains = 1;
    bench.take(Msg::Replay(0));
    let from_ns = at_ns(&bench);
    assert!(bench.model.is_replay() && bench.model.is_fresh());
    bench.keys(&[Key::Char(' ')]);
    let next = |bench: &mut Bench, snapshot_ns: u64| {
        bench.now_ns += snapshot_ns;
        let message = Msg::Snapshot { now_ns: bench.now_ns, snapshot: None, finished: Finished::Yes };
        bench.take(message);
    };
    next(&mut bench, 1_000_000_000);
    assert_eq!(at_ns(&bench), from_ns + 1_000_000_000);
    bench.keys(&[Key::Char(' ')]);
    next(&mut bench, 1_000_000_000);
    assert_eq!(at_ns(&bench), from_ns + 1_000_000_000, "it stands");
    bench.keys(&[Key::Char(' ')]);
    (0..100).for_each(|_| next(&mut bench, 1_000_000_000));
    let line = bench.model.timeline.clone().unwrap();
    assert_eq!((line.at_ns, bench.model.mode), (line.to_ns, crate::model::Mode::Replay { running_since_ns: None }));
    bench.keys(&[Key::Char('n')]);
    assert!(bench.model.overlay.is_none() && bench.model.notice.is_some());
    bench.keys(&[Key::Char('q')]);
    assert_eq!(bench.left, Some(ConsoleEnd::Finished));
}

#[test]
fn a_note_is_written_letter_by_letter_and_does_nothing_else() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('n')]);
    let mut text: Vec<Key> = "q pump on, y".chars().map(Key::Char).collect();
    text.extend([Key::Char('x'), Key::Backspace, Key::Enter]);
    bench.keys(&text);
    assert_eq!(bench.source.notes, ["q pump on, y"]);
    assert_eq!((bench.source.drains, &bench.model.overlay), (0, &None));
    bench.keys(&[Key::Char('n'), Key::Char('a'), Key::Esc, Key::Char('n'), Key::Char(' '), Key::Enter]);
    assert_eq!(bench.source.notes.len(), 1, "neither what was given up nor blanks");
}

#[test]
fn opening_the_slots_goes_to_the_one_that_waits_longest() {
    let mut bench = Bench::new();
    let longest = bench.model.picture().unwrap().derived.silos[0].oldest.unwrap().0;
    assert_ne!(longest, 0);
    bench.keys(&[Key::Char('3'), Key::Home]);
    assert_eq!(bench.model.cursor.slot, 0);
    bench.keys(&[Key::Char('3')]);
    assert_eq!(bench.model.cursor.slot, longest);
}

#[test]
fn a_picture_that_repeats_or_fails_grows_old() {
    let mut bench = Bench::new();
    let same = bench.model.picture().unwrap().snapshot.clone();
    for repeated in [Some(Box::new(same)), None] {
        bench.now_ns += 400_000_000;
        bench.take(Msg::Snapshot { now_ns: bench.now_ns, snapshot: repeated, finished: Finished::No });
    }
    assert_eq!(bench.model.age_ns(), 800_000_000);
    assert!(!bench.model.is_fresh());
}

#[test]
fn rates_come_from_differences_and_are_absent_before_there_is_one() {
    let mut bench = Bench::new();
    assert!(bench.model.picture().unwrap().derived.rates.is_none());
    for _ in 0..3 {
        bench.data();
    }
    let derived = &bench.model.picture().unwrap().derived;
    assert!((derived.rates.unwrap().answered - 20_000.0).abs() < 1.0);
    assert!((derived.threads[0].busy.unwrap() - 0.41).abs() < 0.01);
    assert_eq!(derived.silos[0].dispatch_ns_per_shot, Some(87.0));
    assert_eq!((derived.open, derived.backlog), (5, 12));
}

#[test]
fn history_is_bounded() {
    let mut bench = Bench::new();
    let derived = bench.model.picture().unwrap().derived.clone();
    for _ in 0..1_000 {
        bench.model.live.history.push(&derived);
    }
    assert_eq!(bench.model.live.history.len(), 600);
    assert_eq!(bench.model.live.history.strip(0, 1_000).count(), 120);
}

#[test]
fn a_smaller_engine_brings_cursors_back() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('3'), Key::End]);
    assert_eq!(bench.model.cursor.slot, 1_023);
    let mut small = snapshot(900, SyntheticFaults::None);
    small.silos[0].slots.truncate(8);
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: Some(Box::new(small)), finished: Finished::No });
    assert_eq!(bench.model.cursor.slot, 7);
}

/// A console on another process's engine.
fn attached(access: Access) -> Bench {
    let mut bench = Bench::new();
    bench.model.ownership = Ownership::Attached { pid: 7, uid: 0, access };
    bench
}

#[test]
fn leaving_another_process_leaves_it_as_it_is() {
    for leave in [Msg::Key(Key::Char('q')), Msg::Signal(Signal::Terminate), Msg::Signal(Signal::Hangup)] {
        let mut bench = attached(Access::Act);
        bench.model.on_hangup = OnHangup::Drain;
        bench.take(leave);
        assert_eq!((bench.left.is_some(), bench.source.drains), (true, 0));
    }
    let mut bench = attached(Access::Act);
    bench.keys(&[Key::Char('D'), Key::Char('n')]);
    assert_eq!(bench.source.drains, 0);
    bench.keys(&[Key::Char('D'), Key::Char('y')]);
    bench.data();
    assert_eq!((bench.source.drains, bench.left), (1, None), "it is ended, and its end is still shown");
}

#[test]
fn what_is_only_looked_at_refuses_each_action_in_a_sentence() {
    let mut bench = attached(Access::Watch);
    let shared = bench.digit("shared");
    for keys in
        [&[Key::Char('D')][..], &[Key::Char('H')], &[Key::Char('R')], &[Key::Char('n')], &[Key::Char('p'), shared]]
    {
        bench.keys(keys);
        let notice = bench.model.notice.take().unwrap();
        assert!(notice.text.contains("refused") && notice.text.contains("--control"), "{}", notice.text);
        assert_eq!((bench.model.overlay.take(), bench.source.applied.len(), bench.source.drains), (None, 0, 0));
    }
}

#[test]
fn a_rate_is_taken_when_it_is_one_and_refused_in_words_otherwise() {
    for (text, taken) in [("500", Some(Some(500.0))), ("max", Some(None)), ("-1", None), ("fast", None)] {
        let mut bench = Bench::new();
        bench.keys(&[Key::Char('R')]);
        text.chars().for_each(|letter| bench.keys(&[Key::Char(letter)]));
        let effects = bench.take(Msg::Key(Key::Enter));
        assert_eq!(
            effects,
            taken.map(|hz| Effect::Execute(Command::Rate { hz }, String::new())).into_iter().collect::<Vec<_>>(),
            "{text}"
        );
        assert_eq!(bench.model.overlay, None);
    }
}

#[test]
fn a_process_that_stands_still_or_is_gone_is_never_shown_as_fresh() {
    let mut bench = attached(Access::Watch);
    assert!(bench.model.is_fresh());
    let mut silent = snapshot(900, SyntheticFaults::None);
    silent.threads.iter_mut().for_each(|thread| thread.heartbeat_age_ns = 3_000_000_000);
    bench.take(Msg::Snapshot { now_ns: bench.now_ns + 1, snapshot: Some(Box::new(silent)), finished: Finished::No });
    assert!(!bench.model.is_fresh());
    bench.data();
    assert!(bench.model.is_fresh(), "signs of life came again");
    bench.take(Msg::Lost("process 7 is gone".to_owned()));
    assert!(!bench.model.is_fresh());
    let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 80, 24));
    crate::view::draw(&bench.model, buffer.area, &mut buffer);
    let text: String = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(text.contains("GONE") && text.contains("process 7 is gone"), "{text}");
}

/// A recording has a picture each tenth of a second, but none while its recorder had no turn.
#[test]
fn a_replay_goes_on_over_a_gap_and_keeps_its_time() {
    const MS: u64 = 1_000_000;
    let mut bench = Bench::new();
    let moment = |at_ms: u64| {
        let mut picture = snapshot(1, SyntheticFaults::None);
        picture.at_ns = at_ms * MS;
        Msg::Past(Ok(Box::new(Past { pictures: vec![picture], to_ns: 9_000 * MS, ..Past::default() })))
    };
    update(&mut bench.model, Msg::Replay(0));
    update(&mut bench.model, moment(0));
    update(&mut bench.model, Msg::Key(Key::Char(' ')));
    let turn = |bench: &mut Bench, found_ms| {
        bench.now_ns += 100 * MS;
        let message = Msg::Snapshot { now_ns: bench.now_ns, snapshot: None, finished: Finished::Yes };
        let effects = update(&mut bench.model, message);
        update(&mut bench.model, moment(found_ms));
        let [Effect::LookAt(at_ns)] = effects[..] else { panic!("{effects:?}") };
        at_ns / MS
    };
    let looked: Vec<u64> = (1..=9).map(|_| turn(&mut bench, 0)).collect();
    assert_eq!(looked, [100, 200, 300, 400, 500, 600, 700, 800, 900], "nothing is recorded there");
    assert_eq!([turn(&mut bench, 950), turn(&mut bench, 1_050), turn(&mut bench, 1_150)], [1_000, 1_100, 1_200]);
    // A click on the line of time goes on from there.
    update(&mut bench.model, moment(300));
    assert_eq!(turn(&mut bench, 400), 400);
}

#[test]
fn the_keys_of_a_recording_hold_in_views_that_need_the_arrows() {
    for view in ['3', 'w', '?', '5'] {
        let mut bench = Bench::new();
        (0..9).for_each(|_| bench.data());
        bench.take(Msg::Replay(0));
        bench.keys(&[Key::Char(view), Key::Right]);
        assert_eq!(bench.model.mode, Mode::Replay { running_since_ns: None });
        bench.keys(&[Key::Char(' ')]);
        assert!(matches!(bench.model.mode, Mode::Replay { running_since_ns: Some(_) }), "{view}");
    }
    let mut bench = Bench::new();
    assert!(bench.take(Msg::Key(Key::Char(' '))).is_empty() && bench.model.notice.is_none(), "not the past");
}

#[test]
fn home_leads_to_the_first_moment_recorded_and_not_to_that_in_memory() {
    let mut bench = Bench::new();
    (0..50).for_each(|_| bench.data());
    bench.keys(&[Key::Char('[')]);
    bench.model.timeline.as_mut().unwrap().from_ns += 1_000_000_000;
    assert_eq!(bench.take(Msg::Key(Key::Home)), [Effect::LookAt(0)]);
}

#[test]
fn the_past_falls_behind_while_it_is_looked_at() {
    let mut bench = Bench::new();
    (0..50).for_each(|_| bench.data());
    bench.keys(&[Key::Char('[')]);
    let behind = |bench: &Bench| bench.model.behind_ns(bench.model.timeline.as_ref().unwrap());
    assert_eq!(behind(&bench), 100_000_000);
    (0..30).for_each(|_| bench.data());
    assert_eq!(behind(&bench), 3_100_000_000);
}

#[test]
fn a_suspend_of_a_recording_names_no_engine() {
    let mut bench = Bench::new();
    bench.take(Msg::Replay(0));
    bench.keys(&[Key::Ctrl('z')]);
    let said = bench.model.notice.unwrap().text;
    assert!(said.starts_with("suspend refused") && !said.contains("engine"), "{said}");
}

/// A run of the same process on another input, or another engine.
#[test]
fn a_question_is_not_answered_to_an_engine_that_it_was_not_asked_about() {
    let begin_anew = |bench: &mut Bench| {
        bench.source = Synthetic::new();
        bench.data();
    };
    let prod = Bench::new().digit("prod");
    let asked: [&[Key]; 4] = [
        &[Key::Char('H')],
        &[Key::Char('M'), Key::Char('K')],
        &[Key::Char('p'), prod, Key::Char('w'), Key::Char('x')],
        &[Key::Char('R'), Key::Char('9')],
    ];
    for keys in asked {
        let mut bench = Bench::new();
        (0..5).for_each(|_| bench.data());
        bench.keys(keys);
        assert!(bench.model.overlay.is_some());
        begin_anew(&mut bench);
        assert!(bench.model.overlay.is_none() && bench.model.notice.as_ref().unwrap().text.contains("withdrawn"));
        bench.keys(&[Key::Enter, Key::Char('y')]);
        assert!(bench.source.executed.is_empty() && bench.source.applied.is_empty(), "{keys:?}");
    }
    let mut bench = Bench::new();
    (0..5).for_each(|_| bench.data());
    bench.keys(&[Key::Char('2'), Key::Char('S'), Key::Char(':'), Key::Char('q')]);
    begin_anew(&mut bench);
    assert!(matches!(bench.model.overlay, Some(Overlay::Palette(_))), "no answer to a question");
    let order = bench.model.lists.of(crate::model::lists::List::Threads).order.as_ref();
    assert!(order.is_some(), "sorted by its own rows");
}
