//! Settings of one host: its name and cluster, its addresses, its certificates, and who may join.
//!
//! ```ron
//! (
//!     cluster: "lab",                      // hosts of one cluster see each other
//!     name: "lab-a",                       // unique in the cluster
//!     listen: ["quic/0.0.0.0:7447"],
//!     connect: ["quic/lab-b.example:7447"],
//!     certificates: Some((authority: "ca.pem", certificate: "lab-a.pem", key: "lab-a.key")),
//!     allow: ["lab-b", "lab-c"],           // hosts that may join, by the common names of their certificates
//! )
//! ```
//!
//! Owns the meaning of the file. Runs on the caller's thread. Bounds: [`FILE_BYTES_MAX`],
//! [`ENDPOINTS_MAX`], [`NAMES_MAX`], [`NAME_CHARS_MAX`]. Never opens a socket and never reads a
//! certificate.
//!
//! # Why a host without certificates stays on its machine
//!
//! A host executes commands of other hosts and decodes their shots. Without certificates anybody
//! who reaches its port could send both. So such a host uses the loopback interface only, which is
//! as trusted as the machine's users.
//!
//! # Why QUIC and not TLS over TCP
//!
//! Both use TLS 1.3 with certificates in both directions. zenoh's TLS connections (1.10.2) are read
//! and written by two threads at once, which rustls does not allow: under load they fail several
//! times a second, or end the process with a segmentation fault (eclipse-zenoh/zenoh issue 2557).
//! Its QUIC connections have separate streams for the two.

mod text;
#[cfg(test)]
mod tests;

use pinwheel_engine::files;
use serde::Deserialize;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Most characters of a host's or a cluster's name.
pub const NAME_CHARS_MAX: usize = 64;
/// Most endpoints in `listen`, and in `connect`.
pub const ENDPOINTS_MAX: usize = 64;
/// Most names in `allow`.
pub const NAMES_MAX: usize = 64;
/// Most bytes of a settings file.
pub const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Where a host without certificates listens if its settings do not say: a free port, on this
/// machine only.
const LOOPBACK_LISTEN: &str = "tcp/127.0.0.1:0";

/// Settings of one host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSettings {
    /// Name of the cluster. Hosts of one cluster see each other.
    pub cluster: String,
    /// Name of this host, unique in its cluster. With certificates it is the common name of this
    /// host's certificate.
    pub name: String,
    /// Endpoints where other hosts reach this one: `tcp/ADDRESS:PORT` or `quic/ADDRESS:PORT`. Port
    /// 0 is a free one.
    #[serde(default)]
    pub listen: Vec<String>,
    /// Endpoints of other hosts. A host that is not there yet is tried again until it is.
    #[serde(default)]
    pub connect: Vec<String>,
    /// Certificates of this host and its authority. Without them all hosts run on this machine.
    pub certificates: Option<Certificates>,
    /// Hosts that may join, by the common names of their certificates.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Whether hosts find each other beyond `connect`: they tell each other of the hosts that they
    /// know, and without certificates they are found by multicast on the loopback interface.
    #[serde(default = "scouts_by_default")]
    pub scout: bool,
}

/// Files that prove who a host is, in PEM format. They stay where they are while the host runs:
/// each connection that it makes reads them again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificates {
    /// Certificate of the authority that signs the hosts' certificates.
    pub authority: PathBuf,
    /// Certificate of this host. Its common name is the host's name.
    pub certificate: PathBuf,
    /// Private key of this host's certificate.
    pub key: PathBuf,
}

/// Why a settings file cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SettingsError {
    #[error("{file}: {error}; name a readable settings file")]
    Unreadable { file: String, error: io::Error },
    #[error("{file}:{line}:{column}: {what}")]
    Text {
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        what: String,
    },
    #[error("{file}: {error}")]
    Check { file: String, error: CheckError },
}

/// Why settings cannot be used, whether they come from a file or from a program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CheckError {
    #[error("{field} is {name:?}; a name has 1 to {NAME_CHARS_MAX} characters of a-z, 0-9 and -")]
    Name { field: &'static str, name: String },
    #[error("{field} has {count} entries; name at most {limit}")]
    TooMany { field: &'static str, count: usize, limit: usize },
    #[error("{field} has endpoint {endpoint:?}; write {protocol}/ADDRESS:PORT")]
    Endpoint { field: &'static str, endpoint: String, protocol: &'static str },
    #[error(
        "{field} has endpoint {endpoint:?}, but without certificates a host talks only to hosts of its own machine; \
         add certificates, or use tcp/127.0.0.1:PORT"
    )]
    NotLoopback { field: &'static str, endpoint: String },
    #[error(
        "{field} has endpoint {endpoint:?}, but with certificates every endpoint is quic/ADDRESS:PORT; write quic/"
    )]
    NotQuic { field: &'static str, endpoint: String },
    #[error("connect has endpoint {endpoint:?}, but QUIC connects to names and IPv4 addresses; write the host's name")]
    BracketedAddress { endpoint: String },
    #[error("allow has names, but without certificates nobody can prove a name; add certificates, or remove allow")]
    AllowWithoutCertificates,
    #[error("nobody may join: name the hosts in allow")]
    NobodyAllowed,
    #[error("listen and connect are empty, so no host can be reached; name an endpoint in one of them")]
    NoEndpoint,
}

