//! TLS by a certificate that the user names: version 1.3, which every browser since 2020 has.
//!
//! For builds with the feature `tls`: its libraries take 42 s of processor time to build in release, as much as all
//! that the rest of `serve` needs.

use crate::cli::refusal::Refusal;
use pinwheel_engine::files;
use std::path::Path;
use std::sync::Arc;
pub use tokio_rustls::TlsAcceptor as Acceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{Error as TlsError, ServerConfig};

/// Most bytes of either file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Accepts connections with this certificate chain and its key.
///
/// # Errors
/// A file that cannot be read or has none, or a key of another certificate.
pub fn acceptor(cert: &Path, key: &Path) -> Result<Acceptor, Refusal> {
    let refused = |option: &str, path: &Path, found: String, expected: &str| {
        Refusal::unusable(format!("{option} {}", path.display()), found, expected, "name files in PEM")
    };
    let read = |option: &str, path: &Path| {
        let expected = "a readable file of at most 1 MiB";
        files::read_named_text(path, FILE_BYTES_MAX).map_err(|error| refused(option, path, error.to_string(), expected))
    };
    let (chain_text, key_text) = (read("--cert", cert)?, read("--key", key)?);
    let chain = CertificateDer::pem_slice_iter(chain_text.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| refused("--cert", cert, error.to_string(), "a certificate"))?;
    if chain.is_empty() {
        return Err(refused("--cert", cert, "no certificate".to_owned(), "one, and those that it needs"));
    }
    let of_key = |found: &str, expected: &str, remedy: &str| {
        Refusal::unusable(format!("--key {}", key.display()), found, expected, remedy)
    };
    let private = PrivateKeyDer::from_pem_slice(key_text.as_bytes()).map_err(|error| match error {
        _ if key_text.contains("ENCRYPTED") => {
            of_key("a key with a password", "a private key without one", "decrypt it: openssl pkey -in KEY -out FILE")
        }
        pem::Error::NoItemsFound => refused("--key", key, "no private key".to_owned(), "one"),
        error => refused("--key", key, error.to_string(), "a private key"),
    })?;
    // Said, not left to the libraries' defaults: another feature of this build may compile older versions in.
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has the ciphers of version 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            TlsError::InconsistentKeys(_) => {
                let remedy = "name the key that the certificate was made with";
                of_key("a key of another certificate", "that of --cert", remedy)
            }
            error => refused("--key", key, error.to_string(), "the key of the certificate"),
        })?;
    Ok(Acceptor::from(Arc::new(config)))
}
