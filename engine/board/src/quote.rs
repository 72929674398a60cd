//! Shortens foreign text for messages.
//!
//! Pure. Bounded by [`QUOTE_CHARS_MAX`]: a line of twenty megabytes must not become a message of
//! twenty megabytes.

use std::borrow::Cow;

/// Most characters of a foreign text in one message.
pub const QUOTE_CHARS_MAX: usize = 160;
/// Of these, characters kept of the text's end, where parsers name the place of an error.
const TAIL_CHARS: usize = 60;

/// `text` as a message quotes it; of a longer text the beginning and the end are kept.
pub fn cut(text: &str) -> Cow<'_, str> {
    if text.char_indices().nth(QUOTE_CHARS_MAX).is_none() {
        return Cow::Borrowed(text);
    }
    let head_end = text.char_indices().nth(QUOTE_CHARS_MAX - TAIL_CHARS).map_or(text.len(), |(at, _)| at);
    let tail_start = text.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(at, _)| at);
    let omitted_bytes = tail_start - head_end;
    Cow::Owned(format!("{}… ({omitted_bytes} bytes omitted) …{}", &text[..head_end], &text[tail_start..]))
}

#[cfg(test)]
mod tests {
    use super::{QUOTE_CHARS_MAX, cut};

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let whole = "ä".repeat(QUOTE_CHARS_MAX);
        assert_eq!(cut(&whole), whole);
        let long = format!("begin {} end", "x".repeat(20_000_000));
        let said = cut(&long);
        assert!(said.starts_with("begin xx") && said.ends_with("xx end") && said.contains("bytes omitted"), "{said}");
        assert!(said.chars().count() < QUOTE_CHARS_MAX + 40);
    }
}
