//! Pinwheel's engine: pinned, spin-polling threads that carry syndrome shots from a feed to an answer.
//!
//! ```text
//!  stream (logical qubit)                        one silo = one pipeline
//!    │ sampler, file, standard input,   ┌──────────────────────────────────────────────────┐
//!    │ shared memory, socket            │                                                  │
//!    └─▶ feed ───────────────────────▶  │ rx ring ─▶ dispatch ─▶ device ─▶ poll ─▶ ready ─┐ │
//!                                       │    ▲       (idle mask, (predecode)       ring   │ │
//!        report, --answers, ◀─ harvest ◀┤ tx ring ◀─ commit ◀─ decode workers ◀─ graph ◀──┘ │
//!        --predictions, back to sender  └──────────────────────────────────────────────────┘
//!    board: every counter above in one mapped region ─▶ console, recorder, JSON, metrics
//! ```
//!
//! Crates and modules, in the order to read them. A crate imports only crates before it, and a module only modules
//! declared before it. Modules of other crates are re-exported here under their own names.
//!
//! | crate | module | holds |
//! |---|---|---|
//! | `pinwheel_edge` | [`units`] | rings, queues and the words of slots and pages, with every ordering that the path needs |
//! | `pinwheel_board` | [`clock`], [`timer`] | ticks and their pairing with UTC; deadlines in a wheel |
//! | | [`files`], [`quote`] | files that another user may have made; what a message quotes of them |
//! | | [`fault`], [`profile`] | what can go wrong, counted by code; what an operator may set |
//! | | [`board`] | the mapped region: layout, writers, readers, the alarm log |
//! | `pinwheel_code` | [`code`], [`predecode`] | error models and shot files; the easy part of a syndrome, taken away |
//! | `pinwheel_graph` | [`graph`] | tasks ordered by what they read and write, as decode workers run them |
//! | `pinwheel_host` | [`host`], [`plan`] | cores, claims, what disturbs them; which role runs on which thread and core |
//! | `pinwheel_observe` | [`stall`], [`record`] | why a thread stood still; recordings, events, metrics, run directories |
//! | this one | [`hot`] | the role's contract, and the one loop that runs roles on a pinned thread |
//! | | [`device`] | the predecoding device: a GPU, or a stand-in on the CPU |
//! | | [`arbiter`] | which silo may write a stream's state, and how a page moves |
//! | | [`feed`], [`dispatch`] | shots on their way in; launches, completions, deadlines, answers on their way out |
//! | | [`decode`] | matching, windows, commits |
//! | | [`placement`] | how full silos are, and which stream should move |
//! | | [`silo`] | one pipeline, wired |
//! | | [`engine`] | start, commands, drain and report of a run |
//! | `pinwheel_lab` | | the same roles in virtual time under a seed; faults provoked on purpose; loads |
#![warn(missing_docs, unreachable_pub)]

pub use pinwheel_board::{board, clock, fault, files, profile, quote, timer};
pub use pinwheel_code::{code, predecode};
pub use pinwheel_edge::units;
pub use pinwheel_graph::graph;
pub use pinwheel_host::{host, plan};
pub use pinwheel_observe::{record, stall};

pub mod hot;
pub mod device;
pub mod arbiter;
pub mod feed;
pub mod dispatch;
pub mod decode;
pub mod placement;
pub mod silo;
pub mod engine;
