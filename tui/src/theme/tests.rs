//! Themes: choice by the environment, and contrast and distinctness of the tones.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::file::{self, DARK_BACKGROUND, LIGHT_BACKGROUND, contrast, indexed};
use super::hues::{self, Row};
use super::{Colour, Glyphs, Palette, Theme, Tone};
use ratatui::style::Color;
use std::fmt::Write;

const TONES: [Tone; 9] =
    [Tone::Plain, Tone::Dim, Tone::Good, Tone::Warn, Tone::Bad, Tone::Title, Tone::Accent, Tone::Selected, Tone::Badge];
const COLOURS: [Colour; 4] = [Colour::True, Colour::Indexed, Colour::Sixteen, Colour::None];

fn chosen(variables: &[(&str, &str)]) -> Theme {
    Theme::from_variables(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
}

fn theme(palette: Palette, colour: Colour) -> Theme {
    Theme { palette, colour, glyphs: Glyphs::Utf8, own: None }
}

#[test]
fn no_color_disables_colour_unless_it_is_empty() {
    assert_eq!(chosen(&[("NO_COLOR", "1"), ("LANG", "en_US.UTF-8"), ("COLORTERM", "truecolor")]).colour, Colour::None);
    assert_eq!(chosen(&[("NO_COLOR", ""), ("LANG", "en_US.UTF-8")]).colour, Colour::Sixteen);
}

#[test]
fn the_terminal_says_how_many_colours_there_are() {
    for (variables, expected) in [
        (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")][..], Colour::True),
        (&[("TERM", "screen-256color"), ("COLORTERM", "24bit")], Colour::True),
        (&[("TERM", "xterm-direct")], Colour::True),
        (&[("TERM", "tmux-256color")], Colour::Indexed),
        (&[("TERM", "linux")], Colour::Sixteen),
        (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], Colour::None),
    ] {
        assert_eq!(chosen(variables).colour, expected, "{variables:?}");
    }
}

#[test]
fn the_first_locale_variable_that_is_set_decides() {
    assert_eq!(chosen(&[("LANG", "de_DE.utf8")]).glyphs, Glyphs::Utf8);
    assert_eq!(chosen(&[("LC_ALL", "C"), ("LANG", "de_DE.utf8")]).glyphs, Glyphs::Ascii);
    assert_eq!(chosen(&[]).glyphs, Glyphs::Ascii);
}

#[test]
fn without_colour_no_tone_has_any_and_tones_that_matter_still_differ() {
    for theme in [theme(Palette::Light, Colour::None), theme(Palette::Mono, Colour::True)] {
        for tone in TONES {
            for style in [theme.style(tone), theme.style_aged(tone)] {
                assert!(style.fg.is_none_or(|c| c == Color::Reset) && style.bg.is_none_or(|c| c == Color::Reset));
            }
        }
        assert_ne!(theme.style(Tone::Good), theme.style(Tone::Warn));
        assert_ne!(theme.style(Tone::Warn), theme.style(Tone::Bad));
    }
}

#[test]
fn in_every_palette_and_depth_good_warn_and_bad_differ() {
    for palette in theme(Palette::Dark, Colour::True).palettes() {
        for colour in COLOURS {
            let theme = theme(palette, colour);
            let styles = [Tone::Good, Tone::Warn, Tone::Bad].map(|tone| theme.style(tone));
            assert!(styles[0] != styles[1] && styles[1] != styles[2] && styles[0] != styles[2], "{theme:?}");
        }
    }
}

#[test]
fn stale_values_never_have_the_good_tone() {
    for palette in theme(Palette::Dark, Colour::True).palettes() {
        for colour in COLOURS {
            let theme = theme(palette, colour);
            assert_eq!(theme.style_aged(Tone::Good), theme.style(Tone::Dim));
            assert_eq!(theme.style_aged(Tone::Bad), theme.style(Tone::Bad));
        }
    }
}

#[test]
fn every_colour_can_be_read_on_its_background() {
    let rows: [(&Row, (u8, u8, u8)); 3] =
        [(&hues::DARK, DARK_BACKGROUND), (&hues::LIGHT, LIGHT_BACKGROUND), (&hues::COLOUR_BLIND, DARK_BACKGROUND)];
    for (row, background) in rows {
        for hue in row {
            for colour in [hue.rgb, indexed(hue.indexed)] {
                let found = contrast(colour, background);
                assert!(found >= 4.5, "{colour:?} on {background:?}: {found:.1}");
            }
        }
    }
}

#[test]
fn the_table_of_styles_is_as_recorded() {
    let mut out = String::new();
    for palette in theme(Palette::Dark, Colour::True).palettes() {
        for colour in COLOURS {
            let _ = writeln!(out, "{} {colour:?}", palette.name());
            for tone in TONES {
                let style = theme(palette, colour).style(tone);
                let fg = style.fg.map_or_else(|| "-".to_owned(), |fg| format!("{fg:?}"));
                let _ = writeln!(out, "  {tone:?} {fg} {:?}", style.add_modifier);
            }
        }
    }
    insta::assert_snapshot!("styles", out);
}

fn own(text: &str, colour: Colour) -> Theme {
    let own = file::read(text).unwrap_or_else(|error| panic!("{error}"));
    Theme { palette: Palette::Own, own: Some(own), ..theme(Palette::Dark, colour) }
}

#[test]
fn a_theme_file_names_colours_and_its_base_gives_the_others() {
    let text = r##"(base: "light", warn: "#8a4b00", bad: "magenta", title: "24")"##;
    for (colour, warn) in
        [(Colour::True, Color::Rgb(138, 75, 0)), (Colour::Indexed, Color::Indexed(94)), (Colour::Sixteen, Color::Red)]
    {
        let own = own(text, colour);
        assert_eq!(own.style(Tone::Warn).fg, Some(warn), "{colour:?}");
        assert_eq!(own.style(Tone::Bad).fg, Some(Color::Magenta));
        assert_eq!(own.style(Tone::Good), theme(Palette::Light, colour).style(Tone::Good));
        assert!(own.is_light());
    }
    assert_eq!(own(text, Colour::Indexed).style(Tone::Title).fg, Some(Color::Indexed(24)));
    assert_eq!(own(text, Colour::None).style(Tone::Warn), theme(Palette::Dark, Colour::None).style(Tone::Warn));
    assert!(!own(r#"(base: "mono", good: "green")"#, Colour::True).is_light());
}

#[test]
fn a_users_own_theme_is_offered_only_if_there_is_one() {
    let order = |mut theme: Theme| {
        std::iter::repeat_with(|| {
            theme.palette = theme.next_palette();
            theme.palette.name()
        })
        .take(5)
        .collect::<Vec<_>>()
    };
    assert_eq!(order(theme(Palette::Mono, Colour::True)), ["dark", "light", "colour-blind", "mono", "dark"]);
    let own = own(r#"(base: "dark")"#, Colour::True);
    assert_eq!(order(own), ["dark", "light", "colour-blind", "mono", "own"]);
}

#[test]
fn a_bad_theme_file_is_refused_with_its_place() {
    let long = format!("(base: \"{}\")", "x".repeat(60_000));
    for (text, expected) in [
        (r##"(base: "dark", wran: "#ffffff")"##, "1:16-1:20: Unexpected field named `wran` in `theme`"),
        (r#"(base: "dark", wran: "red")"#, "wran"),
        ("nonsense", "1:1"),
        ("", "1:1"),
        (r#"(warn: "red")"#, "base"),
        (r#"(base: "solarized")"#, "base 'solarized' is not a theme; use dark, light, colour-blind or mono"),
        (r#"(base: "own")"#, "base 'own'"),
        (r##"(base: "dark", warn: "#12345")"##, "warn: '#12345' is not a colour"),
        (r#"(base: "dark", warn: "reset")"#, "warn: 'reset' is not a colour"),
        (r#"(base: "dark", warn: 7)"#, "1:22"),
        (r##"(base: "dark", bad: "#200000")"##, "bad: '#200000' cannot be read on a dark background (contrast 1."),
        (r#"(base: "light", bad: "231")"#, "choose a darker colour"),
        (r#"(base: "dark", warn: "red", bad: "red")"#, "warn and bad have the same colour"),
        (long.as_str(), "bytes omitted"),
        ("\u{1b}[2J", "1:1"),
    ] {
        let said = file::read(text).unwrap_err().to_string();
        assert!(said.contains(expected) && said.len() < 1_000, "{}: {said}", &text[..text.len().min(60)]);
    }
}

proptest::proptest! {
    #[test]
    fn no_theme_file_makes_it_panic_and_every_accepted_colour_can_be_read(
        base in "dark|light|colour-blind|mono|x", warn in "#[0-9a-f]{6}|[a-z-]{3,9}|[0-9]{1,3}|\\PC{0,9}",
    ) {
        let Ok(own) = file::read(&format!("(base: {base:?}, warn: {warn:?})")) else { return Ok(()) };
        let theme = Theme { palette: Palette::Own, own: Some(own), ..theme(Palette::Dark, Colour::True) };
        if let Some(Color::Rgb(r, g, b)) = theme.style(Tone::Warn).fg {
            let behind = if theme.is_light() { LIGHT_BACKGROUND } else { DARK_BACKGROUND };
            proptest::prop_assert!(contrast((r, g, b), behind) >= file::CONTRAST_MIN);
        }
    }
}
