//! The program as a user or a script meets it: one process per claim.
#![allow(clippy::unwrap_used, reason = "harness")]

mod commands;
mod environment;
