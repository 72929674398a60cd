//! `pinwheel run --move-every D` and `--kill-every D`: a stream moves, a silo dies and comes back every so often, to see what that
//! does.
//!
//! Each runs on a cold thread of its own, beside the run. Which stream goes where is drawn, the same in each run; silos die in turn.
//! Bounds: one each `every`; what cannot be then is left out. Each ends when it is dropped.

use pinwheel_engine::engine::{Authority, MoveRequest, MoveRequests, SiloDeed, SiloWishes};
use pinwheel_engine::profile::{Profile, TakesPart};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Which streams are drawn of: those that take part in placement; where nobody does, all.
pub fn movable(profile: &Profile) -> Vec<u32> {
    let (all, rules) = (0..profile.input.streams, &profile.placement.streams);
    all.filter(|stream| *rules == TakesPart::Nobody || rules.includes(*stream)).collect()
}

/// A thread that asks for moves.
pub struct Shuffle {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shuffle {
    /// Starts it; of `streams` one is drawn each time.
    ///
    /// # Errors
    /// If the system refuses another thread.
    #[expect(clippy::disallowed_methods, reason = "a cold thread of the command line")]
    pub fn start(moves: Arc<MoveRequests>, streams: Vec<u32>, silos: u32, every: Duration) -> io::Result<Shuffle> {
        let (stop, stopped) = channel();
        let thread = Builder::new().name("shuffle".to_owned()).spawn(move || {
            if streams.is_empty() {
                return;
            }
            let mut random = 0x9E37_79B9_7F4A_7C15_u64;
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (stream, to) = (streams[(random >> 33) as usize % streams.len()], (random >> 17) as u32 % silos);
                // A stream that stays for its partner's sake, and one request too many: the next draw is another one.
                let _ = moves.ask(MoveRequest { stream, to, lease_ms: 0, by: Authority::Port });
            }
        })?;
        Ok(Shuffle { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Shuffle {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A thread that has silos die and come back.
pub struct Reaper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reaper {
    /// Starts it.
    ///
    /// # Errors
    /// If the system refuses another thread.
    #[expect(clippy::disallowed_methods, reason = "a cold thread of the command line")]
    pub fn start(wishes: Arc<SiloWishes>, every: Duration) -> io::Result<Reaper> {
        let (stop, stopped) = channel();
        let half = every / 2;
        let thread = Builder::new().name("reaper".to_owned()).spawn(move || {
            for turn in 0.. {
                let silo = turn % wishes.silos();
                for deed in [SiloDeed::Kill, SiloDeed::Rejoin] {
                    if stopped.recv_timeout(half) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                    // One that is not through with the last deed is left to its turn.
                    let _ = wishes.ask(silo, deed);
                }
            }
        })?;
        Ok(Reaper { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
