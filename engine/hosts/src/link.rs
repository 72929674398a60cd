//! The connection of this host to the other hosts of its cluster: who is there, questions, answers.
//!
//! ```text
//!  caller ── ask ──▶ outgoing threads ─▶ zenoh ─────────▶ other host ──▶ its question handler
//!         ◀─ answered ── table ◀── zenoh's threads ◀──────────────────── Reply
//!         ◀─ presence ── table ◀── zenoh's threads ◀── presence tokens of other hosts
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `keys` | key expressions, written and parsed |
//! | `config` | zenoh's configuration and the rights of each host |
//! | `certificate` | the name in the host's own certificate |
//! | `table` | hosts that are there, questions that wait |
//! | `outgoing` | the threads that send |
//!
//! Owns one zenoh session, a thread for each host that something is sent to, and at the end one
//! that closes the session. Handlers run on zenoh's threads: see [`Handlers`]. Bounds:
//! [`BODY_BYTES_MAX`], [`QUESTIONS_MAX`], [`IN_HAND_MAX`], [`QUEUE_BYTES_MAX`], [`HOSTS_MAX`],
//! [`LEASE`], [`SEND_BLOCKED_LIMIT`]. Never prints and never installs a logger. Hosts are connected
//! directly; none passes on what another said.
//!
//! # Threads
//!
//! zenoh starts six threads in a process (application, acceptor, sender, two receivers, network),
//! and short-lived ones for blocking calls. They inherit the processors of the thread that opens
//! the first link, so [`Link::open`] belongs on a cold thread. Their number can only be set by the
//! environment variable `ZENOH_RUNTIME` before the process starts: `(rx: (worker_threads: 1))`
//! saves one. Handing the sender over to the receiver stops both.
//!
//! # Who enforces what
//!
//! | rule | enforced by |
//! |---|---|
//! | a peer has a valid certificate of the authority | TLS 1.3 in QUIC, both directions: without it there is no session |
//! | a connection ends when the peer's certificate expires | zenoh (`close_link_on_expiration`) |
//! | a peer's common name is in `allow` | zenoh's access control drops everything of other peers, and sends them nothing; this module ignores presence of other names and refuses their questions |
//! | host X asks, answers and is present as X only | zenoh's access control, by the certificate's common name, in both directions |
//! | a further connection of a session is its own | zenoh, by the session's key (512-bit RSA), with its feature `transport_multilink` |
//! | questions and answers are at most [`BODY_BYTES_MAX`] | this module, at the sender and at the receiver |
//! | a name is used by one host | this module, at [`Link::open`]: direct tokens, and a question to each host that is there |
//! | without certificates nothing leaves the machine | the check of the settings: loopback endpoints only |
//!
//! # What is not enforced
//!
//! - Without certificates, names are not verified: every program on this machine may claim to be
//!   any host.
//! - A peer with a valid certificate whose name is not in `allow` completes the handshake, and
//!   learns session ids and addresses of hosts, which access control does not filter. Give each
//!   cluster an authority of its own.
//! - A host that connects accepts a certificate of a public authority, too: zenoh adds those to the
//!   given one. Such a peer has no name in `allow`, so it gets nothing. Public authorities issue no
//!   name without a dot.
//! - zenoh accepts one handshake at a time. Whoever reaches the port can delay those who join;
//!   hosts that are connected are not affected.
//! - A session's key can be computed in hours by somebody who pays for it. It protects only against
//!   hosts that have a certificate of the authority, and only until the session ends.

mod certificate;
mod config;
mod keys;
mod outgoing;
mod table;

