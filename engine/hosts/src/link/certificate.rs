//! The common name in a host's own certificate, read before zenoh reads it.
//!
//! Runs on the thread that opens the link. Bounded by the file. Never verifies a certificate: zenoh
//! does.
//!
//! # Why it is read here
//!
//! Other hosts give rights to the common name. If it differs from the host's name, they drop
//! everything that this host says, and neither side learns why.

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Object identifier of a common name, 2.5.4.3, in DER.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The version of a certificate, which may be missing.
const VERSION: u8 = 0xa0;
/// Serial number, algorithm, issuer and validity: the fields before the subject.
const FIELDS_BEFORE_SUBJECT: usize = 4;

/// First common name of the first certificate in a PEM text, as zenoh reads it.
pub(super) fn common_name(pem: &str) -> Option<String> {
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
    let (base64, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let bytes = BASE64_STANDARD.decode(base64.split_ascii_whitespace().collect::<String>()).ok()?;
    let (certificate, _) = take(&bytes, SEQUENCE)?;
    let (mut fields, _) = take(certificate, SEQUENCE)?;
    if let Some((_, rest)) = take(fields, VERSION) {
        fields = rest;
    }
    for _ in 0..FIELDS_BEFORE_SUBJECT {
        let (_, _, rest) = element(fields)?;
        fields = rest;
    }
    let (mut subject, _) = take(fields, SEQUENCE)?;
    while let Some((names, rest)) = take(subject, SET) {
        let (attribute, _) = take(names, SEQUENCE)?;
        let (kind, value) = take(attribute, OBJECT_IDENTIFIER)?;
        if kind == COMMON_NAME {
            let (_, text, _) = element(value)?;
            return String::from_utf8(text.to_vec()).ok();
        }
        subject = rest;
    }
    None
}

/// Content of the first element if it has this tag, and what follows it.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|&(own, _, _)| own == tag).map(|(_, content, rest)| (content, rest))
}

/// Tag and content of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // The length follows, in at most three bytes.
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::common_name;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn certificate(names: &[(DnType, &str)]) -> String {
        let mut params = CertificateParams::new(vec!["host.example".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn the_common_name_is_found_among_others() {
        let organization = (DnType::OrganizationName, "laboratory");
        let pem = certificate(&[organization, (DnType::CommonName, "lab-a"), (DnType::LocalityName, "here")]);
        assert_eq!(common_name(&pem).as_deref(), Some("lab-a"));
        let long = "a".repeat(64);
        assert_eq!(common_name(&certificate(&[(DnType::CommonName, &long)])), Some(long));
    }

    #[test]
    fn what_has_no_common_name_gives_none() {
        assert_eq!(common_name(&certificate(&[(DnType::OrganizationName, "laboratory")])), None);
        assert_eq!(common_name(""), None);
        assert_eq!(common_name("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), None);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_read_without_a_panic() {
        let pem = certificate(&[(DnType::CommonName, "lab-a")]);
        for (place, _) in pem.char_indices() {
            let _any = common_name(&pem[..place]);
            for other in ["A", "/", "9", " "] {
                let mut changed = pem.clone();
                changed.replace_range(place..place + 1, other);
                let _any = common_name(&changed);
            }
        }
    }
}
