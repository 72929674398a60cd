//! Commands that move streams, given by a thread of their own: an engine takes milliseconds to answer one, and the
//! senders go on meanwhile. The thread ends with this value.

use super::processes::Processes;
use pinwheel_engine::host::neighbours::own_uid;
use pinwheel_hosts::local_socket::{self, Wanted};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

pub(super) struct Moves {
    commands: Sender<(PathBuf, Wanted)>,
    made: Receiver<()>,
    asked: u64,
}

impl Moves {
    pub(super) fn new() -> io::Result<Moves> {
        let (commands, taken) = channel::<(PathBuf, Wanted)>();
        let (done, made) = channel();
        let uid = own_uid().unwrap_or_default();
        #[expect(clippy::disallowed_methods, reason = "a process that runs no engine")]
        std::thread::Builder::new().name("moves".to_owned()).spawn(move || {
            for (run_dir, wanted) in taken {
                // An engine that was killed does not answer; then no move was made.
                if local_socket::ask(&run_dir, uid, &wanted).is_ok() && done.send(()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Moves { commands, made, asked: 0 })
    }

    /// Has the next host decode the next of `streams` streams, whose engines' places `engine_of` says; returns the stream.
    pub(super) fn ask(&mut self, processes: &Processes, streams: usize, engine_of: impl Fn(usize) -> usize) -> usize {
        let (stream, round) = (self.asked as usize % streams, self.asked as usize / streams);
        self.asked += 1;
        let names: Vec<&str> = processes.living().map(|process| process.name.as_str()).collect();
        let host = names[(stream + round) % names.len()].to_owned();
        let wanted = Wanted::Move { stream: stream as u32, host: Some(host) };
        // The thread ends only after this value.
        let _ = self.commands.send((processes.at(engine_of(stream)).run_dir.clone(), wanted));
        stream
    }

    /// Moves made since the last call.
    pub(super) fn made(&self) -> u64 {
        self.made.try_iter().count() as u64
    }
}
