//! The mapping of a region, for the engine that creates it and for a client that opens it.
//!
//! Owns the mapping; the engine's mapping also owns the file and its lock. Created on a cold
//! thread, before it is used. Every word is atomic: whenever the other process writes, a read
//! returns some value. Bounds: the shape. An offset outside the mapping panics, so [`Shape`] first
//! checks offsets from the other process.

use super::layout::{MAGIC, Shape, VERSION, VERSION_SOFT, engine, header};
use crate::feed::address::OpenError;
use crate::feed::packet::Encoding;
use crate::files::shared;
use pinwheel_edge::slot::outside::{Outside, Record};
use pinwheel_edge::sync::DataWord;
use rustix::fs::{self, FallocateFlags, FileType, FlockOperation, Gid, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mapped region.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    /// Holds the engine's or the client's lock.
    file: OwnedFd,
    /// File to remove at the end, if this mapping owns it.
    path: Option<PathBuf>,
}

// SAFETY: the mapping is shared memory that is accessed only through atomics; nothing in it belongs
// to one thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

fn refused(found: impl Into<String>, expected: &'static str, remedy: &'static str) -> OpenError {
    OpenError { place: String::new(), found: found.into(), expected, remedy }
}

/// The file of region `name`.
pub fn path_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("input-{name}"))
}

impl Region {
    /// Creates region `name` in `directory` for this user, and for `group` if one is named.
    ///
    /// # Errors
    /// If another engine has the region, or the system refuses.
    pub fn create(
        directory: &Path,
        name: &str,
        group: Option<&str>,
        shape: &Shape,
        epoch: u64,
    ) -> Result<Region, OpenError> {
        let said =
            |error: Errno| refused(error.to_string(), "room in the shared memory", "free some (see df /dev/shm)");
        shared::directory(directory).map_err(|error| {
            let found = format!("{}: {error}", directory.display());
            refused(found, "a directory for shared memory", "mount a memory file system, or set PINWHEEL_SHM to one")
        })?;
        let path = path_of(directory, name);
        remove_dead(&path)?;
        let gid = group.map(group_id).transpose()?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let file = fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(said)?;
        let made = prepare(&file, gid, shape.bytes()).and_then(|()| map(&file, shape.bytes()));
        let base = match made {
            Ok(base) => base,
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                return Err(said(error));
            }
        };
        let region = Region { base, bytes: shape.bytes(), file, path: Some(path) };
        for (at, value) in shape.words() {
            region.word(at).store(value, Ordering::Relaxed);
        }
        region.word(engine::EPOCH).store(epoch, Ordering::Relaxed);
        // The magic last. A client opens the file, checks the magic, and then reads the rest. Until
        // it is granted the ring by U3 it writes only its session, so safety needs no ordering
        // here.
        region.word(header::MAGIC).store(MAGIC, Ordering::Relaxed);
        Ok(region)
    }

    /// Opens region `name` as its client; `None` until its engine has created it.
    ///
    /// # Errors
    /// If the file belongs to another user, has another layout, or has another client.
    pub fn open(directory: &Path, name: &str) -> io::Result<Option<(Region, Shape)>> {
        let file = match open_regular(&path_of(directory, name)) {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        let bytes = usize::try_from(fs::fstat(&file)?.st_size).unwrap_or(0);
        if bytes < super::layout::HEADER_BYTES {
            return Ok(None);
        }
        if fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "the region is in use by another client"));
        }
        let region = Region { base: map(&file, bytes)?, bytes, file, path: None };
        if region.word(header::MAGIC).load(Ordering::Relaxed) != MAGIC {
            return Ok(None);
        }
        let unusable = |found: String| io::Error::new(io::ErrorKind::InvalidData, found);
        let version = region.word(header::VERSION).load(Ordering::Relaxed);
        if ![VERSION, VERSION_SOFT].contains(&version) {
            return Err(unusable(format!(
                "the engine's region has layout {version}, and this client expects layout {VERSION} or {VERSION_SOFT}; \
                 use the client of the engine's release"
            )));
        }
        match region.shape() {
            Some(shape) => Ok(Some((region, shape))),
            None => Err(unusable("the region's header contradicts itself".to_owned())),
        }
    }

    /// Whether the file is gone: its engine has ended, or was killed and another one took its place.
    pub fn is_removed(&self) -> bool {
        fs::fstat(&self.file).is_ok_and(|file| file.st_nlink == 0)
    }

    /// The shape that the header describes, if it is sound and consistent.
    fn shape(&self) -> Option<Shape> {
        let word = |at: usize| self.word(at).load(Ordering::Relaxed);
        let number = |at: usize| u32::try_from(word(at)).ok();
        let encoding = if word(header::ENCODING) == 0 { Encoding::Bits } else { Encoding::Int32 };
        let shape = Shape {
            slots: number(header::SLOTS)?,
            bits: number(header::BITS)?,
            encoding,
            streams: number(header::STREAMS)?,
            observables: number(header::OBSERVABLES)?,
            soft_bytes: number(header::SOFT_BYTES)?,
        };
        let agrees = |shape: &Shape| shape.words().iter().all(|(at, value)| word(*at) == *value);
        (shape.is_sound() && agrees(&shape) && shape.bytes() == self.bytes).then_some(shape)
    }

    fn words(&self, at: usize, count: usize) -> &[AtomicU64] {
        let end = count.checked_mul(8).and_then(|bytes| at.checked_add(bytes));
        assert!(
            at.is_multiple_of(8) && end.is_some_and(|end| end <= self.bytes),
            "{count} words at {at} of {}",
            self.bytes
        );
        // SAFETY: in bounds and aligned (the base is a page's). The memory is mapped for as long as
        // `self`, holds only words, and is accessed only as atomics, by this process and as far as
        // it can know by the other one.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at).cast::<AtomicU64>(), count) }
    }

    /// One word of the region.
    ///
    /// # Panics
    /// If it lies outside the region.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        &self.words(at, 1)[0]
    }

    /// Words of a record.
    ///
    /// # Panics
    /// If they lie outside the region.
    pub fn data(&self, at: usize, count: usize) -> &[DataWord] {
        let words = self.words(at, count);
        // SAFETY: a `DataWord` is an `AtomicU64` and nothing else (`repr(transparent)`).
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
    }

    /// The ring's records.
    pub fn outside<'a>(&'a self, shape: &'a Shape) -> Ring<'a> {
        Ring { region: self, shape }
    }

    fn record(&self, at: usize, words: usize) -> Record<'_> {
        Record { head: self.word(at), words: self.data(at + 8, words - 1) }
    }
}

