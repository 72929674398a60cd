//! Looks: tones, their styles, and the plain-ASCII stand-ins for glyphs.
//!
//! Owns every colour and every glyph substitution of the console; runs on the console thread; holds three words. Never
//! reads the environment by itself: [`Theme::from_variables`] is handed what it needs. The colours are in [`hues`].
//!
//! # Why the theme drops colour itself
//!
//! Under `NO_COLOR` the terminal library writes an empty colour sequence in place of each colour, and terminals read
//! that as "all attributes off": bold and reverse would vanish with the colours. So without colour no style here has any.

mod hues;

use ratatui::style::{Modifier, Style};

/// What a piece of text means; the theme decides how that looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// Labels and units beside the numbers.
    Dim,
    /// As it should be.
    Good,
    /// Wants an eye on it.
    Warn,
    /// Wrong.
    Bad,
    /// Section titles.
    Title,
    /// Numbers that one looks for first.
    Accent,
    /// The row or cell under the cursor.
    Selected,
    /// A badge that must be seen (FROZEN, STALE, DRAIN).
    Badge,
}

/// How many colours are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Any of 16 million.
    True,
    /// The 256 of an indexed palette.
    Indexed,
    /// The sixteen colours that every terminal has.
    Sixteen,
    /// None at all; bold, dim and reverse only.
    None,
}

/// Which glyphs may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// Braille, blocks, arrows.
    Utf8,
    /// ASCII only.
    Ascii,
}

/// Which colours say what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// Told apart without telling red from green; for a dark background.
    ColourBlind,
    /// No colour, whatever the terminal could: bold, dim, reverse.
    Mono,
}

impl Palette {
    /// All, in the order in which the console goes through them.
    pub const ALL: [Palette; 4] = [Palette::Dark, Palette::Light, Palette::ColourBlind, Palette::Mono];

    /// As options and the palette of commands name it.
    pub fn name(self) -> &'static str {
        match self {
            Palette::Dark => "dark",
            Palette::Light => "light",
            Palette::ColourBlind => "colour-blind",
            Palette::Mono => "mono",
        }
    }

    /// The one after it.
    pub fn next(self) -> Palette {
        let here = Palette::ALL.iter().position(|palette| *palette == self).unwrap_or(0);
        Palette::ALL[(here + 1) % Palette::ALL.len()]
    }
}

/// How everything looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Which colours.
    pub palette: Palette,
    /// How many colours.
    pub colour: Colour,
    /// Glyphs or ASCII.
    pub glyphs: Glyphs,
}

impl Theme {
    /// Chooses by the environment: `NO_COLOR` set and not empty means no colour; `COLORTERM` and `TERM` say how many there
    /// are; the first of `LC_ALL`, `LC_CTYPE`, `LANG` that is set must name UTF-8, else glyphs are ASCII.
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
        Theme { palette: Palette::Dark, colour, glyphs: if utf8 { Glyphs::Utf8 } else { Glyphs::Ascii } }
    }

    /// The style of fresh text of this tone.
    pub fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        match tone {
            Tone::Plain => return plain,
            Tone::Selected => return plain.add_modifier(Modifier::REVERSED),
            Tone::Badge => return plain.add_modifier(Modifier::REVERSED.union(Modifier::BOLD)),
            _ => {}
        }
        let coloured = hues::of(self.palette, self.colour, tone).map(|hue| plain.fg(hue));
        match (coloured, tone) {
            (Some(style), Tone::Warn | Tone::Bad | Tone::Accent) => style.add_modifier(Modifier::BOLD),
            (Some(style), _) => style,
            (None, Tone::Dim) => plain.add_modifier(Modifier::DIM),
            (None, Tone::Warn | Tone::Accent | Tone::Title) => plain.add_modifier(Modifier::BOLD),
            (None, Tone::Bad) => plain.add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED)),
            (None, _) => plain,
        }
    }

    /// The style of text that is not fresh: what says "good" or "now" is dimmed; warnings stay.
    pub fn style_aged(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain | Tone::Good | Tone::Accent => self.style(Tone::Dim),
            other => self.style(other),
        }
    }

    /// `glyph` or its stand-in.
    pub fn glyph(self, glyph: char) -> char {
        match self.glyphs {
            Glyphs::Utf8 => glyph,
            Glyphs::Ascii => ascii(glyph),
        }
    }
}

/// The ASCII stand-in of a glyph, one column for one column; `?` for what the console never draws by itself.
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
