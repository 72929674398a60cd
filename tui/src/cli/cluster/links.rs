//! The links between the engines of a cluster that cuts them: each passes through this process, which can hold its
//! bytes back.
//!
//! Owns a listener for each pair of engines and two threads for each connection. They end with the process, or when
//! their connection does. A link that is cut delivers nothing in either direction and loses nothing: to its ends that
//! is a network that is down for a while.

use crate::cli::pause;
use pinwheel_engine::clock::Clock;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes passed on at once.
const PIECE_BYTES: usize = 1 << 16;
/// Time between two looks at a link that is cut.
const LOOK: Duration = Duration::from_micros(500);

/// The link between two engines.
pub(super) struct CuttableLink {
    pub(super) endpoint: String,
    /// Nothing passes before this moment, nanoseconds after the clock's start.
    cut_until_ns: Arc<AtomicU64>,
}

impl CuttableLink {
    /// Listens, and connects whoever comes with `target`, an address and a port.
    pub(super) fn open(target: String, clock: &Clock) -> io::Result<CuttableLink> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let endpoint = format!("tcp/{}", listener.local_addr()?);
        let cut_until_ns = Arc::new(AtomicU64::new(0));
        let (shared, clock) = (Arc::clone(&cut_until_ns), clock.clone());
        start("link", move || {
            for near in listener.incoming().map_while(Result::ok) {
                // An engine that was killed is not there; the other one tries again.
                let _ = pass_both(near, &target, &shared, &clock);
            }
        })?;
        Ok(CuttableLink { endpoint, cut_until_ns })
    }

    pub(super) fn cut(&self, now_ns: u64, span: Duration) {
        let until = now_ns.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        // Relaxed: the word alone says all.
        self.cut_until_ns.fetch_max(until, Ordering::Relaxed);
    }
}

fn pass_both(near: TcpStream, target: &str, cut: &Arc<AtomicU64>, clock: &Clock) -> io::Result<()> {
    let far = TcpStream::connect(target)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        let (cut, clock) = (Arc::clone(cut), clock.clone());
        start("link-way", move || {
            // Either end may close it at any time.
            let _ = pass(&from, &to, &cut, &clock);
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        })?;
    }
    Ok(())
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, cut: &AtomicU64, clock: &Clock) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        while clock.since_start(clock.ticks()).0 < cut.load(Ordering::Relaxed) {
            pause(LOOK);
        }
        to.write_all(&piece[..count])?;
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a process that runs no engine")]
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
