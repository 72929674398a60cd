//! Who is kept out by certificates. Each test has a positive control: a host that joins, asks and
//! is answered the same way, after the intruder had its chance.

use crate::authority::Authority;
use crate::cluster::{A_WHILE, Asked, Host, SOON, cluster, raw_ask, session, settings};
use crate::presence::free_address;
use pinwheel_hosts::link::{NoAnswer, OpenError, Presence, Topic};
use pinwheel_hosts::settings::{Certificates, HostSettings};
use serde_json::json;
use std::net::UdpSocket;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};
use zenoh::Wait;

const FAR: Duration = Duration::from_secs(30);
/// Limit of questions that must not be answered.
const SHORT: Duration = Duration::from_secs(1);

/// Settings of a host that listens on `endpoint`.
pub(crate) fn secured(
    cluster: &str,
    name: &str,
    certificates: Certificates,
    endpoint: &str,
    others: &[String],
    allow: &[&str],
) -> HostSettings {
    HostSettings {
        listen: vec![endpoint.to_owned()],
        certificates: Some(certificates),
        allow: allow.iter().map(|&name| name.to_owned()).collect(),
        ..settings(cluster, name, others)
    }
}

/// An endpoint of this machine where nobody listens at present.
pub(crate) fn free_quic() -> String {
    format!("quic/{}", free_address(|at| UdpSocket::bind(at).is_ok()))
}

/// Configuration of a zenoh session with these certificates.
fn tls(certificates: &Certificates) -> serde_json::Value {
    json!({
        "root_ca_certificate": certificates.authority,
        "enable_mtls": true,
        "connect_certificate": certificates.certificate,
        "connect_private_key": certificates.key,
        "listen_certificate": certificates.certificate,
        "listen_private_key": certificates.key,
        "verify_name_on_connect": false,
    })
}

/// A host `one` that allows `two` and `four`, and the control `two`, which joins after the
/// intruder.
struct Scene {
    cluster: String,
    authority: Authority,
    one: Host,
    endpoint: String,
}

impl Scene {
    /// `one` connects to `intruder`, and can be reached by it.
    fn new(intruder: &str) -> Scene {
        let (cluster, authority, endpoint) = (cluster(), Authority::new(), free_quic());
        let own = authority.host("one");
        let others = [intruder.to_owned()];
        let one = Host::open(&secured(&cluster, "one", own, &endpoint, &others, &["two", "four", "five"]));
        Scene { cluster, authority, one, endpoint }
    }

    fn endpoints(&self) -> Vec<String> {
        vec![self.endpoint.clone()]
    }

    /// Joins, asks and is answered; then nothing of anybody else has arrived, or arrives.
    fn control(&self) -> Host {
        self.control_beside("")
    }

    /// As [`Scene::control`]; the host `known` may come again.
    fn control_beside(&self, known: &str) -> Host {
        let own = self.authority.host("two");
        let allow = ["one", "three", "four", "five"];
        let two = Host::open(&secured(&self.cluster, "two", own, &free_quic(), &self.endpoints(), &allow));
        two.sees("one");
        assert_eq!(two.ask("one", Topic::Board, b"control", FAR), Ok(b"control".to_vec()));
        let control = Asked { from: "two".to_owned(), topic: Topic::Board, body: b"control".to_vec() };
        assert_eq!(self.one.questions.recv_timeout(SOON), Ok(control), "the first question is the control's");
        loop {
            match self.one.presence.recv_timeout(SOON).unwrap() {
                Presence::Here { name, incarnation } if name == "two" => {
                    assert_eq!(incarnation, two.link.incarnation(), "another one of its name came");
                    return two;
                }
                Presence::Here { name, .. } => assert_eq!(name, known, "nobody else came before the control"),
                Presence::Gone { .. } => {}
            }
        }
    }

    fn nothing_else_arrives(&self) {
        let (event, question) = (self.one.presence.recv_timeout(A_WHILE), self.one.questions.try_recv());
        assert!(event.is_err() && question.is_err(), "{event:?} {question:?}");
    }
}

