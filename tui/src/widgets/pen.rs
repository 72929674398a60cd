//! The pen: writes text directly into the buffer, clipped, themed and aged.
//!
//! Borrows the frame's buffer for one panel. Never writes outside its area, never allocates for
//! text of single-column characters.
//!
//! # Why not the library's widgets
//!
//! Drawn directly into the buffer, a map of 1,024 slots takes a quarter of a canvas's time and no
//! allocation, and one place handles colour, ASCII and staleness. Nearly all of the console's
//! characters take one column each, and such text is written cell by cell. Only other text
//! ([`is_narrow`]) needs its clusters and widths measured, which takes several times as long.

use crate::model::target::{Target, Targets};
use crate::theme::{Glyphs, Theme, Tone};
use crate::widgets::wrap;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

/// Whether a panel shows current data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    /// It shows the past: its text must not look current.
    Aged,
}

/// Indent of the rows of a text after its first, columns.
const HANGING: u16 = 2;
/// Fewest columns for a cut word; with fewer it is unreadable.
const WORD: u16 = 6;

/// Columns from `x` up to the last but one of `width`.
fn room_beside(width: u16, x: u16) -> usize {
    usize::from(width.saturating_sub(x.saturating_add(1)))
}

/// Draws in one area; coordinates are relative to it.
pub struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    theme: Theme,
    freshness: Freshness,
    /// Receives the targets of the cells.
    targets: Option<&'a Targets>,
}

impl<'a> Pen<'a> {
    pub fn new(buffer: &'a mut Buffer, area: Rect, theme: Theme, freshness: Freshness) -> Pen<'a> {
        let area = area.intersection(buffer.area);
        Pen { buffer, area, theme, freshness, targets: None }
    }

    /// The same pen; it also records the targets of cells in `targets`.
    pub fn with_targets(self, targets: &'a Targets) -> Pen<'a> {
        Pen { targets: Some(targets), ..self }
    }

    /// Assigns `target` to the `width` cells from (`x`, `y`) on.
    pub fn target(&self, x: u16, y: u16, width: u16, target: Target) {
        if let Some(targets) = self.targets.filter(|_| x < self.area.width && y < self.area.height) {
            let cells = Rect::new(self.area.x + x, self.area.y + y, width, 1).intersection(self.area);
            targets.add(cells, Some(target));
        }
    }

    /// Assigns `target` to the whole row `y`.
    pub fn target_row(&self, y: u16, target: Target) {
        self.target(0, y, self.area.width, target);
    }

    /// Assigns `target` to the whole area; `None`: not clickable.
    pub fn target_all(&self, target: Option<Target>) {
        if let Some(targets) = self.targets {
            targets.add(self.area, target);
        }
    }

    /// Makes everything drawn so far unclickable.
    pub fn cover(&self) {
        if let Some(targets) = self.targets {
            targets.cover();
        }
    }

    pub fn width(&self) -> u16 {
        self.area.width
    }

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

    pub fn rows(&mut self, top: u16, bottom: u16) -> Pen<'_> {
        let width = self.width();
        self.part(0, top, width, bottom.saturating_sub(top))
    }

    /// The same area, always current (for the operator's own input).
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

    /// Writes `text` at (`x`, `y`); returns the column after it. Text that is cut ends with an
    /// ellipsis in the last column of the area, even if none of it has room.
    pub fn put(&mut self, x: u16, y: u16, text: &str, tone: Tone) -> u16 {
        if y >= self.area.height {
            return x;
        }
        if x >= self.area.width {
            self.mark_cut(y, text);
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
            let (end, _) = self.buffer.set_stringn(column, row, &text, room, style);
            if Span::raw(&text).width() > room {
                self.mark_cut(y, &text);
            }
            return end - self.area.x;
        }
        let mut glyphs = text.chars();
        let mut written = 0;
        for (cell, glyph) in self.cells(column, row, room).iter_mut().zip(glyphs.by_ref()) {
            cell.set_char(theme.glyph(glyph)).set_style(style);
            written += 1;
        }
        self.mark_cut(y, glyphs.as_str());
        x + written
    }

    /// Puts an ellipsis at the end of row `y` if `hidden`, the text cut there, is not blank.
    pub fn mark_cut(&mut self, y: u16, hidden: &str) {
        if !hidden.trim_end().is_empty() && self.area.width > 0 {
            self.dot(self.area.width - 1, y, '…', Tone::Dim);
        }
    }

    /// Writes `text` from (`x`, `y`) on over as many rows as it needs, up to the column before the
    /// last; further rows are indented by two columns. Returns the row after it. Text without a row
    /// is marked by an ellipsis.
    pub fn put_wrapped(&mut self, x: u16, y: u16, text: &str, tone: Tone) -> u16 {
        let height = self.area.height;
        if y >= height {
            self.mark_cut(height.saturating_sub(1), text);
            return y.saturating_add(1);
        }
        let mut rows = wrap::rows(text, room_beside(self.area.width, x), room_beside(self.area.width, x + HANGING));
        let (mut at, mut y) = (x, y);
        loop {
            // If the text is longer than the area, the last row shows the cut.
            let row = if y + 1 == height { rows.take_rest() } else { rows.next() };
            self.put(at, y, row.unwrap_or(""), tone);
            y += 1;
            if rows.is_over() {
                return y;
            }
            at = x + HANGING;
        }
    }

    /// Rows that [`Pen::put_wrapped`] takes for `text` in an area of `width` columns.
    pub fn rows_wrapped(width: u16, x: u16, text: &str) -> u16 {
        let rows = wrap::rows(text, room_beside(width, x), room_beside(width, x + HANGING)).count();
        u16::try_from(rows.max(1)).unwrap_or(u16::MAX)
    }

    /// The `room` cells of the buffer from a position on; the position is in the area.
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

    pub fn dot(&mut self, x: u16, y: u16, glyph: char, tone: Tone) {
        if x >= self.area.width || y >= self.area.height {
            return;
        }
        let style = self.style(tone);
        let glyph = self.theme.glyph(glyph);
        self.buffer[(self.area.x + x, self.area.y + y)].set_char(glyph).set_style(style);
    }

    /// Writes `text` so that it ends before column `right`, and begins at `left` or later. Cut text
    /// is marked; without room for a word nothing is written. Returns its first column.
    pub fn put_right(&mut self, left: u16, right: u16, y: u16, text: &str, tone: Tone) -> u16 {
        let room = right.saturating_sub(left);
        let length = u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX);
        if length > room && room < WORD {
            return right;
        }
        let x = right - length.min(room);
        self.part(x, y, right - x, 1).put(0, 0, text, tone);
        x
    }

