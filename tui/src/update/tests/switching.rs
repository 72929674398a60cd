//! Profiles for a time, taken back, remembered.

use super::Bench;
use crate::effect::Effect;
use crate::keymap::key::Key;
use crate::model::Overlay;
use crate::model::switch::{Why, history};
use crate::msg::{Finished, Msg};
use crate::source::{Offer, Reply};
use crate::tests::synthetic::{SyntheticFaults, snapshot};
use pinwheel_engine::board::snapshot::Snapshot;
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

#[test]
fn undo_restores_a_profile_that_is_not_on_offer() {
    let mut bench = Bench::new();
    // One of the name of a built-in profile.
    bench.source.current.1.limits.heartbeat_ms += 1;
    let own = bench.source.current.1.clone();
    bench.act(vec![Effect::ListOffers]);
    let shared = bench.digit("shared");
    bench.keys(&[Key::Char('p'), shared]);
    bench.data();
    assert_ne!(bench.source.current.1.limits, own.limits);
    bench.keys(&[Key::Char('P'), Key::Char('y')]);
    assert_eq!(bench.source.current, ("lab".to_owned(), own));
}

fn named(names: &[&str], from: &Bench) -> Vec<Offer> {
    let offers = from.model.offers.clone().unwrap();
    let offer = |name: &&str| Offer { name: (*name).to_owned(), ..offers[0].clone() };
    names.iter().map(offer).collect()
}

#[test]
fn the_cursor_stays_on_its_profile_while_files_come_and_go() {
    let mut bench = Bench::new();
    bench.take(Msg::Offers(named(&["lab", "prod"], &bench)));
    bench.model.cursor.profile = 1;
    bench.take(Msg::Offers(named(&["also", "lab", "mine", "prod"], &bench)));
    assert_eq!(bench.model.cursor.profile, 3);
    bench.take(Msg::Offers(named(&["also"], &bench)));
    assert_eq!(bench.model.cursor.profile, 0);
}

#[test]
fn the_profiles_are_compared_again_after_each_action_of_any_client() {
    let mut bench = Bench::new();
    let mut acted = snapshot(500, SyntheticFaults::None);
    acted.control.actions += 1;
    let mut take = |snapshot: &Snapshot| {
        let snapshot = Some(Box::new(snapshot.clone()));
        bench.take(Msg::Snapshot { now_ns: bench.now_ns, snapshot, finished: Finished::No })
    };
    assert_eq!(take(&acted), [Effect::ListOffers]);
    acted.at_ns += 1;
    assert_eq!(take(&acted), []);
    assert_eq!(bench.take(Msg::Reply(Reply::InForce)), [Effect::ListOffers]);
    assert!(bench.model.notice.is_none());
}

#[test]
fn a_switch_that_another_process_refuses_is_no_history() {
    let mut bench = Bench::new();
    let (prod, shared) = (bench.digit("prod"), bench.digit("shared"));
    bench.keys(&[Key::Char('p'), prod, Key::Char('y')]);
    bench.data();
    bench.keys(&[Key::Char('p'), shared]);
    let refused = Reply::SwitchRefused { name: "prod".to_owned(), why: "core 1 is shared".to_owned() };
    bench.take(Msg::Reply(refused));
    assert_eq!(history(&bench.model).map(|switch| switch.to.as_str()).collect::<Vec<_>>(), ["shared"]);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("profile prod refused: core 1 is shared"));
}
