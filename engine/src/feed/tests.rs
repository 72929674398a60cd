//! Shots of a reader that has them later than the rate says.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::stage::{StageFill, stage};
use super::{Feed, FeedContext, Share, Source};
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::code::Model;
use crate::fault::Injector;
use crate::hot::{Frame, Role, Scratch, Settings};
use crate::pipe::Pressure;
use crate::profile::{Faults, Overflow, OverflowStrategy, Profile};
use crate::streams::OverflowOutcome;
use pinwheel_edge::slot::table::{AnswerTimes, DispatchEnd, Geometry, HarvestEnd, SlotTable, table};
use pinwheel_edge::spin::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SLOTS: u32 = 8;
const MS: u64 = 1_000_000;

/// A feed with a reader, at 1,000 shots a second, each of which waits for a slot for at most 5 ms.
struct Bench {
    board: Arc<Board>,
    nanos: Arc<AtomicU64>,
    clock: Clock,
    feed: Feed,
    fill: StageFill,
    dispatch: DispatchEnd,
    harvest: HarvestEnd,
    slots: Arc<SlotTable>,
    scratch: Scratch,
}

impl Bench {
    fn new(strategy: OverflowStrategy) -> Bench {
        let model = Model::parse(b"error(0.1) D0 L0\n").unwrap();
        let (profile, _) = Profile::load("lab", None).unwrap();
        let shape = Shape { threads: 1, silos: 1, slots: SLOTS, workers: 1, decoders: 1, streams: 1 };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        let nanos = Arc::new(AtomicU64::new(0));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let settings = Arc::new(Settings::new(&profile.limits));
        settings.set_rate_hz(Some(1_000.0));
        settings.set_overflow(&Overflow { strategy, deadline_ms: 5, keep_shots: 4 });
        let (end, dispatch, harvest, slots) = table(Geometry { slots: SLOTS, detector_words: 1, observable_words: 1 });
        let (fill, stage) = stage(1);
        let (pressure, rate) = (Arc::new(Pressure::default()), clock.rate());
        let context = FeedContext { settings, board: Arc::clone(&board), pressure, rate };
        let (share, injector) = (Share::of(0, 1, 1, None), Injector::new(&Faults::default(), 0));
        let feed = Feed::new(share, end, Source::Stage(stage), &model, context, injector, None);
        Bench { board, nanos, clock, feed, fill, dispatch, harvest, slots, scratch: Scratch::new() }
    }

    fn frame_at(&mut self, ms: u64) {
        self.nanos.store(ms * MS, Ordering::Relaxed);
        let _ = self.feed.work(&mut Frame::new(&self.clock, self.clock.ticks(), Phase::Live, &mut self.scratch));
    }

    /// Shots submitted, and shots that have arrived.
    fn counts(&self) -> [u64; 2] {
        let block = self.board.feed(0);
        [&block.submitted, &block.scheduled].map(board::get)
    }

    /// When the shot in `slot` arrived, ms.
    fn arrived_at(&self, slot: usize) -> u64 {
        board::get(&self.board.slots(0)[slot].scheduled) / MS
    }

    /// The oldest shot is answered, and its slot comes free.
    fn answer_oldest(&mut self) {
        let arrived = self.dispatch.arrived().unwrap();
        let ticket = self.dispatch.hold(&arrived, arrived.submitted);
        self.dispatch.retire();
        self.slots.claim(ticket).unwrap().answer(&[0], AnswerTimes::default());
        self.harvest.begin();
        let answered = self.harvest.next_answered().unwrap();
        self.harvest.take(&answered);
    }
}

#[test]
fn a_shot_that_its_reader_has_later_than_the_rate_says_arrives_when_it_comes() {
    let mut bench = Bench::new(OverflowStrategy::Block);
    (1..=1_000).for_each(|ms| bench.frame_at(ms));
    assert_eq!(bench.counts(), [0, 0], "nothing has come, and nothing waits");
    (0..3).for_each(|_| assert!(bench.fill.offer(&[1])));
    (1_001..=1_010).for_each(|ms| bench.frame_at(ms));
    assert_eq!([0, 1, 2].map(|slot| bench.arrived_at(slot)), [1_001, 1_002, 1_003], "from then on at the rate");
    assert_eq!(bench.counts(), [3, 3]);
}

#[test]
fn a_full_ring_is_no_overflow_while_its_reader_has_no_shot() {
    let mut bench = Bench::new(OverflowStrategy::Block);
    (0..SLOTS).for_each(|_| assert!(bench.fill.offer(&[1])));
    (1..=100).for_each(|ms| bench.frame_at(ms));
    assert_eq!(bench.counts(), [8, 8]);
    assert_eq!(board::get(&bench.board.feed(0).overflow_episodes), 0);
    assert!(bench.fill.offer(&[1]));
    (101..=104).for_each(|ms| bench.frame_at(ms));
    assert_eq!(board::get(&bench.board.feed(0).overflow_episodes), 1, "now one waits");
    bench.answer_oldest();
    bench.frame_at(105);
    let outcomes = &bench.board.feed(0).overflow;
    let counted = [OverflowOutcome::Waited, OverflowOutcome::Expired].map(|one| board::get(&outcomes[one as usize]));
    assert_eq!((bench.counts(), counted), ([9, 9], [1, 0]), "it waited for 4 ms of 5");
}

#[test]
fn of_shots_that_their_reader_has_no_more_than_may_wait_none_is_dropped_as_the_oldest() {
    let mut bench = Bench::new(OverflowStrategy::DropOldest);
    (0..SLOTS + 4).for_each(|_| assert!(bench.fill.offer(&[1])));
    (1..=100).for_each(|ms| bench.frame_at(ms));
    assert_eq!(bench.counts(), [8, 12]);
    (0..4).for_each(|_| bench.answer_oldest());
    bench.frame_at(101);
    let dropped = board::get(&bench.board.feed(0).overflow[OverflowOutcome::DroppedOldest as usize]);
    assert_eq!((bench.counts(), dropped), ([12, 12], 0));
}
