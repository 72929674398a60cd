//! The arbiter: which silo may write a stream's state, and how a page goes from one silo to another.
//!
//! Owns the protocol between silos ([`protocol`]), a function over messages and one table of pages; [`ports`] order the
//! requests of one frame, [`retry`] says what a refused requester does next, [`load`] runs it all alone. The words
//! themselves, which decode workers touch too, are in `pinwheel_edge::page`. One thread of each silo runs the protocol.
//! Bounds: 64 silos; one reply for each message. Never copies a page's bytes, never waits, never sleeps. Source: seed 001.
//!
//! ```text
//!   requester ── REQ ──▶ decide ──▶ GRANT + PAGE_DATA ──▶ receiver installs ── ACK ──▶ route flips
//!      ▲                   └── refusal ──┐                    ▲    │
//!      └────────── ask again ◀───────────┘         CANCEL ────┘    └── CANCEL_ACK ──▶ reclaimed
//! ```

pub mod load;
pub mod ports;
pub mod protocol;
pub mod retry;

/// Words and decisions: they stand in the crate below, beside the orderings that carry them.
pub use pinwheel_edge::page;
