//! The arbiter: which silo may write a stream's state, and how a page goes from one silo to another.
//!
//! Owns the protocol between silos ([`protocol`]), a function over messages and one table of pages.
//! [`ports`] orders the requests of one frame, [`requests`] carries a feed's requests to move a
//! stream, [`driver`] is the call of a driver, [`retry`] schedules refused requests, [`deadlines`]
//! selects the pages to check, [`fence`] proves that a silo may be taken over, and [`history`]
//! keeps a page's transitions. [`directory`] is a silo's arbiter, made of these. The page words,
//! which decode workers access too, are in `pinwheel_edge::page`. One thread of each silo runs its
//! arbiter. Bounds: 64 silos; one reply for each message. Never copies a page's bytes, never waits,
//! never sleeps. Source: seed 001.
//!
//! ```text
//!   requester ── REQ ──▶ decide ──▶ GRANT + PAGE_DATA ──▶ receiver installs ── ACK ──▶ route flips
//!      ▲                   └── refusal ──┐                    ▲    │
//!      └────────── ask again ◀───────────┘         CANCEL ────┘    └── CANCEL_ACK ──▶ reclaimed
//! ```

pub mod protocol;
pub mod ports;
pub mod retry;
pub mod driver;
pub mod deadlines;
pub mod requests;
pub mod fence;
pub mod history;
pub mod directory;

/// Page words and decisions: they stand in the crate below, next to their memory orderings.
pub use pinwheel_edge::page;