use crate::settings::{CheckError, HostSettings};
use keys::{Keys, NAMESAKE};
use outgoing::{Answer, Ask, Outgoing, now};
use std::net::{TcpListener, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use table::{Table, Turned};
use zenoh::Wait;
use zenoh::query::Query;
use zenoh::sample::{Sample, SampleKind};

/// Most bytes of a question's or an answer's body.
pub const BODY_BYTES_MAX: usize = crate::message::BYTES_MAX;
/// Most questions of this host that wait for an answer.
pub const QUESTIONS_MAX: usize = 4096;
/// Most questions of other hosts that this one has not answered. zenoh drops further ones, which
/// are unreachable.
pub const IN_HAND_MAX: usize = 4096;
/// Most bytes of bodies that wait to be sent.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most incarnations of hosts that are known as present. Further ones are ignored.
pub const HOSTS_MAX: usize = 256;
/// A host of which nothing came for this long is gone.
pub const LEASE: Duration = Duration::from_millis(1_000);
/// A connection that takes nothing for this long is closed.
pub const SEND_BLOCKED_LIMIT: Duration = Duration::from_millis(1_000);
/// Longest wait for the end of the session. A handshake with a host that has stopped holds it up
/// for ten seconds; after this time it ends in the background.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks for another host of the same name, while the link opens.
const NAMESAKE_ROUND: Duration = Duration::from_millis(100);
/// Looks after which a name is free, if the last one finds no other host of it and every host has
/// answered.
const NAMESAKE_ROUNDS_MIN: u32 = 5;
/// Looks after which a name is taken. Longer than [`LEASE`], so that a host that restarts gets its
/// name back.
const NAMESAKE_ROUNDS_MAX: u32 = 15;
/// Attempts to get free ports, of which another program may take one before zenoh does.
const PORT_ATTEMPTS_MAX: u32 = 3;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// What a host is and can do.
    Describe,
    /// The present state of a host.
    Board,
    /// A command to a host.
    Command,
    /// Shots to decode.
    Shots,
}

/// A question of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// Name of the host that asks. With certificates it is verified.
    pub from: &'a str,
    /// What it is about.
    pub topic: Topic,
    /// At most [`BODY_BYTES_MAX`].
    pub body: &'a [u8],
}

/// Answers one question. It may be kept, and used later from any thread. Neither method waits for
/// the connection. Dropped unanswered, the asker learns at once that there is no answer.
#[must_use = "a dropped reply tells the asker that there is no answer"]
pub struct Reply {
    query: Option<Query>,
    outgoing: Arc<Outgoing>,
    /// The host that asks.
    to: String,
}

/// A change of the hosts that are there. The incarnation tells two runs of a host apart.
///
/// Where two hosts have one name, `Here` names the one that has it from now on: the last that came,
/// and after its end the one before, which is told again.
///
/// A host is not told about itself. `Here` with this host's own name is another host with the same
/// name, which started at the same time or was out of reach when this one started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A host is there.
    Here {
        /// Its name.
        name: String,
        /// Its incarnation.
        incarnation: u64,
    },
    /// A host is gone: it ended, or nothing came from it for [`LEASE`].
    Gone {
        /// Its name.
        name: String,
        /// Its incarnation.
        incarnation: u64,
    },
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NoAnswer {
    #[error("no answer within the limit")]
    TimedOut,
    #[error("the host is not there, or dropped the question")]
    Unreachable,
    #[error("refused: {0}")]
    Refused(String),
}

/// What an answered question calls.
pub type Answered = Box<dyn FnOnce(Result<Vec<u8>, NoAnswer>) + Send>;

