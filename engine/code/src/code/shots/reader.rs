//! The streaming reader of all three formats. Holds one `b8` record. Reads text byte by byte from
//! the caller's buffer, so it refuses an endless line once it exceeds the width.

use std::io::{BufRead, ErrorKind};

use super::super::{bit, flip};
use super::{FilePosition, Format, Layout, ShotError};

/// Most digits of an index that an error quotes.
const QUOTED_MAX: usize = 64;
const OTHER_MODEL: &str = "check that model and shots belong together, and --format";
const TRUNCATED: &str = "the file may be truncated: get the whole file";

/// Reads one shot after another; see [`super`].
#[derive(Debug)]
pub struct ShotReader<R> {
    input: R,
    format: Format,
    layout: Layout,
    record: Vec<u8>,
    shots_read: u64,
    offset: u64,
    line: u64,
    line_start: u64,
}

impl<R: BufRead> ShotReader<R> {
    /// A reader of `layout`'s records from `input`.
    pub fn new(input: R, format: Format, layout: Layout) -> Self {
        let record = if format == Format::B8 { vec![0; layout.bytes()] } else { Vec::new() };
        Self { input, format, layout, record, shots_read: 0, offset: 0, line: 1, line_start: 0 }
    }

    /// Reads the next shot into `shot`; `false` at the end of the input. A record without bits has
    /// no bytes in `b8`: such an input holds no shots.
    ///
    /// # Errors
    ///
    /// If a record is truncated, of another width, or of another format. The reader cannot continue
    /// after an error.
    ///
    /// # Panics
    ///
    /// If `shot` is not [`Layout::words`] long.
    pub fn read_shot(&mut self, shot: &mut [u64]) -> Result<bool, ShotError> {
        assert_eq!(shot.len(), self.layout.words(), "the caller's shot is as wide as the layout");
        shot.fill(0);
        let read = match self.format {
            Format::B8 => self.read_b8(shot)?,
            Format::Text01 => self.read_01(shot)?,
            Format::Dets => self.read_dets(shot)?,
        };
        self.shots_read += u64::from(read);
        Ok(read)
    }

