//! The threads that send questions and answers, so that neither their callers nor zenoh's receiving
//! threads wait for a congested connection.
//!
//! ```text
//!  ask ──▶ queue of the host ──▶ its thread "pinwheel-link" ──▶ zenoh ──▶ that host
//!  Reply ─▶
//! ```
//!
//! Owns a queue and a thread for each host that something was sent to. Bounds: [`HOSTS_MAX`] of
//! them, after which further hosts share one; [`QUEUE_BYTES_MAX`] of bodies in all queues;
//! questions by the table of questions, answers by [`IN_HAND_MAX`]. A congested connection holds
//! the thread of its host for at most [`SEND_BLOCKED_LIMIT`]; zenoh then closes that connection.
//!
//! # Why a thread for each host
//!
//! zenoh blocks the thread that sends to a congested connection. If answers were sent by its
//! receiving threads, two hosts that answer each other's large questions could both stop to
//! receive, and wait for each other. If one thread sent everything, a host that has stopped would
//! hold up what is sent to the others, which are then late though they answer at once.

#![expect(clippy::disallowed_types, reason = "threads of zenoh and of callers share the queues; none is hot")]

use super::table::Table;
use super::{HOSTS_MAX, IN_HAND_MAX, NoAnswer, QUEUE_BYTES_MAX, SEND_BLOCKED_LIMIT};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zenoh::Wait;
use zenoh::qos::CongestionControl;
use zenoh::query::{ConsolidationMode, Query, QueryTarget, Reply};
use zenoh::sample::Locality;

/// First byte of an error reply that refuses a question; a sentence follows.
const REFUSED: u8 = 1;
/// First and only byte of an error reply to a question that nobody answers.
const DROPPED: u8 = 2;
/// Name of the threads.
const THREAD_NAME: &str = "pinwheel-link";
/// Queue of what goes to hosts that are not there, and of hosts beyond [`HOSTS_MAX`]. No host has
/// this name.
const OTHERS: &str = "";

/// Something to send.
enum Item {
    Ask(Ask),
    Answer(Query, Answer),
}

/// A question to send.
pub(super) struct Ask {
    /// Its place in the table.
    pub(super) id: u64,
    pub(super) key: String,
    pub(super) body: Vec<u8>,
    pub(super) asked_at: Instant,
    pub(super) limit: Duration,
}

/// An answer to send.
pub(super) enum Answer {
    Body(Vec<u8>),
    Refusal(String),
    /// The question was dropped.
    Nothing,
}

/// The queues of one link.
pub(super) struct Outgoing {
    /// `None`: the link has ended.
    lines: Mutex<Option<Lines>>,
    table: Arc<Table>,
    // RELAXED: both are counters that bound memory. Nothing is published through them, and a count
    // that is late by one item moves a bound by that item.
    queued_bytes: AtomicUsize,
    in_hand: AtomicUsize,
}

struct Lines {
    session: zenoh::Session,
    by_host: BTreeMap<String, Line>,
}

/// The queue and the thread of a host. The thread ends when its queue does.
struct Line {
    queue: Sender<Item>,
    thread: JoinHandle<()>,
}

impl Outgoing {
    /// Starts the first thread. Threads inherit the processors of those that start them: of the
    /// caller, of zenoh, and of those that ask.
    pub(super) fn open(table: Arc<Table>, session: zenoh::Session) -> io::Result<Arc<Outgoing>> {
        let outgoing = Outgoing {
            lines: Mutex::new(Some(Lines { session, by_host: BTreeMap::new() })),
            table,
            queued_bytes: AtomicUsize::new(0),
            in_hand: AtomicUsize::new(0),
        };
        let outgoing = Arc::new(outgoing);
        if let Some(lines) = &mut *outgoing.lines() {
            lines.start(OTHERS, &outgoing)?;
        }
        Ok(outgoing)
    }

    /// Ends all queues, and waits until their threads have sent what is in them.
    pub(super) fn close(&self) {
        let lines = self.lines().take();
        for Line { queue, thread } in lines.into_iter().flat_map(|lines| lines.by_host.into_values()) {
            drop(queue);
            let _panicked = thread.join();
        }
    }

    /// Puts `item` into the queue of `host`; returns whether it is sent.
    fn put(self: &Arc<Outgoing>, host: &str, item: Item) -> bool {
        let mut lines = self.lines();
        let Some(lines) = &mut *lines else { return false };
        let host = if self.table.is_present(host) { host } else { OTHERS };
        if !lines.by_host.contains_key(host) && lines.by_host.len() <= HOSTS_MAX {
            // Without a thread of its own the host shares one.
            let _no_thread = lines.start(host, self);
        }
        let line = lines.by_host.get(host).or_else(|| lines.by_host.get(OTHERS));
        line.is_some_and(|line| line.queue.send(item).is_ok())
    }

