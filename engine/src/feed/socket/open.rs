//! Opens the socket that a source listens at: once, on a cold thread.
//!
//! Owns the socket and, in the file system, its path. Loopback unless told otherwise: another address needs a list of
//! senders. A socket in the file system is its user's alone (mode 0600).

use crate::feed::place::{OpenError, Place};
use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// An open socket, and what has to go when it closes.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) socket: OwnedFd,
    /// Where it really is: a port of 0 has become one.
    pub(super) name: String,
    path: Option<PathBuf>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens it.
///
/// # Errors
/// [`OpenError`]: taken, not permitted, or open to strangers without a list.
pub(super) fn listen(place: &Place) -> Result<Listening, OpenError> {
    let said = |found: String, expected, remedy| OpenError { place: place.to_string(), found, expected, remedy };
    match place {
        Place::Udp { at, allow } => {
            if !at.ip().is_loopback() && allow.is_empty() {
                let expected = "a loopback address, or senders to allow";
                let remedy = "name them with --allow or in the profile's input.source";
                return Err(said("an address that others can reach".to_owned(), expected, remedy));
            }
            let opened = UdpSocket::bind(at).and_then(|socket| {
                socket.set_nonblocking(true)?;
                Ok((socket.local_addr()?, OwnedFd::from(socket)))
            });
            let (at, socket) = opened.map_err(|error| {
                said(error.to_string(), "a free port of this machine", "see who has it (ss -ulp), or name another")
            })?;
            Ok(Listening { socket, name: format!("udp:{at}"), path: None })
        }
        Place::Unix(path) => {
            let socket = open_unix(path).map_err(|error| {
                said(error.to_string(), "a path for a socket of its own", "end who listens there, or name another")
            })?;
            Ok(Listening { socket, name: place.to_string(), path: Some(path.clone()) })
        }
        Place::Shm { .. } => Err(said("shared memory".to_owned(), "a socket", "name udp: or unix:")),
    }
}

/// Binds beside the path, makes it ours alone, then moves it there: nobody meets it with other permissions.
fn open_unix(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket"));
        }
        Ok(_) => {
            // One that nobody listens at is what an engine left that was killed.
            let probe = UnixDatagram::unbound()?;
            if probe.connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "a socket that somebody listens at"));
            }
            std::fs::remove_file(path)?;
        }
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
    use crate::feed::place::{Network, Place};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn strangers_need_a_list_and_a_taken_port_is_said() {
        let open = |at: &str, allow: &[&str]| {
            let allow = allow.iter().map(|text| Network::parse(text).unwrap()).collect();
            listen(&Place::Udp { at: at.parse().unwrap(), allow }).map_err(|error| error.to_string())
        };
        assert!(open("0.0.0.0:0", &[]).unwrap_err().contains("--allow"));
        assert!(open("0.0.0.0:0", &["127.0.0.1"]).is_ok());
        let first = open("127.0.0.1:0", &[]).unwrap();
        let taken = open(first.name.strip_prefix("udp:").unwrap(), &[]).unwrap_err();
        assert!(taken.contains("free port") && taken.contains("ss -ulp"), "{taken}");
    }

    #[test]
    fn a_socket_in_the_file_system_is_its_users_alone_and_a_dead_one_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        drop(UnixDatagram::bind(&path).unwrap());
        let open = || listen(&Place::Unix(path.clone())).map_err(|error| error.to_string());
        let listening = open().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(open().unwrap_err().contains("somebody listens"));
        drop(listening);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        std::fs::write(&path, "x").unwrap();
        assert!(open().unwrap_err().contains("no socket"));
    }
}
