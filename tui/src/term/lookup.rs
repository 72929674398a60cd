//! The thread that reads data outside the board, so that a slow disk or a large `/proc` never
//! delays a key.
//!
//! Owns the state kept between look-ups ([`LookupState`]). Bounded: one look-up in progress and
//! none waiting; a dropped request is repeated later.

use crate::model::lookups::{LookupRequest, LookupResult};
use crate::source::lookup::{LookupContext, LookupState, look_up};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Builder;

/// The console thread's end of the look-up thread.
pub struct Lookups {
    asked: SyncSender<(LookupRequest, LookupContext)>,
    brought: Receiver<LookupResult>,
}

impl Lookups {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start() -> io::Result<Lookups> {
        let (asked, todo) = sync_channel::<(LookupRequest, LookupContext)>(1);
        let (done, brought) = channel();
        let look = move || {
            let mut kept = LookupState::default();
            while let Ok((wanted, about)) = todo.recv() {
                // Without a console nobody needs the result.
                if done.send(look_up(wanted, &about, &mut kept)).is_err() {
                    return;
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread; it takes_over the console thread's cores")]
        Builder::new().name("lookup".to_owned()).spawn(look)?;
        Ok(Lookups { asked, brought })
    }

    /// Requests a look-up; dropped while another one waits.
    pub fn ask(&self, wanted: LookupRequest, about: LookupContext) {
        let _ = self.asked.try_send((wanted, about));
    }

    /// The result since the last call, if there is one.
    pub fn take(&self) -> Option<LookupResult> {
        self.brought.try_recv().ok()
    }
}
