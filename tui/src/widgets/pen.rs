//! The pen: text straight into the buffer, clipped, themed and aged.
//!
//! Borrows the frame's buffer for one panel. Never writes outside its area, never allocates for text of single columns.
//!
//! # Why not the library's widgets
//!
//! Written straight into the buffer, a map of 1,024 slots costs a quarter of what a canvas does and no allocation, and one
//! place decides about colour, ASCII and staleness. Nearly all that a console says takes one column a character, so that
//! text goes cell by cell; only what may not ([`is_narrow`]) pays for finding clusters and their widths, which costs several
//! times as much.

use crate::model::target::{Target, Targets};
use crate::theme::{Glyphs, Theme, Tone};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Whether a panel shows the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It does.
    Fresh,
    /// It shows the past: nothing may look as if it were now.
    Aged,
}

/// Draws in one area; coordinates are relative to it.
pub struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    theme: Theme,
    freshness: Freshness,
    /// Who wants to know what the cells stand for.
    targets: Option<&'a Targets>,
}

impl<'a> Pen<'a> {
    /// A pen for `area` of `buffer`.
    pub fn new(buffer: &'a mut Buffer, area: Rect, theme: Theme, freshness: Freshness) -> Pen<'a> {
        let area = area.intersection(buffer.area);
        Pen { buffer, area, theme, freshness, targets: None }
    }

    /// The same, and `targets` hears what the cells stand for.
    pub fn telling(self, targets: &'a Targets) -> Pen<'a> {
        Pen { targets: Some(targets), ..self }
    }

    /// The `width` cells from (`x`, `y`) on stand for `target`.
    pub fn target(&self, x: u16, y: u16, width: u16, target: Target) {
        if let Some(targets) = self.targets.filter(|_| x < self.area.width && y < self.area.height) {
            let cells = Rect::new(self.area.x + x, self.area.y + y, width, 1).intersection(self.area);
            targets.tell(cells, Some(target));
        }
    }

    /// The whole row `y` stands for `target`.
    pub fn target_row(&self, y: u16, target: Target) {
        self.target(0, y, self.area.width, target);
    }

    /// The whole area stands for `target`, or for nothing.
    pub fn target_all(&self, target: Option<Target>) {
        if let Some(targets) = self.targets {
            targets.tell(self.area, target);
        }
    }

    /// Nothing drawn so far can be clicked any more.
    pub fn cover(&self) {
        if let Some(targets) = self.targets {
            targets.cover();
        }
    }

    /// Columns.
    pub fn width(&self) -> u16 {
        self.area.width
    }

    /// Rows.
    pub fn height(&self) -> u16 {
        self.area.height
    }

    /// A pen for a part of this one's area, clipped.
    pub fn part(&mut self, x: u16, y: u16, width: u16, height: u16) -> Pen<'_> {
        let x = self.area.x.saturating_add(x.min(self.area.width));
        let y = self.area.y.saturating_add(y.min(self.area.height));
        let part = Rect::new(x, y, width, height).intersection(self.area);
        Pen { buffer: self.buffer, area: part, theme: self.theme, freshness: self.freshness, targets: self.targets }
    }

    /// The rows from `top` to `bottom`.
    pub fn rows(&mut self, top: u16, bottom: u16) -> Pen<'_> {
        let width = self.width();
        self.part(0, top, width, bottom.saturating_sub(top))
    }

