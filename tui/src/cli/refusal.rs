//! Reasons why a command cannot run: one sentence with what was found, what was expected and what
//! to do.
//!
//! Every refusal ends the program with exit status 2.

use super::say::counted;
use clap::error::ErrorKind;
use pinwheel_engine::engine::StartError;
use pinwheel_engine::host::{HostError, limit};
use pinwheel_engine::profile::ProfileError;
use pinwheel_engine::quote::cut;
use pinwheel_engine::record::OutputError;
use pinwheel_report::unusable::Unusable;

/// Exit status of a refusal.
pub const UNUSABLE: u8 = 2;

/// Unusable input or environment.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The command line could not be parsed.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("{about}: {said}")]
    Content { about: String, said: String },
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Board(#[from] pinwheel_engine::board::BoardError),
    #[error(transparent)]
    Simulation(#[from] pinwheel_lab::sim::SimulationError),
    #[error(transparent)]
    Tape(#[from] pinwheel_engine::record::tape::TapeError),
    #[error(transparent)]
    Model(#[from] pinwheel_report::model_file::ModelError),
    #[error(transparent)]
    Run(#[from] pinwheel_report::runs::RunError),
    #[error(transparent)]
    Begin(#[from] pinwheel_report::recorded::BeginError),
    #[error(transparent)]
    Command(#[from] pinwheel_report::control::CommandError),
    #[error(transparent)]
    Terminal(#[from] crate::term::TermError),
}

impl Refusal {
    /// Makes a refusal of something that cannot be used.
    pub fn unusable(
        about: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Refusal {
        Unusable::new(about, found, expected, remedy).into()
    }

    /// The system refused a signal handler.
    pub fn signals(error: &std::io::Error) -> Refusal {
        let expected = "handlers for SIGINT, SIGTERM and SIGHUP";
        Refusal::unusable("signals", error.to_string(), expected, "run it outside the sandbox")
    }
}

/// Refuses if the system cannot start this many threads.
pub fn require_threads(about: &str, threads: usize) -> Result<(), Refusal> {
    let expected = limit::address_bytes_needed(threads);
    if let Some(found) = limit::address_bytes().filter(|found| *found < expected) {
        let (found, expected) = (format!("{found} bytes of address space"), format!("{expected}"));
        return Err(Refusal::unusable(about, found, expected, "raise the limit (ulimit -v, in units of 1024 bytes)"));
    }
    limit::try_threads(threads).map_err(|(given, error)| {
        let found = format!("room for {} ({error})", counted(given as u64, "thread"));
        Refusal::unusable(about, found, format!("{threads}"), "raise the process limit (ulimit -u) or ask for fewer")
    })
}

/// Longest refusal. Quoted text is shortened where it is quoted; this limit is a second guard.
const SENTENCE_CHARS_MAX: usize = 2_000;

/// The sentence of a refusal; the middle of an overlong one is cut out.
pub fn sentence(refusal: &Refusal) -> String {
    let said = refusal.to_string();
    if said.chars().nth(SENTENCE_CHARS_MAX).is_none() { said } else { cut(&said).into_owned() }
}

/// What the standard library says of a number that it cannot read, and what was expected.
const OF_LIBRARY: [(&str, &str); 4] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("invalid float literal", "expected a number"),
    ("cannot parse float from empty string", "expected a number"),
];

/// clap's error about a command as one sentence.
pub fn usage(error: &clap::Error, command: &str) -> Refusal {
    let text = error.to_string();
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if let Some(said) = is_help.then(|| without_subcommand(&text)).flatten() {
        return Refusal::Usage(said);
    }
    let said: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let said = said.join(" ");
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    // Other tips of clap say how to pass an option's name as a value.
    let similar = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    let similar = similar.filter(|tip| tip.contains("similar")).map(|tip| format!("; {tip}")).collect::<String>();
    let said = OF_LIBRARY.iter().fold(said.to_owned(), |said, (found, expected)| said.replace(found, expected));
    Refusal::Usage(format!("{said}{similar}; see '{command} --help'"))
}

/// The sentence for a command that was given without one of its subcommands, from the help that clap
/// prints instead of an error.
fn without_subcommand(help: &str) -> Option<String> {
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: "))?;
    let command: Vec<&str> = usage.split(' ').take_while(|word| !word.starts_with(['[', '<'])).collect();
    let command = command.join(" ");
    let (_, listed) = help.split_once("\nCommands:\n")?;
    // A row of the list is indented by two; the rest of a long row by more.
    let rows = listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names = rows.filter_map(|row| row.split(' ').next()).filter(|name| !["", "help"].contains(name));
    let names = names.collect::<Vec<_>>().join(", ");
    Some(format!("'{command}' requires a subcommand, one of: {names}; see '{command} --help'"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::usage;
    use crate::cli::args::{Args, command_of};
    use clap::Parser;

    #[test]
    fn what_clap_refuses_becomes_one_line() {
        for (words, part) in [
            ("pinwheel run --rate -5", "see 'pinwheel run --help'"),
            ("pinwheel run --rate nan", "above 0"),
            ("pinwheel run --nonsense", "see 'pinwheel run --help'"),
            ("pinwheel ctl move x 1", "'<STREAM>': expected a whole number; see 'pinwheel ctl move --help'"),
            ("pinwheel run --zipf x", "expected a number; see"),
            ("pinwheel runn", "'runn'; a similar subcommand exists: 'run'; see"),
            ("pinwheel run --profil lab", "found; a similar argument exists: '--profile'; see"),
            ("pinwheel drill --list", "unexpected argument '--list' found; see"),
            ("pinwheel sim", "--seeds <A..B>; see 'pinwheel sim --help'"),
            ("pinwheel ctl profile", "<NAME>; see 'pinwheel ctl profile --help'"),
            ("pinwheel run --format b9", "expected b8, 01 or dets"),
            (
                "pinwheel profiles",
                "'pinwheel profiles' requires a subcommand, one of: list, show, validate, diff; see 'pinwheel profiles --help'",
            ),
            ("pinwheel profiles --json", "[subcommands: list, show, validate, diff, help]"),
            ("pinwheel ctl", "one of: status, profile, pause, resume, rate, decoder,"),
            ("pinwheel cluster", "'pinwheel cluster' requires a subcommand, one of: up; see"),
        ] {
            let said =
                usage(&Args::try_parse_from(words.split_whitespace()).unwrap_err(), &command_of(words.split(' ')))
                    .to_string();
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
    }
}
