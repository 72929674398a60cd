//! Addresses of live sources, and the senders they accept.
//!
//! Pure: parses text into a [`SourceAddress`], which [`super::link`] opens. Bounds: the text.

use super::cudaq::frame::SLOT_BYTES;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Address of a live source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceAddress {
    /// A UDP address, and the senders that may use it.
    Udp {
        /// Address and port.
        at: SocketAddr,
        /// Networks of the permitted senders; empty: this machine only.
        allow: Vec<Network>,
    },
    /// A UDP address that speaks the protocol of CUDA-Q's decoding server.
    Cudaq {
        /// Address and port; with port 0, a port for each decoder.
        at: SocketAddr,
        /// Networks of the permitted clients; empty: this machine only.
        allow: Vec<Network>,
        /// Most bytes of a datagram.
        slot_bytes: u32,
        /// Numbers of the decoders, in the order of the streams; empty: those of the streams.
        decoders: Vec<i64>,
    },
    /// A datagram socket in the file system.
    Unix(PathBuf),
    /// A region of shared memory.
    Shm {
        /// Name of the region: letters, digits, - and _.
        name: String,
        /// Group that may map the region, besides the engine's user.
        group: Option<String>,
    },
}

/// Addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u32,
}

impl Network {
    /// Parses `10.0.0.7`, `10.0.0.0/24` or `fe80::/10`. An IPv4 address that is written as an IPv6 one, such as
    /// `::ffff:10.0.0.0/120`, has a prefix of at least 96 bits: less would be no network of IPv4.
    ///
    /// # Errors
    /// A sentence that names the text and the expected form.
    pub fn parse(text: &str) -> Result<Network, String> {
        let refuse = || format!("sender {text:?} is no address or network; write it like 10.0.0.7 or 10.0.0.0/24");
        let (base, bits) = match text.split_once('/') {
            None => (text, None),
            Some((base, bits)) => (base, Some(bits)),
        };
        let written: IpAddr = base.parse().map_err(|_| refuse())?;
        let base = written.to_canonical();
        let most = if written.is_ipv4() { 32 } else { 128 };
        let before = if written.is_ipv6() && base.is_ipv4() { 96 } else { 0 };
        let bits: Option<u32> = bits.map_or(Some(most), |bits| bits.parse().ok()).filter(|bits| *bits <= most);
        let bits = bits.and_then(|bits| bits.checked_sub(before));
        Ok(Network { base, bits: bits.ok_or_else(refuse)? })
    }

    /// Whether `address` belongs to this network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = |a: u128, b: u128, of: u32| self.bits > 0 && (a ^ b) >> (of - self.bits) != 0;
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => !differ(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => !differ(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceAddress::Udp { at, .. } => write!(f, "udp:{at}"),
            SourceAddress::Cudaq { at, .. } => write!(f, "cudaq:{at}"),
            SourceAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            SourceAddress::Shm { name, .. } => write!(f, "shm:{name}"),
        }
    }
}

impl SourceAddress {
    /// The same source at another internet address, such as the one that the system chose.
    pub fn at(&self, address: SocketAddr) -> SourceAddress {
        let mut moved = self.clone();
        if let SourceAddress::Udp { at, .. } | SourceAddress::Cudaq { at, .. } = &mut moved {
            *at = address;
        }
        moved
    }

    /// Parses `udp:127.0.0.1:7000`, `cudaq:127.0.0.1:7000`, `unix:/run/user/1000/shots` or
    /// `shm:fpga0`.
    ///
    /// # Errors
    /// A sentence that names the text and the expected form.
    pub fn parse(text: &str) -> Result<SourceAddress, String> {
        let refuse = |found: &str| {
            format!(
                "{found:?} is no udp:ADDRESS:PORT, cudaq:ADDRESS:PORT, unix:PATH or shm:NAME; write it like \
                 udp:127.0.0.1:7000"
            )
        };
        match text.split_once(':') {
            Some(("udp", at)) => {
                let at = at.parse().map_err(|_| refuse(text))?;
                Ok(SourceAddress::Udp { at, allow: Vec::new() })
            }
            Some(("cudaq", at)) => {
                let at = at.parse().map_err(|_| refuse(text))?;
                Ok(SourceAddress::Cudaq { at, allow: Vec::new(), slot_bytes: SLOT_BYTES, decoders: Vec::new() })
            }
            Some(("unix", path)) if !path.is_empty() => Ok(SourceAddress::Unix(PathBuf::from(path))),
            Some(("shm", name)) if is_name(name) => Ok(SourceAddress::Shm { name: name.to_owned(), group: None }),
            _ => Err(refuse(text)),
        }
    }
}

/// Whether `name` is a valid name of a region.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=32).contains(&name.len()) && name.chars().all(plain)
}

/// Why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open input {place}: {found}; it needs {expected}; {remedy}")]
pub struct OpenError {
    /// The address.
    pub place: String,
    /// What prevents opening it.
    pub found: String,
    /// What the source needs.
    pub expected: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Network, SourceAddress, is_name};

    #[test]
    fn addresses_print_as_they_parse() {
        for text in ["udp:127.0.0.1:7000", "udp:[::1]:7000", "cudaq:127.0.0.1:0", "unix:/run/shots", "shm:fpga-0"] {
            assert_eq!(SourceAddress::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "udp:",
            "udp:host:1",
            "cudaq:7000",
            "udp:127.0.0.1",
            "unix:",
            "shm:",
            "shm:../x",
            "tcp:127.0.0.1:1",
            "shm:a b",
        ] {
            assert!(SourceAddress::parse(text).unwrap_err().contains("udp:127.0.0.1:7000"), "{text}");
        }
    }

    #[test]
    fn a_region_has_a_name_of_one_to_32_plain_characters() {
        assert!(is_name("a") && is_name("A-z_09") && is_name(&"x".repeat(32)));
        assert!(!is_name("") && !is_name(&"x".repeat(33)) && !is_name("a.b") && !is_name("é"));
    }

    #[test]
    fn networks_contain_addresses_with_their_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.7", "10.0.0.7", "10.0.0.8"),
            ("10.0.0.0/24", "10.0.0.255", "10.0.1.0"),
            ("10.0.0.0/24", "::ffff:10.0.0.1", "::1"),
            ("10.0.0.128/25", "10.0.0.255", "10.0.0.127"),
            ("::ffff:10.0.0.7", "10.0.0.7", "10.0.0.8"),
            ("::ffff:10.0.0.0/120", "::ffff:10.0.0.255", "10.0.1.0"),
            ("::ffff:0.0.0.0/96", "255.255.255.255", "::1"),
            ("fe80::/10", "fe80::1", "10.0.0.1"),
            ("fe80::/10", "febf::1", "fec0::1"),
            ("::1", "::1", "::2"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network:?} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network:?} {outside}");
        }
        for text in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "host", "::/129", "1.2.3.4/", "::ffff:10.0.0.0/95"] {
            assert!(Network::parse(text).unwrap_err().contains("10.0.0.0/24"), "{text}");
        }
    }
}
