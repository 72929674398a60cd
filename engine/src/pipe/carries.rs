//! Carries: intermediate results between the windows of a shot.
//!
//! Owns a carry for each job buffer: the shot's rounds without the events explained so far, each
//! round at whole words; or, for streams and blocks, the index of the matchers that the shot has
//! ([`StreamShots`], [`BlockShots`]). A window's task reads and writes the words of its own rounds and of the
//! rounds that its commits reach. These words are its region: the graph orders windows that share
//! rounds, and lets windows of different shots run in parallel. Written by the decode worker that
//! runs a window; the graph role uses only the regions. Bounds: the jobs, and the model's rounds.
//! Never allocates after construction.

use crate::units::Ticks;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::sync::{DataWord, DataWords, read_words, write_words};
use pinwheel_matching::{BlockFusion, BlockMatcher, BlockModel, StreamMatcher, StreamModel};
use std::ops::Range;
#[expect(clippy::disallowed_types, reason = "tried only, never waited for; see Tried")]
use std::sync::Mutex;
use std::sync::{Arc, TryLockError};

/// Most shots that are decoded as streams at once; more wait. Each takes the memory of one
/// [`StreamMatcher`], 0.1 MB at distance 5.
const STREAM_SHOTS_MAX: u32 = 64;

/// Most shots that are decoded in blocks at once; more wait. Each takes the memory of a whole shot's search
/// twice, 7.4 MB for 500 rounds of distance 5.
const BLOCK_SHOTS_MAX: u32 = 8;

/// What one task at a time uses; nobody waits for it.
///
/// # Why a mutex on hot threads
/// The graph runs the windows of a shot one after the other, on any worker, and its blocks by one task each,
/// before their fusion. So nobody ever holds a matcher that another worker wants: it is tried once. The mutex
/// says so to the compiler, at the price of two uncontended exchanges for each window.
#[expect(clippy::disallowed_types, reason = "tried only, never waited for")]
type Tried<T> = Mutex<T>;

/// One window of every shot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarryWindow {
    /// Words of the carry that it reads and writes.
    pub words: Range<u32>,
    /// Leading words that it needs of a shot that arrives round by round.
    pub needed_words: u32,
}

/// The carries of all jobs.
pub struct Carries {
    windows: Box<[CarryWindow]>,
    words: DataWords,
    streams: Option<StreamShots>,
    blocks: Option<BlockShots>,
}

/// The matchers of shots that are decoded as streams. The graph role gives each such shot one, from
/// its first window to its last.
pub struct StreamShots {
    model: Arc<StreamModel>,
    matchers: Box<[Tried<StreamMatcher>]>,
}

impl StreamShots {
    /// Number of matchers.
    pub fn count(&self) -> u32 {
        self.matchers.len() as u32
    }

    /// Lends matcher `index`; `None` if it is in use, or a decode panicked in it.
    ///
    /// # Panics
    /// If there is no such matcher.
    pub fn with<T>(&self, index: u32, run: impl FnOnce(&mut StreamMatcher) -> T) -> Option<T> {
        self.matchers[index as usize].try_lock().ok().map(|mut matcher| run(&mut matcher))
    }

    /// Builds those matchers anew in which a decode panicked. Allocates.
    fn renew(&self) {
        self.matchers.iter().for_each(|matcher| renew(matcher, || StreamMatcher::new(Arc::clone(&self.model))));
    }
}

/// One block of a shot.
struct Block {
    matcher: BlockMatcher,
    /// When its decode began; `None` until it has ended well.
    began: Option<Ticks>,
}

/// The matchers of one shot that is decoded in blocks.
struct BlockShot {
    blocks: Box<[Tried<Block>]>,
    fusion: Tried<BlockFusion>,
}

/// The matchers of shots that are decoded in blocks. The graph role gives each such shot a set, from its
/// first block to its fusion.
pub struct BlockShots {
    model: Arc<BlockModel>,
    shots: Box<[BlockShot]>,
}

impl BlockShots {
    fn new(model: &Arc<BlockModel>, count: u32) -> BlockShots {
        let shot = |_| BlockShot {
            blocks: (0..model.blocks()).map(|index| Tried::new(Block::new(model, index))).collect(),
            fusion: Tried::new(BlockFusion::new(Arc::clone(model))),
        };
        BlockShots { model: Arc::clone(model), shots: (0..count).map(shot).collect() }
    }

