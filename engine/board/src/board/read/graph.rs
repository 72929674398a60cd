//! Computed fields of the task graph's views.

use crate::board::get;
use crate::board::layout::{DecodeBlock, GraphBlock, GraphView};
use crate::board::reading::{Now, if_any, one_less};
use crate::board::snapshot::{HeldView, OldestView, ReadyView, RunningView, WaitsOn};

/// Names of the pools, by number.
const POOLS: [&str; 4] = ["cpu", "device", "vector", "cube"];

impl DecodeBlock {
    /// The task that the worker runs.
    pub(in crate::board) fn running(&self, now: &Now<'_>) -> Option<RunningView> {
        let what = get(&self.task_what);
        if_any(&self.task).map(|id| RunningView {
            id,
            kernel: GraphView::kernel(what),
            stream: (what >> 32) as u32,
            age_ns: now.age_ns(&self.task_since),
        })
    }
}

impl GraphBlock {
    /// Ready tasks by pool. Decoding runs in the pool `cpu`; other pools are listed only while
    /// tasks wait in them.
    pub(in crate::board) fn ready(&self) -> Vec<ReadyView> {
        let capacity = get(&self.ready_tasks);
        let ready = POOLS.iter().zip(&self.ready).map(|(pool, depth)| ReadyView { pool, depth: get(depth), capacity });
        ready.filter(|ready| ready.pool == POOLS[0] || ready.depth > 0).collect()
    }

    pub(in crate::board) fn oldest(&self, now: &Now<'_>, decoders: &[DecodeBlock]) -> Option<OldestView> {
        let (what, holdup) = (get(&self.oldest_what), get(&self.oldest_holdup));
        let mut workers = (0..).zip(decoders);
        if_any(&self.oldest).map(|id| OldestView {
            id,
            kernel: GraphView::kernel(what),
            stream: (what >> 32) as u32,
            age_ns: now.age_ns(&self.oldest_since),
            waits_on: match holdup & 0xff {
                1 => WaitsOn::Predecessors(holdup >> 8),
                2 => WaitsOn::Permit(holdup >> 8),
                _ => WaitsOn::Worker,
            },
            worker: workers.find(|(_, decoder)| get(&decoder.task) == id).map(|(number, _)| number),
        })
    }

    pub(in crate::board) fn held(&self, now: &Now<'_>) -> Option<HeldView> {
        one_less(&self.held_stream).map(|stream| HeldView {
            stream,
            sequence: get(&self.held_sequence),
            age_ns: now.age_ns(&self.held_since),
        })
    }
}

impl GraphView {
    /// The name of a pool's kernel, by its number.
    pub const fn kernel(number: u64) -> &'static str {
        match number & 0xffff {
            0 => "window",
            1 => "release",
            2 => "joint readout",
            _ => "decode",
        }
    }
}