/// The records of a region.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    region: &'a Region,
    shape: &'a Shape,
}

impl Outside for Ring<'_> {
    fn shot(&self, slot: usize) -> Record<'_> {
        self.region.record(self.shape.shot_at(slot as u32), self.shape.shot_words())
    }

    fn answer(&self, slot: usize) -> Record<'_> {
        self.region.record(self.shape.answer_at(slot as u32), self.shape.answer_words())
    }

    fn granted(&self) -> &AtomicU64 {
        self.region.word(engine::GRANTED)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Where somebody has removed it, another engine may have its region there by now.
        if let Some(path) = self.path.as_ref().filter(|_| !self.is_removed()) {
            let _ = std::fs::remove_file(path);
        }
        // SAFETY: base and length are those of the mapping; no reference outlives `self`, by their lifetimes.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Opens a region's file, which another user may have created: follows no link, and accepts only a
/// regular file.
fn open_regular(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::open(path, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(fs::fstat(&file)?.st_mode);
    if kind == FileType::RegularFile { Ok(file) } else { Err(Errno::INVAL) }
}

/// Checks whether region `name` can be created in `directory`; removes the file of a killed engine.
///
/// # Errors
/// If another engine has it, or it belongs to another user.
pub fn is_free(directory: &Path, name: &str) -> Result<(), OpenError> {
    remove_dead(&path_of(directory, name))
}

/// Removes the file of a killed engine; a live engine holds its lock.
fn remove_dead(path: &Path) -> Result<(), OpenError> {
    match open_regular(path) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => {
            Err(refused(error.to_string(), "a region of this user", "name another region, or have its owner remove it"))
        }
        Ok(file) => {
            fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
                let layout = other_layout(&file)
                    .map(|found| format!(", in layout {found}; this engine has layout {VERSION} or {VERSION_SOFT}"));
                let found = format!("another engine uses the region{}", layout.unwrap_or_default());
                refused(found, "a region of its own", "end it, or name another region")
            })?;
            std::fs::remove_file(path)
                .map_err(|error| refused(error.to_string(), "a region of this user", "remove it by hand"))
        }
    }
}

/// The layout of the region in `file`, if it is another than these two.
fn other_layout(file: &OwnedFd) -> Option<u64> {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        (rustix::io::pread(file, &mut bytes, at as u64) == Ok(8)).then(|| u64::from_le_bytes(bytes))
    };
    let version = word(header::VERSION)?;
    (word(header::MAGIC)? == MAGIC && ![VERSION, VERSION_SOFT].contains(&version)).then_some(version)
}

fn prepare(file: &OwnedFd, gid: Option<Gid>, bytes: usize) -> Result<(), Errno> {
    fs::flock(file, FlockOperation::NonBlockingLockExclusive)?;
    let user = Mode::RUSR | Mode::WUSR;
    if let Some(gid) = gid {
        fs::fchown(file, None, Some(gid))?;
        fs::fchmod(file, user | Mode::RGRP | Mode::WGRP)?;
    } else {
        fs::fchmod(file, user)?;
    }
    // A full memory file system must be an error here, not a fault signal at a later store.
    fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64)
}

