//! A theme of the user's own, in RON: `(base: "dark", warn: "#ffd700", bad: "light-red")`.
//!
//! Pure: text in, one colour for each tone and depth out. A tone that the file does not name has the
//! colour of `base`. A colour is `"#rrggbb"`, a number of the 256, or the name of one of the sixteen,
//! whose colour the terminal chooses.
//!
//! # Why a colour that cannot be read is refused
//!
//! A warning in dark blue on black is a warning that nobody sees. The background is the terminal's
//! and not known; `base` says whether it is dark or light.

use super::{Colour, Palette, Tone, hues};
use pinwheel_engine::quote::cut;
use ratatui::style::Color;
use serde::Deserialize;
use std::str::FromStr;

/// Largest theme file, bytes.
pub const BYTES_MAX: usize = 64 << 10;
/// Smallest contrast of a colour to its background, by WCAG 2.1. That standard asks 3 of large text
/// and of signs; here each tone also has a sign or a word.
pub const CONTRAST_MIN: f64 = 3.0;
/// Colour depths in the order of [`Own`].
const DEPTHS: [Colour; 3] = [Colour::True, Colour::Indexed, Colour::Sixteen];
/// Tones with a colour, in the order of [`hues::place`], and their names in a file.
const TONES: [(Tone, &str); 6] = [
    (Tone::Dim, "dim"),
    (Tone::Good, "good"),
    (Tone::Warn, "warn"),
    (Tone::Bad, "bad"),
    (Tone::Title, "title"),
    (Tone::Accent, "accent"),
];

/// The colours of a user's own theme: for each tone one in each depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// The palette that gives the colours which the file does not name.
    pub base: Palette,
    colours: [[Option<Color>; DEPTHS.len()]; TONES.len()],
}

impl Own {
    /// The colour of `tone`; `None`: the terminal's default.
    pub(super) fn of(&self, colour: Colour, tone: Tone) -> Option<Color> {
        let depth = DEPTHS.iter().position(|depth| *depth == colour)?;
        self.colours[hues::place(tone)?][depth]
    }
}

/// Why a theme file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("invalid theme file: {0}; it needs fields like (base: \"dark\", warn: \"#ffd700\")")]
    Shape(String),
    #[error("base '{0}' is not a theme; use dark, light, colour-blind or mono")]
    Base(String),
    #[error("{tone}: '{found}' is not a colour; write it like \"#ffd700\", \"light-red\" or \"220\"")]
    Colour { tone: &'static str, found: String },
    #[error(
        "{tone}: '{found}' cannot be read on a {background} background (contrast {contrast}, at least {CONTRAST_MIN}); \
         choose a {remedy} colour"
    )]
    Contrast { tone: &'static str, found: String, background: &'static str, contrast: String, remedy: &'static str },
    #[error("{0} and {1} have the same colour; good, warn and bad must differ")]
    Same(&'static str, &'static str),
}

/// The contents of the file.
#[derive(Deserialize)]
#[serde(rename = "theme", deny_unknown_fields)]
struct FileForm {
    base: String,
    dim: Option<String>,
    good: Option<String>,
    warn: Option<String>,
    bad: Option<String>,
    title: Option<String>,
    accent: Option<String>,
}

