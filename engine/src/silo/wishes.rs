//! What a person, a script or a test wishes of one silo of several.
//!
//! Owns two words for each silo: its state, as the control thread says it last, and the wish that has not been taken up yet.
//! Any cold thread asks; the control thread looks once a tick. Bounds: one wish of each silo; one more is refused, and says so. Never
//! waits. Relaxed: each word stands alone.

use crate::board::snapshot::SiloState;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// What becomes of a silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiloDeed {
    /// Its streams move to other silos; its path stays.
    Drain,
    /// Its path dies: an injected death of its roles.
    Kill,
    /// A dead one is built anew, a drained one goes on; the streams that come from its feed move back.
    Rejoin,
}

impl SiloDeed {
    /// All of them.
    pub const ALL: [SiloDeed; 3] = [SiloDeed::Drain, SiloDeed::Kill, SiloDeed::Rejoin];

    /// Name on a command line and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SiloDeed::Drain => "drain",
            SiloDeed::Kill => "kill",
            SiloDeed::Rejoin => "rejoin",
        }
    }

    /// The state that it leads to.
    #[must_use]
    pub const fn aim(self) -> SiloState {
        match self {
            SiloDeed::Drain => SiloState::Drained,
            SiloDeed::Kill => SiloState::Dead,
            SiloDeed::Rejoin => SiloState::Live,
        }
    }

    const fn suits(self, state: SiloState) -> bool {
        match self {
            SiloDeed::Drain => matches!(state, SiloState::Live),
            SiloDeed::Kill => matches!(state, SiloState::Live | SiloState::Draining | SiloState::Drained),
            SiloDeed::Rejoin => matches!(state, SiloState::Draining | SiloState::Drained | SiloState::Dead),
        }
    }
}

/// Why a wish is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiloRefused {
    /// There is one silo.
    #[error("found one silo, expected two at least, so that another can take its streams; start with --silos 2")]
    Single,
    /// No such silo.
    #[error("found silo {silo}, expected one below {silos}; name one that runs, or start with more silos")]
    NoSilo {
        /// Which.
        silo: u32,
        /// How many there are.
        silos: u32,
    },
    /// Its state does not let it.
    #[error("found silo {silo} {}, expected one to {}; see its state in the placement view or in ctl status", .state.name(), .deed.name())]
    State {
        /// Which.
        silo: u32,
        /// Its state.
        state: SiloState,
        /// What was wished.
        deed: SiloDeed,
    },
    /// No other silo is live.
    #[error("found no other silo live than silo {silo}, expected one that takes its streams; rejoin one first")]
    Last {
        /// Which.
        silo: u32,
    },
    /// One wish waits.
    #[error("found a wish for silo {silo} that is not taken up yet, expected none; ask again when it is")]
    Busy {
        /// Which.
        silo: u32,
    },
}

/// The wishes of an engine.
#[derive(Debug)]
pub struct SiloWishes {
    states: Box<[AtomicU64]>,
    /// Deed + 1; 0: none.
    wishes: Box<[AtomicU64]>,
}

impl SiloWishes {
    /// None yet, of `silos` silos that live.
    #[must_use]
    pub fn new(silos: u32) -> SiloWishes {
        let zeros = || (0..silos).map(|_| AtomicU64::new(0)).collect();
        SiloWishes { states: zeros(), wishes: zeros() }
    }

    /// Silos there are.
    #[must_use]
    pub fn silos(&self) -> u32 {
        self.states.len() as u32
    }

    /// The state of `silo` that was said last.
    #[must_use]
    pub fn state(&self, silo: u32) -> SiloState {
        self.states
            .get(silo as usize)
            .map_or(SiloState::Dead, |word| SiloState::from_code(word.load(Ordering::Relaxed)))
    }

    /// Wishes `deed` of `silo`. What becomes of it is on the board.
    ///
    /// # Errors
    /// If it cannot be done now.
    pub fn ask(&self, silo: u32, deed: SiloDeed) -> Result<(), SiloRefused> {
        self.check(silo, deed)?;
        let put = self.wishes[silo as usize].compare_exchange(0, deed as u64 + 1, Ordering::Relaxed, Ordering::Relaxed);
        put.map(drop).map_err(|_| SiloRefused::Busy { silo })
    }

    /// Whether `deed` can be done to `silo` now.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, silo: u32, deed: SiloDeed) -> Result<(), SiloRefused> {
        let silos = self.silos();
        if silos < 2 {
            return Err(SiloRefused::Single);
        }
        if silo >= silos {
            return Err(SiloRefused::NoSilo { silo, silos });
        }
        let state = self.state(silo);
        if !deed.suits(state) {
            return Err(SiloRefused::State { silo, state, deed });
        }
        if deed != SiloDeed::Rejoin && self.others_alive(silo) == 0 {
            return Err(SiloRefused::Last { silo });
        }
        Ok(())
    }

    /// Silos that take streams, other than `silo`.
    #[must_use]
    pub fn others_alive(&self, silo: u32) -> usize {
        (0..self.silos()).filter(|other| *other != silo && self.state(*other) == SiloState::Live).count()
    }

    /// Says the state of `silo`. By the control thread only.
    pub fn say(&self, silo: u32, state: SiloState) {
        self.states[silo as usize].store(state as u64, Ordering::Relaxed);
    }

    /// The wish for `silo`, if there is one. By the control thread only.
    pub fn take(&self, silo: u32) -> Option<SiloDeed> {
        let word = self.wishes[silo as usize].swap(0, Ordering::Relaxed);
        SiloDeed::ALL.get(usize::try_from(word.checked_sub(1)?).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{SiloDeed, SiloRefused, SiloWishes};
    use crate::board::snapshot::SiloState;

    #[test]
    fn a_wish_is_taken_once_and_what_cannot_be_is_refused_in_one_sentence() {
        let wishes = SiloWishes::new(2);
        assert_eq!(wishes.ask(1, SiloDeed::Kill), Ok(()));
        assert_eq!(wishes.ask(1, SiloDeed::Drain), Err(SiloRefused::Busy { silo: 1 }));
        assert_eq!((wishes.take(1), wishes.take(1), wishes.take(0)), (Some(SiloDeed::Kill), None, None));
        wishes.say(1, SiloState::Dead);
        let refused = |silo, deed, what: &str| {
            let said = wishes.ask(silo, deed).map_err(|refused| refused.to_string());
            assert!(said.as_ref().is_err_and(|said| said.contains(what)), "{said:?}");
        };
        refused(2, SiloDeed::Kill, "expected one below 2");
        refused(1, SiloDeed::Kill, "found silo 1 dead");
        refused(0, SiloDeed::Kill, "no other silo live");
        refused(0, SiloDeed::Rejoin, "found silo 0 live");
        assert_eq!(wishes.ask(1, SiloDeed::Rejoin), Ok(()));
        assert_eq!(SiloWishes::new(1).ask(0, SiloDeed::Kill), Err(SiloRefused::Single));
    }
}
