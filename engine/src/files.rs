//! Files that another user may have put where we look for our own.
//!
//! [`open`] follows no link in the last part of a path, never waits for the other end of a FIFO, and opens regular
//! files only. [`open_of`] also demands an owner, [`open_in`] that of the file's directory. [`altered_by_others`] says
//! who else may change a file or directory. [`shared`] has what boards, claims and sockets of several users need.
//! Runs on cold threads. Bounded by one file for each call.

#[cfg(unix)]
pub mod shared;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The last part of the path is a symbolic link.
    #[error("it is a symbolic link; a regular file was expected")]
    Link,
    /// It is a directory, a FIFO, a socket or a device.
    #[error("it is a {0}; a regular file was expected")]
    NotRegular(&'static str),
    /// It belongs to somebody else.
    #[error("it belongs to user {found}; user {expected} was expected")]
    Owner {
        /// Its owner's number.
        found: u32,
        /// The number of the user whose it should be.
        expected: u32,
    },
    /// It holds more than the caller reads.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> io::Error {
        match error {
            OpenError::System(error) => error,
            other => io::Error::other(other),
        }
    }
}

/// Opens a regular file for reading, whoever it belongs to.
///
/// # Errors
/// If the last part of `path` is a link, if it is no regular file, or if the system refuses.
pub fn open(path: &Path) -> Result<File, OpenError> {
    let file = match unfollowed(path) {
        Err(error) if is_link(path) => {
            return Err(if is_refused_link(&error) { OpenError::Link } else { error.into() });
        }
        other => other?,
    };
    match kind(&file.metadata()?) {
        None => Ok(file),
        Some(kind) => Err(OpenError::NotRegular(kind)),
    }
}

/// Opens a regular file of the user `expected` for reading.
///
/// # Errors
/// As [`open`], or if it belongs to somebody else.
pub fn open_of(path: &Path, expected: u32) -> Result<File, OpenError> {
    let file = open(path)?;
    match owner(&file.metadata()?) {
        found if found == expected => Ok(file),
        found => Err(OpenError::Owner { found, expected }),
    }
}

/// Opens the regular file `name` in `directory` for reading, which must belong to the user whose the directory is.
///
/// # Errors
/// As [`open_of`], or if there is no such directory.
pub fn open_in(directory: &Path, name: &str) -> Result<File, OpenError> {
    let (file, expected) = unfollowed_in(directory, name)?;
    let metadata = file.metadata()?;
    match (kind(&metadata), owner(&metadata)) {
        (Some(kind), _) => Err(OpenError::NotRegular(kind)),
        (None, found) if found != expected => Err(OpenError::Owner { found, expected }),
        (None, _) => Ok(file),
    }
}

/// Reads a file that [`open`] or [`open_of`] opened, up to a limit.
///
/// # Errors
/// If it is longer than `bytes_max`, or if reading fails.
pub fn read_up_to(file: File, bytes_max: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(OpenError::TooLong(bytes_max)) } else { Ok(bytes) }
}

/// The text of a file; what is no UTF-8 in it, as a name of a process or of a file may be, becomes replacement characters.
///
/// # Errors
/// If it cannot be read.
pub fn read_lossy(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// What the entry of a directory is, if no regular file; by metadata that follow no link.
pub fn irregular(metadata: &Metadata) -> Option<&'static str> {
    if metadata.is_symlink() { Some("symbolic link") } else { kind(metadata) }
}

/// Who beside this user and root may change a file or directory; `None` if nobody may.
pub fn altered_by_others(metadata: &Metadata) -> Option<String> {
    let owner = owner(metadata);
    if owner != our_uid() && owner != 0 {
        return Some(format!("user {owner} owns it"));
    }
    match writers(metadata) {
        (_, true) => Some("all users may write it".to_owned()),
        (true, false) => Some("its group may write it".to_owned()),
        (false, false) => None,
    }
}

#[cfg(unix)]
mod system {
    use super::{File, Metadata, OpenError, Path, io};
    use rustix::fs::{Mode, OFlags, fstat, open, openat};
    use rustix::io::Errno;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    // NONBLOCK: opening a FIFO without a writer would wait for one. It has no effect on a regular file.
    const UNFOLLOWED: OFlags =
        OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

    pub(super) fn unfollowed(path: &Path) -> io::Result<File> {
        Ok(open(path, UNFOLLOWED, Mode::empty())?.into())
    }

