//! Directories, locks and sockets that several users share.
//!
//! Owns nothing. [`directory`] refuses a directory in which others could replace our files, and
//! [`remarks`] lists its other problems. [`Locks`] finds the process that holds a `flock`.
//! [`connect_of`] connects to a user's socket. Runs on cold threads. Bounded by [`LOCKS_BYTES_MAX`]
//! of the kernel's list and by the caller's timeout.

use super::OpenError;
use rustix::fd::AsFd;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, test_kill_process};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// Connections that the kernel queues.
const BACKLOG: i32 = 8;

/// Most bytes read of the kernel's list of locks.
pub const LOCKS_BYTES_MAX: u64 = 1 << 20;
/// Mode for all users, in which only a file's owner may remove it.
const FOR_ALL: Mode = Mode::from_raw_mode(0o1777);
const STICKY: u32 = 0o1000;

/// Opens the directory at `path` for our files; creates it, for all users, if it is missing.
///
/// # Errors
/// If it cannot be created or opened, or if others could replace our files in it.
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    let folder = match fs::mkdir(path, Mode::RWXU) {
        Ok(()) => {
            let made = open_directory(path)?;
            // The process's umask may have removed the others' write permission.
            fs::fchmod(&made, FOR_ALL)?;
            made
        }
        // Creation may fail because the directory exists; opening it decides.
        Err(_) => open_directory(path)?,
    };
    let folder = File::from(folder);
    match replaceable(&folder.metadata()?) {
        None => Ok(folder.into()),
        Some(said) => Err(io::Error::other(said)),
    }
}

/// Opens a directory for listing.
///
/// # Errors
/// If it is missing, a link, or not permitted to this user.
pub fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    fs::open(path, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Why others could replace our files in a directory; `None` if they cannot. The owner of a
/// directory for all users may remove files in it; that is a remark and no refusal, because the
/// first user of a machine creates that directory.
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

/// Problems of a directory of boards that do not prevent its use, one sentence each.
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

/// The name or number of the file system, if it is not in memory.
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
    /// Reads the list from `proc` under `root`; `None` where it is not visible.
    pub fn read(root: &Path) -> Option<Locks> {
        read_text(&root.join("proc/locks")).map(Locks)
    }

    /// The process that holds a `flock` on `file`; lines of waiting processes have an arrow first.
    pub fn holder_of(&self, file: impl AsFd) -> Option<u32> {
        self.holder_with(file, &["READ", "WRITE"])
    }

    /// The process that holds an exclusive `flock` on `file`.
    pub fn exclusive_holder_of(&self, file: impl AsFd) -> Option<u32> {
        self.holder_with(file, &["WRITE"])
    }

    fn holder_with(&self, file: impl AsFd, kinds: &[&str]) -> Option<u32> {
        let stat = fs::fstat(file).ok()?;
        let (major, minor) = (fs::major(stat.st_dev), fs::minor(stat.st_dev));
        let wanted = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
        self.0.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [_, "FLOCK", _, kind, pid, place, ..] if place == wanted && kinds.contains(&kind) => {
                    pid.parse().ok().filter(|&pid| pid > 0)
                }
                _ => None,
            }
        })
    }
}

/// Effective user of process `pid`; `None` if it is not visible.
pub fn user_of_process(pid: u32) -> Option<u32> {
    let status = read_text(Path::new(&format!("/proc/{pid}/status")))?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // Order of the fields: real, effective, saved, file system.
    uids.split_whitespace().nth(1)?.parse().ok()
}

/// Whether the existing lock on `file` can be the owner's. A lock of another user is no evidence of
/// the owner's process: whoever may read a file may lock it.
pub fn is_locked_by_owner(file: impl AsFd) -> bool {
    let Some(pid) = Locks::read(Path::new("/")).and_then(|locks| locks.holder_of(&file)) else {
        // In a container an invisible holder may be the owner.
        return true;
    };
    match user_of_process(pid) {
        Some(user) => fs::fstat(&file).is_ok_and(|stat| stat.st_uid == user),
        // The holder is hidden or has ended. If it has ended, another process inherited the file
        // from it, which an engine never allows.
        None => Pid::from_raw(pid.cast_signed()).is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH)),
    }
}

fn read_text(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LOCKS_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Listens at `path` for this user alone. The mode is set before any process can connect.
///
/// # Errors
/// Errors of the system; no file is left.
pub fn listen_for_owner(path: &Path) -> io::Result<UnixListener> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let opened = fs::chmod(path, Mode::RUSR | Mode::WUSR).and_then(|()| net::listen(&socket, BACKLOG));
    opened.inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })?;
    Ok(UnixListener::from(socket))
}

/// Connects to the socket of user `expected` at `path`; waits at most `patience` for the
/// connection.
///
/// # Errors
/// If there is no socket, if the connection is not accepted in time, or if another user listens
/// there.
pub fn connect_of(path: &Path, expected: u32, patience: Duration) -> Result<UnixStream, OpenError> {
    let system = |error: Errno| OpenError::System(error.into());
    let found = std::fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Err(OpenError::Link);
    }
    let socket =
        net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(system)?;
    // With a full backlog connecting waits as sending does, so the send timeout applies.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience)).map_err(system)?;
    net::connect(&socket, &SocketAddrUnix::new(path).map_err(system)?).map_err(system)?;
    let found = sockopt::socket_peercred(&socket).map_err(system)?.uid.as_raw();
    if found == expected { Ok(UnixStream::from(socket)) } else { Err(OpenError::Owner { found, expected }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{connect_of, directory, is_locked_by_owner, remarks};
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

    #[cfg(target_os = "linux")]
    #[test]
    fn an_inherited_lock_does_not_count_as_the_owners_lock() {
        use std::io::Read;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().lock().unwrap();
        assert!(is_locked_by_owner(file.as_file()));
        file.as_file().unlock().unwrap();
        // The lock's process has ended; the shell inherited the open file and still holds the lock.
        let script = "exec 9<\"$0\"; flock 9; echo; exec sleep 600";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script]).arg(file.path()).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let told = is_locked_by_owner(file.as_file());
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(!told);
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
