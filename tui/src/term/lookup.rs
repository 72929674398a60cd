//! The thread that reads data outside the board, so that a slow disk or a large `/proc` never
//! delays a key.
//!
//! Owns the state kept between look-ups ([`LookupState`]). Bounded: one look-up in progress, one
//! that the thread takes next, and behind it the newest request.

use crate::model::lookups::{LookupRequest, LookupResult};
use crate::source::lookup::{LookupContext, LookupState, command_hosts, look_up};
use pinwheel_hosts::local_socket::Wanted;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
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
    /// The newest look-up that found no room.
    waiting: Option<(LookupRequest, LookupContext)>,
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
        Ok(Lookups { asked, brought, waiting: None })
    }

    /// Requests a look-up; the newest one waits where there is no room.
    pub fn ask(&mut self, wanted: LookupRequest, about: LookupContext) {
        self.waiting = Some((wanted, about));
        self.pass_on();
    }

    /// Gives the thread the look-up that waits, if there is room.
    fn pass_on(&mut self) {
        let Some((wanted, about)) = self.waiting.take() else { return };
        if let Err(TrySendError::Full((_, about))) = self.asked.try_send((Task::LookUp(wanted), about)) {
            self.waiting = Some((wanted, about));
        }
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
    pub fn take(&mut self) -> Option<LookupResult> {
        self.pass_on();
        self.brought.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{LookupContext, LookupRequest, Lookups, Task, channel, sync_channel};

    #[test]
    fn of_the_lookups_without_room_the_newest_is_done() {
        let ((asked, todo), (_done, brought)) = (sync_channel(1), channel());
        let mut lookups = Lookups { asked, brought, waiting: None };
        for wanted in [LookupRequest::Log, LookupRequest::Cores, LookupRequest::Hosts] {
            lookups.ask(wanted, LookupContext::default());
        }
        for expected in [LookupRequest::Log, LookupRequest::Hosts] {
            let next = todo.try_recv();
            assert!(matches!(next, Ok((Task::LookUp(wanted), _)) if wanted == expected), "{expected:?}");
            assert!(lookups.take().is_none());
        }
        assert!(todo.try_recv().is_err(), "no other waits");
    }
}
