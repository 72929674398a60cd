//! Hints: the purpose of a request, stored in the word that grants it.

/// Purpose of a request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "UPPERCASE"))]
pub enum Hint {
    /// An ordinary write.
    Default,
    /// A short lease, released explicitly.
    Lock,
    /// A lease.
    Lease,
    /// To keep the page: heat does not protect the owner.
    Migrate,
}

impl Hint {
    /// All hints, in the order of their codes.
    pub const ALL: [Hint; 4] = [Hint::Default, Hint::Lock, Hint::Lease, Hint::Migrate];

    pub(crate) const fn of(code: u64) -> Hint {
        match code {
            0 => Hint::Default,
            1 => Hint::Lock,
            2 => Hint::Lease,
            _ => Hint::Migrate,
        }
    }

    /// Whether the new owner holds a lease.
    #[must_use]
    pub const fn is_lease(self) -> bool {
        matches!(self, Hint::Lock | Hint::Lease)
    }
}
