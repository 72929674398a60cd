//! The board: one mapped region with every published counter.
//!
//! Owns the region's lifetime (create, name, lock, remove) and hands out its blocks. The owner of
//! each word writes it; anyone may read it. The console, `--json` and the report all read it
//! through [`snapshot::Snapshot`]. Bounds: the [`layout::Shape`] fixes the size at creation. The
//! region is never on a disk file, whose write-back would stall the writers. It holds no word that
//! the protocol depends on: rings and slot words stay in heap or pinned memory.
//!
//! # Why plain words and no sequence numbers
//! Every word has one writer and is meaningful on its own. A reader derives quantities that span
//! several words (the steps of a slot, a quantile) and knows the age of each. A record under a
//! sequence number would be unreadable exactly when its writer is stuck. Fault rows are the
//! exception to "one writer": any role may count a fault, rarely, with an atomic add. Records that
//! are wrong when read half-written have a sequence number and are written rarely: the clock's
//! pair, alarms, gaps of threads, the director's decisions. All orderings are those of
//! [`pinwheel_edge::seqlock`].

pub mod alarms;
pub mod dead;
pub mod deadlines;
#[cfg(unix)]
pub mod fatal;
pub mod follow;
pub mod gaps;
pub mod histogram;
pub mod image;
pub mod layout;
mod pair;
mod read;
mod reading;
mod region;
pub mod snapshot;
mod text;

pub use layout::{
    AlarmRow, ArbiterBlock, ClockBlock, ControlBlock, DecodeBlock, DeviceBlock, DispatchBlock, FaultRow, FeedBlock,
    GraphBlock, HarvestBlock, HeaderBlock, LatencyBlock, LifecycleBlock, LogBlock, MoveBlock, PeerRow, PlacementBlock,
    PollBlock, RecorderBlock, RoleBlock, ShadowBlock, Shape, SiloDepthBlock, SlotStamps, SourceBlock, Stage,
    StreamFeedBlock, StreamHarvestBlock, StreamSourceBlock, ThreadBlock, WHOLE_SHOT,
};
pub use pinwheel_edge::seqlock::{get_first, set_last};
pub use pinwheel_edge::spin::{Phase, SpinPolicy};
pub use read::arbiter::{lease_row, open_row};
pub use read::moves::move_row;
pub use region::{BoardError, OwnerState, Place, directory, remarks};
pub use text::Text;

use crate::fault::FaultCode;
use crate::units::Ticks;
use layout::{Layout, MAGIC};
use region::Region;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Adds to a counter that only the caller writes, without a locked instruction.
#[inline(always)]
pub fn add(word: &AtomicU64, by: u64) {
    histogram::bump(word, by);
}

