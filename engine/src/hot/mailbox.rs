//! A mailbox: rare messages that own memory, passed between a cold thread and a role.
//!
//! Owns a bounded channel and a count of the messages sent. Bounds: its capacity; a full mailbox
//! refuses a message. Neither end waits, locks or allocates: the channel's slots are allocated with
//! it. To find it empty costs one load.
//!
//! # Why not a ring
//! The rings of the path copy plain words, several a microsecond. A message here owns its contents (ends of rings,
//! tables) and comes a few times an hour. Whichever end holds it last drops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Sends messages.
#[derive(Debug)]
pub struct MailboxSender<T> {
    made: Arc<AtomicU64>,
    sender: SyncSender<T>,
}

/// Receives messages.
#[derive(Debug)]
pub struct MailboxReceiver<T> {
    made: Arc<AtomicU64>,
    receiver: Receiver<T>,
    taken: u64,
}

/// Both ends of a mailbox that holds up to `messages`.
pub fn mailbox<T>(messages: usize) -> (MailboxSender<T>, MailboxReceiver<T>) {
    let made = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = sync_channel(messages);
    (MailboxSender { made: Arc::clone(&made), sender }, MailboxReceiver { made, receiver, taken: 0 })
}

impl<T> MailboxSender<T> {
    /// Sends `message`.
    ///
    /// # Errors
    /// The message itself, if the mailbox is full or its receiver is gone.
    pub fn push(&mut self, message: T) -> Result<(), T> {
        match self.sender.try_send(message) {
            Ok(()) => {
                // Relaxed: the channel orders what is sent; the count only says that there is something.
                self.made.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => Err(message),
        }
    }
}

impl<T> MailboxReceiver<T> {
    /// Whether a sent message waits to be received.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.made.load(Ordering::Relaxed) != self.taken
    }

    /// The next message, if one is visible to this thread already.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if !self.is_waiting() {
            return None;
        }
        let message = self.receiver.try_recv().ok()?;
        self.taken += 1;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::mailbox;

    #[test]
    fn messages_arrive_in_order_and_one_beyond_the_capacity_is_returned() {
        let (mut sender, mut receiver) = mailbox(2);
        assert_eq!((receiver.pop(), receiver.is_waiting()), (None, false));
        assert_eq!((sender.push(1), sender.push(2), sender.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((receiver.pop(), receiver.pop(), receiver.pop()), (Some(1), Some(2), None));
        drop(receiver);
        assert_eq!(sender.push(4), Err(4));
    }
}
