//! What a hot thread checks about itself in each frame: whether it called the allocator, and
//! whether it runs on its core.
//!
//! Owns the thread's arena. Runs at the start and end of a frame; in an ordinary frame it costs a few loads and
//! comparisons. Bounds: where reading the core's number takes a system call, it does so once in [`LOOK_EVERY`] frames.
//! Never formats: it publishes addresses on the board, and cold code resolves them.

use super::memory::{self, Arena, Attached};
use crate::board::{self, Board, ThreadBlock};
use crate::clock::Clock;
use crate::fault::FaultCode;
use crate::host::current_core::CurrentCore;
use crate::profile::HotAllocations;
use pinwheel_edge::spin::Phase;

/// Frames between two readings of the core's number where a reading is a system call.
const LOOK_EVERY: u64 = 256;
/// Free bytes of a thread's arena when it is sealed: what libraries may allocate in Live.
const RESERVE_BYTES: usize = 1 << 20;
/// Stack touched at the start.
const STACK_BYTES: usize = 256 << 10;
const PAGE: usize = 4096;

/// One thread's checks.
pub(super) struct SelfCheck {
    attached: Attached,
    /// Whether the program's allocator counts.
    seen: bool,
    on_allocation: HotAllocations,
    phase: Phase,
    calls: u64,
    lent: u64,
    current_core: CurrentCore,
    core: Option<u32>,
    frame: u64,
}

impl SelfCheck {
    /// For the calling thread, which should run on `core`. From here on [`memory::lend`] serves it from its arena.
    pub(super) fn of_current_thread(core: Option<u32>, on_allocation: HotAllocations) -> SelfCheck {
        touch_stack();
        let attached = Arena::new().attach();
        let current_core = CurrentCore::of_current_thread();
        let seen = memory::is_seen();
        SelfCheck { attached, seen, on_allocation, phase: Phase::Init, calls: 0, lent: 0, current_core, core, frame: 0 }
    }

    /// Publishes how much memory the arena has touched and locked.
    pub(super) fn publish_memory(&self, block: &ThreadBlock) {
        let usage = self.attached.arena.usage();
        board::set(&block.arena_touched_bytes, usage.touched_bytes as u64);
        board::set(&block.arena_locked_bytes, usage.locked_bytes as u64);
        board::set(&block.allocations, u64::from(self.seen) * (self.calls + 1));
    }

    /// Reserves what libraries may allocate in Live.
    pub(super) fn reserve(&mut self) {
        self.attached.arena.reserve(RESERVE_BYTES);
    }

    /// A frame of `phase` begins.
    #[inline]
    pub(super) fn begin(&mut self, phase: Phase, board: &Board, thread: usize, clock: &Clock) {
        if phase != self.phase {
            self.enter(phase, board.thread(thread));
        }
        let Some(core) = self.core else { return };
        self.frame += 1;
        if (self.current_core.is_cheap() || self.frame.is_multiple_of(LOOK_EVERY))
            && let Some(found) = self.current_core.core()
            && found != core
        {
            self.elsewhere(found, board, thread, clock);
        }
    }

    #[cold]
    fn elsewhere(&self, found: u32, board: &Board, thread: usize, clock: &Clock) {
        board::add(&board.thread(thread).frames_elsewhere, 1);
        board.fault(0, FaultCode::AffinityLost, clock.ticks(), u64::from(found));
    }

    #[cold]
    fn enter(&mut self, phase: Phase, block: &ThreadBlock) {
        if phase == Phase::Live {
            self.attached.arena.seal();
            self.publish_memory(block);
            memory::arm(self.on_allocation);
        } else if self.phase == Phase::Live {
            memory::disarm();
        }
        self.phase = phase;
    }

    /// A frame has ended: publishes what the allocator counted in it.
    #[inline]
    pub(super) fn end(&mut self, board: &Board, thread: usize, clock: &Clock) {
        let account = memory::account();
        if account.lent != self.lent {
            self.lent = account.lent;
            board::set(&board.thread(thread).allocations_lent, account.lent);
        }
        if account.calls != self.calls {
            self.note_calls(account.calls, board, thread, clock);
        }
    }

    #[cold]
    fn note_calls(&mut self, calls: u64, board: &Board, thread: usize, clock: &Clock) {
        let block = board.thread(thread);
        if self.calls == 0 {
            for (word, address) in block.allocation_callers.iter().zip(memory::first_callers()) {
                board::set(word, address as u64);
            }
        }
        self.calls = calls;
        board::set_last(&block.allocations, calls + 1);
        board.fault(0, FaultCode::HotAllocation, clock.ticks(), thread as u64);
    }
}

impl Drop for SelfCheck {
    fn drop(&mut self) {
        memory::disarm();
    }
}

/// On a cold thread: writes who first called the allocator in Live, once the thread has published the addresses.
/// Returns whether it has.
pub fn name_first_allocation(block: &ThreadBlock) -> bool {
    if board::get_first(&block.allocations) < 2 {
        return false;
    }
    let callers: Vec<usize> = block.allocation_callers.iter().map(|word| board::get(word) as usize).collect();
    block.allocation_site.write(&memory::described(&callers));
    true
}

/// Touches what a frame may need of the stack, so that no frame meets a page fault there.
#[inline(never)]
fn touch_stack() {
    let mut stack = [0u8; STACK_BYTES];
    for page in stack.chunks_mut(PAGE) {
        page[0] = 1;
    }
    std::hint::black_box(&stack);
}
