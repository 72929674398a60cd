//! The bytes of a recording: a file that may still grow, or memory.
//!
//! Owned by one reader. Reads at most what is asked for. A short file gives what it has.

use super::{FILE, INDEX};
use crate::files;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Largest index that is read: three months of a recording. Without an index the recording is
/// searched.
const INDEX_BYTES_MAX: u64 = 16 << 20;

/// Source of a recording's bytes.
#[derive(Debug)]
pub(super) enum Source {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// The recording in a run's directory, or a file that the user named.
    pub(super) fn open(run: &Path) -> io::Result<Source> {
        let file = if run.is_dir() { files::open_in(run, FILE) } else { files::open(&run.canonicalize()?) };
        Ok(Source::File(file?))
    }

    /// The index beside it, if it belongs to the same user; empty if there is none.
    pub(super) fn index(&self, path: &Path) -> Vec<u8> {
        let Source::File(file) = self else { return Vec::new() };
        let owner = file.metadata().map(|metadata| files::owner(&metadata));
        let read = owner.map_err(Into::into).and_then(|owner| files::open_of(&path.with_file_name(INDEX), owner));
        read.and_then(|index| files::read_up_to(index, INDEX_BYTES_MAX)).unwrap_or_default()
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
