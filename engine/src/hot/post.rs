//! Letters that are handed over whole, between a cold thread and a role: what is rare, and owns something.
//!
//! Owns a bounded channel and a count beside it. Bounds: what it was made for; a full one refuses. Neither end ever waits, locks or
//! allocates: the channel's places are made with it, and nobody ever sleeps at it. A look at an empty one is one load.
//!
//! # Why not a ring
//! The rings of the path hold copies of plain words, many a microsecond. What goes here has an owner (ends of rings, tables), comes a
//! few times an hour, and is dropped by whoever is left with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// The sending end.
#[derive(Debug)]
pub struct Sends<T> {
    made: Arc<AtomicU64>,
    sender: SyncSender<T>,
}

/// The taking end.
#[derive(Debug)]
pub struct Takes<T> {
    made: Arc<AtomicU64>,
    receiver: Receiver<T>,
    taken: u64,
}

/// Both ends of a post with room for so many letters.
#[must_use]
pub fn post<T>(letters: usize) -> (Sends<T>, Takes<T>) {
    let made = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = sync_channel(letters);
    (Sends { made: Arc::clone(&made), sender }, Takes { made, receiver, taken: 0 })
}

impl<T> Sends<T> {
    /// Sends.
    ///
    /// # Errors
    /// The letter, if there is no room, or nobody who takes it.
    pub fn push(&mut self, letter: T) -> Result<(), T> {
        match self.sender.try_send(letter) {
            Ok(()) => {
                // Relaxed: the channel orders what is sent; the count only says that there is something.
                self.made.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(TrySendError::Full(letter) | TrySendError::Disconnected(letter)) => Err(letter),
        }
    }
}

impl<T> Takes<T> {
    /// Whether a letter has been sent that was not taken.
    #[inline]
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.made.load(Ordering::Relaxed) != self.taken
    }

    /// The next letter; `None`: there is none, or it is not to be seen yet.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if !self.is_waiting() {
            return None;
        }
        let letter = self.receiver.try_recv().ok()?;
        self.taken += 1;
        Some(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::post;

    #[test]
    fn letters_come_in_order_and_one_too_many_comes_back() {
        let (mut sends, mut takes) = post(2);
        assert_eq!((takes.pop(), takes.is_waiting()), (None, false));
        assert_eq!((sends.push(1), sends.push(2), sends.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((takes.pop(), takes.pop(), takes.pop()), (Some(1), Some(2), None));
        drop(takes);
        assert_eq!(sends.push(4), Err(4));
    }
}
