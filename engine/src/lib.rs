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
//! A module imports only modules declared before it; the order below is the order to read in.
//!
//! | module | holds |
//! |---|---|
//! | `pinwheel_edge` | rings, queues and the words of slots and pages, with every ordering that the path needs |
//! | [`clock`], [`timer`] | ticks and their pairing with UTC; deadlines in a wheel |
//! | [`files`], [`fault`] | how files are opened; what can go wrong, counted by code |
//! | [`profile`] | what an operator may set: schema, ranges, loader, differences |
//! | [`board`] | the mapped region: layout, writers, readers, the alarm log |
//! | [`host`], [`plan`] | cores, claims, priorities, what disturbs; which role runs on which thread and core |
//! | [`hot`] | the role's contract, and the one loop that runs roles on a pinned thread |
//! | [`code`], [`predecode`] | error models and shot files; the easy part of a syndrome, taken away |
//! | [`device`] | the predecoding device: a GPU, or a stand-in on the CPU |
//! | [`arbiter`] | which silo may write a stream's state, and how a page moves |
//! | [`feed`], [`dispatch`] | shots on their way in; launches, completions, deadlines, answers on their way out |
//! | [`graph`], [`decode`] | tasks ordered by what they read and write; matching, windows, commits |
//! | [`placement`] | how full silos are, and which stream should move |
//! | [`silo`], [`sim`] | one pipeline, wired; the same roles in virtual time under a seed |
//! | [`stall`], [`record`] | why a thread stood still; recordings, events, metrics, run directories |
//! | [`engine`], [`drill`] | start, commands, drain and report of a run; faults provoked on purpose |
#![warn(missing_docs, unreachable_pub)]

pub use pinwheel_edge::units;

#[expect(unsafe_code, reason = "reads the processor's counter")]
pub mod clock;
pub mod timer;
pub mod files;
pub mod fault;
pub mod profile;
#[expect(unsafe_code, reason = "maps the shared region")]
pub mod board;
pub mod host;
pub mod plan;
pub mod hot;
pub mod code;
pub mod predecode;
pub mod device;
pub mod arbiter;
pub mod feed;
pub mod dispatch;
pub mod graph;
pub mod decode;
pub mod placement;
pub mod silo;
pub mod sim;
pub mod stall;
pub mod record;
pub mod engine;
pub mod drill;
