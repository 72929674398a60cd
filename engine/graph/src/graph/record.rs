//! Recording and replaying, the submitter's side.
//!
//! A replay submits one number, whatever the size of the graph.

use super::replay::{Recorder, RecordingId};
use super::shared::{RECORDED, ROOTS};
use super::submit::{SubmitError, Submitter};
use super::task::{Body, TaskId};

/// Why a recording cannot be made or replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RecordError {
    #[error("recording: found tasks under way, expected none; wait first")]
    Busy,
    #[error("recording: found one begun and not ended, or ended and not begun; call record and end_recording in turn")]
    OutOfTurn,
    #[error("recordings: found {limit} of {limit}, expected room for one more; raise recordings")]
    TooMany { limit: u32 },
    #[error("recording: found {tasks} tasks, expected 1 to {limit}; submit some within, or raise {knob}")]
    TooLarge { tasks: usize, limit: u32, knob: &'static str },
    #[error("recording: found a number that was never given out, expected one of end_recording's; record first")]
    Unknown,
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl<B: Body> Submitter<B> {
    /// Records every task submitted from here on. The tasks run as usual.
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
        self.recorder = Some(Box::new(Recorder::new(self.next)));
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// `OutOfTurn`; `TooLarge`, which discards the recording.
    pub fn end_recording(&mut self) -> Result<RecordingId, RecordError> {
        let Some(recorder) = self.recorder.take() else { return Err(RecordError::OutOfTurn) };
        self.retire_entries();
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
        // Only the submitter fills recordings, so this one is still free.
        let _ = self.shared.recordings[free].set(recorder.finish());
        Ok(RecordingId(free as u16))
    }

    /// Tasks and dependencies of a recording.
    pub fn recorded(&self, recording: RecordingId) -> Option<(u32, u32)> {
        let recording = self.shared.recordings.get(recording.0 as usize)?.get()?;
        Some((recording.tasks(), recording.edges()))
    }

    /// Runs a recording once more. Submits one number, which stands for the whole round and ends
    /// with it.
    ///
    /// # Errors
    /// `Unknown`, `Busy` while its last round or any other task is under way, and what
    /// [`Submitter::try_submit`] says.
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
        recorded.begin(round);
        if self.spill_next != self.spill_retired {
            self.note_links(round);
        }
        self.next += 1;
        self.start();
        self.worker.ready(RECORDED | ROOTS | u64::from(recording.0) << 32);
        Ok(TaskId(round))
    }
}
