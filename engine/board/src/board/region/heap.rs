//! Process-private memory, on systems without the calls that a shared board needs.
//!
//! Owns one zeroed allocation, aligned to a page. Bounded by the given size. No other process can
//! read it.

use super::BoardError;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// Alignment of a mapping elsewhere: blocks rely on it.
const PAGE: usize = 4096;

/// The allocation.
pub(super) struct Memory {
    base: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    pub(super) fn private(bytes: usize) -> Result<Memory, BoardError> {
        let failed = |kind| BoardError {
            step: "allocating",
            path: PathBuf::from("private memory"),
            source: io::Error::from(kind),
        };
        // A size of zero is not to be asked of the allocator.
        let layout = Layout::from_size_align(bytes.max(PAGE), PAGE).map_err(|_| failed(io::ErrorKind::InvalidInput))?;
        // SAFETY: the size is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(|| failed(io::ErrorKind::OutOfMemory))?;
        Ok(Memory { base, layout })
    }

    pub(super) fn shared(_bytes: usize, directory: &Path) -> Result<Memory, BoardError> {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        Err(BoardError { step: "sharing memory in", path: directory.to_path_buf(), source })
    }

    pub(super) fn open(path: &Path) -> Result<(Memory, usize, super::OwnerState), BoardError> {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        Err(BoardError { step: "mapping", path: path.to_path_buf(), source })
    }

    pub(super) fn owner_state(&self) -> super::OwnerState {
        super::OwnerState::Dead
    }

    pub(super) fn path(&self) -> Option<&Path> {
        None
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `private` with this layout; no reference outlives the region.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
