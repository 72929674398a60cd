//! The key table and everything generated from it agree.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::bound::{Hint, Keymap};
use super::file::KeysError;
use super::{Action, Footer, Scope, TABLE, name};
use crate::keymap::key::Key;
use std::collections::BTreeSet;

#[test]
fn every_key_of_the_table_is_dispatched_to_its_own_row() {
    let keymap = Keymap::default();
    for binding in TABLE {
        assert!(!binding.keys.is_empty() && !binding.help.is_empty());
        for key in binding.keys {
            let found = keymap.action(binding.scope, *key).unwrap();
            match binding.action {
                Action::TakeNumber(_) => assert!(matches!(found, Action::TakeNumber(1..=9))),
                expected => assert_eq!(found, expected, "{key:?} is bound twice in {:?}", binding.scope),
            }
        }
    }
}

#[test]
fn help_shows_every_row_and_footer_only_rows_of_help() {
    let keymap = Keymap::default();
    let rows: usize = Scope::ALL.iter().map(|scope| keymap.help(*scope).count()).sum();
    assert_eq!(rows, TABLE.len());
    for scope in Scope::ALL {
        for Hint { keys, word, .. } in keymap.footer(scope) {
            let row = TABLE.iter().find(|b| b.footer == Footer::Word(word)).unwrap();
            assert!(!keys.is_empty());
            assert!(keymap.help(row.scope).any(|help| help.what() == row.help), "{word}");
        }
    }
}

#[test]
fn what_the_footer_names_works_there() {
    let keymap = Keymap::default();
    for scope in Scope::ALL {
        for binding in TABLE.iter().filter(|b| matches!(b.footer, Footer::Word(_)) && b.scope == scope) {
            assert!(keymap.action(scope, binding.keys[0]).is_some());
        }
    }
}

#[test]
fn a_question_takes_only_its_answer_keys() {
    let keymap = Keymap::default();
    for key in [Key::Char('q'), Key::Char('p'), Key::Tab, Key::Char('1'), Key::Ctrl('c'), Key::Up] {
        assert_eq!(keymap.action(Scope::Question, key), None);
    }
}

#[test]
fn each_action_of_a_scope_has_a_name_of_its_own_and_each_key_reads_as_it_is_spelled() {
    for scope in Scope::ALL {
        let rows: Vec<_> = TABLE.iter().filter(|binding| binding.scope == scope).collect();
        let names: BTreeSet<_> = rows.iter().map(|binding| name::action(binding.action)).collect();
        assert_eq!(names.len(), rows.len(), "{scope:?}");
    }
    for key in TABLE.iter().flat_map(|binding| binding.keys) {
        assert_eq!(Key::parse(&key.spelled()), Some(*key));
    }
}

#[test]
fn a_file_rebinds_what_it_names_everywhere_that_the_table_is_shown() {
    let keymap = Keymap::from_text(r#"{ "views": { "freeze": ["F5", "F"], "filter": ["f"] } }"#).unwrap();
    assert_eq!(keymap.action(Scope::Views, Key::F(5)), Some(Action::Freeze));
    assert_eq!(keymap.action(Scope::Alarms, Key::Char('F')), Some(Action::Freeze), "scopes inside see it too");
    assert_eq!(keymap.action(Scope::Views, Key::Char('f')), Some(Action::Filter));
    assert_eq!(keymap.action(Scope::Views, Key::Char('/')), None);
    assert!(keymap.footer(Scope::Views).iter().any(|hint| (hint.keys.as_str(), hint.word) == ("F5", "freeze")));
    assert!(keymap.help(Scope::Views).any(|help| help.keys() == "F5 F"));
    assert!(keymap.commands(Scope::Views).any(|(action, keys, _)| action == Action::Freeze && keys == "F5 F"));
    assert_eq!(Keymap::from_text("{}").unwrap(), Keymap::default());
}

#[test]
fn row_numbers_follow_rebound_keys() {
    let keymap = Keymap::from_text(r#"{ "chooser": { "take-number": ["a", "b"] } }"#).unwrap();
    assert_eq!(keymap.action(Scope::Chooser, Key::Char('b')), Some(Action::TakeNumber(2)));
}

#[test]
fn a_bad_file_is_refused_in_one_sentence() {
    type Is = fn(&KeysError) -> bool;
    let cases: [(&str, Is); 7] = [
        ("nonsense", |error| matches!(error, KeysError::Shape(_))),
        (r#"{ "here": {} }"#, |error| matches!(error, KeysError::Scope { .. })),
        (r#"{ "views": { "fly": ["x"] } }"#, |error| matches!(error, KeysError::Action { .. })),
        (r#"{ "views": { "freeze": ["F99"] } }"#, |error| matches!(error, KeysError::Key { .. })),
        (r#"{ "views": { "freeze": [] } }"#, |error| matches!(error, KeysError::Count { .. })),
        (r#"{ "views": { "freeze": ["q"] } }"#, |error| matches!(error, KeysError::Twice { .. })),
        (r#"{ "views": { "freeze": ["x"], "note": ["x"] } }"#, |error| matches!(error, KeysError::Twice { .. })),
    ];
    for (text, is_expected) in cases {
        let error = Keymap::from_text(text).unwrap_err();
        assert!(is_expected(&error), "{text}: {error:?}");
        let said = error.to_string();
        assert!(!said.contains('\n'), "{said}");
    }
}

proptest::proptest! {
    #[test]
    fn no_file_of_keys_makes_the_reader_panic(text in "\\PC{0,60}") {
        let _ = Keymap::from_text(&text);
        let _ = Key::parse(&text);
    }
}
