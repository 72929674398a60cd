//! Signals to the process as flags that the loop reads.
//!
//! Owns the registrations while the console runs, and after a lost terminal until its caller has
//! handlers of its own, so that no signal is lost between; a handler only sets a flag. SIGTSTP is caught and
//! ignored, because the engine runs in this process.

use crate::msg::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::{SigId, flag, low_level};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals watched, in the order of reporting.
pub(super) const WATCHED: [(i32, Signal); 4] =
    [(SIGHUP, Signal::Hangup), (SIGTERM, Signal::Terminate), (SIGINT, Signal::Interrupt), (SIGTSTP, Signal::Suspend)];

#[derive(Debug)]
pub struct Signals(Vec<(Arc<AtomicBool>, Signal, SigId)>);

impl Signals {
    pub fn watch() -> io::Result<Signals> {
        let mut watched = Signals(Vec::with_capacity(WATCHED.len()));
        for (number, signal) in WATCHED {
            let raised = Arc::new(AtomicBool::new(false));
            let id = flag::register(number, Arc::clone(&raised))?;
            watched.0.push((raised, signal, id));
        }
        Ok(watched)
    }

    /// The first signal since it was last taken; others stay for the next call. Relaxed: the flag is
    /// the whole message, and a later call sees a flag that this one missed.
    pub fn take(&self) -> Option<Signal> {
        let raised = self.0.iter().find(|(raised, _, _)| raised.swap(false, Ordering::Relaxed));
        raised.map(|(_, signal, _)| *signal)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (_, _, id) in &self.0 {
            low_level::unregister(*id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Signals;
    use crate::msg::Signal;
    use signal_hook::consts::{SIGHUP, SIGTSTP};
    use signal_hook::low_level::raise;

    #[test]
    fn of_two_signals_at_once_each_is_taken() {
        let signals = Signals::watch().unwrap();
        raise(SIGTSTP).unwrap();
        raise(SIGHUP).unwrap();
        let taken = [signals.take(), signals.take(), signals.take()];
        assert_eq!(taken, [Some(Signal::Hangup), Some(Signal::Suspend), None]);
    }
}
