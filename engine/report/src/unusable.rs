//! The sentence that refuses an input or an environment: what was found, what was expected, and what to do.
//!
//! Pure.

/// Something that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{about}: found {found}, expected {expected}; {remedy}")]
pub struct Unusable {
    /// An option with its value, or a file.
    pub about: String,
    /// The value or state that was found.
    pub found: String,
    /// The value or state that was expected.
    pub expected: String,
    /// What the user can do.
    pub remedy: String,
}

impl Unusable {
    /// Refuses what `about` names.
    pub fn new(
        about: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Unusable {
        Unusable { about: about.into(), found: found.into(), expected: expected.into(), remedy: remedy.into() }
    }
}
