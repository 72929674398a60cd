//! Settings kept, read again, and refused.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{SettingsFile, parse};
use crate::model::choices::Panel;
use crate::model::lists::{Direction, List};
use crate::model::{Model, Mouse};
use crate::theme::{Colour, Glyphs, Palette, Theme};
use pinwheel_engine::profile::OnHangup;
use std::fs;

fn model() -> Model {
    let theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };
    Model::new(theme, (80, 24), OnHangup::Detach)
}

#[test]
fn what_the_user_changed_is_there_at_the_next_start_and_filters_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/pinwheel/console.ron");
    let first = SettingsFile::open(Some(path.clone()));
    assert_eq!((first.said.clone(), first.keep(&model())), (None, Ok(())));
    assert!(!path.exists(), "nothing was changed: nothing is written");
    let mut changed = model();
    changed.chosen.palette = Some(Palette::ColourBlind);
    changed.chosen.glyphs = Some(Glyphs::Ascii);
    changed.chosen.mouse = Some(Mouse::Off);
    changed.chosen.hidden[Panel::Trends as usize] = true;
    let threads = changed.lists.of_mut(List::Threads);
    (threads.toggled, threads.wanted, threads.filter) = (0b101, Some((1, Direction::Down)), "hot".to_owned());
    first.keep(&changed).unwrap();
    let second = SettingsFile::open(Some(path.clone()));
    let mut next = model();
    second.settings.arrange(&mut next);
    assert_eq!(next.chosen, changed.chosen);
    let threads = next.lists.of(List::Threads);
    assert_eq!((threads.toggled, threads.wanted, threads.filter.as_str()), (0b101, Some((1, Direction::Down)), ""));
    assert_eq!(second.keep(&next), Ok(()));
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["console.ron"], "written whole, and nothing beside it");
}

#[test]
fn an_unusable_settings_file_is_reported_in_one_sentence_and_defaults_apply() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("console.ron");
    for text in [
        "nonsense".to_owned(),
        "(theme: Some(\"pink\"))".to_owned(),
        "(colour: 1)".to_owned(),
        "(lists: { \"threads\": (sorted: Some((\"core\", \"sideways\"))) })".to_owned(),
        " ".repeat(super::BYTES_MAX + 1),
    ] {
        fs::write(&path, &text).unwrap();
        let settings = SettingsFile::open(Some(path.clone()));
        let said = settings.said.unwrap();
        assert!(said.contains("console.ron") && said.contains("repair or remove") && !said.contains('\n'), "{said}");
        assert_eq!(settings.settings, super::Settings::default());
    }
    assert!(SettingsFile::open(Some(dir.path().to_owned())).said.is_some(), "a directory");
    // Of another version of the console: what it does not know it passes over.
    fs::write(
        &path,
        "(hidden: [\"qubits\"], lists: { \"qubits\": (toggled: [\"colour\"]), \"threads\": (toggled: [\"fame\"]) })",
    )
    .unwrap();
    assert_eq!(SettingsFile::open(Some(path)).said, None);
}

#[test]
fn unwritable_settings_are_reported_and_no_file_is_left() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let mut changed = model();
    changed.chosen.mouse = Some(Mouse::Off);
    let said = SettingsFile::open(Some(dir.path().join("file/console.ron"))).keep(&changed).unwrap_err();
    assert!(said.contains("--no-settings"), "{said}");
    assert_eq!(SettingsFile::open(None).keep(&changed), Ok(()));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,80}") {
        let _ = parse(&text);
    }
}
