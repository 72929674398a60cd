//! The slot protocol: how a shot is written, dispatched, launched, completed, answered and
//! harvested.
//!
//! Owns the words of one silo's ring ([`table`]), of its device workers ([`workers`]) and of its
//! jobs ([`jobs`]). Runs on every thread of the silo, each through the end that it alone owns.
//! Bounds: slots, workers and jobs are fixed at construction. Never waits, never allocates after
//! construction, never interprets a payload.
//!
//! ```text
//!            feed                dispatch               device        poll            answerer        harvest   feed
//! rx:  0 ──S1──▶ address ─────────────────S8──▶ 0
//! tx:  0 ─────────────────▶ IN_FLIGHT ───────────────────────────────────────S5──▶ READY|error ──S7──▶ 0 ──▶ reuse
//! ticket:            (g, OPEN) S2 ────────────────────────────────────▶ claim: (g, CLAIMED)
//! worker:                   S3 doorbell ──▶ runs ──S4──▶ ready (g, 1) ───S6──▶ idle bit
//! ```
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | S1 | `Vacant::submit` rx | `DispatchEnd::arrived` rx | payload, header |
//! | S2 | `DispatchEnd::hold` ticket | `SlotTable::claim`, `is_open` (S2.view) ticket | IN_FLIGHT, last harvest, time |
//! | S3 | `WorkerBank::ring` doorbell | `DeviceWorkers::rung` doorbell | mailbox |
//! | S4 | `WorkerBank::complete` ready | `PollWorkers::claim_ready` ready | device outputs |
//! | S5 | `Claim` tx | `HarvestEnd::next` tx | result block |
//! | S6 | `ReleaseEnd::release` toggles of poll, of the graph role | `DispatchWorkers::take_idle` toggles | that the worker's words were read |
//! | S7 | `HarvestEnd::take` tx | `FeedEnd::vacant` tx | that the result was read |
//! | S8 | `DispatchEnd::retire` rx | `FeedEnd::vacant` rx | IN_FLIGHT |
//! | S9 | `FeedEnd::extend` arrival word | `SlotTable::arrival` | words of a payload that comes by rounds |
//! | W1 | `DispatchWorkers::start`, `fail`, `recover` launch word | `PollWorkers::running`, `quarantine`, `resolve` launch word | start, tags |
//! | W2 | `DispatchWorkers::fail`, `recover` number of reports | `PollWorkers::reported` number of reports | launch words with reports |
//! | U1 to U3 | see [`outside`] | | the same with a process that is not ours |
//! | H1 | `HealthWord::advance` | `HealthWord::current` | the mover's last access to workers, mail and jobs |
//!
//! # Why IN_FLIGHT comes before the ticket opens
//! The shot deadline finds its victims by their tickets. Opened first, a ticket could be claimed
//! and answered before dispatch stores IN_FLIGHT over that answer, and the slot would never be
//! harvested. So `hold` stores IN_FLIGHT, then opens the ticket with release; whoever claims it
//! writes tx later than IN_FLIGHT.

pub mod health;
pub mod jobs;
pub mod outside;
pub mod table;
pub mod word;
pub mod workers;

/// Which shot an answer belongs to: a slot and the generation of its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Index of the slot in its table.
    pub slot: u32,
    /// Generation, from 1; grows by one with each use of the slot.
    pub generation: u64,
}

/// Most device workers of a silo: one bit of the idle mask each.
pub const WORKERS_MAX: usize = 64;
/// Most words of observables in an answer (1,024 observables).
pub const OBSERVABLE_WORDS_MAX: usize = 16;
/// Most words of detectors in a shot (262,144 detectors).
pub const DETECTOR_WORDS_MAX: usize = 4096;
/// Most slots of a silo.
pub const SLOTS_MAX: usize = 65_536;
