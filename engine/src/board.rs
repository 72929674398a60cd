//! The board: one mapped region with every published counter.
//!
//! Owns the region's life (create, name, lock, remove) and hands out its blocks. Written by whoever owns each word, read
//! by anyone: console, `--json` and report all see it through [`snapshot::Snapshot`]. Bounds: the [`layout::Shape`]
//! fixes the size at creation; it never grows or shrinks. Never lives on a disk file (write-back would stall the
//! writers), never holds a word that the protocol depends on: rings and slot words stay in heap or pinned memory.
//!
//! # Why plain words and no sequence numbers
//! Every word has one writer and is meaningful on its own; what spans several words (a slot's life, a quantile) is
//! derived by the reader, who is told the age. A record under a sequence would be unreadable exactly when its writer is
//! stuck. The exception to "one writer" are the fault rows: any role may count a fault, rarely, with an atomic add. The
//! records under a number are the clock's pair and the alarms, see [`ClockBlock::publish`] and [`AlarmRow::publish`]: their
//! writers are cold, and half of one is wrong.

pub mod alarms;
pub mod dead;
#[cfg(unix)]
pub mod fatal;
pub mod follow;
pub mod gaps;
pub mod histogram;
pub mod image;
pub mod layout;
mod pair;
mod read;
mod region;
pub mod snapshot;
mod text;

pub use layout::{
    AlarmRow, ArbiterBlock, ClockBlock, ControlBlock, DecodeBlock, DeviceBlock, DispatchBlock, FaultRow, FeedBlock,
    GraphBlock, HarvestBlock, HeaderBlock, LatencyBlock, LifeBlock, LogBlock, MoveBlock, PeerRow, PlacementBlock,
    PollBlock, RecorderBlock, RoleBlock, Shape, SiloDepthBlock, SlotStamps, SourceBlock, Stage, StreamFeedBlock,
    StreamHarvestBlock, StreamSourceBlock, ThreadBlock,
};
pub use pinwheel_edge::spin::{Phase, SpinPolicy};
pub(crate) use read::arbiter::{lease_row, open_row};
pub(crate) use read::moves::move_row;
pub use region::{BoardError, Life, Place, directory, remarks};
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

/// Reads a word.
#[inline(always)]
#[must_use]
pub fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Stores into a word that only the caller writes, after everything that it wrote before.
#[inline(always)]
pub fn set_last(word: &AtomicU64, value: u64) {
    // ORDERING: release: a reader that gets the value by `get_first` sees what was written before it. Relaxed could show
    // the value before the words that it vouches for. One writer, one location: nothing stronger is needed.
    word.store(value, Ordering::Release);
}

/// Reads a word before everything that it vouches for; see [`set_last`].
#[inline(always)]
#[must_use]
pub fn get_first(word: &AtomicU64) -> u64 {
    // ORDERING: acquire side of `set_last`.
    word.load(Ordering::Acquire)
}

/// The region with its layout.
pub struct Board {
    region: Region,
    layout: Layout,
}

