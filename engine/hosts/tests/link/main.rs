//! Links of several hosts in one process, and in processes of their own.
#![cfg(feature = "link")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "harness"
)]

mod authority;
mod certificates;
mod cluster;
mod exchange;
mod figures;
mod names;
mod presence;
mod process;
