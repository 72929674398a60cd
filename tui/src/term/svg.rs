//! The screen as an SVG image with the console's colours, for `--svg` and for the documents.
//!
//! Pure: a model in, text out. Bounded by the screen's size.
//!
//! # Why every run of glyphs states its width
//! A reader's machine may lack the font, and fonts differ in the width of a block or a braille
//! cell. A run with a stated width has the terminal's position in any font.

use super::dump::{Glyph, glyphs};
use crate::model::Model;
use crate::theme::Colour;
use crate::theme::file::rgb;
use crate::view;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

/// Width of a cell, in units of the image.
const CELL_WIDTH: u32 = 9;
/// Height of a cell, in units of the image.
const CELL_HEIGHT: u32 = 19;
/// Distance from the top of a cell to the baseline.
const BASELINE: u32 = 15;
/// Margin around the screen.
const MARGIN: u32 = 12;

/// The image of the screen. Uses the theme's full colours, unless it has none.
pub fn picture(model: &Model) -> String {
    let mut coloured = model.clone();
    if coloured.theme.colour != Colour::None {
        coloured.theme.colour = Colour::True;
    }
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let mut buffer = Buffer::empty(area);
    view::draw(&coloured, area, &mut buffer);
    let (paper, ink) = if model.theme.is_light() { ("#ffffff", "#1e1e1e") } else { ("#14161a", "#d8d8d8") };
    let (width, height) =
        (u32::from(area.width) * CELL_WIDTH + 2 * MARGIN, u32::from(area.height) * CELL_HEIGHT + 2 * MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"15\" fill=\"{ink}\">\n\
         <title>The console of Pinwheel, view {}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{paper}\"/>\n",
        model.view.name()
    );
    for y in 0..area.height {
        for run in glyphs(&buffer, y).chunk_by(|a, b| Kind::of(a.cell) == Kind::of(b.cell)) {
            draw(run, u32::from(y), (paper, ink), &mut text);
        }
    }
    text.push_str("</svg>\n");
    text
}

/// Properties that all cells of a run share.
#[derive(PartialEq, Eq)]
struct Kind {
    colour: Color,
    modifier: Modifier,
    is_ascii: bool,
}

impl Kind {
    fn of(cell: &Cell) -> Kind {
        Kind { colour: cell.fg, modifier: cell.modifier, is_ascii: cell.symbol().is_ascii() }
    }
}

/// Where glyphs begin, and their width.
fn extent(glyphs: &[Glyph<'_>]) -> (u32, u32) {
    let columns: u32 = glyphs.iter().map(|glyph| u32::from(glyph.columns)).sum();
    let first = glyphs.first().map_or(0, |glyph| u32::from(glyph.column));
    (MARGIN + first * CELL_WIDTH, columns * CELL_WIDTH)
}

fn draw(run: &[Glyph<'_>], row: u32, (paper, ink): (&str, &str), text: &mut String) {
    let Some(Kind { colour, modifier, .. }) = run.first().map(|glyph| Kind::of(glyph.cell)) else { return };
    let is_reversed = modifier.contains(Modifier::REVERSED);
    let colour =
        rgb(colour).map_or_else(|| ink.to_owned(), |(red, green, blue)| format!("#{red:02x}{green:02x}{blue:02x}"));
    let y = MARGIN + row * CELL_HEIGHT;
    if is_reversed {
        let (x, width) = extent(run);
        let _always_fits =
            writeln!(text, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{CELL_HEIGHT}\" fill=\"{colour}\"/>");
    }
    let is_seen = |glyph: &Glyph<'_>| glyph.cell.symbol() != " ";
    let Some((from, to)) = run.iter().position(is_seen).zip(run.iter().rposition(is_seen)) else { return };
    let seen = &run[from..=to];
    let (x, width) = extent(seen);
    let _always_fits = write!(
        text,
        "<text x=\"{x}\" y=\"{}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"",
        y + BASELINE
    );
    let fill = if is_reversed { paper } else { &colour };
    if fill != ink {
        text.push_str(&format!(" fill=\"{fill}\""));
    }
    for (flag, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.6\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ] {
        if modifier.contains(flag) {
            text.push_str(attribute);
        }
    }
    let shown: String = seen.iter().map(|glyph| glyph.cell.symbol()).collect();
    let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _always_fits = writeln!(text, ">{escaped}</text>");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Buffer, Color, Modifier, Rect, draw, glyphs};
    use ratatui::style::Style;

    /// The run in the third column of the second row.
    fn drawn(symbols: &str, style: Style) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        let (end, _) = buffer.set_stringn(2, 0, symbols, 10, style);
        let mut row = glyphs(&buffer, 0);
        row.retain(|glyph| (2..end).contains(&glyph.column));
        let mut text = String::new();
        draw(&row, 1, ("#000000", "#eeeeee"), &mut text);
        text
    }

    #[test]
    fn a_run_stands_at_its_column_with_its_width_colour_and_weight() {
        let style = Style::new().fg(Color::Rgb(255, 0, 16)).add_modifier(Modifier::BOLD);
        let text = drawn(" a<b ", style);
        assert!(text.contains("x=\"39\" y=\"46\" textLength=\"27\""), "{text}");
        assert!(text.contains("fill=\"#ff0010\" font-weight=\"bold\">a&lt;b</text>"), "{text}");
    }

    #[test]
    fn a_reversed_run_is_paper_on_its_colour_and_blank_cells_draw_nothing() {
        let text = drawn("ab", Style::new().add_modifier(Modifier::REVERSED));
        assert!(text.contains("<rect x=\"30\" y=\"31\" width=\"18\" height=\"19\" fill=\"#eeeeee\"/>"), "{text}");
        assert!(text.contains("fill=\"#000000\">ab</text>"), "{text}");
        assert_eq!(drawn("   ", Style::new()), "");
    }

    #[test]
    fn a_wide_glyph_has_its_columns_and_a_mark_above_a_letter_none() {
        assert!(drawn("見る", Style::new()).contains("x=\"30\" y=\"46\" textLength=\"36\""));
        let marked = drawn("e\u{301}e\u{301}", Style::new().add_modifier(Modifier::REVERSED));
        assert!(marked.contains("width=\"18\"") && marked.contains("textLength=\"18\""), "{marked}");
    }

    #[test]
    fn a_colour_that_the_user_named_is_drawn_as_xterm_shows_it() {
        for (colour, fill) in [(Color::LightRed, "#ff0000"), (Color::Indexed(82), "#5fff00")] {
            let text = drawn("a", Style::new().fg(colour));
            assert!(text.contains(&format!("fill=\"{fill}\"")), "{text}");
        }
    }
}
