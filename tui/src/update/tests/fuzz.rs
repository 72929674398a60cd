//! Random keys and clicks: nothing panics, and no command executes without confirmation.

use super::super::mouse::DOUBLE_NS;
use super::Bench;
use crate::effect::Effect;
use crate::keymap::Action;
use crate::keymap::key::Key;
use crate::model::Overlay;
use crate::model::questions::word;
use crate::model::target::Target;
use crate::msg::{Finished, Mouse, MouseAction, Msg};
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::{self, Profile};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

fn any_action() -> impl Strategy<Value = Msg> {
    let actions = [MouseAction::Click, MouseAction::Click, MouseAction::WheelUp, MouseAction::WheelDown];
    let mouse = (proptest::sample::select(actions.to_vec()), 0u16..90, 0u16..26);
    // The footer shows the answers to questions.
    let footer = (0u16..90).prop_map(|x| Msg::Mouse(Mouse { action: MouseAction::Click, x, y: 25 }));
    prop_oneof![
        6 => any_key().prop_map(Msg::Key),
        2 => mouse.prop_map(|(action, x, y)| Msg::Mouse(Mouse { action, x, y })),
        1 => footer,
    ]
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        proptest::sample::select("pqynf15sP:/SRCzmDT=ecvrt9NZ[]HVWMdKJbwuIx0 ".chars().collect::<Vec<_>>())
            .prop_map(Key::Char),
        any::<char>().prop_map(Key::Char),
        prop_oneof![Just('c'), Just('z'), Just('l')].prop_map(Key::Ctrl),
        prop_oneof![
            Just(Key::Tab),
            Just(Key::BackTab),
            Just(Key::Enter),
            Just(Key::Esc),
            Just(Key::Up),
            Just(Key::Down),
            Just(Key::Left),
            Just(Key::Right),
            Just(Key::PageDown),
            Just(Key::End),
        ],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn random_keys_and_clicks_never_panic_nor_act_without_a_yes(actions in proptest::collection::vec((any_action(), 0u64..900), 1..60)) {
        let mut bench = Bench::new();
        bench.take(Msg::Resize { columns: 90, rows: 26 });
        let mut clicked_ns = None;
        for (i, (action, wait_ms)) in actions.into_iter().enumerate() {
            bench.now_ns += wait_ms * 1_000_000;
            bench.take(Msg::Tick { now_ns: bench.now_ns });
            let asked = bench.model.overlay.clone();
            // A slow click on the footer's "yes" confirms.
            let is_slow = clicked_ns.is_none_or(|then_ns| bench.now_ns - then_ns > DOUBLE_NS);
            let yes = match action {
                Msg::Key(key) => matches!(key, Key::Char('y') | Key::Enter),
                Msg::Mouse(Mouse { action: MouseAction::Click, x, y }) => {
                    clicked_ns = Some(bench.now_ns);
                    let target = crate::view::target_at(&bench.model, x, y);
                    is_slow && target == Some(Target::Do(Action::Confirm))
                }
                _ => false,
            };
            let finished = bench.model.finished;
            let running = bench.model.in_force().map(|(_, policy)| policy);
            for effect in bench.take(action) {
                match effect {
                    Effect::Execute(command, _) => match (&command, &asked) {
                        (Command::Profile { text, .. }, _) => {
                            let profile = Profile::parse(text.as_deref().unwrap(), "offered").unwrap();
                            let down = matches!(
                                (running, profile.spin),
                                (Some(SpinPolicy::Prod), profile::SpinPolicy::Lab | profile::SpinPolicy::Shared)
                                    | (Some(SpinPolicy::Lab), profile::SpinPolicy::Shared)
                            );
                            assert!(down || (yes && matches!(asked, Some(Overlay::AskApply(_)))));
                        }
                        (Command::Acknowledge { .. } | Command::Snooze { .. }, _) => {}
                        (Command::Drain, Some(Overlay::AskQuit))
                        | (Command::Rate { .. }, Some(Overlay::Rate(_)))
                        | (Command::Note { .. }, Some(Overlay::Note(_))) => assert!(yes),
                        (command, Some(Overlay::Ask(asked))) => {
                            assert!(yes && asked == command && word(command).is_none());
                        }
                        (command, Some(Overlay::Type(asked, text))) => {
                            assert!(yes && asked == command && text.trim().starts_with(&word(command).unwrap()));
                        }
                        (command, other) => panic!("{command:?} at {other:?}"),
                    },
                    Effect::Leave(_) => {
                        let forced = yes && asked == Some(Overlay::AskForce);
                        assert!(forced || finished == Finished::Yes);
                    }
                    Effect::ListOffers
                    | Effect::Redraw
                    | Effect::LookAt(_)
                    | Effect::LookAfter { .. }
                    | Effect::LookUp(_)
                    | Effect::CommandHosts(_)
                    | Effect::DumpScreen
                    | Effect::Copy(_)
                    | Effect::Capture(_) => {}
                }
            }
            if i % 5 == 0 {
                bench.data();
            }
            let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 90, 26));
            crate::view::draw(&bench.model, buffer.area, &mut buffer);
        }
    }
}
