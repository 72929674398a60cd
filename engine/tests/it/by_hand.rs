//! One silo's roles called by hand under virtual time, for what no sound feed does: repeated numbers, unknown streams.

use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::Phase;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{Board, Place, Shape};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::{Sampler, bundled_named};
use pinwheel_engine::dispatch::Answer;
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::feed::Share;
use pinwheel_engine::feed::source::Source;
use pinwheel_engine::hot::{Frame, Init, Scratch, Settings};
use pinwheel_engine::profile::Predecoder;
use pinwheel_engine::silo::{Answers, Common, Decoding, wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Plays `share` through a silo to its end.
fn play(share: Share) -> (Snapshot, Vec<Answer>) {
    let profile = crate::rig::profile();
    let model = Arc::new(bundled_named("surface_d3").unwrap());
    let nanos = Arc::new(AtomicU64::new(1_000_000));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    let (slots, workers) = (profile.slots, profile.workers);
    let shape = Shape { threads: 1, silos: 1, slots, workers, decoders: 1, streams: 8 };
    let board = Arc::new(Board::create(shape, Place::Private).unwrap());
    let settings = Arc::new(Settings::new(&profile.limits));
    let decoding = Decoding::new(Arc::clone(&model), Predecoder::None).unwrap();
    let common = Common { board: Arc::clone(&board), settings, rate: clock.rate(), decoding };
    let source = Source::Sampler(Box::new(Sampler::new(&model, 3)));
    let mut silo = wire(&profile, share, 1, source, Answers::PassedOn, &common);
    let mut init = Init { clock: &clock, board: &board };
    let mut roles: Vec<_> = silo.specs.drain(..).map(|spec| (spec.build)(&mut init).unwrap()).collect();
    let (mut taken, mut scratch) = (Vec::new(), Scratch::new());
    for _ in 0..10_000 {
        for role in &mut roles {
            nanos.fetch_add(100, Ordering::Relaxed);
            let _ = role.work(&mut Frame::new(&clock, clock.ticks(), Phase::Live, &mut scratch));
        }
        taken.extend(silo.answers.as_mut().unwrap().pop());
    }
    (board.snapshot(&clock), taken)
}

#[test]
fn a_number_that_comes_twice_is_answered_twice_and_counted_as_a_duplicate() {
    // The same stream twice: each sequence number comes twice.
    let (shown, answers) = play(Share { silo: 0, streams: 1, own: vec![0, 0], count: Some(200) });
    let counters = &shown.silos[0].counters;
    assert_eq!((counters.submitted, counters.answered, counters.errored), (400, 400, 0));
    assert_eq!((counters.duplicated, answers.len()), (200, 400));
    let fault = shown.faults.iter().find(|fault| fault.code == FaultCode::Duplicate.number()).unwrap();
    assert_eq!((fault.count, fault.detail), (200, 199));
}

#[test]
fn a_shot_of_an_unknown_stream_is_answered_with_an_error_and_the_others_go_on() {
    // The silo knows streams below 2; the feed writes stream 5 as well.
    let (shown, answers) = play(Share { silo: 0, streams: 2, own: vec![0, 5], count: None });
    let silo = &shown.silos[0];
    let refused = silo.errors.iter().find(|error| error.code == ErrorCode::UnknownStream as u16).unwrap();
    assert!(refused.count > 0 && silo.counters.errored == refused.count, "{:?}", silo.errors);
    assert_eq!(shown.streams[0].errors + shown.streams[5].answered, 0);
    assert!(shown.streams[0].answered > 0 && answers.iter().all(|answer| answer.stream == 0));
}
