//! Opens the socket that a source listens at: once, on a cold thread.
//!
//! Owns the socket and, in the file system, its path. Accepts loopback addresses only, unless a
//! list of senders is given. A socket in the file system belongs to its user alone (mode 0600).

use crate::feed::address::{OpenError, SourceAddress};
use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Longest path of a socket.
const PATH_BYTES_MAX: usize = 107;

/// An open socket, and the path to remove when it closes.
#[derive(Debug)]
pub(in crate::feed) struct Listening {
    pub(in crate::feed) socket: OwnedFd,
    /// Its actual address: a port of 0 is replaced by the assigned port.
    pub(in crate::feed) name: String,
    /// The path, and the file that was put there.
    path: Option<(PathBuf, FileId)>,
}

/// A file of this machine, under whatever name.
type FileId = (u64, u64);

fn file_at(path: &Path) -> io::Result<FileId> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Where somebody has removed it, another engine may listen there by now.
        if let Some((path, file)) = &self.path
            && file_at(path).is_ok_and(|found| found == *file)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens the socket at `place`.
///
/// # Errors
/// [`OpenError`]: the address is in use, not permitted, or reachable by others without a list of
/// senders.
pub(in crate::feed) fn listen(place: &SourceAddress) -> Result<Listening, OpenError> {
    let said = |found: String, expected, remedy| OpenError { place: place.to_string(), found, expected, remedy };
    match place {
        SourceAddress::Udp { at, allow } | SourceAddress::Cudaq { at, allow, .. } => {
            if !at.ip().is_loopback() && allow.is_empty() {
                let expected = "a loopback address, or senders to allow";
                let remedy = "name them with --allow or in the profile's input.source";
                return Err(said("others can reach this address".to_owned(), expected, remedy));
            }
            let opened = UdpSocket::bind(at).and_then(|socket| {
                socket.set_nonblocking(true)?;
                Ok((socket.local_addr()?, OwnedFd::from(socket)))
            });
            let (at, socket) = opened.map_err(|error| match error.raw_os_error() {
                Some(libc::EMFILE) => {
                    said(error.to_string(), "a descriptor for each port", "raise the limit of open files (ulimit -n)")
                }
                _ => {
                    said(error.to_string(), "a free port of this machine", "see ss -ulp for its owner, or name another")
                }
            })?;
            Ok(Listening { socket, name: place.at(at).to_string(), path: None })
        }
        SourceAddress::Unix(path) => {
            let opened = open_unix(path).and_then(|socket| Ok((socket, file_at(path)?)));
            let (socket, file) = opened.map_err(|error| {
                said(error.to_string(), "a path for a socket of its own", "end its process, or name another path")
            })?;
            // Clients that read the name have other working directories.
            let whole = std::path::absolute(path).ok().filter(|whole| whole.as_os_str().len() <= PATH_BYTES_MAX);
            let path = whole.unwrap_or_else(|| path.clone());
            Ok(Listening { socket, name: SourceAddress::Unix(path.clone()).to_string(), path: Some((path, file)) })
        }
        SourceAddress::Shm { .. } => Err(said("it is shared memory".to_owned(), "a socket", "name udp: or unix:")),
    }
}

/// Binds beside the path, sets the permissions, then renames: no client sees other permissions.
fn open_unix(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file is no socket"));
        }
        Ok(_) => match UnixDatagram::unbound()?.connect(path) {
            // A killed engine leaves a socket without a listener.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            Err(error) if error.raw_os_error() != Some(libc::EPROTOTYPE) => return Err(error),
            // A socket of another type refuses ours by its type only while its listener lives.
            Ok(()) | Err(_) => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens at the socket"));
            }
        },
        Err(_) => {}
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let socket = UnixDatagram::bind(&beside)?;
    let moved = socket
        .set_nonblocking(true)
        .and_then(|()| std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o600)))
        .and_then(|()| std::fs::rename(&beside, path));
    if let Err(error) = moved {
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    Ok(OwnedFd::from(socket))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::listen;
    use crate::feed::address::{Network, SourceAddress};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    #[test]
    fn remote_senders_need_a_list_and_a_port_in_use_is_an_error() {
        let open = |at: &str, allow: &[&str]| {
            let allow = allow.iter().map(|text| Network::parse(text).unwrap()).collect();
            listen(&SourceAddress::Udp { at: at.parse().unwrap(), allow }).map_err(|error| error.to_string())
        };
        assert!(open("0.0.0.0:0", &[]).unwrap_err().contains("--allow"));
        assert!(open("0.0.0.0:0", &["127.0.0.1"]).is_ok());
        let first = open("127.0.0.1:0", &[]).unwrap();
        let taken = open(first.name.strip_prefix("udp:").unwrap(), &[]).unwrap_err();
        assert!(taken.contains("free port") && taken.contains("ss -ulp"), "{taken}");
    }

    /// Of another type than ours, so that it cannot be connected to.
    #[test]
    fn the_stream_socket_of_a_running_program_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        let other = UnixListener::bind(&path).unwrap();
        let open = || listen(&SourceAddress::Unix(path.clone())).map(drop).map_err(|error| error.to_string());
        assert!(open().unwrap_err().contains("another process listens"));
        assert!(UnixStream::connect(&path).is_ok(), "its clients still reach it");
        drop(other);
        assert_eq!(open(), Ok(()));
    }

    #[test]
    fn the_socket_of_an_engine_that_listens_there_since_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = SourceAddress::Unix(folder.path().join("in"));
        let first = listen(&place).unwrap();
        std::fs::remove_file(folder.path().join("in")).unwrap();
        let second = listen(&place).unwrap();
        drop(first);
        assert!(listen(&place).unwrap_err().to_string().contains("another process listens"));
        drop(second);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_name_of_a_unix_socket_is_that_of_any_working_directory() {
        let folder = tempfile::tempdir().unwrap();
        let up: std::path::PathBuf = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
        let relative = up.join(folder.path().strip_prefix("/").unwrap()).join("in");
        let listening = listen(&SourceAddress::Unix(relative)).unwrap();
        let SourceAddress::Unix(named) = SourceAddress::parse(&listening.name).unwrap() else { unreachable!() };
        assert!(named.is_absolute() && named.exists(), "{named:?}");
    }

    #[test]
    fn a_unix_socket_belongs_to_its_user_and_a_stale_one_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        drop(UnixDatagram::bind(&path).unwrap());
        let open = || listen(&SourceAddress::Unix(path.clone())).map_err(|error| error.to_string());
        let listening = open().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(open().unwrap_err().contains("another process listens"));
        drop(listening);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        std::fs::write(&path, "x").unwrap();
        assert!(open().unwrap_err().contains("no socket"));
    }
}