    /// Has `run` decode block `index` of the shot with set `shot`, from `began` on. Returns whether it could:
    /// an earlier decode may have panicked in it.
    ///
    /// # Panics
    /// If there is no such set or block.
    pub fn decode(&self, shot: u32, index: u32, began: Ticks, run: impl FnOnce(&mut BlockMatcher)) -> bool {
        let Ok(mut block) = self.shots[shot as usize].blocks[index as usize].try_lock() else { return false };
        block.began = None;
        run(&mut block.matcher);
        block.began = Some(began);
        true
    }

    /// Has `run` end the shot with set `shot` in memory that has taken its blocks. Returns when the first block
    /// began, too; `None` if a block has not been decoded.
    ///
    /// # Panics
    /// If there is no such set.
    pub fn fuse<T>(&self, shot: u32, run: impl FnOnce(&mut BlockFusion) -> T) -> Option<(T, Ticks)> {
        let BlockShot { blocks, fusion } = &self.shots[shot as usize];
        let mut fusion = fusion.try_lock().ok()?;
        let (mut first, mut has_all) = (Ticks(u64::MAX), true);
        for block in blocks {
            match block.try_lock() {
                Ok(mut block) => match block.began.take() {
                    Some(began) => {
                        first = first.min(began);
                        fusion.take(&mut block.matcher);
                    }
                    None => has_all = false,
                },
                Err(_) => has_all = false,
            }
        }
        let ended = run(&mut fusion);
        has_all.then_some((ended, first))
    }

    fn bytes(&self) -> usize {
        let of_block = |block: &Tried<Block>| block.try_lock().map_or(0, |block| block.matcher.bytes());
        let of = |BlockShot { blocks, fusion }: &BlockShot| {
            blocks.iter().map(of_block).sum::<usize>() + fusion.try_lock().map_or(0, |fusion| fusion.bytes())
        };
        self.shots.iter().map(of).sum()
    }

    /// Builds those matchers anew in which a decode panicked. Allocates.
    fn renew(&self) {
        for shot in &self.shots {
            for (index, block) in (0..).zip(&shot.blocks) {
                renew(block, || Block::new(&self.model, index));
            }
            renew(&shot.fusion, || BlockFusion::new(Arc::clone(&self.model)));
        }
    }
}

impl Block {
    fn new(model: &Arc<BlockModel>, index: u32) -> Block {
        Block { matcher: BlockMatcher::new(Arc::clone(model), index), began: None }
    }
}

/// Replaces what a panic has left half-done.
fn renew<T>(of: &Tried<T>, build: impl FnOnce() -> T) {
    if of.is_poisoned()
        && let Err(TryLockError::Poisoned(poisoned)) = of.try_lock()
    {
        *poisoned.into_inner() = build();
        of.clear_poison();
    }
}

impl Carries {
    /// Carries of `words` words for `jobs` job buffers, whose shots have `windows`. The first
    /// window initialises the carry: it writes all words, regardless of its own range.
    pub fn new(jobs: u32, words: usize, mut windows: Box<[CarryWindow]>) -> Carries {
        let words = DataWords::new(jobs as usize, words.max(1));
        windows.iter_mut().take(1).for_each(|first| first.words = 0..words.stride_words() as u32);
        Carries { windows, words, streams: None, blocks: None }
    }

    /// For `jobs` job buffers, whose shots of `model` are decoded as streams, in parts that need so
    /// many leading words of the shot; at most twice the number of `streams` at once.
    pub fn of_streams(jobs: u32, streams: u32, model: &Arc<StreamModel>, needed_words: &[u32]) -> Carries {
        let part = |&needed_words: &u32| CarryWindow { words: 0..1, needed_words };
        let count = streams.saturating_mul(2).clamp(1, jobs.clamp(1, STREAM_SHOTS_MAX));
        let matcher = |_| Tried::new(StreamMatcher::new(Arc::clone(model)));
        let matchers = (0..count).map(matcher).collect();
        let carries = Carries::new(jobs, 1, needed_words.iter().map(part).collect());
        Carries { streams: Some(StreamShots { model: Arc::clone(model), matchers }), ..carries }
    }

    /// For `jobs` job buffers, whose shots of `model` are decoded in blocks, which need so many leading words
    /// of the shot, and after them fused.
    pub fn of_blocks(jobs: u32, model: &Arc<BlockModel>, needed_words: &[u32]) -> Carries {
        let blocks = model.blocks();
        let words = |index: u32| if index == blocks { 0..blocks } else { index..index + 1 };
        let task = |(index, &needed_words)| CarryWindow { words: words(index), needed_words };
        Carries {
            windows: (0..).zip(needed_words).map(task).collect(),
            words: DataWords::new(jobs as usize, blocks as usize),
            streams: None,
            blocks: Some(BlockShots::new(model, jobs.clamp(1, BLOCK_SHOTS_MAX))),
        }
    }

