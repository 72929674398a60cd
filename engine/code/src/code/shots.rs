//! Shot files: Stim's formats `b8`, `01` and `dets`, read and written one shot at a time.
//!
//! Owns the formats, for detectors and observables alike. Used by cold feed threads and cold
//! writers. [`ShotReader`] and [`ShotWriter`] hold one record and allocate nothing after
//! construction; [`ShotSet`] holds a whole file, bounded by [`SET_WORDS_MAX`]. Never opens a file
//! and never pads or cuts a record to make it fit.
//!
//! A record is as wide as its [`Layout`]: detectors first, then observables, packed as
//! [`super::words`] says.
//!
//! # Why padding is checked
//!
//! A `b8` file does not contain its widths. A file of another width often divides into whole
//! records too. Set bits in the padding then reveal it, and so does [`super::health`].

mod reader;
mod writer;

use std::io::BufRead;

use super::words;
pub use reader::ShotReader;
pub use writer::ShotWriter;

/// Most 64-bit words a [`ShotSet`] holds: 2 GiB.
pub const SET_WORDS_MAX: usize = 1 << 28;

/// How shots are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Bits packed into bytes, little-endian, each record padded to whole bytes.
    B8,
    /// A line of `0` and `1` per shot.
    Text01,
    /// A line `shot D0 D5 L0` per shot, or `shot M0 M5` of measurements.
    Dets,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::B8, Self::Text01, Self::Dets];

    /// The format's name, as Stim's and `PyMatching`'s command lines spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::B8 => "b8",
            Self::Text01 => "01",
            Self::Dets => "dets",
        }
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| {
            let is_other = ["r8", "hits", "ptb64"].contains(&name);
            let remedy = if is_other { "convert the file to one of these (stim convert)" } else { "name one of these" };
            format!("found format '{name}', expected b8, 01 or dets; {remedy}")
        })
    }
}

/// What one record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Detectors, the record's first bits.
    pub detectors: u32,
    /// Observables, the bits after them.
    pub observables: u32,
    /// Whether the detectors are measurements, which `dets` names M; D is read, too.
    pub are_measured: bool,
}

impl Layout {
    /// Detectors alone.
    pub const fn detectors(detectors: u32) -> Self {
        Self { detectors, observables: 0, are_measured: false }
    }

    /// Observables alone.
    pub const fn observables(observables: u32) -> Self {
        Self { detectors: 0, observables, are_measured: false }
    }

    /// Measurements alone.
    pub const fn measurements(count: u32) -> Self {
        Self { detectors: count, observables: 0, are_measured: true }
    }

    /// Bits of a record.
    ///
    /// # Panics
    ///
    /// If they pass 32 bits, which no [`super::Model`] makes.
    pub const fn bits(self) -> u32 {
        self.detectors.checked_add(self.observables).expect("a record's bits fit 32 bits")
    }

    /// 64-bit words of a record.
    #[inline]
    pub const fn words(self) -> usize {
        words(self.bits())
    }

    /// Bytes of a `b8` record.
    const fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }
}

/// A position in a file of shots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePosition {
    /// In a binary file: the byte's offset.
    Byte(u64),
    /// In a text file: line and column, both from 1.
    Text {
        /// The line.
        line: u64,
        /// The byte in the line.
        column: u64,
    },
}

impl std::fmt::Display for FilePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Byte(offset) => write!(f, "byte {offset}"),
            Self::Text { line, column } => write!(f, "line {line}, column {column}"),
        }
    }
}

/// Why shots could not be read or written. The caller adds the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ShotError {
    #[error("shot {shot} ({position}): found {found}, expected {expected}; {remedy}")]
    Malformed {
        /// Index of the shot, from 0.
        shot: u64,
        position: FilePosition,
        found: String,
        expected: String,
        remedy: String,
    },
    #[error("found {found} shots, expected {expected}; {remedy}")]
    Count { found: usize, expected: usize, remedy: &'static str },
    #[error("input/output error: {0}; check the file and its medium")]
    Io(#[from] std::io::Error),
}

/// A file of shots in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShotSet {
    /// Bits of a shot.
    pub width_bits: u32,
    /// Words of a shot.
    pub words_per_shot: usize,
    /// Every shot's words, one shot after another.
    pub words: Vec<u64>,
    shots: usize,
}

impl ShotSet {
    /// Reads shots to the end of `input`.
    ///
    /// # Errors
    ///
    /// What [`ShotReader::read_shot`] refuses, and more than [`SET_WORDS_MAX`] words.
    pub fn read(input: impl BufRead, format: Format, layout: Layout) -> Result<Self, ShotError> {
        let mut reader = ShotReader::new(input, format, layout);
        let words_per_shot = layout.words();
        let mut set = Self { width_bits: layout.bits(), words_per_shot, words: Vec::new(), shots: 0 };
        let mut shot = vec![0; words_per_shot];
        while reader.read_shot(&mut shot)? {
            if set.words.len() + words_per_shot > SET_WORDS_MAX {
                let remedy =
                    "split the file, or decode its shots one by one from standard input: pinwheel run --shots -";
                return Err(ShotError::Count { found: set.shots + 1, expected: set.shots, remedy });
            }
            set.words.extend_from_slice(&shot);
            set.shots += 1;
        }
        Ok(set)
    }

    /// These shots, each followed by its record of `soft`, which begins a word.
    ///
    /// # Errors
    ///
    /// If the sets differ in length, or more than [`SET_WORDS_MAX`] words are needed.
    pub fn with_soft(&self, soft: &Self) -> Result<Self, ShotError> {
        soft.check_len(self.shots)?;
        let words_per_shot = self.words_per_shot + soft.words_per_shot;
        let expected = SET_WORDS_MAX / words_per_shot.max(1);
        if self.shots > expected {
            return Err(ShotError::Count { found: self.shots, expected, remedy: "split the files" });
        }
        let words = self.iter().zip(soft.iter()).flat_map(|(shot, soft)| shot.iter().chain(soft)).copied().collect();
        let width_bits = 64 * u32::try_from(self.words_per_shot).unwrap_or(u32::MAX) + soft.width_bits;
        Ok(Self { width_bits, words_per_shot, words, shots: self.shots })
    }

    /// Shots whose bits are all 0.
    pub fn zeros(layout: Layout, shots: usize) -> Self {
        let words_per_shot = layout.words();
        Self { width_bits: layout.bits(), words_per_shot, words: vec![0; words_per_shot * shots], shots }
    }

    /// Shots held.
    pub const fn len(&self) -> usize {
        self.shots
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.shots == 0
    }

    /// The words of shot `index`.
    ///
    /// # Panics
    ///
    /// If there is no such shot.
    #[inline]
    pub fn shot(&self, index: usize) -> &[u64] {
        assert!(index < self.shots, "shot {index} of {}", self.shots);
        &self.words[index * self.words_per_shot..][..self.words_per_shot]
    }

    /// Shots in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        (0..self.shots).map(|index| self.shot(index))
    }

    /// Checks that this set has exactly `shots` records.
    ///
    /// # Errors
    ///
    /// [`ShotError::Count`] if not.
    pub const fn check_len(&self, shots: usize) -> Result<(), ShotError> {
        if self.shots == shots {
            return Ok(());
        }
        let remedy = "use the file that was made with these shots";
        Err(ShotError::Count { found: self.shots, expected: shots, remedy })
    }
}

#[cfg(test)]
mod tests;
