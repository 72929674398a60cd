//! Certificates of the tests: an authority, and hosts' certificates that it signs.

use pinwheel_hosts::settings::Certificates;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An authority that signs certificates of hosts.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = params("authority of the tests", SystemTime::now() + DAY);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { issuer, folder: tempfile::tempdir().unwrap() };
        std::fs::write(authority.file(), authority.issuer.pem()).unwrap();
        authority
    }

    /// The authority's certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Files of a host whose certificate is valid for a day.
    pub(crate) fn host(&self, name: &str) -> Certificates {
        self.host_until(name, SystemTime::now() + DAY)
    }

    /// Files of a host whose certificate ends at `end`.
    pub(crate) fn host_until(&self, name: &str, end: SystemTime) -> Certificates {
        let key = KeyPair::generate().unwrap();
        let signed = params(name, end).signed_by(&key, &self.issuer).unwrap();
        let file = |ending: &str| self.folder.path().join(format!("{name}.{ending}"));
        std::fs::write(file("pem"), signed.pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
        Certificates { authority: self.file(), certificate: file("pem"), key: file("key") }
    }
}

fn params(name: &str, end: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.replace(' ', "-")]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = (end - 3 * DAY).into();
    params.not_after = end.into();
    params
}
