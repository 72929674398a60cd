//! Small screens: texts that must be readable at 80×24 and below, and marks for text that is cut.

use super::{ASCII, COLOUR, MONO, MONO_ASCII, VIEWS, drawn, dump, keys, text, watched};
use crate::keymap::key::Key;
use crate::model::{Model, NoticeKind, View};
use crate::msg::Msg;
use crate::source::past::Past;
use crate::tests::synthetic::{SyntheticFaults, snapshot};
use crate::update::update;

/// The view of `key`, two seconds after the start, without a notice.
fn viewed(theme: crate::theme::Theme, size: (u16, u16), trouble: SyntheticFaults, key: char) -> Model {
    let mut model = watched(theme, size, trouble);
    model.notice = None;
    keys(&mut model, &[Key::Char(key)]);
    model
}

#[test]
fn the_consoles_cost_is_readable_in_every_view_from_40_columns_on() {
    for theme in [COLOUR, MONO, ASCII, MONO_ASCII] {
        for size in [(80, 24), (60, 20), (40, 12), (119, 40), (120, 40), (200, 60)] {
            for key in VIEWS {
                let mut model = viewed(theme, size, SyntheticFaults::All, key);
                let last = |model: &Model| text(&drawn(model)).lines().last().unwrap().to_owned();
                let row = last(&model);
                assert!(row.contains("0.4%") && row.ends_with("15kB/s"), "view {key} {size:?}: {row}");
                assert!(row.contains("? help") && row.contains("q quit"), "view {key} {size:?}: {row}");
                crate::update::update(&mut model, crate::msg::Msg::Key(Key::Ctrl('z')));
                assert_eq!(model.notice.as_ref().map(|notice| notice.kind), Some(NoticeKind::Refused));
                let row = last(&model);
                assert!(row.contains("0.4%") && row.ends_with("15kB/s"), "beside a notice: {row}");
            }
        }
    }
    let wide = text(&drawn(&viewed(COLOUR, (120, 40), SyntheticFaults::None, '1')));
    assert!(wide.contains("q quit") && wide.contains("console 0.4% of a core, 10 frames/s, 15kB/s"), "{wide}");
}

#[test]
fn a_refusal_is_readable_to_its_end_at_any_width() {
    let said = "found no picture yet, expected one to follow; wait for the engine, and look at the log of this run";
    for size in [(80, 24), (60, 20), (40, 12), (200, 60)] {
        let mut model = viewed(COLOUR, size, SyntheticFaults::All, '2');
        model.notice =
            Some(crate::model::Notice { text: said.to_owned(), until_ns: u64::MAX, kind: NoticeKind::Refused });
        let screen = text(&drawn(&model));
        assert!(said.split(' ').all(|word| screen.contains(word)), "{size:?}: {screen}");
    }
}

#[test]
fn each_views_title_is_a_question_and_has_room_at_80_columns() {
    for trouble in [SyntheticFaults::None, SyntheticFaults::All] {
        for (view, key) in View::ALL.into_iter().zip(VIEWS) {
            let screen = text(&drawn(&viewed(COLOUR, (80, 24), trouble, key)));
            assert!(view.heading().ends_with('?'), "{view:?}");
            assert!(screen.contains(view.heading()), "{view:?}: {screen}");
        }
    }
}

#[test]
fn lists_and_help_are_there_below_80_columns() {
    for (size, shown) in [((60, 20), &VIEWS[..]), ((40, 12), &['9', '2', '0', '1'][..])] {
        for key in shown {
            let model = viewed(COLOUR, size, SyntheticFaults::All, *key);
            insta::assert_snapshot!(format!("narrow_{:?}_{}x{}", model.view, size.0, size.1), dump(&model));
        }
    }
}

