//! `on_alarm`: runs a program of the operator's at each alarm.
//!
//! Owns a cold thread and at most one child process. Starts one child a second and kills it after
//! [`LIMIT`]. At most [`QUEUE`] alarms wait; further ones are dropped. Delays the watchdog at its end only: for at most
//! [`END_LIMIT`], until the program was started for each alarm that waits, which may be that of the engine's death.

use crate::board::snapshot::AlarmView;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Longest run time of a child.
const LIMIT: Duration = Duration::from_secs(5);
/// Time between two children.
const EVERY: Duration = Duration::from_secs(1);
/// Longest wait at the end for alarms that the program was not started for: one child, and the time after it.
const END_LIMIT: Duration = LIMIT.saturating_add(EVERY);
/// Time between two checks of a child, and of the alarms that wait at the end.
const LOOK: Duration = Duration::from_millis(10);
/// Most alarms that wait for the program.
const QUEUE: usize = 16;

/// Runs the operator's program.
pub(super) struct AlarmNotifier {
    queue: Option<SyncSender<(String, Vec<u8>)>>,
    /// Alarms for which the program was not started yet.
    // Relaxed: a count that stands alone.
    waiting: Arc<AtomicUsize>,
}

impl AlarmNotifier {
    /// Starts its thread; `None` if the system refuses one.
    #[expect(clippy::disallowed_methods, reason = "cold: a child may take its time")]
    pub(super) fn start() -> Option<AlarmNotifier> {
        let (queue, alarms) = sync_channel(QUEUE);
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        let run = move || run_programs(&alarms, &counted);
        std::thread::Builder::new().name("on-alarm".to_owned()).spawn(run).ok()?;
        Some(AlarmNotifier { queue: Some(queue), waiting })
    }

    /// Queues `alarm` for `program`.
    pub(super) fn notify(&mut self, program: &str, alarm: &AlarmView) {
        let Ok(json) = serde_json::to_vec(alarm) else { return };
        self.queue(program, json);
    }

    fn queue(&self, program: &str, json: Vec<u8>) {
        let Some(queue) = &self.queue else { return };
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if queue.try_send((program.to_owned(), json)).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for AlarmNotifier {
    fn drop(&mut self) {
        self.queue = None;
        let looks = END_LIMIT.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            rest(LOOK);
        }
    }
}

fn run_programs(alarms: &Receiver<(String, Vec<u8>)>, waiting: &AtomicUsize) {
    while let Ok((program, json)) = alarms.recv() {
        // A program that cannot be started is ignored: the alarm itself is on the board.
        let child = start(&program, &json);
        waiting.fetch_sub(1, Ordering::Relaxed);
        if let Ok(child) = child {
            wait(child);
        }
        rest(EVERY);
    }
}

fn start(program: &str, json: &[u8]) -> std::io::Result<Child> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // The text fits into a pipe's buffer, so a program that never reads does not block this
        // thread.
        let _ = stdin.write_all(json).and_then(|()| stdin.write_all(b"\n"));
    }
    Ok(child)
}

/// Waits for the child to end, and kills it after [`LIMIT`].
fn wait(mut child: Child) {
    let looks = LIMIT.as_millis() / LOOK.as_millis();
    for _ in 0..looks {
        match child.try_wait() {
            Ok(None) => rest(LOOK),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[expect(clippy::disallowed_methods, reason = "cold threads wait by sleeping")]
fn rest(span: Duration) {
    std::thread::sleep(span);
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{AlarmNotifier, start, wait};
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    #[test]
    fn a_program_gets_the_alarm_on_its_standard_input_and_a_missing_program_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let (script, heard) = (folder.path().join("page.sh"), folder.path().join("heard"));
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(&script).unwrap();
        writeln!(file, "#!/bin/sh\ncat > {}", heard.display()).unwrap();
        drop(file);
        assert!(start("/nonexistent/program", b"{}").is_err());
        wait(start(script.to_str().unwrap(), b"{\"rule\":\"heartbeat\"}").unwrap());
        assert_eq!(std::fs::read_to_string(&heard).unwrap(), "{\"rule\":\"heartbeat\"}\n");
    }

    #[test]
    fn at_the_end_of_a_run_the_program_is_started_for_each_alarm_that_waits() {
        let folder = tempfile::tempdir().unwrap();
        let notifier = AlarmNotifier::start().unwrap();
        let waiting = std::sync::Arc::clone(&notifier.waiting);
        // The second waits for the time between two children; a program that is missing counts, too.
        for program in ["/bin/true", folder.path().join("absent").to_str().unwrap()] {
            notifier.queue(program, b"{}".to_vec());
        }
        drop(notifier);
        assert_eq!(waiting.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}