/// What a link calls. Both run on zenoh's threads, several at a time: a handler that takes long
/// delays what other hosts say, and one that takes longer than [`LEASE`] lets them believe that
/// this host is gone. A handler must not panic, and must not drop the link.
pub struct Handlers {
    /// A host asks.
    pub question: Box<dyn Fn(Question<'_>, Reply) + Send + Sync>,
    /// A host came or went. One call at a time; the calls for one host are in the order of the
    /// events.
    pub presence: Box<dyn Fn(Presence) + Send + Sync>,
}

/// Why a link cannot be opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum OpenError {
    #[error("settings of host {name:?}: {error}")]
    Settings { name: String, error: CheckError },
    #[error("{file}: {error}; name a readable PEM file in certificates")]
    Certificates { file: String, error: std::io::Error },
    #[error("{file}: {found}, but the host's name is {name:?}; name the certificate of this host in certificates")]
    OtherCertificate { file: String, found: String, name: String },
    #[error("endpoint {endpoint:?} of host {name:?}: {error}; name an address of this machine in listen")]
    Port { name: String, endpoint: String, error: std::io::Error },
    #[error("link of host {name:?}: {why}; check listen and certificates in its settings")]
    Session { name: String, why: String },
    #[error("another host of cluster {cluster:?} has the name {name:?}; give each host a name of its own, or end it")]
    NameTaken { cluster: String, name: String },
    #[error("link of host {name:?}: no thread can be started ({error}); end other programs")]
    Thread { name: String, error: std::io::Error },
}

/// The connection to the other hosts. Dropping it withdraws this host's presence, closes all
/// connections, and answers waiting questions with [`NoAnswer::Unreachable`]. It waits two
/// seconds at most for zenoh: a handshake with a host that has stopped ends in the background.
pub struct Link {
    // Withdrawn and closed in `drop`, in this order.
    token: Option<zenoh::liveliness::LivelinessToken>,
    session: zenoh::Session,
    table: Arc<Table>,
    // Closed after the session, so that a congested connection does not hold its threads.
    outgoing: Arc<Outgoing>,
    keys: Arc<Keys>,
    endpoints: Vec<String>,
    incarnation: u64,
}

impl Link {
    /// Opens a link under the settings' name. `incarnation` must differ from that of each earlier
    /// run of the host.
    ///
    /// Blocks for half a second at least, in which it looks for another host of the same name, and
    /// up to a second longer while a host does not answer. Hosts that are not up yet do not delay
    /// it. Call it on a cold thread: zenoh's threads inherit the caller's processors.
    ///
    /// # Errors
    /// [`OpenError`], one sentence; nothing was opened.
    pub fn open(settings: &HostSettings, incarnation: u64, handlers: Handlers) -> Result<Link, OpenError> {
        let name = || settings.name.clone();
        settings.check().map_err(|error| OpenError::Settings { name: name(), error })?;
        check_certificates(settings)?;
        let keys = Arc::new(Keys::new(&settings.cluster, &settings.name));
        let (session, endpoints) = open_session(settings, &keys)?;
        let Handlers { question, presence } = handlers;
        let table = Arc::new(Table::new(presence));
        let outgoing = Outgoing::open(Arc::clone(&table), session.clone())
            .map_err(|error| OpenError::Thread { name: name(), error })?;
        // From here on dropping the link undoes everything.
        let mut link = Link { token: None, session, table, outgoing, keys, endpoints, incarnation };
        let failed = |error: zenoh::Error| OpenError::Session { name: name(), why: without_places(&error.to_string()) };
        link.subscribe(settings).map_err(failed)?;
        if link.finds_namesake() {
            return Err(OpenError::NameTaken { cluster: settings.cluster.clone(), name: name() });
        }
        link.receive(settings, question).map_err(failed)?;
        // Others see the token only after the queryable that was declared before it, so they may
        // ask at once.
        let token = link.session.liveliness().declare_token(link.keys.presence(incarnation)).wait();
        link.token = Some(token.map_err(failed)?);
        link.table.announce();
        Ok(link)
    }

    /// Asks `host`. Never blocks. `answered` is called exactly once: at once on this thread if the
    /// question cannot be asked, later on a thread of zenoh or of the link otherwise. It must not
    /// panic or take long.
    ///
    /// A question waits at most for `limit`, and up to [`SEND_BLOCKED_LIMIT`] more while the
    /// connection to `host` is congested. zenoh keeps a timer of each question for the whole
    /// `limit`, also after its answer: a limit of a second is better than one of a minute. The host
    /// may have received and executed a question that ends with [`NoAnswer::TimedOut`] or
    /// [`NoAnswer::Unreachable`].
    pub fn ask(&self, host: &str, topic: Topic, body: Vec<u8>, limit: Duration, answered: Answered) {
        self.ask_word(host, topic.word(), body, limit, answered);
    }

