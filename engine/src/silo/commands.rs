//! Commands of an operator, a script or a test to one of several silos.
//!
//! Owns two words for each silo: its state, as the control thread set it last, and the pending
//! command. Any cold thread sends commands; the control thread checks once a tick. Bounds: one
//! pending command for each silo; another one is refused with an error. Never waits. Relaxed: each
//! word stands alone.

use crate::roles::SiloState;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// A command to a silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiloCommand {
    /// Moves its streams to other silos; its path stays.
    Drain,
    /// Ends its path, by an injected death of its roles.
    Kill,
    /// Rebuilds a dead silo, or reopens a draining or drained one; the streams of its feed that left
    /// it move back, unless someone has moved them since.
    Rejoin,
}

pinwheel_edge::names! { SiloCommand: Drain "drain", Kill "kill", Rejoin "rejoin" }

impl SiloCommand {
    /// The state that the command leads to.
    pub const fn target_state(self) -> SiloState {
        match self {
            SiloCommand::Drain => SiloState::Drained,
            SiloCommand::Kill => SiloState::Dead,
            SiloCommand::Rejoin => SiloState::Live,
        }
    }

    /// Tells the user when the command applies.
    const fn requirement(self) -> &'static str {
        match self {
            SiloCommand::Drain => "drain it once it is live",
            SiloCommand::Kill => "kill it once it is live",
            SiloCommand::Rejoin => "rejoin it once it is drained or dead",
        }
    }

    const fn applies_in(self, state: SiloState) -> bool {
        match self {
            SiloCommand::Drain => matches!(state, SiloState::Live),
            SiloCommand::Kill => matches!(state, SiloState::Live | SiloState::Draining | SiloState::Drained),
            SiloCommand::Rejoin => matches!(state, SiloState::Draining | SiloState::Drained | SiloState::Dead),
        }
    }
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SiloRefused {
    #[error("there is only one silo, so no other can take its streams; start with --silos 2")]
    Single,
    #[error("there is no silo {silo}; name one below {silos}, or start with more silos")]
    NoSilo { silo: u32, silos: u32 },
    #[error("silo {silo} is {}; {}", .state.name(), .command.requirement())]
    State { silo: u32, state: SiloState, command: SiloCommand },
    #[error("silo {silo} is the only live silo; rejoin another first, to take its streams")]
    Last { silo: u32 },
    #[error("an earlier command for silo {silo} is still pending; try again when it has begun")]
    Busy { silo: u32 },
}

/// The silos' states and pending commands.
#[derive(Debug)]
pub struct SiloCommands {
    states: Box<[AtomicU64]>,
    /// Command + 1; 0: none.
    commands: Box<[AtomicU64]>,
}

impl SiloCommands {
    /// No commands, for `silos` live silos.
    pub fn new(silos: u32) -> SiloCommands {
        let zeros = || (0..silos).map(|_| AtomicU64::new(0)).collect();
        SiloCommands { states: zeros(), commands: zeros() }
    }

    /// Number of silos.
    pub fn silos(&self) -> u32 {
        self.states.len() as u32
    }

    /// The state of `silo`, as the control thread set it last.
    pub fn state(&self, silo: u32) -> SiloState {
        self.states
            .get(silo as usize)
            .map_or(SiloState::Dead, |word| SiloState::from_code(word.load(Ordering::Relaxed)))
    }

    /// Sends `command` to `silo`. The board shows its progress.
    ///
    /// # Errors
    /// If the command does not apply now.
    pub fn ask(&self, silo: u32, command: SiloCommand) -> Result<(), SiloRefused> {
        self.check(silo, command)?;
        let put =
            self.commands[silo as usize].compare_exchange(0, command as u64 + 1, Ordering::Relaxed, Ordering::Relaxed);
        put.map(drop).map_err(|_| SiloRefused::Busy { silo })
    }

    /// Whether `command` applies to `silo` now.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self, silo: u32, command: SiloCommand) -> Result<(), SiloRefused> {
        let silos = self.silos();
        if silos < 2 {
            return Err(SiloRefused::Single);
        }
        if silo >= silos {
            return Err(SiloRefused::NoSilo { silo, silos });
        }
        let state = self.state(silo);
        if !command.applies_in(state) {
            return Err(SiloRefused::State { silo, state, command });
        }
        if command != SiloCommand::Rejoin && self.others_alive(silo) == 0 {
            return Err(SiloRefused::Last { silo });
        }
        Ok(())
    }

    /// Number of live silos other than `silo`.
    pub fn others_alive(&self, silo: u32) -> usize {
        (0..self.silos()).filter(|other| *other != silo && self.state(*other) == SiloState::Live).count()
    }

    /// Sets the state of `silo`. Called by the control thread only.
    pub fn say(&self, silo: u32, state: SiloState) {
        self.states[silo as usize].store(state as u64, Ordering::Relaxed);
    }

    /// Takes the pending command of `silo`, if any. Called by the control thread only.
    pub fn take(&self, silo: u32) -> Option<SiloCommand> {
        let word = self.commands[silo as usize].swap(0, Ordering::Relaxed);
        SiloCommand::ALL.get(usize::try_from(word.checked_sub(1)?).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{SiloCommand, SiloCommands, SiloRefused};
    use crate::roles::SiloState;

    #[test]
    fn a_command_is_taken_once_and_refused_with_a_reason() {
        let commands = SiloCommands::new(2);
        assert_eq!(commands.ask(1, SiloCommand::Kill), Ok(()));
        assert_eq!(commands.ask(1, SiloCommand::Drain), Err(SiloRefused::Busy { silo: 1 }));
        assert_eq!((commands.take(1), commands.take(1), commands.take(0)), (Some(SiloCommand::Kill), None, None));
        commands.say(1, SiloState::Dead);
        let refused = |silo, command, what: &str| {
            let said = commands.ask(silo, command).map_err(|refused| refused.to_string());
            assert!(said.as_ref().is_err_and(|said| said.contains(what)), "{said:?}");
        };
        refused(2, SiloCommand::Kill, "name one below 2");
        refused(1, SiloCommand::Kill, "silo 1 is dead; kill it once it is live");
        refused(0, SiloCommand::Kill, "silo 0 is the only live silo");
        refused(0, SiloCommand::Rejoin, "silo 0 is live; rejoin it once");
        assert_eq!(commands.ask(1, SiloCommand::Rejoin), Ok(()));
        assert_eq!(SiloCommands::new(1).ask(0, SiloCommand::Kill), Err(SiloRefused::Single));
    }
}
