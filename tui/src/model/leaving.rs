//! How the console ends.

/// Why the console returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEnd {
    /// The operator quit and the engine had finished.
    Finished,
    /// The operator quit with shots unanswered, after being asked.
    Forced,
    /// SIGTERM; the engine was drained.
    Terminated,
    /// SIGINT; the engine was drained.
    Interrupted,
    /// A second signal came before the drain ended.
    Killed,
    /// The terminal closed; the engine continues without it.
    HungUp,
}

/// Progress of leaving the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Leaving was not requested.
    No,
    /// The engine drains; then the console returns `end`.
    Draining {
        /// Start of the drain, by the console's clock.
        since_ns: u64,
        /// The value that the console returns.
        end: ConsoleEnd,
    },
}