    /// Whether shots that arrive whole are decoded by these windows too.
    pub const fn split_whole_shots(&self) -> bool {
        self.streams.is_none()
    }

    /// Number of matchers, or sets of them, of which a shot has one from its first window on; `None` if shots
    /// need none.
    pub fn matchers(&self) -> Option<u32> {
        let of_blocks = self.blocks.as_ref().map(|blocks| blocks.shots.len() as u32);
        of_blocks.or(self.streams.as_ref().map(StreamShots::count))
    }

    /// Bytes of these matchers on the heap; they do not grow.
    pub fn matcher_bytes(&self) -> usize {
        let of = |matcher: &Tried<StreamMatcher>| matcher.try_lock().map_or(0, |matcher| matcher.bytes());
        let in_streams = self.streams.iter().flat_map(|streams| &streams.matchers).map(of).sum::<usize>();
        in_streams + self.blocks.as_ref().map_or(0, BlockShots::bytes)
    }

    /// Builds those matchers anew in which a decode panicked. Allocates.
    pub fn renew(&self) {
        self.streams.iter().for_each(StreamShots::renew);
        self.blocks.iter().for_each(BlockShots::renew);
    }

    /// Says which matcher the shot of `job` has; for its later windows the same.
    pub fn set_matcher(&self, job: &Job, index: u32) {
        // The shot before may have ended without its fusion.
        let blocks = self.blocks.iter().flat_map(|blocks| &blocks.shots[index as usize].blocks);
        blocks.for_each(|block| block.try_lock().iter_mut().for_each(|block| block.began = None));
        write_words(&self.record(job)[..1], &[index.into()]);
    }

    /// The matcher of the shot of `job`.
    pub fn matcher_of(&self, job: &Job) -> u32 {
        let mut index = [0];
        read_words(&self.record(job)[..1], &mut index);
        index[0] as u32
    }

    /// The matchers, if shots are decoded as streams.
    pub const fn streams(&self) -> Option<&StreamShots> {
        self.streams.as_ref()
    }

    /// The matchers, if shots are decoded in blocks.
    pub const fn blocks(&self) -> Option<&BlockShots> {
        self.blocks.as_ref()
    }

    /// Number of windows of a shot.
    pub fn windows(&self) -> u32 {
        self.windows.len() as u32
    }

    /// Leading words that window `index` needs of a shot that arrives round by round.
    pub fn needed_words(&self, index: u32) -> u32 {
        self.windows[index as usize].needed_words
    }

    /// Words of a carry.
    pub fn stride_words(&self) -> u32 {
        self.words.stride_words() as u32
    }

    /// The words that window `index` reads and writes; the first window writes all words.
    pub fn region(&self, index: u32) -> Range<u32> {
        self.windows[index as usize].words.clone()
    }

    /// The words that all windows up to `last` read and write; windows before it may run at the same time.
    pub fn region_up_to(&self, last: u32) -> Range<u32> {
        let Range { start, end } = self.region(last);
        if self.blocks.is_some() { 0..end } else { start..end }
    }

    /// The carry of `job`.
    pub fn record(&self, job: &Job) -> &[DataWord] {
        self.words.record(job.number() as usize)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Carries;
    use pinwheel_matching::{Edge, StreamModel};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    #[test]
    fn a_matcher_in_which_a_decode_panicked_is_built_anew() {
        let edges = [Edge { a: 0, b: None, weight: 1.0, observables: &[1] }];
        let model = Arc::new(StreamModel::new(&[0], 1, edges, 1, 1).unwrap());
        let carries = Carries::of_streams(8, 3, &model, &[1]);
        let shots = carries.streams().unwrap();
        assert_eq!(shots.count(), 6);
        let panicked = catch_unwind(AssertUnwindSafe(|| shots.with(2, |_| panic!("in a decode"))));
        assert!(panicked.is_err() && shots.with(2, |_| ()).is_none());
        assert!(shots.with(1, |_| shots.with(1, |_| ()).is_none()).unwrap(), "in use");
        shots.renew();
        assert_eq!(shots.with(2, |matcher| matcher.rounds()), Some(0));
    }
}
