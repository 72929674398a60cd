//! Cost of monitoring: the same run with and without watchdog, recorder and a scraper of its
//! metrics; and the frame loop's publishing as a share of a loaded run.
//!
//! The engine runs at the lab's sizes and 20,000 shots a second on the whole machine, in
//! alternation with and without, so that both see the same conditions. Without: `diagnostics: Off`
//! and no run directory. With: both, pictures on disk, and a page of metrics each second, as for a
//! scraper. The latencies of all shots between two readings are compared.
//!
//! `share` multiplies the cost of a frame of six busy roles above the bare loop (area `frame`) by
//! the number of frames with work on the busiest hot thread of such a run; frames without work
//! delay nothing. It covers all publishing of hot threads (heartbeat, stages, gaps, counts) and
//! their catching of panics; the aim is 1 %.

use super::frame;
use super::measure::{CLOCK, Placement, Suite};
use super::overhead::{live, unrecorded};
use pinwheel_engine::code::bundled_named;
use pinwheel_engine::engine::{Config, Engine, Input, Outcome};
use pinwheel_engine::profile::{Diagnostics, Profile, Rate};
use pinwheel_engine::record::metrics;
use std::sync::Arc;
use std::time::Duration;

/// The start is not measured.
pub(super) const SETTLES: Duration = Duration::from_millis(500);

const TURNS: usize = 7;
pub(super) const TURN_MS: u64 = 6_000;
pub(super) const RATE_HZ: f64 = 20_000.0;
/// Interval between two pages of metrics.
const SCRAPE: Duration = Duration::from_secs(1);
pub(super) const PARTS: [&str; 4] = ["p50 ns", "p99 ns", "p99.9 ns", "max ns"];

pub fn register(suite: &mut Suite) {
    let span = Duration::from_millis(suite.effort.scale(TURN_MS));
    let own = (Placement::Own, TURNS);
    let ours = suite.case("run with watchdog, recorder, metrics", &PARTS, own, move || watched(span));
    let bare = suite.case("run without", &PARTS, own, move || unwatched(span));
    for (part, tail) in ["p50", "p99", "p999", "max"].iter().enumerate() {
        suite.figure(format!("telemetry/{tail}"), "ns", ours.part(part), Some(("without", bare.part(part))));
    }
    let share = suite.case("frames of a loaded run", &["% of the thread", "busy frames/s"], own, move || share(span));
    suite.figure("telemetry/frame_share", "%", share, None);
}

fn config(diagnostics: Diagnostics) -> Config {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    profile.input.rate = Rate::Hz(RATE_HZ);
    profile.diagnostics = diagnostics;
    let model = bundled_named("surface_d5").unwrap();
    let input = Input::Sampler { model: Arc::new(model), name: "surface_d5".to_string(), seed: 1 };
    unrecorded(profile, input)
}

/// Latencies over `span` of a running engine; `each` is called once a second.
pub(super) fn latencies(engine: &Engine, span: Duration, mut each: impl FnMut()) -> Vec<f64> {
    let before = engine.snapshot().silos[0].latency.clone();
    let mut left = span;
    while !left.is_zero() {
        let step = left.min(SCRAPE);
        std::thread::sleep(step);
        each();
        left -= step;
    }
    let found = engine.snapshot().silos[0].latency.since(&before);
    let quantile = |q| found.quantile_ns(q) as f64;
    vec![quantile(0.5), quantile(0.99), quantile(0.999), found.max_ns() as f64]
}

/// Drains the engine; panics unless it answered every shot.
pub(super) fn ended(engine: Engine) -> Outcome {
    engine.request_drain();
    let outcome = engine.finish();
    assert!(outcome.unanswered.is_empty(), "every shot is answered");
    outcome
}

fn watched(span: Duration) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let engine = live(Config { run_dir: Some(folder.path().to_owned()), ..config(Diagnostics::On) }, SETTLES);
    let exposition = metrics::Exposition::default();
    let found = latencies(&engine, span, || drop(std::hint::black_box(exposition.text(&engine.snapshot()))));
    ended(engine);
    found
}

fn unwatched(span: Duration) -> Vec<f64> {
    let engine = live(config(Diagnostics::Off), SETTLES);
    let found = latencies(&engine, span, || ());
    ended(engine);
    found
}

/// Share of the busiest hot thread spent on publishing in its frames with work, and the number of
/// those frames a second.
fn share(span: Duration) -> Vec<f64> {
    let engine = live(config(Diagnostics::On), SETTLES);
    let busy = || engine.snapshot().threads.iter().map(|thread| thread.frames_busy).collect::<Vec<_>>();
    let (before, from) = (busy(), CLOCK.ticks());
    std::thread::sleep(span);
    let seconds = CLOCK.rate().nanos(CLOCK.ticks().since(from)).0 as f64 / 1e9;
    let most = busy().iter().zip(&before).map(|(now, then)| now - then).max().unwrap_or(0) as f64 / seconds;
    ended(engine);
    let overhead_ns = frame::hot(6, 1) - frame::bare(6, 1);
    vec![overhead_ns.max(0.0) * most / 1e9 * 100.0, most]
}
