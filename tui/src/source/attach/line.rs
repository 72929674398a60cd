//! The line to an engine's control socket.
//!
//! Owns the connection. A request blocks its caller ([`Wire`]) or a thread of its own ([`Line`]), never the console.
//! Bounds: [`PATIENCE`] for a reply, [`INPUT_PATIENCE`] for one about another input, [`BEHIND_MAX`] requests waiting, one reply a line of at most
//! [`LINE_BYTES_MAX`].

use pinwheel_engine::engine::wire::{Ask, LINE_BYTES_MAX, Outcome, Reply, Request, VERSION};
use pinwheel_engine::files::{OpenError, shared};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

/// Longest wait for a reply: an order's and an acknowledgement's together, and some.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for another input, whose files are read first.
const INPUT_PATIENCE: Duration = Duration::from_secs(70);
/// Requests that wait for their turn.
const BEHIND_MAX: usize = 8;

/// Why nothing could be asked.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The socket.
    #[error("{path}: {error}")]
    Socket {
        /// Where.
        path: String,
        /// The system's words.
        error: io::Error,
    },
    /// What came was no reply.
    #[error("found {found}, expected a reply of version {VERSION}; use the pinwheel that runs the engine")]
    Foreign {
        /// What came.
        found: String,
    },
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
            let stream = shared::connect_of(path, owner, PATIENCE)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream =
            open().map_err(|error: OpenError| WireError::Socket { path: name.clone(), error: error.into() })?;
        Ok(Wire { stream: BufReader::new(stream), path: name })
    }

    /// Asks, and waits for what came of it.
    pub fn ask(&mut self, ask: Ask, why: &str) -> Result<Outcome, WireError> {
        let patience = if matches!(ask, Ask::Input(_)) { INPUT_PATIENCE } else { PATIENCE };
        let patient = self.stream.get_ref().set_read_timeout(Some(patience));
        patient.map_err(|error| WireError::Socket { path: self.path.clone(), error })?;
        let foreign = |found: String| WireError::Foreign { found };
        let mut line = serde_json::to_vec(&Request::new(ask, why)).map_err(|error| foreign(error.to_string()))?;
        line.push(b'\n');
        // A peer that refuses us may have closed already: what it said is still to be read.
        let sent = self.stream.get_mut().write_all(&line);
        let mut reply = Vec::new();
        let read = (&mut self.stream).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut reply);
        let socket = |error: io::Error| WireError::Socket { path: self.path.clone(), error };
        match (sent, read) {
            (Err(error), Ok(0)) | (_, Err(error)) => return Err(socket(error)),
            (Ok(()), Ok(0)) => return Err(socket(io::ErrorKind::UnexpectedEof.into())),
            (_, Ok(_)) => {}
        }
        let reply: Reply = serde_json::from_slice(&reply).map_err(|error| foreign(error.to_string()))?;
        if reply.version == VERSION { Ok(reply.outcome) } else { Err(foreign(format!("version {}", reply.version))) }
    }
}

/// A connection with a thread that waits.
pub struct Line {
    asks: SyncSender<(Ask, String)>,
    heard: Receiver<Outcome>,
}

impl Line {
    /// Hands `wire` to a thread; it ends with this handle, or with the connection.
    pub fn of(mut wire: Wire) -> io::Result<Line> {
        let (asks, asked) = sync_channel::<(Ask, String)>(BEHIND_MAX);
        let (tell, heard) = channel();
        let wait = move || {
            for (ask, why) in asked {
                let (outcome, is_over) = match wire.ask(ask, &why) {
                    Ok(outcome) => (outcome, false),
                    Err(error) => (Outcome::Refused(format!("control socket: {error}")), true),
                };
                if tell.send(outcome).is_err() || is_over {
                    return;
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the console's process, which runs no engine")]
        std::thread::Builder::new().name("control-line".to_owned()).spawn(wait)?;
        Ok(Line { asks, heard })
    }

    /// Asks, and says why; what came of it is [`Line::heard`] later.
    pub fn ask(&self, ask: Ask, why: &str) -> Result<(), String> {
        self.asks.try_send((ask, why.to_owned())).map_err(|error| match error {
            TrySendError::Full(_) => format!("found {BEHIND_MAX} requests before this one, expected fewer; wait"),
            TrySendError::Disconnected(_) => {
                "found the control socket closed, expected a running engine; attach again".to_owned()
            }
        })
    }

    /// What came since the last call.
    pub fn heard(&self) -> Vec<Outcome> {
        self.heard.try_iter().collect()
    }
}
