//! Signals of a run without a console: the first asks for a drain, the second ends the program at once. While the input
//! is read there is nothing to drain, and the first one ends it.
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
    /// Whether the next SIGINT, and the next SIGTERM, ends the program at once.
    ends_at_once: Vec<Arc<AtomicBool>>,
}

impl Signals {
    /// Installs the handlers; the first signal asks for a drain.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install() -> io::Result<Signals> {
        let signals = Signals::install_ending()?;
        signals.drain_from_now();
        Ok(signals)
    }

    /// Installs the handlers; until [`Signals::drain_from_now`] the first signal ends the program at once.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install_ending() -> io::Result<Signals> {
        let mut signals = Signals::default();
        let mut end_on = |signal: i32| -> io::Result<()> {
            let ends_at_once = Arc::new(AtomicBool::new(true));
            // In this order: a second signal finds the flag that the first has set.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ends_at_once))?;
            flag::register(signal, Arc::clone(&ends_at_once))?;
            signals.ends_at_once.push(ends_at_once);
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&signals.received), number)?;
            Ok(())
        };
        end_on(SIGINT)?;
        end_on(SIGTERM)?;
        flag::register(SIGHUP, Arc::clone(&signals.hung_up))?;
        Ok(signals)
    }

    /// From now on the first signal asks for a drain.
    pub fn drain_from_now(&self) {
        self.ends_at_once.iter().for_each(|ends| ends.store(false, Ordering::Relaxed));
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
    use signal_hook::consts::SIGHUP;
    use signal_hook::low_level::raise;

    // SIGTERM would end this process: another test in it may be loading an input at this moment. What the first and the
    // second signal do is shown on programs of their own.
    #[test]
    fn a_hangup_is_survived_and_told_once() {
        let signals = Signals::install().unwrap();
        raise(SIGHUP).unwrap();
        assert_eq!((signals.received(), signals.has_hung_up(), signals.has_hung_up()), (None, true, false));
    }
}
