//! The colours: for each palette and tone one of 16 million, the nearest legible one of 256, and
//! one of 16.
//!
//! Pure data. A test measures the contrast of each against its background.
//!
//! # Why blue and orange for the colour-blind
//!
//! After Okabe and Ito: sky blue, yellow, vermillion and reddish purple are distinct under
//! protanopia, deuteranopia and tritanopia. A glyph beside each colour has the same meaning.

use super::{Colour, Palette, Tone};
use ratatui::style::Color;

/// One colour in three colour depths.
pub(super) struct Hue {
    pub(super) rgb: (u8, u8, u8),
    pub(super) indexed: u8,
    pub(super) sixteen: Color,
}

const fn hue(rgb: (u8, u8, u8), indexed: u8, sixteen: Color) -> Hue {
    Hue { rgb, indexed, sixteen }
}

/// The hues of dim, good, warn, bad, title, accent.
pub(super) type Row = [Hue; 6];

pub(super) const DARK: Row = [
    hue((138, 138, 138), 245, Color::DarkGray),
    hue((95, 205, 95), 77, Color::Green),
    hue((255, 215, 0), 220, Color::Yellow),
    hue((255, 110, 110), 203, Color::LightRed),
    hue((90, 190, 210), 74, Color::Cyan),
    hue((135, 235, 255), 123, Color::LightCyan),
];
pub(super) const LIGHT: Row = [
    hue((98, 98, 98), 241, Color::DarkGray),
    hue((0, 105, 0), 22, Color::Green),
    hue((140, 75, 0), 94, Color::Magenta),
    hue((190, 0, 0), 124, Color::Red),
    hue((0, 90, 130), 24, Color::Blue),
    hue((0, 60, 190), 19, Color::Blue),
];
pub(super) const COLOUR_BLIND: Row = [
    hue((138, 138, 138), 245, Color::DarkGray),
    hue((86, 180, 233), 74, Color::LightBlue),
    hue((240, 228, 66), 227, Color::Yellow),
    hue((255, 128, 50), 208, Color::LightMagenta),
    hue((204, 150, 190), 176, Color::Gray),
    hue((235, 235, 235), 255, Color::White),
];

/// Position of a tone in a [`Row`]; `None`: the tone never has a colour.
pub(super) fn place(tone: Tone) -> Option<usize> {
    Some(match tone {
        Tone::Dim => 0,
        Tone::Good => 1,
        Tone::Warn => 2,
        Tone::Bad => 3,
        Tone::Title => 4,
        Tone::Accent => 5,
        Tone::Plain | Tone::Selected | Tone::Badge => return None,
    })
}

/// The colour of `tone` in a palette of the console's; `None`: the terminal's default.
pub(super) fn of(palette: Palette, colour: Colour, tone: Tone) -> Option<Color> {
    let row = match palette {
        Palette::Dark => &DARK,
        Palette::Light => &LIGHT,
        Palette::ColourBlind => &COLOUR_BLIND,
        Palette::Mono | Palette::Own => return None,
    };
    let hue = &row[place(tone)?];
    match colour {
        Colour::True => Some(Color::Rgb(hue.rgb.0, hue.rgb.1, hue.rgb.2)),
        Colour::Indexed => Some(Color::Indexed(hue.indexed)),
        Colour::Sixteen => Some(hue.sixteen),
        Colour::None => None,
    }
}
