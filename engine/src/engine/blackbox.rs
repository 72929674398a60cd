//! The flight recorder's thread: one step a millisecond until the engine has ended.
//!
//! Runs on the cold cores, within the recorder's bounds. Only the end of a run waits for it, for a
//! limited time: a disk that hangs delays no other thread.

use super::cold::{self, ColdThreads, Stop};
use super::logger::LogEntry;
use crate::board::Board;
use crate::clock::Clock;
use crate::fault::EventCode;
use crate::profile::KeptRuns;
use crate::record::{RecentRecording, Recorder, SAMPLE_PERIOD, runs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel};
use std::time::Duration;

/// Parts of the engine that the recorder needs.
pub(super) struct Blackbox {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    /// The run's directory.
    pub(super) run: PathBuf,
    pub(super) kept: KeptRuns,
    pub(super) threads: ColdThreads,
    pub(super) entries: Option<SyncSender<LogEntry>>,
}

/// A running recorder.
pub(super) struct Recording {
    /// Receives a message once the last picture is written.
    pub(super) ended: Receiver<()>,
    pub(super) recent_recording: RecentRecording,
}

impl Blackbox {
    /// Starts the threads of the recorder and of the retention of runs.
    pub(super) fn spawn(self, stop: Stop) -> io::Result<Recording> {
        let Blackbox { board, clock, run, kept, threads, entries } = self;
        let (sender, ended) = channel();
        // Absolute, because viewers may run in another working directory.
        let named = std::path::absolute(&run).unwrap_or_else(|_| run.clone());
        board.recorder().run_dir.write(&named.display().to_string());
        let mut recorder = Recorder::new(board, clock.clone(), Some(&run));
        let recent_recording = recorder.recent_recording();
        let log = EventLog { clock, entries };
        let retention_log = log.clone();
        // A separate thread, because removing gigabytes takes a while.
        threads.spawn("retention", move || retention_log.remove_old_runs(&run, kept))?;
        threads.spawn("recorder", move || {
            while !stop.is_stopped() {
                recorder.step();
                log.record_error(recorder.take_error());
                cold::sleep(Duration::from_nanos(SAMPLE_PERIOD.0));
            }
            log.record_error(recorder.finish());
            let _ = sender.send(());
        })?;
        Ok(Recording { ended, recent_recording })
    }
}

/// Writes events into the log; without a log, or if it is full, only the entry is lost.
#[derive(Clone)]
struct EventLog {
    clock: Clock,
    entries: Option<SyncSender<LogEntry>>,
}

impl EventLog {
    fn record_error(&self, error: Option<String>) {
        if let Some(text) = error {
            self.write(EventCode::RecorderInMemory, text);
        }
    }

    fn remove_old_runs(&self, run: &Path, kept: KeptRuns) {
        let Some(logs) = run.parent() else { return };
        let retained = runs::retain(logs, kept, run);
        if !retained.removed.is_empty() {
            let names: Vec<String> =
                retained.removed.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
            let KeptRuns { kept_mb, kept_runs } = kept;
            let text = format!("removed {} to keep within {kept_runs} runs and {kept_mb} MB", names.join(", "));
            self.write(EventCode::RunsRemoved, text);
        }
        for (path, error) in retained.refused {
            let text = format!("{} could not be removed ({error}); remove it by hand", path.display());
            self.write(EventCode::RunsRemoved, text);
        }
    }

    fn write(&self, code: EventCode, text: String) {
        if let Some(entries) = &self.entries {
            let _ =
                entries.try_send(LogEntry { at: self.clock.ticks(), who: "recorder", code, text, numbers: Vec::new() });
        }
    }
}
