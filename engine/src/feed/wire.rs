//! A wire: carries a live source's parts in and their answers out, through a socket or a region of
//! shared memory.
//!
//! The trait that both implement, and their configuration. Run by [`super::link`], on the first
//! feed's thread.

use super::assembly::Width;
use super::intake::Intake;
use super::packet::Status;
use crate::board::Board;
use crate::hot::Frame;
use crate::pipe::Answer;
use crate::pipe::samples::SampleWriter;
use crate::units::{TickRate, Ticks};
use std::sync::Arc;

/// Carries parts and answers.
pub(super) trait Wire: Send {
    /// Takes parts into `intake`, within a frame's budget; returns how many it read.
    fn receive(&mut self, intake: &mut Intake, frame: &Frame<'_>) -> u32;
    /// Whether [`Wire::answer`] can be called.
    fn has_room(&self) -> bool;
    /// Sends an answer to its sender, or buffers it.
    fn answer(&mut self, answer: &Answer, now: Ticks);
    /// Sends buffered answers.
    fn flush(&mut self, now: Ticks, rate: TickRate);
    /// Whether no answer is buffered.
    fn is_idle(&self) -> bool;
    /// Opens the wire when the engine goes live.
    fn open(&mut self);
    /// Whether a sender will ask for an answer that the wire keeps.
    fn is_awaited(&self, _now: Ticks) -> bool {
        false
    }
    /// Closes the wire: the engine takes no more parts.
    fn close(&mut self);
}

pub(super) fn status_of(answer: &Answer) -> u16 {
    match answer.error {
        Some(code) => code as u16,
        None if answer.abstained => Status::Abstained as u16,
        None => 0,
    }
}

/// Configuration of a wire.
pub(super) struct Facts {
    pub(super) epoch: u64,
    pub(super) streams: u32,
    pub(super) observables: u32,
    pub(super) width: Width,
    pub(super) silence: Ticks,
    /// Takes copies of measurements.
    pub(super) measured: Option<SampleWriter>,
    pub(super) board: Arc<Board>,
}
