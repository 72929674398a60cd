//! What is built on the engine, from the outside.
//!
//! One binary; one engine at a time behind a lock.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    missing_docs,
    unreachable_pub,
    reason = "harness"
)]

use pinwheel_engine::hot::memory::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[expect(unsafe_code, reason = "sets the variable that moves boards, behind the lock")]
mod drills;
mod exchanges;
mod inputs;
#[path = "../../../bench/benches/host_simulation.rs"]
#[allow(dead_code, reason = "benchmarks read more of a course")]
mod host_simulation;
#[path = "../../../bench/benches/path_simulation.rs"]
#[allow(dead_code, reason = "benchmarks read more of a course")]
mod path_simulation;
#[path = "../../../bench/benches/placement_simulation.rs"]
#[allow(dead_code, reason = "benchmarks read more of a course")]
mod placement_simulation;