    /// Endpoints where this host listens, with their real ports.
    pub fn endpoints(&self) -> Vec<String> {
        self.endpoints.clone()
    }

    /// The incarnation given at the opening.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn ask_word(&self, host: &str, word: &str, body: Vec<u8>, limit: Duration, answered: Answered) {
        if !crate::settings::is_name(host) {
            return answered(Err(NoAnswer::Refused("this is no name of a host".to_owned())));
        }
        if let Err(why) = check_size("the question", body.len()) {
            return answered(Err(NoAnswer::Refused(why)));
        }
        // A namesake is no other host.
        if host == self.keys.own() {
            return answered(Err(NoAnswer::Unreachable));
        }
        match self.table.enter(host, answered) {
            Err(Turned { why, answered }) => answered(Err(why)),
            Ok(id) => {
                let key = self.keys.question(host, word);
                self.outgoing.ask(host, Ask { id, key, body, asked_at: now(), limit });
            }
        }
    }

    /// Notes presence of hosts from now on, and of those that were there before.
    fn subscribe(&self, settings: &HostSettings) -> zenoh::Result<()> {
        let (keys, table, settings) = (Arc::clone(&self.keys), Arc::clone(&self.table), settings.clone());
        let incarnation = self.incarnation;
        let heard = move |sample: Sample| {
            let Some((name, of)) = keys.present(sample.key_expr().as_str()) else { return };
            let is_own_name = name == keys.own();
            if (is_own_name && of == incarnation) || !(is_own_name || settings.allows(name)) {
                return;
            }
            match sample.kind() {
                SampleKind::Put => table.came(name, of),
                SampleKind::Delete => table.went(name, of),
            }
        };
        let all = self.keys.presences("*");
        self.session.liveliness().declare_subscriber(all).history(true).callback(heard).background().wait()
    }

    /// Receives questions from now on.
    fn receive(
        &self,
        settings: &HostSettings,
        question: Box<dyn Fn(Question<'_>, Reply) + Send + Sync>,
    ) -> zenoh::Result<()> {
        let (keys, table, settings) = (Arc::clone(&self.keys), Arc::clone(&self.table), settings.clone());
        let outgoing = Arc::clone(&self.outgoing);
        let heard = move |query: Query| {
            // Dropping the query here tells the asker that there is no answer.
            if !outgoing.take_in_hand() {
                return;
            }
            let key = query.key_expr().clone();
            let body = query.payload().cloned().unwrap_or_default();
            let asker = keys.sender(key.as_str());
            let to = asker.map(|(from, _)| from.to_owned()).unwrap_or_default();
            let reply = Reply { query: Some(query), outgoing: Arc::clone(&outgoing), to };
            let refusal = match asker {
                None => "a question is from one host, to one host, on one topic".to_owned(),
                Some((from, _)) if from == keys.own() || !settings.allows(from) => {
                    format!("host {:?} does not allow host {from:?}", keys.own())
                }
                Some((from, NAMESAKE)) => return reply.send(&[u8::from(table.is_present(from))]),
                Some((from, word)) => match (Topic::from_word(word), check_size("the question", body.len())) {
                    (None, _) => format!("this version knows no topic {word:?}"),
                    (_, Err(why)) => why,
                    (Some(topic), Ok(())) => return question(Question { from, topic, body: &body.to_bytes() }, reply),
                },
            };
            reply.refuse(&refusal);
        };
        self.session.declare_queryable(self.keys.inbox()).complete(true).callback(heard).background().wait()
    }

    /// Whether another host of this name is there, seen by this host or by a host that it sees.
    fn finds_namesake(&self) -> bool {
        let (sender, answers) = channel();
        let mut found = Namesake::None;
        for round in 1..=NAMESAKE_ROUNDS_MAX {
            found = self.find_namesake(&sender, &answers);
            if found == Namesake::None && round >= NAMESAKE_ROUNDS_MIN {
                return false;
            }
        }
        found == Namesake::There
    }

    /// Asks every host that is there, for one round.
    fn find_namesake(&self, sender: &Sender<Option<bool>>, answers: &Receiver<Option<bool>>) -> Namesake {
        let asked = self.table.present();
        for host in &asked {
            let sender = sender.clone();
            let answered = Box::new(move |answer: Result<Vec<u8>, NoAnswer>| {
                let sees = match answer {
                    Ok(answer) => Some(answer == [1]),
                    // A host that has gone sees nobody.
                    Err(why) => (why != NoAnswer::TimedOut).then_some(false),
                };
                // The receiver ends with the search.
                let _ended = sender.send(sees);
            });
            self.ask_word(host, NAMESAKE, Vec::new(), LEASE, answered);
        }
        let until = now() + NAMESAKE_ROUND;
        let (mut is_there, mut without) = (false, 0);
        // The sender lives to the end of the search, so only the time ends a round. Answers to
        // questions of earlier rounds count: a busy machine takes longer than a round.
        while let Ok(sees) = answers.recv_timeout(until.saturating_duration_since(now())) {
            is_there |= sees == Some(true);
            without += usize::from(sees == Some(false));
        }
        if is_there || self.table.is_present(self.keys.own()) {
            Namesake::There
        } else if without < asked.len() {
            Namesake::Unknown
        } else {
            Namesake::None
        }
    }
}

