//! The bytes of a recording: a file that may still grow, or memory.
//!
//! One reader owns it. Bounds: what is asked for at once. A file that ends early gives what there is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Where bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    pub(super) fn open(path: &Path) -> io::Result<Source> {
        File::open(path).map(Source::File)
    }

    /// Up to `length` bytes from `offset` on.
    pub(super) fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        match self {
            Source::File(file) => {
                file.seek(SeekFrom::Start(offset))?;
                let mut bytes = Vec::new();
                file.take(length as u64).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Source::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let to = from.saturating_add(length).min(bytes.len());
                Ok(bytes[from..to].to_vec())
            }
        }
    }

    pub(super) fn length(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => Ok(file.metadata()?.len()),
            Source::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }
}
