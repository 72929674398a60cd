//! Hot threads of the engine, started for a measurement and joined after it.

use super::measure::CLOCK;
use pinwheel_edge::spin::{Phase, PhaseWord, SpinBudgets, SpinPolicy, SpinWord};
use pinwheel_engine::board::{Board, Place, Shape};
use pinwheel_engine::hot::{Frame, HotThread, Init, Placing, Role, RoleSpec, Shared, Work, spawn};
use pinwheel_engine::profile::{HotAllocations, Priority};
use pinwheel_engine::roles::RoleKind;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

const BUDGETS: SpinBudgets = SpinBudgets { lab_spin_ticks: 100_000, shared_spin_ticks: 0, shared_sleep_ns: 1 };

/// State shared by `threads` hot threads, on a private board.
pub fn shared(threads: u32) -> Shared {
    let shape = Shape { threads, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
    shared_on(Arc::new(Board::create(shape, Place::Private).unwrap()))
}

/// As [`shared`], on an existing board.
pub fn shared_on(board: Arc<Board>) -> Shared {
    Shared { clock: CLOCK.clone(), board, phase: Arc::new(PhaseWord::new()), on_allocation: HotAllocations::Count }
}

/// A role that calls `body` in each frame.
pub fn each(body: impl FnMut(&mut Frame<'_>) -> u32 + Send + 'static) -> RoleSpec {
    let build = Box::new(move |_: &mut Init<'_>| Ok(Box::new(Each(body)) as Box<dyn Role>));
    RoleSpec { kind: RoleKind::Feed, silo: 0, index: 0, build }
}

/// The role of [`each`].
pub struct Each<F>(pub F);

impl<F: FnMut(&mut Frame<'_>) -> u32> Role for Each<F> {
    fn kind(&self) -> RoleKind {
        RoleKind::Feed
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        Work((self.0)(frame))
    }

    fn is_drained(&self) -> bool {
        true
    }
}

/// Running threads, after their warm-up.
pub struct HotThreads(Vec<JoinHandle<()>>);

impl HotThreads {
    /// Starts a thread with its roles for each core, waiting under `policy`, and returns when all
    /// are warm.
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
                let placing = Placing { core: Some(core), elsewhere: Vec::new(), priority: Priority::Normal };
                let (log, path_changes, shared) = (None, None, shared.clone());
                let thread = HotThread { index, placing, specs, spin, log, path_changes, shared };
                spawn("bench-hot", thread, sender.clone()).unwrap()
            })
            .collect();
        shared.phase.advance(Phase::Warmup);
        for _ in 0..threads.len() * 2 {
            reports.recv().unwrap().result.unwrap();
        }
        HotThreads(threads)
    }

    /// Joins the threads after the phase has become Shutdown.
    pub fn join(self) {
        for thread in self.0 {
            thread.join().unwrap();
        }
    }
}