impl HostSettings {
    /// A host without certificates that listens on a free port of this machine and connects to
    /// nobody.
    pub fn on_this_machine(cluster: &str, name: &str) -> HostSettings {
        HostSettings {
            cluster: cluster.to_owned(),
            name: name.to_owned(),
            listen: Vec::new(),
            connect: Vec::new(),
            certificates: None,
            allow: Vec::new(),
            scout: scouts_by_default(),
        }
    }

    /// Reads and checks a settings file. Paths of certificates are relative to the file.
    ///
    /// # Errors
    /// [`SettingsError`], with the file and, for an error in its text, the place.
    pub fn read(path: &Path) -> Result<HostSettings, SettingsError> {
        let file = path.display().to_string();
        let unreadable = |error| SettingsError::Unreadable { file: file.clone(), error };
        let text = files::read_named_text(path, FILE_BYTES_MAX).map_err(unreadable)?;
        let mut settings = text::parse(&text).map_err(|error| {
            let text::TextError { line, column, what } = error;
            SettingsError::Text { file: file.clone(), line, column, what }
        })?;
        if let Some(certificates) = &mut settings.certificates {
            certificates.make_relative_to(path.parent().unwrap_or_else(|| Path::new("")));
        }
        settings.check().map_err(|error| SettingsError::Check { file, error })?;
        Ok(settings)
    }

    /// Checks the rules between the fields.
    ///
    /// # Errors
    /// [`CheckError`], one sentence about the first field that breaks a rule.
    pub fn check(&self) -> Result<(), CheckError> {
        let name = |field, name: &String| match is_name(name) {
            true => Ok(()),
            false => Err(CheckError::Name { field, name: name.clone() }),
        };
        let length = |field, count, limit| match count <= limit {
            true => Ok(()),
            false => Err(CheckError::TooMany { field, count, limit }),
        };
        name("cluster", &self.cluster)?;
        name("name", &self.name)?;
        length("listen", self.listen.len(), ENDPOINTS_MAX)?;
        length("connect", self.connect.len(), ENDPOINTS_MAX)?;
        length("allow", self.allow.len(), NAMES_MAX)?;
        self.allow.iter().try_for_each(|allowed| name("allow", allowed))?;
        match (&self.certificates, self.allow.is_empty()) {
            (None, false) => return Err(CheckError::AllowWithoutCertificates),
            (Some(_), true) => return Err(CheckError::NobodyAllowed),
            (Some(_), false) if self.listen.is_empty() && self.connect.is_empty() => {
                return Err(CheckError::NoEndpoint);
            }
            _ => {}
        }
        let check = |field, endpoint: &String| check_endpoint(field, endpoint, self.certificates.is_some());
        self.listen.iter().try_for_each(|endpoint| check("listen", endpoint))?;
        self.connect.iter().try_for_each(|endpoint| check("connect", endpoint))
    }

    /// Whether host `name` may join. Without certificates everybody on this machine may.
    pub fn allows(&self, name: &str) -> bool {
        self.certificates.is_none() || self.allow.iter().any(|allowed| allowed == name)
    }

    /// Endpoints to listen on: those of `listen`, or a free port of this machine for a host without
    /// certificates.
    pub fn listen_endpoints(&self) -> Vec<String> {
        if self.listen.is_empty() && self.certificates.is_none() {
            return vec![LOOPBACK_LISTEN.to_owned()];
        }
        self.listen.clone()
    }
}

impl Certificates {
    fn make_relative_to(&mut self, directory: &Path) {
        for file in [&mut self.authority, &mut self.certificate, &mut self.key] {
            *file = directory.join(&*file);
        }
    }
}

/// Whether `text` is a host's or a cluster's name: 1 to [`NAME_CHARS_MAX`] characters of `a-z`,
/// `0-9` and `-`. Names are parts of key expressions, where `/`, `*`, `$`, `?` and `#` have
/// meanings.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn scouts_by_default() -> bool {
    true
}

/// Address and port of an endpoint of the given protocol. `#` and `?` would start options of the
/// transport, which could turn authentication off.
fn address<'a>(endpoint: &'a str, protocol: &str) -> Option<(&'a str, u16)> {
    let (own, rest) = endpoint.split_once('/')?;
    let (address, port) = rest.rsplit_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let inner = address.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let valid = match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !address.is_empty() && address.chars().all(plain),
    };
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (own == protocol && valid && digits).then_some((address, port.parse().ok()?))
}

/// With certificates an endpoint is one of QUIC, without them one of this machine.
fn check_endpoint(field: &'static str, endpoint: &str, has_certificates: bool) -> Result<(), CheckError> {
    let named = || endpoint.to_owned();
    let (protocol, other) = match has_certificates {
        true => ("quic", CheckError::NotQuic { field, endpoint: named() }),
        false => ("tcp", CheckError::NotLoopback { field, endpoint: named() }),
    };
    if !endpoint.strip_prefix(protocol).is_some_and(|rest| rest.starts_with('/')) {
        return Err(other);
    }
    let malformed = || CheckError::Endpoint { field, endpoint: named(), protocol };
    let (address, port) = address(endpoint, protocol).ok_or_else(malformed)?;
    let is_loopback = matches!(address, "localhost" | "[::1]")
        || address.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    match (field, port) {
        _ if !has_certificates && !is_loopback => Err(other),
        ("connect", _) if has_certificates && address.starts_with('[') => {
            Err(CheckError::BracketedAddress { endpoint: named() })
        }
        // Nobody can connect to port 0.
        ("connect", 0) => Err(malformed()),
        _ => Ok(()),
    }
}
