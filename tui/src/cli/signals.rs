//! Signals of a run without a console: the first asks for a drain, the second ends the program at once.
//!
//! Owns one number that the handlers write and the watching loop reads. Bounded by that number. Never does anything in
//! a handler but store.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Receives signals while a run lasts.
#[derive(Debug, Default)]
pub struct Signals {
    received: Arc<AtomicUsize>,
    /// SIGHUP came. What it means is asked when it has come: a running engine's profile may say another thing by then.
    hung_up: Arc<AtomicBool>,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install() -> io::Result<Signals> {
        let signals = Signals::default();
        let drain_on = |signal: i32| -> io::Result<()> {
            let armed = Arc::new(AtomicBool::new(false));
            // In this order: the second signal finds the flag that the first has set.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&armed))?;
            flag::register(signal, armed)?;
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&signals.received), number)?;
            Ok(())
        };
        drain_on(SIGINT)?;
        drain_on(SIGTERM)?;
        flag::register(SIGHUP, Arc::clone(&signals.hung_up))?;
        Ok(signals)
    }

    /// Whether the terminal went away since the last call.
    pub fn has_hung_up(&self) -> bool {
        self.hung_up.swap(false, Ordering::Relaxed)
    }

    /// The last signal that asked for a drain.
    pub fn received(&self) -> Option<i32> {
        match self.received.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Signals;
    use signal_hook::consts::{SIGHUP, SIGTERM};
    use signal_hook::low_level::raise;

    #[test]
    fn a_hangup_is_survived_and_a_signal_is_remembered() {
        let signals = Signals::install().unwrap();
        raise(SIGHUP).unwrap();
        assert_eq!((signals.received(), signals.has_hung_up(), signals.has_hung_up()), (None, true, false));
        raise(SIGTERM).unwrap();
        assert_eq!(signals.received(), Some(SIGTERM));
    }
}