    /// The same area, always fresh (what the operator does is always now).
    pub fn fresh(&mut self) -> Pen<'_> {
        Pen {
            buffer: self.buffer,
            area: self.area,
            theme: self.theme,
            freshness: Freshness::Fresh,
            targets: self.targets,
        }
    }

    fn style(&self, tone: Tone) -> Style {
        match self.freshness {
            Freshness::Fresh => self.theme.style(tone),
            Freshness::Aged => self.theme.style_aged(tone),
        }
    }

    /// Writes `text` at (`x`, `y`); returns the column after it.
    pub fn put(&mut self, x: u16, y: u16, text: &str, tone: Tone) -> u16 {
        if x >= self.area.width || y >= self.area.height {
            return x;
        }
        let style = self.style(tone);
        let theme = self.theme;
        let (column, row) = (self.area.x + x, self.area.y + y);
        let room = usize::from(self.area.width - x);
        let is_mapped = |glyph: char| theme.glyphs == Glyphs::Ascii && !glyph.is_ascii();
        if !text.chars().all(|glyph| is_narrow(glyph) || is_mapped(glyph)) {
            let text: String =
                text.chars().map(|glyph| if is_mapped(glyph) { theme.glyph(glyph) } else { glyph }).collect();
            let (end, _) = self.buffer.set_stringn(column, row, text, room, style);
            return end - self.area.x;
        }
        let mut written = 0;
        for (cell, glyph) in self.cells(column, row, room).iter_mut().zip(text.chars()) {
            cell.set_char(theme.glyph(glyph)).set_style(style);
            written += 1;
        }
        x + written
    }

    /// The same; what does not fit says so.
    pub fn put_cut(&mut self, x: u16, y: u16, text: &str, tone: Tone) -> u16 {
        let end = self.put(x, y, text, tone);
        if usize::from(end.saturating_sub(x)) < text.chars().count() && end > x {
            self.dot(end - 1, y, '…', Tone::Dim);
        }
        end
    }

    /// The `room` cells of the buffer from that place of it on; the place is in the area.
    fn cells(&mut self, column: u16, row: u16, room: usize) -> &mut [Cell] {
        let first = self.buffer.index_of(column, row);
        &mut self.buffer.content[first..first + room]
    }

    /// Writes `glyph` from (`x`, `y`) to column `end`.
    pub fn line(&mut self, x: u16, end: u16, y: u16, glyph: char, tone: Tone) {
        let end = end.min(self.area.width);
        if x >= end || y >= self.area.height {
            return;
        }
        let (style, glyph) = (self.style(tone), self.theme.glyph(glyph));
        for cell in self.cells(self.area.x + x, self.area.y + y, usize::from(end - x)) {
            cell.set_char(glyph).set_style(style);
        }
    }

    /// Writes one glyph.
    pub fn dot(&mut self, x: u16, y: u16, glyph: char, tone: Tone) {
        if x >= self.area.width || y >= self.area.height {
            return;
        }
        let style = self.style(tone);
        let glyph = self.theme.glyph(glyph);
        self.buffer[(self.area.x + x, self.area.y + y)].set_char(glyph).set_style(style);
    }

    /// Writes `text` so that it ends before column `right`; nothing if it would begin before `left`.
    pub fn put_right(&mut self, left: u16, right: u16, y: u16, text: &str, tone: Tone) -> u16 {
        let length = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        match right.checked_sub(length) {
            Some(x) if x >= left => {
                self.put(x, y, text, tone);
                x
            }
            _ => right,
        }
    }

    /// A section's rule with its title.
    pub fn rule(&mut self, y: u16, title: &str) -> u16 {
        self.line(0, self.width(), y, '─', Tone::Dim);
        let end = self.put(1, y, &format!(" {title} "), Tone::Title);
        end + 1
    }

    /// Blanks the area (under an overlay).
    pub fn blank(&mut self) {
        for y in self.area.top()..self.area.bottom() {
            for x in self.area.left()..self.area.right() {
                self.buffer[(x, y)].reset();
            }
        }
    }

    /// Frames the area and returns the pen of its inside.
    pub fn framed(&mut self, title: &str) -> Pen<'_> {
        let (width, height) = (self.width(), self.height());
        if width < 2 || height < 2 {
            return self.part(0, 0, width, height);
        }
        self.line(0, width, 0, '─', Tone::Title);
        self.line(0, width, height - 1, '─', Tone::Title);
        for y in 0..height {
            self.dot(0, y, '│', Tone::Title);
            self.dot(width - 1, y, '│', Tone::Title);
        }
        for (x, y, corner) in [(0, 0, '┌'), (width - 1, 0, '┐'), (0, height - 1, '└'), (width - 1, height - 1, '┘')]
        {
            self.dot(x, y, corner, Tone::Title);
        }
        self.part(1, 0, width - 2, 1).put(1, 0, &format!(" {title} "), Tone::Badge);
        self.part(1, 1, width - 2, height - 2)
    }

    /// Marks a row as the cursor's.
    pub fn highlight(&mut self, y: u16) {
        if y >= self.area.height {
            return;
        }
        let style = self.theme.style(Tone::Selected);
        self.buffer.set_style(Rect::new(self.area.x, self.area.y + y, self.area.width, 1), style);
    }

    /// The theme.
    pub fn theme(&self) -> Theme {
        self.theme
    }
}

/// Whether a character certainly takes one column, whatever stands beside it: ASCII, and the glyphs of the console's own
/// (lines, blocks, braille, marks, arrows). Others may, and are measured.
fn is_narrow(glyph: char) -> bool {
    matches!(glyph,
        ' '..='~' | '·' | 'µ' | '×' | '–' | '—' | '…' | '›' | '←'..='↓' | '≥' | '─'..='◆' | '●' | '○' | '✔' | '✖'
        | '\u{2800}'..='\u{28ff}')
}

#[cfg(test)]
mod tests {
    use super::{Freshness, Pen, is_narrow};
    use crate::theme::{Colour, Glyphs, Palette, Theme, Tone};
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    const THEME: Theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8 };

    /// The row that the pen writes into nine columns of eleven, and where it says that it ended.
    fn written(x: u16, text: &str) -> (String, u16) {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 11, 1));
        let end = Pen::new(&mut buffer, Rect::new(1, 0, 9, 1), THEME, Freshness::Fresh).put(x, 0, text, Tone::Good);
        ((0..11).map(|x| buffer[(x, 0)].symbol()).collect(), end)
    }

    #[test]
    fn what_is_written_cell_by_cell_is_what_the_library_writes() {
        for text in
            ["", "a", "12.5µs ▮▮▯", "longer than nine", "⠿ ─▶ ✔ ✖ ● ≥", "dørk", "e\u{301}a", "見る ok", "a\u{7}b"]
        {
            for x in [0, 4, 8, 9] {
                let mut buffer = Buffer::empty(Rect::new(0, 0, 11, 1));
                let room = usize::from(9u16.saturating_sub(x));
                let (end, _) = buffer.set_stringn(1 + x, 0, text, room, THEME.style(Tone::Good));
                let row: String = (0..11).map(|x| buffer[(x, 0)].symbol()).collect();
                assert_eq!(written(x, text), (row, end - 1), "{text:?} at {x}");
            }
        }
    }

    #[test]
    fn every_narrow_character_takes_one_column() {
        for glyph in ('\u{0}'..='\u{ffff}').filter(|glyph| is_narrow(*glyph)) {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
            let (end, _) = buffer.set_stringn(0, 0, glyph.to_string(), 4, THEME.style(Tone::Plain));
            assert_eq!(end, 1, "{glyph:?}");
        }
    }
}
