//! Opens files that other users may have created in place of ours.
//!
//! [`open`] follows no link in the last part of a path, never waits for a FIFO's writer, and opens
//! regular files only. [`open_of`] also requires a given owner, [`open_in`] the owner of the file's
//! directory. [`altered_by_others`] reports who else may change a file or directory. [`shared`] has
//! the checks for boards, claims and sockets of several users.
//!
//! [`open_named`] and [`read_named`] are for files that the user named: links are followed, and
//! opening a FIFO waits for its writer. [`open_unnamed`] and [`read_unnamed_text`] are for files
//! that the program searches by itself: links are followed, and only regular files are accepted.
//! [`destination`] returns the path that a write to a path would reach, and [`identity`] shows
//! whether two paths mean one file. Runs on cold threads. Bounded by one file for each call.

#[cfg(unix)]
pub mod shared;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Most links that [`destination`] follows, the system's own limit.
const LINKS_MAX: usize = 40;

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum OpenError {
    /// The system returned an error.
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("it is a symbolic link; a regular file was expected")]
    Link,
    #[error("it is a {0}; a regular file was expected")]
    NotRegular(&'static str),
    #[error("it belongs to user {found}; user {expected} was expected")]
    Owner { found: u32, expected: u32 },
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

/// Opens a regular file of any user for reading.
///
/// # Errors
/// If the last part of `path` is a link, if it is not a regular file, or if the system refuses.
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
/// As [`open`], or if it belongs to another user.
pub fn open_of(path: &Path, expected: u32) -> Result<File, OpenError> {
    let file = open(path)?;
    match owner(&file.metadata()?) {
        found if found == expected => Ok(file),
        found => Err(OpenError::Owner { found, expected }),
    }
}

/// Opens the regular file `name` in `directory` for reading; it must belong to the directory's
/// owner.
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

/// Reads the file `name` of a directory, as [`open_in`] opens it, up to a limit.
///
/// # Errors
/// Those of [`open_in`], or if it is longer than `bytes_max`.
pub fn read_in(directory: &Path, name: &str, bytes_max: u64) -> Result<Vec<u8>, OpenError> {
    read_up_to(open_in(directory, name)?, bytes_max)
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

/// The text of a file; bytes that are not UTF-8, as in names of processes or files, become
/// replacement characters.
///
/// # Errors
/// If it cannot be read.
pub fn read_lossy(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// Kind of a directory entry that is not a regular file, by metadata that follow no link.
pub fn irregular(metadata: &Metadata) -> Option<&'static str> {
    if metadata.is_symlink() { Some("symbolic link") } else { kind(metadata) }
}

/// Opens a file or FIFO that the user named, for reading. Links are followed, and a FIFO waits for its writer.
///
/// # Errors
/// If it is a directory or a device, or if the system refuses.
pub fn open_named(path: &Path) -> io::Result<File> {
    opened(path, |path| File::open(path), &["FIFO"])
}

/// Opens a file that the user did not name, for reading. Links are followed; a FIFO is refused
/// without waiting.
///
/// # Errors
/// If it is not a regular file, or if the system refuses.
pub fn open_unnamed(path: &Path) -> io::Result<File> {
    opened(path, unwaited, &[])
}

/// Opens a regular file, or a file of a `permitted` kind. The kind is checked before opening,
/// because opening a device can have effects, and again afterwards, because another file may have
/// replaced it.
fn opened(path: &Path, open: fn(&Path) -> io::Result<File>, permitted: &[&str]) -> io::Result<File> {
    let refuse_kind = |metadata: &Metadata| match kind(metadata) {
        Some(kind) if !permitted.contains(&kind) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("a {kind}")))
        }
        _ => Ok(()),
    };
    refuse_kind(&path.metadata()?)?;
    let file = open(path)?;
    refuse_kind(&file.metadata()?)?;
    Ok(file)
}

/// Reads a file or FIFO that the user named, as [`open_named`] opens it, up to a limit.
///
/// # Errors
/// Those of [`open_named`], or if it is longer than `bytes_max`.
pub fn read_named(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    limited(open_named(path)?, bytes_max)
}

fn limited(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {bytes_max} bytes"));
    if file.metadata()?.len() > bytes_max {
        return Err(too_long());
    }
    match read_up_to(file, bytes_max) {
        Ok(bytes) => Ok(bytes),
        Err(OpenError::System(error)) => Err(error),
        Err(_) => Err(too_long()),
    }
}

/// [`read_named`] for a text.
///
/// # Errors
/// Those of [`read_named`], or if it is not UTF-8.
pub fn read_named_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    utf8(read_named(path, bytes_max)?)
}

