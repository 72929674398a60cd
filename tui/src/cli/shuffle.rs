//! `pinwheel run --move-every D`: moves a stream to another silo every so often, to see what that does.
//!
//! Runs on a cold thread of its own, beside the run. Which stream goes where is drawn, the same in each run. Bounds: a move
//! each `every`; one that finds too many waiting is left out. Ends when it is dropped.

use pinwheel_engine::engine::{Authority, MoveRequest, MoveRequests};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that asks for moves.
pub struct Shuffle {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shuffle {
    /// Starts it.
    #[expect(clippy::disallowed_methods, reason = "a cold thread of the command line")]
    pub fn start(moves: Arc<MoveRequests>, streams: u32, silos: u32, every: Duration) -> Shuffle {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut random = 0x9E37_79B9_7F4A_7C15_u64;
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (stream, to) = ((random >> 33) as u32 % streams, (random >> 17) as u32 % silos);
                // A stream that stays for its partner's sake, and one request too many: the next draw is another one.
                let _ = moves.ask(MoveRequest { stream, to, lease_ms: 0, by: Authority::Port });
            }
        });
        Shuffle { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Shuffle {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
