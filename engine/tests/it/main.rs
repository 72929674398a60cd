//! The engine as a whole, from the outside: real threads, real boards, its public interface only.
//!
//! One binary; two tests run engines at a time, some alone: see [`rig::beside_another`] and [`rig::alone`], which also
//! give each test a directory of boards of its own. Nothing here sleeps: tests wait on the board, or on a channel
//! with a limit. Long runs are `#[ignore]`d and named with their size.
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

mod affinity;
mod boards;
#[cfg(target_os = "linux")]
mod bridge;
mod by_hand;
#[cfg(target_os = "linux")]
mod control;
mod confidence;
mod counters;
#[cfg(target_os = "linux")]
mod cudaq;
mod deaths;
mod dependencies;
mod drift;
mod decoders;
mod endings;
mod events;
mod faults;
mod full_silos;
mod golden;
mod heralds;
mod hot_thread;
mod inputs;
mod joints;
mod kernels;
#[cfg(target_os = "linux")]
mod live;
mod memory;
mod modules;
mod move_cost;
mod moves;
mod neighbours;
mod overflow;
mod panics;
mod plugins;
mod priorities;
mod recorded;
mod rig;
mod rings;
#[cfg(target_os = "linux")]
mod rounds;
mod shadow;
mod shm_clients;
mod soft;
#[cfg(target_os = "linux")]
mod soft_live;
mod spread;
mod stalls;
mod time;
mod widths;
mod windows;
