//! Files that only their user may read, and random bytes for them.
//!
//! Cold; each call is one or two system calls on one small file. Never follows a link. On systems
//! without trustworthy owners and modes every call refuses, so nothing secret is stored there.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file for reading. Follows no link and does not wait for a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    imp::open(path)
}

/// Mode and owner of a file that others may read; `None` if it is private to this user.
pub(super) fn exposed(file: &File) -> io::Result<Option<(u32, u32)>> {
    imp::exposed(file)
}

/// Makes a directory, and missing ones above it, for this user alone.
pub(super) fn directory(path: &Path) -> io::Result<()> {
    imp::directory(path)
}

/// Makes a new file for this user alone.
pub(super) fn create(path: &Path) -> io::Result<File> {
    imp::create(path)
}

/// Random bytes from the system.
pub(super) fn secret() -> io::Result<[u8; 32]> {
    imp::secret()
}

#[cfg(unix)]
mod imp {
    use std::fs::{DirBuilder, File, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    /// Mode bits that give others access.
    const OTHERS: u32 = 0o077;

    pub(super) fn open(path: &Path) -> io::Result<File> {
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
        OpenOptions::new().read(true).custom_flags(flags as i32).open(path)
    }

    pub(super) fn exposed(file: &File) -> io::Result<Option<(u32, u32)>> {
        let facts = file.metadata()?;
        let (mode, owner) = (facts.mode() & 0o7777, facts.uid());
        let is_private = mode & OTHERS == 0 && owner == rustix::process::geteuid().as_raw();
        Ok((!is_private).then_some((mode, owner)))
    }

    pub(super) fn directory(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    pub(super) fn create(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn secret() -> io::Result<[u8; 32]> {
        use rustix::rand::{GetRandomFlags, getrandom};
        let mut secret = [0_u8; 32];
        let drawn = getrandom(&mut secret, GetRandomFlags::empty())?;
        if drawn == secret.len() { Ok(secret) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn secret() -> io::Result<[u8; 32]> {
        use std::io::Read;
        let mut secret = [0_u8; 32];
        File::open("/dev/urandom")?.read_exact(&mut secret)?;
        Ok(secret)
    }
}

#[cfg(not(unix))]
mod imp {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    fn none<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "no key is kept on this system"))
    }

    pub(super) fn open(_path: &Path) -> io::Result<File> {
        none()
    }

    pub(super) fn exposed(_file: &File) -> io::Result<Option<(u32, u32)>> {
        none()
    }

    pub(super) fn directory(_path: &Path) -> io::Result<()> {
        none()
    }

    pub(super) fn create(_path: &Path) -> io::Result<File> {
        none()
    }

    pub(super) fn secret() -> io::Result<[u8; 32]> {
        none()
    }
}
