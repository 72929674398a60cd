//! Directories, locks and sockets that several users share.
//!
//! Owns nothing. [`directory`] refuses a directory in which others could replace our files, and [`remarks`] says what
//! else is wrong with one. [`Locks`] says which process holds a `flock`. [`connect_of`] connects to a user's socket.
//! Runs on cold threads. Bounded by [`LOCKS_BYTES_MAX`] of the kernel's list and by the caller's patience.

use super::OpenError;
use rustix::fd::AsFd;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Most bytes read of the kernel's list of locks.
pub const LOCKS_BYTES_MAX: u64 = 1 << 20;
/// For all users, and only a file's owner may remove it.
const FOR_ALL: Mode = Mode::from_raw_mode(0o1777);
const STICKY: u32 = 0o1000;

/// Opens the directory at `path` to put files there, and makes it, for all users, if it is missing.
///
/// # Errors
/// If it cannot be made or opened, or if others could replace what we put there.
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    let folder = match fs::mkdir(path, Mode::RWXU) {
        Ok(()) => {
            let made = open_directory(path)?;
            // The mask of the process would have taken the others' right to write.
            fs::fchmod(&made, FOR_ALL)?;
            made
        }
        // Whatever kept it from being made, what counts is whether it is there.
        Err(_) => open_directory(path)?,
    };
    let folder = File::from(folder);
    match replaceable(&folder.metadata()?) {
        None => Ok(folder.into()),
        Some(said) => Err(io::Error::other(said)),
    }
}

/// Opens a directory to look into it.
///
/// # Errors
/// If it is missing, a link, or not for this user.
pub fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    fs::open(path, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Why others could replace our files in a directory; `None` if they cannot. The owner of a directory that is for all
/// users may remove what is in it; that is a remark and no refusal, because whoever comes first makes that directory.
fn replaceable(metadata: &Metadata) -> Option<String> {
    let (mode, owner) = (metadata.mode(), metadata.uid());
    let is_sticky = mode & STICKY != 0;
    let writers = match mode & 0o022 {
        0 => None,
        0o020 => Some("its group"),
        _ => Some("all users"),
    };
    match writers {
        Some(writers) if !is_sticky => Some(format!(
            "{writers} may write it and it has no sticky bit (mode {:o}), so others could replace our files; set the bit \
             with chmod +t",
            mode & 0o7777
        )),
        _ if owner == super::our_uid() || owner == 0 || (is_sticky && mode & 0o002 != 0) => None,
        _ => Some(format!("it belongs to user {owner}, who could replace our files; use one of root or of this user")),
    }
}

/// What is wrong with a directory of boards that is used all the same, one sentence each.
#[must_use]
pub fn remarks(path: &Path) -> Vec<String> {
    let Ok(folder) = open_directory(path) else { return Vec::new() };
    let mut said = Vec::new();
    if let Some(system) = disk_file_system(&folder) {
        said.push(format!(
            "directory of boards {}: it is on a disk file system ({system}), whose writing back can stall the engine; set \
             PINWHEEL_SHM to a directory in /dev/shm",
            path.display()
        ));
    }
    let owner = File::from(folder).metadata().map_or(0, |metadata| metadata.uid());
    if owner != super::our_uid() && owner != 0 {
        said.push(format!(
            "directory of boards {}: it belongs to user {owner}, who can remove our board; give it to root with chown root",
            path.display()
        ));
    }
    said
}

/// The name or number of the file system, if it is none in memory.
#[cfg(target_os = "linux")]
fn disk_file_system(folder: &OwnedFd) -> Option<String> {
    // From linux/magic.h.
    const IN_MEMORY: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    const NAMED: [(u64, &str); 4] =
        [(0xef53, "ext4"), (0x5846_5342, "xfs"), (0x9123_683e, "btrfs"), (0x794c_7630, "overlay")];
    let number = fs::fstatfs(folder).ok()?.f_type as u64 & 0xffff_ffff;
    if IN_MEMORY.contains(&number) {
        return None;
    }
    let name = NAMED.iter().find(|(known, _)| *known == number);
    Some(name.map_or_else(|| format!("type {number:#x}"), |(_, name)| (*name).to_owned()))
}

#[cfg(not(target_os = "linux"))]
fn disk_file_system(_: &OwnedFd) -> Option<String> {
    None
}

/// The kernel's list of file locks.
#[derive(Debug)]
pub struct Locks(String);

impl Locks {
    /// Reads it from `proc` under `root`; `None` where it cannot be seen.
    #[must_use]
    pub fn read(root: &Path) -> Option<Locks> {
        read_text(&root.join("proc/locks")).map(Locks)
    }

    /// The process that holds a `flock` on `file`; lines of those who wait for it begin their words with an arrow.
    #[must_use]
    pub fn holder_of(&self, file: impl AsFd) -> Option<u32> {
        let stat = fs::fstat(file).ok()?;
        let (major, minor) = (fs::major(stat.st_dev), fs::minor(stat.st_dev));
        let wanted = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
        self.0.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [_, "FLOCK", _, _, pid, place, ..] if place == wanted => pid.parse().ok().filter(|&pid| pid > 0),
                _ => None,
            }
        })
    }
}