/// The text of a file that the user did not name, as [`open_unnamed`] opens it, up to a limit.
///
/// # Errors
/// Those of [`open_unnamed`], if it is longer than `bytes_max`, or if it is not UTF-8.
pub fn read_unnamed_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    utf8(limited(open_unnamed(path)?, bytes_max)?)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("invalid UTF-8 at offset {at}"))
    })
}

/// The file that a write to `path` would reach: the end of its links, which need not exist.
///
/// # Errors
/// If the system does not let this process follow the links, or if there is no such directory.
pub fn destination(path: &Path) -> io::Result<PathBuf> {
    match std::fs::metadata(path) {
        // A pipe of /proc/self/fd has no path of its own: use the given name.
        Ok(_) => Ok(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut place = path.to_owned();
            for _ in 0..LINKS_MAX {
                let Ok(target) = std::fs::read_link(&place) else { break };
                place = directory_of(&place).join(target);
            }
            let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
            Ok(std::fs::canonicalize(directory_of(&place))?.join(name))
        }
        Err(error) => Err(error),
    }
}

/// The directory that holds `path`.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Identity of a file, equal for all paths that mean it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Device and number of a file that exists.
    File(u64, u64),
    /// Path at which a missing file would be created.
    Absent(PathBuf),
}

/// The file that `path` means, also by links and hard links; `None` for a character device, which
/// any number of readers and writers may share, and for an unreachable path.
pub fn identity(path: &Path) -> Option<Identity> {
    match std::fs::metadata(path) {
        Ok(metadata) => number(&metadata),
        Err(_) => destination(path).ok().map(Identity::Absent),
    }
}

/// The file behind standard input, output or error, if it is a regular one.
#[cfg(unix)]
pub fn identity_of_stream(stream: impl std::os::fd::AsFd) -> Option<Identity> {
    let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
    file.metadata().ok().filter(Metadata::is_file).as_ref().and_then(number)
}

/// Which users besides this one and root may change the content of `path`: the opened file itself,
/// or its entry in its directory. In a sticky directory no user can replace another user's file.
pub fn replaceable_by_others(path: &Path, opened: &Metadata) -> Option<String> {
    let by_itself = altered_by_others(opened).map(|who| format!("{} ({who})", path.display()));
    by_itself.or_else(|| {
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        directory_altered_by_others(directory_of(&place))
    })
}

/// Which users besides this one and root may replace a directory's files, with its name; `None`: no
/// user.
pub fn directory_altered_by_others(directory: &Path) -> Option<String> {
    let metadata = std::fs::metadata(directory).ok()?;
    let who = altered_by_others(&metadata)?;
    let is_kept = is_sticky(&metadata) && (owner(&metadata) == 0 || owner(&metadata) == our_uid());
    (!is_kept).then(|| format!("{} ({who})", directory.display()))
}

/// Reads a regular file that others may have created, as [`open`] opens it, up to a limit.
///
/// # Errors
/// Those of [`open`], or if it is longer than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, OpenError> {
    read_up_to(open(path)?, bytes_max)
}

/// Which users besides this one and root may change a file or directory; `None`: no user.
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
    use super::{File, Identity, Metadata, OpenError, Path, io};
    use rustix::fs::{Mode, OFlags, fstat, open, openat};
    use rustix::io::Errno;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    // NONBLOCK: opening a FIFO without a writer would wait for one. It has no effect on a regular file.
    const UNFOLLOWED: OFlags =
        OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

    pub(super) fn unfollowed(path: &Path) -> io::Result<File> {
        Ok(open(path, UNFOLLOWED, Mode::empty())?.into())
    }

    pub(super) fn unwaited(path: &Path) -> io::Result<File> {
        Ok(open(path, UNFOLLOWED.difference(OFlags::NOFOLLOW), Mode::empty())?.into())
    }

    /// The file and the owner of its directory. Uses the directory's descriptor, so that the
    /// directory cannot be replaced between the two calls.
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

    /// Kind of a file that is not regular.
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

    /// User number of a file's owner.
    pub fn owner(metadata: &Metadata) -> u32 {
        metadata.uid()
    }

    /// Device and inode number; `None` for a character device.
    pub(super) fn number(metadata: &Metadata) -> Option<Identity> {
        (!metadata.file_type().is_char_device()).then(|| Identity::File(metadata.dev(), metadata.ino()))
    }

    pub(super) fn is_sticky(metadata: &Metadata) -> bool {
        metadata.mode() & 0o1000 != 0
    }

    /// Whether the group, and whether all users, may write the file. A group with the owner's own
    /// number is private to the owner: systems that give each user such a group let it write by
    /// default.
    pub(super) fn writers(metadata: &Metadata) -> (bool, bool) {
        writers_of(metadata.mode(), metadata.uid(), metadata.gid())
    }

    /// [`writers`] of a file with this mode, owner and group.
    pub(super) fn writers_of(mode: u32, owner: u32, group: u32) -> (bool, bool) {
        (mode & 0o020 != 0 && group != owner, mode & 0o002 != 0)
    }

    /// Effective user of this process.
    pub fn our_uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }
}