/// The intruder uses a link under `name` and never joins.
fn is_kept_out(name: &str, certificates: impl Fn(&Authority) -> Certificates) {
    let listening = free_quic();
    let scene = Scene::new(&listening);
    let own = certificates(&scene.authority);
    let allow = ["one", "two"];
    let intruder = Host::open(&secured(&scene.cluster, name, own, &listening, &scene.endpoints(), &allow));
    let answer = intruder.ask("one", Topic::Command, b"intruder", SHORT);
    assert_eq!(answer, Err(NoAnswer::Unreachable));
    let two = scene.control();
    assert_eq!(scene.one.ask(name, Topic::Board, b"", SHORT), Err(NoAnswer::Unreachable));
    assert_eq!(two.ask(name, Topic::Board, b"", SHORT), Err(NoAnswer::Unreachable));
    assert_eq!(intruder.ask("one", Topic::Command, b"intruder", SHORT), Err(NoAnswer::Unreachable));
    scene.nothing_else_arrives();
    assert!(intruder.presence.try_recv().is_err(), "the intruder sees nobody");
}

#[test]
fn hosts_with_certificates_join_ask_and_answer() {
    let scene = Scene::new(&free_quic());
    let two = scene.control();
    assert_eq!(scene.one.ask("two", Topic::Describe, b"back", FAR), Ok(b"back".to_vec()));
    let incarnation = two.link.incarnation();
    drop(two);
    assert!(scene.one.misses("two", incarnation) < Duration::from_secs(2));
}

#[test]
fn a_certificate_of_another_authority_is_kept_out() {
    let other = Authority::new();
    // It trusts the right authority, but was signed by another.
    is_kept_out("four", |right| Certificates { authority: right.file(), ..other.host("four") });
}

#[test]
fn an_expired_certificate_is_kept_out() {
    is_kept_out("four", |authority| authority.host_until("four", SystemTime::now() - Duration::from_secs(60)));
}

#[test]
fn a_name_that_is_not_allowed_is_kept_out() {
    is_kept_out("stranger", |authority| authority.host("stranger"));
}

#[test]
fn a_session_without_a_certificate_is_kept_out() {
    let scene = Scene::new(&free_quic());
    let without = json!({ "root_ca_certificate": scene.authority.file(), "verify_name_on_connect": false });
    let intruder = session(&scene.endpoints(), &without);
    let token =
        intruder.liveliness().declare_token(format!("pinwheel/{}/present/four/1", scene.cluster)).wait().unwrap();
    let question = format!("pinwheel/{}/to/one/from/four/board", scene.cluster);
    assert_eq!(raw_ask(&intruder, &question, b"intruder".to_vec()), None);
    let _two = scene.control();
    assert_eq!(raw_ask(&intruder, &question, b"intruder".to_vec()), None);
    scene.nothing_else_arrives();
    drop(token);
}

