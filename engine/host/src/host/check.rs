//! The environment check: compares the machine's settings with what hot threads need.
//!
//! Owns the rows of `pinwheel check` and the rules of their verdicts. Cold threads read
//! [`Observations`] from files and from a probe ([`probe`]); [`judge`] is pure. Bounded by the hot
//! cores, by the files' limits and by [`probe::SPAN`]. Changes nothing: each row names the command
//! for the operator to run.
//!
//! # What the verdicts mean
//!
//! | verdict | meaning |
//! |---|---|
//! | pass | as hot threads need it |
//! | warn | costs latency now and then, or may |
//! | fail | a strict environment is not possible; a strict start is refused |
//! | not visible | the system does not show it here |

mod disturbance;
mod interrupts;
mod limits;
mod observe;
mod power;
mod private;
pub mod probe;
pub mod report;
pub mod sign;

use serde::{Deserialize, Serialize};

pub use interrupts::Interrupts;
pub use observe::{IdleState, Observations};

/// The verdict of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// It may cost latency.
    Warn,
    /// A strict environment is not possible.
    Fail,
    /// The system does not show it.
    NotVisible,
}

impl Verdict {
    /// Its name in text output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
            Self::NotVisible => "not visible",
        }
    }
}

/// The result of checking one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name, the same in every report.
    pub id: String,
    /// The setting that was found.
    pub found: String,
    /// The setting that hot threads need.
    pub expected: String,
    /// How the two compare.
    pub verdict: Verdict,
    /// Why it matters.
    pub why: String,
    /// A command that corrects it; empty if none is needed or known.
    pub fix: String,
}

/// The rows for these observations, in a fixed order.
pub fn judge(seen: &Observations) -> Vec<Row> {
    let mut rows = vec![limits::machine(seen)];
    rows.extend(power::rows(seen));
    rows.push(disturbance::interrupts(seen));
    rows.extend(limits::rows(seen));
    rows.extend(disturbance::gaps(seen));
    rows
}

/// Whether a strict start would be refused.
pub fn refuses_strict(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.verdict == Verdict::Fail)
}

/// A row before its verdict.
struct Rule {
    id: &'static str,
    expected: String,
    why: &'static str,
    fix: String,
}

impl Rule {
    fn new(id: &'static str, expected: impl Into<String>, why: &'static str, fix: impl Into<String>) -> Rule {
        Rule { id, expected: expected.into(), why, fix: fix.into() }
    }

    fn found(self, verdict: Verdict, found: impl Into<String>) -> Row {
        let Rule { id, expected, why, fix } = self;
        // A command is offered only where something is to be set right.
        let fix = if matches!(verdict, Verdict::Warn | Verdict::Fail) { fix } else { String::new() };
        Row { id: id.to_owned(), found: found.into(), expected, verdict, why: why.to_owned(), fix }
    }

    fn hidden(self) -> Row {
        self.found(Verdict::NotVisible, "not visible here")
    }

    /// A row about hot cores, of which there are none: nothing was looked at.
    fn without_hot_cores(self) -> Row {
        self.found(Verdict::NotVisible, "no core is left for hot threads")
    }
}

/// Why no command can keep the hot cores free, and what can: the kernel needs a core for itself. `None`: one is left
/// to it.
fn leaves_no_core(seen: &Observations) -> Option<String> {
    let most = seen.hot.len().saturating_sub(1).max(1);
    (seen.spare.as_deref() == Some(&[]))
        .then(|| format!("leave a core to the system: max_cores: Some({most}) in the profile"))
}

/// `2-5,8` for a list of cores, `none` for an empty one.
pub fn ranges(cores: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &core in cores {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => parts.push((core, core)),
        }
    }
    if parts.is_empty() {
        return "none".to_owned();
    }
    let part = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
