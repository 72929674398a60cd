//! The program as a user or a script meets it: one process per claim, on a terminal or without one.
//!
//! Each test has its own home, board directory and logs ([`world::World`]). Those that run an engine take
//! [`world::engine`] first, those whose claim is about time [`world::only_engine`].
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "harness")]

mod world;
mod acting;
mod alarms;
mod another_input;
mod attach;
mod collect;
mod commands;
mod documents;
mod environment;
mod foreign_files;
mod board_directory;
mod browser;
mod truncated_board;
mod refusals;
mod process_limits;
mod no_observables;
mod noise;
mod profile_rates;
mod runs;
mod recordings;
mod report;
mod golden;
mod golden_recording;
#[cfg(unix)]
mod loading;
#[cfg(unix)]
mod limits;
#[cfg(unix)]
mod outputs;
mod over_ssh;
#[cfg(unix)]
mod profile_owners;
mod gpu;
mod console;
mod serve;
#[cfg(feature = "tls")]
mod serve_tls;
mod signals;
mod soft;
mod terminal;
mod themes;
mod mouse;
mod moving;
mod dumb_terminals;
mod numeric_options;
mod metrics;
mod control_characters;
#[cfg(target_os = "linux")]
mod cudaq;
mod core_loss;
mod paths_without_utf8;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod hostile;
mod hosts;
