//! Recording and replaying, from the submitter's side.
//!
//! Cold while it records; a replay costs one number, whatever the size of the graph.

use super::replay::{Recorder, RecordingId};
use super::shared::{RECORDED, ROOTS};
use super::submit::{SubmitError, Submitter};
use super::task::{Body, TaskId};

/// Why there is no recording, or no round of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Tasks from before are still under way.
    #[error("recording: found tasks under way, expected none; wait first")]
    Busy,
    /// A recording is being made, or none is.
    #[error("recording: found one begun and not ended, or ended and not begun; call record and end_recording in turn")]
    OutOfTurn,
    /// There is no room for another one.
    #[error("recordings: found {limit} of {limit}, expected room for one more; raise recordings")]
    TooMany {
        /// Recordings.
        limit: u32,
    },
    /// It is too large.
    #[error("recording: found {tasks} tasks, expected at most {limit}; raise {knob}")]
    TooLarge {
        /// Its tasks.
        tasks: usize,
        /// Most.
        limit: u32,
        /// The field of the configuration.
        knob: &'static str,
    },
    /// There is no such recording.
    #[error("recording: found a number that was never given out, expected one of end_recording's; record first")]
    Unknown,
    /// The round cannot be submitted now.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl<B: Body> Submitter<B> {
    /// Records every task submitted from here on. They run as usual.
    ///
    /// # Errors
    /// `Busy`, `OutOfTurn`, `TooMany`.
    pub fn record(&mut self) -> Result<(), RecordError> {
        if self.recorder.is_some() {
            return Err(RecordError::OutOfTurn);
        }
        if !self.poll_done() {
            return Err(RecordError::Busy);
        }
        let limit = self.shared.config.recordings;
        if self.shared.recordings.iter().all(|recording| recording.get().is_some()) {
            return Err(RecordError::TooMany { limit });
        }
        self.recorder = Some(Recorder::new(self.next));
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// `OutOfTurn`, and `TooLarge`, which throws the recording away.
    pub fn end_recording(&mut self) -> Result<RecordingId, RecordError> {
        let Some(recorder) = self.recorder.take() else { return Err(RecordError::OutOfTurn) };
        let config = &self.shared.config;
        let tasks = recorder.tasks();
        let is_stealing = self.shared.ready == super::Ready::WorkSteal;
        let width = if is_stealing { config.recorded_tasks } else { config.ready_tasks.min(config.recorded_tasks) };
        if tasks > width as usize || tasks == 0 {
            let knob = if width == config.recorded_tasks { "recorded_tasks" } else { "ready_tasks" };
            return Err(RecordError::TooLarge { tasks, limit: width, knob });
        }
        let free = self.shared.recordings.iter().position(|recording| recording.get().is_none());
        let Some(free) = free else { return Err(RecordError::TooMany { limit: config.recordings }) };
        // The submitter alone fills places, so this one is still free.
        let _ = self.shared.recordings[free].set(recorder.finish());
        Ok(RecordingId(free as u16))
    }

    /// Tasks and dependencies of a recording.
    #[must_use]
    pub fn recorded(&self, recording: RecordingId) -> Option<(u32, u32)> {
        let recording = self.shared.recordings.get(recording.0 as usize)?.get()?;
        Some((recording.tasks(), recording.edges()))
    }

    /// Runs a recording once more: nothing is submitted but one number, which stands for the round and ends with it.
    ///
    /// # Errors
    /// `Unknown`, `Busy` while its last round or any other task is under way, and what [`Submitter::try_submit`] says.
    pub fn replay(&mut self, recording: RecordingId) -> Result<TaskId, RecordError> {
        if self.recorder.is_some() {
            return Err(RecordError::OutOfTurn);
        }
        if !self.poll_done() {
            return Err(RecordError::Busy);
        }
        if self.is_closed {
            return Err(SubmitError::Closed.into());
        }
        if self.next == self.reserved {
            self.reserve()?;
        }
        let Some(recorded) = self.shared.recordings.get(recording.0 as usize).and_then(|one| one.get()) else {
            return Err(RecordError::Unknown);
        };
        let round = self.next;
        let slot = self.shared.slot(round);
        self.shared.fanout.open(slot, self.shared.generation(round), 1, &[0; 4]);
        self.spill_after[slot as usize] = self.spill_next;
        recorded.begin(round);
        self.next += 1;
        self.start();
        self.worker.local.push_back(RECORDED | ROOTS | u64::from(recording.0) << 32);
        Ok(TaskId(round))
    }
}
