//! The arbiter: which silo may write a stream's state, and how a page goes from one silo to another.
//!
//! Owns the protocol between silos ([`protocol`]), a function over messages and one table of pages; [`ports`] order the
//! requests of one frame, [`errand`] says what a feed asks that moves a stream, [`driver`] is the call that a driver makes, [`retry`] says what a refused one does next, [`deadlines`] which
//! pages to look at, [`fence`] who may be inherited, [`history`] what became of a page; [`keeper`] is a silo's arbiter, made of
//! these. The words themselves, which decode workers touch too, are in
//! `pinwheel_edge::page`. One thread of each silo runs its arbiter. Bounds: 64 silos; one reply for each message. Never
//! copies a page's bytes, never waits, never sleeps. Source: seed 001.
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
pub mod errand;
pub mod fence;
pub mod history;
pub mod keeper;

/// Words and decisions: they stand in the crate below, beside the orderings that carry them.
pub use pinwheel_edge::page;
