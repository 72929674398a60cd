//! Why a command cannot be done: one sentence that says what was found, what was expected and what to do.
//!
//! Owned by the command line; every refusal ends the program with exit status 2.

use pinwheel_engine::engine::StartError;
use pinwheel_engine::host::HostError;
use pinwheel_engine::profile::ProfileError;
use pinwheel_engine::quote::cut;
use pinwheel_engine::record::{OutputError, RunDirError};

/// Unusable input or environment.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The words of the command line themselves.
    #[error("{0}")]
    Usage(String),
    /// Something that was named.
    #[error("{about}: found {found}, expected {expected}; {remedy}")]
    Unusable {
        /// An option with its value, or a file.
        about: String,
        /// What there is.
        found: String,
        /// What there should be.
        expected: String,
        /// What to do.
        remedy: String,
    },
    /// A file whose content says for itself what is wrong with it, and where.
    #[error("{about}: {said}")]
    Content {
        /// The option with its file.
        about: String,
        /// Place, found, expected, remedy.
        said: String,
    },
    /// The profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// An output.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The machine.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The run directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The engine.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A load's board.
    #[error(transparent)]
    Board(#[from] pinwheel_engine::board::BoardError),
    /// The rehearsal cannot be held.
    #[error(transparent)]
    Rehearsal(#[from] pinwheel_lab::sim::RehearsalError),
    /// The recording.
    #[error(transparent)]
    Tape(#[from] pinwheel_engine::record::tape::TapeError),
    /// The console cannot be opened.
    #[error(transparent)]
    Terminal(#[from] crate::term::TermError),
}

impl Refusal {
    /// Something that was named and cannot be used.
    pub fn unusable(
        about: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Refusal {
        let (about, found, expected, remedy) = (about.into(), found.into(), expected.into(), remedy.into());
        Refusal::Unusable { about, found, expected, remedy }
    }

    /// The system refused a signal handler.
    pub fn signals(error: &std::io::Error) -> Refusal {
        let expected = "handlers for SIGINT, SIGTERM and SIGHUP";
        Refusal::unusable("signals", error.to_string(), expected, "run it outside the sandbox")
    }
}

/// Longest sentence of a refusal; what it quotes is cut where it is quoted, and this is for what was forgotten there.
const SENTENCE_CHARS_MAX: usize = 2_000;

/// What a refusal says, without the middle where it is longer than a sentence may be.
pub fn sentence(refusal: &Refusal) -> String {
    let said = refusal.to_string();
    if said.chars().nth(SENTENCE_CHARS_MAX).is_none() { said } else { cut(&said).into_owned() }
}

/// What clap has to say, as one sentence.
pub fn usage(error: &clap::Error) -> Refusal {
    let text = error.to_string();
    let said: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let said = said.join(" ");
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    Refusal::Usage(format!("{said}; see 'pinwheel --help'"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::usage;
    use crate::cli::args::Args;
    use clap::Parser;

    #[test]
    fn what_clap_refuses_becomes_one_line() {
        for (words, part) in [
            ("pinwheel run --rate -5", "'-5' for '--rate"),
            ("pinwheel run --rate nan", "above 0"),
            ("pinwheel run --nonsense", "--nonsense"),
            ("pinwheel sim", "--seeds <A..B>"),
            ("pinwheel run --format b9", "expected b8, 01 or dets"),
        ] {
            let said = usage(&Args::try_parse_from(words.split_whitespace()).unwrap_err()).to_string();
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
    }
}
