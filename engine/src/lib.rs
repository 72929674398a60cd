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
//! | | [`files`], [`quote`] | files that another user may have written; quoting them safely in a message |
//! | | [`roles`], [`streams`] | roles, threads and silos with their states; states and verdicts of streams |
//! | | [`profile`], [`fault`] | the settings of an operator; fault codes and their counters |
//! | | [`board`] | the mapped region: layout, writers, readers, the alarm log |
//! | `pinwheel_code` | [`code`], [`predecode`] | error models and shot files; predecoding of isolated error patterns |
//! | `pinwheel_matching` | | exact minimum-weight perfect matching by sparse blossom, union-find, look-up tables, for [`decode`] |
//! | `pinwheel_graph` | [`graph`] | tasks ordered by the data they read and write; decode workers run them |
//! | `pinwheel_host` | [`host`], [`plan`] | cores, claims, disturbances; which role runs on which thread and core |
//! | `pinwheel_observe` | [`stall`], [`noise`] | causes of stalls; what takes a core away |
//! | | [`record`] | recordings, events, metrics, run directories |
//! | this one | [`hot`] | the trait of a role, and the loop that runs roles on a pinned thread |
//! | | [`device`] | the predecoding device: a GPU, or a stand-in on the CPU |
//! | | [`arbiter`] | which silo may write a stream's state, and how a page moves |
//! | | [`pipe`] | slots, job buffers, marks and messages that the stages of a silo share |
//! | | [`feed`] | sources of shots: sampler, files, streams, live senders |
//! | | [`commit`] | order of a stream's answers, its state, and which silo may write it |
//! | | [`dispatch`] | launches, completions, deadlines, harvest of answers |
//! | | [`decode`] | matching, windows, plugins, the workers that run them, and other decoders or models for them |
//! | | [`placement`] | load of the silos, and which stream should move |
//! | | [`silo`] | one pipeline, assembled from its stages |
//! | | [`engine`] | start, commands, drain and outcome of a run |
//! | `pinwheel_collect` | | logical error rates in bulk, without an engine |
//! | `pinwheel_report` | | reports, pages and boards of runs; the way to a running engine |
//! | `pinwheel_hosts` | | engines of several hosts that share streams |
//! | `pinwheel_lab` | | the same roles in seeded virtual time; injected faults; synthetic loads |
#![warn(missing_docs, unreachable_pub)]

pub use pinwheel_board::{board, clock, fault, files, profile, quote, roles, streams, timer};
pub use pinwheel_code::{code, predecode};
pub use pinwheel_edge::units;
pub use pinwheel_graph::graph;
pub use pinwheel_host::{host, plan};
#[cfg(target_os = "linux")]
pub use pinwheel_observe::noise;
pub use pinwheel_observe::{record, stall};

#[cfg(test)]
#[allow(clippy::unwrap_used, dead_code, reason = "harness; each crate that has it uses its part")]
#[path = "../code/testing/golden.rs"]
pub mod golden;
#[cfg(test)]
#[allow(dead_code, reason = "each crate that has it uses its part")]
#[path = "../host/testing/trees.rs"]
pub mod trees;
pub mod hot;
pub mod device;
pub mod arbiter;
pub mod pipe;
pub mod feed;
pub mod commit;
pub mod dispatch;
pub mod decode;
pub mod placement;
pub mod silo;
pub mod engine;
