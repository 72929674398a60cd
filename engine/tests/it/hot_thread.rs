//! One hot thread with roles of a test's own, without an engine.

use pinwheel_edge::spin::{Phase, PhaseWord, SpinBudgets, SpinPolicy, SpinWord};
use pinwheel_engine::board::snapshot::{Snapshot, ThreadView};
use pinwheel_engine::board::{self, Board, Place, Shape};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::hot::{Frame, HotThread, Placing, Role, RoleSpec, Shared, Work, spawn};
use pinwheel_engine::profile::{HotAllocations, Priority};
use pinwheel_engine::roles::RoleKind;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// A role that calls `body` in each frame.
pub(crate) struct Each<F>(pub(crate) F);

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

/// The thread, in Live.
pub(crate) struct RunningThread {
    shared: Shared,
    thread: Option<JoinHandle<()>>,
}

impl RunningThread {
    /// With one role that calls `body` in each frame, on `core`.
    pub(crate) fn start(
        core: Option<u32>,
        on_allocation: HotAllocations,
        body: impl FnMut(&mut Frame<'_>) -> u32 + Send + 'static,
    ) -> RunningThread {
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        let (clock, phase) = (Clock::machine(), Arc::new(PhaseWord::new()));
        let shared = Shared { clock, board, phase, on_allocation };
        let build = Box::new(move |_: &mut pinwheel_engine::hot::Init<'_>| Ok(Box::new(Each(body)) as Box<dyn Role>));
        let spec = RoleSpec { kind: RoleKind::Feed, silo: 0, index: 0, build };
        let budgets = SpinBudgets { lab_spin_ticks: 0, shared_spin_ticks: 0, shared_sleep_ns: 100_000 };
        let spin = Arc::new(SpinWord::new(SpinPolicy::Shared, budgets));
        let (sender, reports) = channel();
        let placing = Placing { core, elsewhere: Vec::new(), priority: Priority::Normal };
        let specs = vec![spec];
        let (log, path_changes, shared_too) = (None, None, shared.clone());
        let thread = HotThread { index: 0, placing, specs, spin, log, path_changes, shared: shared_too };
        let thread = spawn("hot-test", thread, sender).unwrap();
        // The watchdog opens a thread's records as soon as it sees its number.
        let block = shared.board.thread(0);
        while board::get_first(&block.tid) == 0 {
            std::hint::spin_loop();
        }
        assert_eq!(board::get(&block.pinned), u64::from(core.is_some()));
        let built = reports.recv().unwrap();
        assert!(built.result.is_ok() && built.unpinned.is_none(), "{built:?}");
        shared.phase.advance(Phase::Warmup);
        assert!(reports.recv().unwrap().result.is_ok());
        shared.phase.advance(Phase::Live);
        RunningThread { shared, thread: Some(thread) }
    }

    pub(crate) fn board(&self) -> &Board {
        &self.shared.board
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.shared.board.snapshot(&self.shared.clock)
    }

    pub(crate) fn view(&self) -> ThreadView {
        self.snapshot().threads.remove(0)
    }
}

impl RunningThread {
    /// Ends it; its board stays as it has left it.
    pub(crate) fn stop(&mut self) {
        self.shared.phase.advance(Phase::Shutdown);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        self.stop();
    }
}
