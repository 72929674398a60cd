//! The arbiter: which silo may write a stream's state, and how a page goes from one silo to another.
//!
//! Owns the protocol between silos and what each arbiter keeps beside its table of pages: [`ports`] order the requests of
//! one frame, [`watch`] knows which deadline comes next, [`driver`] asks and backs off. One thread of each silo runs them
//! all; the words themselves, which decode workers touch too, are in `pinwheel_edge::page`. Bounds: 64 silos, so 64
//! ports; one decision for each page and frame; everything is reserved at construction. Never copies a page's bytes,
//! never waits, never sleeps. Source: seed 001.
//!
//! ```text
//!   driver ── REQ ──▶ ports ── decide ──▶ GRANT + PAGE_DATA ──▶ receiver installs ── ACK ──▶ route flips
//!      ▲                 └── refusal with advice ──┐                 ▲    │
//!      └───────────── back off, ask again ◀────────┘       CANCEL ───┘    └── CANCEL_ACK ──▶ reclaimed
//! ```

pub mod protocol;

/// Words and decisions, by their place in the crate below.
pub use pinwheel_edge::page;
