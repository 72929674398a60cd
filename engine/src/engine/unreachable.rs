//! The control socket on systems whose kernel does not identify a socket's peer: there is none.
//!
//! Notes this once at the start; the engine runs without the socket.

use super::cold::{ColdThreads, Stop};
use super::command::Executor;
use crate::board::Board;
use crate::clock::Clock;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

/// The control socket never exists here.
pub(super) struct Running(Infallible);

impl Running {
    pub(super) fn end(self) {
        match self.0 {}
    }
}

pub(super) fn spawn(
    _run_dir: &Path,
    _board: &Arc<Board>,
    _clock: &Clock,
    _executor: Executor,
    _threads: &ColdThreads,
    _stop: Stop,
) -> Result<Running, String> {
    Err("control socket: not available on this system, only on Linux; pinwheel ctl cannot reach this engine".to_owned())
}