/// The user that process `pid` acts as; `None` if it is not visible.
#[must_use]
pub fn user_of_process(pid: u32) -> Option<u32> {
    let status = read_text(Path::new(&format!("/proc/{pid}/status")))?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // Real, effective, saved, of the file system.
    uids.split_whitespace().nth(1)?.parse().ok()
}

/// Whether the lock on `file`, which is taken, can be that of the file's owner. A lock that another user holds says
/// nothing about the owner's process: whoever may read a file may lock it.
#[must_use]
pub fn is_locked_by_owner(file: impl AsFd) -> bool {
    let owner = fs::fstat(&file).map(|stat| stat.st_uid).ok();
    let holder = Locks::read(Path::new("/")).and_then(|locks| locks.holder_of(&file)).and_then(user_of_process);
    // A holder that is not visible may be the owner's, in a container.
    holder.is_none() || owner.is_none() || holder == owner
}

fn read_text(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LOCKS_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Connects to the socket of user `expected` at `path`, and waits no longer than `patience` until it is taken.
///
/// # Errors
/// If there is no socket, if nobody takes the connection in time, or if somebody else listens there.
pub fn connect_of(path: &Path, expected: u32, patience: Duration) -> Result<UnixStream, OpenError> {
    let system = |error: Errno| OpenError::System(error.into());
    let found = std::fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Err(OpenError::Link);
    }
    let socket =
        net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(system)?;
    // Connecting waits as sending does, where as many wait already as the listener allows.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience)).map_err(system)?;
    net::connect(&socket, &SocketAddrUnix::new(path).map_err(system)?).map_err(system)?;
    let found = sockopt::socket_peercred(&socket).map_err(system)?.uid.as_raw();
    if found == expected { Ok(UnixStream::from(socket)) } else { Err(OpenError::Owner { found, expected }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{connect_of, directory, remarks};
    use crate::files::{OpenError, our_uid};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    #[test]
    fn a_directory_in_which_others_could_replace_our_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shm");
        directory(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o1777);
        for (mode, said) in [(0o777, "all users"), (0o775, "its group")] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = directory(&path).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("sticky") && error.contains("chmod +t"), "{error}");
        }
        for mode in [0o755, 0o700, 0o1777, 0o1775] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(directory(&path).is_ok(), "{mode:o}");
        }
        symlink(&path, folder.path().join("link")).unwrap();
        assert!(directory(&folder.path().join("link")).is_err());
    }

    #[test]
    fn a_directory_of_another_user_is_refused_or_said() {
        if our_uid() != 0 {
            eprintln!("skipped: only root can give a directory away");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shm");
        directory(&path).unwrap();
        chown(&path, Some(65_534), None).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o1777)).unwrap();
        assert!(directory(&path).is_ok());
        assert!(remarks(&path).iter().any(|said| said.contains("belongs to user 65534")));
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        assert!(directory(&path).unwrap_err().to_string().contains("belongs to user 65534"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_on_a_disk_is_said_and_one_in_memory_is_not() {
        let said = remarks(std::path::Path::new(env!("CARGO_MANIFEST_DIR")));
        assert!(said.iter().any(|said| said.contains("disk file system") && said.contains("/dev/shm")), "{said:?}");
        let in_memory = remarks(std::path::Path::new("/dev/shm"));
        assert!(!in_memory.iter().any(|said| said.contains("disk")), "{in_memory:?}");
    }

    #[test]
    fn a_socket_of_another_user_a_link_and_one_that_takes_nobody_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let soon = Duration::from_millis(50);
        assert!(connect_of(&path, our_uid(), soon).is_ok());
        assert!(matches!(connect_of(&path, our_uid() + 1, soon), Err(OpenError::Owner { .. })));
        symlink(&path, folder.path().join("link")).unwrap();
        assert!(matches!(connect_of(&folder.path().join("link"), our_uid(), soon), Err(OpenError::Link)));
        let held: Vec<_> = std::iter::from_fn(|| connect_of(&path, our_uid(), soon).ok()).take(100).collect();
        assert!(held.len() < 100, "the listener's queue is full, and nobody waits for ever");
    }
}
