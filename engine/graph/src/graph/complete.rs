//! Ends tasks that were begun elsewhere: launches on a device, whose completion releases what waits on a core.
//!
//! One end, owned by the thread that hears of completions (poll). Bounds: one call, one task. A completion of an earlier
//! task of the same record, or a second one, is refused: numbers carry their generation.

use super::shared::{Failure, Shared};
use super::task::{Body, Reason, Task, TaskId, outcome_of};
use super::worker::resolve;
use std::sync::Arc;

/// Why a completion was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteError {
    /// Its record belongs to another task, or it has ended.
    #[error("completion of task {task}: found it ended, expected it under way; drop the late answer")]
    Stale {
        /// The task.
        task: TaskId,
    },
    /// It still waits for others, so nobody can have launched it.
    #[error("completion of task {task}: found it waiting for others, expected it launched; check who answered")]
    NotLaunched {
        /// The task.
        task: TaskId,
    },
}

/// The end.
pub struct Completer<B> {
    pub(super) shared: Arc<Shared<B>>,
}

impl<B> Shared<B> {
    /// The record and the gate of a task that was launched.
    pub(super) fn launched(&self, task: TaskId) -> Result<(u32, Option<usize>), CompleteError> {
        let slot = self.slot(task.0);
        if self.fanout.generation(slot) != self.generation(task.0) || self.fanout.is_sealed(slot) {
            return Err(CompleteError::Stale { task });
        }
        if self.fanout.pending(slot) > 1 {
            return Err(CompleteError::NotLaunched { task });
        }
        Ok((slot, self.gate_of(&Task::of_words(self.fanout.payload(slot)))))
    }
}

impl<B: Body> Completer<B> {
    /// Ends a task whose body said that it was launched; `failed` carries the device's code.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn complete(&mut self, task: TaskId, failed: Option<u32>) -> Result<(), CompleteError> {
        let shared = &*self.shared;
        let (slot, gate) = shared.launched(task)?;
        let outcome = failed.map_or(0, |code| {
            // More failures than are kept are remembered by their outcome all the same.
            let _ = shared.failures.push(Failure { task, reason: Reason::Failed(code) });
            outcome_of(task.0)
        });
        resolve(shared, slot, outcome, |item| {
            let is_sent = shared.route(item, None);
            debug_assert!(is_sent, "whoever is no worker keeps nothing");
        });
        if let Some(gate) = gate {
            shared.gates[gate].leave();
        }
        Ok(())
    }
}
