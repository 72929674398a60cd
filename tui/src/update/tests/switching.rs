//! Profiles for a time, taken back, remembered.

use super::Bench;
use crate::effect::{ConsoleEnd, Effect};
use crate::model::Overlay;
use crate::model::switch::{Why, history};
use crate::msg::{Key, Msg, Signal};

fn command(bench: &mut Bench, text: &str) {
    bench.keys(&[Key::Char(':')]);
    bench.keys(&text.chars().map(Key::Char).collect::<Vec<_>>());
    bench.keys(&[Key::Enter]);
}

#[test]
fn a_profile_for_a_time_asks_counts_down_and_comes_back_by_itself() {
    let mut bench = Bench::new();
    command(&mut bench, "profile prod for 20m");
    assert!(matches!(&bench.model.overlay, Some(Overlay::AskApply(asked)) if asked.span.is_some()));
    bench.keys(&[Key::Char('y')]);
    assert_eq!(bench.source.applied, ["prod"]);
    bench.data();
    let pending = bench.model.pending.clone().unwrap();
    assert_eq!((pending.to.as_str(), pending.left(bench.now_ns).as_str()), ("lab", "20m"));
    bench.now_ns += 1_199_000_000_000;
    bench.data();
    assert_eq!(bench.source.applied, ["prod"], "a second too early");
    bench.now_ns += 1_000_000_000;
    bench.data();
    assert_eq!(bench.source.applied, ["prod", "lab"]);
    assert!(bench.model.pending.is_none());
    bench.data();
    let made: Vec<_> = history(&bench.model).map(|switch| (switch.to.as_str(), switch.why)).collect();
    assert_eq!(made, [("lab", Why::TimeOver), ("prod", Why::Asked)]);
}

#[test]
fn another_switch_ends_the_countdown() {
    let mut bench = Bench::new();
    command(&mut bench, "profile prod for 20m");
    bench.keys(&[Key::Char('y')]);
    bench.data();
    let shared = bench.digit("shared");
    bench.keys(&[Key::Char('p'), shared]);
    assert_eq!(bench.source.applied, ["prod", "shared"]);
    assert!(bench.model.pending.is_none());
}

#[test]
fn a_drain_ends_the_countdown() {
    let mut bench = Bench::new();
    command(&mut bench, "profile prod for 1s");
    bench.keys(&[Key::Char('y'), Key::Char('q'), Key::Char('y')]);
    bench.now_ns += 5_000_000_000;
    bench.data();
    assert_eq!(bench.source.applied, ["prod"]);
}

#[test]
fn a_lost_terminal_gives_back_what_was_lent_before_it_leaves_the_engine_running() {
    let mut bench = Bench::new();
    command(&mut bench, "profile prod for 20m");
    bench.keys(&[Key::Char('y')]);
    bench.data();
    let effects = bench.take(Msg::Signal(Signal::Hangup));
    assert!(matches!(&effects[..], [Effect::Apply { name, .. }, Effect::Leave(ConsoleEnd::HungUp)] if name == "lab"));
}

#[test]
fn undo_steps_down_at_once_and_asks_before_it_steps_up() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('P')]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("no switch was made"));
    let (prod, shared) = (bench.digit("prod"), bench.digit("shared"));
    bench.keys(&[Key::Char('p'), prod, Key::Char('y')]);
    bench.data();
    bench.keys(&[Key::Char('P')]);
    assert_eq!(bench.source.applied, ["prod", "lab"]);
    bench.data();
    bench.keys(&[Key::Char('p'), shared]);
    bench.data();
    bench.keys(&[Key::Char('P')]);
    assert!(matches!(bench.model.overlay, Some(Overlay::AskApply(_))), "back to lab is a step up");
    bench.keys(&[Key::Char('y')]);
    assert_eq!(bench.source.applied, ["prod", "lab", "shared", "lab"]);
}

#[test]
fn a_refused_switch_is_no_history() {
    let mut bench = Bench::new();
    let prod = bench.digit("prod");
    bench.keys(&[Key::Char('p'), prod, Key::Char('y')]);
    bench.data();
    command(&mut bench, "profile shared for 5m");
    bench.keys(&[Key::Char('y')]);
    bench.take(Msg::Applied { name: "shared".to_owned(), result: Err("no".to_owned()) });
    assert_eq!(history(&bench.model).count(), 1);
    assert!(bench.model.pending.is_none());
}
