//! The flight recorder's thread: a step a millisecond, until the engine has ended.
//!
//! Cold, on the cold cores. Bounds: the recorder's. Nothing waits for it but the end of a run, and that for a limited time: a disk that
//! hangs holds up this thread alone.

use super::cold::{self, Stop};
use super::logger::Said;
use crate::board::Board;
use crate::clock::Clock;
use crate::fault::EventCode;
use crate::profile::KeptRuns;
use crate::record::{LookBack, Recorder, SAMPLE, runs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel};
use std::time::Duration;

/// What a recorder is started with.
pub(super) struct Blackbox {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    /// The run's directory.
    pub(super) run: PathBuf,
    pub(super) kept: KeptRuns,
    pub(super) cold_cores: Vec<u32>,
    pub(super) said: Option<SyncSender<Said>>,
}

/// A recorder that runs.
pub(super) struct Recording {
    /// Comes when the last picture is written.
    pub(super) ended: Receiver<()>,
    pub(super) look_back: LookBack,
}

impl Blackbox {
    /// Starts its thread.
    pub(super) fn spawn(self, stop: Stop) -> io::Result<Recording> {
        let Blackbox { board, clock, run, kept, cold_cores, said } = self;
        let (sender, ended) = channel();
        // From wherever somebody attaches: a path of its own.
        let named = std::path::absolute(&run).unwrap_or_else(|_| run.clone());
        board.recorder().run_dir.write(&named.display().to_string());
        let mut recorder = Recorder::new(board, clock.clone(), Some(&run));
        let look_back = recorder.look_back();
        let tell = Tell { clock, said };
        let make_room = tell.clone();
        // A directory with gigabytes in it takes its time to go.
        cold::spawn("retention", move || make_room.room(&run, kept))?;
        cold::spawn("recorder", move || {
            // A courtesy to the hot threads; where it is not permitted the scheduler decides.
            let _ = crate::host::pin::confine_current_thread(&cold_cores);
            while !stop.is_stopped() {
                recorder.step();
                tell.trouble(recorder.take_trouble());
                cold::sleep(Duration::from_nanos(SAMPLE.0));
            }
            tell.trouble(recorder.finish());
            let _ = sender.send(());
        })?;
        Ok(Recording { ended, look_back })
    }
}

/// Puts what happens into the log of events; where nobody keeps one, or it is full, nothing is lost but the line.
#[derive(Clone)]
struct Tell {
    clock: Clock,
    said: Option<SyncSender<Said>>,
}

impl Tell {
    fn trouble(&self, trouble: Option<String>) {
        if let Some(text) = trouble {
            self.say(EventCode::RecorderInMemory, text);
        }
    }

    fn room(&self, run: &Path, kept: KeptRuns) {
        let Some(logs) = run.parent() else { return };
        let retained = runs::retain(logs, kept, run);
        if !retained.removed.is_empty() {
            let names: Vec<String> =
                retained.removed.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
            let KeptRuns { kept_mb, kept_runs } = kept;
            let text = format!("removed {} to keep within {kept_runs} runs and {kept_mb} MB", names.join(", "));
            self.say(EventCode::RunsRemoved, text);
        }
        for (path, error) in retained.refused {
            let text = format!("found {} not removable ({error}), expected to; remove it by hand", path.display());
            self.say(EventCode::RunsRemoved, text);
        }
    }

    fn say(&self, code: EventCode, text: String) {
        if let Some(said) = &self.said {
            let _ = said.try_send(Said { at: self.clock.ticks(), who: "recorder", code, text, numbers: Vec::new() });
        }
    }
}
