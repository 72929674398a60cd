//! The thread that looks up what is beside the board, so that a slow disk or a large `/proc` holds up no key.
//!
//! Owns what one look keeps for the next ([`Kept`]). Bounded: one look under way and none waiting; what is asked
//! for meanwhile is asked for again.

use crate::model::found::{Brought, Wanted};
use crate::source::beside::{About, Kept, look_up};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Builder;

/// The console thread's end.
pub struct Lookups {
    asked: SyncSender<(Wanted, About)>,
    brought: Receiver<Brought>,
}

impl Lookups {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses one.
    pub fn start() -> io::Result<Lookups> {
        let (asked, todo) = sync_channel::<(Wanted, About)>(1);
        let (done, brought) = channel();
        let look = move || {
            let mut kept = Kept::default();
            while let Ok((wanted, about)) = todo.recv() {
                // A console that has gone needs no answer.
                if done.send(look_up(wanted, &about, &mut kept)).is_err() {
                    return;
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread; it inherits the console thread's cores")]
        Builder::new().name("lookup".to_owned()).spawn(look)?;
        Ok(Lookups { asked, brought })
    }

    /// Asks; while another look waits its turn this one is dropped.
    pub fn ask(&self, wanted: Wanted, about: About) {
        let _ = self.asked.try_send((wanted, about));
    }

    /// What has come since the last call.
    pub fn take(&self) -> Option<Brought> {
        self.brought.try_recv().ok()
    }
}
