//! The thread that reads data outside the board, so that a slow disk or a large `/proc` never
//! delays a key.
//!
//! Owns the state kept between look-ups ([`LookupState`]). Bounded: one look-up in progress and
//! none waiting; a dropped request is repeated later.

use crate::model::lookups::{LookupRequest, LookupResult};
use crate::source::lookup::{LookupContext, LookupState, command_hosts, look_up};
use pinwheel_hosts::local_socket::Wanted;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Builder;

/// What the thread is asked.
enum Task {
    LookUp(LookupRequest),
    CommandHosts(Wanted),
}

/// The console thread's end of the look-up thread.
pub struct Lookups {
    asked: SyncSender<(Task, LookupContext)>,
    brought: Receiver<LookupResult>,
}

impl Lookups {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start() -> io::Result<Lookups> {
        let (asked, todo) = sync_channel::<(Task, LookupContext)>(1);
        let (done, brought) = channel();
        let look = move || {
            let mut kept = LookupState::default();
            while let Ok((task, about)) = todo.recv() {
                let result = match task {
                    Task::LookUp(wanted) => look_up(wanted, &about, &mut kept),
                    Task::CommandHosts(wanted) => command_hosts(&wanted, &about),
                };
                // Without a console nobody needs the result.
                if done.send(result).is_err() {
                    return;
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread; it takes_over the console thread's cores")]
        Builder::new().name("pinwheel-lookup".to_owned()).spawn(look)?;
        Ok(Lookups { asked, brought })
    }

    /// Requests a look-up; dropped while another one waits.
    pub fn ask(&self, wanted: LookupRequest, about: LookupContext) {
        let _ = self.asked.try_send((Task::LookUp(wanted), about));
    }

    /// Passes a command about hosts on.
    ///
    /// # Errors
    /// While another request waits.
    pub fn command_hosts(&self, wanted: Wanted, about: LookupContext) -> Result<(), String> {
        let task = (Task::CommandHosts(wanted), about);
        self.asked.try_send(task).map_err(|_| "the engine is being asked something else; try again".to_owned())
    }

    /// The result since the last call, if there is one.
    pub fn take(&self) -> Option<LookupResult> {
        self.brought.try_recv().ok()
    }
}
