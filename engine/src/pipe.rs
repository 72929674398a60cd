//! Data shared by the stages of one silo: slots, job buffers, marks and rings, and the types passed
//! between stages.
//!
//! Owns [`Pipe`], made once for each silo and cloned into each of its roles, and the types that one
//! stage writes and another reads. No thread of its own: each type names its writer. Every error
//! answer passes through [`Pipe::fail`] or [`Pipe::close`]. Bounds: those of its parts, all made
//! before Live. Depends on no stage.

mod answer;
mod carries;
mod deadlines;
mod expected;
pub mod lanes;
pub mod pool;
mod pressure;
pub mod samples;
mod streams;
mod to_graph;
mod watermarks;

pub use answer::{Answer, AnsweredBy, GAP_DB_MAX, MODELS_MAX, gap_db};
pub use carries::{BlockShots, Carries, CarryWindow, StreamShots};
pub use deadlines::AnswerDeadlines;
pub use expected::ExpectedTime;
pub use pressure::Pressure;
pub use streams::{home, partner};
pub use to_graph::{FromPath, ToGraph, Tombstone};
pub use watermarks::Watermarks;

use crate::arbiter::page::PageTable;
use crate::board::{self, Board};
use crate::fault::FaultCode;
use crate::hot::Settings;
use crate::units::Ticks;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::health::HealthWord;
use pinwheel_edge::slot::jobs::JobBank;
use pinwheel_edge::slot::table::{AnswerTimes, SlotTable};
use pinwheel_edge::slot::word::ErrorCode;
use std::sync::Arc;

/// Data shared by the roles of one silo.
#[derive(Clone)]
pub struct Pipe {
    /// Number of the silo.
    pub silo: usize,
    /// Streams of the whole engine.
    pub streams: u32,
    /// Slots.
    pub table: Arc<SlotTable>,
    /// Job buffers.
    pub jobs: Arc<JobBank>,
    /// Write permission for each stream's state.
    pub pages: Arc<PageTable>,
    /// Whether shots wait for a slot.
    pub pressure: Arc<Pressure>,
    /// Progress of each stream in this silo.
    pub watermarks: Arc<Watermarks>,
    /// The device's health.
    pub health: Arc<HealthWord>,
    /// Live limits.
    pub settings: Arc<Settings>,
    /// When answers are due, if the profile says so.
    pub deadlines: Option<Arc<AnswerDeadlines>>,
    /// The board.
    pub board: Arc<Board>,
}

impl Pipe {
    /// Answers `ticket` with an error word at `answered`: counts and stamps it, and sends a
    /// tombstone. Returns `false` if the ticket was already closed. A missed deadline becomes
    /// [`ErrorCode::PageAway`] if the stream's state is in another silo.
    ///
    /// # Panics
    /// If the tombstone ring is full: check [`ToGraph::has_room`] first.
    pub(crate) fn fail(&self, ticket: Ticket, code: ErrorCode, answered: Ticks, to_graph: &mut ToGraph) -> bool {
        let Some(claim) = self.table.claim(ticket) else { return false };
        let (stream, sequence) = claim.shot();
        let is_away = || stream < self.streams && !self.pages.word(stream).is_writable();
        let code = if code == ErrorCode::ShotDeadline && is_away() { ErrorCode::PageAway } else { code };
        self.note(ticket, code, answered);
        let times = AnswerTimes { answered, ..AnswerTimes::default() };
        if stream < self.streams {
            claim.fail_after(code, times, || to_graph.skip(Tombstone { stream, sequence }));
        } else {
            claim.fail(code, times);
        }
        true
    }

    /// Answers `ticket` likewise without a tombstone: for the graph role itself, and for cold code
    /// after the last commit.
    pub(crate) fn close(&self, ticket: Ticket, code: ErrorCode, answered: Ticks) -> bool {
        let Some(claim) = self.table.claim(ticket) else { return false };
        self.note(ticket, code, answered);
        claim.fail(code, AnswerTimes { answered, ..AnswerTimes::default() });
        true
    }

    fn note(&self, ticket: Ticket, code: ErrorCode, answered: Ticks) {
        self.board.fault(self.silo, FaultCode::Answered(code), answered, u64::from(ticket.slot));
        board::set(&self.board.slots(self.silo)[ticket.slot as usize].answered, answered.0);
    }
}
