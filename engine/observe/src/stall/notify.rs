//! `on_alarm`: runs a program of the operator's at each alarm.
//!
//! Owns a cold thread and at most one child process. Starts one child a second and kills it after
//! [`LIMIT`]. At most [`QUEUE`] alarms wait; further ones are dropped and counted. Never delays the
//! watchdog.

use crate::board::snapshot::AlarmView;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Longest run time of a child.
const LIMIT: Duration = Duration::from_secs(5);
/// Time between two children.
const EVERY: Duration = Duration::from_secs(1);
/// Time between two checks of a child.
const LOOK: Duration = Duration::from_millis(10);
/// Most alarms that wait for the program.
const QUEUE: usize = 16;

/// Runs the operator's program.
pub(super) struct AlarmNotifier {
    queue: SyncSender<(String, Vec<u8>)>,
    untold: u64,
}

impl AlarmNotifier {
    /// Starts its thread; `None` if the system refuses one.
    #[expect(clippy::disallowed_methods, reason = "cold: a child may take its time")]
    pub(super) fn start() -> Option<AlarmNotifier> {
        let (queue, alarms) = sync_channel(QUEUE);
        std::thread::Builder::new().name("on-alarm".to_owned()).spawn(move || run_programs(&alarms)).ok()?;
        Some(AlarmNotifier { queue, untold: 0 })
    }

    /// Queues `alarm` for `program`.
    pub(super) fn notify(&mut self, program: &str, alarm: &AlarmView) {
        let Ok(json) = serde_json::to_vec(alarm) else { return };
        if self.queue.try_send((program.to_owned(), json)).is_err() {
            self.untold += 1;
        }
    }
}

fn run_programs(alarms: &Receiver<(String, Vec<u8>)>) {
    while let Ok((program, json)) = alarms.recv() {
        // A program that cannot be started is ignored: the alarm itself is on the board.
        if let Ok(child) = start(&program, &json) {
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
    use super::{start, wait};
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
}
