//! Short texts on the board.
//!
//! Owns nothing but the packing of UTF-8 into words. Written once, at Init, by one thread; longer texts are cut at a
//! character. A torn or foreign text reads as replacement characters, never as an error.

use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromBytes;

/// Up to `8 × WORDS` bytes of text, zero-padded.
#[derive(FromBytes)]
#[repr(transparent)]
pub struct Text<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Text<WORDS> {
    /// Writes `text`, cut to what fits.
    pub fn write(&self, text: &str) {
        let mut end = text.len().min(WORDS * 8);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = &text.as_bytes()[..end];
        for (index, word) in self.0.iter().enumerate() {
            let mut packed = [0; 8];
            let from = (index * 8).min(bytes.len());
            let to = (index * 8 + 8).min(bytes.len());
            packed[..to - from].copy_from_slice(&bytes[from..to]);
            word.store(u64::from_le_bytes(packed), Ordering::Relaxed);
        }
    }

    /// Reads it.
    pub fn read(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Reads it; `None` if it is empty.
    pub fn read_if_any(&self) -> Option<String> {
        Some(self.read()).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::Text;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_text_comes_back_and_a_long_one_is_cut_at_a_character() {
        let text = Text::<2>([const { AtomicU64::new(0) }; 2]);
        text.write("surface");
        assert_eq!(text.read(), "surface");
        text.write("fifteen bytes ü");
        assert_eq!(text.read(), "fifteen bytes ü");
        text.write("sixteen bytes!!ü");
        assert_eq!(text.read(), "sixteen bytes!!");
    }
}
