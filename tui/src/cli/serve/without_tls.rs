//! A build without the feature `tls`: a certificate is refused.

use crate::cli::refusal::Refusal;
use std::io;
use std::path::Path;

/// Accepts connections by TLS; there is none in this build.
pub enum Acceptor {}

impl Acceptor {
    pub async fn accept<S>(&self, _: S) -> io::Result<S> {
        match *self {}
    }
}

pub fn acceptor(cert: &Path, _: &Path) -> Result<Acceptor, Refusal> {
    let remedy = "build one with --features tls, or listen on 127.0.0.1 and forward the port (ssh -L)";
    let found = "a program that was built without TLS";
    Err(Refusal::unusable(format!("--cert {}", cert.display()), found, "one with it", remedy))
}
