//! A command of the console that may take long, executed on a thread of its own: the console goes on meanwhile.
//!
//! Owns the result that is awaited. Bounds: one command at a time; the end of the runs waits [`LEAVE_LIMIT`] for it.

use crate::source::Reply;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

/// Longest wait at the end: a plugin or a disk may keep the thread.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// At most one command under way.
#[derive(Debug, Default)]
pub(super) struct Aside(Option<Receiver<Result<(), Reply>>>);

impl Aside {
    /// Runs `execute` on a thread of its own.
    pub(super) fn begin(&mut self, execute: impl FnOnce() -> Result<(), Reply> + Send + 'static) -> Result<(), String> {
        if self.0.is_some() {
            return Err("the change before is still being prepared; wait for its end".to_owned());
        }
        let (sender, result) = channel();
        // The receiver is gone only if the process is ending.
        spawn("command", move || drop(sender.send(execute())))?;
        self.0 = Some(result);
        Ok(())
    }

    /// What the console says of the command's failure, once it has failed.
    pub(super) fn refusal(&mut self) -> Option<Reply> {
        let result = match self.0.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Ok(result) => result.err(),
            Err(TryRecvError::Disconnected) => {
                Some(Reply::Refused("the command panicked; standard error has the reason".to_owned()))
            }
        };
        self.0 = None;
        result
    }

    /// Waits for its end: it holds the board of its engine.
    pub(super) fn end(self) {
        let _ = self.0.map(|result| result.recv_timeout(LEAVE_LIMIT));
    }
}

/// Starts a thread.
///
/// # Errors
/// One sentence, if the system refuses it.
#[expect(clippy::disallowed_methods, reason = "a cold thread; it inherits the cores of the thread that starts it")]
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let refused = |error| format!("no thread could be started ({error}); raise the process limit (ulimit -u)");
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop).map_err(refused)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Aside, Reply, channel};
    use std::time::Duration;

    #[test]
    fn a_command_that_takes_long_is_not_waited_for_and_its_refusal_comes_later() {
        let mut aside = Aside::default();
        let (go_on, waits) = channel::<()>();
        aside.begin(move || waits.recv().map_err(|_| Reply::Refused("no such plugin".to_owned()))).unwrap();
        assert_eq!(aside.refusal(), None);
        assert!(aside.begin(|| Ok(())).is_err_and(|said| said.contains("still being prepared")));
        drop(go_on);
        let looks = std::iter::repeat_with(|| {
            std::thread::park_timeout(Duration::from_millis(1));
            aside.refusal()
        });
        assert_eq!(looks.take(60_000).flatten().next(), Some(Reply::Refused("no such plugin".to_owned())));
        assert!(aside.begin(|| Ok(())).is_ok());
    }
}
