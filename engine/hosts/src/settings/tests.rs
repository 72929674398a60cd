#![allow(clippy::unwrap_used, reason = "harness")]

use super::{CheckError, ENDPOINTS_MAX, FILE_BYTES_MAX, HostSettings, NAMES_MAX, SettingsError, is_name};
use std::path::Path;

/// What reading a file `hosts.ron` with this text says.
fn said(text: &str) -> String {
    read(text).unwrap_err()
}

fn read(text: &str) -> Result<HostSettings, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts.ron");
    std::fs::write(&path, text).unwrap();
    let prefix = format!("{}/", folder.path().display());
    HostSettings::read(&path).map_err(|error| error.to_string().replace(&prefix, ""))
}

/// The settings of a host with certificates.
fn with_certificates() -> HostSettings {
    let text = r#"(cluster: "lab", name: "lab-a", listen: ["quic/0.0.0.0:7447"], allow: ["lab-b"],
        certificates: Some((authority: "ca.pem", certificate: "a.pem", key: "/keys/a.key")))"#;
    read(text).unwrap()
}

#[test]
fn a_file_with_two_names_is_enough_for_hosts_of_one_machine() {
    let settings = read(r#"(cluster: "lab", name: "lab-a")"#).unwrap();
    assert_eq!(settings, HostSettings::on_this_machine("lab", "lab-a"));
    assert_eq!(settings.listen_endpoints(), ["tcp/127.0.0.1:0"]);
    assert!(settings.scout && settings.allows("anybody"));
}

#[test]
fn paths_of_certificates_are_relative_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts.ron");
    let text = r#"(cluster: "lab", name: "lab-a", listen: ["quic/0.0.0.0:7447"], connect: ["quic/lab-b.example:7447"],
        certificates: Some((authority: "ca.pem", certificate: "own/a.pem", key: "/keys/a.key")), allow: ["lab-b"])"#;
    std::fs::write(&path, text).unwrap();
    let settings = HostSettings::read(&path).unwrap();
    let certificates = settings.certificates.clone().unwrap();
    assert_eq!(certificates.authority, folder.path().join("ca.pem"));
    assert_eq!(certificates.certificate, folder.path().join("own/a.pem"));
    assert_eq!(certificates.key, Path::new("/keys/a.key"));
    assert!(settings.allows("lab-b") && !settings.allows("lab-c") && !settings.allows("lab-a"));
}

#[test]
fn a_mistake_in_the_text_is_named_with_its_place_and_its_remedy() {
    for (text, expected) in [
        (
            "(\n  cluster: \"lab\",\n    nmae: \"a\",\n)",
            "hosts.ron:3:5: unknown field \"nmae\"; did you mean \"name\"?",
        ),
        (
            "(\n  cluster: \"lab\", name: \"a\",\n  colour: 3)",
            "hosts.ron:3:3: unknown field \"colour\"; known are cluster, name, listen, connect, certificates, allow, scout",
        ),
        (
            "(cluster: \"lab\",\n name: \"a\",\n name: \"b\")",
            "hosts.ron:3:2: field \"name\" is given twice; remove one of them",
        ),
    ] {
        assert_eq!(said(text), expected);
    }
    for (text, part) in [
        ("(cluster: \"lab\")", "field \"name\" is missing; add it"),
        ("(cluster: \"lab\", name: 3)", "a text is expected here; put it in double quotes"),
        ("(cluster: \"lab\" name: \"a\")", "put a comma between fields"),
        ("(cluster: \"lab\", name: \"a\", certificates: (key: \"k\"))", "certificates are None or Some("),
        ("(cluster: \"lab\", name: \"a\"", "hosts.ron:1:"),
        ("(cluster: \"lab\", name: \"a\") more", "there is text after the closing bracket; remove it"),
        ("\"lab\"", "fields are in round brackets"),
    ] {
        let said = said(text);
        assert!(said.contains(part) && !said.contains("HostSettings"), "{said}");
    }
}

#[test]
fn an_unreadable_file_and_a_large_one_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = HostSettings::read(&folder.path().join("none.ron")).unwrap_err();
    assert!(matches!(missing, SettingsError::Unreadable { .. }), "{missing}");
    let large = folder.path().join("large.ron");
    std::fs::write(&large, " ".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() + 1)).unwrap();
    assert!(matches!(HostSettings::read(&large).unwrap_err(), SettingsError::Unreadable { .. }));
}

