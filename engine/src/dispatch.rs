//! Dispatch, poll and harvest: the three roles that move a shot's words along its path.
//!
//! Owns the roles and the two kinds of deadline. Dispatch takes shots in ring order and launches them; poll claims
//! completions, hands jobs to the ready queue (it does not know who decodes) and judges deadlines; harvest takes the
//! answers, checks that each sequence number is answered once, and measures. Bounds: 64 items a frame each; the ready
//! queue holds every job there is, so handing on never fails.

mod deadlines;
mod dispatcher;
mod harvester;
mod joints;
mod ledger;
mod poller;
mod tombstones;

pub use crate::feed::Answer;
pub use dispatcher::Dispatcher;
pub use harvester::{Harvester, HarvesterParts};
pub use joints::{JointCheck, JointTally};
pub use ledger::{Ledger, Outcome};
pub use poller::Poller;
pub use tombstones::{Tombstone, Tombstones};

use crate::arbiter::page::PageTable;
use crate::board::{self, Board};
use crate::fault::FaultCode;
use crate::feed::Pressure;
use crate::feed::turns::Turns;
use crate::hot::Settings;
use crate::units::Ticks;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::health::HealthWord;
use pinwheel_edge::slot::jobs::{Job, JobBank};
use pinwheel_edge::slot::table::{AnswerTimes, SlotTable};
use pinwheel_edge::slot::word::ErrorCode;
use std::sync::Arc;

/// What the roles of one silo share.
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
    /// Jobs whose device output is there, in order of completion: the graph role's.
    pub ready: Arc<Fifo<u32>>,
    /// Who may write each stream's state.
    pub pages: Arc<PageTable>,
    /// Whether shots wait for a slot.
    pub pressure: Arc<Pressure>,
    /// How far each stream has come here.
    pub turns: Arc<Turns>,
    /// The device's health.
    pub health: Arc<HealthWord>,
    /// Live limits.
    pub settings: Arc<Settings>,
    /// The board.
    pub board: Arc<Board>,
}

impl Pipe {
    /// Answers `ticket` with an error word at `answered`, counted, stamped and told; `false` if it was closed already. A
    /// deadline that found the stream's state away says so.
    ///
    /// # Panics
    /// If nothing more can be told: ask [`Tombstones::has_room`] first.
    pub(crate) fn fail(&self, ticket: Ticket, code: ErrorCode, answered: Ticks, tombstones: &mut Tombstones) -> bool {
        let Some(claim) = self.table.claim(ticket) else { return false };
        let (stream, sequence) = claim.shot();
        let is_away = || stream < self.streams && !self.pages.word(stream).is_writable();
        let code = if code == ErrorCode::ShotDeadline && is_away() { ErrorCode::PageAway } else { code };
        self.note(ticket, code, answered);
        let times = AnswerTimes { answered, ..AnswerTimes::default() };
        if stream < self.streams {
            claim.fail_after(code, times, || tombstones.tell(Tombstone { stream, sequence }));
        } else {
            claim.fail(code, times);
        }
        true
    }

    /// Answers `ticket` likewise and tells nobody: for the graph role itself, and for cold code after the last commit.
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

    /// Hands a job to the graph.
    ///
    /// # Panics
    /// If the queue is full: it has a place for every job, so one was handed on twice.
    pub(crate) fn hand_on(&self, job: Job) {
        assert!(self.ready.push(job.number()).is_ok(), "the ready queue holds every job");
    }
}