/// What a round of the search for another host of the same name has found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namesake {
    None,
    There,
    /// A host has not answered yet.
    Unknown,
}

impl Drop for Link {
    fn drop(&mut self) {
        // Each of these fails only if the session is closed already.
        if let Some(token) = self.token.take() {
            let _closed = token.undeclare().wait();
        }
        self.table.close();
        let (closed, end) = channel();
        let session = self.session.clone();
        let close = move || {
            let _closed = session.close().wait();
            let _gone = closed.send(());
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread; it ends with the session")]
        let thread = std::thread::Builder::new().name("link-close".to_owned()).spawn(close);
        // Without a thread, the last clone that is dropped closes the session.
        if thread.is_ok() {
            let _later = end.recv_timeout(CLOSE_LIMIT);
        }
        self.outgoing.close();
    }
}

impl Reply {
    /// Answers the question. A body of more than [`BODY_BYTES_MAX`] becomes a refusal that says so.
    pub fn send(mut self, body: &[u8]) {
        self.answer(match check_size("the answer", body.len()) {
            Ok(()) => Answer::Body(body.to_vec()),
            Err(why) => Answer::Refusal(why),
        });
    }

    /// Refuses the question, with a sentence for a person.
    pub fn refuse(mut self, why: &str) {
        self.answer(Answer::Refusal(why.to_owned()));
    }

