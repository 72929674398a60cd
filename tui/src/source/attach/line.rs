//! The connection to an engine's control socket.
//!
//! Owns the connection. A request blocks its caller ([`Wire`]) or a separate thread ([`Line`]),
//! never the console. Bounds: [`REPLY_TIMEOUT`] for a reply, [`INPUT_REPLY_TIMEOUT`] for one about
//! another input, [`BEHIND_MAX`] queued requests, one reply per line of at most [`LINE_BYTES_MAX`].

use pinwheel_engine::engine::Command;
use pinwheel_engine::engine::wire::{LINE_BYTES_MAX, Outcome, Request, read_reply};
use pinwheel_engine::files::{OpenError, shared};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

/// Longest wait for a reply: above the limit of a command plus its acknowledgement.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for another input, whose files are read first.
const INPUT_REPLY_TIMEOUT: Duration = Duration::from_secs(70);
/// Most queued requests.
const BEHIND_MAX: usize = 8;

/// Why the connection failed: the socket's path, and the system's error.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct WireError {
    path: String,
    error: io::Error,
}

/// A connection that waits for each reply.
pub struct Wire {
    stream: BufReader<UnixStream>,
    path: String,
}

impl Wire {
    /// Connects to the socket of user `owner` at `path`.
    pub fn connect(path: &Path, owner: u32) -> Result<Wire, WireError> {
        let name = path.display().to_string();
        let open = || {
            let stream = shared::connect_of(path, owner, REPLY_TIMEOUT)?;
            stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
            Ok(stream)
        };
        let stream = open().map_err(|error: OpenError| WireError { path: name.clone(), error: error.into() })?;
        Ok(Wire { stream: BufReader::new(stream), path: name })
    }

    /// Sends a command and waits for its outcome.
    pub fn ask(&mut self, command: Command, why: &str) -> Result<Outcome, WireError> {
        let timeout = if matches!(command, Command::Input(_)) { INPUT_REPLY_TIMEOUT } else { REPLY_TIMEOUT };
        let socket = |error: io::Error| WireError { path: self.path.clone(), error };
        self.stream.get_ref().set_read_timeout(Some(timeout)).map_err(socket)?;
        let mut line = serde_json::to_vec(&Request::new(command, why)).map_err(|error| socket(error.into()))?;
        line.push(b'\n');
        // A peer that refuses the connection may have closed already: its reply can still be read.
        let sent = self.stream.get_mut().write_all(&line);
        let mut reply = Vec::new();
        let read = (&mut self.stream).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut reply);
        match (sent, read) {
            (Err(error), Ok(0)) | (_, Err(error)) => return Err(socket(error)),
            (Ok(()), Ok(0)) => return Err(socket(io::ErrorKind::UnexpectedEof.into())),
            (_, Ok(_)) => {}
        }
        // An unreadable reply, of another version for example, becomes a refusal.
        Ok(read_reply(&reply).unwrap_or_else(Outcome::Refused))
    }
}

/// A connection with a thread that waits for replies.
pub struct Line {
    requests: SyncSender<(Command, String)>,
    outcomes: Receiver<Outcome>,
}

impl Line {
    /// Moves `wire` to a thread; it ends with this handle, or with the connection.
    pub fn of(mut wire: Wire) -> io::Result<Line> {
        let (requests, queue) = sync_channel::<(Command, String)>(BEHIND_MAX);
        let (replies, outcomes) = channel();
        let wait = move || {
            for (command, why) in queue {
                let (outcome, is_over) = match wire.ask(command, &why) {
                    Ok(outcome) => (outcome, false),
                    Err(error) => (Outcome::Refused(format!("control socket: {error}")), true),
                };
                if replies.send(outcome).is_err() || is_over {
                    return;
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the console's process, which runs no engine")]
        std::thread::Builder::new().name("control-line".to_owned()).spawn(wait)?;
        Ok(Line { requests, outcomes })
    }

    /// Queues a command with its reason; the outcome comes from [`Line::outcomes`] later.
    pub fn ask(&self, command: Command, why: &str) -> Result<(), String> {
        self.requests.try_send((command, why.to_owned())).map_err(|error| match error {
            TrySendError::Full(_) => format!("{BEHIND_MAX} requests wait already; try again later"),
            TrySendError::Disconnected(_) => "the engine closed its control socket; attach again".to_owned(),
        })
    }

    /// Outcomes since the last call.
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.try_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{Command, Outcome, Wire};
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn an_engine_of_another_version_refuses_in_a_sentence_that_names_both() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let owner = std::fs::metadata(&path).unwrap().uid();
        let engine = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            stream.get_mut().write_all(b"{\"version\":1,\"refused\":\"found something else\"}\n").unwrap();
            line
        });
        let outcome = Wire::connect(&path, owner).unwrap().ask(Command::Pause, "").unwrap();
        assert_eq!(engine.join().unwrap(), "{\"version\":2,\"command\":\"pause\",\"why\":\"\"}\n");
        let Outcome::Refused(said) = outcome else { panic!("{outcome:?}") };
        assert!(said.starts_with("found a reply of version 1, expected a reply of version 2"), "{said}");
    }
}
