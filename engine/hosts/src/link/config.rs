//! Configuration of zenoh, as its JSON document.
//!
//! Runs on the thread that opens the link. Bounded by the settings. Pure, apart from the paths of
//! certificates that it passes on. Every value that zenoh would take from its defaults and that
//! matters here is written out.
//!
//! # Why the endpoint's address is not verified
//!
//! A host is identified by the common name of its certificate, not by its address: hosts found by
//! gossip have numeric addresses, which their certificates do not contain. [`rights`] ties every
//! right to the common name, so a host that answers at the address of another gets its own rights
//! only.
//!
//! # Why a session may have two connections
//!
//! zenoh takes a session's rights from its first connection. With a limit of one connection it
//! accepts a further one from anybody who has a certificate of the authority and claims the
//! session's id. A limit above one makes it demand that both connections are made with the same
//! key, which each session draws for itself.
//!
//! # Why a handshake may last a minute
//!
//! At its limit zenoh drops a handshake wherever it is. Between the last message and the start of
//! the receiving task that leaves a connection which sends and never receives. Its keep-alive
//! messages let the other host believe that all is well, so the hosts do not see each other before
//! one of them ends. With a limit of three seconds, hosts whose network was down for about that
//! long met this once in a hundred times on a busy machine. A handshake that is held up goes on
//! when the network or the process does. One whose peer is gone ends by itself: the system closes
//! the connections of a process that ended, and QUIC gives up after thirty seconds of silence.

use super::keys::Keys;
use super::{BODY_BYTES_MAX, HOSTS_MAX, LEASE, SEND_BLOCKED_LIMIT};
use crate::settings::HostSettings;
use serde_json::{Value, json};

/// Keep-alive messages in one lease.
const KEEP_ALIVES_PER_LEASE: u32 = 4;
/// First and longest pause between two attempts to connect, in milliseconds.
const RETRY_MS: (u32, u32) = (200, 2_000);
/// Longest handshake: so long that none reaches it, see "Why a handshake may last a minute".
const HANDSHAKE_MS: u32 = 60_000;
/// Connections of one session: one that each side opened.
const LINKS_MAX: usize = 2;
/// Bytes that a message may have beside a body, for its key expression and headers.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Where hosts of one machine find each other. Not zenoh's own group: programs of others use that
/// one.
const SCOUTING_GROUP: &str = "224.0.0.225:7460";
/// Interface of the scouting: loopback, so that no other machine hears it.
const SCOUTING_INTERFACE: &str = "127.0.0.1";

/// The document for a host that listens on `listen`.
pub(super) fn document(settings: &HostSettings, listen: &[String], keys: &Keys) -> Value {
    let mut link = json!({
        "protocols": ["tcp"],
        "tx": {
            "lease": millis(LEASE),
            "keep_alive": KEEP_ALIVES_PER_LEASE,
            "threads": 1,
            "queue": {
                "congestion_control": { "block": { "wait_before_close": millis(SEND_BLOCKED_LIMIT) * 1_000 } },
            },
        },
        // A message above a body's limit reaches the receiver, which refuses it, unless it is twice
        // as large.
        "rx": { "max_message_size": 2 * BODY_BYTES_MAX + HEADER_BYTES_MAX },
    });
    let mut access = json!({ "enabled": false });
    if let Some(certificates) = &settings.certificates {
        let (certificate, key) = (certificates.certificate.display(), certificates.key.display());
        link["protocols"] = json!(["quic"]);
        link["tls"] = json!({
            "root_ca_certificate": certificates.authority.display().to_string(),
            "enable_mtls": true,
            "listen_certificate": certificate.to_string(),
            "listen_private_key": key.to_string(),
            "connect_certificate": certificate.to_string(),
            "connect_private_key": key.to_string(),
            "verify_name_on_connect": false,
            "close_link_on_expiration": true,
        });
        access = rights(settings, keys);
    }
    let is_scouting = settings.scout && settings.certificates.is_none();
    json!({
        "mode": "peer",
        "connect": {
            "endpoints": settings.connect,
            "timeout_ms": -1,
            "exit_on_failure": false,
            "retry": { "period_init_ms": RETRY_MS.0, "period_max_ms": RETRY_MS.1, "period_increase_factor": 2.0 },
        },
        "listen": { "endpoints": listen, "timeout_ms": 0, "exit_on_failure": true },
        // The link itself waits for other hosts.
        "open": { "return_conditions": { "connect_scouted": false, "declares": false } },
        "scouting": {
            "multicast": {
                "enabled": is_scouting,
                "address": SCOUTING_GROUP,
                "interface": SCOUTING_INTERFACE,
                "ttl": 0,
                "autoconnect": ["peer"],
                "listen": true,
            },
            "gossip": { "enabled": settings.scout, "multihop": false, "autoconnect": ["peer"] },
        },
        "timestamping": { "enabled": false },
        "adminspace": { "enabled": false },
        "plugins_loading": { "enabled": false },
        "transport": {
            "unicast": {
                "open_timeout": HANDSHAKE_MS,
                "accept_timeout": HANDSHAKE_MS,
                "max_sessions": HOSTS_MAX,
                "max_links": LINKS_MAX,
            },
            "link": link,
        },
        "access_control": access,
    })
}

