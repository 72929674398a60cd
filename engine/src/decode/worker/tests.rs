//! Shots that pass no device, by one worker on the test's own thread.
#![allow(clippy::unwrap_used, reason = "harness")]
use super::{Bench, DecoderParts, Rough, WindowBench};
use crate::arbiter::deadlines::Timebase;
use crate::arbiter::page::{Limits, PageTable, Silo};
use crate::board::{Board, Place, Shape};
use crate::clock::Clock;
use crate::code::sampler::Sampler;
use crate::code::{Model, bundled_named};
use crate::commit::state::StreamStates;
use crate::decode::MatcherModel;
use crate::decode::changes::DecoderChanges;
use crate::decode::prepared::Prepared;
use crate::fault::Injector;
use crate::hot::Settings;
use crate::pipe::lanes::DecodeLanes;
use crate::pipe::{Pipe, Watermarks};
use crate::predecode::{Local, Predecoder as _};
use crate::profile::{Decoder, Faults, Predecoder, Profile, ShotOrder, Window, WindowRounds};
use crate::units::Ticks;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::health::HealthWord;
use pinwheel_edge::slot::jobs::{Job, JobBank, Origin};
use pinwheel_edge::slot::table::{Geometry, table};
use pinwheel_edge::sync::write_words;
use std::sync::Arc;

fn bench(model: &Arc<Model>, window: Window) -> Bench {
    let clock = Clock::machine();
    let (detectors, observables) = (model.detector_words(), model.observable_words());
    let geometry = Geometry { slots: 1, detector_words: detectors as u32, observable_words: observables as u32 };
    let table = table(geometry).3;
    let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
    let own = Silo::new(0);
    let pipe = Pipe {
        silo: 0,
        streams: 1,
        table,
        jobs: Arc::new(JobBank::new(1, detectors, observables)),
        pages: Arc::new(PageTable::new(own, 1, Limits::SEED, |_| own)),
        pressure: Arc::default(),
        watermarks: Arc::new(Watermarks::new(1, |_| true)),
        health: Arc::new(HealthWord::new()),
        settings: Arc::new(Settings::new(&Profile::load("lab", None).unwrap().0.limits)),
        deadlines: None,
        board: Arc::new(Board::create(shape, Place::Private).unwrap()),
    };
    let matching = MatcherModel::of(model, Decoder::Matching, Predecoder::Local, window).unwrap();
    let carries = matching.carries(1, 1, false);
    let mut changes = DecoderChanges::new(model, Prepared::just(Decoder::Matching, matching)).join(0, 0);
    let (prepared, matchers) = changes.first();
    let windows = carries.clone().and_then(|carries| WindowBench::new(prepared.main(), carries));
    let base = Timebase { rate: clock.rate(), start: clock.start() };
    let (_, mut lanes) = DecodeLanes::new(1, ShotOrder::Fifo, clock.rate());
    let parts = DecoderParts {
        index: 0,
        lane: lanes.pop().unwrap(),
        changes,
        predecoder: Box::new(Local::new(model).unwrap()),
        injector: Injector::new(&Faults::default(), 0),
        states: Arc::new(StreamStates::new(Arc::clone(&pipe.pages), base, observables)),
        carries,
        joints: None,
        times: None,
        pipe,
    };
    Bench { parts, matchers, windows, observables: vec![0; observables], fits_line: false, chosen: None }
}

#[test]
fn events_that_the_predecoder_removes_are_counted_once_in_windows_and_in_blocks() {
    let model = Arc::new(bundled_named("surface_d3@r12").unwrap());
    let (mut local, size) = (Local::new(&model).unwrap(), WindowRounds { commit_rounds: 3, buffer_rounds: 3 });
    let origin = Origin {
        ticket: Ticket { slot: 0, generation: 0 },
        completed: Ticks(0),
        worker: None,
        raw: true,
        by_rounds: false,
    };
    for window in [Window::Some(size), Window::Blocks(4)] {
        let (mut bench, mut sampler, mut resolved) = (bench(&model, window), Sampler::new(&model, 3), 0);
        let (windows, job) = (bench.parts.carries.as_ref().unwrap().windows(), Job::from_number(0));
        let (mut raw, mut syndrome, mut flips) = (vec![0; 2], vec![0; 2], vec![0]);
        for _ in 0..50 {
            sampler.draw(&mut raw, &mut flips);
            write_words(bench.parts.pipe.jobs.detectors(&job), &raw);
            resolved += u64::from(local.predecode(&raw, &mut syndrome, &mut flips).resolved);
            let mut rough = Rough { raw: &mut raw, syndrome: &mut syndrome, flips: &mut flips };
            for index in 0..windows {
                let decoded = match window {
                    Window::Blocks(_) => {
                        bench.attempt_block(&job, &origin, index, Ticks(1), &mut rough, false).map(|_| ())
                    }
                    _ => bench.attempt_window(&job, &origin, index, &mut rough, false),
                };
                decoded.unwrap();
            }
        }
        let counted = crate::board::get(&bench.block().predecoded_events);
        assert!(counted == resolved && counted > 20, "{window:?}: {counted}, not {resolved}");
    }
}