    fn lines(&self) -> MutexGuard<'_, Option<Lines>> {
        // What a panic leaves are whole queues.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a question. One that the queue does not take is answered at once.
    pub(super) fn ask(self: &Arc<Outgoing>, host: &str, ask: Ask) {
        let (id, bytes) = (ask.id, ask.body.len());
        if !self.reserve(bytes) {
            let why =
                format!("{QUEUE_BYTES_MAX} bytes wait to be sent; ask again when the connection is less congested");
            return self.table.finish(id, Err(NoAnswer::Refused(why)));
        }
        if !self.put(host, Item::Ask(ask)) {
            self.table.finish(id, Err(NoAnswer::Unreachable));
        }
    }

    /// Takes a question of another host in hand, unless too many are.
    pub(super) fn take_in_hand(&self) -> bool {
        let is_taken = self.in_hand.fetch_add(1, Relaxed) < IN_HAND_MAX;
        if !is_taken {
            self.in_hand.fetch_sub(1, Relaxed);
        }
        is_taken
    }

    /// Queues the answer to a question of `host` in hand.
    pub(super) fn answer(self: &Arc<Outgoing>, host: &str, query: Query, answer: Answer) {
        let answer = match answer {
            Answer::Body(body) if !self.reserve(body.len()) => {
                Answer::Refusal(format!("{QUEUE_BYTES_MAX} bytes wait to be sent; ask again later"))
            }
            answer => answer,
        };
        // After the link's end the query is dropped here. The session is closed, so nobody hears
        // of it.
        let _ended = self.put(host, Item::Answer(query, answer));
    }

    fn reserve(&self, bytes: usize) -> bool {
        let is_taken = self.queued_bytes.fetch_add(bytes, Relaxed) + bytes <= QUEUE_BYTES_MAX;
        if !is_taken {
            self.queued_bytes.fetch_sub(bytes, Relaxed);
        }
        is_taken
    }

    fn release(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Lines {
    fn start(&mut self, host: &str, outgoing: &Arc<Outgoing>) -> io::Result<()> {
        let (queue, items) = channel();
        let (outgoing, session) = (Arc::clone(outgoing), self.session.clone());
        let body = move || run(&outgoing, &items, &session);
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the link; it ends with the link")]
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(body)?;
        self.by_host.insert(host.to_owned(), Line { queue, thread });
        Ok(())
    }
}

fn run(outgoing: &Arc<Outgoing>, queue: &Receiver<Item>, session: &zenoh::Session) {
    while let Ok(item) = queue.recv() {
        match item {
            Item::Ask(ask) => send_question(outgoing, session, ask),
            Item::Answer(query, answer) => send_answer(outgoing, &query, answer),
        }
    }
}

fn send_question(outgoing: &Arc<Outgoing>, session: &zenoh::Session, ask: Ask) {
    let Ask { id, key, body, asked_at, limit } = ask;
    outgoing.release(body.len());
    let table = &outgoing.table;
    if !table.waits(id) {
        return;
    }
    let left = limit.saturating_sub(now().saturating_duration_since(asked_at));
    if left.is_zero() {
        return table.finish(id, Err(NoAnswer::TimedOut));
    }
    let ticket = Ticket { table: Arc::clone(table), id };
    let sent = session
        .get(key)
        .payload(body)
        .target(QueryTarget::BestMatching)
        .consolidation(ConsolidationMode::None)
        .allowed_destination(Locality::Remote)
        .congestion_control(CongestionControl::Block)
        .express(true)
        .timeout(left)
        .callback(move |reply| ticket.read(&reply))
        .wait();
    if sent.is_err() {
        table.finish(id, Err(NoAnswer::Unreachable));
    }
}

/// The right to answer one question. zenoh drops it when no further reply can come.
struct Ticket {
    table: Arc<Table>,
    id: u64,
}

impl Ticket {
    fn read(&self, reply: &Reply) {
        let answer = match reply.result() {
            Ok(sample) => Ok(sample.payload().to_bytes().into_owned()),
            Err(error) => Err(match error.payload().to_bytes().split_first() {
                Some((&REFUSED, why)) => NoAnswer::Refused(String::from_utf8_lossy(why).into_owned()),
                Some((&DROPPED, _)) => NoAnswer::Unreachable,
                // zenoh's own, at the limit.
                _ => NoAnswer::TimedOut,
            }),
        };
        self.table.finish(self.id, answer);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.table.finish(self.id, Err(NoAnswer::Unreachable));
    }
}

fn send_answer(outgoing: &Outgoing, query: &Query, answer: Answer) {
    // Fails if the session or the connection is closed: the asker then hears of this host's end.
    let _closed = match answer {
        Answer::Body(body) => {
            outgoing.release(body.len());
            query.reply(query.key_expr(), body).wait()
        }
        Answer::Refusal(why) => query.reply_err([&[REFUSED], why.as_bytes()].concat()).wait(),
        Answer::Nothing => query.reply_err(vec![DROPPED]).wait(),
    };
    outgoing.in_hand.fetch_sub(1, Relaxed);
}

/// The time of questions.
pub(super) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "limits of questions are seconds of this machine, not of a role")]
    Instant::now()
}

const _: () = assert!(SEND_BLOCKED_LIMIT.as_millis() > 0, "zenoh would close a connection at its first congestion");
