//! Counters of the input's health for a stream that gets another error model.
//!
//! A cold thread builds them; the feed exchanges its own for them between two shots, and gives the old ones
//! back to be freed. Bounds: one on its way to the feed, one back. Never waits.

use crate::code::health::InputHealth;
use crate::hot::mailbox::{MailboxReceiver, MailboxSender};

/// Counters at zero for one of the feed's own streams.
pub struct FreshHealth {
    /// Its place among them.
    pub own: usize,
    /// The counters, for its model.
    pub health: InputHealth,
}

/// The feed's ends of the mailboxes.
pub struct HealthChanges {
    /// Brings new counters.
    pub fresh: MailboxReceiver<FreshHealth>,
    /// Takes the old ones back.
    pub returns: MailboxSender<InputHealth>,
}

impl HealthChanges {
    /// Exchanges what has come.
    #[inline]
    pub(super) fn exchange(&mut self, health: &mut [InputHealth]) {
        if let Some(FreshHealth { own, health: fresh }) = self.fresh.pop() {
            let old = std::mem::replace(&mut health[own], fresh);
            // There is room: the next comes after this one was taken out. Without a receiver the run is
            // over.
            let _ = self.returns.push(old);
        }
    }
}
