//! Hosts of the tests: clusters that no other test sees, links whose events arrive in channels, and
//! zenoh sessions that say what a link would not.

use crate::presence::free_endpoint;
use pinwheel_hosts::link::{Handlers, Link, NoAnswer, OpenError, Presence, Question, Reply, Topic};
use pinwheel_hosts::settings::HostSettings;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use zenoh::Wait;

/// Longest wait for something that must come.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// Wait for something that must not come, after something that came the same way did.
pub(crate) const A_WHILE: Duration = Duration::from_millis(1_500);

pub(crate) type Answer = Result<Vec<u8>, NoAnswer>;

/// A name of a cluster that no other test has.
pub(crate) fn cluster() -> String {
    format!("t{}-{}", std::process::id(), number())
}

/// A number that no other call gets, in no process of the tests: for incarnations.
pub(crate) fn number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    u64::from(std::process::id()) << 32 | NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Settings of a host that does not scout and connects to `endpoints`.
pub(crate) fn settings(cluster: &str, name: &str, endpoints: &[String]) -> HostSettings {
    HostSettings { connect: endpoints.to_vec(), scout: false, ..HostSettings::on_this_machine(cluster, name) }
}

/// A question that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) from: String,
    pub(crate) topic: Topic,
    pub(crate) body: Vec<u8>,
}

/// A link and what it heard.
pub(crate) struct Host {
    pub(crate) link: Link,
    pub(crate) presence: Receiver<Presence>,
    pub(crate) questions: Receiver<Asked>,
}

impl Host {
    /// A host that answers each question with its body.
    pub(crate) fn open(settings: &HostSettings) -> Host {
        Host::try_open(settings).unwrap()
    }

    pub(crate) fn try_open(settings: &HostSettings) -> Result<Host, OpenError> {
        Host::with(settings, |question, reply| reply.send(question.body))
    }

    /// A host that handles questions with `handle`.
    pub(crate) fn with(
        settings: &HostSettings,
        handle: impl Fn(Question<'_>, Reply) + Send + Sync + 'static,
    ) -> Result<Host, OpenError> {
        let (presence_sender, presence) = channel();
        let (question_sender, questions) = channel();
        let handlers = Handlers {
            question: Box::new(move |question, reply| {
                let Question { from, topic, body } = question;
                // The receivers may be gone at the end of a test.
                let _gone = question_sender.send(Asked { from: from.to_owned(), topic, body: body.to_vec() });
                handle(question, reply);
            }),
            presence: Box::new(move |event| {
                let _gone = presence_sender.send(event);
            }),
        };
        Ok(Host { link: Link::open(settings, number(), handlers)?, presence, questions })
    }

    /// Waits until a host of this name is there, and returns its incarnation.
    pub(crate) fn sees(&self, wanted: &str) -> u64 {
        self.sees_within(wanted, SOON).unwrap_or_else(|| panic!("{wanted} was not seen"))
    }

    pub(crate) fn sees_within(&self, wanted: &str, limit: Duration) -> Option<u64> {
        let until = Instant::now() + limit;
        loop {
            match self.presence.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Presence::Here { name, incarnation }) if name == wanted => return Some(incarnation),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits until a host of this name is gone, and returns how long that took.
    pub(crate) fn misses(&self, wanted: &str, gone_incarnation: u64) -> Duration {
        let begun = Instant::now();
        loop {
            match self.presence.recv_timeout(SOON) {
                Ok(Presence::Gone { name, incarnation }) if name == wanted && incarnation == gone_incarnation => {
                    return begun.elapsed();
                }
                Ok(_) => {}
                Err(_) => panic!("{wanted} was not missed"),
            }
        }
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask(&self, host: &str, topic: Topic, body: &[u8], limit: Duration) -> Answer {
        self.ask_later(host, topic, body, limit).recv_timeout(limit + SOON).expect("a question was not answered")
    }

    /// Asks; the channel holds each call of the handler of the answer.
    pub(crate) fn ask_later(&self, host: &str, topic: Topic, body: &[u8], limit: Duration) -> Receiver<Answer> {
        let (sender, receiver) = channel();
        let answered = Box::new(move |answer| {
            let _gone = sender.send(answer);
        });
        self.link.ask(host, topic, body.to_vec(), limit, answered);
        receiver
    }
}

/// Opens hosts at the same time: each looks half a second for another one of its name.
pub(crate) fn open_all<const N: usize>(settings: [HostSettings; N]) -> [Host; N] {
    let open = |own: HostSettings| move || Host::open(&own);
    std::thread::scope(|scope| settings.map(|own| scope.spawn(open(own))).map(|host| host.join().unwrap()))
}

/// Two hosts that see each other; the second connects to the first.
pub(crate) fn pair(handle: impl Fn(Question<'_>, Reply) + Send + Sync + 'static) -> (Host, Host) {
    let (cluster, endpoint) = (cluster(), free_endpoint());
    let of_two = settings(&cluster, "two", std::slice::from_ref(&endpoint));
    let of_one = HostSettings { listen: vec![endpoint], ..settings(&cluster, "one", &[]) };
    let (one, two) = std::thread::scope(|scope| {
        let two = scope.spawn(|| Host::open(&of_two));
        (Host::with(&of_one, handle).unwrap(), two.join().unwrap())
    });
    two.sees("one");
    one.sees("two");
    (one, two)
}

/// A zenoh session that connects to a host without a link, and may say anything. Waits until it is
/// connected.
pub(crate) fn session(endpoints: &[String], tls: &serde_json::Value) -> zenoh::Session {
    let document = serde_json::json!({
        "mode": "peer",
        "connect": { "endpoints": endpoints, "timeout_ms": -1, "exit_on_failure": false },
        "listen": { "endpoints": [] },
        "scouting": { "multicast": { "enabled": false } },
        "transport": { "link": { "tls": tls } },
    });
    zenoh::open(zenoh::Config::from_json5(&document.to_string()).unwrap()).wait().unwrap()
}

/// What a zenoh session hears in reply to a question, as text; `None` for nothing.
pub(crate) fn raw_ask(session: &zenoh::Session, key: &str, body: Vec<u8>) -> Option<String> {
    let replies = session.get(key).payload(body).timeout(A_WHILE).wait().unwrap();
    let reply = replies.recv().ok()?;
    let bytes = match reply.result() {
        Ok(sample) => sample.payload().to_bytes().into_owned(),
        Err(error) => error.payload().to_bytes().into_owned(),
    };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