/// What each allowed host may do, in both directions. Everything else is denied, and everything to
/// and from a peer whose certificate has another name.
fn rights(settings: &HostSettings, keys: &Keys) -> Value {
    let own = keys.own();
    let (mut rules, mut subjects, mut policies) = (Vec::new(), Vec::new(), Vec::new());
    let mut names: Vec<&str> = settings.allow.iter().map(String::as_str).collect();
    names.extend([own]);
    names.sort_unstable();
    names.dedup();
    for name in names {
        // A second host of this name shows its presence, so that the conflict is found, and may do
        // nothing else.
        let rights = if name == own { rights_of_namesake(keys) } else { rights_of_host(keys, name) };
        let mut ids = Vec::new();
        for Right { flow, message, key } in rights {
            let id = format!("{name} {flow} {message}");
            rules.push(json!({
                "id": id, "messages": [message], "flows": [flow], "permission": "allow", "key_exprs": [key],
            }));
            ids.push(id);
        }
        subjects.push(json!({ "id": name, "cert_common_names": [name], "link_protocols": ["quic"] }));
        policies.push(json!({ "rules": ids, "subjects": [name] }));
    }
    json!({
        "enabled": true,
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    })
}

/// One message that may pass.
struct Right {
    flow: &'static str,
    message: &'static str,
    key: String,
}

fn rights_of_namesake(keys: &Keys) -> Vec<Right> {
    rights_to_presence(keys, keys.own())
}

fn rights_of_host(keys: &Keys, name: &str) -> Vec<Right> {
    let own = keys.own();
    let (to_us, to_it) = (keys.questions(own, name, "*"), keys.questions(name, own, "*"));
    let right = |flow, message, key: &str| Right { flow, message, key: key.to_owned() };
    let mut rights = rights_to_presence(keys, name);
    rights.extend([
        right("ingress", "query", &to_us),
        right("egress", "query", &to_it),
        right("ingress", "reply", &to_it),
        right("egress", "reply", &to_us),
        right("ingress", "declare_queryable", &keys.questions(name, "*", "*")),
        right("egress", "declare_queryable", &keys.inbox()),
    ]);
    rights
}

fn rights_to_presence(keys: &Keys, name: &str) -> Vec<Right> {
    let right = |flow, key| Right { flow, message: "liveliness_token", key };
    vec![right("ingress", keys.presences(name)), right("egress", keys.presences(keys.own()))]
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::document;
    use crate::link::keys::Keys;
    use crate::settings::{Certificates, HostSettings};

    fn with_certificates() -> HostSettings {
        HostSettings {
            listen: vec!["quic/0.0.0.0:7447".to_owned()],
            certificates: Some(Certificates { authority: "ca".into(), certificate: "a".into(), key: "k".into() }),
            allow: vec!["b".to_owned(), "c".to_owned(), "b".to_owned()],
            ..HostSettings::on_this_machine("lab", "a")
        }
    }

    #[test]
    fn zenoh_knows_every_key_of_the_document() {
        for settings in [HostSettings::on_this_machine("lab", "a"), with_certificates()] {
            let document = document(&settings, &settings.listen_endpoints(), &Keys::new("lab", "a"));
            zenoh::Config::from_json5(&document.to_string()).unwrap();
        }
    }

    #[test]
    fn a_host_with_certificates_neither_scouts_nor_speaks_without_encryption() {
        let settings = with_certificates();
        let document = document(&settings, &settings.listen, &Keys::new("lab", "a"));
        assert_eq!(document["scouting"]["multicast"]["enabled"], false);
        assert_eq!(document["transport"]["link"]["protocols"], serde_json::json!(["quic"]));
        assert_eq!(document["transport"]["link"]["tls"]["enable_mtls"], true);
        assert_eq!(document["transport"]["unicast"]["max_links"], 2, "further connections prove whose they are");
        assert_eq!(document["access_control"]["default_permission"], "deny");
    }

    #[test]
    fn a_host_may_ask_answer_and_be_present_under_its_own_name_only() {
        let settings = with_certificates();
        let document = document(&settings, &settings.listen, &Keys::new("lab", "a"));
        let rules = document["access_control"]["rules"].as_array().unwrap();
        let keys = |name: &str, flow: &str| -> Vec<&str> {
            let begin = format!("{name} {flow} ");
            let of_name = rules.iter().filter(|rule| rule["id"].as_str().unwrap().starts_with(&begin));
            of_name.map(|rule| rule["key_exprs"][0].as_str().unwrap()).collect()
        };
        let expected = [
            "pinwheel/lab/present/b/*",
            "pinwheel/lab/to/a/from/b/*",
            "pinwheel/lab/to/b/from/a/*",
            "pinwheel/lab/to/b/from/*/*",
        ];
        assert_eq!(keys("b", "ingress"), expected);
        assert_eq!(keys("a", "ingress"), ["pinwheel/lab/present/a/*"], "a namesake is seen and may do nothing");
        assert_eq!(document["access_control"]["subjects"].as_array().unwrap().len(), 3, "each name once");
    }
}