    /// The file and the owner of its directory. By the directory's descriptor: nobody can put another directory in its
    /// place between the two looks.
    pub(super) fn unfollowed_in(directory: &Path, name: &str) -> Result<(File, u32), OpenError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(directory, flags, Mode::empty()).map_err(io::Error::from)?;
        let owner = fstat(&folder).map_err(io::Error::from)?.st_uid;
        match openat(&folder, name, UNFOLLOWED, Mode::empty()) {
            Ok(file) => Ok((file.into(), owner)),
            Err(Errno::LOOP) => Err(OpenError::Link),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    pub(super) fn is_refused_link(error: &io::Error) -> bool {
        error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
    }

    /// What it is, if no regular file.
    pub(super) fn kind(metadata: &Metadata) -> Option<&'static str> {
        let kind = metadata.file_type();
        match () {
            () if kind.is_file() => None,
            () if kind.is_dir() => Some("directory"),
            () if kind.is_fifo() => Some("FIFO"),
            () if kind.is_socket() => Some("socket"),
            () => Some("device"),
        }
    }

    /// The number of the user whose a file is.
    pub fn owner(metadata: &Metadata) -> u32 {
        metadata.uid()
    }

    /// Whether the group, and whether everybody, may write it.
    pub(super) fn writers(metadata: &Metadata) -> (bool, bool) {
        (metadata.mode() & 0o020 != 0, metadata.mode() & 0o002 != 0)
    }

    /// The user that this process acts as.
    pub fn our_uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }
}

#[cfg(not(unix))]
mod system {
    use super::{File, Metadata, OpenError, Path, io};

    pub(super) fn unfollowed(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(super) fn unfollowed_in(directory: &Path, name: &str) -> Result<(File, u32), OpenError> {
        Ok((File::open(directory.join(name))?, 0))
    }

    pub(super) fn is_refused_link(_: &io::Error) -> bool {
        false
    }

    pub(super) fn kind(metadata: &Metadata) -> Option<&'static str> {
        if metadata.is_file() { None } else { Some("directory or device") }
    }

    /// The number of the user whose a file is; not known on this system.
    pub fn owner(_: &Metadata) -> u32 {
        0
    }

    pub(super) fn writers(_: &Metadata) -> (bool, bool) {
        (false, false)
    }

    /// The user that this process acts as; not known on this system.
    pub fn our_uid() -> u32 {
        0
    }
}

use system::{is_refused_link, kind, unfollowed, unfollowed_in, writers};
pub use system::{our_uid, owner};

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{OpenError, altered_by_others, open, open_in, open_of, our_uid, read_up_to};
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_link_a_fifo_and_a_directory_are_named_and_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        fs::write(place("file"), "abc").unwrap();
        symlink(place("file"), place("link")).unwrap();
        mknodat(CWD, place("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(open(&place("link")), Err(OpenError::Link)));
        assert!(matches!(open(&place("fifo")), Err(OpenError::NotRegular("FIFO"))));
        assert!(matches!(open(dir.path()), Err(OpenError::NotRegular("directory"))));
        assert!(matches!(open(&place("none")), Err(OpenError::System(_))));
        assert_eq!(read_up_to(open(&place("file")).unwrap(), 3).unwrap(), b"abc");
    }

    #[test]
    fn a_file_of_another_user_or_beyond_the_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "abcd").unwrap();
        assert!(open_of(&path, our_uid()).is_ok());
        assert!(matches!(open_of(&path, our_uid() + 1), Err(OpenError::Owner { .. })));
        assert!(matches!(read_up_to(open(&path).unwrap(), 3), Err(OpenError::TooLong(3))));
    }

    #[test]
    fn a_file_in_a_directory_is_opened_only_if_its_directorys_owner_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        fs::write(place("file"), "abc").unwrap();
        symlink("/etc/passwd", place("link")).unwrap();
        mknodat(CWD, place("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(open_in(dir.path(), "file").is_ok());
        assert!(matches!(open_in(dir.path(), "link"), Err(OpenError::Link)));
        assert!(matches!(open_in(dir.path(), "fifo"), Err(OpenError::NotRegular("FIFO"))));
        assert!(matches!(open_in(&place("none"), "file"), Err(OpenError::System(_))));
        // Only root can give a directory away.
        if our_uid() == 0 {
            std::os::unix::fs::chown(dir.path(), Some(65_534), None).unwrap();
            assert!(matches!(open_in(dir.path(), "file"), Err(OpenError::Owner { found: 0, expected: 65_534 })));
        }
    }

    #[test]
    fn what_group_or_others_may_write_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        let mut said = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            altered_by_others(&path.metadata().unwrap())
        };
        assert_eq!(said(0o644), None);
        assert!(said(0o664).unwrap().contains("group"));
        assert!(said(0o666).unwrap().contains("all users"));
    }
}