#[test]
fn a_host_that_claims_the_name_of_another_neither_joins_nor_asks_nor_is_asked() {
    let scene = Scene::new(&free_quic());
    let four = session(&scene.endpoints(), &tls(&scene.authority.host("four")));
    let (sender, stolen) = channel();
    let claimed = [
        format!("pinwheel/{}/to/five/from/*/*", scene.cluster),
        format!("pinwheel/{}/to/two/from/*/*", scene.cluster),
        format!("pinwheel/{}/to/**", scene.cluster),
        "**".to_owned(),
    ];
    for key in claimed {
        let sender = sender.clone();
        let heard = move |query: zenoh::query::Query| sender.send(query.key_expr().to_string()).unwrap();
        four.declare_queryable(key).complete(true).callback(heard).background().wait().unwrap();
    }
    let _claims = ["five/1", "two/2"].map(|rest| {
        four.liveliness().declare_token(format!("pinwheel/{}/present/{rest}", scene.cluster)).wait().unwrap()
    });
    let _own = four.liveliness().declare_token(format!("pinwheel/{}/present/four/4", scene.cluster)).wait().unwrap();
    // Its own presence is the control: it came the same way as the claims.
    let told = scene.one.presence.recv_timeout(SOON);
    assert_eq!(told, Ok(Presence::Here { name: "four".to_owned(), incarnation: 4 }), "no claim came before");
    let two = scene.control_beside("four");
    for _ in 0..20 {
        assert_eq!(scene.one.ask("two", Topic::Shots, b"for two", FAR), Ok(b"for two".to_vec()));
    }
    assert_eq!(scene.one.ask("five", Topic::Shots, b"for five", SHORT), Err(NoAnswer::Unreachable));
    assert_eq!(two.questions.try_iter().count(), 20);
    assert!(stolen.try_recv().is_err(), "nothing was stolen");
    // It may ask as itself, and as nobody else.
    let question = |from: &str| format!("pinwheel/{}/to/one/from/{from}/board", scene.cluster);
    assert_eq!(raw_ask(&four, &question("four"), b"own".to_vec()).as_deref(), Some("own"));
    for from in ["two", "five", "*", "**"] {
        assert_eq!(raw_ask(&four, &question(from), b"claimed".to_vec()), None, "{from}");
    }
    let asked: Vec<Asked> = scene.one.questions.try_iter().collect();
    assert_eq!(asked, [Asked { from: "four".to_owned(), topic: Topic::Board, body: b"own".to_vec() }]);
}

#[test]
fn a_certificate_that_expires_ends_the_connection() {
    let scene = Scene::new(&free_quic());
    let left = Duration::from_secs(5);
    let end = Instant::now() + left;
    let own = scene.authority.host_until("four", SystemTime::now() + left);
    let four = Host::open(&secured(&scene.cluster, "four", own, &free_quic(), &scene.endpoints(), &["one"]));
    four.sees("one");
    let incarnation = scene.one.sees("four");
    scene.one.misses("four", incarnation);
    let early = end.saturating_duration_since(Instant::now());
    assert!(early < Duration::from_secs(2), "{early:?} before the certificate ended");
    assert_eq!(four.ask("one", Topic::Board, b"", SHORT), Err(NoAnswer::Unreachable));
    scene.control();
    assert!(scene.one.sees_within("four", A_WHILE).is_none(), "it does not come back");
}

