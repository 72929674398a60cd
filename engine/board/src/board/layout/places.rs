//! Offset of each array of blocks: a header, then one array per kind, each starting on a 128-byte
//! boundary.
//!
//! Pure arithmetic over a [`Shape`], computed once by the creator of a region and once by each
//! reader.

use super::{
    AlarmRow, ArbiterBlock, ClockBlock, ControlBlock, DecodeBlock, DeviceBlock, DispatchBlock, FaultRow, FeedBlock,
    GraphBlock, HarvestBlock, HeaderBlock, LatencyBlock, LifecycleBlock, LogBlock, MoveBlock, PlacementBlock,
    PollBlock, RecorderBlock, ShadowBlock, SiloDepthBlock, SlotStamps, SourceBlock, StreamFeedBlock,
    StreamHarvestBlock, StreamSourceBlock, ThreadBlock,
};
use crate::board::alarms::ALARMS_MAX;
use crate::fault::FaultCode;

/// Number of blocks of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of hot threads.
    pub threads: u32,
    /// Number of silos.
    pub silos: u32,
    /// Slots of each silo.
    pub slots: u32,
    /// Workers of each silo.
    pub workers: u32,
    /// Decode workers of each silo.
    pub decoders: u32,
    /// Number of streams.
    pub streams: u32,
}

impl Shape {
    /// The sizes as words of the header.
    pub fn words(self) -> [u64; 6] {
        [self.threads, self.silos, self.slots, self.workers, self.decoders, self.streams].map(u64::from)
    }

    /// Inverse of [`Shape::words`]; `None` for sizes that no engine has.
    pub fn from_words(words: [u64; 6]) -> Option<Shape> {
        // Above the limits of profiles, and small enough that a layout's size cannot overflow.
        const MOST: [u64; 6] = [4_096, 64, 65_536, 64, 64, 4_096];
        let mut sizes = [0; 6];
        for ((size, word), most) in sizes.iter_mut().zip(words).zip(MOST) {
            *size = u32::try_from(word).ok().filter(|_| word <= most)?;
        }
        let [threads, silos, slots, workers, decoders, streams] = sizes;
        // The blocks of silo 0 are there on every board.
        (silos > 0).then_some(Shape { threads, silos, slots, workers, decoders, streams })
    }
}

/// Byte offsets of each array.
#[derive(Clone, Copy, Debug)]
pub(in crate::board) struct Layout {
    pub(in crate::board) shape: Shape,
    pub(in crate::board) threads: usize,
    pub(in crate::board) feeds: usize,
    pub(in crate::board) dispatches: usize,
    pub(in crate::board) devices: usize,
    pub(in crate::board) polls: usize,
    pub(in crate::board) decodes: usize,
    pub(in crate::board) harvests: usize,
    pub(in crate::board) latencies: usize,
    pub(in crate::board) slots: usize,
    pub(in crate::board) stream_feeds: usize,
    pub(in crate::board) stream_harvests: usize,
    pub(in crate::board) faults: usize,
    pub(in crate::board) clock: usize,
    pub(in crate::board) log: usize,
    pub(in crate::board) alarms: usize,
    pub(in crate::board) recorder: usize,
    pub(in crate::board) graphs: usize,
    pub(in crate::board) arbiters: usize,
    pub(in crate::board) moves: usize,
    pub(in crate::board) lifecycles: usize,
    pub(in crate::board) source: usize,
    pub(in crate::board) stream_sources: usize,
    pub(in crate::board) control: usize,
    pub(in crate::board) placement: usize,
    pub(in crate::board) silo_depths: usize,
    pub(in crate::board) shadow: usize,
    pub(in crate::board) bytes: usize,
}

impl Layout {
    /// # Panics
    /// If the board does not fit into the address space: every access relies on these sums.
    pub(in crate::board) fn of(shape: Shape) -> Layout {
        let mut end = size_of::<HeaderBlock>();
        let mut place = |size: usize, count: usize| {
            let at = end;
            let sum = size.checked_mul(count).and_then(|bytes| end.checked_add(bytes));
            end = sum.expect("a board fits into the address space");
            at
        };
        let silos = shape.silos as usize;
        Layout {
            shape,
            threads: place(size_of::<ThreadBlock>(), shape.threads as usize),
            feeds: place(size_of::<FeedBlock>(), silos),
            dispatches: place(size_of::<DispatchBlock>(), silos),
            devices: place(size_of::<DeviceBlock>(), silos),
            polls: place(size_of::<PollBlock>(), silos),
            decodes: place(size_of::<DecodeBlock>(), silos * shape.decoders as usize),
            harvests: place(size_of::<HarvestBlock>(), silos),
            latencies: place(size_of::<LatencyBlock>(), silos),
            slots: place(size_of::<SlotStamps>(), silos * shape.slots as usize),
            stream_feeds: place(size_of::<StreamFeedBlock>(), shape.streams as usize),
            stream_harvests: place(size_of::<StreamHarvestBlock>(), shape.streams as usize),
            faults: place(size_of::<FaultRow>(), silos * FaultCode::ALL.len()),
            clock: place(size_of::<ClockBlock>(), 1),
            log: place(size_of::<LogBlock>(), 1),
            alarms: place(size_of::<AlarmRow>(), ALARMS_MAX),
            recorder: place(size_of::<RecorderBlock>(), 1),
            graphs: place(size_of::<GraphBlock>(), silos),
            arbiters: place(size_of::<ArbiterBlock>(), silos),
            moves: place(size_of::<MoveBlock>(), silos),
            lifecycles: place(size_of::<LifecycleBlock>(), silos),
            source: place(size_of::<SourceBlock>(), 1),
            stream_sources: place(size_of::<StreamSourceBlock>(), shape.streams as usize),
            control: place(size_of::<ControlBlock>(), 1),
            placement: place(size_of::<PlacementBlock>(), 1),
            silo_depths: place(size_of::<SiloDepthBlock>(), silos),
            shadow: place(size_of::<ShadowBlock>(), 1),
            bytes: end.next_multiple_of(4096),
        }
    }
}