    fn answer(&mut self, answer: Answer) {
        if let Some(query) = self.query.take() {
            self.outgoing.answer(&self.to, query, answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.answer(Answer::Nothing);
    }
}

/// Opens the session, and says where it listens.
fn open_session(settings: &HostSettings, keys: &Keys) -> Result<(zenoh::Session, Vec<String>), OpenError> {
    let failed = |why: String| OpenError::Session { name: settings.name.clone(), why: without_places(&why) };
    let mut attempt = 1;
    loop {
        let (endpoints, has_chosen) = with_ports(settings)?;
        let document = config::document(settings, &endpoints, keys);
        let configured = zenoh::Config::from_json5(&document.to_string()).map_err(|error| failed(error.to_string()))?;
        match zenoh::open(configured).wait() {
            Ok(session) => return Ok((session, endpoints)),
            Err(_) if has_chosen && attempt < PORT_ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(failed(error.to_string())),
        }
    }
}

/// The endpoints to listen on, with a free port in place of port 0, and whether there was one.
/// zenoh does not say which port it got on the loopback interface.
fn with_ports(settings: &HostSettings) -> Result<(Vec<String>, bool), OpenError> {
    // Held until all are chosen, so that two endpoints do not get the same.
    let (mut tcp, mut udp) = (Vec::new(), Vec::new());
    let mut endpoints = Vec::new();
    for endpoint in settings.listen_endpoints() {
        let Some(prefix) = endpoint.strip_suffix(":0") else {
            endpoints.push(endpoint);
            continue;
        };
        let mut choose = || {
            let (protocol, address) = prefix.split_once('/').unwrap_or(("", prefix));
            let addresses: Vec<_> = format!("{address}:0").to_socket_addrs()?.collect();
            let at = if protocol == "tcp" {
                let listener = TcpListener::bind(&*addresses)?;
                let at = listener.local_addr();
                tcp.push(listener);
                at
            } else {
                let socket = UdpSocket::bind(&*addresses)?;
                let at = socket.local_addr();
                udp.push(socket);
                at
            };
            at.map(|at| at.port())
        };
        match choose() {
            Ok(port) => endpoints.push(format!("{prefix}:{port}")),
            Err(error) => return Err(OpenError::Port { name: settings.name.clone(), endpoint, error }),
        }
    }
    let has_chosen = !(tcp.is_empty() && udp.is_empty());
    Ok((endpoints, has_chosen))
}

/// zenoh reads the files later and says less about them.
fn check_certificates(settings: &HostSettings) -> Result<(), OpenError> {
    let Some(certificates) = &settings.certificates else { return Ok(()) };
    let read = |file: &Path| {
        std::fs::read_to_string(file)
            .map_err(|error| OpenError::Certificates { file: file.display().to_string(), error })
    };
    read(&certificates.authority)?;
    read(&certificates.key)?;
    let found = match certificate::common_name(&read(&certificates.certificate)?) {
        Some(name) if name == settings.name => return Ok(()),
        Some(name) => format!("its common name is {name:?}"),
        None => "it holds no certificate with a common name".to_owned(),
    };
    let file = certificates.certificate.display().to_string();
    Err(OpenError::OtherCertificate { file, found, name: settings.name.clone() })
}

fn check_size(what: &str, bytes: usize) -> Result<(), String> {
    if bytes > BODY_BYTES_MAX {
        return Err(format!("{what} has {bytes} bytes; send at most {BODY_BYTES_MAX}"));
    }
    Ok(())
}

/// A text of zenoh without the places in its source: ` at /path/file.rs:12.`
fn without_places(text: &str) -> String {
    let mut parts = text.split(" at /");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(".rs:") {
            Some((_, rest)) => clean.push_str(rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')),
            None => {
                clean.push_str(" at /");
                clean.push_str(part);
            }
        }
    }
    clean.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{BODY_BYTES_MAX, LEASE, NAMESAKE_ROUND, NAMESAKE_ROUNDS_MAX, check_size, without_places};

    const _: () = assert!(
        NAMESAKE_ROUND.as_millis() * NAMESAKE_ROUNDS_MAX as u128 > LEASE.as_millis(),
        "a host that restarts must get its name back"
    );

    #[test]
    fn places_in_a_source_are_not_said() {
        let said = "Can not listen on 127.0.0.1:1: in use (os error 98) at /a/b-1.0/src/unicast.rs:373. - Caused by no at /x.rs:1.";
        assert_eq!(without_places(said), "Can not listen on 127.0.0.1:1: in use (os error 98) - Caused by no");
        assert_eq!(without_places("look at /dev/shm"), "look at /dev/shm");
    }

    #[test]
    fn a_body_of_the_limit_is_allowed_and_a_larger_one_is_not() {
        assert_eq!(check_size("the answer", BODY_BYTES_MAX), Ok(()));
        let said = check_size("the answer", BODY_BYTES_MAX + 1);
        assert_eq!(said, Err("the answer has 4194305 bytes; send at most 4194304".to_owned()));
    }
}
