//! Causes of page transitions, for the page's history and the board.

/// Cause of a page transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[repr(u8)]
pub enum Cause {
    /// Granted to another silo.
    Granted,
    /// Granted by an operator's forced move, against a lease.
    Forced,
    /// Acknowledged: the page has left.
    Left,
    /// The page arrived here.
    Arrived,
    /// No acknowledgement in time.
    Doubted,
    /// The receiver fenced the grant: the page stays.
    Kept,
    /// A grant to this silo was fenced.
    Fenced,
    /// A lease of this silo began.
    LeaseBegan,
    /// Heat or a lease expired.
    Cooled,
    /// A lease was released.
    Released,
    /// Taken over from a fenced silo.
    Inherited,
    /// Its receiver is dead; that silo's last word settled the transfer.
    ReceiverDied,
}

impl Cause {
    /// All causes, in the order of their codes.
    pub const ALL: [Cause; 12] = [
        Cause::Granted,
        Cause::Forced,
        Cause::Left,
        Cause::Arrived,
        Cause::Doubted,
        Cause::Kept,
        Cause::Fenced,
        Cause::LeaseBegan,
        Cause::Cooled,
        Cause::Released,
        Cause::Inherited,
        Cause::ReceiverDied,
    ];

    /// The cause in words, as the console shows it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Cause::Granted => "granted",
            Cause::Forced => "forced away",
            Cause::Left => "acknowledged",
            Cause::Arrived => "arrived",
            Cause::Doubted => "no ACK in time",
            Cause::Kept => "grant cancelled",
            Cause::Fenced => "grant refused",
            Cause::LeaseBegan => "lease began",
            Cause::Cooled => "time over",
            Cause::Released => "lease given back",
            Cause::Inherited => "taken over",
            Cause::ReceiverDied => "receiver is dead",
        }
    }
}
