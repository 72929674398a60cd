//! Looks: tones, their styles, and the plain-ASCII stand-ins for glyphs.
//!
//! Owns every colour and every glyph substitution of the console; runs on the console thread; holds two words. Never
//! reads the environment by itself: [`Theme::from_variables`] is handed what it needs.
//!
//! # Why the theme drops colour itself
//!
//! Under `NO_COLOR` the terminal library writes an empty colour sequence in place of each colour, and terminals read
//! that as "all attributes off": bold and reverse would vanish with the colours. So without colour no style here has any.

use ratatui::style::{Color, Modifier, Style};

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

/// Whether colours are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
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

/// How everything looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Colours or none.
    pub colour: Colour,
    /// Glyphs or ASCII.
    pub glyphs: Glyphs,
}

impl Theme {
    /// Chooses by the environment: `NO_COLOR` set and not empty means no colour; the first of `LC_ALL`, `LC_CTYPE`,
    /// `LANG` that is set must name UTF-8, else glyphs are ASCII.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Theme {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let colour = match set("NO_COLOR") {
            Some(_) => Colour::None,
            None if set("TERM").as_deref() == Some("dumb") => Colour::None,
            None => Colour::Sixteen,
        };
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        Theme { colour, glyphs: if utf8 { Glyphs::Utf8 } else { Glyphs::Ascii } }
    }

    /// The style of fresh text of this tone.
    pub fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        match (self.colour, tone) {
            (_, Tone::Plain) => plain,
            (_, Tone::Selected) => plain.add_modifier(Modifier::REVERSED),
            (_, Tone::Badge) => plain.add_modifier(Modifier::REVERSED.union(Modifier::BOLD)),
            (Colour::Sixteen, Tone::Dim) => plain.fg(Color::DarkGray),
            (Colour::Sixteen, Tone::Good) => plain.fg(Color::Green),
            (Colour::Sixteen, Tone::Warn) => plain.fg(Color::Yellow).add_modifier(Modifier::BOLD),
            (Colour::Sixteen, Tone::Bad) => plain.fg(Color::LightRed).add_modifier(Modifier::BOLD),
            (Colour::Sixteen, Tone::Title) => plain.fg(Color::Cyan),
            (Colour::Sixteen, Tone::Accent) => plain.fg(Color::LightCyan).add_modifier(Modifier::BOLD),
            (Colour::None, Tone::Dim) => plain.add_modifier(Modifier::DIM),
            (Colour::None, Tone::Good) => plain,
            (Colour::None, Tone::Warn | Tone::Accent | Tone::Title) => plain.add_modifier(Modifier::BOLD),
            (Colour::None, Tone::Bad) => plain.add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED)),
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
        '←' => '<',
        '≥' => '>',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::{Colour, Glyphs, Theme, Tone};
    use ratatui::style::Color;

    fn chosen(variables: &[(&str, &str)]) -> Theme {
        Theme::from_variables(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn no_color_means_none_and_an_empty_one_does_not_count() {
        assert_eq!(chosen(&[("NO_COLOR", "1"), ("LANG", "en_US.UTF-8")]).colour, Colour::None);
        assert_eq!(chosen(&[("NO_COLOR", ""), ("LANG", "en_US.UTF-8")]).colour, Colour::Sixteen);
    }

    #[test]
    fn the_first_locale_variable_that_is_set_decides() {
        assert_eq!(chosen(&[("LANG", "de_DE.utf8")]).glyphs, Glyphs::Utf8);
        assert_eq!(chosen(&[("LC_ALL", "C"), ("LANG", "de_DE.utf8")]).glyphs, Glyphs::Ascii);
        assert_eq!(chosen(&[]).glyphs, Glyphs::Ascii);
    }

    #[test]
    fn without_colour_no_tone_has_any_and_tones_that_matter_still_differ() {
        let theme = Theme { colour: Colour::None, glyphs: Glyphs::Utf8 };
        for tone in [Tone::Plain, Tone::Dim, Tone::Good, Tone::Warn, Tone::Bad, Tone::Title, Tone::Accent, Tone::Badge]
        {
            for style in [theme.style(tone), theme.style_aged(tone)] {
                assert!(style.fg.is_none_or(|c| c == Color::Reset) && style.bg.is_none_or(|c| c == Color::Reset));
            }
        }
        assert_ne!(theme.style(Tone::Good), theme.style(Tone::Warn));
        assert_ne!(theme.style(Tone::Warn), theme.style(Tone::Bad));
    }

    #[test]
    fn aged_text_never_looks_good() {
        for colour in [Colour::Sixteen, Colour::None] {
            let theme = Theme { colour, glyphs: Glyphs::Utf8 };
            assert_eq!(theme.style_aged(Tone::Good), theme.style(Tone::Dim));
            assert_eq!(theme.style_aged(Tone::Bad), theme.style(Tone::Bad));
        }
    }
}