#[cfg(not(unix))]
mod system {
    use super::{File, Identity, Metadata, OpenError, Path, io};

    pub(super) fn number(_: &Metadata) -> Option<Identity> {
        None
    }

    pub(super) fn is_sticky(_: &Metadata) -> bool {
        false
    }

    pub(super) fn unfollowed(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(super) fn unwaited(path: &Path) -> io::Result<File> {
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

    /// User number of a file's owner; unknown on this system.
    pub fn owner(_: &Metadata) -> u32 {
        0
    }

    pub(super) fn writers(_: &Metadata) -> (bool, bool) {
        (false, false)
    }

    /// Effective user of this process; unknown on this system.
    pub fn our_uid() -> u32 {
        0
    }
}

use system::{is_refused_link, is_sticky, kind, number, unfollowed, unfollowed_in, unwaited, writers};
pub use system::{our_uid, owner};

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::system::writers_of;
    use super::{
        Identity, OpenError, altered_by_others, destination, directory_altered_by_others, identity, open, open_in,
        open_of, open_unnamed, our_uid, read_named, read_unnamed_text, read_up_to,
    };
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
    fn what_others_may_write_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        let said = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            altered_by_others(&path.metadata().unwrap())
        };
        assert_eq!(said(0o644), None);
        assert!(said(0o666).unwrap().contains("all users"));
    }

    #[test]
    fn the_group_counts_as_others_unless_it_is_the_owners_own() {
        assert_eq!(writers_of(0o664, 1_000, 100), (true, false));
        assert_eq!(writers_of(0o664, 1_000, 1_000), (false, false));
        assert_eq!(writers_of(0o666, 1_000, 1_000), (false, true));
        assert_eq!(writers_of(0o644, 1_000, 100), (false, false));
    }

    #[test]
    fn a_named_device_directory_or_endless_file_is_refused_unread() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let said = |path: &std::path::Path| read_named(path, 10).unwrap_err().to_string();
        assert_eq!(said("/dev/zero".as_ref()), "a device");
        assert_eq!(said(dir.path()), "a directory");
        assert_eq!(said(&path), "more than 10 bytes");
        symlink("/proc/version", dir.path().join("link")).unwrap();
        assert!(!read_named(&dir.path().join("link"), 1 << 20).unwrap().is_empty());
    }

    #[test]
    fn an_unnamed_file_may_be_a_link_but_not_a_fifo_or_device() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        fs::write(place("file"), "abc").unwrap();
        symlink("file", place("link")).unwrap();
        mknodat(CWD, place("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read_unnamed_text(&place("link"), 3).unwrap(), "abc");
        assert_eq!(read_unnamed_text(&place("file"), 2).unwrap_err().to_string(), "more than 2 bytes");
        for (path, kind) in [(place("fifo").as_path(), "a FIFO"), ("/dev/zero".as_ref(), "a device")] {
            assert_eq!(open_unnamed(path).unwrap_err().to_string(), kind);
        }
    }

    #[test]
    fn a_path_and_its_links_mean_one_file_whether_it_exists_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        fs::write(place("file"), "").unwrap();
        symlink("file", place("link")).unwrap();
        fs::hard_link(place("file"), place("hard")).unwrap();
        symlink("absent", place("one")).unwrap();
        symlink("one", place("two")).unwrap();
        assert!(matches!(identity(&place("file")), Some(Identity::File(..))));
        assert_eq!(identity(&place("file")), identity(&place("link")));
        assert_eq!(identity(&place("file")), identity(&place("hard")));
        assert_eq!(identity(&place("absent")), identity(&place("two")));
        assert_eq!(identity(&place("absent")), identity(&place("./absent")));
        assert_ne!(identity(&place("absent")), identity(&place("other")));
        assert_eq!(identity("/dev/null".as_ref()), None);
        assert_eq!(destination(&place("two")).unwrap(), dir.path().canonicalize().unwrap().join("absent"));
        assert!(destination(&place("no/such")).is_err());
    }

    #[test]
    fn a_directory_whose_entries_others_may_replace_is_named_unless_it_is_sticky() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        let said = |mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            directory_altered_by_others(path)
        };
        assert_eq!(said(0o755), None);
        assert_eq!(said(0o1777), None);
        assert!(said(0o777).unwrap().contains("all users"));
    }
}