/// Reads a theme.
///
/// # Errors
/// The first error in the file.
pub fn read(text: &str) -> Result<Own, ThemeError> {
    if text.len() > BYTES_MAX {
        return Err(ThemeError::Shape(format!("{} bytes", text.len())));
    }
    let options = ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
    let form: FileForm =
        options.from_str(text).map_err(|error| ThemeError::Shape(cut(&error.to_string()).into_owned()))?;
    let base = Palette::ALL.into_iter().find(|palette| palette.name() == form.base && *palette != Palette::Own);
    let base = base.ok_or_else(|| ThemeError::Base(cut(&form.base).into_owned()))?;
    let mut own = Own { base, colours: TONES.map(|(tone, _)| DEPTHS.map(|depth| hues::of(base, depth, tone))) };
    let named = [form.dim, form.good, form.warn, form.bad, form.title, form.accent];
    for ((row, (_, tone)), text) in own.colours.iter_mut().zip(TONES).zip(named) {
        if let Some(text) = text {
            *row = colours(tone, &text, base)?.map(Some);
        }
    }
    for (a, b) in [(1, 2), (2, 3), (1, 3)] {
        if own.colours[a][0].is_some() && own.colours[a][0] == own.colours[b][0] {
            return Err(ThemeError::Same(TONES[a].1, TONES[b].1));
        }
    }
    Ok(own)
}

/// One colour in every depth.
fn colours(tone: &'static str, text: &str, base: Palette) -> Result<[Color; DEPTHS.len()], ThemeError> {
    let found = || cut(text).into_owned();
    let colour = Color::from_str(text).ok().filter(|colour| *colour != Color::Reset);
    let colour = colour.ok_or_else(|| ThemeError::Colour { tone, found: found() })?;
    let rgb = match colour {
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Indexed(index) if index >= 16 => indexed(index),
        // The terminal chooses these: each depth has them, and their contrast is not known.
        Color::Indexed(index) => return Ok([SIXTEEN[usize::from(index)].0; DEPTHS.len()]),
        named => return Ok([named; DEPTHS.len()]),
    };
    let (background, behind, remedy) = match base {
        Palette::Light => ("light", LIGHT_BACKGROUND, "darker"),
        _ => ("dark", DARK_BACKGROUND, "lighter"),
    };
    let contrast = contrast(rgb, behind);
    if contrast < CONTRAST_MIN {
        let contrast = format!("{contrast:.1}");
        return Err(ThemeError::Contrast { tone, found: found(), background, contrast, remedy });
    }
    let nearest = (16..=255).min_by_key(|index| distance(rgb, indexed(*index))).unwrap_or(u8::MAX);
    let sixteen = SIXTEEN.iter().min_by_key(|(_, other)| distance(rgb, *other)).map_or(Color::White, |found| found.0);
    let indexed = if matches!(colour, Color::Indexed(_)) { colour } else { Color::Indexed(nearest) };
    Ok([colour, indexed, sixteen])
}

/// The background that dark themes are made for.
pub(super) const DARK_BACKGROUND: (u8, u8, u8) = (24, 24, 24);
/// The background that the light theme is made for.
pub(super) const LIGHT_BACKGROUND: (u8, u8, u8) = (250, 250, 250);

/// The sixteen colours as xterm shows them.
const SIXTEEN: [(Color, (u8, u8, u8)); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];

/// The colour that xterm shows for an index from 16 on.
pub(super) fn indexed(index: u8) -> (u8, u8, u8) {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    if index >= 232 {
        let grey = 8 + 10 * (index - 232);
        return (grey, grey, grey);
    }
    let at = usize::from(index - 16);
    (STEPS[at / 36], STEPS[at / 6 % 6], STEPS[at % 6])
}

/// The colour as xterm shows it; `None`: the terminal's default.
pub fn rgb(colour: Color) -> Option<(u8, u8, u8)> {
    match colour {
        Color::Rgb(red, green, blue) => Some((red, green, blue)),
        Color::Indexed(index) if index >= 16 => Some(indexed(index)),
        named => SIXTEEN.iter().find(|(name, _)| *name == named).map(|(_, shown)| *shown),
    }
}

/// Square of the distance of two colours.
fn distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> u32 {
    [a.0.abs_diff(b.0), a.1.abs_diff(b.1), a.2.abs_diff(b.2)].map(|step| u32::from(step).pow(2)).iter().sum()
}

/// Relative luminance after WCAG 2.1.
fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let linear = |channel: u8| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

/// Contrast of two colours after WCAG 2.1, 1 to 21.
pub(super) fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}
