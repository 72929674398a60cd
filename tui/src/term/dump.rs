//! The screen as text: for the key that writes a file, and for `--snapshot`.
//!
//! Owns the file's name. Bounded by the screen's size.

use crate::model::Model;
use crate::theme::Colour;
use crate::view;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::text::Span;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// Most files of one second.
const SAME_MOMENT_MAX: u32 = 100;

/// The screen's text, one line per row, without colours.
pub fn text(model: &Model) -> String {
    let mut plain = model.clone();
    plain.theme.colour = Colour::None;
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let mut buffer = Buffer::empty(area);
    view::draw(&plain, area, &mut buffer);
    let mut text = String::new();
    for y in 0..area.height {
        let row: String = glyphs(&buffer, y).iter().map(|glyph| glyph.cell.symbol()).collect();
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// A glyph of a row, which may take several columns.
pub struct Glyph<'a> {
    pub column: u16,
    pub columns: u16,
    pub cell: &'a Cell,
}

/// The glyphs of row `y`: without the cells that a wide glyph before them covers.
pub fn glyphs(buffer: &Buffer, y: u16) -> Vec<Glyph<'_>> {
    let mut column = 0;
    let mut next = || {
        let cell = (column < buffer.area.width).then(|| &buffer[(column, y)])?;
        let width = if cell.symbol().is_ascii() { 1 } else { Span::raw(cell.symbol()).width().max(1) };
        let glyph = Glyph { column, columns: u16::try_from(width).unwrap_or(1), cell };
        column += glyph.columns;
        Some(glyph)
    };
    std::iter::from_fn(&mut next).collect()
}

/// Writes the screen to a new file in the working directory and returns its name, or an error in
/// one sentence.
pub fn write(model: &Model) -> Result<String, String> {
    let at_ns = model.picture().map_or(0, |picture| picture.snapshot.at_ns);
    let name = |copy: u32| {
        let more = if copy == 0 { String::new() } else { format!("-{copy}") };
        format!("pinwheel-{}-{:.1}s{more}.txt", model.view.name(), at_ns as f64 / 1e9)
    };
    for copy in 0..SAME_MOMENT_MAX {
        let name = name(copy);
        // Never overwrites a file.
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(&name, &error)),
            Ok(mut file) => {
                let written = file.write_all(text(model).as_bytes());
                if written.is_err() {
                    // Remove an incomplete file.
                    let _ = std::fs::remove_file(&name);
                }
                return written.map(|()| name.clone()).map_err(|error| refused(&name, &error));
            }
        }
    }
    Err(format!("there are {SAME_MOMENT_MAX} files like {} already; remove some", name(0)))
}

fn refused(name: &str, error: &std::io::Error) -> String {
    format!("cannot write {name} ({error}); start pinwheel in a writable directory")
}

#[cfg(test)]
mod tests {
    use super::glyphs;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn a_row_has_each_wide_glyph_once_in_its_columns() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        buffer.set_string(0, 0, "a見る\u{e9}e\u{301}b", Style::new());
        let row = glyphs(&buffer, 0);
        let text: String = row.iter().map(|glyph| glyph.cell.symbol()).collect();
        assert_eq!(text, "a見る\u{e9}e\u{301}b");
        let places: Vec<_> = row.iter().map(|glyph| (glyph.column, glyph.columns)).collect();
        assert_eq!(places, [(0, 1), (1, 2), (3, 2), (5, 1), (6, 1), (7, 1)]);
    }
}
