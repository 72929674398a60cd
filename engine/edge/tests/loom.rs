//! Loom models: for each edge of `edges.txt`, at least one that fails when that side of it is
//! weakened.
//!
//! Loom explores every interleaving (up to `LOOM_MAX_PREEMPTIONS`) and every stale value that the
//! orderings allow, and panics on unordered accesses to plain data. One attempt per step: a step
//! that finds nothing goes on, so no model spins. Run by `.ci/weaken`, or by hand:
//!
//! ```sh
//! ( export CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3
//!   cargo test -p pinwheel-edge --release --test loom )
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "harness")]

#[path = "loom/broadcast.rs"]
mod loom_broadcast;
#[path = "loom/deque.rs"]
mod loom_deque;
#[path = "loom/fanout.rs"]
mod loom_fanout;
#[path = "loom/fifo.rs"]
mod loom_fifo;
#[path = "loom/gate.rs"]
mod loom_gate;
#[path = "loom/handshake.rs"]
mod loom_handshake;
#[path = "loom/health.rs"]
mod loom_health;
#[path = "loom/line.rs"]
mod loom_line;
#[path = "loom/log.rs"]
mod loom_log;
#[path = "loom/mpsc.rs"]
mod loom_mpsc;
#[path = "loom/outside.rs"]
mod loom_outside;
#[path = "loom/page.rs"]
mod loom_page;
#[path = "loom/path.rs"]
mod loom_path;
#[path = "loom/seqlock.rs"]
mod loom_seqlock;
#[path = "loom/slot.rs"]
mod loom_slot;
#[path = "loom/spin.rs"]
mod loom_spin;
#[path = "loom/spsc.rs"]
mod loom_spsc;
#[path = "loom/window.rs"]
mod loom_window;
#[path = "loom/worker.rs"]
mod loom_worker;
