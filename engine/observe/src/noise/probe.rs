//! The measuring thread: it reads the clock, and hands each gap to the reader through a ring.
//!
//! Pinned to its core; allocates before it starts, then only reads the clock and pushes. A gap that finds no room is
//! kept in the thread until the reader has made some, so none is lost, and neither is its time.

use super::{GAP_NS, GAPS_MAX};
use crate::clock::Clock;
use crate::host::pin;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A time between two reads of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: Ticks,
    pub(super) end: Ticks,
}

/// A measuring thread.
pub(super) struct Probe {
    pub(super) core: u32,
    pub(super) tid: u32,
    gaps: Consumer<Gap>,
    go: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Probe {
    /// Starts the thread on its core; it waits for [`Probe::go`].
    pub(super) fn start(core: u32, span: Duration, clock: &Clock) -> io::Result<Probe> {
        let (producer, gaps) = channel(GAPS_MAX);
        let go = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let (begins, clock) = (Arc::clone(&go), clock.clone());
        let builder = std::thread::Builder::new().name(format!("noise-{core}"));
        #[expect(clippy::disallowed_methods, reason = "a cold command: no engine runs in this process")]
        let thread = builder.spawn(move || {
            let pinned = pin::pin_current_thread(core).map_err(|error| error.to_string());
            let is_pinned = pinned.is_ok();
            // The reader waits for this word, and takes no other.
            let _gone = ready.send(pinned.map(|()| pin::thread_id()));
            if is_pinned { spin(&begins, span, &clock, producer) } else { 0 }
        })?;
        let tid = is_ready.recv().map_err(io::Error::other)?.map_err(io::Error::other)?;
        Ok(Probe { core, tid, gaps, go, thread })
    }

    /// Lets the thread begin.
    pub(super) fn go(&self) {
        // Relaxed: nothing is published with it; the thread begins a little later.
        self.go.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Adds the gaps that have ended since the last call.
    pub(super) fn take(&mut self, into: &mut Vec<Gap>) {
        self.gaps.drain(GAPS_MAX, |gap| into.push(gap));
    }

    /// How long it has measured, nanoseconds.
    pub(super) fn join(self) -> io::Result<u64> {
        self.thread.join().map_err(|_| io::Error::other("a measuring thread panicked"))
    }
}

fn spin(go: &AtomicBool, span: Duration, clock: &Clock, mut gaps: Producer<Gap>) -> u64 {
    while !go.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    let rate = clock.rate();
    let span = rate.ticks(Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)));
    let start = clock.ticks();
    let mut last = start;
    while last.since(start) < span {
        let now = clock.ticks();
        if rate.nanos(now.since(last)).0 > GAP_NS {
            let gap = Gap { start: last, end: now };
            while gaps.push(gap).is_err() {
                std::hint::spin_loop();
            }
            // What it waited for room is no gap.
            last = clock.ticks();
        } else {
            last = now;
        }
    }
    rate.nanos(last.since(start)).0
}