impl Board {
    /// A new board of `shape`, all zero, in `place`. The magic word is not set yet: see [`Board::publish`].
    ///
    /// # Errors
    /// If the shared memory cannot be had; the caller falls back to [`Place::Private`] and says so.
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
        // ORDERING: release, so that a reader of another process which acquires the magic sees the header. Relaxed
        // could show the magic before the shape.
        self.header().magic.store(MAGIC, Ordering::Release);
    }

    /// Sizes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.layout.shape
    }

    /// Where others can find it; `None` if it is private.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.region.path()
    }

    /// Engine header.
    #[must_use]
    pub fn header(&self) -> &HeaderBlock {
        &self.region.section::<HeaderBlock>(0, 1)[0]
    }

    /// Block of hot thread `index`.
    #[must_use]
    pub fn thread(&self, index: usize) -> &ThreadBlock {
        &self.region.section(self.layout.threads, self.layout.shape.threads as usize)[index]
    }

    /// Feed's block of silo `silo`.
    #[must_use]
    pub fn feed(&self, silo: usize) -> &FeedBlock {
        &self.region.section(self.layout.feeds, self.silos())[silo]
    }

    /// Dispatch's block of silo `silo`.
    #[must_use]
    pub fn dispatch(&self, silo: usize) -> &DispatchBlock {
        &self.region.section(self.layout.dispatches, self.silos())[silo]
    }

    /// The device role's block of silo `silo`.
    #[must_use]
    pub fn device(&self, silo: usize) -> &DeviceBlock {
        &self.region.section(self.layout.devices, self.silos())[silo]
    }

    /// Poll's block of silo `silo`.
    #[must_use]
    pub fn poll(&self, silo: usize) -> &PollBlock {
        &self.region.section(self.layout.polls, self.silos())[silo]
    }

    /// Harvest's block of silo `silo`.
    #[must_use]
    pub fn harvest(&self, silo: usize) -> &HarvestBlock {
        &self.region.section(self.layout.harvests, self.silos())[silo]
    }

    /// Block of decode worker `index` of silo `silo`.
    #[must_use]
    pub fn decode(&self, silo: usize, index: usize) -> &DecodeBlock {
        let decoders = self.layout.shape.decoders as usize;
        &self.region.section(self.layout.decodes, self.silos() * decoders)[silo * decoders + index]
    }

    /// The graph's block of silo `silo`.
    #[must_use]
    pub fn graph(&self, silo: usize) -> &GraphBlock {
        &self.region.section(self.layout.graphs, self.silos())[silo]
    }

    /// Latency histograms of silo `silo`, written by harvest.
    #[must_use]
    pub fn latency(&self, silo: usize) -> &LatencyBlock {
        &self.region.section(self.layout.latencies, self.silos())[silo]
    }

    /// Stamps of the slots of silo `silo`.
    #[must_use]
    pub fn slots(&self, silo: usize) -> &[SlotStamps] {
        let slots = self.layout.shape.slots as usize;
        &self.region.section(self.layout.slots, self.silos() * slots)[silo * slots..(silo + 1) * slots]
    }

    /// What the feed knows of stream `stream`.
    #[must_use]
    pub fn stream_feed(&self, stream: usize) -> &StreamFeedBlock {
        &self.region.section(self.layout.stream_feeds, self.layout.shape.streams as usize)[stream]
    }

    /// What harvest knows of stream `stream`.
    #[must_use]
    pub fn stream_harvest(&self, stream: usize) -> &StreamHarvestBlock {
        &self.region.section(self.layout.stream_harvests, self.layout.shape.streams as usize)[stream]
    }

    /// The clock's block.
    #[must_use]
    pub fn clock(&self) -> &ClockBlock {
        &self.region.section::<ClockBlock>(self.layout.clock, 1)[0]
    }

    /// The log's block.
    #[must_use]
    pub fn log(&self) -> &LogBlock {
        &self.region.section::<LogBlock>(self.layout.log, 1)[0]
    }

    /// The alarm log's rows; see [`AlarmRow::read`].
    #[must_use]
    pub fn alarms(&self) -> &[AlarmRow] {
        self.region.section(self.layout.alarms, alarms::ALARMS_MAX)
    }

    /// The flight recorder's block.
    #[must_use]
    pub fn recorder(&self) -> &RecorderBlock {
        &self.region.section::<RecorderBlock>(self.layout.recorder, 1)[0]
    }

    /// How the engine is acted on.
    #[must_use]
    pub fn control(&self) -> &ControlBlock {
        &self.region.section::<ControlBlock>(self.layout.control, 1)[0]
    }

    /// The arbiter's block of silo `silo`.
    #[must_use]
    pub fn arbiter(&self, silo: usize) -> &ArbiterBlock {
        &self.region.section(self.layout.arbiters, self.silos())[silo]
    }

    /// The director's block.
    #[must_use]
    pub fn placement(&self) -> &PlacementBlock {
        &self.region.section::<PlacementBlock>(self.layout.placement, 1)[0]
    }

    /// What the director knows of silo `silo`.
    #[must_use]
    pub fn silo_depth(&self, silo: usize) -> &SiloDepthBlock {
        &self.region.section(self.layout.silo_depths, self.silos())[silo]
    }

    /// Moves of the streams of silo `silo`'s feed.
    #[must_use]
    pub fn moves(&self, silo: usize) -> &MoveBlock {
        &self.region.section(self.layout.moves, self.silos())[silo]
    }

    /// How silo `silo` lives.
    #[must_use]
    pub fn life(&self, silo: usize) -> &LifeBlock {
        &self.region.section(self.layout.lives, self.silos())[silo]
    }

    /// The live source's block.
    #[must_use]
    pub fn source(&self) -> &SourceBlock {
        &self.region.section::<SourceBlock>(self.layout.source, 1)[0]
    }

    /// What the live source knows of stream `stream`.
    #[must_use]
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