    fn read_b8(&mut self, shot: &mut [u64]) -> Result<bool, ShotError> {
        let mut filled = 0;
        while filled < self.record.len() {
            match self.input.read(&mut self.record[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let bytes = self.record.len();
        if filled == 0 {
            if bytes == 0 && !self.input.fill_buf()?.is_empty() {
                return Err(self.refuse("bytes", "none: these records have no bits".to_owned(), OTHER_MODEL));
            }
            return Ok(false);
        }
        if filled < bytes {
            let found = format!("{filled} bytes at the end of the file");
            let remedy = "check that model and shots belong together, or name their format (--format 01) or their \
                          measurement map (--m2d); if all are right, the file is truncated";
            return Err(self.refuse(found, format!("{bytes} bytes ({})", self.width()), remedy));
        }
        for (word, chunk) in shot.iter_mut().zip(self.record.chunks(8)) {
            let mut little_endian = [0; 8];
            little_endian[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(little_endian);
        }
        let used = self.layout.bits() % 64;
        if used != 0 && shot.last().is_some_and(|last| last >> used != 0) {
            self.offset += bytes as u64 - 1;
            let expected = format!("zeros after the last bit ({})", self.width());
            let remedy = "the shots are of another width or bit order: check that model and shots belong together";
            return Err(self.refuse("bits set in the padding", expected, remedy));
        }
        self.offset += bytes as u64;
        Ok(true)
    }

    fn read_01(&mut self, shot: &mut [u64]) -> Result<bool, ShotError> {
        let bits = self.layout.bits();
        let mut index = 0;
        loop {
            let byte = self.peek()?;
            match byte {
                Some(b'0' | b'1') if index < bits => {
                    if byte == Some(b'1') {
                        flip(shot, index);
                    }
                    index += 1;
                }
                Some(b'0' | b'1') => {
                    return Err(self.refuse(format!("more than {bits} digits"), self.width(), OTHER_MODEL));
                }
                Some(b'\r') => {}
                Some(b'\n') | None if index == bits && (bits > 0 || byte.is_some()) => {
                    self.bump(byte);
                    return Ok(true);
                }
                None if index == 0 => return Ok(false),
                None => {
                    return Err(self.refuse(format!("{index} digits at the end of the file"), self.width(), TRUNCATED));
                }
                Some(b'\n') => {
                    return Err(self.refuse(format!("{index} digits on this line"), self.width(), OTHER_MODEL));
                }
                Some(other) => return Err(self.unexpected(other, "0 or 1")),
            }
            self.bump(byte);
        }
    }

    fn read_dets(&mut self, shot: &mut [u64]) -> Result<bool, ShotError> {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek()? {
            self.bump(Some(byte));
        }
        if self.peek()?.is_none() {
            return Ok(false);
        }
        for expected in *b"shot" {
            match self.peek()? {
                Some(byte) if byte == expected => self.bump(Some(byte)),
                Some(other) => return Err(self.unexpected(other, "a line that begins with 'shot'")),
                None => return Err(self.refuse("the end of the file", "'shot'".to_owned(), TRUNCATED)),
            }
        }
        loop {
            let mut spaced = false;
            while let Some(byte @ (b' ' | b'\t' | b'\r')) = self.peek()? {
                self.bump(Some(byte));
                spaced = true;
            }
            match self.peek()? {
                end @ (None | Some(b'\n')) => {
                    self.bump(end);
                    return Ok(true);
                }
                Some(kind @ (b'D' | b'L')) if spaced => self.read_index(kind, shot)?,
                Some(b'M') if spaced && self.layout.are_measured => self.read_index(b'M', shot)?,
                Some(b'M') if spaced => {
                    let remedy = "name their map, --m2d, or convert them to detection events (stim m2d)";
                    return Err(self.refuse("a measurement, M", "D and L records".to_owned(), remedy));
                }
                Some(other) => return Err(self.unexpected(other, "D or L with an index after a space")),
            }
        }
    }

    /// Reads `D5` or `L0`, and sets its bit.
    fn read_index(&mut self, kind: u8, shot: &mut [u64]) -> Result<(), ShotError> {
        self.bump(Some(kind));
        let mut number: Option<u32> = None;
        // The digits, if the number is too large.
        let mut written = String::new();
        while let Some(byte @ b'0'..=b'9') = self.peek()? {
            self.bump(Some(byte));
            let digit = u32::from(byte - b'0');
            let before = number.unwrap_or(0);
            match before.checked_mul(10).and_then(|tens| tens.checked_add(digit)) {
                Some(more) if written.is_empty() => number = Some(more),
                _ => {
                    if written.is_empty() {
                        written = before.to_string();
                    }
                    if written.len() < QUOTED_MAX {
                        written.push(char::from(byte));
                    } else if !written.ends_with('…') {
                        written.push('…');
                    }
                }
            }
        }
        let kind = char::from(kind);
        let (first, count) = match kind {
            'D' | 'M' => (0, self.layout.detectors),
            _ => (self.layout.detectors, self.layout.observables),
        };
        if (kind, count) == ('L', 0) && self.layout.detectors > 0 && !self.layout.are_measured {
            let found = format!("L{}", number.map_or(written, |number| number.to_string()));
            let expected = format!("D indices alone ({})", self.width());
            let remedy = "write the observables into a file of their own (stim: --obs_out, not --append_observables)";
            return Err(self.refuse(found, expected, remedy));
        }
        let expected = || format!("{kind} indices below {count} ({})", self.width());
        match number {
            _ if !written.is_empty() => Err(self.refuse(format!("{kind}{written}"), expected(), OTHER_MODEL)),
            None => Err(self.refuse(format!("'{kind}' without an index"), format!("'{kind}0'"), TRUNCATED)),
            Some(index) if index >= count => Err(self.refuse(format!("{kind}{index}"), expected(), OTHER_MODEL)),
            Some(index) if bit(shot, first + index) => {
                let remedy = "the file is damaged: write it again";
                Err(self.refuse(format!("{kind}{index} twice"), "each index once".to_owned(), remedy))
            }
            Some(index) => {
                flip(shot, first + index);
                Ok(())
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, ShotError> {
        loop {
            match self.input.fill_buf() {
                Ok(buffered) => return Ok(buffered.first().copied()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the byte that [`Self::peek`] showed.
    fn bump(&mut self, peeked: Option<u8>) {
        if let Some(byte) = peeked {
            self.input.consume(1);
            self.offset += 1;
            if byte == b'\n' {
                self.line += 1;
                self.line_start = self.offset;
            }
        }
    }

    /// The record's width, in words.
    fn width(&self) -> String {
        match self.layout {
            Layout { detectors, are_measured: true, .. } => format!("{detectors} measurements a shot"),
            Layout { detectors, observables: 0, .. } => format!("{detectors} detectors a shot"),
            Layout { detectors: 0, observables, .. } => format!("{observables} observables a shot"),
            Layout { detectors, observables, .. } => {
                format!("{detectors} detectors and {observables} observables a shot")
            }
        }
    }

    fn unexpected(&self, byte: u8, expected: &str) -> ShotError {
        let remedy = "check --format: is the file b8, 01 or dets?";
        self.refuse(format!("'{}'", byte.escape_ascii()), expected.to_owned(), remedy)
    }

    fn refuse(&self, found: impl Into<String>, expected: String, remedy: &str) -> ShotError {
        let position = match self.format {
            Format::B8 => FilePosition::Byte(self.offset),
            Format::Text01 | Format::Dets => {
                FilePosition::Text { line: self.line, column: self.offset - self.line_start + 1 }
            }
        };
        ShotError::Malformed {
            shot: self.shots_read,
            position,
            found: found.into(),
            expected,
            remedy: remedy.to_owned(),
        }
    }
}