fn map(file: &OwnedFd, bytes: usize) -> Result<NonNull<u8>, Errno> {
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
    // SAFETY: a fresh mapping at an address of the kernel's choice, of a file that has at least
    // `bytes` bytes; it is accessed only through atomics.
    let base = unsafe { mm::mmap(std::ptr::null_mut(), bytes, prot, flags, file, 0) }?;
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// The numeric id of a group of this machine.
fn group_id(name: &str) -> Result<Gid, OpenError> {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let number = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    number
        .map(Gid::from_raw)
        .ok_or_else(|| refused(format!("no group {name:?}"), "a group in /etc/group", "name one of: getent group"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Region, is_free, path_of};
    use crate::feed::packet::Encoding;
    use crate::feed::shm::layout::{Shape, header};
    use rustix::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::Ordering;

    const SHAPE: Shape =
        Shape { slots: 8, bits: 120, encoding: Encoding::Bits, streams: 4, observables: 1, soft_bytes: 0 };

    #[test]
    fn a_region_belongs_to_its_user_and_is_removed_with_its_engine() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(folder.path(), "a");
        assert!(Region::open(folder.path(), "a").unwrap().is_none());
        let region = Region::create(folder.path(), "a", None, &SHAPE, 7).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Region::open(folder.path(), "a").unwrap().unwrap().1, SHAPE);
        let again = Region::create(folder.path(), "a", None, &SHAPE, 8).unwrap_err().to_string();
        assert!(again.contains("another engine"), "{again}");
        assert!(!region.is_removed());
        assert!(is_free(folder.path(), "a").is_err() && is_free(folder.path(), "b").is_ok());
        drop(region);
        assert!(!path.exists());
    }

    #[test]
    fn the_region_of_an_engine_that_has_the_name_since_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = Region::create(folder.path(), "a", None, &SHAPE, 7).unwrap();
        std::fs::remove_file(path_of(folder.path(), "a")).unwrap();
        let second = Region::create(folder.path(), "a", None, &SHAPE, 8).unwrap();
        drop(first);
        assert!(Region::open(folder.path(), "a").unwrap().is_some());
        drop(second);
        assert!(!path_of(folder.path(), "a").exists());
    }

    #[test]
    fn the_file_of_a_killed_engine_is_replaced_and_foreign_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(folder.path(), "a");
        std::fs::write(&path, "left").unwrap();
        drop(Region::create(folder.path(), "a", None, &SHAPE, 7).unwrap());
        let other = folder.path().join("other");
        std::fs::write(&other, "mine").unwrap();
        symlink(&other, &path).unwrap();
        assert!(Region::create(folder.path(), "a", None, &SHAPE, 7).is_err());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
        let fifo = path_of(folder.path(), "fifo");
        fs::mknodat(fs::CWD, &fifo, fs::FileType::Fifo, fs::Mode::RUSR | fs::Mode::WUSR, 0).unwrap();
        assert!(is_free(folder.path(), "fifo").is_err() && Region::open(folder.path(), "fifo").is_err());
        assert!(fifo.exists(), "a file that is no region is not removed");
        let said = Region::create(folder.path(), "b", Some("no-such-group"), &SHAPE, 7).unwrap_err().to_string();
        assert!(said.contains("no-such-group"), "{said}");
    }

    #[test]
    fn a_region_of_layout_1_is_refused_by_client_and_engine_in_a_sentence_with_both_layouts() {
        let folder = tempfile::tempdir().unwrap();
        let region = Region::create(folder.path(), "a", None, &SHAPE, 7).unwrap();
        region.word(header::VERSION).store(1, Ordering::Relaxed);
        let client = Region::open(folder.path(), "a").unwrap_err().to_string();
        let engine = Region::create(folder.path(), "a", None, &SHAPE, 8).unwrap_err().to_string();
        for said in [client, engine, is_free(folder.path(), "a").unwrap_err().to_string()] {
            assert!(said.contains("layout 1") && said.contains("layout 2"), "{said}");
        }
        // What a killed engine left in layout 1 is replaced.
        let path = path_of(folder.path(), "a");
        let left = std::fs::read(&path).unwrap();
        drop(region);
        std::fs::write(&path, left).unwrap();
        assert!(Region::create(folder.path(), "a", None, &SHAPE, 8).is_ok());
    }

    #[test]
    fn an_inconsistent_region_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let region = Region::create(folder.path(), "a", None, &SHAPE, 7).unwrap();
        for at in [header::VERSION, header::SLOTS, header::SHOTS_AT, header::BITS, header::REGION_BYTES] {
            let word = region.word(at);
            let sound = word.load(Ordering::Relaxed);
            // Changes a value enough to need another stride: smaller changes of the bits keep the
            // stride.
            for odd in [0, sound + 4_096, u64::MAX] {
                word.store(odd, Ordering::Relaxed);
                assert!(Region::open(folder.path(), "a").is_err(), "{odd} at {at}");
            }
            word.store(sound, Ordering::Relaxed);
        }
        assert!(Region::open(folder.path(), "a").unwrap().is_some());
    }
}
