//! Resource limits of this process, checked before anything is created, so that a refused start
//! leaves nothing behind.
//!
//! Runs once, on the caller's thread, after the plan is made and before the board. Bounds: starts
//! as many short-lived threads as the engine has.

use super::StartError;
use crate::host::limit;
use crate::plan::Plan;

/// Most cold threads of an engine and the program around it.
const COLD_THREADS: usize = 16;
/// Largest file of a run's directory that is written at once, bytes.
const FILE_BYTES: u64 = 1 << 20;

/// Refuses a start if the process's limits are too low; `board_bytes` is the size of the board.
pub(super) fn check(plan: &Plan, board_bytes: u64) -> Result<(), StartError> {
    let threads = plan.threads.len() + COLD_THREADS;
    let file = board_bytes.max(FILE_BYTES);
    if let Some(found) = limit::file_bytes().filter(|found| *found < file) {
        let (what, option) = ("the size of a file", "-f");
        return Err(StartError::Limit { what, found, expected: file, option });
    }
    let space = limit::address_bytes_needed(threads) + 2 * board_bytes;
    if let Some(found) = limit::address_bytes().filter(|found| *found < space) {
        let (what, option) = ("address space", "-v");
        return Err(StartError::Limit { what, found, expected: space, option });
    }
    limit::try_threads(threads).map_err(|(given, source)| {
        let name = format!("number {} of {threads}", given + 1);
        StartError::Thread { name, threads, source }
    })
}
