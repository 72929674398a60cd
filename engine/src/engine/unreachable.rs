//! No control socket, on systems where the kernel does not name a socket's peer to us.
//!
//! Says so once a start; the engine runs without.

use super::cold::Stop;
use super::control::Hands;
use crate::board::Board;
use crate::clock::Clock;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

/// Nothing that could be asked for.
pub(super) type Order = Infallible;
/// Nobody asks.
pub(super) struct Orders(Infallible);

impl Orders {
    pub(super) fn try_iter(&self) -> std::iter::Empty<Order> {
        match self.0 {}
    }
}

/// Never runs.
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
    _cold_cores: Vec<u32>,
    _stop: Stop,
) -> Result<(Running, Orders), String> {
    Err("control socket: found none to be had on this system, expected Linux; pinwheel ctl cannot reach this engine"
        .to_owned())
}

pub(super) fn act(order: Order, _hands: &Hands<'_>) {
    match order {}
}
