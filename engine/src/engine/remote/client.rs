//! One client of the control socket: its bytes in and out.
//!
//! Owns the connection. On the socket's thread. Bounds: one line in, one reply out, each of
//! [`LINE_BYTES_MAX`]. Never waits for it.

use crate::engine::wire::{LINE_BYTES_MAX, Outcome, Reply, Request, VERSION};
use crate::units::{Nanos, TickRate, Ticks};
use rustix::io::{Errno, read};
use rustix::net::{SendFlags, send};
use std::os::fd::OwnedFd;

/// A client that takes nothing of its reply for so long is sent away.
pub(super) const PATIENCE: Nanos = Nanos(2_000_000_000);
/// Bytes taken at a time.
const PIECE: usize = 16 << 10;
/// Pieces taken in one look.
const PIECES_MAX: usize = 16;

/// Why a client is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It closed the connection.
    Left,
    /// It was sent away.
    Dropped,
}

/// What a client said.
pub(super) enum Heard {
    /// Not a whole line yet.
    Nothing,
    /// A request.
    Request(Request),
    /// Something else, in one sentence what.
    Nonsense(String),
}

pub(super) struct Client {
    socket: OwnedFd,
    /// User number and process.
    peer: (u32, u32),
    taken: Vec<u8>,
    /// Bytes of `taken` that hold no line's end.
    searched: usize,
    left: Vec<u8>,
    /// When it last took something, or had nothing to take.
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

    /// Whether it has not taken all of its last reply: it is not heard before.
    pub(super) fn owes(&self) -> bool {
        !self.left.is_empty()
    }

    /// Whether there is something to be read or written for it already.
    pub(super) fn has_more(&self) -> bool {
        self.owes() || self.taken[self.searched..].contains(&b'\n')
    }

    /// The next line, as far as it has come.
    pub(super) fn hear(&mut self) -> Result<Heard, Gone> {
        if self.owes() {
            return Ok(Heard::Nothing);
        }
        let mut piece = [0; PIECE];
        for _ in 0..PIECES_MAX {
            if let Some(line) = self.line() {
                return Ok(line);
            }
            if self.taken.len() > LINE_BYTES_MAX {
                return Err(Gone::Dropped);
            }
            match read(&self.socket, &mut piece) {
                Ok(0) => return Err(Gone::Left),
                Ok(length) => self.taken.extend_from_slice(&piece[..length]),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Heard::Nothing),
                Err(_) => return Err(Gone::Left),
            }
        }
        Ok(Heard::Nothing)
    }

    fn line(&mut self) -> Option<Heard> {
        let end = self.taken[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.taken.len();
            return None;
        };
        let line: Vec<u8> = self.taken.drain(..=end).collect();
        self.searched = 0;
        Some(understood(&line))
    }

    /// Puts a reply in line.
    pub(super) fn say(&mut self, outcome: &Outcome) {
        #[derive(serde::Serialize)]
        struct Said<'a> {
            version: u32,
            #[serde(flatten)]
            outcome: &'a Outcome,
        }
        // Strings and finite numbers alone: there is nothing that could not be written.
        let text = serde_json::to_vec(&Said { version: VERSION, outcome }).unwrap_or_default();
        debug_assert!(serde_json::from_slice::<Reply>(&text).is_ok());
        self.left.extend_from_slice(&text);
        self.left.push(b'\n');
    }

    /// Writes what it takes.
    pub(super) fn flush(&mut self, now: Ticks, rate: TickRate) -> Result<(), Gone> {
        while !self.left.is_empty() {
            match send(&self.socket, &self.left, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(length) => {
                    self.left.drain(..length);
                    self.took = now;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if rate.nanos(now.since(self.took)) < PATIENCE => return Ok(()),
                Err(Errno::AGAIN) => return Err(Gone::Dropped),
                Err(_) => return Err(Gone::Left),
            }
        }
        self.took = now;
        Ok(())
    }
}

fn understood(line: &[u8]) -> Heard {
    let nonsense = |found: String| {
        Heard::Nonsense(format!(
            "found {found}, expected a request of version {VERSION}, one JSON object a line; use the pinwheel that runs the engine"
        ))
    };
    match serde_json::from_slice::<Request>(line) {
        Ok(request) if request.version == VERSION => Heard::Request(request),
        Ok(request) => nonsense(format!("version {}", request.version)),
        Err(error) => nonsense(format!("something else ({error})")),
    }
}