/// Keys that open a question, and words of it that must be readable.
const QUESTIONS: [(&str, &[Key], &[&str]); 7] = [
    ("drain", &[Key::Char('M'), Key::Char('d')], &["placed there.", "do it", "do not"]),
    ("kill", &[Key::Char('M'), Key::Char('K'), Key::Char('k')], &["restarts it.", "k_", "type kill 0", "do not"]),
    ("prod", &[Key::Char('p'), Key::Char('1')], &["lab → prod", "work-0", "quiet_s: 30) → None", "apply", "do not"]),
    ("quit", &[Key::Char('q')], &["is answered.", "drain and quit", "go on", "w: why"]),
    ("hold", &[Key::Char('H')], &["path are answered.", "yes", "no"]),
    ("rate", &[Key::Char('R'), Key::Char('7')], &["7_", "if you like", "take it", "stay at"]),
    ("input", &[Key::Char('I'), Key::Char('u')], &["u_", "shm:NAME", "ask", "stay"]),
];

#[test]
fn questions_are_readable_to_their_end_at_any_size() {
    for size in [(80, 24), (60, 20), (40, 12)] {
        for (name, pressed, words) in QUESTIONS {
            let mut model = viewed(COLOUR, size, SyntheticFaults::None, '1');
            keys(&mut model, pressed);
            let screen = text(&drawn(&model));
            // Joins the rows of a wrapped text, without frame and indent.
            let joined: Vec<&str> = screen.split(|c: char| c.is_whitespace() || c == '│').collect();
            let joined = joined.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
            for word in words {
                assert!(joined.contains(word), "{name} {size:?}: {word:?} in\n{screen}");
            }
            if size != (80, 24) {
                insta::assert_snapshot!(format!("narrow_ask_{name}_{}x{}", size.0, size.1), dump(&model));
            }
        }
    }
}

#[test]
fn a_change_of_a_profile_shows_both_values_however_narrow_the_screen() {
    for size in [(80, 24), (60, 20), (40, 20)] {
        for pressed in [&[Key::Char('5')][..], &[Key::Char('p'), Key::Char('1')][..]] {
            let mut model = viewed(COLOUR, size, SyntheticFaults::None, '1');
            keys(&mut model, pressed);
            let screen = text(&drawn(&model));
            let joined = screen.split(|c: char| c.is_whitespace() || c == '│').collect::<String>();
            for change in ["courtesy:(wait_ms:100,quiet_s:30)→None", "limits.heartbeat_ms:20→10"] {
                assert!(joined.contains(change), "{size:?} {change}: {screen}");
            }
            assert!(screen.contains(" more: ") || screen.contains("workers: 8 → 16"), "{screen}");
        }
    }
}

#[test]
fn a_diff_that_has_no_room_beside_the_list_gets_all_of_it() {
    let mut model = viewed(COLOUR, (60, 24), SyntheticFaults::None, '5');
    assert!(text(&drawn(&model)).contains("more: z shows them"));
    keys(&mut model, &[Key::Char('z')]);
    let screen = text(&drawn(&model));
    assert!(screen.contains("courtesy") && screen.contains("workers: 8 → 16"), "{screen}");
}

#[test]
fn a_screen_that_is_too_small_says_that_the_engine_runs_on_only_if_it_does() {
    let mut model = watched(MONO, (19, 5), SyntheticFaults::None);
    assert!(text(&drawn(&model)).contains("engine runs on"));
    update(&mut model, Msg::Lost("process 7 is gone".to_owned()));
    assert!(!text(&drawn(&model)).contains("engine"));
}

/// The recording of an engine that was killed can still be stepped through.
#[test]
fn the_line_of_time_is_seen_and_clicked_beside_the_news_of_a_lost_engine() {
    let mut model = watched(MONO, (80, 24), SyntheticFaults::None);
    let past = Past { pictures: vec![snapshot(10, SyntheticFaults::None)], to_ns: 60_000_000_000, ..Past::default() };
    update(&mut model, Msg::Past(Ok(Box::new(past))));
    update(&mut model, Msg::Lost("process 7 is gone".to_owned()));
    let shown = text(&drawn(&model));
    assert!(shown.contains("the engine is gone") && shown.contains("f: now"), "{shown}");
    assert!(matches!(crate::view::target_at(&model, 3, 22), Some(crate::model::target::Target::Moment(_))));
}