#[test]
fn a_second_host_with_the_certificate_of_a_host_is_refused() {
    let scene = Scene::new(&free_quic());
    let own = scene.authority.host("one");
    let second = secured(&scene.cluster, "one", own, &free_quic(), &scene.endpoints(), &["two"]);
    let error = Host::try_open(&second).err().unwrap();
    assert!(matches!(error, OpenError::NameTaken { .. }), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let authority = Authority::new();
    let own = Certificates { key: "/nowhere/one.key".into(), ..authority.host("one") };
    let said = Host::try_open(&secured(&cluster(), "one", own, &free_quic(), &[], &["two"])).err().unwrap().to_string();
    assert!(said.starts_with("/nowhere/one.key: No such file"), "{said}");
}

#[test]
fn the_certificate_of_another_host_is_refused_at_the_opening() {
    let authority = Authority::new();
    let open = |own: Certificates| {
        Host::try_open(&secured(&cluster(), "one", own, &free_quic(), &[], &["two"])).err().unwrap().to_string()
    };
    let said = open(authority.host("two"));
    assert!(said.contains("two.pem: its common name is \"two\", but the host's name is \"one\""), "{said}");
    let own = authority.host("one");
    let said = open(Certificates { certificate: own.key.clone(), ..own });
    assert!(said.contains("it holds no certificate with a common name"), "{said}");
}

#[test]
fn a_key_of_another_certificate_is_said_in_a_persons_words() {
    let authority = Authority::new();
    let other = authority.host("two");
    let own = Certificates { key: other.key, ..authority.host("one") };
    let said = Host::try_open(&secured(&cluster(), "one", own, &free_quic(), &[], &["two"])).err().unwrap().to_string();
    assert!(said.contains("check listen and certificates") && !said.contains(".rs"), "{said}");
}

/// zenoh takes a session's rights from its first connection. A second one must not join them.
#[test]
fn a_connection_that_claims_the_session_of_another_host_is_refused() {
    const ID: &str = "abcdef0123456789";
    let five_at = free_quic();
    let scene = Scene::new(&five_at);
    let session = |name: &str, listen: &[String], connect: &[String], links: usize| {
        let document = json!({
            "mode": "peer",
            "id": ID,
            "listen": { "endpoints": listen },
            "connect": { "endpoints": connect, "timeout_ms": -1, "exit_on_failure": false },
            "scouting": { "multicast": { "enabled": false } },
            "transport": { "unicast": { "max_links": links }, "link": { "tls": tls(&scene.authority.host(name)) } },
        });
        zenoh::open(zenoh::Config::from_json5(&document.to_string()).unwrap()).wait().unwrap()
    };
    let inbox = format!("pinwheel/{}/to/five/from/*/*", scene.cluster);
    let five = session("five", &[five_at], &[], 2);
    let heard = |query: zenoh::query::Query| query.reply(query.key_expr(), "five").wait().unwrap();
    five.declare_queryable(&inbox).callback(heard).background().wait().unwrap();
    let _token = five.liveliness().declare_token(format!("pinwheel/{}/present/five/5", scene.cluster)).wait().unwrap();
    // `one` connected to `five`, so a connection from outside to `one` would be the second of this
    // session.
    assert_eq!(scene.one.sees("five"), 5);
    let (sender, stolen) = channel();
    let thieves = [("stranger", 1), ("stranger", 2), ("four", 1), ("four", 2)].map(|(name, links)| {
        let thief = session(name, &[], &scene.endpoints(), links);
        let sender = sender.clone();
        let heard = move |query: zenoh::query::Query| sender.send(query.key_expr().to_string()).unwrap();
        thief.declare_queryable(&inbox).complete(true).callback(heard).background().wait().unwrap();
        thief
    });
    let _two = scene.control_beside("five");
    for thief in &thieves {
        // Enough messages to be ahead of what `five` has sent.
        for _ in 0..200 {
            thief.put("anything", "").wait().unwrap();
        }
        let question = format!("pinwheel/{}/to/one/from/five/board", scene.cluster);
        assert_eq!(raw_ask(thief, &question, b"stolen".to_vec()), None);
        assert_eq!(thief.info().peers_zid().wait().count(), 0, "it is connected to nobody");
    }
    for _ in 0..20 {
        assert_eq!(scene.one.ask("five", Topic::Shots, b"", SHORT), Ok(b"five".to_vec()));
    }
    assert!(stolen.try_recv().is_err(), "nothing was stolen");
    scene.nothing_else_arrives();
}

/// zenoh's connections by TLS over TCP fail here: see the settings' header.
#[test]
fn a_connection_survives_traffic_in_both_directions() {
    const COUNT: usize = 2_000;
    const IN_FLIGHT: usize = 32;
    let scene = Scene::new(&free_quic());
    let two = scene.control();
    let (sender, answers) = channel();
    let ask = |index: usize| {
        let sender = sender.clone();
        let (host, name) = if index.is_multiple_of(2) { (&scene.one, "two") } else { (&two, "one") };
        let answered = Box::new(move |answer| sender.send(answer).unwrap());
        host.link.ask(name, Topic::Shots, vec![7; 1_024], FAR, answered);
    };
    (0..IN_FLIGHT).for_each(ask);
    for index in 0..COUNT {
        assert_eq!(answers.recv_timeout(FAR).unwrap(), Ok(vec![7; 1_024]), "question {index}");
        if index + IN_FLIGHT < COUNT {
            ask(index + IN_FLIGHT);
        }
    }
    assert!(scene.one.presence.try_recv().is_err(), "nobody went and came");
}
