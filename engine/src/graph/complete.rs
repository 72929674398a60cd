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

impl<B: Body> Completer<B> {
    /// Ends a task whose body said that it was launched; `failed` carries the device's code.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn complete(&mut self, task: TaskId, failed: Option<u32>) -> Result<(), CompleteError> {
        let shared = &*self.shared;
        let slot = shared.slot(task.0);
        if shared.fanout.generation(slot) != shared.generation(task.0) || shared.fanout.is_sealed(slot) {
            return Err(CompleteError::Stale { task });
        }
        if shared.fanout.pending(slot) > 1 {
            return Err(CompleteError::NotLaunched { task });
        }
        let outcome = failed.map_or(0, |code| {
            // More failures than are kept are remembered by their outcome all the same.
            let _ = shared.failures.push(Failure { task, reason: Reason::Failed(code) });
            outcome_of(task.0)
        });
        let gate = shared.gate_of(&Task::of_words(shared.fanout.payload(slot)));
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
