//! Signals of a run without a console: the first asks for a drain, the second ends the program at once.
//!
//! Owns one number that the handlers write and the watching loop reads. Bounded by that number. Never does anything in
//! a handler but store.

use pinwheel_engine::profile::OnHangup;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Receives signals while a run lasts.
#[derive(Debug, Default)]
pub struct Signals {
    received: Arc<AtomicUsize>,
}

impl Signals {
    /// Installs the handlers. `on_hangup` says what a lost terminal means.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install(on_hangup: OnHangup) -> io::Result<Signals> {
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
        match on_hangup {
            OnHangup::Drain => drain_on(SIGHUP)?,
            // A handler that nobody reads: the default would end the process.
            OnHangup::Detach => drop(flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?),
        }
        Ok(signals)
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
    use pinwheel_engine::profile::OnHangup;
    use signal_hook::consts::{SIGHUP, SIGTERM};
    use signal_hook::low_level::raise;

    #[test]
    fn a_hangup_is_survived_and_a_signal_is_remembered() {
        let signals = Signals::install(OnHangup::Detach).unwrap();
        raise(SIGHUP).unwrap();
        assert_eq!(signals.received(), None);
        raise(SIGTERM).unwrap();
        assert_eq!(signals.received(), Some(SIGTERM));
    }
}