/// Stores into a word that only the caller writes.
#[inline(always)]
pub fn set(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

/// Reads a word without ordering.
#[inline(always)]
pub fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// The region with its layout.
pub struct Board {
    region: Region,
    layout: Layout,
}

impl Board {
    /// Bytes of a board of `shape`.
    pub fn bytes_of(shape: Shape) -> usize {
        Layout::of(shape).bytes
    }

    /// A new board of `shape`, all zero, in `place`. The magic word is not set yet: see [`Board::publish`].
    ///
    /// # Errors
    /// If the shared memory cannot be created; the caller falls back to [`Place::Private`] and
    /// reports it.
    pub fn create(shape: Shape, place: Place) -> Result<Board, BoardError> {
        let layout = Layout::of(shape);
        let board = Board { region: Region::create(layout.bytes, place)?, layout };
        let header = board.header();
        for (word, value) in header.shape.iter().zip(shape.words()) {
            set(word, value);
        }
        set(&header.layout_version, layout::VERSION);
        set(&header.layout_hash, layout::hash());
        set(&header.pid, u64::from(std::process::id()));
        Ok(board)
    }

    /// Declares the board complete: a reader that sees the magic sees everything written before.
    pub fn publish(&self) {
        set_last(&self.header().magic, MAGIC);
    }

    /// How many blocks of each kind the board has.
    pub fn shape(&self) -> Shape {
        self.layout.shape
    }

    /// Path under which other processes find the board; `None` if it is private.
    pub fn path(&self) -> Option<&Path> {
        self.region.path()
    }

    /// Engine header.
    pub fn header(&self) -> &HeaderBlock {
        &self.region.section::<HeaderBlock>(0, 1)[0]
    }

    /// Blocks of the hot threads.
    pub fn threads(&self) -> &[ThreadBlock] {
        self.region.section(self.layout.threads, self.layout.shape.threads as usize)
    }

    /// Block of hot thread `index`.
    pub fn thread(&self, index: usize) -> &ThreadBlock {
        &self.threads()[index]
    }

    /// Feed's block of silo `silo`.
    pub fn feed(&self, silo: usize) -> &FeedBlock {
        &self.region.section(self.layout.feeds, self.silos())[silo]
    }

    /// Dispatch's block of silo `silo`.
    pub fn dispatch(&self, silo: usize) -> &DispatchBlock {
        &self.region.section(self.layout.dispatches, self.silos())[silo]
    }

    /// The device role's block of silo `silo`.
    pub fn device(&self, silo: usize) -> &DeviceBlock {
        &self.region.section(self.layout.devices, self.silos())[silo]
    }

    /// Poll's block of silo `silo`.
    pub fn poll(&self, silo: usize) -> &PollBlock {
        &self.region.section(self.layout.polls, self.silos())[silo]
    }

    /// Harvest's block of silo `silo`.
    pub fn harvest(&self, silo: usize) -> &HarvestBlock {
        &self.region.section(self.layout.harvests, self.silos())[silo]
    }

    /// Block of decode worker `index` of silo `silo`.
    pub fn decode(&self, silo: usize, index: usize) -> &DecodeBlock {
        &self.decoders(silo)[index]
    }

    /// Blocks of the decode workers of silo `silo`.
    pub fn decoders(&self, silo: usize) -> &[DecodeBlock] {
        let decoders = self.layout.shape.decoders as usize;
        &self.region.section(self.layout.decodes, self.silos() * decoders)[silo * decoders..(silo + 1) * decoders]
    }

    /// The graph's block of silo `silo`.
    pub fn graph(&self, silo: usize) -> &GraphBlock {
        &self.region.section(self.layout.graphs, self.silos())[silo]
    }

    /// Latency histograms of silo `silo`, written by harvest.
    pub fn latency(&self, silo: usize) -> &LatencyBlock {
        &self.region.section(self.layout.latencies, self.silos())[silo]
    }

    /// Times of the slots of silo `silo`.
    pub fn slots(&self, silo: usize) -> &[SlotStamps] {
        let slots = self.layout.shape.slots as usize;
        &self.region.section(self.layout.slots, self.silos() * slots)[silo * slots..(silo + 1) * slots]
    }

    /// Owner and input health of stream `stream`, written by the feed.
    pub fn stream_feed(&self, stream: usize) -> &StreamFeedBlock {
        &self.region.section(self.layout.stream_feeds, self.layout.shape.streams as usize)[stream]
    }

    /// Answers, errors and latency of stream `stream`, written by harvest.
    pub fn stream_harvest(&self, stream: usize) -> &StreamHarvestBlock {
        &self.region.section(self.layout.stream_harvests, self.layout.shape.streams as usize)[stream]
    }

    /// The clock's block.
    pub fn clock(&self) -> &ClockBlock {
        &self.region.section::<ClockBlock>(self.layout.clock, 1)[0]
    }

    /// The log's block.
    pub fn log(&self) -> &LogBlock {
        &self.region.section::<LogBlock>(self.layout.log, 1)[0]
    }

    /// The alarm log's rows; see [`AlarmRow::read`].
    pub fn alarms(&self) -> &[AlarmRow] {
        self.region.section(self.layout.alarms, alarms::ALARMS_MAX)
    }

    /// The shadow's block.
    pub fn shadow(&self) -> &ShadowBlock {
        &self.region.section::<ShadowBlock>(self.layout.shadow, 1)[0]
    }

    /// The flight recorder's block.
    pub fn recorder(&self) -> &RecorderBlock {
        &self.region.section::<RecorderBlock>(self.layout.recorder, 1)[0]
    }

    /// Control of the engine: held feed, revert timer, socket.
    pub fn control(&self) -> &ControlBlock {
        &self.region.section::<ControlBlock>(self.layout.control, 1)[0]
    }

    /// The arbiter's block of silo `silo`.
    pub fn arbiter(&self, silo: usize) -> &ArbiterBlock {
        &self.region.section(self.layout.arbiters, self.silos())[silo]
    }

    /// The director's block.
    pub fn placement(&self) -> &PlacementBlock {
        &self.region.section::<PlacementBlock>(self.layout.placement, 1)[0]
    }

    /// Queues of silo `silo`, written by the director.
    pub fn silo_depth(&self, silo: usize) -> &SiloDepthBlock {
        &self.region.section(self.layout.silo_depths, self.silos())[silo]
    }

    /// Moves of the streams of silo `silo`'s feed.
    pub fn moves(&self, silo: usize) -> &MoveBlock {
        &self.region.section(self.layout.moves, self.silos())[silo]
    }

    /// State and restarts of silo `silo`.
    pub fn lifecycle(&self, silo: usize) -> &LifecycleBlock {
        &self.region.section(self.layout.lifecycles, self.silos())[silo]
    }

    /// The live source's block.
    pub fn source(&self) -> &SourceBlock {
        &self.region.section::<SourceBlock>(self.layout.source, 1)[0]
    }

    /// Receive counters of stream `stream`, written by the live source.
    pub fn stream_source(&self, stream: usize) -> &StreamSourceBlock {
        &self.region.section(self.layout.stream_sources, self.layout.shape.streams as usize)[stream]
    }

    fn faults(&self, silo: usize) -> &[FaultRow] {
        let rows = FaultCode::ALL.len();
        &self.region.section(self.layout.faults, self.silos() * rows)[silo * rows..(silo + 1) * rows]
    }

    /// Counts one fault of silo `silo`. Any role; rare, so atomic adds.
    pub fn fault(&self, silo: usize, code: FaultCode, at: Ticks, detail: u64) {
        let row = &self.faults(silo)[code.row()];
        let _ = row.first_ticks.compare_exchange(0, at.0.max(1), Ordering::Relaxed, Ordering::Relaxed);
        row.last_ticks.store(at.0, Ordering::Relaxed);
        row.detail.store(detail, Ordering::Relaxed);
        row.count.fetch_add(1, Ordering::Relaxed);
    }

    fn silos(&self) -> usize {
        self.layout.shape.silos as usize
    }
}
