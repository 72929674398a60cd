//! The thread that sends questions and answers, so that neither their callers nor zenoh's receiving
//! threads wait for a congested connection.
//!
//! ```text
//!  ask ──▶ queue ──▶ thread "pinwheel-link" ──▶ zenoh ──▶ other host
//!  Reply ─▶
//! ```
//!
//! Owns the queue and the thread. Bounds: [`QUEUE_BYTES_MAX`] of bodies in the queue; questions by
//! the table of questions, answers by [`IN_HAND_MAX`]. A congested connection holds the thread, and
//! with it all other sending, for at most [`SEND_BLOCKED_LIMIT`]; zenoh then closes that
//! connection.
//!
//! # Why one thread sends everything
//!
//! zenoh blocks the thread that sends to a congested connection. If answers were sent by its
//! receiving threads, two hosts that answer each other's large questions could both stop to
//! receive, and wait for each other.

use super::table::Table;
use super::{IN_HAND_MAX, NoAnswer, QUEUE_BYTES_MAX, SEND_BLOCKED_LIMIT};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
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
/// Name of the thread.
const THREAD_NAME: &str = "pinwheel-link";

/// Something to send.
enum Item {
    Ask(Ask),
    Answer(Query, Answer),
    Stop,
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

/// The queue of one link.
pub(super) struct Outgoing {
    queue: Sender<Item>,
    table: Arc<Table>,
    // RELAXED: both are counters that bound memory. Nothing is published through them, and a count
    // that is late by one item moves a bound by that item.
    queued_bytes: AtomicUsize,
    in_hand: AtomicUsize,
}

/// The receiving end, until the thread starts.
pub(super) struct Queue(Receiver<Item>);

/// The running thread. Dropping it stops the thread and waits for it.
pub(super) struct Sending {
    outgoing: Arc<Outgoing>,
    thread: Option<JoinHandle<()>>,
}

impl Outgoing {
    pub(super) fn new(table: Arc<Table>) -> (Arc<Outgoing>, Queue) {
        let (queue, receiver) = channel();
        let outgoing = Outgoing { queue, table, queued_bytes: AtomicUsize::new(0), in_hand: AtomicUsize::new(0) };
        (Arc::new(outgoing), Queue(receiver))
    }

    /// Queues a question. One that the queue does not take is answered at once.
    pub(super) fn ask(&self, ask: Ask) {
        let (id, bytes) = (ask.id, ask.body.len());
        if !self.reserve(bytes) {
            let why =
                format!("{QUEUE_BYTES_MAX} bytes wait to be sent; ask again when the connection is less congested");
            return self.table.finish(id, Err(NoAnswer::Refused(why)));
        }
        if self.queue.send(Item::Ask(ask)).is_err() {
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

    /// Queues the answer to a question in hand.
    pub(super) fn answer(&self, query: Query, answer: Answer) {
        let answer = match answer {
            Answer::Body(body) if !self.reserve(body.len()) => {
                Answer::Refusal(format!("{QUEUE_BYTES_MAX} bytes wait to be sent; ask again later"))
            }
            answer => answer,
        };
        // After the thread's end the query is dropped here. The session is closed, so nobody hears
        // of it.
        let _ended = self.queue.send(Item::Answer(query, answer));
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

impl Sending {
    /// Starts the thread. It inherits the processors of its caller.
    pub(super) fn start(outgoing: Arc<Outgoing>, queue: Queue, session: zenoh::Session) -> io::Result<Sending> {
        let of_thread = Arc::clone(&outgoing);
        let body = move || run(&of_thread, &queue.0, &session);
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the link; it starts and ends with the link")]
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(body)?;
        Ok(Sending { outgoing, thread: Some(thread) })
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let _ended = self.outgoing.queue.send(Item::Stop);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn run(outgoing: &Arc<Outgoing>, queue: &Receiver<Item>, session: &zenoh::Session) {
    while let Ok(item) = queue.recv() {
        match item {
            Item::Ask(ask) => send_question(outgoing, session, ask),
            Item::Answer(query, answer) => send_answer(outgoing, &query, answer),
            Item::Stop => return,
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
