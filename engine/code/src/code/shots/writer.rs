//! The streaming writer. Writes the same bytes as Stim and `PyMatching`'s command line.

use std::io::Write;

use super::super::{bit, ones};
use super::{Format, Layout, ShotError};

/// Writes one shot after another; see [`super`]. Give it a buffered writer, and call
/// [`ShotWriter::finish`].
#[derive(Debug)]
pub struct ShotWriter<W> {
    output: W,
    format: Format,
    layout: Layout,
}

impl<W: Write> ShotWriter<W> {
    /// A writer of `layout`'s records to `output`.
    pub const fn new(output: W, format: Format, layout: Layout) -> Self {
        Self { output, format, layout }
    }

    /// Writes one shot.
    ///
    /// # Errors
    ///
    /// When the output refuses bytes.
    ///
    /// # Panics
    ///
    /// If `shot` is not [`Layout::words`] long.
    pub fn write_shot(&mut self, shot: &[u64]) -> Result<(), ShotError> {
        assert_eq!(shot.len(), self.layout.words(), "the caller's shot is as wide as the layout");
        match self.format {
            Format::B8 => self.write_b8(shot),
            Format::Text01 => self.write_01(shot),
            Format::Dets => self.write_dets(shot),
        }
        .map_err(ShotError::from)
    }

    /// Brings what was written to the output's end.
    ///
    /// # Errors
    ///
    /// When the output refuses bytes.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.output.flush()
    }

    /// Flushes, and hands the output back.
    ///
    /// # Errors
    ///
    /// When the output refuses bytes.
    pub fn finish(mut self) -> Result<W, ShotError> {
        self.output.flush()?;
        Ok(self.output)
    }

    fn write_b8(&mut self, shot: &[u64]) -> std::io::Result<()> {
        let mut left = self.layout.bytes();
        for word in shot {
            let count = left.min(8);
            self.output.write_all(&word.to_le_bytes()[..count])?;
            left -= count;
        }
        Ok(())
    }

    fn write_01(&mut self, shot: &[u64]) -> std::io::Result<()> {
        for index in 0..self.layout.bits() {
            self.output.write_all(if bit(shot, index) { b"1" } else { b"0" })?;
        }
        self.output.write_all(b"\n")
    }

    fn write_dets(&mut self, shot: &[u64]) -> std::io::Result<()> {
        self.output.write_all(b"shot")?;
        for index in ones(shot) {
            match index.checked_sub(self.layout.detectors) {
                None if self.layout.are_measured => write!(self.output, " M{index}")?,
                None => write!(self.output, " D{index}")?,
                Some(observable) => write!(self.output, " L{observable}")?,
            }
        }
        self.output.write_all(b"\n")
    }
}
