//! Where a live source is, and whose shots it takes.
//!
//! Pure: words in, a [`Place`] out; opened by [`super::link`]. Bounded by the words.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A UDP address, and which senders may use it.
    Udp {
        /// Address and port.
        at: SocketAddr,
        /// Nobody named: those of this machine.
        allow: Vec<Network>,
    },
    /// A datagram socket in the file system.
    Unix(PathBuf),
    /// A region of shared memory.
    Shm {
        /// Its name: letters, digits, - and _.
        name: String,
        /// The users who may map it beside the engine's own.
        group: Option<String>,
    },
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u32,
}

impl Network {
    /// `10.0.0.7`, `10.0.0.0/24`, `fe80::/10`.
    ///
    /// # Errors
    /// What was found and what was expected.
    pub fn parse(text: &str) -> Result<Network, String> {
        let refuse = || {
            format!("found sender {text:?}, expected an address or a network; write it like 10.0.0.7 or 10.0.0.0/24")
        };
        let (base, bits) = match text.split_once('/') {
            None => (text, None),
            Some((base, bits)) => (base, Some(bits)),
        };
        let base: IpAddr = base.parse().map_err(|_| refuse())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok()).filter(|bits| *bits <= most);
        Ok(Network { base: base.to_canonical(), bits: bits.ok_or_else(refuse)? })
    }

    /// Whether `address` is one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = |a: u128, b: u128, of: u32| self.bits > 0 && (a ^ b) >> (of - self.bits) != 0;
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => !differ(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => !differ(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Udp { at, .. } => write!(f, "udp:{at}"),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
            Place::Shm { name, .. } => write!(f, "shm:{name}"),
        }
    }
}

impl Place {
    /// `udp:127.0.0.1:7000`, `unix:/run/user/1000/shots`, `shm:fpga0`.
    ///
    /// # Errors
    /// What was found and what was expected.
    pub fn parse(text: &str) -> Result<Place, String> {
        let refuse = |found: &str| {
            format!(
                "found {found:?}, expected udp:ADDRESS:PORT, unix:PATH or shm:NAME; write it like udp:127.0.0.1:7000"
            )
        };
        match text.split_once(':') {
            Some(("udp", at)) => {
                let at = at.parse().map_err(|_| refuse(text))?;
                Ok(Place::Udp { at, allow: Vec::new() })
            }
            Some(("unix", path)) if !path.is_empty() => Ok(Place::Unix(PathBuf::from(path))),
            Some(("shm", name)) if is_name(name) => Ok(Place::Shm { name: name.to_owned(), group: None }),
            _ => Err(refuse(text)),
        }
    }
}

/// Whether a region of shared memory may have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=32).contains(&name.len()) && name.chars().all(plain)
}

/// Why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("input {place}: found {found}, expected {expected}; {remedy}")]
pub struct OpenError {
    /// Where.
    pub place: String,
    /// What is there.
    pub found: String,
    /// What should be.
    pub expected: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Network, Place};

    #[test]
    fn places_are_written_as_they_are_read() {
        for text in ["udp:127.0.0.1:7000", "udp:[::1]:7000", "unix:/run/shots", "shm:fpga-0"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
        for text in
            ["", "udp:", "udp:host:1", "udp:127.0.0.1", "unix:", "shm:", "shm:../x", "tcp:127.0.0.1:1", "shm:a b"]
        {
            assert!(Place::parse(text).unwrap_err().contains("udp:127.0.0.1:7000"), "{text}");
        }
    }

    #[test]
    fn networks_hold_what_begins_alike() {
        for (network, inside, outside) in [
            ("10.0.0.7", "10.0.0.7", "10.0.0.8"),
            ("10.0.0.0/24", "10.0.0.255", "10.0.1.0"),
            ("10.0.0.0/24", "::ffff:10.0.0.1", "::1"),
            ("fe80::/10", "fe80::1", "10.0.0.1"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network:?} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network:?} {outside}");
        }
        for text in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "host", "::/129", "1.2.3.4/"] {
            assert!(Network::parse(text).unwrap_err().contains("10.0.0.0/24"), "{text}");
        }
    }
}
