//! Hot threads of the engine, started for a measurement and joined after it.

use pinwheel_edge::spin::{Phase, SpinBudgets, SpinPolicy, SpinWord};
use pinwheel_engine::hot::{RoleSpec, Shared, spawn};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

const BUDGETS: SpinBudgets = SpinBudgets { lab_spin_ticks: 100_000, shared_spin_ticks: 0, shared_sleep_ns: 1 };

/// Running threads, warmed.
pub struct HotThreads(Vec<JoinHandle<()>>);

impl HotThreads {
    /// Starts a thread for each core with its roles, waiting as `policy` says, and returns when all are warm.
    pub fn start(
        shared: &Shared,
        policy: SpinPolicy,
        plan: impl IntoIterator<Item = (u32, Vec<RoleSpec>)>,
    ) -> HotThreads {
        let (sender, reports) = channel();
        let threads: Vec<_> = plan
            .into_iter()
            .enumerate()
            .map(|(index, (core, specs))| {
                let spin = Arc::new(SpinWord::new(policy, BUDGETS));
                let placing = (Some(core), Vec::new());
                spawn(index, "bench-hot", placing, specs, spin, shared.clone(), sender.clone()).unwrap()
            })
            .collect();
        shared.phase.advance(Phase::Warmup);
        for _ in 0..threads.len() * 2 {
            reports.recv().unwrap().result.unwrap();
        }
        HotThreads(threads)
    }

    /// Waits for their end; the phase is Shutdown.
    pub fn join(self) {
        for thread in self.0 {
            thread.join().unwrap();
        }
    }
}
