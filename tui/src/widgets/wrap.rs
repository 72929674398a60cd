//! Wraps text into rows: breaks at blanks, and inside a word longer than a row.
//!
//! Pure; borrows the text and allocates nothing. The only code that breaks lines: dialogs, details
//! and help use it.

use ratatui::text::Span;

/// Fewest columns of a row; narrower text is unreadable.
const COLUMNS_MIN: usize = 4;

/// The rows of a text.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    rest: &'a str,
    /// Columns of the next row.
    next: usize,
    /// Columns of the rows after it.
    others: usize,
}

/// `text` in rows of at most `first` and then `others` columns; an empty text has no rows.
pub fn rows(text: &str, first: usize, others: usize) -> Rows<'_> {
    Rows { rest: text.trim_end(), next: first.max(COLUMNS_MIN), others: others.max(COLUMNS_MIN) }
}

impl<'a> Rows<'a> {
    /// The remaining text as one row.
    pub fn take_rest(&mut self) -> Option<&'a str> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then_some(rest)
    }

    /// Whether no text remains.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (row, rest) = self.rest.split_at(end_of_row(self.rest, self.next));
        self.rest = rest.trim_start();
        self.next = self.others;
        Some(row.trim_end())
    }
}

/// The columns that a character takes.
fn columns_of(letter: char) -> usize {
    if letter.is_ascii() { 1 } else { Span::raw(&*letter.encode_utf8(&mut [0; 4])).width() }
}

/// The byte at which the first row of at most `columns` columns ends.
fn end_of_row(text: &str, columns: usize) -> usize {
    let (mut blank, mut taken) = (None, 0);
    for (at, letter) in text.char_indices() {
        // Leading blanks belong to the row: an indent is no break.
        if letter == ' ' && !text[..at].trim().is_empty() {
            blank = Some(at);
        }
        taken += columns_of(letter);
        if taken > columns {
            return blank.unwrap_or(at);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::rows;
    use proptest::prelude::*;

    #[test]
    fn rows_break_at_blanks_and_long_words_within_themselves() {
        let found = |text, width| rows(text, width, width).collect::<Vec<_>>();
        assert_eq!(found("", 10), Vec::<&str>::new());
        assert_eq!(found("fits in it", 10), ["fits in it"]);
        assert_eq!(found("fits in  it  not", 10), ["fits in", "it  not"]);
        assert_eq!(found("  indented text", 12), ["  indented", "text"]);
        assert_eq!(found("/a/long/path here", 6), ["/a/lon", "g/path", "here"]);
        assert_eq!(found("µs → ▶ ok", 6), ["µs → ▶", "ok"]);
        assert_eq!(found("見る見る ok", 6), ["見る見", "る ok"]);
    }

    proptest! {
        #[test]
        fn no_row_is_too_long_and_no_letter_is_lost(text in "[a-z0-9 µ→]{0,80}", first in 0usize..30, others in 0usize..30) {
            let found: Vec<&str> = rows(&text, first, others).collect();
            for (at, row) in found.iter().enumerate() {
                let width = if at == 0 { first } else { others };
                prop_assert!(row.chars().count() <= width.max(4));
            }
            let letters = |text: &str| text.chars().filter(|letter| *letter != ' ').collect::<String>();
            prop_assert_eq!(letters(&found.concat()), letters(&text));
        }
    }
}
