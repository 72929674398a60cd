//! Signals of a run without a console: the first requests a drain, the second ends the program at
//! once. While the input is loading there is nothing to drain, and the first signal ends the
//! program.
//!
//! Owns one number that the handlers write and the watching loop reads. A handler only stores to
//! memory.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Receives signals while a run lasts.
#[derive(Debug, Default)]
pub struct Signals {
    received: Arc<AtomicUsize>,
    /// SIGHUP arrived. Its effect is decided on arrival, because the running engine's profile may
    /// have changed.
    hung_up: Arc<AtomicBool>,
    /// Whether the next SIGINT, and the next SIGTERM, ends the program at once.
    ends_at_once: Vec<Arc<AtomicBool>>,
}

impl Signals {
    /// Installs the handlers; the first signal requests a drain.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install() -> io::Result<Signals> {
        Signals::register(AtomicBool::default)
    }

    /// Installs the handlers; until [`Signals::drain_from_now`] the first signal ends the program
    /// at once.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install_ending() -> io::Result<Signals> {
        Signals::register(|| AtomicBool::new(true))
    }

    /// `ends_at_once`: whether the first signal does, from its registration on.
    fn register(ends_at_once: fn() -> AtomicBool) -> io::Result<Signals> {
        let mut signals = Signals::default();
        let mut end_on = |signal: i32| -> io::Result<()> {
            let ends_at_once = Arc::new(ends_at_once());
            // The order matters: a second signal sees the flag that the first has set.
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

    /// From now on the first signal requests a drain.
    pub fn drain_from_now(&self) {
        self.ends_at_once.iter().for_each(|ends| ends.store(false, Ordering::Relaxed));
    }

    /// SIGHUP, if the terminal closed since the last call.
    pub fn hangup(&self) -> Option<i32> {
        self.hung_up.swap(false, Ordering::Relaxed).then_some(SIGHUP)
    }

    /// The last signal that requested a drain.
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

    // SIGTERM could end this process while another test loads an input. Tests of SIGTERM therefore
    // use separate processes.
    #[test]
    fn a_hangup_is_survived_and_reported_once() {
        let signals = Signals::install().unwrap();
        raise(SIGHUP).unwrap();
        assert_eq!((signals.received(), signals.hangup(), signals.hangup()), (None, Some(SIGHUP), None));
    }
}
