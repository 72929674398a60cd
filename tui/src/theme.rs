//! Themes: tones, their styles, and the ASCII substitutes of glyphs.
//!
//! Owns every colour and every glyph substitution of the console; on the console thread; less than
//! a hundred bytes. Does not read the environment: the caller passes the variables to
//! [`Theme::from_variables`]. The colours are in [`hues`], a user's own in [`mod@file`].
//!
//! # Why the theme drops colour itself
//!
//! Under `NO_COLOR` the terminal library writes an empty colour sequence in place of each colour,
//! and terminals read that as "all attributes off": bold and reverse would vanish with the colours.
//! So without colour no style here has any.

pub mod file;
mod hues;

use clap::ValueEnum;
use file::Own;
use ratatui::style::{Modifier, Style};

/// Meaning of a piece of text; the theme maps it to a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// Labels and units beside the numbers.
    Dim,
    /// In order.
    Good,
    /// Needs attention.
    Warn,
    /// In error.
    Bad,
    /// Section titles.
    Title,
    /// The most important numbers.
    Accent,
    /// The row or cell under the cursor.
    Selected,
    /// A badge of the console's state (FROZEN, STALE, DRAIN).
    Badge,
}

/// Number of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// Any of 16 million
    True,
    /// The 256 of an indexed palette
    #[value(name = "256")]
    Indexed,
    /// The sixteen of every terminal
    #[value(name = "16")]
    Sixteen,
    /// Bold, dim and reverse only
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Glyphs {
    /// Braille, blocks, arrows
    #[value(name = "utf-8")]
    Utf8,
    Ascii,
}

/// Choice of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Palette {
    /// For a dark background
    Dark,
    /// For a light background
    Light,
    /// Distinguishable without red and green; for a dark background
    ColourBlind,
    /// No colour, whatever the terminal could: bold, dim, reverse
    Mono,
    /// The user's own, from a file
    Own,
}

impl Palette {
    /// All palettes, in the order of the key that changes them.
    pub const ALL: [Palette; 5] = [Palette::Dark, Palette::Light, Palette::ColourBlind, Palette::Mono, Palette::Own];

    /// Name in options and in the command palette.
    pub fn name(self) -> &'static str {
        match self {
            Palette::Dark => "dark",
            Palette::Light => "light",
            Palette::ColourBlind => "colour-blind",
            Palette::Mono => "mono",
            Palette::Own => "own",
        }
    }
}

/// Palette, colour depth and glyph set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    pub palette: Palette,
    pub colour: Colour,
    pub glyphs: Glyphs,
    /// The colours of [`Palette::Own`]; `None`: there are none, and that palette is not offered.
    pub own: Option<Own>,
}

impl Theme {
    /// The palettes on offer, in the order of the key that changes them.
    pub fn palettes(self) -> impl Iterator<Item = Palette> + Clone {
        Palette::ALL.into_iter().filter(move |palette| *palette != Palette::Own || self.own.is_some())
    }

    /// The palette after this one in that order.
    pub fn next_palette(self) -> Palette {
        let after = self.palettes().skip_while(move |palette| *palette != self.palette).nth(1);
        after.unwrap_or(Palette::Dark)
    }

    /// Whether the palette is made for a light background.
    pub fn is_light(self) -> bool {
        let base = self.own.map_or(Palette::Dark, |own| own.base);
        self.palette == Palette::Light || (self.palette == Palette::Own && base == Palette::Light)
    }

    /// Chooses by the environment. `NO_COLOR` set and not empty: no colour. `COLORTERM` and `TERM`
    /// determine the number of colours. The first of `LC_ALL`, `LC_CTYPE`, `LANG` that is set must
    /// name UTF-8, else glyphs are ASCII.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Theme {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let colour = match set("COLORTERM").as_deref() {
            _ if set("NO_COLOR").is_some() || term == "dumb" => Colour::None,
            Some("truecolor" | "24bit") => Colour::True,
            _ if term.contains("direct") => Colour::True,
            _ if term.contains("256color") => Colour::Indexed,
            _ => Colour::Sixteen,
        };
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        Theme { palette: Palette::Dark, colour, glyphs: if utf8 { Glyphs::Utf8 } else { Glyphs::Ascii }, own: None }
    }

    /// Style of current text of this tone.
    pub fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        match tone {
            Tone::Plain => return plain,
            Tone::Selected => return plain.add_modifier(Modifier::REVERSED),
            Tone::Badge => return plain.add_modifier(Modifier::REVERSED.union(Modifier::BOLD)),
            _ => {}
        }
        let hue = match (self.palette, self.own) {
            (Palette::Own, Some(own)) => own.of(self.colour, tone),
            (palette, _) => hues::of(palette, self.colour, tone),
        };
        let coloured = hue.map(|hue| plain.fg(hue));
        match (coloured, tone) {
            (Some(style), Tone::Warn | Tone::Bad | Tone::Accent) => style.add_modifier(Modifier::BOLD),
            (Some(style), _) => style,
            (None, Tone::Dim) => plain.add_modifier(Modifier::DIM),
            (None, Tone::Warn | Tone::Accent | Tone::Title) => plain.add_modifier(Modifier::BOLD),
            (None, Tone::Bad) => plain.add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED)),
            (None, _) => plain,
        }
    }

    /// Style of text that is not current: tones for "good" and "now" are dimmed; warnings stay.
    pub fn style_aged(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain | Tone::Good | Tone::Accent => self.style(Tone::Dim),
            other => self.style(other),
        }
    }

    /// `glyph`, or its ASCII substitute.
    pub fn glyph(self, glyph: char) -> char {
        match self.glyphs {
            Glyphs::Utf8 => glyph,
            Glyphs::Ascii => ascii(glyph),
        }
    }
}

/// The ASCII substitute of a glyph, one column for one column; `?` for glyphs that the console
/// itself never draws.
pub fn ascii(glyph: char) -> char {
    match glyph {
        ' '..='~' => glyph,
        '─' | '━' => '-',
        '│' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' => '+',
        '▶' | '›' => '>',
        '·' | '⠀' => '.',
        '░' => ':',
        '▒' => '+',
        '▓' => '#',
        '█' => '@',
        '▁' => '_',
        '▂' => '.',
        '▃' => '-',
        '▄' => '=',
        '▅' => '+',
        '▆' => '*',
        '▇' => '%',
        '▮' => '#',
        '▯' => '.',
        '✖' => 'X',
        '▲' => '!',
        '●' => 'o',
        '○' => '.',
        '✔' => 'v',
        '◆' => '*',
        '…' => '~',
        'µ' => 'u',
        '–' | '—' => '-',
        '×' => 'x',
        '→' => '>',
        '↑' => '^',
        '↓' => 'v',
        '┃' => '|',
        '←' => '<',
        '≥' => '>',
        _ => '?',
    }
}

#[cfg(test)]
mod tests;