#[test]
fn names_are_lower_case_letters_digits_and_hyphens() {
    let longest = "a".repeat(64);
    for name in ["a", "lab-a", "0", "-", longest.as_str()] {
        assert!(is_name(name), "{name}");
    }
    let longer = "a".repeat(65);
    for name in ["", "Lab", "a/b", "*", "a b", "a.b", "ä", "a*", "$*", "a?b", longer.as_str()] {
        assert!(!is_name(name), "{name}");
        let error = HostSettings::on_this_machine("lab", name).check().unwrap_err();
        assert_eq!(error, CheckError::Name { field: "name", name: name.to_owned() });
        assert!(HostSettings::on_this_machine(name, "a").check().is_err());
    }
    let settings = HostSettings { allow: vec!["LAB".to_owned()], ..with_certificates() };
    assert_eq!(settings.check().unwrap_err(), CheckError::Name { field: "allow", name: "LAB".to_owned() });
}

#[test]
fn without_certificates_endpoints_are_on_this_machine() {
    let settings = |endpoint: &str| HostSettings {
        connect: vec![endpoint.to_owned()],
        ..HostSettings::on_this_machine("lab", "a")
    };
    for endpoint in ["tcp/127.0.0.1:7447", "tcp/127.8.9.1:1", "tcp/localhost:65535", "tcp/[::1]:7447"] {
        assert_eq!(settings(endpoint).check(), Ok(()), "{endpoint}");
    }
    for endpoint in [
        "tcp/0.0.0.0:7447",
        "tcp/10.0.0.1:7447",
        "tcp/[::]:7447",
        "tcp/lab-b:7447",
        "quic/127.0.0.1:7447",
        "udp/127.0.0.1:1",
    ] {
        let said = settings(endpoint).check().unwrap_err().to_string();
        assert!(said.contains("without certificates a host talks only to hosts of its own machine"), "{said}");
    }
    for endpoint in [
        "tcp/127.0.0.1",
        "tcp/127.0.0.1:",
        "tcp/127.0.0.1:0",
        "tcp/127.0.0.1:65536",
        "tcp/127.0.0.1:+1",
        "tcp/127.0.0.1:1#iface=eth0",
        "tcp/:1",
        "tcp/[::1:1",
        "tcp/127.0.0.1?rel=0:1",
        "tcp/127.0.0.1#bind=0.0.0.0:1",
    ] {
        let error = settings(endpoint).check().unwrap_err();
        assert!(matches!(error, CheckError::Endpoint { protocol: "tcp", .. }), "{error}");
    }
    let listening =
        HostSettings { listen: vec!["tcp/127.0.0.1:0".to_owned()], ..HostSettings::on_this_machine("lab", "a") };
    assert_eq!(listening.check(), Ok(()));
}

#[test]
fn with_certificates_endpoints_are_encrypted() {
    let settings = |endpoint: &str| HostSettings { connect: vec![endpoint.to_owned()], ..with_certificates() };
    assert_eq!(settings("quic/lab-b.example:7447").check(), Ok(()));
    assert!(matches!(settings("tcp/127.0.0.1:7447").check(), Err(CheckError::NotQuic { .. })));
    assert!(matches!(settings("tls/lab-b:7447").check(), Err(CheckError::NotQuic { .. })));
    assert!(matches!(settings("quic/lab-b:7447#enable_mtls=false").check(), Err(CheckError::Endpoint { .. })));
    assert!(matches!(settings("quic/[fe80::1]:7447").check(), Err(CheckError::BracketedAddress { .. })));
    let unreachable = HostSettings { listen: Vec::new(), ..with_certificates() };
    assert_eq!(unreachable.check(), Err(CheckError::NoEndpoint));
}

#[test]
fn allow_and_certificates_come_together() {
    let unproved = HostSettings { allow: vec!["b".to_owned()], ..HostSettings::on_this_machine("lab", "a") };
    assert_eq!(unproved.check(), Err(CheckError::AllowWithoutCertificates));
    let nobody = HostSettings { allow: Vec::new(), ..with_certificates() };
    assert_eq!(nobody.check().unwrap_err().to_string(), "nobody may join: name the hosts in allow");
}

#[test]
fn lists_are_bounded() {
    let own = || HostSettings::on_this_machine("lab", "a");
    let endpoints = |count: usize| vec!["tcp/127.0.0.1:7447".to_owned(); count];
    assert_eq!(HostSettings { connect: endpoints(ENDPOINTS_MAX), ..own() }.check(), Ok(()));
    for settings in [
        HostSettings { connect: endpoints(ENDPOINTS_MAX + 1), ..own() },
        HostSettings { listen: endpoints(ENDPOINTS_MAX + 1), ..own() },
        HostSettings { allow: vec!["b".to_owned(); NAMES_MAX + 1], ..with_certificates() },
    ] {
        assert!(matches!(settings.check(), Err(CheckError::TooMany { .. })));
    }
}
