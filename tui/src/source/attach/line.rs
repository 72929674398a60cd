//! The connection to an engine's control socket, with a thread that waits for replies.
//!
//! Owns the thread, so that a request never blocks the console. Bounds: those of [`Wire`], and
//! [`BEHIND_MAX`] queued requests.

use pinwheel_engine::engine::Command;
use pinwheel_engine::engine::wire::Outcome;
use pinwheel_report::control::Wire;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};

/// Most queued requests.
const BEHIND_MAX: usize = 8;
/// Why no command is taken any more.
const CLOSED: &str = "the engine closed its control socket; attach again";

/// A connection with a thread that waits for replies.
pub struct Line {
    requests: SyncSender<(Command, String)>,
    outcomes: Receiver<Outcome>,
}

impl Line {
    /// Connects on a thread; it ends with this handle, or with the connection.
    pub fn to(connect: impl FnOnce() -> Option<Wire> + Send + 'static) -> io::Result<Line> {
        let (requests, queue) = sync_channel::<(Command, String)>(BEHIND_MAX);
        let (replies, outcomes) = channel();
        let wait = move || {
            let Some(mut wire) = connect() else { return };
            for (command, why) in queue {
                let (outcome, is_over) = match wire.ask(command, &why) {
                    Ok(outcome) => (outcome, false),
                    Err(error) if error.is_end() => (Outcome::Refused(CLOSED.to_owned()), true),
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
            TrySendError::Disconnected(_) => CLOSED.to_owned(),
        })
    }

    /// Outcomes since the last call.
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.try_iter().collect()
    }
}
