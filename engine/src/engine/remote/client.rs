//! One client of the control socket: its input and output.
//!
//! Owns the connection. On the socket's thread. Bounds: one request and one reply at a time, each
//! at most [`LINE_BYTES_MAX`] long. Never waits for the client.

use crate::engine::wire::{LINE_BYTES_MAX, Outcome, Reply, Request, VERSION, read_request};
use crate::units::{Nanos, TickRate, Ticks};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::net::{SendFlags, send};
use std::os::fd::OwnedFd;

/// A client that reads nothing of its reply for this long is dropped.
pub(super) const SEND_LIMIT: Nanos = Nanos(2_000_000_000);
/// Bytes read at a time.
const PIECE: usize = 16 << 10;
/// Most reads in one pass.
const PIECES_MAX: usize = 16;

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The client closed it.
    ByClient,
    /// The engine dropped the client.
    ByEngine,
}

/// Input from a client.
pub(super) enum Incoming {
    /// No complete line yet.
    Incomplete,
    Request(Request),
    /// An invalid request, with the reason in one sentence.
    Invalid(String),
    /// A line that is longer than [`LINE_BYTES_MAX`]. Its end is not awaited.
    TooLong,
}

pub(super) struct Client {
    socket: OwnedFd,
    /// User number and process.
    peer: (u32, u32),
    taken: Vec<u8>,
    /// Bytes of `taken` known to contain no line end.
    searched: usize,
    left: Vec<u8>,
    /// Time of its last read, or of the last empty output.
    took: Ticks,
}

impl Client {
    pub(super) fn new(socket: OwnedFd, peer: (u32, u32), now: Ticks) -> Client {
        Client { socket, peer, taken: Vec::new(), searched: 0, left: Vec::new(), took: now }
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn peer(&self) -> (u32, u32) {
        self.peer
    }

    /// Whether a reply is still unread: further requests wait for it.
    pub(super) fn has_unsent(&self) -> bool {
        !self.left.is_empty()
    }

    /// Whether it has closed the connection: it reads no reply any more.
    pub(super) fn has_gone(&self) -> bool {
        let mut file = [PollFd::new(&self.socket, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut file, Some(&at_once)).is_ok() && file[0].revents().contains(PollFlags::HUP)
    }

    /// Whether input or output is pending.
    pub(super) fn has_more(&self) -> bool {
        self.has_unsent() || self.taken[self.searched..].contains(&b'\n')
    }

    /// Reads the next request, if its line is complete.
    pub(super) fn next_request(&mut self) -> Result<Incoming, Closed> {
        if self.has_unsent() {
            return Ok(Incoming::Incomplete);
        }
        let mut piece = [0; PIECE];
        for _ in 0..PIECES_MAX {
            if let Some(line) = self.line() {
                return Ok(line);
            }
            if self.taken.len() > LINE_BYTES_MAX {
                return Ok(Incoming::TooLong);
            }
            match read(&self.socket, &mut piece) {
                Ok(0) => return Err(Closed::ByClient),
                Ok(length) => self.taken.extend_from_slice(&piece[..length]),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Incoming::Incomplete),
                Err(_) => return Err(Closed::ByClient),
            }
        }
        Ok(Incoming::Incomplete)
    }

    fn line(&mut self) -> Option<Incoming> {
        let end = self.taken[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.taken.len();
            return None;
        };
        let line: Vec<u8> = self.taken.drain(..=end).collect();
        self.searched = 0;
        Some(read_request(&line).map_or_else(Incoming::Invalid, Incoming::Request))
    }

    /// Queues a reply.
    pub(super) fn say(&mut self, outcome: &Outcome) {
        #[derive(serde::Serialize)]
        struct Said<'a> {
            version: u32,
            #[serde(flatten)]
            outcome: &'a Outcome,
        }
        // Strings and finite numbers only: always serialisable.
        let text = serde_json::to_vec(&Said { version: VERSION, outcome }).unwrap_or_default();
        debug_assert!(serde_json::from_slice::<Reply>(&text).is_ok());
        self.left.extend_from_slice(&text);
        self.left.push(b'\n');
    }

    /// Sends as much as the client accepts.
    pub(super) fn flush(&mut self, now: Ticks, rate: TickRate) -> Result<(), Closed> {
        while !self.left.is_empty() {
            match send(&self.socket, &self.left, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(length) => {
                    self.left.drain(..length);
                    self.took = now;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if rate.nanos(now.since(self.took)) < SEND_LIMIT => return Ok(()),
                Err(Errno::AGAIN) => return Err(Closed::ByEngine),
                Err(_) => return Err(Closed::ByClient),
            }
        }
        self.took = now;
        Ok(())
    }
}
