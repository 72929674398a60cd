//! One silo's roles called by hand under virtual time, for what no sound feed does: repeated numbers, unknown streams.

use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::Phase;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{Board, Place, Shape};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::{Sampler, bundled_named};
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::feed::Share;
use pinwheel_engine::feed::requests::MoveRequests;
use pinwheel_engine::feed::source::Source;
use pinwheel_engine::hot::{Frame, Init, Role, Scratch, Settings};
use pinwheel_engine::pipe::Answer;
use pinwheel_engine::profile::{Decoder, Predecoder, Window};
use pinwheel_engine::silo::{Answers, Attached, Common, Decoding, Silo, wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A silo of `share` with `readers` of its answers, and its roles.
struct Hand {
    nanos: Arc<AtomicU64>,
    clock: Clock,
    board: Arc<Board>,
    silo: Silo,
    roles: Vec<Box<dyn Role>>,
    scratch: Scratch,
}

impl Hand {
    fn new(share: Share, readers: usize) -> Hand {
        let profile = crate::rig::profile();
        let model = Arc::new(bundled_named("surface_d3").unwrap());
        let nanos = Arc::new(AtomicU64::new(1_000_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let (slots, workers) = (profile.slots, profile.device_workers());
        let shape = Shape { threads: 1, silos: 1, slots, workers, decoders: 1, streams: 8 };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        let settings = Arc::new(Settings::new(&profile.limits));
        let decoding = Decoding::new(Arc::clone(&model), Decoder::Matching, Predecoder::None, Window::None).unwrap();
        let moves = Arc::new(MoveRequests::new(share.streams, 1, false));
        let (board_of, decoders) = (Arc::clone(&board), decoding.changes());
        let common =
            Common { board: board_of, settings, clock: clock.clone(), decoding, decoders, moves, joints: None };
        let source = Source::Sampler(Box::new(Sampler::new(&model, 3)));
        let mut silo =
            wire(&profile, share, 1, source, Answers::PassedOn { readers }, Attached::default(), &common).unwrap();
        let mut init = Init { clock: &clock, board: &board };
        let roles = silo.specs.drain(..).map(|spec| (spec.build)(&mut init).unwrap()).collect();
        Hand { nanos, clock, board, silo, roles, scratch: Scratch::new() }
    }

    /// Calls each role once.
    fn round(&mut self) {
        for role in &mut self.roles {
            self.nanos.fetch_add(100, Ordering::Relaxed);
            let _ = role.work(&mut Frame::new(&self.clock, self.clock.ticks(), Phase::Live, &mut self.scratch));
        }
    }

    fn shown(&self) -> Snapshot {
        self.board.snapshot(&self.clock)
    }
}

/// Plays `share` through a silo to its end.
fn play(share: Share) -> (Snapshot, Vec<Answer>) {
    let mut hand = Hand::new(share, 1);
    let mut taken = Vec::new();
    for _ in 0..10_000 {
        hand.round();
        taken.extend(hand.silo.answers[0].read());
    }
    (hand.shown(), taken)
}

#[test]
fn each_reader_of_answers_sees_them_all_and_the_slowest_holds_the_silo_up_until_it_leaves() {
    let mut hand = Hand::new(Share { silo: 0, streams: 1, own: vec![0], count: None, turns: None }, 2);
    let (slow, mut quick) = (hand.silo.answers.pop().unwrap(), hand.silo.answers.pop().unwrap());
    let (slow_number, mut seen) = (slow.number(), Vec::new());
    let answers = |hand: &Hand| {
        let shown = hand.shown();
        let ring = shown.silos[0].rings.iter().find(|ring| ring.name == "answers").unwrap().clone();
        (shown.silos[0].counters.answered, ring)
    };
    while answers(&hand).1.refusals == 0 {
        hand.round();
        while let Some(answer) = quick.read() {
            seen.push(answer.sequence);
        }
    }
    hand.round();
    let (answered, ring) = answers(&hand);
    assert_eq!((answered, ring.depth), (ring.capacity, ring.capacity), "held up by a full ring");
    assert_eq!((ring.lags[slow_number], ring.lags[1 - slow_number]), (Some(ring.capacity), Some(0)));
    let mut slow = slow;
    for expected in &seen {
        assert_eq!(slow.read().unwrap().sequence, *expected);
    }
    drop(slow);
    (0..20).for_each(|_| hand.round());
    let (now, ring) = answers(&hand);
    assert!(now > answered, "it goes on: {now}");
    assert_eq!((ring.lags[slow_number], ring.lags[1 - slow_number]), (None, Some(ring.depth)));
}

#[test]
fn a_repeated_number_is_answered_twice_and_counted_as_a_duplicate() {
    // The same stream twice: each sequence number comes twice.
    let (shown, answers) = play(Share { silo: 0, streams: 1, own: vec![0, 0], count: Some(200), turns: None });
    let counters = &shown.silos[0].counters;
    assert_eq!((counters.submitted, counters.answered, counters.errored), (400, 400, 0));
    assert_eq!((counters.duplicated, answers.len()), (200, 400));
    let fault = shown.faults.iter().find(|fault| fault.code == FaultCode::Duplicate.number()).unwrap();
    assert_eq!((fault.count, fault.detail), (200, 199));
    let graph = &shown.silos[0].graph;
    assert_eq!((graph.committed, graph.tombstones), (200, 0), "each number is committed once");
}

#[test]
fn a_shot_of_an_unknown_stream_is_answered_with_an_error_and_the_others_go_on() {
    // The silo knows streams below 2; the feed writes stream 5 as well.
    let (shown, answers) = play(Share { silo: 0, streams: 2, own: vec![0, 5], count: None, turns: None });
    let silo = &shown.silos[0];
    let refused = silo.errors.iter().find(|error| error.code == ErrorCode::UnknownStream as u16).unwrap();
    assert!(refused.count > 0 && silo.counters.errored == refused.count, "{:?}", silo.errors);
    assert_eq!(shown.streams[0].errors + shown.streams[5].answered, 0);
    assert!(shown.streams[0].answered > 0 && answers.iter().all(|answer| answer.stream == 0));
}
