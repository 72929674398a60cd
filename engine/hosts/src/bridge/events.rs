//! The queue of the bridge's thread: what the link's callbacks and local programs put into it.
//!
//! Owns the queue. Senders never wait; the thread is woken. Bounds: [`BYTES_MAX`] of questions of other hosts;
//! further ones are refused.

use crate::description::Description;
use crate::link::{Handlers, NoAnswer, Presence, Reply, Topic};
use crate::local_socket::Asked;
use crate::message::Name;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// What happened.
pub(super) enum Event {
    /// A host came or went.
    Presence(Presence),
    /// A host asks.
    Question { from: String, topic: Topic, body: Vec<u8>, reply: Reply },
    /// A host has described itself, or has not; since the question, nanoseconds of the engine's clock.
    Described { host: String, description: Option<Description>, asked_ns: u64 },
    /// Answers to the shots of a message.
    Answers { host: String, shots: Vec<Name>, sent: Sent, result: Result<Vec<u8>, NoAnswer> },
    /// A local program asks.
    Local(Asked),
}

impl Event {
    /// Whether it takes milliseconds, in which shots would wait.
    pub(super) fn is_long(&self) -> bool {
        matches!(self, Event::Question { topic: Topic::Board, .. })
    }
}

/// A message of shots when it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at_ns: u64,
    /// Shots of the message, and those that its host had not answered yet.
    pub(super) under_way: usize,
}

/// Puts events into the queue.
#[derive(Clone)]
pub(super) struct EventSender {
    queue: Sender<Event>,
    thread: Arc<OnceLock<Thread>>,
    /// Bytes of questions in the queue.
    // Relaxed: a bound on memory, which a question in flight may exceed.
    bytes: Arc<AtomicUsize>,
}

/// Most bytes of other hosts' questions in the queue.
const BYTES_MAX: usize = 16 << 20;

impl EventSender {
    /// Returns whether the thread still takes events.
    pub(super) fn send(&self, event: Event) -> bool {
        let is_taken = self.queue.send(event).is_ok();
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        is_taken
    }
}

/// The queue's end.
pub(super) struct Events {
    queue: Receiver<Event>,
    sender: EventSender,
}

impl Events {
    pub(super) fn new() -> (Events, EventSender) {
        let (queue, taken) = channel();
        let sender = EventSender { queue, thread: Arc::default(), bytes: Arc::default() };
        (Events { queue: taken, sender: sender.clone() }, sender)
    }

    /// Events wake the calling thread from now on.
    pub(super) fn belong_to_this_thread(&self) {
        let _ = self.sender.thread.set(std::thread::current());
    }

    pub(super) fn next(&self) -> Option<Event> {
        let event = self.queue.try_recv().ok()?;
        if let Event::Question { body, .. } = &event {
            self.sender.bytes.fetch_sub(body.len(), Ordering::Relaxed);
        }
        Some(event)
    }

    pub(super) fn sender(&self) -> EventSender {
        self.sender.clone()
    }
}

/// Handlers of the link that put everything into the queue.
pub(super) fn handlers(sender: &EventSender) -> Handlers {
    let (presence, question) = (sender.clone(), sender.clone());
    Handlers {
        question: Box::new(move |asked, reply| {
            let bytes = asked.body.len();
            if question.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX {
                question.bytes.fetch_sub(bytes, Ordering::Relaxed);
                return reply.refuse("too many questions wait here; ask again later");
            }
            let (from, topic, body) = (asked.from.to_owned(), asked.topic, asked.body.to_vec());
            question.send(Event::Question { from, topic, body, reply });
        }),
        presence: Box::new(move |event| {
            presence.send(Event::Presence(event));
        }),
    }
}
