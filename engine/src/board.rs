//! The mapped region of counters: what any reader sees.

pub mod histogram;
pub mod snapshot;
