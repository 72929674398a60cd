//! The engine of another host as a read-only [`Source`]: its board, as an engine on this machine gets it by the link
//! between hosts.
//!
//! Owns a thread that asks that engine for the board five times a second: a slow link delays no key.
//! Bounds: one picture waits; [`LOST_AFTER`] questions without an answer end it. Files of the other
//! host's run are not here.

use super::past::Past;
use super::{Ownership, Reply, Source};
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;
use pinwheel_engine::record::tape::{self, TapeError};
use pinwheel_hosts::local_socket;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel, sync_channel};
use std::time::Duration;

/// From a picture to the next question: below the age at which the console marks it stale.
const EVERY: Duration = Duration::from_millis(200);
/// Questions without an answer after which no more are asked.
const LOST_AFTER: u32 = 300;

/// The engine of another host.
pub struct OtherHost {
    host: String,
    phase: Phase,
    /// Not shown yet.
    new: Option<Snapshot>,
    pictures: Receiver<Result<Snapshot, String>>,
    /// Why the last question had no answer.
    refused: Option<String>,
    replies: Vec<Reply>,
    lost: Option<String>,
    /// Dropped with this: the thread ends.
    _stop: Sender<()>,
}

impl OtherHost {
    /// Asks the engine of user `owner` whose run directory is `run_dir` for the board of `host`, and goes on asking.
    ///
    /// # Errors
    /// One sentence.
    pub fn open(run_dir: PathBuf, owner: u32, host: &str) -> Result<OtherHost, String> {
        let first = picture(&run_dir, owner, host)?;
        let (put, pictures) = sync_channel(1);
        let (stop, stopped) = channel();
        let name = host.to_owned();
        let ask = move || {
            let mut unanswered = 0;
            while unanswered < LOST_AFTER && stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let found = picture(&run_dir, owner, &name);
                unanswered = if found.is_ok() { 0 } else { unanswered + 1 };
                if put.send(found).is_err() {
                    return;
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the console's process, which runs no engine")]
        let spawned = std::thread::Builder::new().name("other-host".to_owned()).spawn(ask);
        spawned.map_err(|error| format!("no thread for the board of host {host}: {error}"))?;
        Ok(OtherHost {
            host: host.to_owned(),
            phase: first.engine.phase,
            new: Some(first),
            pictures,
            refused: None,
            replies: Vec::new(),
            lost: None,
            _stop: stop,
        })
    }

    fn take(&mut self, found: Result<Snapshot, String>) {
        match found {
            Ok(snapshot) => {
                self.phase = snapshot.engine.phase;
                (self.new, self.refused) = (Some(snapshot), None);
            }
            Err(said) if self.refused.as_ref() == Some(&said) => {}
            Err(said) => {
                self.replies.push(Reply::Refused(said.clone()));
                self.refused = Some(said);
            }
        }
    }
}

fn picture(run_dir: &Path, owner: u32, host: &str) -> Result<Snapshot, String> {
    let bytes = local_socket::picture(run_dir, owner, host)?;
    let found = tape::pictured(bytes).map_err(|error| match error {
        TapeError::Foreign { .. } => format!("host {host} runs another version of pinwheel; run the same one on both"),
        error => format!("host {host}: {error}"),
    })?;
    let mut snapshot = found.ok_or_else(|| format!("host {host} sent a board without a moment; try again"))?;
    // On the other machine.
    snapshot.recorder.run_dir = None;
    Ok(snapshot)
}

impl Source for OtherHost {
    fn snapshot(&mut self) -> Option<Snapshot> {
        loop {
            match self.pictures.try_recv() {
                Ok(found) => self.take(found),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.lost.clone_from(&self.refused);
                    break;
                }
            }
        }
        self.new.take()
    }

    fn execute(&mut self, _command: &Command, _why: &str) -> Result<(), String> {
        Err(format!("another host's console is read-only; use pinwheel ctl --host {}", self.host))
    }

    fn ownership(&self) -> Ownership {
        Ownership::OtherHost(self.host.clone())
    }

    fn replies(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.replies)
    }

    fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Shutdown
    }

    fn past(&mut self, _at_ns: u64) -> Result<Past, String> {
        Err(format!("the recording is on host {}; pinwheel attach ssh:HOST opens the console there", self.host))
    }
}
