//! `pinwheel run --move-every D` and `--kill-every D`: moves a stream, or stops and restarts a
//! silo, at a fixed interval, to test the effect.
//!
//! Each runs on its own cold thread. Streams and target silos are drawn from a fixed seed; silos
//! are stopped in turn. Bounds: one action each `every`; an action that is not possible at its time
//! is skipped. Dropping the value ends the thread.

use pinwheel_engine::engine::{Authority, MoveRequest, MoveRequests, SiloCommand, SiloCommands};
use pinwheel_engine::profile::{Profile, TakesPart};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The streams to draw from: those that take part in placement, or all if none does.
pub fn movable(profile: &Profile) -> Vec<u32> {
    let (all, rules) = (0..profile.input.streams, &profile.placement.streams);
    all.filter(|stream| *rules == TakesPart::Nobody || rules.includes(*stream)).collect()
}

/// A thread that repeats an action at an interval; it ends when this is dropped.
pub struct Repeating {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Repeating {
    /// Moves a random one of `streams` to a random silo.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub fn moves(moves: Arc<MoveRequests>, streams: Vec<u32>, silos: u32, every: Duration) -> io::Result<Repeating> {
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        Repeating::start("move-every", every, move |_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let Some(stream) = streams.get((random >> 33) as usize % streams.len().max(1)) else { return };
            let request =
                MoveRequest { stream: *stream, to: (random >> 17) as u32 % silos, lease_ms: 0, by: Authority::Port };
            // A move may be refused, for a stream bound to its partner or too many requests; the
            // next draw may succeed.
            let _ = moves.ask(request);
        })
    }

    /// Kills the silos in turn, and restarts each half of `every` later.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub fn kills(commands: Arc<SiloCommands>, every: Duration) -> io::Result<Repeating> {
        Repeating::start("kill-every", every / 2, move |turn| {
            let command = if turn % 2 == 0 { SiloCommand::Kill } else { SiloCommand::Rejoin };
            // A silo that has not finished the last request is skipped until its next turn.
            let _ = commands.ask(turn / 2 % commands.silos(), command);
        })
    }

    #[expect(clippy::disallowed_methods, reason = "a cold thread of the command line")]
    fn start(name: &str, every: Duration, mut act: impl FnMut(u32) + Send + 'static) -> io::Result<Repeating> {
        let (stop, stopped) = channel();
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            let mut turn = 0_u32;
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                act(turn);
                turn = turn.wrapping_add(1);
            }
        })?;
        Ok(Repeating { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Repeating {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