    /// Draws a section's rule with its title.
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

    /// Marks a row as selected.
    pub fn highlight(&mut self, y: u16) {
        if y >= self.area.height {
            return;
        }
        let style = self.theme.style(Tone::Selected);
        self.buffer.set_style(Rect::new(self.area.x, self.area.y + y, self.area.width, 1), style);
    }

    pub fn theme(&self) -> Theme {
        self.theme
    }
}

/// Whether a character takes one column beside any other: ASCII, and the console's own glyphs
/// (lines, blocks, braille, marks, arrows). Other characters are measured.
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

    const THEME: Theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };

    /// The row that the pen writes into nine columns of eleven, and the returned end column.
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
                if ratatui::text::Span::raw(text).width() > room {
                    buffer[(9, 0)].set_symbol("…");
                }
                let row: String = (0..11).map(|x| buffer[(x, 0)].symbol()).collect();
                assert_eq!(written(x, text), (row, end - 1), "{text:?} at {x}");
            }
        }
    }

    #[test]
    fn what_is_cut_says_so_and_what_is_wrapped_is_not_cut() {
        assert_eq!(written(0, "eight and").0, " eight and ");
        assert_eq!(written(0, "eight  and").0, " eight  a… ");
        assert_eq!(written(0, "eight and  ").0, " eight and ", "blanks are not missed");
        assert_eq!(written(9, "nothing has room").0, "         … ");
        for (height, rows) in [(3, ["one two", "  three", "  four"]), (2, ["one two", "  three…", ""])] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 3));
            let mut pen = Pen::new(&mut buffer, Rect::new(0, 0, 8, height), THEME, Freshness::Fresh);
            assert_eq!(pen.put_wrapped(0, 0, "one two three four", Tone::Plain), height);
            let row = |y| (0..8).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
            assert_eq!([row(0), row(1), row(2)], rows);
        }
        assert_eq!(Pen::rows_wrapped(8, 0, "one two three four"), 3);
    }

    #[test]
    fn wide_letters_at_the_right_have_their_columns() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 1));
        let x = Pen::new(&mut buffer, Rect::new(0, 0, 10, 1), THEME, Freshness::Fresh).put_right(
            0,
            10,
            0,
            "見る a",
            Tone::Plain,
        );
        let row: String = (0..10).map(|x| buffer[(x, 0)].symbol()).collect();
        assert_eq!((x, row.as_str()), (4, "    見 る  a"));
    }

    #[test]
    fn control_characters_of_a_text_reach_no_cell() {
        let text = "a\u{1b}[2Jb\u{9b}2Jc\u{7f}\r\u{202e}d\u{2066}e\u{200f} ▮\u{1b}";
        for glyphs in [Glyphs::Utf8, Glyphs::Ascii] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 4));
            let theme = Theme { glyphs, ..THEME };
            let mut pen = Pen::new(&mut buffer, Rect::new(0, 0, 40, 4), theme, Freshness::Fresh);
            pen.put(0, 0, text, Tone::Plain);
            pen.put_wrapped(0, 1, text, Tone::Plain);
            pen.rule(3, text);
            let drawn: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
            let turns =
                |found| matches!(found, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            assert!(drawn.contains('d') && !drawn.chars().any(|found| found.is_control() || turns(found)), "{drawn:?}");
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
