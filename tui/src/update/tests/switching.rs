//! Profiles for a time, taken back, remembered.

use super::Bench;
use crate::keymap::key::Key;
use crate::model::Overlay;
use crate::model::switch::{Why, history};
use crate::msg::Msg;
use pinwheel_engine::engine::Command;
use std::time::Duration;

fn write(bench: &mut Bench, text: &str) {
    bench.keys(&[Key::Char(':')]);
    bench.keys(&text.chars().map(Key::Char).collect::<Vec<_>>());
    bench.keys(&[Key::Enter]);
}

#[test]
fn a_profile_for_a_time_asks_and_is_lent_by_the_engine() {
    let mut bench = Bench::new();
    write(&mut bench, "profile prod for 20m");
    assert!(matches!(&bench.model.overlay, Some(Overlay::AskApply(asked)) if asked.span.is_some()));
    bench.keys(&[Key::Char('y')]);
    assert_eq!(
        (bench.source.applied.as_slice(), bench.source.lent),
        (&["prod".to_owned()][..], Some(Duration::from_secs(1_200)))
    );
    assert!(bench.model.notice.as_ref().unwrap().text.contains("lab comes back in 20m"));
    bench.data();
    // Whether it comes back is the engine's matter: the console may be gone by then.
    bench.now_ns += 1_300_000_000_000;
    bench.data();
    assert_eq!(bench.source.applied, ["prod"]);
    let made: Vec<_> = history(&bench.model).map(|switch| (switch.to.as_str(), switch.why)).collect();
    assert_eq!(made, [("prod", Why::Asked)]);
    let shared = bench.digit("shared");
    bench.keys(&[Key::Char('p'), shared]);
    assert_eq!((bench.source.applied.len(), bench.source.lent), (2, None), "another switch is for good");
}

#[test]
fn undo_steps_down_at_once_and_asks_before_it_steps_up() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('P')]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("no switch to take back"));
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
    write(&mut bench, "profile shared for 5m");
    bench.keys(&[Key::Char('y')]);
    let command = Command::Profile { name: "shared".to_owned(), text: None, for_s: Some(300) };
    bench.take(Msg::Executed { command, result: Err("no".to_owned()) });
    assert_eq!(history(&bench.model).count(), 1);
}
