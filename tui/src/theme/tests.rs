//! Themes: choice by the environment, and contrast and distinctness of the tones.

#![allow(clippy::unwrap_used, reason = "harness")]

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
    Theme { palette, colour, glyphs: Glyphs::Utf8 }
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
    for palette in Palette::ALL {
        for colour in COLOURS {
            let theme = theme(palette, colour);
            let styles = [Tone::Good, Tone::Warn, Tone::Bad].map(|tone| theme.style(tone));
            assert!(styles[0] != styles[1] && styles[1] != styles[2] && styles[0] != styles[2], "{theme:?}");
        }
    }
}

#[test]
fn stale_values_never_have_the_good_tone() {
    for palette in Palette::ALL {
        for colour in COLOURS {
            let theme = theme(palette, colour);
            assert_eq!(theme.style_aged(Tone::Good), theme.style(Tone::Dim));
            assert_eq!(theme.style_aged(Tone::Bad), theme.style(Tone::Bad));
        }
    }
}

/// Relative luminance after WCAG 2.1.
fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let linear = |channel: u8| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The colour that xterm shows for an index from 16 on.
fn indexed(index: u8) -> (u8, u8, u8) {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    if index >= 232 {
        let grey = 8 + 10 * (index - 232);
        return (grey, grey, grey);
    }
    let at = usize::from(index - 16);
    (STEPS[at / 36], STEPS[at / 6 % 6], STEPS[at % 6])
}

#[test]
fn every_colour_can_be_read_on_its_background() {
    let rows: [(&Row, (u8, u8, u8)); 3] =
        [(&hues::DARK, (24, 24, 24)), (&hues::LIGHT, (250, 250, 250)), (&hues::COLOUR_BLIND, (24, 24, 24))];
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
    for palette in Palette::ALL {
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
